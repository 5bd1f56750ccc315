"""Where a network's time goes: torch.profiler as plain rows, and the talk's table to lay beside them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from typing import Any


@dataclass(frozen=True)
class OpRow:
    """One operator of a profile; times are sums over all calls, in microseconds of CPU time.

    `self_us` is the time in the operator itself, `total_us` includes the operators it calls; `flops` is
    torch's own count for matrix products and convolutions (0 where it does not count).
    """

    name: str
    calls: int
    self_us: float
    total_us: float
    flops: float = 0.0


def profile(function: Callable[..., Any], *inputs: Any, runs: int = 10, threads: int = 1) -> list[OpRow]:
    """Return one row per operator of `runs` calls function(*inputs), most self time first.

    Runs without gradients, after two warm-up calls, on `threads` torch threads.
    """
    # Kineto, torch's tracer, otherwise writes two lines to stderr for every profile.
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    import torch
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as torch_profile

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with torch.no_grad():
            for _ in range(2):
                function(*inputs)
            with torch_profile(activities=[ProfilerActivity.CPU], with_flops=True) as recording:
                for _ in range(runs):
                    function(*inputs)
    finally:
        torch.set_num_threads(before)
    rows = [
        OpRow(event.key, event.count, event.self_cpu_time_total, event.cpu_time_total, float(event.flops))
        for event in recording.key_averages()
    ]
    return sorted(rows, key=lambda row: -row.self_us)


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
    cpu: tuple[TalkRow, ...]
    gpu: tuple[TalkRow, ...]


def talk_profile() -> TalkProfile:
    """Return the tables of the talk (64 forward passes of a Conformer encoder, CPU and an Ampere GPU)."""
    text = resources.files("course_lib.speech").joinpath("talk_profile.json").read_text(encoding="utf-8")
    saved = json.loads(text)
    cpu = [TalkRow(r["name"], r["calls"], r["self_us"], None, r["self_percent"]) for r in saved["cpu"]]
    gpu = [
        TalkRow(r["name"], r["calls"], r["self_us"], r["device_us"], r["device_percent"])
        for r in saved["gpu"]
    ]
    return TalkProfile(saved["source"], tuple(cpu), tuple(gpu))
