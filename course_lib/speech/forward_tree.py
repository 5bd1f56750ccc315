"""One forward pass as a tree: the network, its parts, the operators in them, with the time of each."""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

from course_lib.arguments import whole
from course_lib.speech.encoder_profile import recorded_forwards
from course_lib.speech.encoder_variants import FRAMES_A_SECOND
from course_lib.speech.operator_work import HANDING_ON, HANDS_ON
from course_lib.speech.profiling import label_of, labelled, part_of

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

ROOT = "encoder"
NUMBERED = re.compile(r"(.+)\.\d+")


@dataclass(frozen=True)
class Span:
    """A part of the network ("part") or an operator in it ("operator"); times in microseconds a forward.

    `own_us` is the time outside of the children: for a part what Python, the hooks and the profiler's labels
    take. An operator stands once in its part, with the self times of all its calls there.
    """

    name: str
    kind: str
    calls: int
    own_us: float
    children: tuple[Span, ...] = ()

    @cached_property
    def us(self) -> float:
        """Its whole time: its own and its children's."""
        return self.own_us + sum(child.us for child in self.children)


@dataclass(frozen=True)
class ForwardTree:
    """A forward of `frames` mel frames on `threads` threads: `root`, every time a median over `runs`."""

    root: Span
    frames: int
    runs: int
    threads: int

    @property
    def what(self) -> str:
        """What was run, in a few words."""
        threads = f"{self.threads} thread{'s' * (self.threads > 1)}"
        runs = f"medians of {self.runs} forwards" if self.runs > 1 else "one forward"
        return f"{self.frames / FRAMES_A_SECOND:.3g} s of speech, {threads}, {runs}"

    def merged(self) -> ForwardTree:
        """Return the tree with numbered parts of the network (layers.0, layers.1, …) added up (layers.*)."""
        return replace(self, root=replace(self.root, children=_numbered_merged(self.root.children)))


def forward_tree(encoder: Module, features: Tensor, runs: int = 5, threads: int = 2) -> ForwardTree:
    """Run the encoder `runs` times on one utterance (1, 80, T) on the CPU; return where the time goes.

    Every module is a part, by its name in the model; below it stand the modules and operators that it calls.
    Own times are medians over the runs, and the time of a part is the sum of what is in it, so that nothing
    is missing or counted twice. The profiler's bookkeeping (a few microseconds a call) is in the times.
    Raises ValueError for an encoder in training mode, features of another shape, and runs below 1.
    """
    whole("runs", runs)
    if features.dim() != 3 or features.size(0) != 1:
        raise ValueError(
            f"features have the shape {tuple(features.shape)}, but one utterance is (1, bands, frames)."
        )
    if features.is_cuda:
        raise ValueError("features are on a GPU, but the tree is of the CPU's times: give features.cpu().")
    modules = [(name or ROOT, module) for name, module in encoder.named_modules()]
    with labelled(modules):
        every_run = [
            _Sums(events) for events in recorded_forwards(encoder, [features] * runs, "cpu", threads)
        ]
    return ForwardTree(_span(ROOT, "", every_run), features.size(2), runs, threads)


class _Sums:
    """The own times of one run, by part and operator ("" for the part itself), and which part holds which."""

    def __init__(self, events: Sequence[Any]) -> None:
        self.own_us: dict[tuple[str, str], float] = defaultdict(float)
        self.calls: dict[tuple[str, str], int] = defaultdict(int)
        self.parts: dict[str, list[str]] = defaultdict(list)  # in the order they begin
        for event in sorted(events, key=lambda event: event.time_range.start):
            label, around = label_of(event), part_of(event)
            if label is None and around is None:
                continue
            key = (label, "") if label else (around, HANDING_ON if event.name in HANDS_ON else event.name)
            self.own_us[key] += event.self_cpu_time_total
            self.calls[key] += event.count
            if label and around and label not in self.parts[around]:
                self.parts[around].append(label)


def _span(part: str, around: str, runs: Sequence[_Sums]) -> Span:
    """Return the span of a part with everything in it: parts as they began, then operators, longest first."""
    first = runs[0]
    inner = [_span(name, part, runs) for name in first.parts[part]]
    names = {operator for sums in runs for place, operator in sums.own_us if place == part and operator}
    operators = [Span(name, "operator", *_calls_and_us((part, name), runs)) for name in names]
    children = tuple(sorted([*inner, *operators], key=_order))
    return Span(part.removeprefix(f"{around}."), "part", *_calls_and_us((part, ""), runs), children)


def _calls_and_us(key: tuple[str, str], runs: Sequence[_Sums]) -> tuple[int, float]:
    own_us = statistics.median(sums.own_us.get(key, 0.0) for sums in runs)
    return max(sums.calls.get(key, 0) for sums in runs), own_us


def _order(span: Span) -> tuple[()] | tuple[bool, float, str]:
    """The key that keeps parts as they began and puts operators behind them, the longest first."""
    return () if span.kind == "part" else (span.name == HANDING_ON, -span.us, span.name)


# -- layers added up ---------------------------------------------------------------------------------------


def _numbered_merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Return the spans with those of one name and several numbers added up, where the first of them stood."""
    groups: dict[str, list[Span]] = defaultdict(list)
    for span in spans:
        number = NUMBERED.fullmatch(span.name) if span.kind == "part" else None
        groups[f"{number[1]}.*" if number else span.name].append(span)
    return tuple(_added_up(name, group) for name, group in groups.items())


def _added_up(name: str, spans: Sequence[Span]) -> Span:
    below: dict[tuple[str, str], list[Span]] = defaultdict(list)
    for child in chain.from_iterable(span.children for span in spans):
        below[child.kind, child.name].append(child)
    children = [_added_up(child_name, group) for (_, child_name), group in below.items()]
    calls, own_us = sum(span.calls for span in spans), sum(span.own_us for span in spans)
    return Span(name, spans[0].kind, calls, own_us, tuple(sorted(children, key=_order)))
