"""The warp scheduler: against a plain model, and its knee against Little's law in closed form."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.looped import looped

from course_lib.simulators.gpu.warp_scheduler import (
    STATES,
    Latencies,
    StreamInstruction,
    occupancy_curve,
    simulate,
    stream,
)

SHORT = Latencies(4, 7, 11, 20, shared_interval=2, l2_interval=3, dram_interval=5)

names = st.sampled_from("abc")
instructions = st.one_of(
    st.builds(lambda op, to: StreamInstruction(op, (), to), st.sampled_from(("shared", "l2", "load")), names),
    st.builds(lambda a, b, to: StreamInstruction("fma", (a, b), to), names, names, names),
    st.builds(lambda a: StreamInstruction("use", (a,)), names),
    st.just(StreamInstruction("use")),
)
streams = st.lists(instructions, min_size=1, max_size=8).map(tuple)


def plainly(program, warps, cycles, latencies):
    """The same rules once more, warp by warp with dictionaries: the state of every warp in every cycle."""
    reasons = {"shared": "short scoreboard", "l2": "long scoreboard", "load": "long scoreboard"}
    latency = {"shared": latencies.shared, "l2": latencies.l2, "load": latencies.dram}
    pauses = latencies.shared_interval, latencies.l2_interval, latencies.dram_interval
    held = dict(zip(latency, zip(("MIO", "LG", "LG"), pauses, strict=True), strict=True))
    busy_until = {"MIO": 0, "LG": 0}
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
            state = max(late, key=lambda due: (due[0], STATES.index(due[1])))[1] if late else "ready"
            if not late and one.op in held and busy_until[held[one.op][0]] > cycle:
                state = f"{held[one.op][0]} throttle"
            column.append(state)
        ready = [warp for warp in order if column[warp] == "ready"]
        if ready:
            warp = ready[0]
            one = program[place[warp] % len(program)]
            place[warp] += 1
            if one.op in held:
                busy_until[held[one.op][0]] = cycle + held[one.op][1]
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


def test_knee_and_ceiling_in_closed_form_and_what_is_issued_on_both_sides_of_them():
    """Below the knee twice the warps is twice the throughput, exactly; above it a path or the slots are full.

    On the H100 a pass of two shared loads and an FMA takes 4 + 29 + 1 cycles; with 8 loads from L2 the last
    comes 7 x 8 cycles after the first. Three loads from a memory that is never busy: 290 + 3 for 6 slots.
    """
    two = "a = shared; b = shared; s = fma a b s"
    eight = [f"x{n} = l2" for n in range(8)] + [f"s = fma x{n} x{n + 1} s" for n in range(0, 8, 2)]
    three = ";".join([f"x{n} = load" for n in range(3)] + [f"use x{n}" for n in range(3)])
    wide = Latencies(4, 23, 200, 290, dram_interval=1)
    l2 = two.replace("shared", "l2")
    bounds = {"s = fma s": (4, 1), two: (34 / 8, 3 / 8), l2: (272 / 16, 3 / 16), ";".join(eight): (5, 3 / 16)}
    for program, (knee, ceiling) in {**bounds, three: (293 / 6, 1)}.items():
        curve = occupancy_curve(program, range(1, 25), latencies=wide if program == three else "H100")
        assert (curve.knee, curve.ceiling) == (pytest.approx(knee), ceiling)
        assert curve.simulated == pytest.approx([ceiling * min(1, n / knee) for n in curve.warps], rel=1e-9)


def test_the_tables():
    result = simulate("x = load; use x", 1, cycles=210, latencies=SHORT)
    assert result.table().rows == (("warp 0", "9.52", "90.5"), ("all warps", "9.52", "90.5"))
    assert "In 190 cycles no warp was eligible." in str(result)
    curve = occupancy_curve(["x = load", "use x"], [1, 2, 30], latencies=SHORT)
    lines = [" ".join(row) for row in curve.table().rows]
    assert lines[::2] == ["1 9.52 9.52 latency", "30 38.1 40.0 global memory"]


@looped(
    "call, said",
    [
        (lambda: simulate([]), "has 0 instructions, but 1 to 256 are possible"),
        (lambda: stream("x = add y"), "has the operation 'add', but there are fma, use, shared, l2, load"),
        (lambda: stream("load"), "loads nothing: say where to, like 'x = load'"),
        (lambda: stream("x ="), "'x =' cannot be read"),
        (lambda: simulate("use", 0), "warps is 0, but it must be a whole number from 1 to 64"),
        (lambda: simulate("use", 1, latencies="V100"), "latencies is 'V100', but known are 'A100', 'RTX"),
        (lambda: occupancy_curve("use", []), "warps is empty, but"),
    ],
)
def test_what_makes_no_sense_gets_one_sentence(call, said):
    with pytest.raises(ValueError) as caught:
        call()
    assert said in str(caught.value)
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)
