"""The map: nine circles going down, what each is about, and which of them can be visited now."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from course_lib.theme import GREY_TINT, INK, LINE, PAPER, PINK, QUIET, VIOLET, mixed
from course_lib.views.paper import SANS, Html, Sheet, card, escape

ROW = 66  # pixels a circle takes, in the drawing and in the text beside it


@dataclass(frozen=True)
class Chapter:
    """A notebook of the course: its file name without .ipynb, what it is about, its words on the meme."""

    file: str
    title: str
    words: str
    circle: int | None = None


#: A file, its title, its words.
_NINE = """
01_python_loops | Python loops | triply nested for loop · managed memory · row in A, col in B, pair in (row,
    col) · realising it is O(N³)
02_compiled_loops | Compiled loops | the same loop in a non-managed-memory language · “10,000x faster, this
    is the end right?”
03_strassen | Strassen | lower time complexity · multiplication factoring trick · O(N^2.something)
04_cache_and_simd | Cache and SIMD | optimised triple loop · block partitioning · loop strength · SIMD ·
    cache locality · cache hierarchies · “lowered time complexity is garbage”
05_threads | Threads | multithreaded · cache coherence · deadlocks · race conditions · load balancing ·
    killing children · mutexes and semaphores
06_gpu | GPU | massively parallel · warp scheduling · hyperdimensional cache/thread hierarchies · learning a
    new architecture
07_batched_conformer | Batched, in a Conformer | batched matmuls
08_distributed | Distributed | heterogeneous computing · MapReduce · sharding · benchmarks cost $$$ · fault
    tolerance · hardware starts failing · network topology
09_arcane | Arcane | memory alignment · hardware-specific hand tuning · kernel search · leveraging algebras
    · mixed precision · sparse · square, rectangular, triangular · fused kernels
"""
CIRCLES = tuple(
    Chapter(*(" ".join(part.split()) for part in entry.split(" | ")), circle)
    for circle, entry in enumerate(re.split(r"\n(?=\d)", _NINE.strip()), start=1)
)
BEFORE = Chapter(
    "00_start_here", "Start here", "what is in a neural network, where its time goes, this machine"
)
BELOW = Chapter("10_fp8_hopper_gemm", "FP8 GEMM on Hopper", "the bottom of the ninth circle, rung by rung")
BESIDE = (
    Chapter("A_derivative", "A: the derivative", "backprop is two more matmuls"),
    Chapter("B_dynamic_programming", "B: dynamic programming", "CTC, Viterbi, BPE"),
    Chapter("C_distributed_training", "C: distributed training", "data and model parallel"),
)


def course_map(folder: str | Path | None = None) -> Html:
    """Return the map of the course; chapters whose notebook is in `folder` (None: the project's) are links.

    The links are relative: they work in a notebook of that folder.
    """
    here = Path(folder) if folder is not None else Path(__file__).resolve().parents[2] / "notebooks"
    ready = {
        chapter.file
        for chapter in (BEFORE, *CIRCLES, BELOW, *BESIDE)
        if (here / f"{chapter.file}.ipynb").is_file()
    }
    is_open = [chapter.file in ready for chapter in CIRCLES]
    title = f"Nine circles, from three loops down to the arcane: {sum(is_open)} of 9 are open"
    rows = "".join(map(_row, CIRCLES, is_open))
    label = "The nine circles as rings of a funnel that narrows as it goes down, one ring a circle."
    on = Sheet()
    _funnel(on, is_open)
    picture = on.svg(190, 9 * ROW, label)
    circles = (
        f'<div style="display:flex;gap:14px"><div style="flex:none">{picture}</div>'
        f'<div style="min-width:0">{rows}</div></div>'
    )
    beside = "".join(_line(chapter, chapter.file in ready) for chapter in BESIDE)
    interludes = f'<div style="margin-top:10px;border-top:1px solid {LINE};padding-top:6px">{beside}</div>'
    body = _line(BEFORE, BEFORE.file in ready) + circles + _line(BELOW, BELOW.file in ready) + interludes
    text = f"{title}. " + " ".join(
        f"Circle {one.circle}, {one.title} ({'open' if there else 'not yet open'}): {one.words}."
        for one, there in zip(CIRCLES, is_open, strict=True)
    )
    return Html(card(body, text, title=title), text)


def _name(chapter: Chapter, ready: bool) -> str:
    title = escape(chapter.title)
    if not ready:
        style = f"margin-left:8px;padding:0 6px;border-radius:8px;background:{GREY_TINT};color:{QUIET}"
        tag = f'<span style="{style};font-size:11.5px">not yet open</span>'
        return f'<span style="font-weight:700;color:{INK}">{title}</span>{tag}'
    style = "font-weight:700;color:#7a00d1;text-decoration:underline"
    return f'<a href="{escape(chapter.file)}.ipynb" style="{style}">{title}</a>'


def _row(chapter: Chapter, ready: bool) -> str:
    style = f"height:{ROW}px;box-sizing:border-box;display:flex;flex-direction:column;justify-content:center"
    small = f"color:{QUIET};font-size:12.5px;line-height:1.3;max-width:84ch"
    words = f'<div style="{small}">{escape(chapter.words)}</div>'
    return (
        f'<div style="{style};color:{INK};font-family:{SANS}"><div>{_name(chapter, ready)}</div>{words}</div>'
    )


def _line(chapter: Chapter, ready: bool) -> str:
    words = f'<span style="color:{QUIET};font-size:12.5px;margin-left:8px">{escape(chapter.words)}</span>'
    return f'<div style="color:{INK};margin:3px 0">{_name(chapter, ready)}{words}</div>'


def _funnel(on: Sheet, ready: Sequence[bool]) -> None:
    """Draw nine rings, each narrower than the one above; the open ones filled."""
    middle = 95.0
    for circle in range(1, 9):
        y = (circle - 0.5) * ROW
        wide = 88.0 - 7.6 * (circle - 1)
        for side in (-1, 1):
            x1, x2 = middle + side * wide, middle + side * (wide - 7.6)
            on.line(x1, y, x2, y + ROW, stroke=LINE, width=1.5)
    for circle, is_open in enumerate(ready, start=1):
        y = (circle - 0.5) * ROW
        wide = 88.0 - 7.6 * (circle - 1)
        colour = mixed(PINK, VIOLET, (circle - 1) / 8)
        fill = colour if is_open else PAPER
        on.tag("ellipse", cx=middle, cy=y, rx=wide, ry=21, fill=fill, stroke=colour, stroke_width=2.5)
        ink = PAPER if is_open else INK
        on.write(middle, y + 7, circle, size=20, fill=ink, anchor="middle", bold=True)
