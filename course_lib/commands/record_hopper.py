"""`python -m course_lib record --hopper`: the FP8 kernels on a Hopper GPU, beside torch's products.

Rung by rung at one shape, then the shapes of DeepGEMM's first release: dense, and grouped in both layouts
(masked groups of different heights, as its tests have them today). For each dense product the tile is
searched for first. What is compared takes turns, with nothing of it in the L2 cache before a launch. The JSON
file goes into `course_lib/fp8/recordings/`, which `course_lib.fp8.recordings` reads.

A kernel that hangs would keep everything waiting: what starts kernels has a time limit, and when it is over
the process ends with a sentence.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from course_lib.commands import record_order
from course_lib.commands.record_order import RecordOrder
from course_lib.fp8 import control, errors, gemm, jit, launch, recordings, searching, torch_products
from course_lib.fp8.choice import candidates_of_groups
from course_lib.fp8.plans import Problem, plan_for
from course_lib.fp8.quantise import ROW_BLOCKS, SQUARES, m_major, quantise
from course_lib.fp8.recordings import OURS, OURS_DENSE, HopperRecording, HopperRow
from course_lib.fp8.searching import (
    FAILURES,
    LIMIT_S,
    TRIED,
    Sampler,
    exact_of,
    exact_product,
    judge,
    operand,
    words,
)
from course_lib.measure import gpu_state
from course_lib.measure.gpu_timing import Taken

#: Shapes of DeepGEMM's first release (deepseek-ai/DeepGEMM a6d97a1, tests/test_core.py).
WEIGHTS = ((2112, 7168), (24576, 1536), (32768, 512), (7168, 16384), (4096, 7168), (7168, 2048))  # N, K
DENSE = tuple((M, N, K) for M in (64, 128, 4096) for N, K in WEIGHTS)
CONTIGUOUS = tuple((G, M, N, K) for G, M in ((4, 8192), (8, 4096)) for N, K in ((4096, 7168), (7168, 2048)))
MASKED = tuple(
    (G, M, N, K) for G, M in ((1, 1024), (2, 512), (4, 256)) for N, K in ((4096, 7168), (7168, 2048))
)
LADDER = (4096, 4096, 7168)
UNSCALED = ("v1_mma", "v1_wgmma", "v2_tma_ring", "v3_warp_specialised")
SCALED = ("v0_naive", "v4_two_level", "v5_persistent", "v6_tuned")
NO_YIELDS = "v6_tuned, no yields"
#: Each shape is measured so long at least: nvidia-smi is asked every 0.25 s, its power is a mean of 1 s.
WATCHED_S = 4.0
LEFT_OUT = "Left out:"
BROKEN = "After that the GPU was in no state to go on: what follows was not measured."
BUDGET_S = 3.0  # for what is compared with each other
ROOM = 4096  # rows that a masked group has room for
#: Further off than this is broken: a right kernel is at 1.4e-6, one without promotion at 2e-6 and more.
WORST_DIFF = {False: 1e-4, True: errors.LIMIT}
METHOD = (
    "Normally distributed operands; what is compared takes turns in shuffled order, in bursts of at most 20 "
    "launches; before each launch the L2 cache is overwritten and read; GPU time between two events around "
    "it, all queued before the first begins, so the start of a kernel counts; between bursts the GPU rests, "
    "so its clock may be higher than under a steady load; tiles of dense products are the fastest of the "
    f"model's {TRIED} favourites, those of groups the model's, the ladder's the default; torch._scaled_mm "
    "without fast accumulation."
)


@dataclass
class Way:
    """One way to compute a product: how it is started, where the result is, and what it should be."""

    start: Callable[[], Any]
    result: Callable[[], Tensor]
    reference: Callable[[], Tensor]  # float64
    kernel: str = ""
    matrices: int = 1  # of B that it reads
    scaled: bool = True  # with our scales and promotion: the strict limit holds


@dataclass
class ComparedProduct:
    """A product (groups, rows, N, K), the ways to compute it by name, and why torch refuses others."""

    shape: tuple[int, int, int, int]
    ways: Mapping[str, Way]
    refused: Mapping[str, str] = field(default_factory=dict)


def run(order: RecordOrder) -> int:
    """Measure, print tables and write the file; return the exit code."""
    folder = order.folder_or(recordings.FOLDER)
    record_order.refuse(launch.missing_here())
    recording = measured(order)
    left_out = [note for note in recording.notes if note.startswith(LEFT_OUT)]
    for kind in recordings.KINDS if recording.rows else ():
        print(f"\n{recording.table(kind)}")
    print(*recording.notes, sep="\n")
    if recording.rows:
        record_order.write(recordings.write, recording, folder)
    if BROKEN in recording.notes:
        launch.give_up(f"record: {left_out[-1]}")
    return 1 if left_out else 0


def measured(order: RecordOrder) -> HopperRecording:
    """Return what the GPU of this machine does; what cannot be measured is a note."""
    from course_lib.measure.gpu_timing import l2_flush, samples

    watch, flush, budget_s = gpu_state.Watch(), l2_flush(), order.budget_s or BUDGET_S

    def sampler(starts: Mapping[str, Callable[[], None]]) -> Mapping[str, Taken]:
        with launch.ends_within(LIMIT_S + 10 * budget_s):
            return samples(starts, order.rounds, budget_s, flush=flush)

    rows, notes = measure(order, torch.device("cuda", torch.cuda.current_device()), sampler, watch)
    return HopperRecording(
        when=record_order.now(),
        commit=order.commit,
        device=torch.cuda.get_device_name(),
        gpu=gpu_state.recorded(watch),
        versions={
            **record_order.versions("numpy", "torch"),
            "nvrtc": jit.compiler().removeprefix("NVRTC "),
        },
        method=METHOD,
        rows=tuple(rows),
        notes=tuple(notes),
    )


def measure(
    order: RecordOrder, device: torch.device, sampler: Sampler, watch: gpu_state.Watch
) -> tuple[list[HopperRow], list[str]]:
    """Return the rows of all kinds, and a sentence for each way that torch does not have here.

    A product that fails is left out with a sentence, too: what has been measured must not be lost with it.

    `watch` looks at the GPU while `sampler` measures them (not while tiles are searched).
    """
    rows, notes = [], {}
    for kind, sizes, prepare in comparisons(order, device, sampler):
        what = f"{kind} {' x '.join(map(str, sizes))}"
        print(f"{what} …", flush=True)
        try:
            comparison = prepare()
            rows += compared(kind, comparison, sampler, device, watch)
        except (*FAILURES, RuntimeError) as problem:
            notes[f"{LEFT_OUT} {what}: {problem}"] = None
            if not isinstance(problem, FAILURES):  # a hang or an error of the GPU: nothing more will run
                notes[BROKEN] = None
                break
        else:
            for name, reason in comparison.refused.items():
                notes[f"{name} cannot be measured here: {reason}"] = None
    return rows, list(notes)


def comparisons(
    order: RecordOrder, device: torch.device, sampler: Sampler
) -> Iterator[tuple[str, tuple[int, ...], Callable[[], ComparedProduct]]]:
    """Yield kind, sizes, and what prepares the comparison; one at a time, they are large."""
    ladder, dense, contiguous, masked = LADDER, DENSE, CONTIGUOUS, MASKED
    if order.small:  # four blocks of K: cuBLAS wants the scales' rows in multiples of four
        ladder, dense = (256, 256, 512), ((64, 128, 512), (200, 128, 512))
        contiguous, masked = ((2, 256, 512, 256), (4, 128, 512, 256)), ((2, 100, 512, 256),)
    yield "ladder", ladder, partial(rungs, ladder, device)
    for shape in dense:
        yield "dense", shape, partial(dense_ways, shape, device, sampler)
    for shape in contiguous:
        yield "contiguous", shape, partial(contiguous_ways, *shape, device, sampler)
    for groups, M, N, K in masked:
        counts = counts_of(groups, M, device)
        yield "masked", (groups, M, N, K), partial(masked_ways, counts, M, N, K, device, sampler)


# -- what is compared --------------------------------------------------------------------------------------


def rungs(shape: tuple[int, int, int], device: torch.device) -> ComparedProduct:
    """Return every rung at one shape: those without scales multiply the codes as they are.

    All have their default tile, 128 x 128 where it is free. The last is v6_tuned with the yields taken out of
    its FFMAs; their order and reuse flags stay as the compiler made them.
    """
    a, b = operand(shape[0], shape[2], device=device), operand(shape[1], shape[2], device=device, seed=1)
    a, a_scales = quantise(a, ROW_BLOCKS)
    quantised = (a, m_major(a_scales), *quantise(b, SQUARES))
    ways = {
        name: _rung(name, quantised, scaled)
        for names, scaled in ((UNSCALED, False), (SCALED, True))
        for name in names
    }
    ways[NO_YIELDS] = _rung("v6_tuned", quantised, True, control.without_yields)
    return ComparedProduct((1, *shape), ways)


def _rung(name: str, quantised: tuple[Tensor, ...], scaled: bool, change: launch.Change | None = None) -> Way:
    a, _, b, _ = quantised
    d = torch.full((len(a), len(b)), torch.nan, dtype=torch.bfloat16, device=a.device)
    plan = plan_for(name, Problem.of(*quantised, d), None, launch.gpu(a.device).sms)
    tile = ", ".join(f"{constant} {value}" for constant, value in plan.constants.items())

    def reference() -> Tensor:  # a plan knows addresses only: this keeps the tensors alive
        return exact_of(*quantised) if scaled else exact_product(a, b)

    def start() -> None:
        launch.launch(plan, a.device, change)

    return Way(start, lambda: d, reference, tile, scaled=scaled)


def dense_ways(shape: tuple[int, int, int], device: torch.device, sampler: Sampler) -> ComparedProduct:
    """Return ours, with the tile that a search finds, beside torch's."""
    M, N, K = shape
    x, y = operand(M, K, device=device), operand(N, K, device=device, seed=1)
    ours = ours_dense(*quantise(x, ROW_BLOCKS), *quantise(y, SQUARES), sampler)
    theirs, refused = torch_products.all_of(x, y)
    ways = {OURS: ours}
    for name, product in theirs.items():
        ways[name] = Way(
            product.start,
            lambda product=product: product.d,
            lambda product=product: exact_product(product.a, product.b),
            scaled=False,
        )
    return ComparedProduct((1, *shape), ways, refused)


def ours_dense(a: Tensor, a_scales: Tensor, b: Tensor, b_scales: Tensor, sampler: Sampler) -> Way:
    """Return our dense product with the fastest of the model's favourites; `fp8_gemm` then takes it, too."""
    given = (a, m_major(a_scales), b, b_scales)
    d = torch.empty(len(a), len(b), dtype=torch.bfloat16, device=a.device)
    exact = exact_of(*given)
    chosen = next(iter(searching.of(given, d, exact, sampler, TRIED)))
    return Way(lambda: gemm.fp8_gemm(*given, out=d), lambda: d, lambda: exact, words(chosen))


def contiguous_ways(
    groups: int, M: int, N: int, K: int, device: torch.device, sampler: Sampler
) -> ComparedProduct:
    """Return the grouped product, and a dense one with as many rows."""
    a, a_scales = quantise(operand(groups * M, K, device=device), ROW_BLOCKS)
    b, b_scales = quantise(operand(groups, N, K, device=device, seed=1), SQUARES)
    a_scales = m_major(a_scales)
    indices = torch.arange(groups, dtype=torch.int32, device=device).repeat_interleave(M)
    d = torch.zeros(groups * M, N, dtype=torch.bfloat16, device=device)

    def reference() -> Tensor:
        parts = [slice(group * M, (group + 1) * M) for group in range(groups)]
        return torch.cat(
            [exact_of(a[part], a_scales[part], b[g], b_scales[g]) for g, part in enumerate(parts)]
        )

    chosen = candidates_of_groups(groups, M, N, K, False, launch.gpu(device))[0]
    ours = Way(
        lambda: gemm.fp8_gemm_grouped_contiguous(a, a_scales, b, b_scales, indices, d),
        lambda: d,
        reference,
        words(chosen),
        groups,
    )
    dense = ours_dense(a, a_scales, b[0], b_scales[0], sampler)
    return ComparedProduct((groups, groups * M, N, K), {OURS: ours, OURS_DENSE: dense})


def masked_ways(
    counts: Tensor, expected: int, N: int, K: int, device: torch.device, sampler: Sampler
) -> ComparedProduct:
    """Return the grouped product of groups with so many rows, and a dense one with as many in all."""
    groups, rows = len(counts), int(counts.sum())
    a, a_scales = quantise(operand(groups, ROOM, K, device=device), ROW_BLOCKS)
    b, b_scales = quantise(operand(groups, N, K, device=device, seed=1), SQUARES)
    a_scales, heights = m_major(a_scales), counts.tolist()
    d = torch.zeros(groups, ROOM, N, dtype=torch.bfloat16, device=device)

    def computed(x: Tensor, group: int) -> Tensor:
        return x[group, : heights[group]]

    def reference() -> Tensor:
        return torch.cat(
            [exact_of(computed(a, g), computed(a_scales, g), b[g], b_scales[g]) for g in range(groups)]
        )

    chosen = candidates_of_groups(groups, expected, N, K, True, launch.gpu(device))[0]
    ours = Way(
        lambda: gemm.fp8_gemm_grouped_masked(a, a_scales, b, b_scales, counts, expected, d),
        lambda: torch.cat([computed(d, g) for g in range(groups)]),
        reference,
        words(chosen),
        groups,
    )
    given = quantise(operand(rows, K, device=device, seed=2), ROW_BLOCKS)
    dense = ours_dense(*given, b[0], b_scales[0], sampler)
    return ComparedProduct((groups, rows, N, K), {OURS: ours, OURS_DENSE: dense})


def counts_of(groups: int, expected: int, device: torch.device) -> Tensor:
    """Return how many rows each group has: about `expected`, 0.7 to 1.3 of it."""
    random = torch.Generator().manual_seed(groups * expected)
    return (expected * (0.7 + 0.6 * torch.rand(groups, generator=random))).int().to(device)


# -- measuring ---------------------------------------------------------------------------------------------


def compared(
    kind: str, comparison: ComparedProduct, sampler: Sampler, device: torch.device, watch: gpu_state.Watch
) -> list[HopperRow]:
    """Return a row for each way, once it has computed what it should; raises WrongProduct if one has not."""
    diffs, ways, shape = {}, comparison.ways, comparison.shape
    for name, way in ways.items():
        way.start()
        launch.finish(device, LIMIT_S)
        what = f"'{name}' ({kind} {' x '.join(map(str, shape))})"
        diffs[name] = judge(what, way.result(), way.reference(), WORST_DIFF[way.scaled])
    starts = {name: way.start for name, way in ways.items()}
    with watch:
        begun = time.monotonic()
        taken = sampler(starts)
        while time.monotonic() - begun < WATCHED_S:
            sampler(starts)  # the same again, for the clock and the power alone
    seen = watch.latest()
    groups, rows, N, K = shape
    return [
        HopperRow(
            kind=kind,
            what=name,
            kernel=way.kernel,
            groups=groups,
            matrices=way.matrices,
            rows=rows,
            N=N,
            K=K,
            seconds=taken[name].median_s,
            spread_s=taken[name].spread_s,
            samples=len(taken[name].seconds),
            call_s=taken[name].median_call_s,
            diff=diffs[name],
            sm_mhz=seen["sm_mhz"] and seen["sm_mhz"][1],
            power_w=seen["power_w"] and seen["power_w"][1],
        )
        for name, way in ways.items()
    ]
