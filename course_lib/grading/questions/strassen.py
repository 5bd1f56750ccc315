"""The questions of chapter 03."""

from __future__ import annotations

import math

from course_lib.grading.questions.question import Question

QUESTIONS: tuple[Question, ...] = (
    Question(
        "03.intensity",
        "Strassen adds two blocks of float32 and writes the sum to memory. How many FLOP per byte is that?",
        1 / 12,
        "One addition for three numbers of 4 bytes: two are read, one is written. The memory roof over such "
        "a loop is bandwidth / 12, hundreds of times below the peak of the products.",
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
