"""The questions and fill-ins of chapter 08."""

from __future__ import annotations

from course_lib.grading.questions.question import Fill, Question

QUESTIONS: tuple[Question, ...] = (
    Question(
        "08.quadruple",
        "SUMMA on a square grid, the same matrices: 64 ranks become 256. The bytes that one rank sends "
        "are multiplied by what factor (to 10 %)?",
        (30 / 256) / (14 / 64),
        "A rank sends 2 n² (q − 1) / q² numbers: 14 / 64 before, 30 / 256 after. Four times the ranks, "
        "half the bytes each; all ranks together send twice as many.",
        {
            0.25: "The shards are a quarter as large, but each goes to twice as many ranks.",
            1: "That is the row split: it sends nearly all of B, however many ranks there are.",
            2: "That holds for all ranks together. The question is about one.",
        },
        tolerance=0.1,
    ),
    Question(
        "08.racks",
        "A ring all-reduce over two racks of 8, joined by one thin uplink each. In which order should the "
        "ring pass through the ranks?",
        "rack by rack",
        "Then in each step one message leaves each rack. With every neighbour in the other rack, all 8 do, "
        "through the same uplink.",
        {
            "alternately": "Then each message of the ring crosses the uplinks, eight at a time.",
            "it does not matter": "The bytes are the same, but other links carry them; the busiest decides.",
        },
        options=("rack by rack", "alternately", "it does not matter"),
    ),
    Question(
        "08.mtbf",
        "One machine fails every 1,000 days on average, a checkpoint takes 30 s. How many seconds apart are "
        "checkpoints best on 1,000 such machines, by Young's formula (to 2 %)?",
        (2 * 30 * 86400) ** 0.5,
        "A thousand machines fail once a day: sqrt(2 · 30 s · 86,400 s) is about 38 minutes.",
        {
            (2 * 30 * 86400 * 1000)
            ** 0.5: "That is for one machine. A thousand fail a thousand times as often.",
            (30 * 86400) ** 0.5: "A failure loses half an interval on average: that puts a 2 under the root.",
        },
        tolerance=0.02,
    ),
)

FILLS: tuple[Fill, ...] = (
    Fill(
        "08.passes_on",
        """def passes_on(rank, step, P):  # the number of the block that goes to the right
    return «(rank - step) % P»""",
        cases=((0, 0, 4), (2, 1, 4), (0, 1, 4), (1, 2, 3)),
        hint="In step 0 a rank sends its own block. In step 1 it sends what has just come from the left.",
        why="What came from the left in one step goes to the right in the next, so each link is used once.",
        wrong={
            "rank": "Then everybody sends its own block again and again, and to the same neighbour.",
            "(rank + step) % P": "That block has not arrived yet: blocks come from lower ranks.",
            "rank - step": "Below 0 the ring closes: rank 0's left neighbour is rank P − 1.",
            "step": "In step 0 a rank has only its own block.",
        },
    ),
    Fill(
        "08.interval",
        """def best_interval(checkpoint, mtbf):  # where the derivative of the lost part is 0, in s
    return «(2 * checkpoint * mtbf) ** 0.5»""",
        cases=((60.0, 10800.0), (2.0, 4.0), (30.0, 86400.0)),
        hint="Set the derivative of c / t + t / (2 m) to zero: −c / t² + 1 / (2 m) = 0. What is t?",
        why="There both losses are equal: time for checkpoints, and work that has to be done again.",
        wrong={
            "(checkpoint * mtbf) ** 0.5": "A failure loses half an interval: 1 / (2 m), not 1 / m.",
            "2 * checkpoint * mtbf": "That is t², in square seconds.",
            "mtbf / 2": "So rarely? Then each failure costs a quarter of the time between failures.",
        },
    ),
)
