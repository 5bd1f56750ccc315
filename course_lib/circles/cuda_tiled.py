"""Tiles of A and B in shared memory: a block fetches a number once and uses it 32 times.

Adds to `cuda-coalesced`: the block walks along k in steps of 32. At each step its 1,024 threads copy a 32 x
32 tile of A and one of B into shared memory, one number each, and wait for each other; then every thread
adds 32 products from there. The second barrier keeps the fast threads from overwriting what slow ones still
read.

             k ->                        A thread reads 2 numbers from global memory for 32 FMAs, where it
       +----+----+----+                  read 64. It still reads 64 from shared memory.
    i  |    |tile|    |  A
       +----+----+----+
"""

from __future__ import annotations

from numba import cuda, float32

from course_lib.circles import cuda_launch
from course_lib.circles.cuda_edges import element, put
from course_lib.circles.cuda_launch import DeviceArray, GpuArray

SIDE = 32  # of a tile and of a block of threads


@cuda.jit
def tiled(A, B, C):
    """Set C (M, N) to A (M, K) times B (K, N), all float32; a block computes 32 x 32 elements of C."""
    a = cuda.shared.array((SIDE, SIDE), float32)  # (rows, k)
    b = cuda.shared.array((SIDE, SIDE), float32)  # (k, columns)
    row, column = cuda.threadIdx.y, cuda.threadIdx.x
    i = cuda.blockIdx.y * SIDE + row
    j = cuda.blockIdx.x * SIDE + column
    total = float32(0)
    k0 = 0
    while k0 < A.shape[1]:
        a[row, column] = element(A, i, k0 + column)
        b[row, column] = element(B, k0 + row, j)
        cuda.syncthreads()  # the tiles are complete
        for k in range(SIDE):
            total += a[row, k] * b[k, column]
        cuda.syncthreads()  # nobody reads them any more
        k0 += SIDE
    put(C, i, j, total)


def start(A: DeviceArray, B: DeviceArray, C: DeviceArray) -> None:
    """Start C (M, N) = A (M, K) @ B (K, N) on the GPU, all float32 and contiguous there."""
    cuda_launch.start(tiled, (SIDE, SIDE), (SIDE, SIDE), A, B, C)


def matmul(A: GpuArray, B: GpuArray) -> GpuArray:
    """Return A @ B (M, N) for A (M, K), B (K, N), both float32, both NumPy arrays or both on the GPU."""
    return cuda_launch.product(start, A, B)
