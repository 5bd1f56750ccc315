"""One layer on many ranks: an MLP whose first matrix is cut by columns and the second by rows.

    A, B = shards(wire, A, B)                  # this rank's columns of A, and the same rows of B
    y = mlp(wire, x, A, B)                     # (batch, width), the same on every rank
    y.square().mean().backward()               # x.grad is the same on every rank, A.grad and B.grad its own

A ReLU works on each column alone, so nothing travels between the two products. After the second each rank has
a summand of y: one all-reduce. On the way back each has a summand of the derivative of x: another one.

Source: Shoeybi et al., "Megatron-LM: training multi-billion parameter language models using model
parallelism" (2019), section 3; `_Copied` and `_Summed` are its f and g.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from course_lib.distributed.collectives import ring_all_reduce
from course_lib.distributed.matmul import cuts
from course_lib.distributed.wire import Wire


def shards(wire: Wire, A: Tensor, B: Tensor) -> tuple[Tensor, Tensor]:
    """Return this rank's columns of A (width, hidden) and rows of B (hidden, width), as new leaves."""
    mine = cuts(A.shape[1], wire.size)[wire.rank]
    return (
        A[:, mine].detach().clone().requires_grad_(),  # (width, hidden / P)
        B[mine].detach().clone().requires_grad_(),  # (hidden / P, width)
    )


def mlp(wire: Wire, x: Tensor, A: Tensor, B: Tensor) -> Tensor:
    """Return relu(x A) B for x (batch, width) from shards of A and B; differentiable on every rank."""
    hidden = torch.relu(_Copied.apply(x, wire) @ A)  # (batch, hidden / P)
    return _Summed.apply(hidden @ B, wire)  # (batch, width)


class _Copied(torch.autograd.Function):
    """Every rank uses the same x: nothing forward, the sum of its derivatives backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, wire: Wire) -> Tensor:
        ctx.wire = wire
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return _summed(ctx.wire, gradient), None


class _Summed(torch.autograd.Function):
    """Ranks hold summands: their sum forward; backward the derivative of the sum is that of each."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, wire: Wire) -> Tensor:
        return _summed(wire, x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient, None


def _summed(wire: Wire, x: Tensor) -> Tensor:
    return torch.from_numpy(ring_all_reduce(wire, x.detach().numpy()))
