"""Particles per cell, summed up: a while loop whose length differs from thread to thread."""

# Repository: https://github.com/fbpic/fbpic
# Path: fbpic/particles/utilities/cuda_sorting.py
# Version: release 0.27.1 (commit not recorded in the package)
# Licence: BSD-3-Clause-LBNL, Copyright (c) 2016, University of Hamburg and The Regents of the University of California (full text: licences/fbpic.txt)
# Changed: imports; the decorator is cuda.jit instead of fbpic's wrapper of it (compile_cupy); long docstrings are left out
# ruff: noqa
# fmt: off

from numba import cuda


@cuda.jit
def incl_prefix_sum(cell_idx, prefix_sum):
    # i is the index of the macroparticle
    i = cuda.grid(1)
    if i < cell_idx.shape[0]-1:
        # ci: index of the cell of the present macroparticle
        ci = cell_idx[i]
        # ci_next: index of the cell of the next macroparticle
        ci_next = cell_idx[i+1]
        # Fill all the cells between ci and ci_next with the
        # inclusive cumulative sum of the number particles until ci
        while ci < ci_next:
            # The cumulative sum of the number of particle per cell
            # until ci is i+1 (since i obeys python index, starting at 0)
            prefix_sum[ci] = i+1
            ci += 1


@cuda.jit
def prefill_prefix_sum(cell_idx, prefix_sum, Ntot):
    # One thread per cell
    i = cuda.grid(1)
    if i < prefix_sum.shape[0]:
        if Ntot > 0:
            # Fill the first cells with 0
            if i < cell_idx[0]:
                prefix_sum[i] = 0
            # Fill the last cells with Ntot
            elif i >= cell_idx[Ntot-1]:
                prefix_sum[i] = Ntot
        else:
            # If this species has no particles, fill all cells with 0
            prefix_sum[i] = 0
