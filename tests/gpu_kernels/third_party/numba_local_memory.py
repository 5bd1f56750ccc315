"""A copy through a thread's local array."""

# Repository: https://github.com/numba/numba
# Path: numba/cuda/tests/cudapy/test_localmem.py
# Version: release 0.68.1 (commit not recorded in the package)
# Licence: BSD-2-Clause, Copyright (c) 2012, Anaconda, Inc. (full text: licences/numba.txt)
# Changed: imports; jit-compiled at the end of the file instead of in the test
# ruff: noqa
# fmt: off

from numba import cuda, int32


def culocal1tuple(A, B):
    C = cuda.local.array((5,), dtype=int32)
    for i in range(C.shape[0]):
        C[i] = A[i]
    for i in range(C.shape[0]):
        B[i] = C[i]

culocal1tuple = cuda.jit(culocal1tuple)
