"""Kernel search: the model's favourites, timed on this GPU; `choice.best` then knows the fastest.

    ranked = here(4096, 4096, 7168)        # seconds by KernelChoice, the fastest first: fp8_gemm takes that
    ranked = of(given, d, exact, sampler)  # the same with tensors and a clock of one's own

On a machine with a Hopper GPU `python -m course_lib search 4096 7168 2048` searches. Every result is judged
before it is timed: a wrong kernel must never be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import Tensor

from course_lib.fp8 import choice as choices
from course_lib.fp8 import errors, jit, launch, on_hopper
from course_lib.fp8.choice import KernelChoice
from course_lib.fp8.driver import CannotLaunch
from course_lib.fp8.quantise import ROW_BLOCKS, SQUARES, dequantise, m_major, quantise
from course_lib.measure.gpu_timing import Taken

TRIED = 8  # of about sixty candidates; compiling one takes half a second
LIMIT_S = 20.0  # for one product
BUDGET_S = 3.0  # for what is compared with each other
LONGEST_S = 120.0  # for a search: compiling and checking its candidates, and timing them

Quantised = tuple[Tensor, Tensor, Tensor, Tensor]  # a, a_scales (M-major), b, b_scales
Sampler = Callable[[Mapping[str, Callable[[], None]]], Mapping[str, Taken]]


class WrongProduct(RuntimeError):
    """A kernel computes something else than the product."""


#: What a search may end with on a machine with a GPU.
FAILURES = (WrongProduct, jit.CannotBuild, CannotLaunch, torch.OutOfMemoryError)


def here(M: int, N: int, K: int, more: tuple[KernelChoice, ...] = ()) -> dict[KernelChoice, float]:
    """Search for the product of random a (M, K) and b (N, K) on torch's current GPU, with `more` candidates.

    Raises one of FAILURES: for a kernel that computes something else, does not compile or does not start, for
    want of memory. A kernel that hangs ends the process, with a sentence.
    """
    from course_lib.measure.gpu_timing import l2_flush, samples

    device = torch.device("cuda", torch.cuda.current_device())
    a, a_scales = quantise(operand(M, K, device=device), ROW_BLOCKS)
    b, b_scales = quantise(operand(N, K, device=device, seed=1), SQUARES)
    given = a, m_major(a_scales), b, b_scales
    d = torch.empty(M, N, dtype=torch.bfloat16, device=device)
    sampler = partial(samples, budget_s=BUDGET_S, flush=l2_flush())
    exact = exact_of(*given)
    with launch.ends_within(LONGEST_S):
        try:
            return of(given, d, exact, sampler, more=more)
        except launch.Hangs as problem:
            launch.give_up(str(problem))


def of(
    given: Quantised,
    d: Tensor,
    exact: Tensor,
    sampler: Sampler,
    tried: int = TRIED,
    more: tuple[KernelChoice, ...] = (),
) -> dict[KernelChoice, float]:
    """Time the `tried` first candidates and `more`, keep the fastest, return all seconds, the fastest first.

    `d` takes the results, `exact` is what they must be, float64.
    """
    M, N, K = len(given[0]), len(given[2]), given[0].shape[1]
    gpu = launch.gpu(d.device)
    tiles = dict.fromkeys((*choices.candidates(M, N, K, gpu)[:tried], *more))  # each once
    for choice in tiles:
        d.fill_(torch.nan)
        on_hopper.dense(*given, d, choice)
        launch.finish(d.device, LIMIT_S)
        judge(words(choice), d, exact, errors.LIMIT)
    taken = sampler(
        {words(choice): lambda choice=choice: on_hopper.dense(*given, d, choice) for choice in tiles}
    )
    seconds = {choice: taken[words(choice)].median_s for choice in tiles}
    ranked = dict(sorted(seconds.items(), key=lambda pair: pair[1]))
    fastest = next(iter(ranked))
    choices.keep(fastest, ranked[fastest], M, N, K, gpu)
    return ranked


def judge(what: str, d: Tensor, exact: Tensor, limit: float) -> float:
    """Return how wrong a result is; raises WrongProduct if it is more than that."""
    diff = errors.calc_diff(d.double(), exact)
    if not diff < limit:  # NaN is not below anything
        raise WrongProduct(f"{what} is wrong: calc_diff is {diff:.1e}.")
    return diff


def words(choice: KernelChoice) -> str:
    """Return a choice in words: "v6_tuned 128x160 in 2s"."""
    tile = choice.tile
    return f"{choice.kernel} {tile.BM}x{tile.BN}" + (f" in {tile.cluster}s" if tile.cluster > 1 else "")


def operand(*shape: int, device: torch.device, seed: int = 0) -> Tensor:
    """Return normally distributed float32."""
    random = torch.Generator(device).manual_seed(seed)
    return torch.randn(shape, generator=random, device=device)


def exact_of(a: Tensor, a_scales: Tensor, b: Tensor, b_scales: Tensor) -> Tensor:
    """Return the product of what was quantised, float64."""
    return exact_product(dequantise(a, a_scales, ROW_BLOCKS), dequantise(b, b_scales, SQUARES))


def exact_product(a: Tensor, b: Tensor) -> Tensor:
    """Return a (M, K) times b (N, K) transposed, float64."""
    return a.double() @ b.double().T
