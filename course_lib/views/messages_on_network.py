"""Messages between ranks on a network, step by step: who sends to whom, and which link is the busiest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from course_lib.measure.sizes import in_bytes
from course_lib.theme import GREY_TINT, INK, LINE, PAPER, PINK, VIOLET
from course_lib.views.live import Steps
from course_lib.views.paper import Html, Sheet, card, note, plural, side_by_side

if TYPE_CHECKING:
    from course_lib.simulators.network import Network, Step

MOST_RANKS, MOST_STEPS = 64, 200
RADIUS, APART = 15.0, 46.0  # of a rank's disc, and between neighbours
PITCH = 1.5 * APART  # of a grid
LETTER = 7.6  # mean width of a letter
STILL = 6  # frames of the still twin


def messages(network: Network, steps: Sequence[Step], order: Sequence[int] | None = None) -> MessageSteps:
    """Return a widget that steps through messages on a network.

    `steps` are those of `simulators.network` (a rehearsal's by `steps_of`); `order[rank]` is the place where
    a rank runs. Raises ValueError above 64 ranks or 200 steps, and when there is no message.
    """
    if network.ranks > MOST_RANKS or not 0 < len(steps) <= MOST_STEPS:
        raise ValueError(
            f"{network.ranks} ranks and {len(steps)} steps cannot be drawn: at most {MOST_RANKS} ranks and 1 "
            f"to {MOST_STEPS} steps can."
        )
    return MessageSteps(network, steps, order)


class MessageSteps(Steps):
    """The walk through the steps: frame 0 is before the first; `frame(step)` draws the messages of one."""

    def __init__(self, network: Network, steps: Sequence[Step], order: Sequence[int] | None) -> None:
        from course_lib.simulators.network import timeline

        self.network = network
        self.steps = list(steps)
        self.places = np.arange(network.ranks) if order is None else np.asarray(order)
        self.times = timeline(network, self.steps, order)
        self.last = len(self.steps)
        self._is_grid = "torus" in network.name
        ways = [(self.places[step.senders], self.places[step.receivers]) for step in self.steps]
        self._where, (width, height) = _positions(network, self._is_grid, ways)
        widest = max(len(words) for step in range(self.last + 1) for words in self.said(step))
        self._size = max(width, LETTER * widest + 28), height  # the same for all frames
        worst = max(self.times.seconds_by_step)
        slow = self.next_where(lambda at: at > 0 and self.times.seconds_by_step[at - 1] == worst)
        super().__init__({"slowest step »": ("Go to the next of the slowest steps", slow)})

    def frame(self, step: int) -> str:
        """Return the picture of a step as SVG: thick between groups, on a grid where shared."""
        on = Sheet()
        width, height = self._size
        self._draw_groups(on)
        if step:
            self._draw_messages(on, self.steps[step - 1])
        for rank, place in enumerate(self.places):
            x, y = self._where[place]
            on.tag("circle", cx=x, cy=y, r=RADIUS, fill=PAPER, stroke=INK, stroke_width=1.5)
            on.write(x, y + 4.5, rank, size=12.5, anchor="middle", bold=True)
        said = self.said(step)
        for line, words in enumerate(said):
            on.write(14, height + 20 + 19 * line, words, size=13.5, bold=line == 0)
        return on.svg(width, height + 24 + 19 * 3, ". ".join(said))

    def said(self, step: int) -> list[str]:
        """Return what a step is, in two or three lines of words."""
        if step == 0:
            return [f"{plural(self.network.ranks, 'rank')} on {self.network.name}", "Before the first step"]
        now, at = self.steps[step - 1], step - 1
        so_far = sum(self.times.seconds_by_step[:step])
        each = in_bytes(int(np.max(now.nbytes)))
        often = f", {now.times} times" if now.times > 1 else ""
        return [
            f"Step {step} of {self.last}: {plural(len(now.senders), 'message')} of {each}{often}",
            f"Busiest: {self.times.busiest[at]}",
            f"{_ms(self.times.seconds_by_step[at])}, so far {_ms(so_far)} of {_ms(self.times.seconds)}",
        ]

    def static(self) -> Html:
        """Return some of the steps beside each other, the first and the last among them."""
        shown = np.unique(np.linspace(1, self.last, min(STILL, self.last)).round().astype(int)).tolist()
        steps = sum(step.times for step in self.steps)  # equal ones that follow each other are drawn once
        took = _ms(self.times.seconds)
        title = f"{plural(steps, 'step')} on {self.network.name} take{'s' * (steps == 1)} {took}"
        panels = [self.frame(step) for step in shown]
        left_out = self.last - len(shown)
        small = note(f"{plural(left_out, 'step')} left out between them") if left_out else ""
        told = f"{title}. " + " ".join(". ".join(self.said(step)) + "." for step in shown)
        return Html(card(side_by_side(panels) + small, told, title=title), told)

    def _draw_groups(self, on: Sheet) -> None:
        if self._is_grid or self.network.group in (1, self.network.ranks):
            return
        for begin in range(0, self.network.ranks, self.network.group):
            at = self._where[begin : begin + self.network.group]
            corner = at.min(axis=0) - 26
            place = [*corner.tolist(), *(at.max(axis=0) + 26 - corner).tolist()]
            on.box(*place, fill=GREY_TINT, stroke=LINE, radius=8)

    def _draw_messages(self, on: Sheet, step: Step) -> None:
        if self._is_grid:
            return self._draw_hops(on, step)
        for sender, receiver in zip(self.places[step.senders], self.places[step.receivers], strict=True):
            is_far = sender // self.network.group != receiver // self.network.group
            _arrow(on, self._where[sender], self._where[receiver], is_far)

    def _draw_hops(self, on: Sheet, step: Step) -> None:
        """Draw each link that is crossed: what leaves the grid at an edge comes in at the opposite one."""
        ranks, columns = self.network.ranks, self.network.group
        _, crossed = self.network.route(self.places[step.senders], self.places[step.receivers])
        for link, messages in zip(*np.unique(crossed, return_counts=True), strict=True):
            way, at = divmod(int(link), ranks)
            down, right = ((0, 1), (0, -1), (1, 0), (-1, 0))[way]
            row, column = at // columns + down, at % columns + right
            hop, here = PITCH * np.array([right, down]), self._where[at]
            if 0 <= row < ranks // columns and 0 <= column < columns:
                _arrow(on, here, here + hop, messages > 1)
            else:
                there = self._where[row % (ranks // columns) * columns + column % columns]
                _arrow(on, here, here + 0.5 * hop, messages > 1, into=0)
                _arrow(on, there - 0.5 * hop, there, messages > 1, out_of=0)


def _arrow(
    on: Sheet,
    start: np.ndarray,
    end: np.ndarray,
    is_marked: bool,
    out_of: float = RADIUS,
    into: float = RADIUS + 2,
) -> None:
    """Draw a message a little to the right of its way, so that an exchange is two arrows."""
    along = (end - start) / (math.hypot(*(end - start)) or 1.0)
    aside = 4.0 * np.array([-along[1], along[0]])
    ends = np.concatenate([start + out_of * along + aside, end - into * along + aside])
    on.arrow(*map(float, ends), stroke=VIOLET if is_marked else PINK, width=2.6 if is_marked else 1.6)


def _positions(
    network: Network, is_grid: bool, ways: Sequence[tuple[np.ndarray, np.ndarray]]
) -> tuple[np.ndarray, tuple[float, float]]:
    """Return where each place is drawn, (ranks, 2), and width and height: circles of groups, or a grid.

    Two groups are columns that face each other where no message skips a place of its column.
    """
    group = network.group
    groups = -(-network.ranks // group)
    if is_grid:
        rows, columns = np.divmod(np.arange(network.ranks), group)
        where = np.stack([40 + PITCH * columns, 40 + PITCH * rows], axis=1)
    elif groups == 2 and not any(((a // group == b // group) & (abs(a - b) > 1)).any() for a, b in ways):
        side, row = np.divmod(np.arange(network.ranks), group)
        where = np.stack([40 + 4 * APART * side, 40 + APART * row], axis=1)
    else:
        radius = max(APART / 2, APART / (2 * math.sin(math.pi / max(group, 2))))
        across = max(1, min(groups, int(860 / (2 * radius + 80))))
        turn = 0.25 * (groups > 1)  # of a place: else two messages between groups would lie on one line
        angle = 2 * math.pi * (np.arange(group) + turn) / group - math.pi / 2
        circle = (group > 1) * radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        pitch = 2 * radius + 80
        first = 40 + radius + pitch * np.stack(np.divmod(np.arange(groups), across)[::-1], axis=1)
        where = (first[:, None] + circle).reshape(-1, 2)[: network.ranks]
    right, bottom = where.max(axis=0) + 44
    return where, (float(right), float(bottom))


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} us"
