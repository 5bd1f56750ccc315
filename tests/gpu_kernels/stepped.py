"""Kernels for the time slider: loads that coalesce or do not, banks that conflict, an atomic, a hazard."""

import numpy as np
from numba import cuda, float32, float64

TILE = 32


@cuda.jit
def tiled(A, B, C):
    a = cuda.shared.array((TILE, TILE), float32)
    b = cuda.shared.array((TILE, TILE), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    j, i = cuda.grid(2)
    total = float32(0)
    for first in range(0, A.shape[1], TILE):
        a[y, x] = A[i, first + x] if i < A.shape[0] and first + x < A.shape[1] else float32(0)
        b[y, x] = B[first + y, j] if first + y < B.shape[0] and j < B.shape[1] else float32(0)
        cuda.syncthreads()
        for k in range(TILE):
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


@cuda.jit
def wide(out, stride):
    s = cuda.shared.array(1024, float64)
    i = cuda.threadIdx.x
    for k in range(i, 1024, 32):
        s[k] = k
    cuda.syncthreads()
    out[i] = s[i * stride]


@cuda.jit
def histogram(x, counts):
    i = cuda.grid(1)
    cuda.atomic.add(counts, x[i], 1)


@cuda.jit
def add_one(x, y):
    i = cuda.grid(1)
    x[i] += 1
    y[i] += x[i]


@cuda.jit
def cube(A, out):
    x, y, z = cuda.grid(3)
    out[z, y, x] = A[x, y, z]


@cuda.jit
def nothing(x):
    i = cuda.grid(1)
    if i < 0:
        x[i] = 0


def zeros(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


LAUNCHES = {
    "tiled": (tiled, (2, 2), (32, 32), zeros(40, 40), zeros(40, 37), zeros(40, 37)),
    "transpose": (transpose, 1, (32, 32), zeros(32, 32), zeros(32, 32)),
    "strided": (strided, 2, 64, zeros(90_000), zeros(128), 700),
    "bytes": (strided, 1, 32, zeros(1000, dtype=np.uint8), zeros(32, dtype=np.uint8), 3),
    "wide": (wide, 1, 32, zeros(32, dtype=np.float64), 2),
    "complex": (strided, 1, 32, zeros(100, dtype=np.complex128), zeros(32, dtype=np.complex128), 2),
    "cube": (cube, (4, 4, 4), (8, 4, 4), zeros(32, 16, 16), zeros(16, 16, 32)),
    "reversed": (strided, 1, 32, zeros(200)[::-2], zeros(32), 3),
    "histogram": (histogram, 1, 32, np.arange(32, dtype=np.int32) % 3, zeros(3, dtype=np.int32)),
}
