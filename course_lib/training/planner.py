"""Which mesh trains a model best: data x tensor x pipeline, its time of a step, memory and cost, by a model.

    gpt = transformer(layers=36, width=4096, heads=32)
    one = step(gpt, A100, Mesh(32, tensor=4), batch=512, micro=16, reached=0.69)
    one.seconds, one.memory, one.parts                   # {"products": …, "other kernels": …, …}

Time of a rank, piece by piece, by circle 7's roofline: its products at the share `reached` of the GPU's peak,
or as fast as weights come; everything between them at the memory's speed, each kept activation written once
and read once; a layer's all-reduces within an island; the pipeline's bubble; at the end the gradients'
all-reduce on chapter 08's network, and Adam. Nothing overlaps, unless told so. `reached` is fitted to one
published run; nine others are its test.

Sources: Narayanan et al., "Efficient large-scale language model training on GPU clusters using Megatron-LM"
(2021): equations 2 and 3 for parameters and FLOP, sections 2 and 3 for what is sent, table 1 for the runs;
their micro-batches and chunks are those of Megatron-LM's examples/sc21/run_table_1.sh. Korthikanti et al.,
"Reducing activation recomputation in large transformer models" (2022), section 4, for activations. NVIDIA's
data sheets.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from course_lib.arguments import number, whole
from course_lib.distributed.plan import ClusterPlan
from course_lib.simulators.network import Network, Step, islands, timeline
from course_lib.training import zero

if TYPE_CHECKING:
    from torch import Tensor, nn

HALF = 2  # bytes of a number in training with mixed precision
UPDATE = 28  # bytes that Adam reads and writes of a parameter: 2 of its gradient, 12 + 12 of states, 2 new
ALPHA = 5e-6  # seconds that a step of a collective takes beside its bytes


@dataclass(frozen=True)
class Model:
    """What counts of a model: its parameters, and for one example FLOP forward, bytes kept and passed on.

    `kept` are the activations of all layers that backward needs, `edge` what one layer hands to the next,
    both in half precision. `uncut` is the share of `kept` that tensor parallel ranks keep all of: what goes
    in and out of a layer's norms, sums and dropouts. `head` are FLOP forward that are never computed again (a
    transformer's logits), `sums` how often a pass through a layer adds up what tensor parallel ranks have.
    """

    name: str
    parameters: float
    layers: int
    flops: float
    kept: float
    edge: float
    uncut: float = 10 / 34  # of a transformer's layer without attention's scores
    head: float = 0.0
    sums: int = 2


@dataclass(frozen=True)
class ClusterGpu:
    """A GPU: peak (FLOP/s, half precision), memory (bytes and bytes/s), and links in bytes/s one way.

    `near` is a GPU's link to the others of its island of `island`, `far` its share of the network. `price` is
    the reader's own, for an hour; 0 where nobody asks.
    """

    name: str
    peak: float
    memory: float
    memory_speed: float
    island: int
    near: float
    far: float
    price: float = 0.0


#: Data sheets: A100 80 GB SXM (NVLink 3; in Selene 200 Gbit/s for each GPU), H100 SXM (400 Gbit/s).
A100 = ClusterGpu("A100", 312e12, 80e9, 2.039e12, island=8, near=300e9, far=25e9)
H100 = ClusterGpu("H100", 989e12, 80e9, 3.35e12, island=8, near=450e9, far=50e9)


ASSUMED = (
    "Assumed: every GPU reaches the same share of its peak in products, small ones too; gradients travel "
    "while the last micro-batch goes backward, ZeRO 3's weights beside all that is computed, and network is "
    "what is left; loading takes no time, nothing fails, and time is paid by the second."
)


class Mesh(NamedTuple):
    """How ranks share a model: data x tensor x pipeline of them, and ZeRO's stage among those of `data`."""

    data: int
    tensor: int = 1
    pipeline: int = 1
    zero: int = 0

    @property
    def ranks(self) -> int:
        """All of them."""
        return self.data * self.tensor * self.pipeline

    def __str__(self) -> str:
        sharded = f", ZeRO {self.zero}" if self.zero else ""
        return f"{self.data} x {self.tensor} x {self.pipeline}{sharded}"


@dataclass(frozen=True)
class TrainingStep:
    """One step of training on a mesh: seconds by what they are spent on, bytes of a rank, FLOP/s of a GPU."""

    mesh: Mesh
    parts: dict[str, float]
    memory: float
    flops: float

    @property
    def seconds(self) -> float:
        """All parts together."""
        return sum(self.parts.values())


def transformer(layers: int, width: int, heads: int, sequence: int = 2048, vocabulary: int = 51200) -> Model:
    """Return a GPT of so many layers: an example is a sequence. The formulas are those of the sources."""
    L, h, s, V = whole("layers", layers), whole("width", width), sequence, vocabulary
    return Model(
        f"GPT {L} x {h}",
        parameters=12 * L * h**2 * (1 + 13 / (12 * h) + (V + s) / (12 * L * h)),
        layers=L,
        flops=24 * s * L * h**2 * (1 + s / (6 * h)),
        kept=L * s * (34 * h + 5 * whole("heads", heads) * s),  # equation 1 of Korthikanti et al.
        edge=HALF * s * h,
        uncut=10 * h / (34 * h + 5 * heads * s),  # equation 2
        head=2 * s * h * V,
    )


def counted(
    module: nn.Module, *inputs: Tensor, layers: int, edge: float, name: str = "", sums: int = 2
) -> Model:
    """Return the model of a module of torch by running it forward once on one example of float32.

    Its FLOP are those that torch counts, its activations what autograd keeps (parameters do not count), in
    half precision half of that. `edge` are the bytes that one of its `layers` hands to the next, `sums` how
    often a pass through one of them adds up what tensor parallel ranks have.
    """
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    kept: dict[int, int] = {}

    def keep(x: Tensor) -> Tensor:
        storage = x.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return x

    counter = FlopCounterMode(display=False)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x), counter:
        out = module(*inputs)  # alive until all is counted: no address is used twice
    own = {one.untyped_storage().data_ptr() for one in module.parameters()}
    of_activations = sum(size for at, size in kept.items() if at not in own) / 4 * HALF
    del out
    count = sum(one.numel() for one in module.parameters())
    flops = counter.get_total_flops()
    return Model(name or type(module).__name__, count, layers, flops, of_activations, edge, sums=sums)


def step(
    model: Model,
    gpu: ClusterGpu,
    mesh: Mesh,
    batch: int,
    micro: int = 1,
    *,
    reached: float,
    recompute: bool = True,
    chunks: int = 1,
    overlaps: bool = False,
) -> TrainingStep:
    """Return what a step with a batch of so many examples takes and keeps.

    Args:
        micro: examples of a micro-batch.
        reached: share of the peak that the products alone reach.
        recompute: keep only what layers hand on, and compute the rest again before backward: a third more.
        chunks: parts of the model that a stage of the pipeline has (interleaved 1F1B: the bubble is so many
            times smaller, and each part's edges are sent).
        overlaps: gradients travel while the last micro-batch goes backward; what takes longer is left.

    Raises ValueError for a mesh that does not divide the batch, the layers or the island.
    """
    data, tensor, stages, sharded = _checked(model, gpu, mesh, batch, micro, chunks)
    slots = batch // (data * micro)  # micro-batches of a pipeline
    cut = tensor * stages
    passes = 4 if recompute else 3  # forward, backward twice as much, and once more what was not kept
    flops = passes * model.flops + 3 * model.head  # of an example
    layer_sums = (passes - 1) * model.sums * model.layers / stages  # as many backward as forward
    share = model.uncut + (1 - model.uncut) / tensor
    weights, links = model.parameters / cut * HALF, (gpu.island, gpu.near, gpu.far)
    at_peak = flops * micro / cut / gpu.peak
    edge = 2 * chunks * model.edge * micro / tensor / (gpu.near if mesh.ranks <= gpu.island else gpu.far)
    per_slot = {
        "products": max(
            at_peak / number("reached", reached, above=0, most=1), passes * weights / gpu.memory_speed
        ),
        "other kernels": passes * 2 * model.kept * micro / stages * share / gpu.memory_speed,
        "layers' all-reduces": layer_sums * _all_reduce(*links, mesh.ranks, 1, tensor, model.edge * micro),
        "stages": edge if stages > 1 else 0.0,
    }
    parts = {name: slots * seconds for name, seconds in per_slot.items()}
    parts["bubble"] = (stages - 1) / chunks * sum(per_slot.values())
    both = _all_reduce(*links, mesh.ranks, tensor, data, weights)  # a reduce-scatter, and an all-gather
    busy = per_slot["products"] + per_slot["other kernels"]
    if sharded == 3:  # gathers twice and reduces once in each micro-batch, beside all that is computed
        travels, hides = 1.5 * slots * both, slots * busy
    else:  # what stages 1 and 2 gather are weights, after Adam
        travels, hides = both, 2 / passes * busy  # while the last micro-batch goes backward
        hides = min(hides, both / 2) if sharded else hides
    parts["gradients' all-reduce"] = max(0.0, travels - hides) if overlaps else travels
    parts["update"] = UPDATE * model.parameters / cut / (data if sharded else 1) / gpu.memory_speed
    memory = zero.kept(model.parameters / cut, data, sharded, mixed=True).total
    memory += _activations(model, mesh, micro, slots, recompute, share, chunks)
    return TrainingStep(mesh, parts, memory, flops * batch / sum(parts.values()) / mesh.ranks)


def meshes(model: Model, gpu: ClusterGpu, ranks: int) -> Iterator[Mesh]:
    """Yield the meshes of so many ranks: tensor parallel within an island, stages of equally many layers."""
    for tensor in (1, 2, 4, 8, 16):
        for stages in range(1, model.layers + 1):
            if tensor <= gpu.island and model.layers % stages == 0 and ranks % (tensor * stages) == 0:
                data = ranks // (tensor * stages)
                for stage in (0, 1, 3) if data > 1 else (0,):
                    if stage < 3 or stages == 1:
                        yield Mesh(data, tensor, stages, stage)


def plans(
    model: Model,
    gpus: Sequence[ClusterGpu],
    examples: float,
    batch: int,
    counts: Sequence[int] = tuple(1 << k for k in range(11)),
    *,
    reached: float,
    recompute: bool = False,
    overlaps: bool = True,
) -> list[ClusterPlan]:
    """Return the fastest mesh that fits into memory for each GPU and number of ranks, cheapest first.

    All `examples` in steps of `batch`; micro-batches of 1, 2, 4 … up to the rank's share. What is assumed is
    in `step` and `ASSUMED`.
    """
    found, how = [], {"recompute": recompute, "overlaps": overlaps}
    for gpu in gpus:
        for ranks in counts:
            fit = []
            for mesh in meshes(model, gpu, ranks):
                micro = 1
                while batch % (mesh.data * micro) == 0:
                    one = step(model, gpu, mesh, batch, micro, reached=reached, **how)
                    if one.memory <= gpu.memory:
                        fit.append((round(100 * math.log(one.seconds)), mesh.zero, -micro, one))
                    micro *= 2
            if fit:
                *_, micro, best = min(fit, key=lambda each: each[:3])  # within 1 % the simplest one
                steps = number("examples", examples, above=0) / batch
                compute = sum(best.parts[name] for name in ("products", "other kernels", "bubble", "update"))
                times = steps * compute, steps * (best.seconds - compute)
                cost = ranks * sum(times) / 3600 * gpu.price
                name = f"{best.mesh}, {-micro} at a time"
                found.append(ClusterPlan(gpu.name, ranks, name, *times, best.memory, cost))
    return sorted(found, key=lambda plan: (float(f"{plan.cost:.3g}"), plan.seconds))


# -- published runs -----------------------------------------------------------------------------------------


class Published(NamedTuple):
    """A run of table 1: model, mesh, batch, micro-batch, chunks, and what a GPU reached in FLOP/s."""

    layers: int
    width: int
    heads: int
    mesh: Mesh
    batch: int
    micro: int
    chunks: int
    flops: float


#: Meshes, batches and micro-batches are those of the repository; FLOP/s were set down from table 1 by memory,
#: and agree with its parameters and aggregates: to be held beside the print.
MEGATRON = (
    Published(24, 2304, 24, Mesh(32, 1, 1), 512, 16, 1, 137e12),
    Published(30, 3072, 32, Mesh(32, 2, 1), 512, 16, 1, 138e12),
    Published(36, 4096, 32, Mesh(32, 4, 1), 512, 16, 1, 142e12),
    Published(40, 6144, 48, Mesh(32, 8, 1), 1024, 8, 1, 135e12),
    Published(48, 8192, 64, Mesh(32, 8, 2), 1536, 4, 1, 138e12),
    Published(60, 10240, 80, Mesh(32, 8, 4), 1792, 2, 3, 140e12),
    Published(80, 12288, 96, Mesh(24, 8, 8), 2304, 2, 2, 148e12),
    Published(96, 16384, 128, Mesh(15, 8, 16), 2160, 1, 2, 155e12),
    Published(105, 20480, 128, Mesh(9, 8, 35), 2520, 1, 3, 163e12),
    Published(128, 25600, 160, Mesh(6, 8, 64), 3072, 1, 1, 163e12),
)


def predicted(run: Published, reached: float) -> TrainingStep:
    """Return the model's step of a published run."""
    model = transformer(run.layers, run.width, run.heads)
    return step(model, A100, run.mesh, run.batch, run.micro, reached=reached, chunks=run.chunks)


def fitted(run: Published) -> float:
    """Return the `reached` with which the model gives a run's FLOP/s: the other parts' time is known."""
    one = predicted(run, 1.0)
    known = one.seconds * one.flops / run.flops  # seconds that the published step took
    at_peak = one.parts["products"] * (1 + (run.mesh.pipeline - 1) / run.chunks / _slots(run))
    return at_peak / (known - (one.seconds - at_peak))


def _slots(run: Published) -> int:
    return run.batch // (run.mesh.data * run.micro)


# -- pieces -------------------------------------------------------------------------------------------------


def _checked(model: Model, gpu: ClusterGpu, mesh: Mesh, batch: int, micro: int, chunks: int) -> Mesh:
    for name, value in (*mesh._asdict().items(), ("batch", batch), ("micro", micro), ("chunks", chunks)):
        whole(name, value, least=name != "zero", most=3 if name == "zero" else None)
    if batch % (mesh.data * micro):
        raise ValueError(
            f"A batch of {batch} does not divide into {mesh.data} times micro-batches of {micro}: take a "
            f"multiple of {mesh.data * micro}."
        )
    if model.layers % (mesh.pipeline * chunks):
        raise ValueError(f"{model.layers} layers do not divide into {mesh.pipeline} x {chunks} equal parts.")
    if mesh.tensor > gpu.island:
        raise ValueError(f"tensor is {mesh.tensor}, but an island of {gpu.name} has {gpu.island} GPUs.")
    return mesh


def _activations(
    model: Model, mesh: Mesh, micro: int, slots: int, recompute: bool, share: float, chunks: int
) -> float:
    """Return the bytes of activations that the first stage keeps: 1F1B holds at most p micro-batches.

    Pieces in turns keep more, by (p − 1) / (p v) (Korthikanti et al., section 4.2.3).
    """
    ahead = min(mesh.pipeline, slots)
    if chunks > 1:
        ahead *= 1 + (mesh.pipeline - 1) / (mesh.pipeline * chunks)
    all_layers = model.kept * share * micro
    if not recompute:
        return ahead * all_layers / mesh.pipeline
    return ahead * model.layers / mesh.pipeline * model.edge * micro + all_layers / model.layers


@lru_cache(maxsize=4096)
def _all_reduce(
    island: int, near: float, far: float, ranks: int, stride: int, length: int, nbytes: float
) -> float:
    """Return the seconds of all-reduces in all groups at once: `length` ranks, `stride` apart, each.

    As NCCL does: a ring for each network card that a group has in an island, each with its part of the bytes
    (chapter 08's network says how long the busiest link takes); of latencies a ring within the island, and a
    tree between islands (Jeaugey, "Massively scale your deep learning training with NCCL 2.4", 2019).
    """
    if length == 1:
        return 0.0
    net = _network(island, near, far, ranks)
    here = np.arange(ranks)
    place = here // stride % length
    first = here - place * stride
    cards = math.gcd(length, max(1, net.group // stride))
    own = place % cards
    to = []
    for turn in range(cards):  # ring `turn` comes to an island's rank `turn`, and leaves by the one before it
        leaves = own == (turn - 1) % cards
        next_place = np.where(leaves, (place - own + cards) % length + turn, place - own + (own + 1) % cards)
        to.append(first + stride * next_place)
    blocks = np.full(ranks * cards, nbytes / length / cards)
    ring = Step(np.tile(here, cards), np.concatenate(to), blocks, 2 * (length - 1))
    steps = 2 * (cards - 1) + 2 * math.ceil(math.log2(length // cards))
    return timeline(net, [ring]).seconds + steps * ALPHA


@lru_cache(maxsize=64)
def _network(island: int, near: float, far: float, ranks: int) -> Network:
    side = ranks if ranks <= island else math.gcd(ranks, island)
    return islands(ranks, side, near, far, alpha=0.0)
