"""The questions and fill-ins of chapter 03."""

from __future__ import annotations

import math
from collections.abc import Callable

from course_lib.grading.questions.question import Fill, Question

QUESTIONS: tuple[Question, ...] = (
    Question(
        "03.intensity",
        "Strassen adds two blocks of float32 and writes the sum to memory. How many FLOP per byte is that?",
        1 / 12,
        "One addition for three numbers of 4 bytes: two are read, one is written. The memory roof over such "
        "a loop is bandwidth / 12, tens of times below the peak of the products or more: the chapter "
        "printed how many for your machine.",
        {
            1 / 4: "An addition needs more than one number: count what is read and what is written.",
            1 / 8: "You count what is read. The sum is written, too.",
            1 / 24: "That is float64: 8 bytes a number.",
            2 / 12: "A sum is one operation for each number, not two.",
            12: "That is bytes per FLOP: the inverse.",
        },
        unit="FLOP/byte",
    ),
    Question(
        "03.scale",
        "The upper half of the rows of A is about 1, the lower half about 1e-10; B is about 1. All is "
        "float32. Who gets the lower half of A @ B right to several digits?",
        "the classical product",
        "The classical product works row by row: small rows meet no large ones. Strassen forms A11 + A22, "
        "and in float32 1 + 1e-10 is 1: the small rows are gone. Its error is small against max|A| max|B| "
        "and against nothing else.",
        {
            "Strassen": "Look at A21 + A11 or A11 + A22: what is left of the small block in such a sum?",
            "both": "In float32 1 + 1e-10 is 1. Which of the two forms such a sum?",
            "neither": "The classical product never adds a large row to a small one.",
        },
        options=("the classical product", "Strassen", "both", "neither"),
    ),
    Question(
        "03.exponent",
        "A way to multiply 4 x 4 blocks with 48 products, used recursively, takes O(N^p) steps. What is p "
        "(three digits after the point)?",
        math.log(48, 4),
        "log 48 / log 4 = 2.792: at each level a quarter of the size and 48 products. With 49 it is Strassen "
        "twice, log2 7 = 2.807.",
        {
            2.79: "Nearly: the third digit after the point is missing.",
            math.log2(7): "That is 49 products of 4 x 4 blocks: Strassen twice.",
            math.log2(48): "One level quarters the size: divide by log 4, not by log 2.",
            math.log(47, 4): "That is 47 products.",
            3: "64 products would give 3.",
            2.371: "That is the best exponent known to theory, by quite different algorithms.",
        },
        tolerance=0.0005,
    ),
)


def _with_products(complex_product: Callable, a: int, b: int, c: int, d: int) -> tuple[int, int, str]:
    """Return the product and how many multiplications of unknown numbers it takes."""
    from course_lib.grading.tape import Tape, count, taped

    tape = Tape()
    complex_product(*taped((1.0, 2.0, 3.0, 4.0), tape))
    return *complex_product(a, b, c, d), f"{count(tape).multiplications} multiplications"


FILLS: tuple[Fill, ...] = (
    Fill(
        "03.gauss",
        """def complex_product(a, b, c, d):
    ac, bd = a * c, b * d
    return ac - bd, «(a + b) * (c + d) - ac - bd»  # real part, imaginary part""",
        cases=((3, 4, 5, 6), (0, 1, 0, 1), (2, -1, 7, 0)),
        run=_with_products,
        hint="Multiply (a + b)(c + d) out: four terms. Which two do you want? Where are the others?",
        why="One product of sums makes four terms; the two that nobody wants are taken away with products "
        "that are needed anyway. Three multiplications.",
        wrong={
            "a * d + b * c": "The value is right, but that makes four multiplications: two of them are new.",
            "(a + b) * (c + d)": "ac and bd are still in it: take them away.",
            "(a + b) * (c + d) - ac + bd": "bd is in the product of sums, too: take it away.",
        },
    ),
    Fill(
        "03.count",
        """def operations(n, cutoff, sums=18):
    if n <= cutoff:
        return n**3, n**2 * (n - 1)  # multiplications, additions
    multiplications, additions = operations(n // 2, cutoff, sums)
    return 7 * multiplications, 7 * additions + «sums * (n // 2) ** 2»""",
        cases=((4, 4), (2, 1), (8, 2), (8, 1, 15)),
        hint="The additions inside the seven products are counted already. How many numbers has a block, so "
        "how many additions is a sum of two?",
        why="One addition for every number of a block, in each of the sums.",
        wrong={
            "sums": "A sum of two blocks is one addition for every number in them.",
            "sums * n**2": "A block has half as many rows and half as many columns.",
            "7 * sums * (n // 2) ** 2": "The sums are 18 in all, not 18 for each product.",
        },
    ),
)
