"""Vector addition with a guard."""

# Repository: https://github.com/numba/numba
# Path: numba/cuda/tests/doc_examples/test_vecadd.py
# Version: release 0.68.1 (commit not recorded in the package)
# Licence: BSD-2-Clause, Copyright (c) 2012, Anaconda, Inc. (full text: licences/numba.txt)
# Changed: indentation and imports only
# ruff: noqa
# fmt: off

from numba import cuda


@cuda.jit
def f(a, b, c):
    # like threadIdx.x + (blockIdx.x * blockDim.x)
    tid = cuda.grid(1)
    size = len(c)

    if tid < size:
        c[tid] = a[tid] + b[tid]
