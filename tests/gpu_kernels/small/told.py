"""How the tracer tells what it found: races in their order, remarks, counts in words."""

import numpy as np
from numba import cuda, float32

from course_lib.simulators.gpu import trace
from gpu_kernels.small import kernel, line_of


@cuda.jit
def no_second_barrier(out):
    a = cuda.shared.array(64, float32)
    i, total = cuda.threadIdx.x, float32(0)
    for k in range(3):
        a[i] = k  # writes
        cuda.syncthreads()
        total += a[63 - i]  # reads
    out[i] = total


def test_a_race_of_a_later_turn_is_told_in_the_order_in_which_it_happened():
    (hazard,) = trace(no_second_barrier, 1, 64, np.zeros(64, np.float32)).hazards
    reads, writes = line_of(no_second_barrier, "reads"), line_of(no_second_barrier, "writes")
    assert (hazard.line, hazard.other_line) == (writes, reads)
    assert f"reads a in line {reads}, thread" in hazard.what
    assert (
        "writes the same element here afterwards, in a later turn of the loop, and no barrier is between"
        in (hazard.what)
    )
    assert hazard.what.endswith(f"on the way from line {reads} back to line {writes}")


def test_a_negative_index_is_worth_a_look():
    wraps = kernel("x, out", "out[i] = x[i - 1] + x[-1]")
    wraps_nowhere = kernel("x, out", "if i > 0:\n    out[i] = x[i - 1]")
    x, out = np.arange(32.0), np.zeros(32)
    seen = trace(wraps, 1, 32, x, out)
    (remark,) = seen.remarks
    assert not seen.hazards and out[0] == 62
    assert remark.what.startswith("x[-1] has a negative index") and remark.times == 33
    assert "Worth a look: line" in str(seen.report())
    assert not trace(wraps_nowhere, 1, 32, x, out).remarks


@cuda.jit
def prints_and_asserts(out):
    i = cuda.threadIdx.x
    assert i < 2, "too far"
    print("here", i)
    out[i] = i


def test_what_is_left_out_is_said(capsys):
    seen = trace(prints_and_asserts, 1, 4, np.zeros(4))
    assert [remark.what.split(":")[0] for remark in seen.remarks] == [
        "assert is left out here",
        "print is left out here",
    ]
    assert not seen.hazards and capsys.readouterr().out == ""
    assert str(seen.report()).count("Worth a look: line") == 2


@cuda.jit
def one_of_each(x):
    s = cuda.shared.array(1, float32)
    s[0] = x[0]
    cuda.syncthreads()
    cuda.atomic.add(x, 0, s[0])


def test_the_report_counts_one_of_a_thing_in_the_singular():
    text = str(trace(one_of_each, 1, 1, np.ones(1, np.float32)).report())
    for said in ("1 block.", "x load: 1 sector for 1 request", "s store: 1 wavefront for 1 request"):
        assert said in text, text
    for said in ("2 wavefronts for 2 requests.", "barrier of 1 warp\n", "take 1 turn for each atomic"):
        assert said in text, text


@cuda.jit
def differing_now_and_then(x):
    for n in range(6):
        x[0] = 7 if n < 4 else cuda.threadIdx.x  # the same value four times, then different ones


def test_a_hazard_and_a_remark_at_one_place_are_counted_apart():
    seen = trace(differing_now_and_then, 1, 64, np.zeros(1, np.int64))
    (hazard,), (remark,) = seen.hazards, [one for one in seen.remarks if one.kind == "race"]
    assert hazard.line == remark.line
    assert (hazard.times, remark.times) == (2 * 64, 4 * 64 - 1)  # all but the first write of all


@cuda.jit
def one_warp_exchanges(x, out):
    i = cuda.grid(1)
    value = x[i]
    if i < 32:
        for _ in range(10):
            value += cuda.shfl_xor_sync(0xFFFFFFFF, value, 1)
    out[i] = value


def test_shuffles_are_work_too():
    seen = trace(one_warp_exchanges, 1, 64, np.ones(64), np.zeros(64))
    assert seen.busiest_warp == 12 and seen.requests == 14 and seen.imbalance == 12 / 7
    few = str(trace(one_warp_exchanges, 4, 64, np.ones(256), np.zeros(256)).report())
    assert "the busiest warp makes 12 requests to memory and other lanes, a warp on average" in few


@cuda.jit
def read_by_two_warps(out):
    shared = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    shared[t] = t
    for k in range(64):
        out[t] += shared[k]  # races


def test_a_race_of_two_warps_is_told_before_one_within_a_warp():
    found = [one for one in trace(read_by_two_warps, 1, 64, np.zeros(64)).hazards if one.array == "shared"]
    assert [one.line for one in found] == [line_of(read_by_two_warps, "races")]
    assert "of another warp" in found[0].what and "no barrier is between them" in found[0].what
