"""From matrices to a running kernel: where the operands are, how many blocks there are, what can go wrong.

`product` gives every GPU rung the signature of the others. NumPy arrays are copied to the GPU and the
result is copied back; what is there already (torch tensors, or anything with `__cuda_array_interface__`) is
used in place, and the result is of the same kind. Memory is torch's: one allocator, so that torch and the
kernels can share a GPU. All driver calls are behind `product` and `start`, and so behind
`measure.machine.missing`.
"""

from __future__ import annotations

import functools
import math
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from course_lib.circles.front_door import RungUnavailable, is_on_gpu
from course_lib.circles.memory import contiguous
from course_lib.measure import cuda_stream, machine
from course_lib.measure.sizes import in_bytes

GpuArray = Any  # a NumPy array, a torch tensor on the GPU, or another array with __cuda_array_interface__
DeviceArray = Any  # a contiguous torch tensor on the GPU, or Numba's array of it
Start = Callable[[DeviceArray, DeviceArray, DeviceArray], None]

MOST_BLOCKS_DOWN = 65_535  # of a grid, in its second direction
_DRIVER_ERROR = re.compile(r"CUDA_ERROR_\w+")  # CUresult's names, cuda.h


class DoesNotFit(RuntimeError):
    """A block of this kernel needs more registers, shared memory or threads than this GPU has."""


def product(start: Start, A: GpuArray, B: GpuArray) -> GpuArray:
    """Return A @ B (M, N), computed by `start`, for A (M, K), B (K, N) of float32: of the kind that A is of.

    Or a batch of them: A (batch, M, K), B (batch, K, N) give C (batch, M, N).
    Raises RungUnavailable where there is no usable GPU, TypeError for operands in different places and
    MemoryError if the GPU has too little memory.
    """
    _check_gpu()
    import torch

    shape = (*A.shape[:-1], B.shape[-1])
    here, there = is_on_gpu(A), is_on_gpu(B)
    if here != there:
        inside, outside = ("A", "B") if here else ("B", "A")
        raise TypeError(
            f"{inside} is on the GPU and {outside} is not, but both must be in one place: "
            f"move one, for example torch.from_numpy({outside}).cuda()."
        )
    try:
        a, b = _on_gpu("A", A), _on_gpu("B", B)
        if a.device != b.device:
            raise TypeError(f"A is on {a.device} and B on {b.device}: move one, for example B.to(A.device).")
        with torch.cuda.device(a.device):
            is_empty = 0 in (*A.shape, *B.shape)
            C = (torch.zeros if is_empty else torch.empty)(shape, dtype=a.dtype, device=a.device)
            if not is_empty:
                start(a, b, C)
            return _like(A, C)
    except torch.cuda.OutOfMemoryError as problem:
        raise MemoryError(_too_little_memory(A.shape, B.shape, shape, copies=not here)) from problem


def start(
    kernel: Callable,
    tile: tuple[int, int],
    block: int | tuple[int, int],
    A: DeviceArray,
    B: DeviceArray,
    C: DeviceArray,
) -> None:
    """Start `kernel(A, B, C)` with a block of threads for every tile (rows, columns) of C.

    A grid has at most 65,535 blocks in its second direction, along the rows here; a longer matrix is computed
    in bands, one launch for each. Raises DoesNotFit if the GPU cannot run one such block.
    """
    (M, N), (rows, columns) = C.shape, tile
    band = MOST_BLOCKS_DOWN * rows
    for first in range(0, M, band):
        a, c = (A, C) if band >= M else (A[first : first + band], C[first : first + band])
        grid = (-(-N // columns), -(-c.shape[0] // rows))
        _launch(kernel, grid, block, a, B, c)


def start_batched(
    kernel: Callable,
    tile: tuple[int, int],
    block: int | tuple[int, int],
    A: DeviceArray,
    B: DeviceArray,
    C: DeviceArray,
) -> None:
    """Start `kernel(A, B, C)` once for a batch C (batch, M, N): the third direction of the grid is the batch.

    A grid has at most 65,535 blocks in its second and third directions; what is beyond takes more launches.
    """
    (batch, M, N), (rows, columns) = C.shape, tile
    band = MOST_BLOCKS_DOWN * rows
    for first in range(0, batch, MOST_BLOCKS_DOWN):
        some = slice(first, first + MOST_BLOCKS_DOWN)
        for top in range(0, M, band):
            a, c = A[some, top : top + band], C[some, top : top + band]
            grid = (-(-N // columns), -(-c.shape[1] // rows), c.shape[0])
            _launch(kernel, grid, block, a, B[some], c)


def rows_are_wide(*arrays: DeviceArray) -> bool:
    """Say whether every row of every float32 array begins at a multiple of 16 bytes."""
    return all(
        array.shape[1] % 4 == 0 and array.__cuda_array_interface__["data"][0] % 16 == 0 for array in arrays
    )


def _launch(
    kernel: Callable, grid: tuple[int, ...], block: int | tuple[int, int], *arrays: DeviceArray
) -> None:
    try:
        cuda_stream.on_torchs_stream(kernel, grid, block)(*arrays)
    except Exception as problem:
        if known := _in_a_sentence(kernel, problem):
            raise known from problem
        raise


def _in_a_sentence(kernel: Callable, problem: Exception) -> Exception | None:
    """Return what to raise for an error of the driver that is not the caller's; None for any other.

    Two libraries call the driver, Numba and (for launches, in numba-cuda 0.30) cuda.core, each with a
    class of errors of its own; what they share is the driver's name for it, in the text.
    """
    found = _DRIVER_ERROR.search(str(problem))
    name = found[0] if found else ""
    if name in ("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "CUDA_ERROR_INVALID_VALUE"):
        return DoesNotFit(
            f"A block of {kernel.__name__} does not fit on this GPU ({name}): "
            "take a smaller tile or fewer threads."
        )
    if name == "CUDA_ERROR_UNSUPPORTED_PTX_VERSION":
        return RungUnavailable(
            "The NVIDIA driver is older than the compiler that numba-cuda uses: update the driver, or "
            f"install the tested compiler with {machine.INSTALL_CUDA}."
        )
    if name == "CUDA_ERROR_OUT_OF_MEMORY":
        return MemoryError(
            f"The GPU has too little memory left to load {kernel.__name__}: free tensors of torch first "
            "(torch.cuda.empty_cache())."
        )
    return None


@functools.cache  # a refusal is an exception and is not remembered: it is asked again
def _check_gpu() -> None:
    if sentence := machine.missing("cuda"):
        raise RungUnavailable(sentence)


def _on_gpu(name: str, operand: GpuArray) -> DeviceArray:
    """Return the operand as a contiguous torch tensor on the GPU: itself or a view of it if it is one."""
    import torch

    if isinstance(operand, np.ndarray):
        return _to_gpu(contiguous(operand))
    if isinstance(operand, torch.Tensor):
        if operand.requires_grad:
            raise TypeError(
                f"{name} wants a gradient, which this rung does not compute: pass {name}.detach()."
            )
        return operand.contiguous()
    return torch.as_tensor(operand, device="cuda").contiguous()


def _to_gpu(array: np.ndarray) -> DeviceArray:
    import torch

    return torch.from_numpy(array).cuda()


def _like(model: GpuArray, C: DeviceArray) -> GpuArray:
    """Return the torch tensor C as what `model` is; on the GPU nothing is copied."""
    import torch
    from numba import cuda

    if isinstance(model, np.ndarray):
        return C.cpu().numpy()
    if isinstance(model, torch.Tensor):
        return C
    library = sys.modules[type(model).__module__.partition(".")[0]]  # cupy, for example
    return library.asarray(C) if hasattr(library, "asarray") else cuda.as_cuda_array(C)


def _too_little_memory(a: Sequence[int], b: Sequence[int], c: Sequence[int], copies: bool) -> str:
    import torch

    needed = 4 * (math.prod(c) + (math.prod(a) + math.prod(b) if copies else 0))
    free, _ = torch.cuda.mem_get_info()
    what = "A, B and C need" if copies else "C needs"
    return (
        f"The GPU has too little memory: {what} {in_bytes(needed)} and {in_bytes(free)} are free; "
        "multiply smaller matrices, or free other tensors (torch.cuda.empty_cache())."
    )
