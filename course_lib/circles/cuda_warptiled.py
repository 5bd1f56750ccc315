"""Warp tiles and two buffers: the sixth circle's best kernel.

Adds to `cuda-vectorised`: a level between the block and the thread. Each warp owns a WM x WN piece of the
block's tile, and its 32 lanes lie in it as 4 x 8, each with four neighbouring rows and columns at a time:

        columns ->   lane  0 | lane  2 | ... | lane 14 | ...
        4 rows           ----+---------+-----+---------+
                     lane  1 | lane  3 | ... | lane 15 | ...
                         ----+---------+-----+---------+
                     lane 16 | ...

So for one k the eight lanes of a row read 128 consecutive bytes of B, and no two want different words of one
bank. The same again lies WN / 2 further right: a thread's tile is TM / 4 by TN / 4 such pieces of 4 x 4.

The lanes go down in pairs before they go right. A load of 16 bytes fetches 512 bytes for a warp, which takes
four turns at the banks' 128 bytes; but two turns where lanes n and n + 1, or n and n + 2, want the same
numbers (G. Smith of NVIDIA, forums.developer.nvidia.com/t/77228). With pairs that is true of A and of B;
row by row it would be true of A alone. CUTLASS lays its lanes out in the same way.

There are two buffers for the tiles. While the block computes from one, the numbers of the next tiles are on
their way into registers; then they are written into the other buffer. So global memory has the time of a
whole tile to answer, and one barrier a tile is enough.

The tile of A is written transposed. A warp fetches 8 numbers of 16 rows, so it writes 2 x 16 numbers at a
time, into two rows 4 apart; those rows are 4 numbers longer than needed (PAD), so they begin 16 banks apart.

Eight steps along k are written out, as twice four, as twice two. The compiler leaves a loop over so much code
as it is; then a step is 89 instructions for 64 FFMAs, and written out it is 70 at most (numba-cuda 0.30.4,
compute capability 9.0, 8 x 8 a thread).
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from numba import cuda, float32, uint32

from course_lib.circles import cuda_launch
from course_lib.circles.cuda_launch import DeviceArray, GpuArray, rows_are_wide
from course_lib.circles.cuda_tuning import CudaTile, fastest
from course_lib.circles.cuda_wide import elements, put_elements

TILES = (
    CudaTile(BM=128, BN=128, BK=8, TM=8, TN=8, blocks=2),
    CudaTile(BM=128, BN=128, BK=16, TM=16, TN=8),
    CudaTile(BM=256, BN=128, BK=8, TM=16, TN=8),
    CudaTile(BM=64, BN=128, BK=16, TM=8, TN=8),
    CudaTile(BM=64, BN=64, BK=16, TM=8, TN=4),
    CudaTile(BM=32, BN=64, BK=16, TM=4, TN=4),
)
LANES = (4, 8)  # rows and columns of lanes in a warp's tile
PAD = 4


@functools.cache
def kernel(tile: CudaTile, wide: bool = True) -> Callable:
    """Return the kernel for one tile shape; `wide`: K and N are multiples of 4, and so are the addresses."""
    BM, BN, BK, TM, TN = tile.BM, tile.BN, tile.BK, tile.TM, tile.TN
    THREADS = tile.threads
    DOWN, ACROSS = 4 * LANES[0], 4 * LANES[1]  # rows and columns that a warp covers with pieces of 4 x 4
    WM, WN = TM * LANES[0], TN * LANES[1]
    A_STEP, B_STEP = THREADS // 2, THREADS // (BN // 4)  # rows that all threads fetch at a time
    A_FETCHES, B_FETCHES = BM * BK // 8 // A_STEP, BK // B_STEP
    A_WIDTH = BM + PAD

    @cuda.jit(device=True)
    def add_products(sums, a, b, buffer, k, row, column):
        """Add the outer product of a thread's numbers of a[buffer, k] and b[buffer, k]."""
        of_a = cuda.local.array(TM, float32)
        of_b = cuda.local.array(TN, float32)
        for piece in range(TM // 4):
            for n in range(4):
                of_a[4 * piece + n] = a[buffer, k, row + piece * DOWN + n]
        for piece in range(TN // 4):
            for n in range(4):
                of_b[4 * piece + n] = b[buffer, k, column + piece * ACROSS + n]
        for i in range(TM):
            for j in range(TN):
                sums[i, j] += of_a[i] * of_b[j]

    @cuda.jit(device=True)
    def add_two(sums, a, b, buffer, k, row, column):
        add_products(sums, a, b, buffer, k, row, column)
        add_products(sums, a, b, buffer, k + 1, row, column)

    @cuda.jit(device=True)
    def add_four(sums, a, b, buffer, k, row, column):
        add_two(sums, a, b, buffer, k, row, column)
        add_two(sums, a, b, buffer, k + 2, row, column)

    @cuda.jit(device=True)
    def add_eight(sums, a, b, buffer, k, row, column):
        """Add the products of eight steps along k."""
        add_four(sums, a, b, buffer, k, row, column)
        add_four(sums, a, b, buffer, k + 4, row, column)

    @cuda.jit(launch_bounds=(THREADS, tile.blocks))
    def cuda_warptiled(A, B, C):
        a = cuda.shared.array((2, BK, A_WIDTH), float32, alignment=16)  # transposed
        b = cuda.shared.array((2, BK, BN), float32, alignment=16)
        sums = cuda.local.array((TM, TN), float32)
        next_a = cuda.local.array((A_FETCHES, 4), float32)
        next_b = cuda.local.array((B_FETCHES, 4), float32)
        t = uint32(cuda.threadIdx.x)
        warp, lane = t // 32, t % 32
        row = warp // (BN // WN) * WM + (lane // 16 * 2 + lane % 2) * 4
        column = warp % (BN // WN) * WN + lane // 2 % LANES[1] * 4
        i0 = uint32(cuda.blockIdx.y) * BM
        j0 = uint32(cuda.blockIdx.x) * BN
        a_row = t // 2 % BM  # what this thread fetches
        a_column = t // 2 // BM * 8 + t % 2 * 4
        b_row, b_column = t // (BN // 4), t % (BN // 4) * 4
        for i in range(TM):
            for j in range(TN):
                sums[i, j] = float32(0)
        buffer = uint32(1)
        k0 = 0
        while k0 < A.shape[1] + BK:  # one turn more than there are tiles: fetch k0, compute k0 - BK
            for f in range(A_FETCHES):
                down, right = f * A_STEP % BM, f * A_STEP // BM * 8
                x0, x1, x2, x3 = elements(A, i0 + a_row + down, k0 + a_column + right, wide)
                next_a[f, 0], next_a[f, 1], next_a[f, 2], next_a[f, 3] = x0, x1, x2, x3
            for f in range(B_FETCHES):
                x0, x1, x2, x3 = elements(B, k0 + b_row + f * B_STEP, j0 + b_column, wide)
                next_b[f, 0], next_b[f, 1], next_b[f, 2], next_b[f, 3] = x0, x1, x2, x3
            if k0 > 0:
                k = 0
                while k < BK:
                    add_eight(sums, a, b, buffer, k, row, column)
                    k += 8
            buffer = uint32(1 - buffer)
            for f in range(A_FETCHES):
                down, right = f * A_STEP % BM, f * A_STEP // BM * 8
                for n in range(4):
                    a[buffer, a_column + right + n, a_row + down] = next_a[f, n]
            for f in range(B_FETCHES):
                for n in range(4):
                    b[buffer, b_row + f * B_STEP, b_column + n] = next_b[f, n]
            cuda.syncthreads()
            k0 += BK
        for p in range(TM // 4):
            for n in range(4):
                for q in range(TN // 4):
                    i, j = 4 * p + n, 4 * q
                    s0, s1, s2, s3 = sums[i, j], sums[i, j + 1], sums[i, j + 2], sums[i, j + 3]
                    y, x = i0 + row + p * DOWN + n, j0 + column + q * ACROSS
                    put_elements(C, y, x, s0, s1, s2, s3, wide)

    return cuda_warptiled


def start(A: DeviceArray, B: DeviceArray, C: DeviceArray, tile: CudaTile | None = None) -> None:
    """Start C (M, N) = A (M, K) @ B (K, N) on the GPU, all float32 and contiguous there.

    `tile` None: the one of TILES that was fastest here for matrices of about this size.
    """
    tile = tile or fastest("cuda-warptiled", TILES, start, A, B, C)
    chosen = kernel(tile, rows_are_wide(A, B, C))
    cuda_launch.start(chosen, (tile.BM, tile.BN), tile.threads, A, B, C)


def matmul(A: GpuArray, B: GpuArray) -> GpuArray:
    """Return A @ B (M, N) for A (M, K), B (K, N), both float32, both NumPy arrays or both on the GPU."""
    return cuda_launch.product(start, A, B)
