"""`python -m course_lib record --hopper`: the FP8 kernels on a Hopper GPU, beside torch's products.

Rung by rung at one shape, then the shapes of DeepGEMM's first release: dense, and grouped both ways. For each
dense shape the tile is searched for first. What is compared takes turns, with an empty L2 cache before every
launch. The JSON file goes into `course_lib/fp8/recordings/`, which `course_lib.fp8.recordings` reads.

A kernel that hangs would keep everything waiting: each is waited for with a limit when it runs for the first
time, and if it does not come back, the process ends with a sentence.

Not yet run on a GPU.
"""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from course_lib.fp8 import control, errors, gemm, jit, launch, on_hopper, recordings, search, torch_products
from course_lib.fp8.choice import Choice
from course_lib.fp8.plans import Problem, plan_for
from course_lib.fp8.quantise import ROW_BLOCKS, SQUARES, dequantise, m_major, quantise
from course_lib.fp8.recordings import OURS, HopperRecording, Row
from course_lib.measure import gpu_state, machine, recorded_gpu
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
ROOM = 4096  # rows that a masked group has room for
LIMIT_S = 20.0
TRIED = 8
#: Further off than this is broken: a right kernel is at 1.4e-6, one without promotion at 2e-6 and more.
WORST_DIFF = {False: 1e-4, True: errors.LIMIT}
METHOD = (
    "Normally distributed operands; what is compared takes turns in shuffled order; the L2 cache is "
    "overwritten before each launch; GPU time between two events around it, all queued before the first "
    f"begins; tiles of dense products are the fastest of the model's {TRIED} favourites; torch._scaled_mm "
    "without fast accumulation."
)

Sampler = Callable[[Mapping[str, Callable[[], None]]], Mapping[str, Taken]]


class Wrong(RuntimeError):
    """A kernel computes something else than the product."""


@dataclass
class Way:
    """One way to compute a product: how it is started, where the result is, and what it should be."""

    start: Callable[[], Any]
    result: Callable[[], Tensor]
    reference: Callable[[], Tensor]  # float64
    kernel: str = ""
    scaled: bool = True  # with our scales and promotion: the strict limit holds


@dataclass(frozen=True)
class Order:
    """What is to be recorded; `small`: few and small shapes, for trying out."""

    rounds: int = 15
    budget_s: float = 3.0  # for what is compared with each other
    small: bool = False
    commit: str = ""


def run(order: Order, folder: Path | None) -> int:
    """Measure, print tables and write the file; return the exit code."""
    if order.small and folder is None:
        print("record: a small recording is for trying out, not for the course: say with --folder where to.")
        return 2
    if sentence := why_not():
        print(f"record: {sentence}")
        return 2
    folder = folder or recordings.FOLDER
    try:
        recording = measured(order)
        path = recordings.write(recording, folder)
    except Wrong as problem:
        print(f"record: {problem}")
        return 1
    except launch.Hangs as problem:
        print(f"record: {problem}", flush=True)
        os._exit(3)  # an orderly end would wait for the GPU
    except OSError as problem:
        print(f"record: the file cannot be written to {folder} ({problem.strerror}): see --folder.")
        return 1
    for kind in recordings.KINDS:
        print(f"\n{recording.table(kind)}")
    print(*recording.notes, f"\nWritten to {path}.", sep="\n")
    return 0


def why_not() -> str | None:
    """Return the sentence that says why nothing can be recorded here."""
    return machine.missing("torch-cuda") or launch.missing(torch.zeros(1, device="cuda"))


def measured(order: Order) -> HopperRecording:
    """Return what the GPU of this machine does; raises Wrong, or launch.Hangs."""
    from course_lib.measure.gpu_timing import l2_flush, samples

    watch, flush = gpu_state.Watch(), l2_flush()

    def sampler(starts: Mapping[str, Callable[[], None]]) -> Mapping[str, Taken]:
        with watch:
            return samples(starts, order.rounds, order.budget_s, flush=flush)

    rows, notes = measure(order, torch.device("cuda", torch.cuda.current_device()), sampler)
    return HopperRecording(
        when=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        commit=order.commit,
        device=torch.cuda.get_device_name(),
        gpu=recorded_gpu.now(watch),
        versions={
            "python": platform.python_version(),
            "nvrtc": jit.compiler().removeprefix("NVRTC "),
            **{name: metadata.version(name) for name in ("numpy", "torch")},
        },
        method=METHOD,
        rows=tuple(rows),
        notes=tuple(notes),
    )


def measure(order: Order, device: torch.device, sampler: Sampler) -> tuple[list[Row], list[str]]:
    """Return the rows of all kinds, and a sentence for each way that torch does not have here."""
    rows, notes = [], {}
    for kind, shape, ways, refused in comparisons(order, device, sampler):
        print(f"{kind} {' x '.join(map(str, shape))} …", flush=True)
        rows += compared(kind, shape, ways, sampler, device)
        notes |= {f"{name} cannot be measured here: {reason}": None for name, reason in refused.items()}
    return rows, list(notes)


def comparisons(order: Order, device: torch.device, sampler: Sampler) -> Iterator[tuple]:
    """Yield kind, (groups, rows, N, K), ways by name and torch's refusals; one at a time, they are large."""
    ladder, dense, contiguous, masked = LADDER, DENSE, CONTIGUOUS, MASKED
    if order.small:
        ladder, dense = (256, 256, 512), ((64, 512, 256), (256, 512, 256))
        contiguous, masked = ((2, 256, 512, 256),), ((2, 100, 512, 256),)
    yield "ladder", (1, *ladder), *rungs(ladder, device)
    for shape in dense:
        yield "dense", (1, *shape), *dense_ways(shape, device, sampler)
    for groups, M, N, K in contiguous:
        yield "contiguous", (groups, groups * M, N, K), contiguous_ways(groups, M, N, K, device), {}
    for groups, M, N, K in masked:
        counts = counts_of(groups, M, device)
        rows = int(counts.sum())
        yield "masked", (groups, rows, N, K), masked_ways(counts, M, N, K, device), {}


# -- what is compared --------------------------------------------------------------------------------------


def rungs(shape: tuple[int, int, int], device: torch.device) -> tuple[dict[str, Way], dict[str, str]]:
    """Return every rung at one shape: those without scales multiply the codes as they are.

    The last is v6_tuned as an older compiler would have made it, without yields among its FFMAs.
    """
    a, b = operand(shape[0], shape[2], device=device), operand(shape[1], shape[2], device=device, seed=1)
    a, a_scales = quantise(a, ROW_BLOCKS)
    quantised = (a, m_major(a_scales), *quantise(b, SQUARES))
    ways = {
        name: _rung(name, quantised, scaled)
        for names, scaled in ((UNSCALED, False), (SCALED, True))
        for name in names
    }
    return ways | {NO_YIELDS: _rung("v6_tuned", quantised, True, control.without_yields)}, {}


def _rung(name: str, quantised: tuple[Tensor, ...], scaled: bool, change: launch.Change | None = None) -> Way:
    a, _, b, _ = quantised
    d = torch.full((len(a), len(b)), torch.nan, dtype=torch.bfloat16, device=a.device)
    plan = plan_for(name, Problem.of(*quantised, d), None, launch.gpu(a.device).sms)

    def reference() -> Tensor:  # a plan knows addresses only: this keeps the tensors alive
        return exact_of(*quantised) if scaled else _exact(a, b)

    def start() -> None:
        launch.launch(plan, a.device, change)

    return Way(start, lambda: d, reference, _tile_of(plan.constants), scaled)


def dense_ways(
    shape: tuple[int, int, int], device: torch.device, sampler: Sampler
) -> tuple[dict[str, Way], dict[str, str]]:
    """Return ours, with the tile that a search finds, and torch's."""
    M, N, K = shape
    x, y = operand(M, K, device=device), operand(N, K, device=device, seed=1)
    given = (*quantise(x, ROW_BLOCKS), *quantise(y, SQUARES))
    given = (given[0], m_major(given[1]), *given[2:])
    d = torch.empty(M, N, dtype=torch.bfloat16, device=device)
    chosen = searched(shape, given, d, sampler)
    ours = Way(
        lambda: gemm.fp8_gemm(*given, out=d),
        lambda: d,
        lambda: exact_of(*given),
        f"{chosen.kernel} {_words(chosen)}",
    )
    theirs, refused = torch_products.all_of(x, y)
    ways = {OURS: ours}
    for name, product in theirs.items():
        ways[name] = Way(
            product.start, lambda one=product: one.d, lambda one=product: _exact(one.a, one.b), scaled=False
        )
    return ways, refused


def searched(shape: tuple[int, int, int], given: tuple[Tensor, ...], d: Tensor, sampler: Sampler) -> Choice:
    """Return the fastest of the model's favourites; `fp8_gemm` takes it from now on."""

    def start(choice: Choice) -> None:
        on_hopper.dense(*given, d, choice)

    def timer(functions: Mapping[Choice, Callable[[], None]]) -> dict[Choice, float]:
        names = {f"{one.kernel} {_words(one)}": one for one in functions}
        for one in functions.values():
            one()
            launch.finish(d.device, LIMIT_S)
        taken = sampler({name: functions[one] for name, one in names.items()})
        return {names[name]: one.median_s for name, one in taken.items()}

    return next(iter(search.search(*shape, launch.gpu(d.device), start, timer, TRIED)))


def contiguous_ways(groups: int, M: int, N: int, K: int, device: torch.device) -> dict[str, Way]:
    """Return the grouped product, and a dense one with as many rows."""
    a, a_scales = quantise(operand(groups * M, K, device=device), ROW_BLOCKS)
    b, b_scales = quantise(operand(groups, N, K, device=device, seed=1), SQUARES)
    a_scales = m_major(a_scales)
    indices = torch.arange(groups, dtype=torch.int32, device=device).repeat_interleave(M)
    d, one = (torch.zeros(groups * M, N, dtype=torch.bfloat16, device=device) for _ in range(2))

    def reference() -> Tensor:
        parts = [slice(group * M, (group + 1) * M) for group in range(groups)]
        return torch.cat(
            [exact_of(a[part], a_scales[part], b[g], b_scales[g]) for g, part in enumerate(parts)]
        )

    return {
        OURS: Way(
            lambda: gemm.fp8_gemm_grouped_contiguous(a, a_scales, b, b_scales, indices, d),
            lambda: d,
            reference,
        ),
        "ours, dense": Way(
            lambda: gemm.fp8_gemm(a, a_scales, b[0], b_scales[0], one),
            lambda: one,
            lambda: exact_of(a, a_scales, b[0], b_scales[0]),
        ),
    }


def masked_ways(counts: Tensor, expected: int, N: int, K: int, device: torch.device) -> dict[str, Way]:
    """Return the grouped product of groups with so many rows, and a dense one with as many in all."""
    groups, rows = len(counts), int(counts.sum())
    a, a_scales = quantise(operand(groups, ROOM, K, device=device), ROW_BLOCKS)
    b, b_scales = quantise(operand(groups, N, K, device=device, seed=1), SQUARES)
    dense_a, dense_scales = quantise(operand(rows, K, device=device, seed=2), ROW_BLOCKS)
    a_scales, dense_scales = m_major(a_scales), m_major(dense_scales)
    d = torch.zeros(groups, ROOM, N, dtype=torch.bfloat16, device=device)
    one = torch.zeros(rows, N, dtype=torch.bfloat16, device=device)
    heights = counts.tolist()

    def reference() -> Tensor:
        return torch.cat(
            [
                exact_of(a[g, :height], a_scales[g, :height], b[g], b_scales[g])
                for g, height in enumerate(heights)
            ]
        )

    return {
        OURS: Way(
            lambda: gemm.fp8_gemm_grouped_masked(a, a_scales, b, b_scales, counts, expected, d),
            lambda: torch.cat([d[g, :height] for g, height in enumerate(heights)]),
            reference,
        ),
        "ours, dense": Way(
            lambda: gemm.fp8_gemm(dense_a, dense_scales, b[0], b_scales[0], one),
            lambda: one,
            lambda: exact_of(dense_a, dense_scales, b[0], b_scales[0]),
        ),
    }


def counts_of(groups: int, expected: int, device: torch.device) -> Tensor:
    """Return how many rows each group has: about `expected`, 0.7 to 1.3 of it."""
    random = torch.Generator().manual_seed(groups * expected)
    return (expected * (0.7 + 0.6 * torch.rand(groups, generator=random))).int().to(device)


# -- measuring ---------------------------------------------------------------------------------------------


def compared(
    kind: str,
    shape: tuple[int, int, int, int],
    ways: Mapping[str, Way],
    sampler: Sampler,
    device: torch.device,
) -> list[Row]:
    """Return a row for each way, once it has computed what it should; raises Wrong if one has not."""
    diffs = {}
    for name, way in ways.items():
        way.start()
        launch.finish(device, LIMIT_S)
        diffs[name] = errors.calc_diff(way.result().double(), way.reference())
        if not diffs[name] < WORST_DIFF[way.scaled]:  # NaN is not below anything
            where = f"{kind} {' x '.join(map(str, shape))}"
            raise Wrong(f"'{name}' is wrong at {where}: calc_diff is {diffs[name]:.1e}.")
    taken = sampler({name: way.start for name, way in ways.items()})
    groups, rows, N, K = shape
    return [
        Row(
            kind=kind,
            what=name,
            kernel=way.kernel,
            groups=groups,
            rows=rows,
            N=N,
            K=K,
            seconds=taken[name].median_s,
            spread_s=taken[name].spread_s,
            samples=len(taken[name].seconds),
            call_s=taken[name].median_call_s,
            diff=diffs[name],
        )
        for name, way in ways.items()
    ]


def operand(*shape: int, device: torch.device, seed: int = 0) -> Tensor:
    """Return normally distributed float32."""
    random = torch.Generator(device).manual_seed(seed)
    return torch.randn(shape, generator=random, device=device)


def exact_of(a: Tensor, a_scales: Tensor, b: Tensor, b_scales: Tensor) -> Tensor:
    """Return the product of what was quantised, float64."""
    return _exact(dequantise(a, a_scales, ROW_BLOCKS), dequantise(b, b_scales, SQUARES))


def _exact(a: Tensor, b: Tensor) -> Tensor:
    return a.double() @ b.double().T


def _words(choice: Choice) -> str:
    tile = choice.tile
    return f"{tile.BM}x{tile.BN}" + (f", cluster of {tile.cluster}" if tile.cluster > 1 else "")


def _tile_of(constants: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {value}" for name, value in constants.items())
