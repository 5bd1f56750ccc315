"""The same kernel with x and y exchanged: neighbouring lanes, neighbouring columns.

Adds to `cuda-naive`: coalescing. The lanes of a warp now differ in j, so they read 32 numbers of B that lie
side by side (4 sectors of 32 bytes) and write 32 of C in the same way; A[i, k] is one number for all of
them.
"""

from __future__ import annotations

from numba import cuda, float32

from course_lib.circles import cuda_launch
from course_lib.circles.cuda_launch import DeviceArray, GpuArray

SIDE = 32  # threads along each side of a block


@cuda.jit
def coalesced(A, B, C):
    """Set C (M, N) to A (M, K) times B (K, N), all float32; a warp computes 32 neighbours of a row."""
    i = cuda.blockIdx.y * SIDE + cuda.threadIdx.y
    j = cuda.blockIdx.x * SIDE + cuda.threadIdx.x  # the lanes of a warp: 32 columns
    if i < C.shape[0] and j < C.shape[1]:
        total = float32(0)
        k = 0
        while k < A.shape[1]:
            total += A[i, k] * B[k, j]  # A: one number for all lanes; B: 4 sectors for 32 numbers
            k += 1
        C[i, j] = total


def start(A: DeviceArray, B: DeviceArray, C: DeviceArray) -> None:
    """Start C (M, N) = A (M, K) @ B (K, N) on the GPU, all float32 and contiguous there."""
    cuda_launch.start(coalesced, (SIDE, SIDE), (SIDE, SIDE), A, B, C)


def matmul(A: GpuArray, B: GpuArray) -> GpuArray:
    """Return A @ B (M, N) for A (M, K), B (K, N), both float32, both NumPy arrays or both on the GPU."""
    return cuda_launch.product(start, A, B)
