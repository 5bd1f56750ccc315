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
    here = by_family(cpu, forwards, on_device=False)
    there = by_family(gpu, gpu_forwards, on_device=True) if gpu is not None else {}
    talks = by_family(talk.cpu, talk.forwards, False), by_family(talk.gpu, talk.forwards, True)
    chosen, left = _chosen(here, there, *talks, top)
    longest = max(line.share or 0.0 for line in [*here.values(), *talks[0].values()])
    rows = []
    for name in chosen:
        rows.append(_row(name, "here", here.get(name), there.get(name), longest, PINK))
        if name in talks[0] or name in talks[1]:
            rows.append(_row(name, "talk", talks[0].get(name), talks[1].get(name), longest, VIOLET))
    if left:
        rows.append(_row(REST, "here", together(here, left), together(there, left), longest, PINK))
    title = _finding(here, there, *talks)
    said = [
        _what(here, there, forwards, gpu_forwards),
        *([] if there else [NO_GPU]),
        HOST,
        *_unequal("here", here, there, chosen),
        *_unequal("in the talk", *talks, chosen),
        f"The talk's row: {talk.source.removeprefix('The talk ')}",
    ]
    text = " ".join([f"{title}.", _spoken(chosen, here, there, *talks), *said])
    content = table(HEAD, rows, left=(0, 1, 4)) + "".join(note(one) for one in said)
    return Html(card(content, text, title=title), text)


def _chosen(
    here: Lines, there: Lines, talk_cpu: Lines, talk_gpu: Lines, top: int
) -> tuple[list[str], list[str]]:
    """Return the families that get a row, as they rank here, and those that are summed up as the rest."""
    wanted = {*list(here)[:top], *list(there)[:3], *talk_cpu, *talk_gpu, LAUNCHES, WAITS}
    ranked = list(dict.fromkeys([*here, *there, *talk_cpu, *talk_gpu]))
    return [name for name in ranked if name in wanted], [name for name in ranked if name not in wanted]


# -- cells -------------------------------------------------------------------------------------------------


def _row(
    name: str, where: str, cpu: FamilyLine | None, gpu: FamilyLine | None, longest: float, colour: str
) -> list[str]:
    """Return the cells of a family in one place: here, or in the talk."""
    known = cpu or gpu
    faster = ratio(cpu, gpu)
    label = escape(name)
    return [
        label if where == "here" else f'<span style="color:{QUIET}">{label}</span>',
        where,
        _count(known.calls) if known else "–",
        _a_call(cpu, cpu and cpu.host_us),
        bar(cpu.share, longest, colour, BAR) if cpu and cpu.share is not None else "–",
        _a_call(gpu, gpu and gpu.host_us),
        _a_call(gpu, gpu and gpu.device_us),
        f"{gpu.share:.1%}" if gpu and gpu.share is not None else "–",
        "–" if faster is None else times(faster) + ("*" if is_other_work(cpu, gpu) else ""),
    ]


def _a_call(line: FamilyLine | None, us: float | None) -> str:
    return time_in_words(us / line.calls) if line and us and line.calls else "–"


def _count(calls: float) -> str:
    is_whole = abs(calls - round(calls)) < 0.005 or calls >= 1000
    return f"{calls:,.0f}" if is_whole else f"{calls:,.1f}"


# -- words -------------------------------------------------------------------------------------------------


def _finding(here: Lines, there: Lines, talk_cpu: Lines, talk_gpu: Lines) -> str:
    first = next(iter(here))
    said = f"{first} takes {here[first].share:.0%} of the time on {CPU}"
    if first in talk_cpu:
        said += f", {talk_cpu[first].share:.0%} on the talk's CPU"
    ours, theirs = (
        None if cpu and gpu and is_other_work(cpu, gpu) else ratio(cpu, gpu)
        for cpu, gpu in ((here[first], there.get(first)), (talk_cpu.get(first), talk_gpu.get(first)))
    )
    faster = [f"{GPU} {times(ours)}"] if ours else []
    faster += [f"the talk's GPU {times(theirs)}"] if theirs else []
    return f"{said}; {', '.join(faster)} as fast" if faster else said


def _what(here: Lines, there: Lines, forwards: int, gpu_forwards: int) -> str:
    said = f"Everything is for one forward; here: the mean of {forwards} on {CPU}"
    said += f" and of {gpu_forwards} on {GPU}." if there else "."
    ways = [
        member for lines in (here, there) if CONVOLUTION in lines for member in lines[CONVOLUTION].members
    ]
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


def _spoken(chosen: Sequence[str], here: Lines, there: Lines, talk_cpu: Lines, talk_gpu: Lines) -> str:
    families = []
    for name in chosen:
        parts = [
            f"{where} {_a_call(lines[name], lines[name].host_us)} a call, {lines[name].share or 0:.1%}"
            for where, lines in ((CPU, here), ("the talk's CPU", talk_cpu))
            if name in lines
        ]
        parts += [
            f"{where} {_a_call(lines[name], lines[name].host_us)} host and "
            f"{_a_call(lines[name], lines[name].device_us)} device a call"
            for where, lines in ((GPU, there), ("the talk's GPU", talk_gpu))
            if name in lines
        ]
        families.append(f"{name}: {'; '.join(parts)}")
    return ". ".join(families) + "."
