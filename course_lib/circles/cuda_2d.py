"""A thread computes a TM x TN tile of C: for each k an outer product of two short vectors in registers.

Adds to `cuda-1d`: a register tile in both directions. For each k a thread reads TM numbers of A and TN of B
from shared memory and uses each of them TN or TM times: 16 loads for 64 FMAs.

                  TN                     The micro-kernel of circle 4 is the same idea: there the tile was
             b: o o o o                  vectors of 16 numbers, here it is 32 lanes with a tile each.
          o  +---------+
     TM   o  |  sums   |                 The lanes of a warp read a[row + i, k] with rows TM apart and
      a:  o  |         |                 b[k, column + j] with columns TN apart: several lanes want different
          o  +---------+                 words of one bank, and wait for each other.
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
    CudaTile(BM=128, BN=128, BK=8, TM=8, TN=8),
    CudaTile(BM=128, BN=128, BK=16, TM=8, TN=8),
    CudaTile(BM=64, BN=64, BK=8, TM=8, TN=8),
    CudaTile(BM=64, BN=64, BK=16, TM=4, TN=4),
    CudaTile(BM=32, BN=32, BK=16, TM=4, TN=4),
)


@functools.cache
def kernel(tile: CudaTile) -> Callable:
    """Return the kernel for one tile shape; what is known here is a constant for the compiler."""
    BM, BN, BK, TM, TN = tile.BM, tile.BN, tile.BK, tile.TM, tile.TN
    THREADS = tile.threads  # BM * BN / (TM * TN)

    @cuda.jit
    def cuda_2d(A, B, C):
        a = cuda.shared.array((BM, BK), float32)
        b = cuda.shared.array((BK, BN), float32)
        sums = cuda.local.array((TM, TN), float32)
        of_a = cuda.local.array(TM, float32)
        of_b = cuda.local.array(TN, float32)
        t = uint32(cuda.threadIdx.x)
        row = t // (BN // TN) * TM  # of this thread's tile in the block's piece of C
        column = t % (BN // TN) * TN
        i0 = uint32(cuda.blockIdx.y) * BM
        j0 = uint32(cuda.blockIdx.x) * BN
        for i in range(TM):
            for j in range(TN):
                sums[i, j] = float32(0)
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
                for i in range(TM):
                    of_a[i] = a[row + i, k]
                for j in range(TN):
                    of_b[j] = b[k, column + j]
                for i in range(TM):
                    for j in range(TN):
                        sums[i, j] += of_a[i] * of_b[j]
                k += 1
            cuda.syncthreads()
            k0 += BK
        for i in range(TM):
            for j in range(TN):
                put(C, i0 + row + i, j0 + column + j, sums[i, j])

    return cuda_2d


def start(A: DeviceArray, B: DeviceArray, C: DeviceArray, tile: CudaTile | None = None) -> None:
    """Start C (M, N) = A (M, K) @ B (K, N) on the GPU, all float32 and contiguous there.

    `tile` None: the one of TILES that was fastest here for matrices of about this size.
    """
    tile = tile or fastest("cuda-2d", TILES, start, A, B, C)
    cuda_launch.start(kernel(tile), (tile.BM, tile.BN), tile.threads, A, B, C)


def matmul(A: GpuArray, B: GpuArray) -> GpuArray:
    """Return A @ B (M, N) for A (M, K), B (K, N), both float32, both NumPy arrays or both on the GPU."""
    return cuda_launch.product(start, A, B)
