"""The questions and fill-ins of interlude C."""

from __future__ import annotations

from course_lib.grading.questions.question import Fill, Question

QUESTIONS: tuple[Question, ...] = (
    Question(
        "C.bytes",
        "Gradients of 400 MB, a ring all-reduce on 8 ranks. How many MB does a rank send in a step (to 2 %)?",
        2 * 400 * 7 / 8,
        "Twice around, seven eighths of the array each time: 700 MB, and hardly more on 1,000 ranks.",
        {
            400 * 7 / 8: "That is the reduce-scatter alone. The sums must come back, too: an all-gather.",
            400: "In a ring a rank sends an eighth of the array in each of 2 · 7 steps.",
            400 * 7: "So much would be sent if each rank sent all of its gradient to all the others.",
            3200: "So much would come to a server of 8 workers.",
            800: "Nearly: a rank need not send the eighth that it ends with, in either round.",
            100: "That is two blocks. In a round each rank sends 7 of them, one a step.",
            50: "That is one block. In each of 2 · 7 steps a rank sends one.",
        },
        tolerance=0.02,
        unit="MB",
    ),
    Question(
        "C.stages",
        "A pipeline of 8 stages is to lose at most a tenth of the time. How many micro-batches does it need "
        "at least?",
        63,
        "7 / (m + 7) is at most a tenth from m + 7 = 70 on.",
        {
            70: "70 turns are all there are: m + p − 1. How many of them are micro-batches?",
            72: "The bubble has p − 1 = 7 turns, not 8.",
            64: "63 are just enough: 7 of 70 turns.",
            62: "7 of 69 turns are a little more than a tenth.",
            80: "The share is of all turns, m + p − 1, and the bubble has p − 1 of them.",
        },
        tolerance=1e-6,
    ),
    Question(
        "C.rate",
        "A model was trained with 32 examples a step and the learning rate 0.1; it goes to 4 machines with "
        "32 each. Which change brings it about as far in as many epochs?",
        "rate 0.4",
        "There are a quarter of the steps, each points in about the same direction: let each go four times "
        "as far (after a warm-up).",
        {
            "rate 0.1": "Then the weights move a quarter as far in an epoch.",
            "rate 0.025": "The mean over 128 is no larger than that over 32, so nothing needs to be smaller.",
            "rate 0.2": "Twice as far in a quarter of the steps is half the way. (For Adam it is usual.)",
        },
        options=("rate 0.1", "rate 0.4", "rate 0.025", "rate 0.2"),
    ),
)

FILLS: tuple[Fill, ...] = (
    Fill(
        "C.weight",
        """def weight(mine, total):  # this rank's examples, those of all ranks
    return «mine / total»""",
        cases=((1, 4), (3, 4), (16, 64), (2, 7), (5, 5)),
        hint="The gradient of the whole batch is a sum over all examples, divided by their number. A rank's "
        "own is its examples' sum, divided by how many it has. What turns it into its part of the whole one?",
        why="A rank's mean times its share of the examples is its part of the whole mean; their sum is all.",
        wrong={
            "1 / 2": "That is right for two ranks with equally many examples only.",
            "1 / total": "Each rank's gradient is divided by its own number already: that would do it twice.",
            "mine": "Then the sum is `total` times too large.",
            "total / mine": "The rank with fewer examples would count more.",
        },
    ),
    Fill(
        "C.bubble",
        """def bubble(p, m):  # stages, micro-batches
    return «(p - 1) / (m + p - 1)»""",
        cases=((4, 8), (1, 5), (8, 1), (4, 64)),
        hint="Of m + p − 1 turns a stage works in m. How many are lost, and which share is that?",
        why="Each stage waits p − 1 turns, whatever m is: more micro-batches make that a smaller share.",
        wrong={
            "(p - 1) / m": "That compares what is lost with what is worked; the share of all time is asked.",
            "p / (m + p)": "Stage 0 begins at once: the pipeline fills in p − 1 turns.",
            "m / (m + p - 1)": "That is the share in which a stage works.",
            "(m - 1) / (m + p - 1)": "p − 1 turns are lost: those in which the pipeline fills and empties.",
        },
    ),
)
