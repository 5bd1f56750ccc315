"""Where a network's time goes: torch.profiler as plain rows, and the talk's table to lay beside them."""

from __future__ import annotations

import json
import os
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch.nn import Module

WARM_UPS = 2


@dataclass(frozen=True)
class OpRow:
    """One operator in one pass; times are the sums over its calls, in microseconds of wall time.

    `self_us` is the time in the operator itself, `total_us` includes the operators it calls; both are medians
    over the passes. `flops` is torch's own count for matrix products and convolutions (0 elsewhere).
    """

    name: str
    calls: int
    self_us: float
    total_us: float
    flops: float = 0.0


def profile(function: Callable[..., Any], *inputs: Any, runs: int = 10, threads: int = 1) -> list[OpRow]:
    """Return one row per operator of a pass function(*inputs), most self time first.

    Runs without gradients on `threads` torch threads, `runs` passes after two that warm up. What is measured
    is the steady state of a service that runs for hours (see `_grow_heap`).
    """
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as torch_profile

    found: dict[str, list[Any]] = defaultdict(list)  # torch's averages over the calls of a pass
    with steady(threads):
        for number in range(WARM_UPS + runs):
            with torch_profile(activities=[ProfilerActivity.CPU], with_flops=True) as recording:
                function(*inputs)
            for event in recording.key_averages() if number >= WARM_UPS else ():
                found[event.key].append(event)
    rows = [
        OpRow(
            name,
            events[0].count,
            statistics.median(event.self_cpu_time_total for event in events),
            statistics.median(event.cpu_time_total for event in events),
            float(events[0].flops),
        )
        for name, events in found.items()
    ]
    return sorted(rows, key=lambda row: -row.self_us)


@contextmanager
def steady(threads: int) -> Iterator[None]:
    """Have torch profiled as a service runs: a grown heap, so many threads, no gradients, a silent tracer."""
    # Kineto, torch's tracer, otherwise writes two lines to stderr for every profile.
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    import torch

    _grow_heap()
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with torch.no_grad():
            yield
    finally:
        torch.set_num_threads(before)


SPARE_BLOCKS, BLOCK_BYTES = 16, 16 << 20


def _grow_heap() -> None:
    """Give glibc's malloc a heap whose pages are already mapped, and have it keep them; nothing elsewhere.

    An operator that writes into a fresh page waits for the operating system to map it, and the profiler books
    the wait on that operator: on a virtual machine silu, the first to touch a large new output, took twenty
    times its own time (4500 us instead of 200). A service that runs for hours has no such waits.
    """
    import ctypes
    import platform

    if platform.libc_ver()[0] != "glibc":
        return
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.restype, libc.free.argtypes = None, [ctypes.c_void_p]
    trim_threshold, mmap_threshold = -1, -3  # mallopt(3) calls them M_TRIM_THRESHOLD, M_MMAP_THRESHOLD
    libc.mallopt(mmap_threshold, 2 * BLOCK_BYTES)  # the largest it accepts
    libc.mallopt(trim_threshold, 1 << 30)
    blocks = [block for _ in range(SPARE_BLOCKS) if (block := libc.malloc(BLOCK_BYTES))]
    for block in blocks:
        ctypes.memset(block, 0, BLOCK_BYTES)
    for block in blocks:
        libc.free(block)


# -- labels that let the profiler see where each part of a network begins and ends --------------------------

PART = "part: "


@contextmanager
def labelled(parts: Iterable[tuple[str, Module]]) -> Iterator[None]:
    """Have every forward of these (name, module) recorded as an event called PART + name."""
    from torch.profiler import record_function

    running, hooks = [], []

    def label(module: Module, name: str) -> None:
        def begin(*_: Any) -> None:
            running.append(record_function(PART + name))
            running[-1].__enter__()

        def end(*_: Any) -> None:
            running.pop().__exit__(None, None, None)

        hooks.extend((module.register_forward_pre_hook(begin), module.register_forward_hook(end)))

    for name, module in parts:
        label(module, name)
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
        while running:  # a forward that raised has ended none of them
            running.pop().__exit__(None, None, None)


def label_of(event: Any) -> str | None:
    """Return the name of the part that the event is the label of, None for any other event."""
    return event.name.removeprefix(PART) if event.name.startswith(PART) else None


def part_of(event: Any) -> str | None:
    """Return the innermost part that was running when the event began; for a label, the part around it."""
    around = event.cpu_parent
    return around and (label_of(around) or part_of(around))


# -- the talk -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TalkRow:
    """One row of the talk's tables; `percent` is its share of self time on that device."""

    name: str
    calls: int
    self_us: float | None
    device_us: float | None
    percent: float


@dataclass(frozen=True)
class TalkProfile:
    """The talk's two tables, with where they come from."""

    source: str
    forwards: int
    cpu: tuple[TalkRow, ...]
    gpu: tuple[TalkRow, ...]


def talk_profile() -> TalkProfile:
    """Return the tables of the talk (64 forward passes of a Conformer encoder, CPU and an Ampere GPU)."""
    text = resources.files("course_lib.speech").joinpath("talk_profile.json").read_text(encoding="utf-8")
    saved = json.loads(text)
    cpu, gpu = (
        tuple(
            TalkRow(row["name"], row["calls"], row["self_us"], row.get("device_us"), row[percent])
            for row in rows
        )
        for rows, percent in ((saved["cpu"], "self_percent"), (saved["gpu"], "device_percent"))
    )
    return TalkProfile(saved["source"], saved["forwards"], cpu, gpu)
