"""Transposition through a padded shared tile."""

# Repository: https://github.com/numba/numba
# Path: numba/cuda/kernels/transpose.py
# Version: release 0.68.1 (commit not recorded in the package)
# Licence: BSD-2-Clause, Copyright (c) 2012, Anaconda, Inc. (full text: licences/numba.txt)
# Changed: indentation and imports; tile_shape and dt, locals there, are globals for an 8 x 8 tile
# ruff: noqa
# fmt: off

from numba import cuda, float32

# There computed from the device and the array: tile_height x (tile_width + 1), dt the array's type.
tile_shape = (8, 9)
dt = float32


@cuda.jit
def kernel(input, output):

    tile = cuda.shared.array(shape=tile_shape, dtype=dt)

    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    bx = cuda.blockIdx.x * cuda.blockDim.x
    by = cuda.blockIdx.y * cuda.blockDim.y
    x = by + tx
    y = bx + ty

    if by + ty < input.shape[0] and bx + tx < input.shape[1]:
        tile[ty, tx] = input[by + ty, bx + tx]
    cuda.syncthreads()
    if y < output.shape[0] and x < output.shape[1]:
        output[y, x] = tile[tx, ty]
