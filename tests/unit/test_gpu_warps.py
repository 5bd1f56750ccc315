"""Lanes of a warp that ask each other: a lane that does not come, or a mask that is wrong, is a hazard."""

import numpy as np
import pytest
from numba import cuda

from course_lib.simulators.gpu import trace

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


def hazards(kernel, *args, threads: int = 64) -> list:
    found = trace(kernel, 1, threads, *args, np.zeros(threads, np.int64), progress=False).hazards
    assert {one.kind for one in found} <= {"divergent-barrier"}
    return found


@pytest.mark.parametrize("mask", [EVERY, -1])
def test_whole_warps_may_ask(mask):
    assert hazards(asks, mask, 0, 64, 16) == []
    assert hazards(asks, mask, 32, 64, 1) == []  # the other warp does not ask anybody
    assert hazards(votes, mask, 32) == []


def test_a_part_of_a_warp_may_ask_with_its_own_mask():
    assert hazards(asks, 0xFFFF, 0, 16, 8) == []
    assert hazards(asks, 0xFFFF0000, 16, 32, 8) == []


@pytest.mark.parametrize(("mask", "lane"), [(EVERY - 1, 0), (0x7FFFFFFF, 31), (EVERY + 1, 0), (1, 1)])
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
    (asked,) = hazards(leaves_then_asks, 20, EVERY, 8)
    assert asked.threads == ((12, 0, 0), (20, 0, 0)) and asked.times == 8
    assert "asks thread (20, 0, 0) for its value" in asked.what


def test_threads_that_a_block_does_not_have_are_not_waited_for():
    assert hazards(asks, EVERY, 0, 48, 8, threads=48) == []
    assert hazards(asks, EVERY, 0, 48, 16, threads=48)[0].times == 16
