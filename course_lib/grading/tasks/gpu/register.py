"""Task 06.register: a thread computes two elements of C, and a number of B serves both from a register."""

from __future__ import annotations

import numpy as np

from course_lib.grading.compare import close_product
from course_lib.grading.launch import Launch
from course_lib.grading.limits import BusiestWarp, SectorsPerRequest, SharedRequests, WavefrontsPerRequest
from course_lib.grading.rules_gpu import KernelOnly
from course_lib.grading.task import Mutant, Task
from course_lib.grading.tasks.gpu import matmul
from course_lib.grading.tasks.gpu.matmul import READS, REQUEST, SIDE, SLIPS, shapes, steps
from course_lib.grading.tasks.gpu.shared import WARP, kernel, pieces

ROWS = 8  # of threads in a block: half of the tile's
WARPS = SIDE * ROWS // WARP

SOLUTION = kernel("""
    @cuda.jit
    def two_rows(A, B, C):
        a = cuda.shared.array((16, 16), float32)
        b = cuda.shared.array((16, 16), float32)
        r, c = cuda.threadIdx.y, cuda.threadIdx.x
        i, j = cuda.blockIdx.y * 16 + r, cuda.blockIdx.x * 16 + c
        low, high = float32(0), float32(0)
        for k0 in range(0, A.shape[1], 16):
            for s in range(0, 16, 8):
                a[r + s, c] = A[i + s, k0 + c] if i + s < A.shape[0] and k0 + c < A.shape[1] else float32(0)
                b[r + s, c] = B[k0 + r + s, j] if k0 + r + s < B.shape[0] and j < B.shape[1] else float32(0)
            cuda.syncthreads()
            for k in range(16):
                of_b = b[k, c]
                low += a[r, k] * of_b
                high += a[r + 8, k] * of_b
            cuda.syncthreads()
        if i < C.shape[0] and j < C.shape[1]:
            C[i, j] = low
        if i + 8 < C.shape[0] and j < C.shape[1]:
            C[i + 8, j] = high
""")


def product(A: np.ndarray, B: np.ndarray, C: np.ndarray) -> np.ndarray:
    """Return A @ B (M, N) for A (M, K), B (K, N), summed in float64, as float32."""
    return matmul.product(A, B, C)


def most_requests(A: np.ndarray, B: np.ndarray, C: np.ndarray) -> int:
    """Return the requests to shared memory with a register tile of two rows.

    In each step a warp (of four) stores 2 + 2 times to fill the tiles, or twice as often if it writes zeros
    first, and then loads, for each of 16 k, one number of B and two of A: 4 * (8 + 16 * 3) = 224 for 4 * 32
    FMA instructions. Without the register it loads four numbers for two FMAs: 272 and more. A number that
    comes from another lane by a shuffle counts as one that is loaded.
    """
    return WARPS * (2 * 2 * SIDE // ROWS + SIDE * 3) * steps(A, B, C)


LIMITS = (
    SectorsPerRequest(REQUEST),
    READS,
    WavefrontsPerRequest(1),
    SharedRequests(
        most_requests,
        "for two FMAs three loads (or shuffles), two of A's tile and one of B's",
    ),
    BusiestWarp(
        lambda A, B, C: 72 * pieces(A.shape[1], SIDE) + 4,
        "56 for each step do, if all four warps of a block fill the tiles and multiply",
    ),
)
_LOOP = """\
            of_b = b[k, c]
            low += a[r, k] * of_b
            high += a[r + 8, k] * of_b
"""

_ACROSS = """
    @cuda.jit
    def two_rows(A, B, C):
        a = cuda.shared.array((16, 17), float32)
        b = cuda.shared.array((16, 17), float32)
        r, c = cuda.threadIdx.x, cuda.threadIdx.y
        i, j = cuda.blockIdx.y * 16 + r, cuda.blockIdx.x * 16 + c
        left, right = float32(0), float32(0)
        for k0 in range(0, A.shape[1], 16):
            for s in range(0, 16, 8):
                inside = i < A.shape[0] and k0 + c + s < A.shape[1]
                a[r, c + s] = A[i, k0 + c + s] if inside else float32(0)
                inside = k0 + r < B.shape[0] and j + s < B.shape[1]
                b[r, c + s] = B[k0 + r, j + s] if inside else float32(0)
            cuda.syncthreads()
            for k in range(16):
                of_a = a[r, k]
                left += of_a * b[k, c]
                right += of_a * b[k, c + 8]
            cuda.syncthreads()
        if i < C.shape[0] and j < C.shape[1]:
            C[i, j] = left
        if i < C.shape[0] and j + 8 < C.shape[1]:
            C[i, j + 8] = right
"""

TASK = Task(
    id="06.register",
    title="Two for one",
    kind="fast",
    points=2,
    difficulty=4,
    minutes=15,
    good_for="raising FMAs per load once more, the step that each kernel higher up the ladder repeats",
    entry="two_rows",
    cases=shapes,
    reference=product,
    comparison=close_product(),
    rules=(KernelOnly(),),
    launch=Launch(
        grid=lambda A, B, C: (pieces(B.shape[1], SIDE), pieces(A.shape[0], SIDE)),
        block=lambda A, B, C: (SIDE, ROWS),
        result=2,
        limits=LIMITS,
    ),
    lookalikes=SLIPS,
    hints=(
        "A thread has C[i, j] and C[i + 8, j]. Which numbers do their sums share at step k?",
        "B[k, j]. Read it from the tile into a variable and use it twice. With half the threads each fills "
        "two places of each tile: rows r and r + 8, with guards of their own. So has C.",
        "of_b = b[k, c]; low += a[r, k] * of_b; high += a[r + 8, k] * of_b. At the end store low if i < M "
        "and high if i + 8 < M (and j < N).",
    ),
    mutants=(
        Mutant(
            "the kernel of task 8", matmul.SOLUTION.replace("tiled", "two_rows"), ("Read before anything",)
        ),
        Mutant(
            "no register",
            SOLUTION.replace(
                _LOOP, "            low += a[r, k] * b[k, c]\n            high += a[r + 8, k] * b[k, c]\n"
            ),
            ("for two FMAs three loads",),
        ),
        Mutant(
            "one after the other",
            SOLUTION.replace(
                _LOOP,
                "            low += a[r, k] * b[k, c]\n        for k in range(16):\n"
                "            high += a[r + 8, k] * b[k, c]\n",
            ),
            ("for two FMAs three loads",),
        ),
        Mutant(
            "A by shuffles, B twice",
            SOLUTION.replace(
                "        for k in range(16):\n" + _LOOP,
                "        low_a, high_a = a[r, c], a[r + 8, c]\n        for k in range(16):\n"
                "            low += cuda.shfl_sync(0xFFFFFFFF, low_a, r % 2 * 16 + k) * b[k, c]\n"
                "            high += cuda.shfl_sync(0xFFFFFFFF, high_a, r % 2 * 16 + k) * b[k, c]\n",
            ),
            ("for two FMAs three loads", "and shuffles"),
        ),
        Mutant(
            "half of the threads have four rows each",
            kernel("""
                @cuda.jit
                def two_rows(A, B, C):
                    a = cuda.shared.array((16, 16), float32)
                    b = cuda.shared.array((16, 16), float32)
                    sums = cuda.local.array(4, float32)
                    r, c = cuda.threadIdx.y, cuda.threadIdx.x
                    i, j = cuda.blockIdx.y * 16 + r, cuda.blockIdx.x * 16 + c
                    rows = 4 if r < 4 else 0
                    for n in range(rows):
                        sums[n] = 0
                    for k0 in range(0, A.shape[1], 16):
                        for n in range(rows):
                            s = 4 * n
                            in_a = i + s < A.shape[0] and k0 + c < A.shape[1]
                            in_b = k0 + r + s < B.shape[0] and j < B.shape[1]
                            a[r + s, c] = A[i + s, k0 + c] if in_a else float32(0)
                            b[r + s, c] = B[k0 + r + s, j] if in_b else float32(0)
                        cuda.syncthreads()
                        for k in range(4 * rows):
                            of_b = b[k, c]
                            for n in range(4):
                                sums[n] += a[r + 4 * n, k] * of_b
                        cuda.syncthreads()
                    for n in range(rows):
                        if i + 4 * n < C.shape[0] and j < C.shape[1]:
                            C[i + 4 * n, j] = sums[n]
            """),
            ("if all four warps of a block",),
        ),
        Mutant("twice the same row", SOLUTION.replace("high += a[r + 8, k]", "high += a[r, k]"), ("wrong",)),
        Mutant(
            "half of the tiles is filled",
            SOLUTION.replace("range(0, 16, 8)", "range(0, 8, 8)"),
            ("Read before anything was written",),
        ),
        Mutant(
            "one guard for both rows",
            SOLUTION.replace(
                "    if i + 8 < C.shape[0] and j < C.shape[1]:\n        C[i + 8", "        C[i + 8"
            ),
            ("Outside of the array",),
        ),
        Mutant(
            "no tiles",
            kernel("""
                @cuda.jit
                def two_rows(A, B, C):
                    i, j = cuda.blockIdx.y * 16 + cuda.threadIdx.y, cuda.blockIdx.x * 16 + cuda.threadIdx.x
                    for row in range(i, min(i + 16, C.shape[0]), 8):
                        total = float32(0)
                        if j < C.shape[1]:
                            for k in range(A.shape[1]):
                                total += A[row, k] * B[k, j]
                            C[row, j] = total
            """),
            ("a block reads each number of its tiles once",),
        ),
        Mutant(
            "x is the row, of two columns",
            kernel(_ACROSS),
            ("sectors for each request",),
        ),
        Mutant(
            "A's tile is kept turned",
            SOLUTION.replace("a[r + s, c] =", "a[c, r + s] =")
            .replace("a[r, k]", "a[k, r]")
            .replace("a[r + 8, k]", "a[k, r + 8]"),
            ("wavefronts",),
        ),
        Mutant(
            "neighbouring rows",
            SOLUTION.replace("* 16 + r,", "* 16 + 2 * r,").replace(
                "high += a[r + 8, k]", "high += a[r + 1, k]"
            ),
            ("Data race", "C[i + 8, j] = high"),
        ),
        Mutant(
            "second barrier missing",
            SOLUTION.replace(_LOOP + "        cuda.syncthreads()\n", _LOOP),
            ("Data race",),
        ),
        Mutant(
            "the second row is not guarded in A",
            SOLUTION.replace("if i + s < A.shape[0]", "if i < A.shape[0]"),
            ("Outside of the array",),
        ),
        Mutant(
            "the upper row alone",
            SOLUTION.replace(
                "    if i + 8 < C.shape[0] and j < C.shape[1]:\n        C[i + 8, j] = high\n", ""
            ),
            ("No thread wrote",),
        ),
        Mutant(
            "one warp, by shuffles",
            matmul.ONE_WARP.replace("tiled", "two_rows"),
            ("if all four warps", "and other lanes"),
        ),
    ),
)
