"""The same products as torch computes them on a GPU: what our kernels are measured beside.

    for name, product in torch_products.all_of(x, y).items():
        product.start(), product.d, product.reference

Each quantises x and y in its own way before anything is timed: one scale a tensor, one a row, one for 1 x 128
and 128 x 128 numbers (cuBLAS; the recipe of our own kernels), or none, in bf16. Not every build of torch and
every GPU has all of them: what refuses is left out, with its reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from course_lib.fp8.quantise import (
    ROW_BLOCKS,
    ROWS,
    SQUARES,
    WHOLE,
    ScaleBlock,
    dequantise,
    m_major,
    quantise,
)


@dataclass
class TorchProduct:
    """A product that is ready to start: `start()` computes it and keeps the result in `d`, bf16 (M, N).

    `a` and `b` are float32: what is really multiplied, so that the result can be judged.
    """

    a: Tensor
    b: Tensor
    compute: Callable[[], Tensor]
    d: Tensor | None = None

    def start(self) -> None:
        """Put the product into the queue of torch's current stream."""
        self.d = self.compute()


def all_of(x: Tensor, y: Tensor) -> tuple[dict[str, TorchProduct], dict[str, str]]:
    """Return torch's products of x (M, K) and y (N, K), by name, and why others cannot be had here."""
    makers = {
        "torch bf16": lambda: bf16(x, y),
        "torch tensor-wise": lambda: scaled(x, y, WHOLE, WHOLE),
        "torch row-wise": lambda: scaled(x, y, ROWS, ROWS),
        "torch block-wise": lambda: scaled(x, y, ROW_BLOCKS, SQUARES),
    }
    found, refused = {}, {}
    for name, make in makers.items():
        try:
            product = make()
            product.start()
            torch.cuda.synchronize(x.device)
        except (RuntimeError, ValueError, NotImplementedError) as problem:
            refused[name] = str(problem).strip().partition("\n")[0]
        else:
            found[name] = product
    return found, refused


def bf16(x: Tensor, y: Tensor) -> TorchProduct:
    """Return the product of x and y rounded to bf16."""
    a, b = x.bfloat16(), y.bfloat16()
    out = torch.empty(len(x), len(y), dtype=torch.bfloat16, device=x.device)
    return TorchProduct(a.float(), b.float(), lambda: torch.mm(a, b.T, out=out))


def scaled(x: Tensor, y: Tensor, of_x: ScaleBlock, of_y: ScaleBlock) -> TorchProduct:
    """Return `torch._scaled_mm` of x and y, quantised to e4m3 with these blocks.

    cuBLAS takes scales of 1 x 128 with neighbouring rows side by side, as TMA does, and (K, N)'s transposed.
    """
    (a, a_scales), (b, b_scales) = quantise(x, of_x), quantise(y, of_y)
    if of_x == ROW_BLOCKS:
        a_scales = m_major(a_scales)

    def compute() -> Tensor:
        return torch._scaled_mm(
            a, b.T, scale_a=a_scales, scale_b=b_scales.T, out_dtype=torch.bfloat16, use_fast_accum=False
        )

    return TorchProduct(dequantise(a, a_scales, of_x), dequantise(b, b_scales, of_y), compute)
