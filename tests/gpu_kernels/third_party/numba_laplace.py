"""Jacobi relaxation of a 5-point stencil with a block-wide maximum in shared memory."""

# Repository: https://github.com/numba/numba
# Path: numba/cuda/tests/cudapy/test_laplace.py
# Version: release 0.68.1 (commit not recorded in the package)
# Licence: BSD-2-Clause, Copyright (c) 2012, Anaconda, Inc. (full text: licences/numba.txt)
# Changed: indentation and imports; decorators have no signature (one would compile at import); globals: those of the simulator branch
# ruff: noqa
# fmt: off

from numba import cuda, float64

tpb = 4
SM_SIZE = tpb, tpb


@cuda.jit(device=True, inline=True)
def get_max(a, b):
    if a > b:
        return a
    else:
        return b


@cuda.jit
def jocabi_relax_core(A, Anew, error):
    err_sm = cuda.shared.array(SM_SIZE, dtype=float64)

    ty = cuda.threadIdx.x
    tx = cuda.threadIdx.y
    bx = cuda.blockIdx.x
    by = cuda.blockIdx.y

    n = A.shape[0]
    m = A.shape[1]

    i, j = cuda.grid(2)

    err_sm[ty, tx] = 0
    if j >= 1 and j < n - 1 and i >= 1 and i < m - 1:
        Anew[j, i] = 0.25 * ( A[j, i + 1] + A[j, i - 1]
                              + A[j - 1, i] + A[j + 1, i])
        err_sm[ty, tx] = Anew[j, i] - A[j, i]

    cuda.syncthreads()

    # max-reduce err_sm vertically
    t = tpb // 2
    while t > 0:
        if ty < t:
            err_sm[ty, tx] = get_max(err_sm[ty, tx], err_sm[ty + t, tx])
        t //= 2
        cuda.syncthreads()

    # max-reduce err_sm horizontally
    t = tpb // 2
    while t > 0:
        if tx < t and ty == 0:
            err_sm[ty, tx] = get_max(err_sm[ty, tx], err_sm[ty, tx + t])
        t //= 2
        cuda.syncthreads()

    if tx == 0 and ty == 0:
        error[by, bx] = err_sm[0, 0]
