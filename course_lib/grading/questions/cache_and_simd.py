"""The questions of chapter 04."""

from __future__ import annotations

from course_lib.grading.questions.fill_in import Fill
from course_lib.grading.questions.question import Question

QUESTIONS: tuple[Question, ...] = (
    Question(
        "04.conflict",
        "A column of B (512 rows of 512 float64) does not stay in an L1 cache that has room for 768 lines. "
        "With 513 columns it does. What kind of misses are those?",
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

FILLS: tuple[Fill, ...] = ()
