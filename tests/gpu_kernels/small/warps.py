"""Lanes of a warp that ask each other: who is waited for in vain is a hazard, a value of nobody a remark."""

import numpy as np
from numba import cuda, float32
from tools.looped import looped

from course_lib.simulators.gpu import trace
from course_lib.simulators.gpu.warps import UNDEFINED

EVERY = 0xFFFFFFFF


@cuda.jit
def asks(mask, first, last, distance, out):
    lane = cuda.threadIdx.x
    if first <= lane < last:
        out[lane] = cuda.shfl_xor_sync(mask, lane, distance)


@cuda.jit
def leaves_then_asks(last, mask, distance, out):
    lane = cuda.threadIdx.x
    if lane >= last:
        return
    out[lane] = cuda.shfl_down_sync(mask, lane, distance)


@cuda.jit
def votes(mask, last, out):
    lane = cuda.threadIdx.x
    if lane < last:
        out[lane] = cuda.ballot_sync(mask, lane < 3) + cuda.any_sync(mask, lane == 1)


@cuda.jit
def sums(out):
    lane = cuda.threadIdx.x
    if lane % 32 < 8:
        value = float32(lane)
        for n in range(3):
            value += cuda.shfl_down_sync(0xFF, value, 4 >> n)
        out[lane] = value


def undefined(kernel, *args, threads: int = 64) -> tuple:
    """Return the remarks on undefined values, and what the kernel wrote."""
    out = np.zeros(threads, np.int64)
    found = trace(kernel, 1, threads, *args, out, progress=False)
    return [one for one in found.remarks if one.kind == "undefined-value"], out


def hazards(kernel, *args, threads: int = 64) -> list:
    found = trace(kernel, 1, threads, *args, np.zeros(threads, np.int64), progress=False).hazards
    assert {one.kind for one in found} <= {"divergent-barrier"}
    return found


@looped("mask", [EVERY, -1])
def test_whole_warps_may_ask(mask):
    assert hazards(asks, mask, 0, 64, 16) == []
    assert hazards(asks, mask, 32, 64, 1) == []  # the other warp does not ask anybody
    assert hazards(votes, mask, 32) == []


def test_a_part_of_a_warp_may_ask_with_its_own_mask():
    assert hazards(asks, 0xFFFF, 0, 16, 8) == []
    assert hazards(asks, 0xFFFF0000, 16, 32, 8) == []


@looped("mask, lane", [(EVERY - 1, 0), (0x7FFFFFFF, 31), (EVERY + 1, 0), (1, 1)])
def test_a_mask_that_leaves_out_a_lane_that_comes_is_a_hazard(mask, lane):
    first = hazards(asks, mask, 0, 64, 1)[0]
    assert first.threads[0] == (lane, 0, 0)
    assert "leaves out" in first.what


def test_a_lane_that_is_named_and_does_not_come_is_a_hazard():
    waits, *more = hazards(asks, EVERY, 0, 20, 1)
    assert waits.threads == ((0, 0, 0), (20, 0, 0)) and "waits for thread (20, 0, 0)" in waits.what
    assert more == []  # 0 … 19 ask each other
    assert "waits for" in hazards(votes, EVERY, 5)[0].what


def test_a_lane_that_has_left_is_not_waited_for_but_has_no_value():
    assert hazards(leaves_then_asks, 64, EVERY, 8) == []
    assert hazards(leaves_then_asks, 20, EVERY, 8) == []
    (asked,), out = undefined(leaves_then_asks, 20, EVERY, 8)
    assert list(out[:12]) == list(range(8, 20)) and set(out[12:20]) == {UNDEFINED}
    assert asked.threads == ((12, 0, 0), (20, 0, 0)) and asked.times == 8
    assert "asks thread (20, 0, 0) for its value" in asked.what


def test_threads_that_a_block_does_not_have_are_not_waited_for():
    assert hazards(asks, EVERY, 0, 48, 8, threads=48) == []
    assert hazards(asks, EVERY, 0, 48, 16, threads=48) == []
    (asked,), _ = undefined(asks, EVERY, 0, 48, 16, threads=48)
    assert asked.times == 16


def test_a_lane_outside_of_the_mask_has_no_value():
    """The last steps of a reduction, as many write them: lanes 4 … 7 get what nobody uses."""
    (asked,), out = undefined(leaves_then_asks, 8, 0xFF, 4)
    assert hazards(leaves_then_asks, 8, 0xFF, 4) == []
    assert asked.times == 4 and list(out[:4]) == [4, 5, 6, 7] and set(out[4:8]) == {UNDEFINED}


def test_an_undefined_number_spoils_what_is_made_of_it():
    out = np.zeros(32, np.float32)
    found = trace(sums, 1, 32, out, progress=False)
    assert found.hazards == [] and found.remarks[0].kind == "undefined-value"
    assert out[0] == 28 and np.isnan(out[1:8]).any() and not out[8:].any()
