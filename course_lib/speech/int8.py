"""The encoder's linear layers in 8-bit integers: dynamic quantisation, written out.

Weights are quantised once, one scale for each output channel; what comes in is quantised anew in every call,
one scale for each frame. Both scales map the largest absolute value to 127, and zero stays zero. Products
are summed exactly in int32 and scaled back to float32, so the only error is the rounding of both operands:

    y[m, n] = s_x[m] · s_w[n] · Σ_k q_x[m, k] · q_w[n, k] + bias[n]

Everything else – convolutions, attention's products of activations, norms – stays in float32. This is what
torch's quantize_dynamic does to linear layers (there with one scale for all activations of a call); that one
is deprecated in favour of a package of its own, torchao.
"""

from __future__ import annotations

import copy
from typing import TypeVar

import torch
from torch import Tensor, nn

LARGEST = 127  # of int8; −128 is left out, so that negation is exact
FEWEST_ROWS = 32  # on a GPU: cuBLAS refuses 16 rows and fewer, so missing ones are filled up with zeros
FEWEST_COLUMNS = 8  # K and N: multiples of 8, as cuBLAS wants them

Module = TypeVar("Module", bound=nn.Module)


class Int8Linear(nn.Module):
    """A linear layer whose weight (N, K) is int8, with the same inputs and outputs as the float32 one."""

    weight: Tensor
    scale: Tensor
    bias: Tensor | None

    def __init__(self, linear: nn.Linear) -> None:
        """Raise ValueError for sizes that are no multiples of 8 (products in int8 exist for no others)."""
        super().__init__()
        if linear.in_features % FEWEST_COLUMNS or linear.out_features % FEWEST_COLUMNS:
            raise ValueError(
                f"a linear layer leads from {linear.in_features} to {linear.out_features}, but int8 products "
                f"need multiples of {FEWEST_COLUMNS}: leave it in float32."
            )
        weight, scale = quantise(linear.weight.detach().float())  # (N, K), (N, 1)
        self.register_buffer("weight", weight)
        self.register_buffer("scale", scale.squeeze(1))  # (N,)
        self.register_buffer("bias", None if linear.bias is None else linear.bias.detach())

    def forward(self, x: Tensor) -> Tensor:
        """Return (…, N) float32 for x (…, K) float32."""
        rows = x.reshape(-1, x.size(-1))  # (M, K)
        q, scale = quantise(rows)  # (M, K) int8, (M, 1)
        sums = int8_product(q, self.weight)  # (M, N) int32
        y = sums.float() * scale * self.scale  # (M, N)
        y = y if self.bias is None else y + self.bias
        return y.view(*x.shape[:-1], -1)


def quantise(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return x (M, K) in int8 and the scale (M, 1) of each row: x ≈ scale · int8, off by scale / 2."""
    scale = x.abs().amax(dim=1, keepdim=True).clamp_min(torch.finfo(x.dtype).tiny) / LARGEST  # (M, 1)
    return (x / scale).round().to(torch.int8), scale


def int8_product(q: Tensor, weight: Tensor) -> Tensor:
    """Return q @ weight.T (M, N) int32, exact, for q (M, K) and weight (N, K), both int8."""
    rows = q.size(0)
    if q.is_cuda and rows < FEWEST_ROWS:
        q = nn.functional.pad(q, (0, 0, 0, FEWEST_ROWS - rows))
    return torch._int_mm(q, weight.t())[:rows]


def with_int8_linears(model: Module) -> Module:
    """Return the model with every nn.Linear as an Int8Linear; all other weights are shared with `model`."""
    made = sharing_weights(model)
    for module in list(made.modules()):
        for name, child in module.named_children():
            if isinstance(child, nn.Linear):
                setattr(module, name, Int8Linear(child))
    return made


def sharing_weights(model: Module) -> Module:
    """Return a copy of the modules with the very same parameters and buffers: it costs next to no memory."""
    same = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    return copy.deepcopy(model, same)
