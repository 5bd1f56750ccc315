"""Minimum and standard deviation in a masked window."""

# Repository: https://github.com/xarray-contrib/xarray-spatial
# Path: xrspatial/focal.py
# Version: release 0.5.3 (commit not recorded in the package)
# Licence: MIT, Copyright (c) 2020-2026 makepath (full text: licences/xarray-spatial.txt)
# Changed: imports; jit-compiled at the end of the file instead of by the decorator
# ruff: noqa
# fmt: off

import math

from numba import cuda


def _focal_min_cuda(data, kernel, out):
    i, j = cuda.grid(2)

    rows, cols = data.shape
    if i >= rows or j >= cols:
        return

    dr = kernel.shape[0] // 2
    dc = kernel.shape[1] // 2

    # Start with +inf so any real value replaces it
    m = math.inf
    found = False

    for k in range(kernel.shape[0]):
        for h in range(kernel.shape[1]):
            if kernel[k, h] == 0:
                continue  # mask says ignore

            ii = i + k - dr
            jj = j + h - dc

            if 0 <= ii < rows and 0 <= jj < cols:
                v = data[ii, jj]
                if (not found) or (v < m):
                    m = v
                    found = True

    # With your mask containing the center, found should be True.
    # But keep a safe fallback anyway.
    out[i, j] = m if found else data[i, j]


def _focal_std_cuda(data, kernel, out):
    i, j = cuda.grid(2)

    rows, cols = data.shape
    if i >= rows or j >= cols:
        return

    dr = kernel.shape[0] // 2
    dc = kernel.shape[1] // 2

    w_sum = 0.0
    sum_wx = 0.0
    sum_wx2 = 0.0

    for k in range(kernel.shape[0]):
        for h in range(kernel.shape[1]):
            w = kernel[k, h]
            if w == 0:
                continue  # mask says ignore

            ii = i + k - dr
            jj = j + h - dc

            if 0 <= ii < rows and 0 <= jj < cols:
                x = data[ii, jj]
                w_sum += w
                sum_wx += w * x
                sum_wx2 += w * x * x

    # With your mask including the center, w_sum should be > 0. Guard anyway.
    if w_sum > 0.0:
        mean = sum_wx / w_sum
        var = (sum_wx2 / w_sum) - (mean * mean)

        # Numerical safety (tiny negative due to floating point)
        if var < 0.0:
            var = 0.0

        out[i, j] = math.sqrt(var)
    else:
        out[i, j] = 0.0

_focal_min_cuda = cuda.jit(_focal_min_cuda)
_focal_std_cuda = cuda.jit(_focal_std_cuda)
