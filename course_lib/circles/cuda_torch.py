"""The GPU's baseline: torch's matmul, that is, NVIDIA's cuBLAS, in float32 arithmetic.

On request cuBLAS rounds float32 operands to TF32 (10 bits after the point instead of 23) and multiplies them
on the tensor cores. That is another product, several times faster and a thousand times less exact. It is
switched off here, so that everything on this ladder does the same work.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from course_lib.circles import cuda_launch
from course_lib.circles.cuda_launch import DeviceArray, GpuArray


def start(A: DeviceArray, B: DeviceArray, C: DeviceArray) -> None:
    """Start C (M, N) = A (M, K) @ B (K, N) on the GPU, torch tensors of float32."""
    import torch

    with _in_float32():
        torch.matmul(A, B, out=C)


def matmul(A: GpuArray, B: GpuArray) -> GpuArray:
    """Return A @ B (M, N) for A (M, K), B (K, N), both float32, both NumPy arrays or both on the GPU."""
    return cuda_launch.product(start, A, B)


@contextlib.contextmanager
def _in_float32() -> Iterator[None]:
    """Switch TF32 off for a moment, whatever the learner has chosen.

    torch has an older setting for all devices, and newer ones for each that the older one sets too. Where
    they say different things it refuses to multiply, and to tell the older one.
    """
    import torch

    each = (torch.backends.cuda.matmul, torch.backends.mkldnn.matmul)
    newer = [one.fp32_precision for one in each]
    try:
        older = torch.get_float32_matmul_precision()
    except RuntimeError:  # a newer one was changed by itself
        older = "highest"
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(older)
        for one, before in zip(each, newer, strict=True):
            one.fp32_precision = before
