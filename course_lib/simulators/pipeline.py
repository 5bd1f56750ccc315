"""When who works in a block that multiplies out of a ring of stages: a timeline in cycles, by a small model.

    found = timeline(Pipeline(stages=4, copy_latency=479, copy_cycles=512, math_cycles=512))
    found.cycles, found.share("tensor core")
    found.spans                                     # who, what, from when, until when

A block has one path for copies into shared memory, one tensor core, one set of float32 units and one path for
stores. Each serves one request after the other, in the order in which they come. A copy of a block of K needs
`copy_latency` cycles until its first byte is there, which those of other copies may overlap, and then
`copy_cycles` of the path. `consumers` warpgroups have the tile's rows among them: each has the same share of
the tensor core's `math_cycles`, of the promotion and of the epilogue.

What the three `roles` differ in is who is the producer, and when it orders:

- "one": a thread of the consumers. It orders the block of K that comes `stages` later when all
  warpgroups are through with a stage, and all of them wait for that (kernels v1_wgmma and v2_tma_ring);
- "specialised": a warp that does nothing else. It orders as soon as a stage is free (v3_warp_specialised);
- "persistent": that, and it goes on to the next tile while this one is stored (v5_persistent). Elsewhere a
  tile has a block of its own, which begins when the one before has ended.

It is a model, not a measurement: barriers, instructions and the start of a block cost nothing in it, and
nobody else draws on L2.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from course_lib.arguments import refusal, whole
from course_lib.simulators.gpu.warp_scheduler import LATENCIES

ROLES = ("one", "specialised", "persistent")
COPIES, TENSOR_CORE, FLOAT_UNITS, STORES = "TMA", "tensor core", "float32 units", "store"
WARPGROUPS = ("warpgroup 0", "warpgroup 1")
#: Cycles that a plain read of the H100's memory takes. TMA's may take longer: an assumption.
COPY_LATENCY = LATENCIES["H100"].dram


@dataclass(frozen=True)
class Pipeline:
    """What runs; all times are cycles. Raises ValueError for numbers that make no sense.

    `copy_cycles`, `math_cycles` and `promotion_cycles` are of a block of K of the whole tile,
    `epilogue_cycles` of the whole tile's epilogue. With `async_store` a warpgroup hands its part over and
    goes on, and waits only if the part before is still on its way (kernel v6_tuned).
    """

    stages: int = 4
    copy_latency: int = COPY_LATENCY
    copy_cycles: int = 512
    math_cycles: int = 512
    blocks_of_k: int = 8
    tiles: int = 1
    epilogue_cycles: int = 0
    roles: str = "specialised"
    consumers: int = 2
    promotion_cycles: int = 0
    async_store: bool = False

    def __post_init__(self) -> None:
        for name in ("stages", "blocks_of_k", "tiles", "copy_cycles", "math_cycles"):
            whole(name, getattr(self, name))
        for name in ("copy_latency", "epilogue_cycles", "promotion_cycles"):
            whole(name, getattr(self, name), least=0)
        if self.roles not in ROLES:
            raise refusal("roles", self.roles, f"one of {', '.join(ROLES)}")
        if self.consumers not in (1, 2) or isinstance(self.consumers, bool):
            raise ValueError(f"consumers is {self.consumers!r}, but 1 or 2 warpgroups multiply.")

    @property
    def visits(self) -> int:
        """How often a stage is filled in all: blocks of K of all tiles."""
        return self.blocks_of_k * self.tiles

    @property
    def bounds(self) -> dict[str, float]:
        """Cycles that a block of K takes at least, by what sets the limit.

        A lap of a stage goes from the order through latency, copy and product; `stages` laps run side by
        side. A warpgroup that is alone can not multiply while it promotes.
        """
        alone = self.promotion_cycles if self.consumers == 1 else 0
        lap = self.copy_latency + self.copy_cycles + self.math_cycles
        return {
            COPIES: self.copy_cycles,
            TENSOR_CORE: self.math_cycles + alone,
            "lap of a stage": lap / self.stages,
        }

    @property
    def limit(self) -> str:
        """The bound that is the largest (the first of equal ones)."""
        return max(self.bounds, key=self.bounds.get)

    @property
    def most_share(self) -> float:
        """The share of time that the tensor core works at most: without beginnings and ends."""
        return self.math_cycles / max(self.bounds.values())

    @property
    def stages_needed(self) -> int:
        """The fewest stages whose laps limit nothing any more (Little's law)."""
        lap = self.bounds["lap of a stage"] * self.stages
        return -(-round(lap) // max(self.bounds[COPIES], self.bounds[TENSOR_CORE]))


@dataclass(frozen=True)
class PipelineSpan:
    """`who` does `what` from cycle `start` until `end`, for block `block` of K of tile `tile`.

    `by` is the warpgroup for which a unit works, None for copies. `what` is "on its way" (a copy's latency),
    "copy", "product", "promotion" or "epilogue".
    """

    who: str
    what: str
    start: int
    end: int
    tile: int
    block: int = 0
    by: int | None = None

    @property
    def cycles(self) -> int:
        """How long it takes."""
        return self.end - self.start


@dataclass(frozen=True)
class PipelineTimeline:
    """What happened: every span in the order of its start, and when all was over."""

    pipeline: Pipeline
    spans: tuple[PipelineSpan, ...]
    cycles: int

    def of(self, who: str) -> tuple[PipelineSpan, ...]:
        """Return the spans of one who works."""
        return tuple(span for span in self.spans if span.who == who)

    def share(self, who: str) -> float:
        """Return the share of all cycles in which someone or something works (on its way is no work)."""
        return sum(span.cycles for span in self.of(who) if span.what != "on its way") / self.cycles

    @property
    def workers(self) -> tuple[str, ...]:
        """Who stands in the timeline, from TMA to the stores."""
        groups = WARPGROUPS[: self.pipeline.consumers]
        return (COPIES, *groups, TENSOR_CORE, *([STORES] if self.of(STORES) else []))


def timeline(pipeline: Pipeline) -> PipelineTimeline:
    """Return who works when."""
    block = _Block(pipeline)
    block.run()
    spans = sorted(block.spans, key=lambda span: (span.start, span.end, span.who))
    return PipelineTimeline(pipeline, tuple(spans), max(span.end for span in spans))


class _Event:
    """Something that happens once, at a time that may lie ahead."""

    def __init__(self) -> None:
        self.time: int | None = None
        self.waiting: list[Iterator] = []


@dataclass
class _Block:
    """The block's units and warps. Actors are generators: they yield an event or a time to go on at."""

    pipeline: Pipeline
    spans: list[PipelineSpan] = field(default_factory=list)
    now: int = 0

    def __post_init__(self) -> None:
        self.free_from = dict.fromkeys((COPIES, TENSOR_CORE, FLOAT_UNITS, STORES), 0)
        self.events: dict[tuple[str, int], _Event] = defaultdict(_Event)
        self.reports: dict[tuple[str, int], int] = defaultdict(int)
        self.queue: list[tuple[int, int, Iterator]] = []
        self._numbers = count()

    def run(self) -> None:
        if self.pipeline.roles != "one":
            self._later(0, self.producer())
        for group in range(self.pipeline.consumers):
            self._later(0, self.consumer(group))
        while self.queue:
            self.now, _, actor = heapq.heappop(self.queue)
            self._go_on(actor)

    def _go_on(self, actor: Iterator) -> None:
        wait = next(actor, None)
        if isinstance(wait, _Event) and wait.time is None:
            wait.waiting.append(actor)
        elif wait is not None:
            self._later(wait.time if isinstance(wait, _Event) else wait, actor)

    def _later(self, time: int, actor: Iterator) -> None:
        heapq.heappush(self.queue, (max(time, self.now), next(self._numbers), actor))

    def _happens(self, what: str, number: int, time: int) -> None:
        event = self.events[what, number]
        event.time = time
        for actor in event.waiting:
            self._later(time, actor)

    def _report(self, what: str, number: int) -> None:
        """A warpgroup is through with a stage or a tile; with the last of them the event happens."""
        self.reports[what, number] += 1
        if self.reports[what, number] == self.pipeline.consumers:
            self._happens(what, number, self.now)

    # -- what takes time ------------------------------------------------------------------------------------

    def order(self, visit: int) -> None:
        """Order the copy of a visit's block of K."""
        pipeline = self.pipeline
        start = max(self.now + pipeline.copy_latency, self.free_from[COPIES])
        end = self.free_from[COPIES] = start + pipeline.copy_cycles
        where = divmod(visit, pipeline.blocks_of_k)
        self.spans.append(PipelineSpan(COPIES, "on its way", self.now, start, *where))
        self.spans.append(PipelineSpan(COPIES, "copy", start, end, *where))
        self._happens("full", visit, end)

    def use(self, unit: str, cycles: int, what: str, group: int, tile: int, block: int = 0) -> int:
        """Take a unit for a warpgroup's part of `cycles`, after those who came before; return the end."""
        consumers = self.pipeline.consumers
        part = cycles // consumers + (group < cycles % consumers)
        start = max(self.now, self.free_from[unit])
        end = self.free_from[unit] = start + part
        if part:
            whos = (unit,) if unit in (TENSOR_CORE, STORES) else ()
            if not (unit == STORES and self.pipeline.async_store):
                whos += (WARPGROUPS[group],)
            self.spans += [PipelineSpan(who, what, start, end, tile, block, group) for who in whos]
        return end

    # -- who works ------------------------------------------------------------------------------------------

    def producer(self) -> Iterator:
        pipeline = self.pipeline
        for visit in range(pipeline.visits):
            tile, block = divmod(visit, pipeline.blocks_of_k)
            if pipeline.roles == "persistent":
                if visit >= pipeline.stages:
                    yield self.events["free", visit - pipeline.stages]
            elif block >= pipeline.stages:
                yield self.events["free", visit - pipeline.stages]
            elif block == 0 and tile:
                yield self.events["ended", tile - 1]
            self.order(visit)

    def consumer(self, group: int) -> Iterator:
        pipeline, stored = self.pipeline, 0
        orders = pipeline.roles == "one" and group == 0
        for tile in range(pipeline.tiles):
            first = tile * pipeline.blocks_of_k
            for ahead in range(min(pipeline.stages, pipeline.blocks_of_k) if orders else 0):
                self.order(first + ahead)
            for block in range(pipeline.blocks_of_k):
                visit = first + block
                yield self.events["full", visit]
                yield self.use(TENSOR_CORE, pipeline.math_cycles, "product", group, tile, block)
                self._report("free", visit)
                if pipeline.roles == "one":
                    yield self.events["free", visit]
                    if orders and block + pipeline.stages < pipeline.blocks_of_k:
                        self.order(visit + pipeline.stages)
                if pipeline.promotion_cycles:
                    yield self.use(FLOAT_UNITS, pipeline.promotion_cycles, "promotion", group, tile, block)
            if pipeline.async_store:
                yield stored  # the part before lies where this one goes
            stored = self.use(STORES, pipeline.epilogue_cycles, "epilogue", group, tile)
            if not (pipeline.async_store and pipeline.roles == "persistent"):
                yield stored  # a block may not end before its tile is out
            self._report("ended", tile)
            if pipeline.roles != "persistent":
                yield self.events["ended", tile]
