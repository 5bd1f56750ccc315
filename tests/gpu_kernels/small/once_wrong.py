"""Kernels that are written to break the GPU tracer: each was once run wrong, counted wrong or not refused."""

import numpy as np
import pytest
from numba import cuda, float32, uint8, uint32
from tools.looped import looped

from course_lib.simulators.gpu import NotTraceable, trace
from gpu_kernels.small import kernel, line_of


def kinds(seen):
    return [hazard.kind for hazard in seen.hazards]


# -- functions -----------------------------------------------------------------------------------------------


def adding(number):
    @cuda.jit(device=True)
    def add(x):
        return x + number

    return add


add_one, add_ten = adding(1), adding(10)


def test_functions_made_by_one_factory_keep_their_own_numbers():
    body = "out[i, 0] = add_one(i)\nout[i, 1] = add_ten(i)"
    add_both = kernel("out", body, add_one=add_one, add_ten=add_ten)
    out = np.zeros((40, 2))
    trace(add_both, 2, 20, out)
    assert (out == np.arange(40)[:, None] + [1, 10]).all()


@cuda.jit(device=True)
def three():
    number = 1
    return number + 2


def test_a_hazard_after_a_call_is_in_the_line_of_the_call():
    body = "a = cuda.local.array(2, float32)\na[0] = a[1] = 0\na[i] = three()  # beyond\nout[i] = a[0]"
    beyond_after_a_call = kernel("out", body, float32=float32, three=three)
    out = np.zeros(4)
    (hazard,) = trace(beyond_after_a_call, 1, 4, out).hazards
    assert (hazard.kind, hazard.line) == ("out-of-bounds", line_of(beyond_after_a_call, "beyond"))
    assert hazard.times == 2
    assert out.tolist() == [3, 0, 0, 0]  # what is outside is not written anywhere


# -- control flow --------------------------------------------------------------------------------------------


def test_and_or_give_a_value():
    body = "out[i, 0] = x[i] or 5\nout[i, 1] = x[i] and 7\nout[i, 2] = x[i] or x[i] - 1 or 9"
    first_true = kernel("x, out", body)
    x, out = np.arange(40) % 3, np.zeros((40, 3), np.int64)
    trace(first_true, 2, 20, x, out)
    assert out.tolist() == [[v or 5, v and 7, v or v - 1 or 9] for v in x.tolist()]


def test_a_chain_of_comparisons_stops_at_the_first_that_fails():
    compares_in_a_chain = kernel("x, n, out", "out[i] = -1 < i < n < x[i] < 9  # no thread from n on reads x")
    x, out = np.arange(5, 13), np.zeros(40)
    seen = trace(compares_in_a_chain, 1, 40, x, 7, out)
    assert kinds(seen) == [] and seen.row("x").accesses == 7
    assert out.tolist() == [i < 7 < i + 5 < 9 for i in range(40)]


@cuda.jit
def assigned_by_all(out):
    i = cuda.grid(1)
    for k in range(i % 4 + 1):
        if k == 0:
            y = i
        elif i % 2:
            z = 1
        if k > 0 and i % 2:
            y += z
    out[i] = y


def test_a_variable_that_some_threads_have_not_assigned_is_reported():
    body = "if i < 3:\n    y = i + 1\nif i < 2:\n    out[i] = y\nout[i] = y  # used"
    assigned_by_some = kernel("out", body)
    (hazard,) = trace(assigned_by_some, 1, 40, np.zeros(40)).hazards
    assert (hazard.kind, hazard.line) == ("uninitialised", line_of(assigned_by_some, "used"))
    assert (hazard.array, hazard.threads, hazard.times) == ("y", ((3, 0, 0),), 37)
    out = np.zeros(40)
    assert kinds(trace(assigned_by_all, 1, 40, out)) == []
    assert out.tolist() == [i + (i % 4 if i % 2 else 0) for i in range(40)]


def test_a_loop_decides_once_a_turn():
    counts_down = kernel("x, out", "n = i % 5\nwhile n > 0:  # decides\n    n -= 1\nout[i] = n")
    seen = trace(counts_down, 1, 32, np.zeros(32), np.zeros(32))
    (row,) = [row for row in seen.divergence if row.line == line_of(counts_down, "decides")]
    assert (row.warps, row.divided, row.decisions) == (1, 4, 5)
    assert "4 of 5 times a warp goes both ways" in str(seen.report())


# -- places --------------------------------------------------------------------------------------------------


@cuda.jit
def last_threads_read(x, out):
    i = cuda.grid(1)
    backwards = -i
    if i >= 992:
        out[i] = x[backwards + 1023]  # for thread 0 this would be x[1023]


@looped("dtype", [np.float32, np.complex128])
def test_threads_that_take_no_part_read_nothing(dtype):
    x, out = np.arange(32).astype(dtype), np.zeros(1024, dtype)
    assert kinds(trace(last_threads_read, 1, 1024, x, out)) == []
    assert (out[992:] == x[::-1]).all() and (out[:992] == 0).all()


def test_a_far_address_of_an_idle_thread_is_never_touched():
    body = "far = i * 1_000_000_000_000\nif i == 3:\n    out[i] = x[far - 2_999_999_999_999]"
    one_thread_reads_far = kernel("x, out", body)
    out = np.zeros(32)
    assert kinds(trace(one_thread_reads_far, 1, 32, np.arange(32.0), out)) == []
    assert out[3] == 1 and out.sum() == 1


def test_an_unsigned_index_below_zero_is_outside_and_a_signed_one_counts_from_the_end():
    body = "out[i, 0] = x[uint32(i) - uint32(1)]  # of thread 0: 2**64 - 1\nout[i, 1] = x[i - 1]"
    wraps_below_zero = kernel("x, out", body, uint32=uint32)
    x, out = np.arange(1, 33.0), np.zeros((32, 2))
    (hazard,) = trace(wraps_below_zero, 1, 32, x, out).hazards
    assert (hazard.kind, hazard.times, hazard.threads) == ("out-of-bounds", 1, ((0, 0, 0),))
    assert out[0].tolist() == [0, 32]
    assert (out[1:] == x[:-1, None]).all()


def test_an_element_of_a_row_that_is_not_there_is_out_of_bounds():
    body = "row = x[cuda.blockIdx.x + 7]\nout[cuda.threadIdx.x] = row[cuda.threadIdx.x]  # outside"
    row_outside = kernel("x, out", body)
    (hazard,) = trace(row_outside, 1, 4, np.ones((4, 4)), np.zeros(4)).hazards
    assert (hazard.kind, hazard.line) == ("out-of-bounds", line_of(row_outside, "outside"))
    assert "x[7, 0] is outside of x (4 x 4)" in hazard.what


@cuda.jit
def writes_one_each(out):
    i = cuda.grid(1)
    a = cuda.local.array(4, float32)
    a[i % 4] = 7
    a[0] = 6
    out[i] = a[i % 4] + a[(i + i % 2) % 4]  # read


def test_local_memory_that_a_thread_has_not_written_is_reported():
    body = "a = cuda.local.array(4, float32)\nif i < 3:\n    a[0] = 7\nout[i] = a[0]  # read"
    writes_some = kernel("out", body, float32=float32)
    for made, thread, times in ((writes_some, 3, 37), (writes_one_each, 1, 10)):
        (hazard,) = trace(made, 1, 40, np.zeros(40)).hazards
        assert (hazard.kind, hazard.line) == ("uninitialised", line_of(made, "read"))
        assert (hazard.threads, hazard.times) == (((thread, 0, 0),), times)


# -- shared memory -------------------------------------------------------------------------------------------


@cuda.jit
def two_words_of_a_bank(out):
    s = cuda.shared.array(197, uint8)
    i = cuda.threadIdx.x
    for k in range(i, 197, 32):
        s[k] = k
    cuda.syncthreads()
    out[i] = s[0 if i % 2 == 0 else 131]


def test_every_block_has_the_same_bank_conflicts():
    seen = trace(two_words_of_a_bank, 3, 32, np.zeros(32, np.uint8), races=False)
    assert seen.row("s").wavefronts_per_request == 2  # words 0 and 32
    assert seen.shared_bytes == 197


@cuda.jit(device=True)
def element(a, i):
    return a[i]


@cuda.jit(device=True)
def element_of_shared(i):
    a = cuda.shared.array(32, float32)
    a[i] = 1
    return element(a, i)


def test_arrays_of_one_name_in_two_memories_are_counted_apart():
    body = "out[i] = element(a, i) + element_of_shared(i)"
    two_arrays_of_one_name = kernel("a, out", body, element=element, element_of_shared=element_of_shared)
    seen = trace(two_arrays_of_one_name, 1, 32, np.ones(32), np.zeros(32))
    loads = [row for row in (*seen.global_accesses, *seen.shared_accesses) if row.kind == "load"]
    assert [(type(row).__name__, row.array, row.requests) for row in loads] == [
        ("GlobalAccess", "a", 1),
        ("SharedAccess", "a", 1),
    ]


# -- arguments -----------------------------------------------------------------------------------------------


def test_arrays_over_one_buffer_overlap():
    moves = kernel("a, b", "b[i + 20] = a[i]")
    buffer = bytearray(800)
    a, b = np.frombuffer(buffer, count=40), np.frombuffer(buffer)
    a[:] = np.arange(40)
    assert kinds(trace(moves, 1, 32, a, b)) == ["race"]
    assert b[40:52].tolist() == list(range(20, 32))
    assert kinds(trace(moves, 1, 32, a[:32], b[40:])) == []
    assert kinds(trace(moves, 1, 32, b[60:], b)) == []


def test_arrays_in_tuples_race():
    shifts = kernel("arrays", "arrays[0][i + 1] = arrays[0][i]")
    shifts_within = kernel("arrays", "arrays[0][0][i + 1] = arrays[0][0][i]")
    x = np.zeros(64, np.float32)
    assert kinds(trace(shifts, 1, 32, (x, x.view(np.uint8)))) == ["race"]
    assert kinds(trace(shifts_within, 1, 32, ((x,),))) == ["race"]


def test_arrays_without_elements_and_of_what_is_no_number():
    nothing = kernel("x", "pass")
    reads_first = kernel("x, out", "out[cuda.grid(1)] = x[0] if x.ndim == 1 else x[0, 0]")
    for empty in (np.empty(0), np.empty((3, 0)), np.zeros(8)[5:5]):
        assert kinds(trace(reads_first, 1, 32, empty, np.zeros(32))) == ["out-of-bounds"]
    for strange in (np.array(["a"]), np.zeros(3, "M8[s]"), np.zeros(3, "i4,i4")):
        with pytest.raises(NotTraceable, match="follows plain numbers only"):
            trace(nothing, 1, 1, strange)


# -- races ---------------------------------------------------------------------------------------------------


def test_complex_numbers_that_differ_race():
    all_store = kernel("out", "out[0] = cuda.grid(1) * 1j")
    all_store_the_same = kernel("out", "out[0] = 3 + 1j")
    assert kinds(trace(all_store, 2, 32, np.zeros(1, complex))) == ["race"]
    seen = trace(all_store_the_same, 2, 32, np.zeros(1, complex))
    assert kinds(seen) == [] and len(seen.remarks) == 1


# -- counts --------------------------------------------------------------------------------------------------


def test_a_float32_with_a_short_integer_stays_one():
    with_short_integers = kernel("x, a, out", "out[i] = x[i] + a[i]")
    x = np.full(32, 0.1, np.float32)
    for dtype, kept in ((np.uint8, True), (np.int16, True), (np.bool_, True), (np.int32, False)):
        out, a = np.zeros(32), np.ones(32, dtype)
        trace(with_short_integers, 1, 32, x, a, out)
        assert (out[0] == np.float32(0.1) + np.float32(1)) == kept, dtype


# -- syncwarp ------------------------------------------------------------------------------------------------


@cuda.jit
def half_meets(out):
    s = cuda.shared.array(32, float32)
    i = cuda.threadIdx.x
    s[i] = 0
    cuda.syncthreads()
    if i < 16:
        cuda.syncwarp(0xFFFF)
        s[i] = i
    out[i] = s[31 - i]  # races


@cuda.jit
def halves_meet(out):
    s = cuda.shared.array(32, float32)
    i = cuda.threadIdx.x
    s[i] = i
    cuda.syncwarp(0xFFFF if i < 16 else 0xFFFF0000)
    out[i] = s[31 - i]  # races


@cuda.jit
def halves_meet_within(out):
    s = cuda.shared.array(32, float32)
    i = cuda.threadIdx.x
    s[i] = i
    cuda.syncwarp(0xFFFF if i < 16 else 0xFFFF0000)
    out[i] = s[15 - i if i < 16 else 47 - i]


@cuda.jit
def meet_one_by_one(out):
    s = cuda.shared.array(32, float32)
    i = cuda.threadIdx.x
    if i == 0:
        s[0] = 1
    if i < 2:
        cuda.syncwarp(0b11)
    if i > 0 and i < 3:
        cuda.syncwarp(0b110)
    if i == 2:
        out[0] = s[0]  # thread 2 has met thread 1, which has met thread 0


def test_a_syncwarp_orders_those_who_come_and_nobody_else():
    for made in (half_meets, halves_meet):
        found = trace(made, 1, 32, np.zeros(32)).hazards
        assert {(hazard.kind, hazard.line) for hazard in found} == {("race", line_of(made, "races"))}
        one, other = found[0].threads
        assert (one[0] < 16) != (other[0] < 16)
    for made in (halves_meet_within, meet_one_by_one):
        assert kinds(trace(made, 3, 32, np.zeros(32), blocks=1)) == []


@cuda.jit
def reads_for_long(out, turns):
    s = cuda.shared.array(64, float32)
    i = cuda.threadIdx.x
    s[i] = i
    total = float32(0)
    for _ in range(turns):
        total += s[i]
    out[i] = total + s[63 - i]  # races


@looped("turns", [1, 510, 511, 512, 600, 1100])
def test_a_race_is_found_however_many_accesses_lie_between(turns):
    (hazard,) = trace(reads_for_long, 1, 64, np.zeros(64), turns).hazards
    assert (hazard.kind, hazard.line, hazard.times) == ("race", line_of(reads_for_long, "races"), 64)


# -- numbers that all threads share --------------------------------------------------------------------------


@cuda.jit
def of_one_number(x, number, out):
    i = cuda.grid(1)
    out[i, 0], out[i, 1], out[i, 2] = -x[i], -x[0], -number
    out[i, 3], out[i, 4], out[i, 5] = ~x[i], ~x[0], ~number
    out[i, 6], out[i, 7], out[i, 8] = x[i] - 9, x[0] - 9, number - 9
    out[i, 9], out[i, 10], out[i, 11] = abs(x[i]), abs(x[0]), abs(number)


@looped("dtype", [np.uint8, np.uint16, np.uint32, np.int8, np.int32, np.int64])
def test_a_number_that_all_threads_share_is_computed_with_like_one_of_each(dtype):
    x, out = np.full(32, 5, dtype), np.zeros((32, 12))
    trace(of_one_number, 1, 32, x, dtype(5), out)
    for first in (0, 3, 6, 9):
        assert (out[:, first : first + 3] == out[0, first]).all()
    assert out[0, 6] == -4


@looped(
    "alias",
    [
        "Z = Y",
        "Z = True and Y",
        "Z = False or Y",
        "Z = cuda.selp(True, Y, X)",
        "Z = Y if n > 0 else X",
        "Z, W = Y, X",
        "Z = same(True and Y)",
    ],
)
def test_an_array_by_another_name_is_watched_too(alias):
    same = kernel("A", "return A", device=True)
    made = kernel("X, Y, n", f"{alias}\nZ[i] = X[i]\nX[i] = Z[n - 1 - i]  # races", same=same)
    X, Y = (np.zeros(64, np.float32) for _ in range(2))
    found = trace(made, 1, 64, X, Y, 64, progress=False).hazards
    assert {(one.kind, one.line) for one in found} == {("race", line_of(made, "races"))}
