"""Products of -1, 0 and 1 for kernels without scales: every partial sum is exact, and so is the result.

    one = exact_product("v3_warp_specialised", 128, 64, 2320, Tile(64, 64))
    one.ending(seed=3)                       # "right", "wrong", or the problem that the model of Hopper found
    one.ending(seed=3, source=other_text)    # the same with another text of the kernel

Hopper's tensor core keeps 13 bits below the leading one of its sum, so sums up to 8192 are exact there, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from course_lib.fp8 import on_cpu
from course_lib.fp8.plans import Plan, Problem, plan_for
from course_lib.fp8.quantise import m_major
from course_lib.fp8.tiles import Tile

UNTOUCHED = -768.0  # exact in bf16, and far from any sum of 8192 such products: they stray by about 60
MARGIN = 4  # rows before and behind the result, which nobody may touch
LONGEST = 8192


@dataclass
class ExactProduct:
    """A plan, where its result will be, and what it must be; `operands` are only kept alive."""

    plan: Plan
    whole: Tensor  # (MARGIN + M + MARGIN, N) bf16
    wanted: Tensor  # (M, N) bf16
    operands: tuple[Tensor, ...]

    @property
    def got(self) -> Tensor:
        """What is where the result should be, (M, N) bf16."""
        return self.whole[MARGIN:-MARGIN]

    def clear(self) -> None:
        """Mark the result and its margins as untouched."""
        self.whole.fill_(UNTOUCHED)

    def ending(self, seed: int = 0, source: str | None = None) -> str:
        """Run it on the model of Hopper: "right", "wrong", or the problem that was found."""
        self.clear()
        return on_cpu.run(self.plan, seed, source) or ("wrong" if self.difference() else "right")

    def overlapped(self, source: str | None = None) -> bool:
        """Whether in the last run a product began while one of an earlier group was in flight."""
        return on_cpu.products_overlapped(self.plan, source)

    def difference(self) -> str:
        """Return a sentence for a result that is not the product, "" for one that is."""
        if (self.whole[:MARGIN] != UNTOUCHED).any() or (self.whole[-MARGIN:] != UNTOUCHED).any():
            return "memory beside D was written to."
        if torch.equal(self.got, self.wanted):
            return ""
        wrong = (self.got != self.wanted).cpu()
        row, column = (int(x) for x in wrong.nonzero()[0])
        value, wanted = float(self.got[row, column]), float(self.wanted[row, column])
        yours = "nothing was written" if value == UNTOUCHED else f"yours is {value:g}"
        share = f"{int(wrong.sum())} of {wrong.numel()} elements are wrong"
        return f"{share}; at [{row}, {column}] {yours}, expected {wanted:g}."


def exact_product(
    kernel: str, M: int, N: int, K: int, tile: Tile | None = None, device: str = "cpu"
) -> ExactProduct:
    """Return a product for a kernel that takes no scales; ValueError for a K whose sums may not be exact."""
    if not 0 < K <= LONGEST:
        raise ValueError(f"K is {K}, but sums are exact for K from 1 to {LONGEST}.")
    a, b = (_signs(rows, K, seed, device) for seed, rows in enumerate((M, N)))
    blocks = -(-K // 128)
    a_scales = m_major(torch.ones(M, blocks, device=device))
    b_scales = torch.ones(-(-N // 128), blocks, device=device)
    whole = torch.full((MARGIN + M + MARGIN, N), UNTOUCHED, dtype=torch.bfloat16, device=device)
    plan = plan_for(kernel, Problem.of(a, a_scales, b, b_scales, whole[MARGIN:-MARGIN]), tile)
    wanted = (a.float() @ b.float().T).bfloat16()
    return ExactProduct(plan, whole, wanted, (a, a_scales, b, b_scales))


def _signs(rows: int, K: int, seed: int, device: str) -> Tensor:
    random = torch.Generator().manual_seed(seed)
    return torch.randint(-1, 2, (rows, K), generator=random).float().to(device, torch.float8_e4m3fn)
