"""The tape: what an answer does with numbers, counted and run again on others."""

import copy
import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_lib.grading import registry, tape
from course_lib.grading.judge import judge
from course_lib.grading.runner import InProcess, Outcome
from course_lib.grading.sources import load
from course_lib.grading.tape import PRIME, BadTape, Count, Tape, TapeLine, count, lines_of, replay, taped
from course_lib.grading.task import Code

WHOLE = st.integers(-(2**20), 2**20).map(float)


@given(st.lists(WHOLE, min_size=1, max_size=8))
def test_a_sum_of_squares_is_counted_and_can_be_run_on_other_numbers(others):
    written = Tape()
    total = 0.0
    for number in taped([1.0] * len(others), written):
        total += number * number
    assert count(written) == Count(len(others), len(others) - 1)
    assert replay(written, lines_of(total), (others,)) == [sum(int(one) ** 2 for one in others) % PRIME]


def test_what_is_no_work_is_free_and_all_else_is_counted():
    written = Tape()
    a, b = taped([2.0, 3.0], written)
    zero = a * 0
    free = [
        0 + a,
        a - 0.0,
        np.float64(0) + a,
        -a,
        +a,
        a * 1,
        -1.0 * a,
        zero + b,
        a + zero * b,
        0.5 * (zero + 3),
    ]
    assert count(written) == Count(0, 0)
    paid = [
        a * b,
        2 * a,
        np.float32(0.5) * b,
        a + b,
        1 + a,
        a - b,
        1 - a,
        a + 1e-300,
        b * (zero + 1 + 2**-60),
    ]
    assert count(written) == Count(4, 5)
    half, tiny = pow(2, -1, PRIME), tape._residue(1e-300)
    assert replay(written, lines_of(free), ([2.0, 4.0],)) == [
        n % PRIME for n in (2, 2, 2, -2, 2, 2, -2, 4, 2, 3 * half)
    ]
    last = 4 * (1 + pow(2**60, -1, PRIME))
    assert replay(written, lines_of(paid), ([2.0, 4.0],)) == [
        n % PRIME for n in (8, 4, 2, 6, 3, -2, -1, 2 + tiny, last)
    ]


def test_what_numpy_does_with_operands_is_counted_by_it_too():
    rng = np.random.default_rng(0)
    A, B = rng.integers(1, 9, (2, 3, 3)).astype(float)
    for name, multiplications, additions, do in (
        ("matmul", 27, 18, lambda A, B: A @ B),
        ("dot", 27, 18, np.dot),
        ("inner", 27, 18, np.inner),
        ("tensordot", 27, 18, lambda A, B: np.tensordot(A, B, 1)),
        ("einsum", 27, 18, lambda A, B: np.einsum("ik,kj->ij", A, B)),
        ("einsum, best order", 27, 18, lambda A, B: np.einsum("ik,kj->ij", A, B, optimize=True)),
        ("outer", 81, 0, np.outer),
        ("kron", 81, 0, np.kron),
        ("convolve", 9, 4, lambda A, B: np.convolve(A[0], B[0])),
        ("square", 9, 0, lambda A, B: np.square(A)),
        ("prod", 8, 0, lambda A, B: np.prod(A)),
        ("sum", 0, 8, lambda A, B: np.sum(A)),
        ("method", 0, 6, lambda A, B: A.sum(axis=0)),
        ("reduce", 0, 6, lambda A, B: np.add.reduce(A, axis=1)),
        ("accumulate", 0, 6, lambda A, B: np.cumsum(A, axis=0)),
        ("subtract", 0, 6, lambda A, B: np.diff(A)),
        ("outer sum", 0, 81, lambda A, B: np.add.outer(A, B)),
        ("trace", 0, 2, lambda A, B: np.trace(A)),
        ("in place", 9, 9, lambda A, B: np.add(np.multiply(A, B, out=A.copy()), B)),
    ):
        written = Tape()
        result = do(*taped((A, B), written))
        assert count(written) == Count(multiplications, additions), name
        assert replay(written, lines_of(result), (A, B)) == tape.residues(do(A, B)), name


NEEDS = {
    "division": "a / b|2 / a|a / 2|a // b|a % 2|divmod(a, 2)|np.divide(A, B)|np.reciprocal(A)|A.mean()",
    "power": "a ** 2|a ** 0.5|2 ** a|pow(a, 2)|np.power(A, 2)",
    "their values": """a == b|a == 1|a != b|a < b|a >= 0|not a|a in [b]|[a, b].index(b)|{a: 1}|hash(a)|abs(a)
        |round(a)|int(a)|complex(a)|math.floor(a)|math.trunc(a)|[1, 2][a]|range(a)|a << 1|1 >> a|a & 1|~a
        |max(a, b)|sorted([a, b])|np.abs(A)|np.maximum(A, B)|np.sort(A)|A == B|A.any()
        |np.nonzero(A)|np.where(A, 1, 2)|np.array_equal(A, B)|pickle.dumps(a)|copy.copy(a)""",
    "no floats": """float(a)|math.sqrt(a)|math.fsum([a])|'%f' % a|np.asarray(A, float)|A.astype('f4')
        |np.interp(a, [0, 1], [0, 1])|np.zeros(3).__setitem__(0, a)""",
    "": """a.value|a.line|a.tape|np.sqrt(A)|np.exp(A)|np.floor(A)|np.linalg.inv(A)|A.view('i8')
        |a @ b|math.hypot(a, b)|a + '1'|a * None|a + 1j|a * math.inf|np.isnan(A)|a.real|np.vdot(A, B)""",
}


def test_what_is_not_counted_is_refused_in_a_sentence():
    for words, tries in NEEDS.items():
        for one in map(str.strip, tries.split("|")):
            written = Tape()
            A, B = taped((np.ones((2, 2)), np.ones((2, 2))), written)
            scope = {"A": A, "B": B, "a": A[0, 0], "b": B[0, 1], "np": np}
            with pytest.raises((TypeError, AttributeError, ValueError), match=words or None):
                eval(one, scope | {"math": math, "pickle": pickle, "copy": copy})
                count(written)  # a number that is none shows there
                pytest.fail(f"{one} is no operation")


def test_a_print_that_was_left_in_tells_nothing_and_a_copy_is_no_work():
    written = Tape()
    (row,) = taped(([2.0, 3.0],), written)
    assert {str(row[0]), f"{row[0]:.3f}", repr(row[1])} == {"a number that counts"}
    assert copy.deepcopy(row)[1] is row[1]
    assert len(written.codes) == 2


def test_what_is_no_straight_line_program_is_refused():
    for written in (
        Tape([tape.ADD], [0], [0]),  # adds itself
        Tape([tape.INPUT, tape.ADD], [0, 0], [0, 2]),  # a later line
        Tape([tape.INPUT, tape.ADD], [0, -1], [0, 0]),  # from the end
        Tape([tape.INPUT, 9], [0, 0], [0, 0]),  # no such operation
        Tape([tape.CONSTANT], [0], [0], []),  # no such constant
        Tape([tape.INPUT], [0], []),  # columns of different length
        Tape([tape.INPUT], [5], [0]),  # no such input
    ):
        with pytest.raises(BadTape):
            replay(written, TapeLine(0), ([1.0, 2.0],))
    for result in (TapeLine(1), TapeLine(-1), "2", None, {}):  # no such line, no number
        with pytest.raises(BadTape):
            replay(Tape([tape.INPUT], [0], [0]), [result], ([1.0],))


class Forger(InProcess):
    """Ships a tape of its own making: the right number of multiplications, and the result as a constant."""

    def count(self, args, beside_floats):
        honest = super().count(args, beside_floats)
        forged = Tape([*honest.tape.codes], [*honest.tape.left], [*honest.tape.right], [])
        value = sum(a * b for a, b in zip(*args, strict=True))
        forged.constants = [*honest.tape.constants, value]
        line = TapeLine(forged.write(tape.CONSTANT, len(forged.constants) - 1))
        return Outcome(line, tape=forged, alike=honest.alike)


def test_a_forged_tape_with_the_right_result_is_refused():
    counted = tape.CountsOperations(multiplications=lambda row, col: len(row))
    task = replace(registry.task("01.dot"), counts=counted)
    text = "def dot(row, col):\n    return sum(a * b for a, b in zip(row, col))\n"
    assert judge(task, InProcess(load(text, "dot")), text, seed=5).passed
    forged = judge(task, Forger(load(text, "dot")), text, seed=5)
    assert forged.points == 0
    assert "do not give the right result for other numbers" in str(forged)


BLOCKS = """
import numpy as np
def {entry}(A, B):
    m, k, n = (size // 2 for size in (*A.shape, B.shape[1]))
    A11, A12, A21, A22 = A[:m, :k], A[:m, k:], A[m:, :k], A[m:, k:]
    B11, B12, B21, B22 = B[:k, :n], B[:k, n:], B[k:, :n], B[k:, n:]
    C11, C12 = cheap(A11, B11) + A12 @ B21, A11 @ B12 + A12 @ B22
    return np.block([[C11, C12], [A21 @ B11 + A22 @ B21, A21 @ B12 + A22 @ B22]]).astype(A.dtype)
def cheap(X, Y):
    X, Y = X[:, :, None], Y[None]
    return ({terms}).sum(axis=1)
"""
#: An eighth product: each with a division got all points while divisions were free.
CHEAP = (
    "X * Y",
    "X / (1.0 / Y)",
    "np.divide(X, np.reciprocal(Y))",
    "((X + Y) / (1.0 / (X + Y)) - (X - Y) / (1.0 / (X - Y))) / 4.0",
    "(X + Y) / (1 / (X + Y)) / 2 - X / (1 / X) / 2 - Y / (1 / Y) / 2",
    "1.0 / (1.0 / (X * 1 + 0 * Y) / Y)",
    "(np.square(X + Y) - np.square(X - Y)) * 0.25",
    "((X + Y) ** 2 - X ** 2 - Y ** 2) / 2",
)


def test_no_product_is_done_beside_the_count():
    for id in ("03.level", "03.bug"):
        task = registry.task(id)
        for terms in CHEAP:
            text = BLOCKS.format(entry=task.entry, terms=terms)
            report = judge(task, InProcess(load(text, task.entry)), text, seed=5)
            assert report.points == 0, (id, terms, report)  # in float32 a division shows, too


def test_digits_cannot_be_cut_off_a_number_that_holds_two():
    """float64 rounds where large numbers are added: two small products fit into one multiplication."""
    text = "def f(A):\n    both = A[0] * (A[1] + A[2])\n    high = both + 3.0 * 2.0**82 - 3.0 * 2.0**82\n"
    text += "    return [high, both - high]\n"
    a, b, c = 3.0, 5.0, 7.0 * 2.0**40
    assert load(text, "f")([a, b, c]) == [a * c, a * b]
    counted = InProcess(load(text, "f")).count(([a, b, c],), False)
    assert replay(counted.tape, counted.value, ([a, b, c],)) == [int(a * (b + c)), 0]


SEVEN = """
import numpy as np
def strassen_level(A, B):
{first}    m, k, n = (size // 2 for size in (*A.shape, B.shape[1]))
    a, b, c, d = A[:m, :k], A[:m, k:], A[m:, :k], A[m:, k:]
    e, f, g, h = B[:k, :n], B[:k, n:], B[k:, :n], B[k:, n:]
    p, q, r, s = a @ (f - h), (a + b) @ h, (c + d) @ e, d @ (g - e)
    t, u, v = (a + d) @ (e + h), (b - d) @ (g + h), (a - c) @ (e + f)
    return np.block([[t + s - q + u, p + q], [r + s, p + t - r - v]])
"""
TELL_FLOATS = (
    "A.dtype.kind == 'f'",
    "A.dtype == np.float32 or A.dtype == np.float64",
    "A.dtype in (np.float32, np.float64)",
    "A.dtype == np.float32",
    "str(A.dtype)[0] == 'f'",
    "np.issubdtype(A.dtype, np.floating)",
    "isinstance(A[0, 0], np.floating)",
    "type(A[0, 0]) in (np.float32, np.float64)",
    "A.itemsize == 4",
    "'counts' not in str(A[0, 0])",
)


#: What honest answers ask of their inputs: views and float32 are told from what counts, too.
ASK = (
    "",
    "    A, B = (X if X.flags.c_contiguous else X.copy() for X in (A, B))\n",
    "    if A.dtype == np.float32:\n"
    "        return strassen_level(A.astype(np.float64), B.astype(np.float64)).astype(A.dtype)\n",
    "    wide = A.astype(np.float64) if A.itemsize < 8 else A\n",
    "    if A.dtype.kind != 'f' and A.dtype.kind != 'O':\n        raise TypeError('floats')\n",
)


def test_who_can_tell_floats_from_numbers_that_count_does_the_same_with_both():
    task = registry.task("03.level")
    for first in ASK:
        text = SEVEN.format(first=first)
        assert judge(task, InProcess(Code(text, task.entry)), text, 5).passed, first
    for tells in TELL_FLOATS:
        text = SEVEN.format(first=f"    if {tells}:\n        return A @ B\n")
        report = judge(task, InProcess(Code(text, task.entry)), text, seed=5)
        assert report.points == 0 and "With floats it leaves out" in str(report), (tells, report)
