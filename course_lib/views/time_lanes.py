"""Bars on a common time axis, a row for each that works: a stage, the cores, the wire."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from course_lib.arguments import whole
from course_lib.measure.table import digits
from course_lib.theme import GREY_TINT, INK, LINE, PINK_TINT, QUIET, VIOLET_TINT
from course_lib.views.live import Steps, buttons
from course_lib.views.paper import Html, Sheet, card, plural

if TYPE_CHECKING:
    from course_lib.training.overlap import TimeSpan
    from course_lib.training.pipeline import PipelineTimes

WIDE, ROW, LEFT = 640.0, 26.0, 92.0  # of the time axis, of a row, and what stands before it, in pixels
LEVEL, LETTER = 17.0, 7.0  # of bars that overlap; mean width of a letter
MOST_ROWS, MOST_BARS = 16, 400
MOST_STAGES, MOST_MICRO = 8, 16  # of a schedule that one steps through
Rows = Mapping[str, Sequence["TimeSpan"]]


def lanes(runs: Mapping[str, Rows]) -> Html:
    """Return runs beneath each other on one time axis in milliseconds: {name: {row: bars}}.

    Bars are (name, begin, end) in seconds, as `training.overlap` has them; those of a row may overlap. Raises
    ValueError for no bar, above 16 rows of a run or 400 bars.
    """
    bars = [bar for rows in runs.values() for row in rows.values() for bar in row]
    if not 0 < len(bars) <= MOST_BARS or any(len(rows) > MOST_ROWS for rows in runs.values()):
        raise ValueError(
            f"{len(bars)} bars cannot be drawn: 1 to {MOST_BARS} in at most {MOST_ROWS} rows can."
        )
    ends = {name: max(bar.end for row in rows.values() for bar in row) for name, rows in runs.items()}
    said = "; ".join(f"{name} {digits(1e3 * end)} ms" for name, end in ends.items())
    on, at, scale = Sheet(), 0.0, WIDE / max(ends.values())
    for name, rows in runs.items():
        on.write(0, at + 16, f"{name}: {digits(1e3 * ends[name])} ms", size=13.5, bold=True)
        at = _rows(on, at + 26, rows, scale) + 12
    _axis(on, at - 8, 1e3 * max(ends.values()), scale / 1e3)
    told = f"A row for each that works, over time: {said}."
    return Html(card(on.svg(LEFT + WIDE + 24, at + 34, told), told, title=said), told)


def schedule(stages: int = 4, micro: int = 8) -> MicroBatchSteps:
    """Return a widget that steps through a pipeline's schedule: GPipe, or 1F1B.

    F and a number is a micro-batch on its way forward, B backward, which takes twice as long. Raises
    ValueError unless there are 1 to 8 stages and 1 to 16 micro-batches.
    """
    return MicroBatchSteps(whole("stages", stages, most=MOST_STAGES), whole("micro", micro, most=MOST_MICRO))


class MicroBatchSteps(Steps):
    """The walk: frame t shows what has begun before t, and how many micro-batches each stage then keeps."""

    def __init__(self, stages: int, micro: int) -> None:
        from course_lib.training import pipeline

        orders = {"GPipe": pipeline.gpipe, "1F1B": pipeline.one_forward_one_backward}
        self.times = {name: pipeline.timeline(make(stages, micro)) for name, make in orders.items()}
        self.last = round(self.times["GPipe"].seconds)  # both take the same
        self.order = buttons(list(orders), description="order")
        super().__init__(choice=self.order, interval_ms=500)

    def frame(self, step: int) -> str:
        """Return the schedule up to a time as SVG."""
        on, name = Sheet(), self.order.value
        scale = WIDE / self.last
        on.write(0, 16, self.said(name, step), size=13.5, bold=True)
        bottom = _rows(on, 26, _until(self.times[name], step), scale, self.last)
        on.line(LEFT + step * scale, 22, LEFT + step * scale, bottom, width=1.4)
        for stage, kept in enumerate(self.kept(name, step)):
            on.write(LEFT + WIDE + 12, 26 + stage * ROW + 17, f"keeps {kept}", size=12.5)
        return on.svg(LEFT + WIDE + 130, bottom + 8, self.said(name, step))

    def said(self, name: str, step: int) -> str:
        """Return in words what has begun before a time, and what each stage keeps."""
        kept = self.kept(name, step)
        return (
            f"{name}, time {step} of {self.last}: stages keep the activations of "
            f"{', '.join(map(str, kept))} micro-batches"
        )

    def kept(self, name: str, step: int) -> list[int]:
        """Return for each stage how many micro-batches went forward before a time and not yet backward."""
        return [
            sum((bar.begin < step) if bar.name[0] == "F" else -(bar.end <= step) for bar in bars)
            for bars in self.times[name].rows.values()
        ]

    def static(self) -> Html:
        """Return both schedules to their end."""
        on, at, told = Sheet(), 0.0, []
        for name, times in self.times.items():
            most = max(max(self.kept(name, step)) for step in range(self.last + 1))
            share = f"{100 * times.bubble:.0f} % of the time lost"
            told.append(f"{name}: {share}, activations of up to {plural(most, 'micro-batch')}")
            on.write(0, at + 16, told[-1], size=13.5, bold=True)
            at = _rows(on, at + 26, _until(times, self.last), WIDE / self.last, self.last) + 12
        words = ". ".join(told) + "."
        return Html(card(on.svg(LEFT + WIDE + 24, at, words), words), words)


def _until(times: PipelineTimes, step: float) -> dict[str, list[TimeSpan]]:
    return {name: [bar for bar in bars if bar.begin < step] for name, bars in times.rows.items()}


def _rows(on: Sheet, top: float, rows: Rows, scale: float, end: float = 0.0) -> float:
    """Draw rows from `top` on and return where they end."""
    for name, bars in rows.items():
        on.write(0, top + 17, name, size=12.5)
        levels = _levels(bars)
        deepest = max(levels, default=0)
        each = LEVEL if deepest else ROW
        height = each * (deepest + 1)
        widest = end or max((bar.end for bar in bars), default=0.0)
        on.box(LEFT, top, widest * scale, height - 3, fill=GREY_TINT, stroke=None)
        for bar, level in zip(bars, levels, strict=True):
            _bar(on, bar, top + level * LEVEL, each - 3, scale, name == "wire" or bar.name.startswith("B"))
        top += height
    return top


def _levels(bars: Sequence[TimeSpan]) -> list[int]:
    """Return for each bar on which level of its row it lies: bars of a level do not overlap."""
    free: list[float] = []  # from when on each level is
    levels = []
    for bar in bars:
        level = next((n for n, since in enumerate(free) if since <= bar.begin + 1e-9), len(free))
        free[level : level + 1] = [bar.end]
        levels.append(level)
    return levels


def _bar(on: Sheet, bar: TimeSpan, y: float, height: float, scale: float, is_pink: bool) -> None:
    x, width = LEFT + bar.begin * scale, (bar.end - bar.begin) * scale
    look = {"fill": PINK_TINT if is_pink else VIOLET_TINT, "fill_opacity": 0.8}
    on.tag("rect", x=x, y=y, width=width, height=height, stroke=INK, stroke_width=0.8, **look)
    if width > LETTER * len(bar.name) + 3:
        on.write(x + width / 2, y + height / 2 + 4.5, bar.name, size=11, anchor="middle")


def _axis(on: Sheet, y: float, end: float, scale: float) -> None:
    """Draw the axis up to `end` in ms, at most six steps; `scale` is in pixels a ms."""
    on.line(LEFT, y, LEFT + end * scale, y, stroke=LINE)
    step = 10.0 ** math.floor(math.log10(end))
    step *= next(share for share in (0.2, 0.5, 1.0, 2.0) if end / step / share <= 6)
    for tick in range(int(end / step + 1e-9) + 1):
        x = LEFT + tick * step * scale
        on.line(x, y, x, y + 5, stroke=LINE)
        on.write(x, y + 19, f"{tick * step:g}", size=11.5, anchor="middle", fill=QUIET)
    on.write(0, y + 19, "time (ms)", size=11.5, fill=QUIET)
