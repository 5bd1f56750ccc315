"""Wide accesses: 16 bytes in one instruction, between global memory, shared memory and registers.

Adds to `cuda-2d`: four numbers a load. Three things make it possible.

* The tile of A is stored transposed, (BK, BM): the TM numbers that a thread wants of it for one k are then
  neighbours, like the TN of B.
* The tiles in shared memory begin at a multiple of 16 bytes, and a thread's rows and columns are multiples
  of four. The compiler sees that and turns 16 loads into 4 (LDS.128).
* From and to global memory `cuda_wide` moves four at a time (LDG.E.128), where the rows of A, B and C begin
  at multiples of 16 bytes: K and N multiples of 4. For other shapes the same kernel is compiled with
  wide=False.

Bank conflicts remain. To write A transposed, the BK / 4 lanes that fetched one row of it write to one bank;
and the columns of B that the lanes of a warp read are still TN apart.
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
    CudaTile(BM=128, BN=128, BK=8, TM=8, TN=8),
    CudaTile(BM=128, BN=128, BK=16, TM=8, TN=8),
    CudaTile(BM=64, BN=64, BK=16, TM=8, TN=8),
    CudaTile(BM=64, BN=64, BK=16, TM=4, TN=4),
    CudaTile(BM=32, BN=32, BK=16, TM=4, TN=4),
)


@functools.cache
def kernel(tile: CudaTile, wide: bool = True) -> Callable:
    """Return the kernel for one tile shape; `wide`: K and N are multiples of 4, and so are the addresses."""
    BM, BN, BK, TM, TN = tile.BM, tile.BN, tile.BK, tile.TM, tile.TN
    THREADS = tile.threads
    A_COLUMNS, B_COLUMNS = BK // 4, BN // 4  # of a tile, counted in fours

    @cuda.jit
    def cuda_vectorised(A, B, C):
        a = cuda.shared.array((BK, BM), float32, alignment=16)  # transposed
        b = cuda.shared.array((BK, BN), float32, alignment=16)
        sums = cuda.local.array((TM, TN), float32)
        of_a = cuda.local.array(TM, float32)
        of_b = cuda.local.array(TN, float32)
        t = uint32(cuda.threadIdx.x)
        row = t // (BN // TN) * TM
        column = t % (BN // TN) * TN
        i0 = uint32(cuda.blockIdx.y) * BM
        j0 = uint32(cuda.blockIdx.x) * BN
        for i in range(TM):
            for j in range(TN):
                sums[i, j] = float32(0)
        k0 = 0
        while k0 < A.shape[1]:
            for step in range(BM * A_COLUMNS // THREADS):
                e = t + step * THREADS
                i = e // A_COLUMNS
                k = e % A_COLUMNS * 4
                x0, x1, x2, x3 = elements(A, i0 + i, k0 + k, wide)
                a[k, i] = x0
                a[k + 1, i] = x1
                a[k + 2, i] = x2
                a[k + 3, i] = x3
            for step in range(BK * B_COLUMNS // THREADS):
                e = t + step * THREADS
                k = e // B_COLUMNS
                j = e % B_COLUMNS * 4
                x0, x1, x2, x3 = elements(B, k0 + k, j0 + j, wide)
                b[k, j] = x0
                b[k, j + 1] = x1
                b[k, j + 2] = x2
                b[k, j + 3] = x3
            cuda.syncthreads()
            k = 0
            while k < BK:
                for i in range(TM):
                    of_a[i] = a[k, row + i]
                for j in range(TN):
                    of_b[j] = b[k, column + j]
                for i in range(TM):
                    for j in range(TN):
                        sums[i, j] += of_a[i] * of_b[j]
                k += 1
            cuda.syncthreads()
            k0 += BK
        for i in range(TM):
            for j in range(0, TN, 4):
                s0, s1, s2, s3 = sums[i, j], sums[i, j + 1], sums[i, j + 2], sums[i, j + 3]
                put_elements(C, i0 + row + i, j0 + column + j, s0, s1, s2, s3, wide)

    return cuda_vectorised


def start(A: DeviceArray, B: DeviceArray, C: DeviceArray, tile: CudaTile | None = None) -> None:
    """Start C (M, N) = A (M, K) @ B (K, N) on the GPU, all float32 and contiguous there.

    `tile` None: the one of TILES that was fastest here for matrices of about this size.
    """
    tile = tile or fastest("cuda-vectorised", TILES, start, A, B, C)
    chosen = kernel(tile, rows_are_wide(A, B, C))
    cuda_launch.start(chosen, (tile.BM, tile.BN), tile.threads, A, B, C)


def matmul(A: GpuArray, B: GpuArray) -> GpuArray:
    """Return A @ B (M, N) for A (M, K), B (K, N), both float32, both NumPy arrays or both on the GPU."""
    return cuda_launch.product(start, A, B)
