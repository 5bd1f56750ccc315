"""The questions of chapter 07."""

from __future__ import annotations

from course_lib.grading.questions.question import Question

#: Of one head's scores, (200, 64) times (64, 200): the operations, and the numbers.
FLOP, READ, WRITTEN = 2 * 200 * 200 * 64, 2 * 200 * 64, 200 * 200

QUESTIONS: tuple[Question, ...] = (
    Question(
        "07.bmm_work",
        "One attention layer of the Conformer, 8 heads of 64, and T = 200 frames: scores = q times k "
        "transposed, as one bmm. How many million FLOP?",
        2 * 8 * 200 * 200 * 64 / 1e6,
        "8 products of (200, 64) and (64, 200): 2 x 8 x 200 x 64 x 200 = 40.96 million FLOP. The position "
        "scores, with 2T - 1 columns, take twice as much, and the product with v as much again.",
        {
            8 * 200 * 200 * 64 / 1e6: "A multiplication and an addition are two FLOP.",
            2 * 200 * 200 * 64 / 1e6: "That is one head. There are 8.",
            2 * 200 * 200 * 512 * 8 / 1e6: "512 is all heads together: each has 64.",
            2 * 8 * 200 * 64 / 1e6: "Every query meets every key: T twice.",
            2 * 8 * 200 * 399 * 64 / 1e6: "That is the bmm with the positions: 2T - 1 columns. Keys are T.",
            2 * 8 * 200 * 200 * 64: "That is in FLOP; the question is how many million.",
        },
        unit="million FLOP",
    ),
    Question(
        "07.bmm_intensity",
        "The same product: each of the 8 heads multiplies (200, 64) by (64, 200) in float32. If every input "
        "is read once and every result written once, how many FLOP are there for each byte?",
        FLOP / (4 * (READ + WRITTEN)),
        "2 x 200 x 64 x 200 FLOP on 4 x (2 x 200 x 64 + 200 x 200) bytes: 19.5, and the batch cancels. "
        "However long T gets, it stays below 2 x 64 / 4 = 32: the sum over 64 is too short, and the result "
        "is larger than its inputs. One square product with the work of all eight would have 46.",
        {
            FLOP / 2 / (4 * (READ + WRITTEN)): "A multiplication and an addition are two FLOP.",
            FLOP / (READ + WRITTEN): "That is for each number; one has 4 bytes.",
            FLOP / (4 * READ): "The result is written, too: 200 x 200 numbers.",
            FLOP / (4 * WRITTEN): "The inputs are read, too: 2 x 200 x 64 numbers.",
            8 * FLOP / (4 * (READ + WRITTEN)): (
                "The heads share nothing: 8 times the FLOP on 8 times the bytes."
            ),
        },
        unit="FLOP/byte",
        tolerance=0.02,
    ),
    Question(
        "07.addmm_calls",
        "A layer of the Conformer has two feed-forward modules of two linear layers each, and linear layers "
        "for q, k, v and the output, all with a bias. There are 18 layers, and one more linear layer behind "
        "the subsampling. How many calls of addmm in one forward?",
        145,
        "18 x (4 + 4) + 1 = 145. The linear layer for the positions has no bias, so it is mm and not addmm: "
        "18 more calls.",
        {
            144: "And the one behind the subsampling.",
            163: "The layer for the positions has no bias: that is mm.",
            109: "Each feed-forward module has two linear layers, and there are two modules: 4.",
            73: "Feed-forward and attention: 4 + 4 for each layer.",
            9280: "Those are 64 forwards.",
            8: "That is one layer.",
        },
        unit="calls",
        tolerance=1e-3,
    ),
    Question(
        "07.pointwise",
        "Which of these needs no im2col, because its input already is the matrix that is multiplied?",
        "pointwise",
        "With a kernel of 1, a stride of 1 and no padding, row c of the matrix is channel c of x: the "
        "product is "
        "weight (O, C) times x (C, T). The subsampling repeats every frame in several columns. A depthwise "
        "convolution has a product for each channel, (1, 31) times (31, T): nothing for a matmul to reuse.",
        {
            "depthwise": (
                "Each channel has a kernel of 31 of its own: (1, 31) times a matrix of 31 shifted rows."
            ),
            "subsampling": "A kernel of 3 x 3 reads each number up to nine times: that is im2col's copy.",
        },
        options=("pointwise", "depthwise", "subsampling"),
    ),
    Question(
        "07.amdahl",
        "In a profile addmm has half of the self time, bmm a tenth, copy_ a fifth. A fused kernel makes "
        "copy_ unnecessary: its time is gone. How many times as fast is the whole?",
        1.25,
        "1 / (1 - 0.2) = 1.25. Making addmm 1.5 times as fast would give 1 / (0.5 + 0.5 / 1.5) = 1.2: less, "
        "and far more work, where addmm is near its roofline.",
        {
            5: "That would be so if nothing but a fifth were left.",
            0.8: "That is the time that is left; the speed-up is its inverse.",
            1.2: "A fifth of the time less is not a fifth more speed: 1 / 0.8.",
            20: "That is the share in per cent.",
        },
        unit="times",
        tolerance=0.005,
    ),
    Question(
        "07.batch_wait",
        "Utterances arrive evenly, 20 a second. A batch of 16 takes 0.3 s to compute. How many seconds after "
        "its arrival does the first utterance of a batch have its answer?",
        1.05,
        "It waits for 15 others, 15 / 20 = 0.75 s, and then 0.3 s: 1.05 s. Most of that is no computing at "
        "all, and a faster GPU changes little. Fewer in a batch, or more users, do.",
        {
            0.3: "That is the computing alone. The first one waits until the batch is full.",
            0.75: "That is the waiting alone.",
            1.1: "It waits for the others, and these are 15.",
            0.675: "That is the mean; the first one waits twice as long as the mean.",
            0.8: "16 / 20 is how long 16 utterances take to arrive; the computing comes on top.",
        },
        unit="s",
        tolerance=0.005,
    ),
)
