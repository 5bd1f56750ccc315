"""The course's addmm in the place of torch's: a whole network runs on the matmul that you have built.

`torch.overrides.TorchFunctionMode` sees every call of torch's functions before torch does (PyTorch's notes on
extending torch, https://pytorch.org/docs/stable/notes/extending.html). This one answers `torch.addmm` and
`torch.nn.functional.linear`, which is what `nn.Linear` calls, if wanted also convolutions that are a product
(one frame wide), and hands everything else on.
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
from course_lib.circles.conv_as_matmul import addmm, conv1d
from course_lib.circles.front_door import Matmul


@dataclass
class Calls:
    """How many calls were ours, by the operator that torch would have used, and how many were left to torch.

    `addmm`: `torch.addmm` and linear layers with a bias; `mm`: linear layers without one; `pointwise`:
    convolutions of one frame. `left_to_torch`: such calls that we cannot answer (`our_addmm` says when).
    """

    addmm: int = 0
    mm: int = 0
    pointwise: int = 0
    left_to_torch: int = 0

    @property
    def ours(self) -> int:
        """All calls that were ours."""
        return self.addmm + self.mm + self.pointwise


@contextlib.contextmanager
def our_addmm(matmul: Matmul = threads.matmul, *, pointwise: bool = False) -> Iterator[Calls]:
    """Compute addmm and linear layers by `matmul` as long as the context lasts; gives the count of calls.

    `pointwise`: also `conv1d` with a kernel of one frame, for which weight and input are the matrices.
    Only on CPU tensors of float32 or float64 that hold a number at least, and only where no gradient is
    recorded (take torch.no_grad()); other calls are torch's, and so is every `torch.mm`, `torch.bmm` and
    `@`. What happens inside a traced or compiled graph is not seen.
    """
    calls = Calls()
    with _Ours(matmul, calls, pointwise):
        yield calls


class _Ours(TorchFunctionMode):
    def __init__(self, matmul: Matmul, calls: Calls, pointwise: bool) -> None:
        super().__init__()
        self.matmul, self.calls = matmul, calls
        self.answers = {functional.linear: self._linear, torch.addmm: self._addmm}
        if pointwise:
            self.answers[functional.conv1d] = self._conv1d

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        answer = self.answers.get(func)
        if answer is None or (answer == self._conv1d and not _is_pointwise(*args, **kwargs)):
            return func(*args, **kwargs)
        if _is_ours(args, kwargs):
            return answer(*args, **kwargs)
        self.calls.left_to_torch += 1
        return func(*args, **kwargs)

    def _linear(self, input, weight, bias=None):
        """Return input (..., K) @ weight (N, K).T + bias, as (weight @ input.T).T: no copy of the weight."""
        rows = input.detach().reshape(-1, input.shape[-1]).numpy()  # (M, K)
        offset = np.zeros(1, rows.dtype) if bias is None else bias.detach().numpy()[:, None]  # (N, 1)
        turned = addmm(offset, weight.detach().numpy(), rows.T, matmul=self.matmul)  # (N, M)
        self.calls.addmm += bias is not None
        self.calls.mm += bias is None
        return torch.from_numpy(np.ascontiguousarray(turned.T)).reshape(*input.shape[:-1], len(weight))

    def _addmm(self, input, mat1, mat2, *, beta=1, alpha=1):
        given = (tensor.detach().numpy() for tensor in (input, mat1, mat2))
        result = torch.from_numpy(addmm(*given, beta=beta, alpha=alpha, matmul=self.matmul))
        self.calls.addmm += 1
        return result

    def _conv1d(self, input, weight, bias=None, *_, **__):
        given = (tensor if tensor is None else tensor.detach().numpy() for tensor in (input, weight, bias))
        result = torch.from_numpy(conv1d(*given, matmul=self.matmul))
        self.calls.pointwise += 1
        return result


def _is_pointwise(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1) -> bool:
    """Is this convolution a product for each row of a batch: one frame, every frame, all channels?"""
    stands = stride in (1, (1,)) and padding in (0, (0,)) and groups == 1
    return stands and input.dim() == 3 and weight.dim() == 3 and weight.shape[2] == 1


def _is_ours(args: tuple, kwargs: dict) -> bool:
    tensors = [one for one in (*args, *kwargs.values()) if isinstance(one, torch.Tensor)]
    return (
        "out" not in kwargs
        and len({one.dtype for one in tensors}) == 1
        and all(one.device.type == "cpu" and one.layout == torch.strided for one in tensors)
        and tensors[0].dtype in (torch.float32, torch.float64)
        and all(one.numel() for one in tensors)
        and tensors[1].dim() >= 2  # a single row of weights is a sum, no product of matrices
        and not (torch.is_grad_enabled() and any(one.requires_grad for one in tensors))
    )
