"""The questions of chapter 10."""

from __future__ import annotations

from course_lib.grading.questions.question import Question

QUESTIONS: tuple[Question, ...] = (
    Question(
        "10.e4m3_step",
        "In e4m3, how far apart are the neighbours of 200? 200 itself is none of its numbers.",
        16,
        "200 = 2^7 x 1.5625, and the numbers from 128 to 256 are cut into 2^3 steps: 2^7 / 8 = 16. So 200 is "
        "stored as 192 or 208: it lies in the middle, and goes to the even code, 192.",
        {
            8: "That is the step below 128: from 128 on it is twice as long.",
            32: "That is the step from 256 on: 200 is below.",
            1: "With three bits of fraction there are only eight numbers between 128 and 256.",
            0.125: "An eighth of the power of two: 2^7 / 8.",
            2: "That is the step between 16 and 32.",
        },
        tolerance=1e-3,
    ),
    Question(
        "10.promotion_steps",
        "Promotion every 128, K = 4096: how many partial sums are added up in true float32 for one number of "
        "the result?",
        32,
        "4096 / 128 = 32 partial sums leave the tensor core and are added up in float32. Inside, each of "
        "them is made of four steps of 32 products.",
        {
            31: "Count the sums: the first is added, too, to a zero.",
            128: "That is how many steps of 32 products there are: 4096 / 32.",
            4: "That is how many steps of the tensor core lie between two promotions.",
            4096: "Only partial sums are added in float32, not products.",
            64: "64 columns of a tile, perhaps: the number of additions depends on K alone.",
        },
        unit="partial sums",
        tolerance=1e-3,
    ),
    Question(
        "10.bytes_a_cycle",
        "A tile of 128 x 256, e4m3, blocks of 128 along K, 4096 products a cycle: how many bytes of operands "
        "a cycle keep the tensor core busy?",
        48,
        "(128 + 256) x 128 bytes for 128 x 256 x 128 / 4096 = 1024 cycles: 48 bytes a cycle, where the tile "
        "of 128 x 128 needs 64. Larger tiles use each byte more often; registers set the end.",
        {
            64: "That is the tile of 128 x 128.",
            96: "The block has 128 x 256 x 128 products, at 4096 a cycle: 1024 cycles.",
            32: "That is 256 x 256: the sum of both sides over their product.",
            384: "Those are the rows of both operands; divide their bytes by the cycles.",
            49152: "Those are the bytes of a block; it lasts 1024 cycles.",
        },
        unit="bytes",
        tolerance=0.005,
    ),
    Question(
        "10.wave_count",
        "M = N = 4096, tiles of 128 x 128, 132 multiprocessors with one block each: what share of the "
        "multiprocessors' time is lost because the last wave is not full? Answer in per cent.",
        100 * (1 - 1024 / (8 * 132)),
        "32 x 32 = 1024 tiles in 8 waves of 132, which have room for 1056: 3.0 % is idle. (1024 / 132 = "
        "7.76: the eighth wave is three quarters full.)",
        {
            1 - 1024 / (8 * 132): "That is the share; asked are per cent.",
            24.24: "That is how empty the last wave is; seven others are full.",
            100 * 1024 / (8 * 132): "That is the share that works.",
            0: "1024 tiles do not divide by 132.",
            12.5: "A whole wave of eight would be that; the last one is three quarters full.",
        },
        unit="%",
        tolerance=0.02,
    ),
    Question(
        "10.which_parity",
        "A ring of 4 stages; the consumer is about to read its tenth block of K (the first is number 0, so "
        "this is number 9). For which stage's full barrier does it wait, and for which parity?",
        "stage 1, even",
        "9 = 2 x 4 + 1: stage 1, for the third time. The laps have parities 0, 1, 0: it waits for 0, even. "
        "The producer, one lap ahead, waits for the other parity of the empty barrier.",
        {
            "stage 1, odd": "The first lap waits for 0, the second for 1, and this is the third.",
            "stage 2, even": "Blocks are counted from 0: number 8 is in stage 0 again.",
            "stage 2, odd": "Blocks are counted from 0, and this is the third lap.",
        },
        options=("stage 1, even", "stage 1, odd", "stage 2, even", "stage 2, odd"),
    ),
)
