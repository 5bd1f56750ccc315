"""The questions and fill-ins of chapter 04."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from course_lib.grading.questions.question import Fill, Question, with_arrays
from course_lib.grading.sources import plain_function

QUESTIONS: tuple[Question, ...] = (
    Question(
        "04.conflict",
        "On another machine a column of B (512 rows of 512 float64) does not stay in an L1 cache of 768 "
        "lines (48 KiB). With 513 columns it does. What kind of misses are those?",
        "conflict",
        "512 lines fit into 768 places. But rows 4096 bytes apart fall into one set again and again, and a "
        "set has only as many places as the cache has ways. One more column spreads them over all sets.",
        {
            "cold": "Cold misses are those of the first touch. Here the same lines miss again and again.",
            "capacity": "512 lines are fewer than 768: a fully associative cache would keep them all.",
            "coherence": "That takes a second core that writes. Circle 5 has those.",
        },
        options=("cold", "capacity", "conflict", "coherence"),
    ),
    Question(
        "04.bound",
        "A cache four times as large: what becomes of the least possible traffic of a large product?",
        0.5,
        "The bound is 2MNK / sqrt(S): the root of 4 is 2, so half the traffic. That is why a cache is an "
        "expensive way to buy bandwidth, and why every level needs a block of its own.",
        {
            0.25: "That would be traffic in proportion to 1 / S. It goes with the root: 1 / sqrt(S).",
            1: "Only where everything fits anyway. For a large product the bound falls with sqrt(S).",
            2: "The other way round: a larger cache means less traffic.",
            0.125: "That would be traffic as S^-1.5; it goes with the root: 1 / sqrt(S).",
        },
        unit="x",
    ),
    Question(
        "04.loads",
        "A tile of 6 rows by 16 float32 on a processor with 256-bit registers: how many loads (broadcasts "
        "are loads) does the inner loop do for each FMA?",
        8 / 12,
        "16 float32 are two registers. For each k: 2 loads of the panel's row, 6 broadcasts from A, and "
        "6 x 2 = 12 FMAs. 8 / 12 = 0.67: below 1, so two load units keep two FMA units busy.",
        {
            2: "That is the dot product: two loads for each FMA. A tile uses each load several times.",
            1: "Count again: each of the two registers of the row serves six FMAs.",
            12 / 8: "That is FMAs for each load. The other way round.",
            22 / 96: "Those are numbers. A vector load brings eight numbers and is one instruction.",
            22 / 12: "Sixteen float32 are two vector loads of 256 bits, not sixteen loads.",
            8: "That is for all FMAs of one k. How many FMAs are these?",
            8 / 6: "Each of the six rows has two registers of sums, so two FMAs for each k.",
            2 / 12: "And the six numbers of A? Each is broadcast from memory: a load.",
        },
        tolerance=0.02,
    ),
    Question(
        "04.registers",
        "16 vector registers; a row of the tile takes 2, the row of the panel 2, the number of A 1. How many "
        "rows may the tile have without spills?",
        6,
        "2 * rows + 2 + 1 <= 16, so rows <= 6.5: six. The seventh would be carried to the stack and back at "
        "every k.",
        {
            8: "Those 16 registers would all be sums: none is left for the panel's row and the number of A.",
            7: "7 rows take 14 registers, and 3 more are needed: 17.",
            5: "5 rows take 10 registers, and 3 more are needed: 13. One more row fits.",
            13: "Each row takes two registers.",
            6.5: "A tile has whole rows.",
        },
        tolerance=1e-9,
    ),
)


def _checked(function: Callable, *case: Any) -> np.ndarray | str:
    """Return the result for arrays, uncompiled: compiled code reads behind the end of a slice."""
    with_arrays(function, *case)  # whether it can be compiled
    try:
        return with_arrays(plain_function(function), *case)
    except IndexError:
        return "x is too short"


def _tile(two_rows: Callable, depth: int) -> np.ndarray:
    """Return the first numbers of the two rows of the tile, (2, 2), in float32."""
    width = plain_function(two_rows).__globals__["ROW"] // 4  # the notebook's
    A, B = (np.arange(1, depth * rows + 1, dtype=np.float32) for rows in (2, width))
    C = np.zeros(2 * width, np.float32)
    two_rows(depth, A, B, C)
    return C.reshape(2, width)[:, :2]


FILLS: tuple[Fill, ...] = (
    Fill(
        "04.block",
        """@njit(fastmath={"contract", "reassoc"})
def square_blocks(A, B, C, b):  # (M, K), (K, N), (M, N)
    (M, K), N = A.shape, B.shape[1]
    for i0 in range(0, M, b):
        for j0 in range(0, N, b):
            for k0 in range(0, K, b):
                for i in range(i0, min(i0 + b, M)):
                    c = C[i, j0 : j0 + b]  # a slice ends where the matrix ends
                    for k in range(k0, min(k0 + b, K)):
                        a, x = A[i, k], «B[k, j0 : j0 + b]»
                        for j in range(len(c)):
                            c[j] += a * x[j]""",
        cases=(([[1, 2, 3], [4, 5, 6]], [[4, 5, 6, 1], [7, 8, 9, 3], [1, 0, 2, 5]], [[0] * 4] * 2, 2),),
        run=_checked,
        hint="c is the piece of a row of C that the innermost loop goes through. Which row of B, and which "
        "piece of it, is added to it?",
        why="The same columns as in c, of row k: b numbers, used by b rows while they are near.",
        wrong={
            "B[i, j0 : j0 + b]": "i is the row of A and C. a is A[i, k]: which row of B does it meet?",
            "B[k, k0 : k0 + b]": "The columns must be those of c.",
            "B[k, j0:b]": "x is too short: a slice names the column where it ends, not how many it has.",
        },
    ),
    Fill(
        "04.kernel",
        """@njit
def two_rows(depth, A, B, C):  # A: (2, depth), flat: its second row begins at depth
    NR = vectors.lanes(B, ROW)
    c0 = c1 = vectors.zero(B, ROW)
    for k in range(depth):
        b = vectors.load(B, k * NR, ROW)  # loaded once, used twice
        c0 = vectors.fma(vectors.broadcast(A, k, b), b, c0)
        c1 = «vectors.fma(vectors.broadcast(A, depth + k, b), b, c1)»
    vectors.store(C, 0, c0)
    vectors.store(C, NR, c1)""",
        cases=((1,), (3,)),
        run=_tile,
        hint="The line above with two changes: the second row of A begins where the first, `depth` long, "
        "ends; and it has a sum of its own.",
        why="One load of b, two FMAs: each row more uses it once more, and gives another sum to work on "
        "while the first waits.",
        wrong={
            "vectors.fma(vectors.broadcast(A, k, b), b, c1)": "That is the first row of A once more.",
            "vectors.fma(vectors.broadcast(A, depth + k, b), b, c0)": "It adds to the sum of the first row.",
        },
    ),
)
