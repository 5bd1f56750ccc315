"""An encoder's profile on this CPU, on a GPU and in the talk, side by side: a line for each kind of work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from course_lib.arguments import whole
from course_lib.speech.operator_work import HANDING_ON
from course_lib.speech.profiling import talk_profile
from course_lib.theme import PINK, QUIET, VIOLET
from course_lib.views.operator_lines import (
    CONVOLUTION,
    LAUNCHES,
    WAITS,
    FamilyLine,
    Lines,
    bar,
    by_family,
    is_other_work,
    ratio,
    time_in_words,
    together,
)
from course_lib.views.paper import Html, card, escape, note, table, times

Sides = tuple[Lines, Lines]  # on the CPU, and on the GPU
BAR = 60  # pixels of the longest bar
REST = "rest"
CPU, GPU = "this CPU", "this GPU"
NO_GPU = "There is no profile of a GPU here, neither measured nor recorded: those columns hold the talk's."
HEAD = (
    "operator",
    "where",
    "calls",
    "CPU,<br>a call",
    "share of<br>CPU time",
    "GPU: host,<br>a call",
    "device,<br>a call",
    "share of<br>device time",
    "CPU&nbsp;/<br>GPU",
)
HOST = (
    "Times are self times. Host is the CPU's time to check and queue the work. CPU / GPU divides the CPU's "
    "time by host plus device time, as the talk does; the two overlap, so the GPU is at least that fast. "
    f"“{HANDING_ON}” is what checks, gives views and chooses who computes."
)


def three_profiles(
    cpu: Iterable[Any],
    gpu: Iterable[Any] | None = None,
    *,
    forwards: int,
    gpu_forwards: int | None = None,
    top: int = 12,
) -> Html:
    """Return a table of the `top` families of operators: calls, time, share on the CPU, a GPU, in the talk.

    cpu, gpu: rows of `profile_encoder` over `forwards` and `gpu_forwards` forwards (None: as many);
    everything is shown for one forward, so profiles of different lengths compare. All ways to convolve count
    as one family. Raises ValueError for numbers of forwards below 1 and for rows that are no
    profile.
    """
    gpu_forwards = forwards if gpu_forwards is None else gpu_forwards
    for name, value in {"forwards": forwards, "gpu_forwards": gpu_forwards, "top": top}.items():
        whole(name, value)
    talk = talk_profile()
    on_gpu = {} if gpu is None else by_family(gpu, gpu_forwards, on_device=True)
    here = by_family(cpu, forwards, on_device=False), on_gpu
    there = by_family(talk.cpu, talk.forwards, False), by_family(talk.gpu, talk.forwards, True)
    chosen, left = _chosen(here, there, top)
    longest = max(line.share for line in [*here[0].values(), *there[0].values()])
    rows = []
    for name in chosen:
        rows.append(_row(name, "here", [side.get(name) for side in here], longest, PINK))
        if name in there[0] or name in there[1]:
            rows.append(_row(name, "talk", [side.get(name) for side in there], longest, VIOLET))
    if left:
        rows.append(_row(REST, "here", [together(side, left) for side in here], longest, PINK))
    title = _finding(here, there)
    said = [
        _what(here, forwards, gpu_forwards),
        *([] if on_gpu else [NO_GPU]),
        HOST,
        *_unequal("here", *here, chosen),
        *_unequal("in the talk", *there, chosen),
        f"The talk's row: {talk.source.removeprefix('The talk ')}",
    ]
    text = " ".join([f"{title}.", _spoken(chosen, here, there), *said])
    content = table(HEAD, rows, left=(0, 1, 4)) + "".join(note(one) for one in said)
    return Html(card(content, text, title=title), text)


def _chosen(here: Sides, talk: Sides, top: int) -> tuple[list[str], list[str]]:
    """Return the families that get a row, as they rank here, and those that are summed up as the rest."""
    cpu, gpu = map(list, here)
    of_talk = [*talk[0], *talk[1]]
    wanted = {*cpu[:top], *gpu[:3], *of_talk, LAUNCHES, WAITS}
    ranked = list(dict.fromkeys([*cpu, *gpu, *of_talk]))
    return [name for name in ranked if name in wanted], [name for name in ranked if name not in wanted]


# -- cells -------------------------------------------------------------------------------------------------


def _row(name: str, where: str, sides: Sequence[FamilyLine | None], longest: float, colour: str) -> list[str]:
    """Return the cells of a family in one place: here, or in the talk."""
    cpu, gpu = sides
    known = cpu or gpu
    faster = ratio(cpu, gpu)
    label = escape(name)
    return [
        label if where == "here" else f'<span style="color:{QUIET}">{label}</span>',
        where,
        _count(known.calls) if known else "–",
        _a_call(cpu, "host_us"),
        bar(cpu.share, longest, colour, BAR) if cpu else "–",
        _a_call(gpu, "host_us"),
        _a_call(gpu, "device_us"),
        f"{gpu.share:.1%}" if gpu and gpu.share is not None else "–",
        "–" if faster is None else times(faster) + ("*" if is_other_work(cpu, gpu) else ""),
    ]


def _a_call(line: FamilyLine | None, which: str) -> str:
    us = getattr(line, which, None)
    return time_in_words(us / line.calls) if us else "–"


def _count(calls: float) -> str:
    is_whole = abs(calls - round(calls)) < 0.005 or calls >= 1000
    return f"{calls:,.0f}" if is_whole else f"{calls:,.1f}"


# -- words -------------------------------------------------------------------------------------------------


def _finding(here: Sides, talk: Sides) -> str:
    first = next(iter(here[0]))
    said = f"{first} takes {here[0][first].share:.0%} of the time on {CPU}"
    if first in talk[0]:
        said += f", {talk[0][first].share:.0%} on the talk's CPU"
    faster = []
    for where, (cpu, gpu) in ((GPU, here), ("the talk's GPU", talk)):
        factor = ratio(cpu.get(first), gpu.get(first))
        if factor and not is_other_work(cpu[first], gpu[first]):
            faster.append(f"{where} {times(factor)}")
    return f"{said}; {', '.join(faster)} as fast" if faster else said


def _what(here: Sides, forwards: int, gpu_forwards: int) -> str:
    said = f"Everything is for one forward; here: the mean of {forwards} on {CPU}"
    said += f" and of {gpu_forwards} on {GPU}." if here[1] else "."
    ways = [member for lines in here if CONVOLUTION in lines for member in lines[CONVOLUTION].members]
    return said + (f" “{CONVOLUTION}” is the sum of {', '.join(dict.fromkeys(ways))}." if ways else "")


def _unequal(where: str, cpu: Lines, gpu: Lines, chosen: Sequence[str]) -> list[str]:
    """Say for which families the two sides of a ratio did not do the same work."""
    return [
        f"* {name} {where}: {_called(cpu[name])} on the CPU but {_called(gpu[name])} on the GPU, so the "
        "ratio compares different work."
        for name in chosen
        if ratio(cpu.get(name), gpu.get(name)) and is_other_work(cpu[name], gpu[name])
    ]


def _called(line: FamilyLine) -> str:
    return f"{_count(line.calls)} calls ({', '.join(line.members)})"


def _spoken(chosen: Sequence[str], here: Sides, talk: Sides) -> str:
    families = []
    for name in chosen:
        parts = [
            f"{where} {_a_call(lines[name], 'host_us')} a call, {lines[name].share:.1%}"
            for where, lines in ((CPU, here[0]), ("the talk's CPU", talk[0]))
            if name in lines
        ]
        parts += [
            f"{where} {_a_call(lines[name], 'host_us')} host and "
            f"{_a_call(lines[name], 'device_us')} device a call"
            for where, lines in ((GPU, here[1]), ("the talk's GPU", talk[1]))
            if name in lines
        ]
        families.append(f"{name}: {'; '.join(parts)}")
    return ". ".join(families) + "."
