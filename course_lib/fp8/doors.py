"""What a product with block scales may be given: every argument is looked at, and refused in one sentence.

Each sentence says which tensor, what it is, what it must be and how to get there. Nothing here asks the GPU
anything: values on the device (the indices of groups) are not read there, because that would make the host
wait.
"""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.fp8.quantise import SIDE

E4M3 = torch.float8_e4m3fn
ROW_BYTES = 16  # TMA's rows begin at multiples of it
N_MULTIPLE, K_MULTIPLE = ROW_BYTES // 2, ROW_BYTES  # bf16 and e4m3 in a row


class Refused(ValueError):
    """An argument that the product cannot take; the message says which, and what would do."""


def blocks(n: int) -> int:
    """Return how many blocks of 128 hold n."""
    return -(-n // SIDE)


def operand(name: str, x: Tensor, dims: int) -> None:
    """Refuse what is no dense e4m3 tensor of `dims` dimensions whose rows TMA can fetch."""
    _tensor(name, x, dims, E4M3, ": quantise it first (fp8.quantise)")
    if not x.is_contiguous():
        raise Refused(
            f"{name} has strides {x.stride()}, but its rows must lie one behind the other: "
            f"{name}.contiguous()."
        )
    if x.shape[-1] % K_MULTIPLE:
        raise Refused(
            f"{name} has K = {x.shape[-1]}, but it must be a multiple of {K_MULTIPLE} (rows begin at "
            f"multiples of {ROW_BYTES} bytes): fill the rows up with zeros."
        )
    _aligned(name, x)


def scales(name: str, x: Tensor, shape: tuple[int, ...], of: str) -> None:
    """Refuse scales that are not float32 of this shape; their layout is free."""
    _tensor(name, x, len(shape), torch.float32, f": {name}.float()")
    if tuple(x.shape) != shape:
        raise Refused(
            f"{name} has shape {tuple(x.shape)}, but for {of} it must be {shape}: one scale for each block."
        )


def factors(a: Tensor, a_scales: Tensor, b: Tensor, b_scales: Tensor, dims_of_a: int, dims_of_b: int) -> None:
    """Refuse operands that `operand` refuses, that do not fit each other, or whose D cannot be stored.

    Refuse scales that do not belong to a (..., M, K), 1 x 128, and b (..., N, K), 128 x 128.
    """
    operand("a", a, dims_of_a)
    operand("b", b, dims_of_b)
    if a.shape[-1] != b.shape[-1]:
        raise Refused(
            f"a has shape {tuple(a.shape)} and b {tuple(b.shape)}, but both must end in K: b is (N, K), the "
            "right factor transposed."
        )
    if b.shape[-2] % N_MULTIPLE:
        raise Refused(
            f"b has N = {b.shape[-2]}, but it must be a multiple of {N_MULTIPLE} (rows of D begin at "
            f"multiples of {ROW_BYTES} bytes): fill b up with rows of zeros."
        )
    *front, N, K = b.shape
    scales("a_scales", a_scales, (*a.shape[:-1], blocks(K)), f"a of shape {tuple(a.shape)}")
    scales("b_scales", b_scales, (*front, blocks(N), blocks(K)), f"b of shape {tuple(b.shape)}")


def result(out: Tensor | None, shape: tuple[int, ...], like: Tensor, zeros: bool = True) -> Tensor:
    """Return `out`, checked, or a new tensor for it, of `zeros` where not all of it will be written."""
    if out is None:
        new = torch.zeros if zeros else torch.empty
        return new(shape, dtype=torch.bfloat16, device=like.device)
    _tensor("out", out, len(shape), torch.bfloat16)
    if tuple(out.shape) != shape:
        raise Refused(f"out has shape {tuple(out.shape)}, but the product has {shape}.")
    if not out.is_contiguous():
        raise Refused(f"out has strides {out.stride()}, but its rows must lie one behind the other.")
    _aligned("out", out)
    return out


def whole_numbers(name: str, x: Tensor, length: int, what: str) -> None:
    """Refuse what are not `length` numbers of int32, one for each `what`."""
    _tensor(name, x, 1, torch.int32, f": {name}.int()")
    if len(x) != length:
        raise Refused(f"{name} has {len(x)} entries, but it must have {length}: one for each {what}.")
    if not x.is_contiguous():
        raise Refused(
            f"{name} has stride {x.stride(0)}, but its entries must lie side by side: {name}.contiguous()."
        )


def one_device(**tensors: Tensor | None) -> None:
    """Refuse tensors that do not live together."""
    places = {name: x.device for name, x in tensors.items() if x is not None}
    first = next(iter(places))
    for name, place in places.items():
        if place != places[first]:
            raise Refused(f"{name} is on {place}, but {first} is on {places[first]}: move one of them.")


def _tensor(name: str, x: Tensor, dims: int, dtype: torch.dtype, cure: str = "") -> None:
    if not isinstance(x, Tensor):
        raise Refused(f"{name} is a {type(x).__name__}, but it must be a tensor.")
    if x.dim() != dims:
        raise Refused(
            f"{name} has shape {tuple(x.shape)}, but it must have {dims} dimension{'s' * (dims > 1)}."
        )
    if x.dtype != dtype:
        raise Refused(f"{name} has dtype {x.dtype}, but it must be {dtype}{cure}.")


def _aligned(name: str, x: Tensor) -> None:
    if x.data_ptr() % ROW_BYTES:
        raise Refused(
            f"{name} begins {x.data_ptr() % ROW_BYTES} bytes after a multiple of {ROW_BYTES}, which TMA "
            f"cannot fetch: {name}.clone()."
        )
