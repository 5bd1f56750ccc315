"""The products on a Hopper GPU: which kernel, which tile, and the launch. `gemm` has checked the arguments.

    dense(a, a_scales, b, b_scales, out)
    grouped(a, a_scales, b, b_scales, masked_m, expected_rows, out)

Which kernel and tile are best is what a search has measured on this GPU for such a product, or else what the
model in `choose` expects.
"""

from __future__ import annotations

from functools import lru_cache

from torch import Tensor

from course_lib.fp8 import choice as choices
from course_lib.fp8 import launch
from course_lib.fp8.choice import KernelChoice, candidates_of_groups
from course_lib.fp8.plans import Problem, plan_for
from course_lib.fp8.quantise import m_major

_plan = lru_cache(maxsize=1024)(plan_for)  # the same tensors come again and again, and a plan is mostly sums


def dense(
    a: Tensor, a_scales: Tensor, b: Tensor, b_scales: Tensor, out: Tensor, choice: KernelChoice | None = None
) -> Tensor:
    """Write the product of a (M, K) and b (N, K) to `out`, bf16 (M, N), and return it.

    `choice` None: the best that is known for this GPU. M and N are above 0.
    """
    if not a.shape[1]:
        return out.zero_()
    gpu = launch.gpu(a.device)
    choice = choice or choices.best(len(a), len(b), a.shape[1], gpu)
    laid_out = m_major(a_scales), b_scales.contiguous()  # must live until the launch is in the queue
    problem = Problem.of(a, laid_out[0], b, laid_out[1], out)
    launch.launch(_plan(choice.kernel, problem, choice.tile, gpu.sms), a.device)
    return out


def grouped(
    a: Tensor,
    a_scales: Tensor,
    b: Tensor,
    b_scales: Tensor,
    indices: Tensor,
    expected_rows: int,
    out: Tensor,
) -> Tensor:
    """Write the products of groups to `out` and return it.

    a is (M, K) and `indices` the group of every row, or a is (groups, rows, K) and they are the groups' rows.

    `expected_rows`, about how many rows a group has, helps to choose a tile. Nothing here waits for the GPU.
    """
    masked, (groups, N, K) = a.dim() == 3, b.shape
    if not K:
        return out if masked else out.masked_fill_((indices >= 0)[:, None], 0)
    gpu = launch.gpu(a.device)
    choice = candidates_of_groups(groups, expected_rows, N, K, masked, gpu)[0]
    laid_out = m_major(a_scales), b_scales.contiguous()  # must live until the launch is in the queue
    problem = Problem.of(a, laid_out[0], b, laid_out[1], out, indices)
    launch.launch(_plan(choice.kernel, problem, choice.tile, gpu.sms), a.device)
    return out
