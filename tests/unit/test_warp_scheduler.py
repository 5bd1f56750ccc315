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

SHORT = Latencies(arithmetic=4, shared=7, l2=11, dram=20)

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


def test_the_tables():
    result = simulate("x = load; use x", 1, cycles=210, latencies=SHORT)
    assert result.table().rows == (("warp 0", "9.52", "90.5"), ("all warps", "9.52", "90.5"))
    assert "In 190 cycles no warp was eligible." in str(result)
    curve = occupancy_curve(["x = load", "use x"], [1, 2, 30], latencies=SHORT)
    assert curve.table().rows[::2] == (("1", "9.52", "9.52", "latency"), ("30", "100", "100", "issue"))


@looped(
    "call, said",
    [
        (lambda: simulate([]), "has 0 instructions, but 1 to 256 are possible"),
        (lambda: stream("x = add y"), "has the operation 'add', but there are fma, use, shared, l2, load"),
        (lambda: stream("load"), "loads nothing: say where to, like 'x = load'"),
        (lambda: stream("x ="), "'x =' cannot be read"),
        (lambda: simulate("use", 0), "warps is 0, but it must be a whole number from 1 to 64"),
        (
            lambda: simulate("use", 1, latencies="V100"),
            "latencies is 'V100', but known are 'A100', 'RTX 4090'",
        ),
        (lambda: occupancy_curve("use", []), "warps is empty, but"),
    ],
)
def test_what_makes_no_sense_gets_one_sentence(call, said):
    with pytest.raises(ValueError) as caught:
        call()
    assert said in str(caught.value)
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)
