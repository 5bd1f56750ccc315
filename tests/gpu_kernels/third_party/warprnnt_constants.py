"""Constants of the RNN-transducer loss."""

# Repository: https://github.com/titu1994/warprnnt_numba
# Path: warprnnt_numba/rnnt_loss/utils/global_constants.py
# Version: release 0.4.1 (commit not recorded in the package)
# Licence: Apache-2.0 as the file's own header says (Copyright (c) 2021, NVIDIA CORPORATION, all rights reserved;
#   Copyright 2018-2019, Mingkun Huang); full text: licences/Apache-2.0.txt. The repository: MIT,
#   Copyright (c) 2022 Somshubra Majumdar (full text: licences/warprnnt_numba.txt)
# Changed: imports; the constants that the kernels here use; what no case launches is left out
# ruff: noqa
# fmt: off

import numpy as np

_WARP_SIZE = 32

FP32_NEG_INF = -np.inf


def warp_size():
    global _WARP_SIZE
    return _WARP_SIZE
