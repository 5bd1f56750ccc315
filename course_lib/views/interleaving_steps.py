"""One schedule of several threads, step by step: a column for each thread, what is shared beside it.

`ScheduleSteps.frame(step)` is a pure function: the widget shows one frame, the still twin the whole schedule.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from course_lib.theme import DEEP_PINK, GREY_TINT, INK, PAPER, PINK, PINK_TINT, QUIET, VIOLET, VIOLET_TINT
from course_lib.views.live import Steps
from course_lib.views.paper import CODE_LETTER, CODE_LINE, Html, Sheet, card, plural

if TYPE_CHECKING:
    from course_lib.simulators.interleavings import Replay, ReplayStep, Verdict

ROWS = 14  # steps that a frame shows; longer schedules move past
MOST_STILL = 60  # steps of the still twin
MOST_LINES = 30  # of the source
LETTER = 7.1  # mean width of a letter at size 13
#: Fill, edge, ink of each thread's steps; every second edge is dashed, so that colour is not needed.
STYLES = (
    (PINK_TINT, PINK, None),
    (VIOLET_TINT, VIOLET, "5 3"),
    ("#d9f2ef", "#00857c", None),
    ("#f6e6d3", "#b35c00", "5 3"),
)


def interleaving(what: Verdict | Replay) -> ScheduleSteps:
    """Return a widget that steps through a schedule: a replay, or the witness of what `explore` found.

    Raises ValueError for a verdict without a witness (nothing went wrong) and for an empty schedule.
    """
    replay = getattr(what, "witness", what)
    if replay is None:
        raise ValueError(f"There is no schedule to show: {what.sentence}")
    if not replay.steps:
        raise ValueError("The schedule has no step: name the thread of each step, for example [0, 1, 0, 1].")
    return ScheduleSteps(replay, what.sentence)


class ScheduleSteps(Steps):
    """The step-through of a schedule: `frame(step)` draws one step."""

    def __init__(self, replay: Replay, finding: str) -> None:
        self.replay = replay
        self.finding = finding
        self.last = len(replay.steps)
        self._column = 24 + LETTER * max(
            [len(_short(step)) for step in replay.steps]
            + [len(f"thread 0: {name}") for name in replay.threads]
        )
        self._lines = replay.text.splitlines()[:MOST_LINES]
        order = replay.schedule
        switch = self.next_where(lambda done: done > 1 and order[done - 1] != order[done - 2])
        jumps = {"next switch »": ("Go to where the next thread takes over", switch)}
        super().__init__(jumps, interval_ms=1100)

    def frame(self, step: int) -> str:
        """Return the picture after `step` steps (0: before the first) as SVG."""
        on = Sheet()
        start = min(max(0, step - ROWS + 3), max(0, self.last - ROWS))
        rows = range(start, min(start + ROWS, self.last))
        width, height = self._table(on, rows, step)
        right = width + 26
        bottom = self._state(on, right, step)
        floor = max(height, self._listing(on, right, bottom + 16, step)) + 30
        on.write(12, floor, self._sentence(step), size=15, bold=True)
        full = max(
            right + self._side_width(), 12 + 8.4 * max(map(len, map(self._sentence, range(self.last + 1))))
        )
        ending = textwrap.wrap(self.replay.sentence, int((full - 12) / LETTER)) or [""]
        if step == self.last:
            for line, words in enumerate(ending):
                on.write(12, floor + 22 + 18 * line, words, fill=DEEP_PINK)
        return on.svg(full + 12, floor + 18 + 18 * len(ending), self._label(step))

    def static(self) -> Html:
        """Return the whole schedule as one picture."""
        on = Sheet()
        shown = min(self.last, MOST_STILL)
        width, height = self._table(on, range(shown), None)
        right = width + 26
        if shown < self.last:
            on.write(12, height + 16, f"… {self.last - shown} more steps", fill=QUIET)
            height += 20
        bottom = self._listing(on, right, 20, None)
        drawing = on.svg(right + self._side_width(), max(height, bottom) + 14, self.finding)
        words = f"{self.finding} {plural(self.last, 'step')}: " + " ".join(
            f"{number}. thread {step.thread} {step.does}." for number, step in enumerate(self.replay.steps, 1)
        )
        return Html(card(drawing, self.finding, title=self.finding), words)

    # -- parts ----------------------------------------------------------------------------------------------

    def _table(self, on: Sheet, rows: range, step: int | None) -> tuple[float, float]:
        """Draw the steps of `rows`; those after `step` stay empty (None: all, with what is shared)."""
        top, high, left = 34.0, 26.0, 40.0
        on.write(12, 20, "step", fill=QUIET, size=12)
        for thread, name in enumerate(self.replay.threads):
            x = left + thread * self._column
            _, edge, _ = STYLES[thread % len(STYLES)]
            on.write(x + 8, 20, f"thread {thread}: {name}", bold=True)
            on.box(x + 4, 26, self._column - 8, 3, fill=edge, stroke=None)
        width = left + len(self.replay.threads) * self._column
        if step is None:
            on.write(width + 10, 20, "shared afterwards", fill=QUIET, size=12)
        for place, number in enumerate(rows):
            y = top + place * high
            one = self.replay.steps[number]
            on.write(30, y + 18, number + 1, fill=QUIET, size=12, anchor="end")
            if step is not None and number >= step:
                continue
            is_now = number + 1 == step
            x = left + one.thread * self._column
            fill, edge, dash = STYLES[one.thread % len(STYLES)]
            look = {"stroke": INK, "stroke_width": 2.5} if is_now else {"stroke": edge}
            look |= {"fill": PAPER, "dash": "2 3"} if one.waits else {"fill": fill, "dash": dash}
            on.box(x + 4, y + 2, self._column - 8, high - 4, radius=4, **look)
            on.write(x + 12, y + 18, _short(one), bold=is_now)
            if step is None:
                on.write(width + 10, y + 18, _cut(_values(one.shared), 34), size=12.5, mono=True)
        if step is None:
            width += 20 + CODE_LETTER * min(34, max(len(_values(one.shared)) for one in self.replay.steps))
            width = max(width, left + len(self.replay.threads) * self._column + 130)
        return width, top + len(rows) * high

    def _state(self, on: Sheet, x: float, step: int) -> float:
        """Draw what is shared and who holds which lock after `step` steps."""
        steps = self.replay.steps
        states = [self.replay.before, *(one.shared for one in steps)]
        before, held = states[max(step - 1, 0)], steps[step - 1].held if step else {}
        on.write(x, 20, "shared", bold=True)
        y = 30.0
        for name, value in states[step].items():
            is_new = before.get(name) != value
            line = _cut(f"{name} = {value}", 44)
            on.box(x, y, CODE_LETTER * len(line) + 16, 22, fill=PINK_TINT if is_new else GREY_TINT, radius=3)
            on.write(x + 8, y + 16, line, size=12.5, mono=True, bold=is_new)
            y += 26
        locks = dict.fromkeys(lock for one in steps for lock in one.held)
        if locks:
            y += 18
            on.write(x, y, "locks", bold=True)
            y += 8
            for name in locks:
                who = held.get(name, "free")
                on.write(x, y + 14, f"{name}: {who}", size=12.5, mono=True, bold=who != "free")
                y += 20
        return y

    def _listing(self, on: Sheet, x: float, y: float, step: int | None) -> float:
        """Draw the source; the line of the present step is marked, and where each other thread was last."""
        at: dict[int, int] = {}
        for one in self.replay.steps[: step or 0]:
            at[one.thread] = one.line
        now = self.replay.steps[step - 1] if step else None
        threads = {line: [str(thread) for thread, own in at.items() if own == line] for line in at.values()}
        remarks = {line: f"◀ {', '.join(names)}" for line, names in threads.items()}
        lines, width = [_cut(line, 60) for line in self._lines], self._side_width() - 16
        on.code(lines, x, y, width, lambda number, _: now is not None and now.line == number, remarks)
        return y + CODE_LINE * len(self._lines) + 12

    def _side_width(self) -> float:
        return 38 + CODE_LETTER * max([min(60, len(line)) for line in self._lines] + [30]) + 80

    def _sentence(self, step: int) -> str:
        if step == 0:
            return f"Before the first step: {_cut(_values(self.replay.before), 90)}"
        one = self.replay.steps[step - 1]
        return f"Step {step} of {self.last}: thread {one.thread} {one.does}"

    def _label(self, step: int) -> str:
        if step == 0:
            return self._sentence(step)
        one = self.replay.steps[step - 1]
        held = ", ".join(f"{lock}: {who}" for lock, who in one.held.items()) or "no lock is held"
        return f"{self._sentence(step)} (line {one.line}: {one.code}). Shared: {_values(one.shared)}; {held}."


def _short(step: ReplayStep) -> str:
    return _cut(step.does, 34)


def _values(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items()) or "nothing"


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
