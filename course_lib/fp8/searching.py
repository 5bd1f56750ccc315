"""The kernel search with a GPU: what it times, how each result is judged, and the clock.

    ranked = here(4096, 4096, 7168)         # seconds by Choice, the fastest first: fp8_gemm takes that now
    ranked = of(given, d, exact, sampler)   # the same with tensors and a clock of one's own

Not yet run on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from course_lib.fp8 import errors, jit, launch, on_hopper, search
from course_lib.fp8.choice import Choice
from course_lib.fp8.driver import CannotLaunch
from course_lib.fp8.quantise import ROW_BLOCKS, SQUARES, dequantise, m_major, quantise
from course_lib.measure.gpu_timing import Taken

LIMIT_S = 20.0  # for one product
BUDGET_S = 3.0  # for what is compared with each other
LONGEST_S = 120.0  # for a search: compiling and checking its candidates, and timing them

Quantised = tuple[Tensor, Tensor, Tensor, Tensor]  # a, a_scales (M-major), b, b_scales
Sampler = Callable[[Mapping[str, Callable[[], None]]], Mapping[str, Taken]]


class Wrong(RuntimeError):
    """A kernel computes something else than the product."""


#: What a search may end with on a machine with a GPU.
FAILURES = (Wrong, jit.CannotBuild, CannotLaunch, torch.OutOfMemoryError)


def here(M: int, N: int, K: int, more: tuple[Choice, ...] = ()) -> dict[Choice, float]:
    """Search for the product of random a (M, K) and b (N, K) on torch's current GPU, with `more` candidates.

    Raises one of FAILURES: for a kernel that computes something else, does not compile or does not start, for
    want of memory. A kernel that hangs ends the process, with a sentence.
    """
    from course_lib.measure.gpu_timing import l2_flush, samples

    device = torch.device("cuda", torch.cuda.current_device())
    a, a_scales = quantise(operand(M, K, device=device), ROW_BLOCKS)
    b, b_scales = quantise(operand(N, K, device=device, seed=1), SQUARES)
    given = a, m_major(a_scales), b, b_scales
    flush, d = l2_flush(), torch.empty(M, N, dtype=torch.bfloat16, device=device)

    def sampler(starts: Mapping[str, Callable[[], None]]) -> Mapping[str, Taken]:
        return samples(starts, budget_s=BUDGET_S, flush=flush)

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
    tried: int = search.TRIED,
    more: tuple[Choice, ...] = (),
) -> dict[Choice, float]:
    """Search with the given tensors; `d` takes the results, `exact` is what they must be, float64."""

    def start(choice: Choice) -> None:
        d.fill_(torch.nan)
        on_hopper.dense(*given, d, choice)

    def check(choice: Choice) -> None:
        launch.finish(d.device, LIMIT_S)
        judge(words(choice), d, exact, errors.LIMIT)

    def timer(functions: Mapping[Choice, Callable[[], None]]) -> dict[Choice, float]:
        taken = sampler({words(one): (lambda one=one: on_hopper.dense(*given, d, one)) for one in functions})
        return {one: taken[words(one)].median_s for one in functions}

    shape = (len(given[0]), len(given[2]), given[0].shape[1])
    return search.search(*shape, launch.gpu(d.device), start, timer, check, tried, more)


def judge(what: str, d: Tensor, exact: Tensor, limit: float) -> float:
    """Return how wrong a result is; raises Wrong if it is more than that."""
    diff = errors.calc_diff(d.double(), exact)
    if not diff < limit:  # NaN is not below anything
        raise Wrong(f"{what} is wrong: calc_diff is {diff:.1e}.")
    return diff


def words(choice: Choice) -> str:
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
