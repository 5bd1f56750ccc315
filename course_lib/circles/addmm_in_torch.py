"""The course's addmm in the place of torch's: a whole network runs on the matmul that you have built.

`torch.overrides.TorchFunctionMode` sees every call of torch's functions before torch does (PyTorch's notes on
extending torch, https://pytorch.org/docs/stable/notes/extending.html). This one answers `torch.addmm` and
`torch.nn.functional.linear`, which is what `nn.Linear` calls, and hands everything else on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from course_lib.circles import threads
from course_lib.circles.conv_as_matmul import addmm
from course_lib.circles.front_door import Matmul


@dataclass
class Calls:
    """How many calls were ours, and how many were left to torch because we cannot answer them."""

    ours: int = 0
    left_to_torch: int = 0


@contextlib.contextmanager
def our_addmm(matmul: Matmul = threads.matmul) -> Iterator[Calls]:
    """Compute addmm and linear layers by `matmul` as long as the context lasts; gives the count of calls.

    Only on CPU tensors of float32 or float64, and only where no gradient is recorded (take torch.no_grad());
    other calls are torch's. What happens inside a traced or compiled graph is not seen.
    """
    calls = Calls()
    with _Ours(matmul, calls):
        yield calls


class _Ours(TorchFunctionMode):
    def __init__(self, matmul: Matmul, calls: Calls) -> None:
        super().__init__()
        self.matmul, self.calls = matmul, calls

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        answer = {functional.linear: self._linear, torch.addmm: self._addmm}.get(func)
        if answer is None:
            return func(*args, **kwargs)
        with torch._C.DisableTorchFunction():
            if _is_ours(args, kwargs):
                self.calls.ours += 1
                return answer(*args, **kwargs)
            self.calls.left_to_torch += 1
            return func(*args, **kwargs)

    def _linear(self, input, weight, bias=None):
        """Return input (..., K) @ weight (N, K).T + bias, as (weight @ input.T).T: no copy of the weight."""
        rows = input.detach().reshape(-1, input.shape[-1]).numpy()  # (M, K)
        offset = np.zeros(1, rows.dtype) if bias is None else bias.detach().numpy()[:, None]  # (N, 1)
        turned = addmm(offset, weight.detach().numpy(), rows.T, matmul=self.matmul)  # (N, M)
        return torch.from_numpy(np.ascontiguousarray(turned.T)).reshape(*input.shape[:-1], len(weight))

    def _addmm(self, input, mat1, mat2, *, beta=1, alpha=1):
        given = (tensor.detach().numpy() for tensor in (input, mat1, mat2))
        return torch.from_numpy(addmm(*given, beta=beta, alpha=alpha, matmul=self.matmul))


def _is_ours(args: tuple, kwargs: dict) -> bool:
    tensors = [one for one in (*args, *kwargs.values()) if isinstance(one, torch.Tensor)]
    return (
        "out" not in kwargs
        and len({one.dtype for one in tensors}) == 1
        and all(one.device.type == "cpu" and one.layout == torch.strided for one in tensors)
        and tensors[0].dtype in (torch.float32, torch.float64)
        and all(one.dim() <= 2 for one in tensors[1:])
        and not (torch.is_grad_enabled() and any(one.requires_grad for one in tensors))
    )
