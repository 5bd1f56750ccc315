"""Kernels whose steps are shown in a browser: with tiles, with a bank conflict, and with a costly stride."""

from __future__ import annotations

import numpy as np
from numba import cuda, float32


@cuda.jit
def tiled(A, B, C):
    a = cuda.shared.array((32, 32), float32)
    b = cuda.shared.array((32, 32), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    j, i = cuda.grid(2)
    total = float32(0)
    for first in range(0, A.shape[1], 32):
        a[y, x] = A[i, first + x] if i < A.shape[0] and first + x < A.shape[1] else float32(0)
        b[y, x] = B[first + y, j] if first + y < B.shape[0] and j < B.shape[1] else float32(0)
        cuda.syncthreads()
        for k in range(32):
            total += a[y, k] * b[k, x]
        cuda.syncthreads()
    if i < C.shape[0] and j < C.shape[1]:
        C[i, j] = total


@cuda.jit
def transpose(A, B):
    s = cuda.shared.array((32, 32), float32)
    i, j = cuda.threadIdx.y, cuda.threadIdx.x
    s[i, j] = A[i, j]
    cuda.syncthreads()
    B[i, j] = s[j, i]


@cuda.jit
def strided(x, out, stride):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i * stride]


def zeros(*shape):
    return np.zeros(shape, np.float32)


LAUNCHES = {
    "tiled": (tiled, (3, 4), (32, 32), zeros(100, 90), zeros(90, 70), zeros(100, 70)),
    "transpose": (transpose, 1, (32, 32), zeros(32, 32), zeros(32, 32)),
    "strided": (strided, 40, 256, zeros(10_240 * 700), zeros(10_240), 700),
}
