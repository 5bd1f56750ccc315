"""The warp scheduler: by hand, against a plain model, and against Little's law, which it must not beat."""

import itertools
import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pace import slowness
from tools.looped import looped

from course_lib.simulators.gpu.littles_law import pass_cycles
from course_lib.simulators.gpu.warp_scheduler import (
    LATENCIES,
    POLICIES,
    STATES,
    Latencies,
    StreamInstruction,
    independent_loads,
    littles_law,
    memory_interval_of,
    occupancy_curve,
    simulate,
    stream,
)

SHORT = Latencies(arithmetic=4, shared=7, l2=11, dram=20)
CHAIN = "s = fma s"

names = st.sampled_from("abc")
instructions = st.one_of(
    st.builds(lambda op, to: StreamInstruction(op, (), to), st.sampled_from(("shared", "l2", "load")), names),
    st.builds(lambda a, b, to: StreamInstruction("fma", (a, b), to), names, names, names),
    st.builds(lambda a: StreamInstruction("use", (a,)), names),
    st.just(StreamInstruction("use")),
)
streams = st.lists(instructions, min_size=1, max_size=8).map(tuple)
policies = st.sampled_from(sorted(POLICIES))
intervals = st.sampled_from((1, 2, 5, 13, 40))


# -- by hand -----------------------------------------------------------------------------------------------


def letters(result):
    """The timeline as text, a string per warp: . finished, I issued, n not selected, w, s, l waiting."""
    return ["".join(".Inwsl"[state] for state in row) for row in result.timeline]


def test_one_warp_waits_out_every_latency():
    once = {"passes": 1, "latencies": SHORT}
    assert letters(simulate("a = fma; use a", 1, **once)) == ["IwwwI"]
    assert letters(simulate("a = shared; use a", 1, **once)) == ["IssssssI"]
    assert letters(simulate("a = l2; use a", 1, **once)) == ["I" + 10 * "l" + "I"]
    assert letters(simulate("a = load; use a", 1, **once)) == ["I" + 19 * "l" + "I"]
    assert letters(simulate("a = load; use; use", 1, **once)) == ["III"]


def test_loose_round_robin_takes_turns_and_greedy_stays():
    text = "a = fma; use; use a"
    run = {"passes": 1, "latencies": SHORT}
    assert letters(simulate(text, 2, policy="lrr", **run)) == ["InIwI.", "nInIwI"]
    assert letters(simulate(text, 2, policy="gto", **run)) == ["IIwwI..", "nnIIwwI"]


# -- against a plain model ---------------------------------------------------------------------------------


def plainly(program, warps, cycles, policy, latencies, interval):
    """The same rules once more, warp by warp with dictionaries: the state of every warp in every cycle."""
    reasons = {"shared": "short scoreboard", "l2": "long scoreboard", "load": "long scoreboard"}
    arrives = [{} for _ in range(warps)]  # register -> (cycle, reason)
    place, free, order = [0] * warps, 0, list(range(warps))
    table = []
    for cycle in range(cycles):
        column = []
        for warp in range(warps):
            one = program[place[warp] % len(program)]
            touched = {*one.reads, one.writes} & arrives[warp].keys()
            late = [arrives[warp][name] for name in touched if arrives[warp][name][0] > cycle]
            # long, short, wait: later in STATES is slower
            column.append(max(late, key=lambda due: (due[0], STATES.index(due[1])))[1] if late else "ready")
        ready = [warp for warp in order if column[warp] == "ready"]
        if ready:
            warp = ready[0]
            one = program[place[warp] % len(program)]
            place[warp] += 1
            latency = {"shared": latencies.shared, "l2": latencies.l2, "load": latencies.dram}
            start = cycle
            if one.op in ("l2", "load"):
                start = max(cycle, free)
                free = start + interval
            if one.writes:
                due = start + latency.get(one.op, latencies.arithmetic)
                arrives[warp][one.writes] = due, reasons.get(one.op, "wait")
            column[warp] = "selected"
            if policy == "lrr":
                order = [*range(warp + 1, warps), *range(warp + 1)]
            else:
                order = [warp, *(other for other in range(warps) if other != warp)]
        table.append([STATES.index({"ready": "not selected"}.get(state, state)) for state in column])
    return np.array(table).T


@settings(deadline=None)
@given(streams, st.integers(1, 6), policies, intervals)
def test_the_compiled_loop_agrees_with_a_plain_one(program, warps, policy, interval):
    result = simulate(program, warps, cycles=150, policy=policy, latencies=SHORT, memory_interval=interval)
    assert np.array_equal(result.timeline, plainly(program, warps, 150, policy, SHORT, interval))


@settings(deadline=None)
@given(streams, st.integers(1, 6), policies, intervals, st.integers(0, 60))
def test_every_cycle_is_accounted_for(program, warps, policy, interval, warm_up):
    run = {"policy": policy, "latencies": SHORT, "memory_interval": interval}
    result = simulate(program, warps, cycles=150, warm_up=warm_up, **run)
    counts = dict(zip(STATES, result.states.sum(axis=0), strict=True))
    assert result.states.sum(axis=1).tolist() == [150] * warps
    assert counts["selected"] == result.instructions == 150 - result.no_eligible
    assert result.utilisation == pytest.approx(sum(result.share("selected") for _ in range(warps)))
    could = ((result.timeline == 1) | (result.timeline == 2)).any(axis=0)
    assert could.tolist() == (result.issue[:, 0] >= 0).tolist()  # it is never idle while a warp could issue
    for cycle, (warp, place) in enumerate(result.issue):
        if warp >= 0:
            assert result.timeline[warp, cycle] == STATES.index("selected")
            assert 0 <= place < len(program)


@settings(deadline=None)
@given(streams, st.integers(1, 5), policies, intervals, st.integers(1, 6))
def test_a_run_with_an_end_issues_everything_once(program, warps, policy, interval, passes):
    run = {"policy": policy, "latencies": SHORT, "memory_interval": interval}
    result = simulate(program, warps, cycles=20_000, passes=passes, **run)
    assert result.instructions == warps * passes * len(program)
    assert result.issue[-1, 0] >= 0
    for warp in range(warps):
        places = result.issue[result.issue[:, 0] == warp, 1]
        assert places.tolist() == passes * list(range(len(program)))
        assert (result.timeline[warp, np.flatnonzero(result.issue[:, 0] == warp)[-1] + 1 :] == 0).all()


# -- Little's law ------------------------------------------------------------------------------------------


@looped("loads", [1, 2, 4, 8])
@looped("arithmetic", [0, 3])
def test_the_latency_of_a_pass_in_closed_form(loads, arithmetic):
    """n loads, n uses, then a chain: the first use comes a latency after the first load, the rest follow."""
    program = independent_loads(loads, arithmetic)
    chain = 1 + 4 * (arithmetic - 1) if arithmetic else 0
    assert pass_cycles(program, SHORT, 1) == 20 + loads + chain
    assert pass_cycles(program, SHORT, 5) == 20 + 5 * (loads - 1) + 1 + chain  # the loads queue
    # a memory slower than its latency is long: the requests of a pass, one after the other
    assert pass_cycles(program, SHORT, 100) == 100 * loads
    prediction = littles_law(program, 3, latencies=SHORT)
    assert prediction.knee == pytest.approx((20 + loads + chain) / (2 * loads + arithmetic))


@settings(deadline=None)
@given(streams, intervals)
def test_a_warp_alone_is_as_fast_as_predicted(program, interval):
    prediction = littles_law(program, 1, latencies=SHORT, memory_interval=interval)
    run = {"latencies": SHORT, "memory_interval": interval}
    lone = simulate(program, 1, cycles=4000, warm_up=400, **run)
    assert lone.utilisation == pytest.approx(prediction.utilisation, abs=(len(program) + 1) / 4000)
    assert (
        prediction.utilisation == prediction.by_latency
    )  # one warp cannot reach another bound and stay below


@settings(deadline=None)
@given(streams, st.integers(1, 16), policies, intervals)
def test_no_schedule_beats_littles_law(program, warps, policy, interval):
    run = {"latencies": SHORT, "memory_interval": interval}
    prediction = littles_law(program, warps, **run)
    found = simulate(program, warps, cycles=3000, warm_up=300, policy=policy, **run).utilisation
    edge = warps * len(program) / 3000  # a pass of every warp may be cut by the window
    assert found <= min(prediction.by_latency, prediction.by_memory) + edge


def test_below_the_knee_twice_the_warps_is_twice_the_throughput():
    """Exactly, if only loads and their uses are in the way; nearly, with chains of arithmetic as well."""
    for program, near in (
        ("x = load; use x", 1e-9),
        (independent_loads(3), 1e-9),
        (independent_loads(1, 30), 0.05),
    ):
        curve = occupancy_curve(program, latencies="A100")
        assert curve.knee > 12
        for warps, utilisation, predicted in zip(
            curve.warps[:12], curve.simulated, curve.predicted, strict=False
        ):
            assert utilisation == pytest.approx(warps * curve.simulated[0], rel=near)
            assert utilisation == pytest.approx(predicted, rel=near)
    for policy in POLICIES:
        assert occupancy_curve(CHAIN, range(1, 5), policy=policy).simulated == (0.25, 0.5, 0.75, 1.0)


@looped("policy", POLICIES)
def test_above_the_knee_the_scheduler_or_the_memory_is_the_limit(policy):
    issue = occupancy_curve(CHAIN, policy=policy)
    assert issue.knee == 4
    assert issue.simulated[3:] == pytest.approx([1.0] * 13)
    assert issue.predictions[3].limited_by == ("latency", "issue")
    assert issue.predictions[15].limited_by == ("issue",)
    memory = occupancy_curve("x = load; use x", policy=policy, latencies=SHORT, memory_interval=5)
    assert memory.knee == pytest.approx(21 / 5)
    assert memory.simulated[4:] == pytest.approx([2 / 5] * 12)
    assert memory.predictions[15].limited_by == ("memory",)


def test_instruction_level_parallelism_moves_the_knee():
    knees, at_four = [], []
    for loads in (1, 2, 4, 8):
        curve = occupancy_curve(independent_loads(loads), latencies="A100", memory_interval=8)
        knees.append(curve.knee)
        at_four.append(curve.simulated[3])
    assert knees[0] == pytest.approx(291 / 8)
    assert knees[3] == pytest.approx((290 + 7 * 8 + 1) / (8 * 8))
    assert knees == sorted(knees, reverse=True)
    for fewer, more in itertools.pairwise(at_four):
        assert more > 1.7 * fewer


@looped("interval", [1, 7, 40])
def test_littles_law_holds_inside_the_simulation(interval):
    """Requests in flight = requests per cycle x latency, each counted on its own."""
    run = {"latencies": SHORT, "memory_interval": interval}
    result = simulate(independent_loads(2, 3), 6, cycles=50_000, warm_up=5000, **run)
    in_flight = result.requests_in_flight.mean()
    assert in_flight == pytest.approx(result.requests / result.cycles * result.memory_latency, rel=2e-3)
    assert result.memory_latency >= 20


def test_taking_turns_keeps_the_warps_in_step_and_hides_less():
    """All compute together, then all wait: greedy-then-oldest spreads them out."""
    for program in ("x = shared; y = shared; s = fma x y s", independent_loads(1, 30)):
        prediction = occupancy_curve(program, [8, 12], latencies="A100").predicted
        greedy = occupancy_curve(program, [8, 12], latencies="A100").simulated
        turns = occupancy_curve(program, [8, 12], policy="lrr", latencies="A100").simulated
        assert greedy == pytest.approx(prediction, rel=0.05)
        assert turns[0] < 0.8 * greedy[0] and turns[1] < 0.8 * greedy[1]


def test_a_share_of_the_bandwidth_as_an_interval():
    """H100 SXM: 3.35 TB/s, 132 SMs, 1.755 GHz; 528 sub-partitions ask for 128 bytes each."""
    assert memory_interval_of(3.35e12, 1.755e9, 132) == round(128 / (3.35e12 / 1.755e9 / 528)) == 35
    assert memory_interval_of(1e15, 1e9, 1) == 1


# -- what is shown, what is refused ------------------------------------------------------------------------


def test_streams_are_read_and_written_alike():
    program = stream("x0 = load  # a comment; with x = more\n\n s = fma x0 s; use")
    assert program == (
        StreamInstruction("load", (), "x0"),
        StreamInstruction("fma", ("x0", "s"), "s"),
        StreamInstruction("use"),
    )
    assert stream(";".join(map(str, program))) == program == stream(program)
    assert stream(["x0 = load", "s = fma x0 s", StreamInstruction("use")]) == program
    assert independent_loads(2, 1, "l2") == stream("x0 = l2; x1 = l2; use x0; use x1; s = fma s")


def test_the_tables():
    result = simulate("x = load; use x", 1, cycles=210, latencies=SHORT)
    shown = result.table()
    assert shown.columns == ("", "selected %", "long scoreboard %")
    assert shown.caption.startswith(
        "9.52 % of the issue slots used: 20 instructions in 210 cycles, 1 warp, greedy"
    )
    assert shown.rows == (("warp 0", "9.52", "90.5"), ("all warps", "9.52", "90.5"))
    assert "In 190 cycles no warp was eligible." in str(result)
    two = simulate("x = load; use x", 2, cycles=210, latencies=SHORT).table()
    assert [row[0] for row in two.rows] == ["warp 0", "warp 1", "all warps"] and "2 warps," in two.caption
    curve = occupancy_curve("x = load; use x", [1, 2, 30], latencies=SHORT)
    assert curve.table().rows[2] == ("30", "100", "100", "issue")
    law = littles_law("x = load; use x", 2, latencies=SHORT, memory_interval=3)
    assert law.table().rows[0] == ("latency", "2 x 2 / 21.0", "19.0 %")
    assert law.table().rows[2] == ("memory", "2 / (1 x 3)", "66.7 %")
    assert littles_law("use", 2).table().rows[2] == ("memory", "–", "no limit")
    for shown in (result, curve, law):
        assert "<table" in shown._repr_html_() and str(shown) == repr(shown)


def run_with(**arguments):
    return lambda: simulate("use", **({"warps": 1} | arguments))


@looped(
    "call, said",
    [
        (lambda: stream(""), "has 0 instructions, but 1 to 256 are possible"),
        (lambda: stream("use;" * 257), "has 257 instructions"),
        (lambda: stream("x = add y"), "has the operation 'add', but there are fma, use, shared, l2, load"),
        (lambda: stream("load"), "loads nothing: say where to, like 'x = load'"),
        (lambda: stream("y = use x"), "has a result, but use has none"),
        (lambda: stream("x ="), "'x =' cannot be read"),
        (lambda: stream("x = y = fma"), "names 'x = y', but a register is a word"),
        (lambda: stream("use 3"), "names '3', but a register is a word"),
        (run_with(warps=0), "warps is 0, but it must be a whole number from 1 to 64"),
        (run_with(warps=2.0), "warps is 2.0, but"),
        (run_with(cycles=0), "cycles is 0, but it must be a whole number from 1 to 500,000"),
        (run_with(warm_up=-1), "warm_up is -1, but"),
        (run_with(memory_interval=0), "memory_interval is 0, but"),
        (run_with(policy="fifo"), "policy is 'fifo', but it must be 'gto' or 'lrr'"),
        (run_with(latencies="V100"), "latencies is 'V100', but known are 'A100', 'RTX 4090', 'H100'"),
        (run_with(passes=3, cycles=2), "cycles is 2, but 3 passes of 1 warps take longer"),
        (run_with(passes=1, warm_up=10), "warm_up is 10, but all warps finish after 1: take fewer"),
        (lambda: Latencies(4, 7, 0, 20), "The latency l2 is 0, but"),
        (lambda: occupancy_curve("use", []), "warps is empty, but"),
        (lambda: simulate("use", 1).share("asleep"), "state is 'asleep', but the states are finished"),
        (lambda: memory_interval_of(1e12, 1e9, 0), "sms is 0, but it must be positive"),
    ],
)
def test_what_makes_no_sense_gets_one_sentence(call, said):
    with pytest.raises(ValueError) as caught:
        call()
    assert said in str(caught.value)
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


def test_the_published_latencies():
    """Abdelkhalik et al. 2022 (A100); Luo et al. 2024, table IV (H100, RTX 4090), rounded."""
    found = {gpu: (one.arithmetic, one.shared, one.l2, one.dram) for gpu, one in LATENCIES.items()}
    assert found == {
        "A100": (4, 23, 200, 290),
        "RTX 4090": (4, round(30.1), round(273.0), math.floor(541.5 + 0.5)),
        "H100": (4, round(29.0), round(263.0), round(478.8)),
    }
    assert all("arXiv" in one.source for one in LATENCIES.values())


@pytest.mark.timing
def test_it_is_fast_enough_for_a_slider():
    simulate("x = load; use x", 16)  # compiles
    start = time.perf_counter()
    simulate(independent_loads(4, 20), 16, cycles=2000, memory_interval=10)
    one = time.perf_counter() - start
    occupancy_curve(independent_loads(4, 20), memory_interval=10)
    both, slower = time.perf_counter() - start, slowness()
    assert one < 0.02 * slower and both < 0.5 * slower
