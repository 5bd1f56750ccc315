"""The first kernel: one thread for each element of C.

The two outer loops of circle 1 are gone: what was "for each i, for each j" is now a grid of threads, and
every thread runs the loop over k for its own element. A block is 32 x 32 threads; thread (x, y) of a block
computes row x and column y of the block's piece of C.

That choice is the mistake this rung is about. The 32 lanes of a warp differ in x, so they read 32 different
rows of A: 32 numbers that lie K apart, each in a 32-byte sector of its own.

In this circle the loops along k are while-loops. Numba's `range` keeps counters of its own, which the
compiler for GPUs does not see through: with `for k in range(K)` four turns of the loop below are 137
instructions, so they are 29 (numba-cuda 0.30.4, compute capability 9.0; tests/unit/test_device_code.py
compiles both).

The order of the ideas from here to `cuda-warptiled` is that of S. Boehm, "How to optimize a CUDA matmul
kernel for cuBLAS-like performance" (2022, siboehm.com/articles/22/CUDA-MMM).
"""

from __future__ import annotations

from numba import cuda, float32

from course_lib.circles import cuda_launch
from course_lib.circles.cuda_launch import DeviceArray, GpuArray

SIDE = 32  # threads along each side of a block


@cuda.jit
def naive(A, B, C):
    """Set C (M, N) to A (M, K) times B (K, N), all float32; one thread per element."""
    i = cuda.blockIdx.y * SIDE + cuda.threadIdx.x  # the lanes of a warp: 32 rows
    j = cuda.blockIdx.x * SIDE + cuda.threadIdx.y
    if i < C.shape[0] and j < C.shape[1]:
        total = float32(0)
        k = 0
        while k < A.shape[1]:
            total += A[i, k] * B[k, j]  # A: 32 sectors for 32 numbers; B: one number for all lanes
            k += 1
        C[i, j] = total


def start(A: DeviceArray, B: DeviceArray, C: DeviceArray) -> None:
    """Start C (M, N) = A (M, K) @ B (K, N) on the GPU, all float32 and contiguous there."""
    cuda_launch.start(naive, (SIDE, SIDE), (SIDE, SIDE), A, B, C)


def matmul(A: GpuArray, B: GpuArray) -> GpuArray:
    """Return A @ B (M, N) for A (M, K), B (K, N), both float32, both NumPy arrays or both on the GPU."""
    return cuda_launch.product(start, A, B)
