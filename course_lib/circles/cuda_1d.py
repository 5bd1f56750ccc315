"""A thread computes TM elements of a column: what it has read from shared memory is used TM times.

Adds to `cuda-tiled`: a register tile in one direction. For each k a thread reads one number of B, keeps it
in a register and multiplies it with TM numbers of A: 9 loads from shared memory for 8 FMAs, where there
were 16.

        column of C                      The sums are a local array. After the compiler has unrolled the loops
           |  TM rows                    over TM every index is a constant, and a local array with constant
           v                             indices is a set of registers.

Thread numbers are unsigned from here on. A[-1] is Python's last element, so for a signed index the compiler
must add "if it is negative, add the length" to every access; an unsigned one cannot be negative.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from numba import cuda, float32, uint32

from course_lib.circles import cuda_launch
from course_lib.circles.cuda_edges import element, put
from course_lib.circles.cuda_launch import DeviceArray, GpuArray
from course_lib.circles.cuda_tuning import CudaTile, fastest

TILES = (
    CudaTile(BM=64, BN=64, BK=8, TM=8),
    CudaTile(BM=64, BN=64, BK=16, TM=8),
    CudaTile(BM=128, BN=64, BK=8, TM=16),
    CudaTile(BM=64, BN=32, BK=16, TM=8),
    CudaTile(BM=32, BN=32, BK=16, TM=4),
)


@functools.cache
def kernel(tile: CudaTile) -> Callable:
    """Return the kernel for one tile shape; what is known here is a constant for the compiler."""
    BM, BN, BK, TM = tile.BM, tile.BN, tile.BK, tile.TM
    THREADS = tile.threads  # BM * BN / TM

    @cuda.jit
    def cuda_1d(A, B, C):
        a = cuda.shared.array((BM, BK), float32)
        b = cuda.shared.array((BK, BN), float32)
        sums = cuda.local.array(TM, float32)
        t = uint32(cuda.threadIdx.x)
        row, column = t // BN * TM, t % BN  # of this thread's sums in the block's piece of C
        i0 = uint32(cuda.blockIdx.y) * BM
        j0 = uint32(cuda.blockIdx.x) * BN
        for i in range(TM):
            sums[i] = float32(0)
        k0 = 0
        while k0 < A.shape[1]:
            for step in range(BM * BK // THREADS):
                e = t + step * THREADS
                a[e // BK, e % BK] = element(A, i0 + e // BK, k0 + e % BK)
            for step in range(BK * BN // THREADS):
                e = t + step * THREADS
                b[e // BN, e % BN] = element(B, k0 + e // BN, j0 + e % BN)
            cuda.syncthreads()
            k = 0
            while k < BK:
                of_b = b[k, column]
                for i in range(TM):
                    sums[i] += a[row + i, k] * of_b
                k += 1
            cuda.syncthreads()
            k0 += BK
        for i in range(TM):
            put(C, i0 + row + i, j0 + column, sums[i])

    return cuda_1d


def start(A: DeviceArray, B: DeviceArray, C: DeviceArray, tile: CudaTile | None = None) -> None:
    """Start C (M, N) = A (M, K) @ B (K, N) on the GPU, all float32 and contiguous there.

    `tile` None: the one of TILES that was fastest here for matrices of about this size.
    """
    tile = tile or fastest("cuda-1d", TILES, start, A, B, C)
    cuda_launch.start(kernel(tile), (tile.BM, tile.BN), tile.threads, A, B, C)


def matmul(A: GpuArray, B: GpuArray) -> GpuArray:
    """Return A @ B (M, N) for A (M, K), B (K, N), both float32, both NumPy arrays or both on the GPU."""
    return cuda_launch.product(start, A, B)
