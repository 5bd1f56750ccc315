"""The questions of chapter 06."""

from __future__ import annotations

from course_lib.grading.questions.question import Question

QUESTIONS: tuple[Question, ...] = (
    Question(
        "06.littles_law",
        "Suppose memory answers after 600 ns and can deliver 2 TB/s to 100 SMs. A load of a warp asks for "
        "128 bytes. How many such loads must be on the way at every moment, for each SM?",
        600e-9 * 2e12 / 100 / 128,
        "Little's law: on the way = latency x throughput = 600 ns x 2 TB/s = 1.2 MB, 12 kB for each SM, 94 "
        "loads. That is more than the 64 warps that an SM can hold: with one load each they cannot do it. "
        "Several independent loads for each thread, or wider ones, fill the rest.",
        {
            600e-9 * 2e12 / 128: "That is for the whole GPU: 100 SMs share it.",
            600e-9 * 2e12 / 100: "Those are bytes for each SM. A load brings 128 of them.",
            600e-9 * 2e12 / 100 / 4: "Those are single float32. A warp asks for 32 of them in one load.",
            600e-9 * 2e12: "Those are bytes for the whole GPU.",
            64: "64 is what an SM can hold. The question is what memory needs; it knows nothing of that.",
            1: "Then memory would deliver 128 bytes in 600 ns to each SM: 21 GB/s in all.",
        },
        unit="loads",
        tolerance=0.02,
    ),
    Question(
        "06.sectors_stride",
        "A warp reads 32 elements of a column of a float32 matrix with 6 columns, in one request. The matrix "
        "begins with a sector. How many sectors?",
        24,
        "Neighbours lie 24 bytes apart, 32 of them span 31 x 24 + 4 = 748 bytes: 24 sectors, and no gap is "
        "wide "
        "enough to leave one out. From 8 columns on it is one sector for each lane, and it cannot get worse.",
        {
            4: "That is a row. Elements of a column lie a whole row apart: 24 bytes.",
            32: "That would need a step of 32 bytes or more. Here two neighbours may share a sector.",
            6: "Those are the columns. Find the bytes between the first and the last element.",
            23: "748 bytes begin a 24th sector.",
            23.375: "A sector is moved as a whole.",
            192: "A warp has 32 lanes, and each touches one sector.",
        },
        unit="sectors",
        tolerance=1e-9,
    ),
    Question(
        "06.occupancy",
        "An SM has room for 64 warps, 65,536 registers and 228 KiB of shared memory, 1 KiB of which the "
        "system takes in each block. A block has 256 threads with 80 registers each, and 48 KiB of shared "
        "memory. How many warps are resident?",
        24,
        "Registers: 256 x 80 = 20,480 for a block, so 3 blocks. Shared memory: 49 KiB, so 4. Warps: 8. The "
        "least of them counts: 3 blocks of 8 warps are 24 of 64. With 64 registers a thread it would be 4 "
        "blocks.",
        {
            64: "Registers and shared memory do not suffice for that.",
            32: "That is what shared memory allows, 4 blocks. The registers allow fewer.",
            25: "The registers of 25 warps are there, but a block comes as a whole: 8 warps or none.",
            25.6: "A block comes as a whole: 8 warps or none.",
            3: "Those are the blocks. Each has 8 warps.",
            8: "That is one block. There is room for more.",
            0.375: "That is the share of 64 warps; the question is how many.",
        },
        unit="warps",
        tolerance=1e-9,
    ),
    Question(
        "06.bank",
        "`tile = cuda.shared.array((32, 34), float32)`, padded by two columns. A warp reads a column, "
        "`tile[lane, 0]`. How many wavefronts does the request take?",
        2,
        "Lane t wants word 34t, bank 34t mod 32 = 2t mod 32: lanes t and t + 16 meet. Two columns of padding "
        "leave a conflict of two; an odd width has none, as it shares no factor with 32.",
        {
            1: "An odd width would do. 34 and 32 have a factor in common, and so some banks are never used.",
            32: "That is the width of 32, where all lanes want bank 0.",
            16: "That is how many banks are used. How many lanes share one of them?",
            34: "There are 32 lanes, so no request takes more than 32.",
            4: "A bank is 4 bytes wide; so is an element.",
        },
        unit="wavefronts",
        tolerance=1e-9,
    ),
    Question(
        "06.register_tile",
        "A thread keeps 64 sums in registers. For each k it loads a piece of a column of A and a piece of a "
        "row of B from shared memory. Which shape of its tile needs the fewest loads for each FMA?",
        "8 x 8",
        "8 + 8 loads for 64 FMAs, 0.25 for each. Work grows with the area, loads with half the perimeter, "
        "and the square has the smallest perimeter: the same reason as for tiles in shared memory, and for "
        "blocks in a cache.",
        {
            "64 x 1": "64 + 1 loads for 64 FMAs: more than one for each. Only the one number of B is shared.",
            "32 x 2": "32 + 2 loads for 64 FMAs: 0.53 for each. It goes on falling towards the square.",
            "16 x 4": "16 + 4 loads for 64 FMAs: 0.31 for each. Near, but the square is better.",
        },
        options=("64 x 1", "32 x 2", "16 x 4", "8 x 8"),
    ),
    Question(
        "06.launch",
        "Suppose a launch costs 5 us and the GPU computes 50 TFLOP/s. For which N does the product of two N "
        "x N matrices take as long as its launch?",
        500,
        "2 N^3 = 50e12 x 5e-6 = 2.5e8, so N = 500. Below that the launch takes longer than the work. The "
        "work falls with N^3: at N = 100 it is 125 times shorter than its launch, if it could fill the GPU "
        "at all.",
        {
            2.5e8 ** (1 / 3): "An FMA is two FLOP: 2 N^3, not N^3.",
            (2.5e8 / 2) ** 0.5: "The product of two matrices has 2 N^3 FLOP, not 2 N^2.",
            2.5e8**0.5: "N^2 is the number of elements. The product has 2 N^3 FLOP.",
            2.5e8: "That is the FLOP which fit into 5 us. Which N has so many?",
            1.25e8: "That is N^3.",
            5000: "A factor of 10 in N is a factor of 1000 in work: check the units of 5 us.",
        },
        tolerance=0.02,
    ),
)
