"""Kernels on the stream that torch works on, so that its work and ours keep their order."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable

FEW_BLOCKS = r"Grid size \d+ will likely result in GPU under-utilization"  # numba/cuda/dispatcher.py


def on_torchs_stream(kernel: Callable, grid: int | tuple[int, ...], block: int | tuple[int, ...]) -> Callable:
    """Return what starts the kernel with this grid and block on torch's current stream.

    Raises what the driver refuses when it is called.
    """
    import torch

    return configured(kernel, grid, block, torch.cuda.current_stream().cuda_stream)


@functools.lru_cache(maxsize=256)  # a launch costs less when Numba has nothing to work out
def configured(
    kernel: Callable, grid: int | tuple[int, ...], block: int | tuple[int, ...], stream: int
) -> Callable:
    """Return the kernel with its launch; `stream` is the driver's handle, 0 the default stream."""
    from numba import cuda

    with warnings.catch_warnings():  # "few blocks": true of every small matrix, and chapter 06 says so
        warnings.filterwarnings("ignore", message=FEW_BLOCKS)  # its class is Numba's or numba-cuda's own
        return kernel[grid, block, cuda.external_stream(stream) if stream else 0]
