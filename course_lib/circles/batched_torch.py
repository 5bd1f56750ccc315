"""The baseline for batches: torch.bmm, that is, MKL or OpenBLAS on a CPU and cuBLAS on a GPU (TF32 off)."""

from __future__ import annotations

import numpy as np

from course_lib.circles import cuda_launch, cuda_torch
from course_lib.circles.cuda_launch import GpuArray
from course_lib.circles.front_door import is_on_gpu


def matmul(A: GpuArray, B: GpuArray) -> GpuArray:
    """Return A @ B (batch, M, N) for A (batch, M, K), B (batch, K, N), both float32 or both float64.

    NumPy arrays are multiplied on the CPU. Views go to torch as they are, except for those that it has no
    tensors for (negative strides, read-only memory): these are copied.
    """
    if is_on_gpu(A) or is_on_gpu(B):
        return cuda_launch.product(cuda_torch.start, A, B)
    import torch

    return torch.bmm(torch.from_numpy(_for_torch(A)), torch.from_numpy(_for_torch(B))).numpy()


def _for_torch(X: np.ndarray) -> np.ndarray:
    usable = X.flags.writeable and X.flags.aligned and min(X.strides) >= 0
    return X if usable else X.copy()
