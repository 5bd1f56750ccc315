"""Copies through shared memory, static and dynamic in slices."""

# Repository: https://github.com/numba/numba
# Path: numba/cuda/tests/cudapy/test_sm.py
# Version: release 0.68.1 (commit not recorded in the package)
# Licence: BSD-2-Clause, Copyright (c) 2012, Anaconda, Inc. (full text: licences/numba.txt)
# Changed: indentation and imports; nthreads and dt, locals of the tests, are globals
# ruff: noqa
# fmt: off

from numba import cuda, float32, int32

# There taken from the test's array.
nthreads = 16
dt = float32


@cuda.jit
def use_sm_chunk_copy(x, y):
    sm = cuda.shared.array(nthreads, dtype=dt)

    tx = cuda.threadIdx.x
    bx = cuda.blockIdx.x
    bd = cuda.blockDim.x

    # Load this block's chunk into shared
    i = bx * bd + tx
    if i < len(x):
        sm[tx] = x[i]

    cuda.syncthreads()

    # One thread per block writes this block's chunk
    if tx == 0:
        for j in range(nthreads):
            y[bd * bx + j] = sm[j]


@cuda.jit
def sm_slice_copy(x, y, chunksize):
    dynsmem = cuda.shared.array(0, dtype=dt)
    sm1 = dynsmem[0:chunksize]
    sm2 = dynsmem[chunksize:chunksize * 2]

    tx = cuda.threadIdx.x
    bx = cuda.blockIdx.x
    bd = cuda.blockDim.x

    # load this block's chunk into shared
    i = bx * bd + tx
    if i < len(x):
        if tx < chunksize:
            sm1[tx] = x[i]
        else:
            sm2[tx - chunksize] = x[i]

    cuda.syncthreads()

    # one thread per block writes this block's chunk
    if tx == 0:
        for j in range(chunksize):
            y[bd * bx + j] = sm1[j]
            y[bd * bx + j + chunksize] = sm2[j]
