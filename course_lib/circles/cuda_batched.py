"""A whole batch in one launch: the third direction of the grid is the batch.

Adds to `cuda-tiled`: blockIdx.z. A launch costs microseconds, and a head of attention fills only a few of a
GPU's multiprocessors: 8 heads one after the other are 8 launches, each of which leaves most of the GPU idle.
In one launch the blocks of all heads run side by side, and no matrix waits for the one before it.

Tiles are 16 x 16, as small matrices have no more blocks to give. What a tile sticks out beyond its matrix
counts as zero: padding costs no memory, and no tile reaches into the next matrix of the batch.
"""

from __future__ import annotations

from numba import cuda, float32

from course_lib.circles import cuda_launch
from course_lib.circles.cuda_edges import element, put
from course_lib.circles.cuda_launch import DeviceArray, GpuArray

SIDE = 16  # of a tile and of a block of threads


@cuda.jit
def batched(A, B, C):
    """Set C (batch, M, N) to A (batch, M, K) times B (batch, K, N), all float32; 16 x 16 elements a block."""
    a = cuda.shared.array((SIDE, SIDE), float32)  # (rows, k)
    b = cuda.shared.array((SIDE, SIDE), float32)  # (k, columns)
    ours, theirs = A[cuda.blockIdx.z], B[cuda.blockIdx.z]  # (M, K), (K, N)
    row, column = cuda.threadIdx.y, cuda.threadIdx.x
    i = cuda.blockIdx.y * SIDE + row
    j = cuda.blockIdx.x * SIDE + column
    total = float32(0)
    k0 = 0
    while k0 < A.shape[2]:
        a[row, column] = element(ours, i, k0 + column)
        b[row, column] = element(theirs, k0 + row, j)
        cuda.syncthreads()  # the tiles are complete
        for k in range(SIDE):
            total += a[row, k] * b[k, column]
        cuda.syncthreads()  # nobody reads them any more
        k0 += SIDE
    put(C[cuda.blockIdx.z], i, j, total)


def start(A: DeviceArray, B: DeviceArray, C: DeviceArray) -> None:
    """Start C (batch, M, N) = A (batch, M, K) @ B (batch, K, N) on the GPU, all float32 there."""
    cuda_launch.start_batched(batched, (SIDE, SIDE), (SIDE, SIDE), A, B, C)


def matmul(A: GpuArray, B: GpuArray) -> GpuArray:
    """Return A @ B (batch, M, N) for A (batch, M, K), B (batch, K, N), both NumPy arrays or both on the GPU.

    Both float32.
    """
    return cuda_launch.product(start, A, B)
