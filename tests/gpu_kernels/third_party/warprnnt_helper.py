"""Device functions of the RNN-transducer loss."""

# Repository: https://github.com/titu1994/warprnnt_numba
# Path: warprnnt_numba/rnnt_loss/utils/rnnt_helper.py
# Version: release 0.4.1 (commit not recorded in the package)
# Licence: Apache-2.0 as the file's own header says (Copyright (c) 2021, NVIDIA CORPORATION, all rights reserved;
#   Copyright 2018-2019, Mingkun Huang); full text: licences/Apache-2.0.txt. The repository: MIT,
#   Copyright (c) 2022 Somshubra Majumdar (full text: licences/warprnnt_numba.txt)
# Changed: imports only; the functions that the kernels here call
# ruff: noqa
# fmt: off

from __future__ import annotations

import math

from numba import cuda

from gpu_kernels.third_party import warprnnt_constants as global_constants


@cuda.jit(device=True, inline=True)
def log_sum_exp(a: float, b: float):
    if a == global_constants.FP32_NEG_INF:
        return b

    if b == global_constants.FP32_NEG_INF:
        return a

    if a > b:
        return math.log1p(math.exp(b - a)) + a
    else:
        return math.log1p(math.exp(a - b)) + b


@cuda.jit(device=True)
def maximum(x, y):
    if x < y:
        return y
    else:
        return x


@cuda.jit(device=True)
def add(x, y):
    return x + y


@cuda.jit(device=True)
def identity(x):
    return x


@cuda.jit(device=True)
def exponential(x):
    return math.exp(x)
