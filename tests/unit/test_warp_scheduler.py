"""The warp scheduler: by hand, against a plain model, and against Little's law, which it must not beat."""

import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pace import slowness
from tools.looped import looped

from course_lib.simulators.gpu.warp_scheduler import (
    LATENCIES,
    STATES,
    Latencies,
    StreamInstruction,
    occupancy_curve,
    simulate,
    stream,
)

SHORT = Latencies(arithmetic=4, shared=7, l2=11, dram=20)

names = st.sampled_from("abc")
instructions = st.one_of(
    st.builds(lambda op, to: StreamInstruction(op, (), to), st.sampled_from(("shared", "l2", "load")), names),
    st.builds(lambda a, b, to: StreamInstruction("fma", (a, b), to), names, names, names),
    st.builds(lambda a: StreamInstruction("use", (a,)), names),
    st.just(StreamInstruction("use")),
)
streams = st.lists(instructions, min_size=1, max_size=8).map(tuple)


@looped(
    "text, warps, wanted",  # a string per warp: I issued, n not selected, w, s, l waiting
    [
        ("a = fma; use a", 1, ["IwwwI"]),
        ("a = shared; use a", 1, ["IssssssI"]),
        ("a = l2; use a", 1, ["I" + 10 * "l" + "I"]),
        ("a = load; use a", 1, ["I" + 19 * "l" + "I"]),
        ("a = load; use; use", 1, ["III"]),
        ("a = fma; use; use a", 2, ["IIwwIII", "nnIIwwn"]),  # greedy: the first goes on as soon as it can
    ],
)
def test_every_latency_is_waited_out_and_hidden_by_another_warp(text, warps, wanted):
    found = simulate(text, warps, cycles=len(wanted[0]), latencies=SHORT)
    assert ["".join("Inwsl"[state] for state in row) for row in found.timeline] == wanted


def plainly(program, warps, cycles, latencies):
    """The same rules once more, warp by warp with dictionaries: the state of every warp in every cycle."""
    reasons = {"shared": "short scoreboard", "l2": "long scoreboard", "load": "long scoreboard"}
    latency = {"shared": latencies.shared, "l2": latencies.l2, "load": latencies.dram}
    arrives = [{} for _ in range(warps)]  # register -> (cycle, reason)
    place, order = [0] * warps, list(range(warps))
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
            if one.writes:
                due = cycle + latency.get(one.op, latencies.arithmetic)
                arrives[warp][one.writes] = due, reasons.get(one.op, "wait")
            column[warp] = "selected"
            order = [warp, *(other for other in range(warps) if other != warp)]
        table.append([STATES.index({"ready": "not selected"}.get(state, state)) for state in column])
    return np.array(table).T


@settings(deadline=None)
@given(streams, st.integers(1, 6), st.integers(0, 60))
def test_the_compiled_loop_agrees_with_a_plain_one(program, warps, warm_up):
    result = simulate(program, warps, cycles=150, warm_up=warm_up, latencies=SHORT)
    assert np.array_equal(result.timeline, plainly(program, warps, 150 + warm_up, SHORT)[:, warm_up:])
    assert result.utilisation == pytest.approx(warps * result.share("selected"))


@settings(deadline=None, max_examples=30)
@given(streams, st.integers(1, 16))
def test_no_schedule_beats_littles_law(program, warps):
    curve = occupancy_curve(program, [warps], latencies=SHORT)
    found = simulate(program, warps, cycles=3000, warm_up=300, latencies=SHORT).utilisation
    edge = warps * len(program) / 3000  # a pass of every warp may be cut by the window
    assert found <= curve.predicted[0] + edge


def test_the_knee_in_closed_form_and_what_is_issued_on_both_sides_of_it():
    """n loads, n uses, then a chain: the first use comes a latency after the first load, the rest follow.

    Below the knee, twice the warps is twice the throughput: exactly where nothing but loads is in the way.
    """
    for loads, chain in ((1, 0), (3, 0), (8, 0), (1, 30)):
        lines = [f"x{n} = load" for n in range(loads)] + [f"use x{n}" for n in range(loads)]
        program = "; ".join(lines + ["s = fma s"] * chain)
        curve = occupancy_curve(program, range(1, 13), latencies="A100")
        latency = 290 + loads + (1 + 4 * (chain - 1) if chain else 0)
        assert curve.knee == pytest.approx(latency / (2 * loads + chain))
        for warps, utilisation, predicted in zip(curve.warps, curve.simulated, curve.predicted, strict=True):
            assert predicted == pytest.approx(min(1, warps / curve.knee))
            assert utilisation == pytest.approx(predicted, rel=0.05 if chain else 1e-9)
    sums = occupancy_curve("s = fma s")
    assert sums.knee == 4 and sums.simulated[:4] == (0.25, 0.5, 0.75, 1.0) and set(sums.simulated[4:]) == {1}


def test_streams_are_read_and_written_alike():
    program = stream("x0 = load  # a comment; with x = more\n\n s = fma x0 s; use")
    assert program == (
        StreamInstruction("load", (), "x0"),
        StreamInstruction("fma", ("x0", "s"), "s"),
        StreamInstruction("use"),
    )
    assert stream(";".join(map(str, program))) == program == stream(program)


def test_the_tables():
    result = simulate("x = load; use x", 1, cycles=210, latencies=SHORT)
    shown = result.table()
    assert shown.columns == ("", "selected %", "long scoreboard %")
    assert shown.caption.startswith(
        "9.52 % of the issue slots used: 20 instructions in 210 cycles, 1 warp, greedy"
    )
    assert shown.rows == (("warp 0", "9.52", "90.5"), ("all warps", "9.52", "90.5"))
    assert "In 190 cycles no warp was eligible." in str(result)
    curve = occupancy_curve("x = load; use x", [1, 2, 30], latencies=SHORT)
    assert curve.table().rows[::2] == (("1", "9.52", "9.52", "latency"), ("30", "100", "100", "issue"))
    for shown in (result, curve):
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
        (run_with(warps=0), "warps is 0, but it must be a whole number from 1 to 64"),
        (run_with(cycles=0), "cycles is 0, but it must be a whole number from 1 to 500,000"),
        (run_with(warm_up=-1), "warm_up is -1, but"),
        (run_with(latencies="V100"), "latencies is 'V100', but known are 'A100', 'RTX 4090', 'H100'"),
        (lambda: Latencies(4, 7, 0, 20), "The latency l2 is 0, but"),
        (lambda: occupancy_curve("use", []), "warps is empty, but"),
        (lambda: simulate("use", 1).share("asleep"), "state is 'asleep', but the states are selected"),
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
    program = "; ".join(["x = load", "y = load", "use x", "use y", *["s = fma s"] * 20])
    simulate(program, 16)  # compiles
    start = time.perf_counter()
    simulate(program, 16, cycles=2000)
    one = time.perf_counter() - start
    occupancy_curve(program)
    both, slower = time.perf_counter() - start, slowness()
    assert one < 0.02 * slower and both < 0.5 * slower
