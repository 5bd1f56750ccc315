"""Sum of one block's elements by interleaved pairs in shared memory, in place."""

# Repository: https://github.com/numba/numba
# Path: numba/cuda/tests/doc_examples/test_reduction.py
# Version: release 0.68.1 (commit not recorded in the package)
# Licence: BSD-2-Clause, Copyright (c) 2012, Anaconda, Inc. (full text: licences/numba.txt)
# Changed: indentation and imports; nelem, a local of the example there, is a global of 64 instead of 1024
# ruff: noqa
# fmt: off

from numba import cuda
from numba.types import int32

# In the example: nelem = len(a), a local of the test.
nelem = 64


@cuda.jit
def array_sum(data):
    tid = cuda.threadIdx.x
    size = len(data)
    if tid < size:
        i = cuda.grid(1)

        # Declare an array in shared memory
        shr = cuda.shared.array(nelem, int32)
        shr[tid] = data[i]

        # Ensure writes to shared memory are visible
        # to all threads before reducing
        cuda.syncthreads()

        s = 1
        while s < cuda.blockDim.x:
            if tid % (2 * s) == 0:
                # Stride by `s` and add
                shr[tid] += shr[tid + s]
            s *= 2
            cuda.syncthreads()

        # After the loop, the zeroth  element contains the sum
        if tid == 0:
            data[tid] = shr[tid]
