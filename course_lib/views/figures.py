"""What the figures of the views share: a finding above all panels, panels in a column, words at a point."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from course_lib import theme
from course_lib.theme import INK, PAPER, SERIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Annotation


def headline(fig: Figure, said: str, letters: int) -> None:
    """Write the finding over all panels, at most so many letters in a line."""
    fig.suptitle(textwrap.fill(said, letters), x=0.01, ha="left", fontsize=13, fontweight="bold", color=INK)


@contextmanager
def panel(width: float, height: float, said: str, letters: int) -> Iterator[tuple[Figure, Axes]]:
    """Give a figure of one panel with the finding over it, at most so many letters in a line."""
    with theme.figure(width, height) as fig:
        axes = fig.subplots()
        axes.set_title(textwrap.fill(said, letters))
        yield fig, axes


def stacked(fig: Figure, heights: Sequence[float], *, sharex: bool = True) -> Sequence[Axes]:
    """Return panels below each other, as high as `heights` say, on one x axis unless `sharex` is False."""
    ratios = {"height_ratios": list(heights)}
    return fig.subplots(len(heights), 1, sharex=sharex, squeeze=False, gridspec_kw=ratios)[:, 0]


def beside(axes: Axes, words: str, at: tuple, shift: tuple[float, float], **look: Any) -> Annotation:
    """Write words beside a point of the data, shifted by so many points of the page."""
    return axes.annotate(words, at, xytext=shift, textcoords="offset points", **look)


def at_the_side(axes: Axes, words: str, at: tuple, right: bool, lower: float = 0, **look: Any) -> None:
    """Write words to the right or left of a mark of the data."""
    side = "left" if right else "right"
    beside(axes, words, at, (9 if right else -9, -lower), ha=side, va="center", **look)


def centred(axes: Axes, x: float, y: float, words: object, ground: dict | None = None, **look: Any) -> None:
    """Write words with their middle at a point of the data, on paper of their own if `ground` says which."""
    box = None if ground is None else {"facecolor": PAPER, "edgecolor": "none", **ground}
    axes.text(x, y, words, ha="center", va="center", bbox=box, **look)


def hollow(colour: str, size: float, edge: float) -> dict[str, Any]:
    """Return the look of a marker that is only an edge: published, chosen, beyond what counts."""
    return {"markerfacecolor": "none", "markeredgecolor": colour, "markersize": size, "markeredgewidth": edge}


def series(number: int) -> dict[str, Any]:
    """Return the look of series `number`: colour, marker and line style, as the arguments of `plot`."""
    colour, marker, style = SERIES[number % len(SERIES)]
    return {"color": colour, "marker": marker, "linestyle": style}


def curves(
    axes: Axes,
    measured: Mapping[str, Mapping[float, float]],
    expected: Mapping[str, Mapping[float, float]],
    names: Sequence[str] = (),
) -> None:
    """Draw curves by name; what is expected in thin dashes. A place in `names` decides how a curve looks."""
    for number, (name, curve) in enumerate(measured.items()):
        look = series(names.index(name) if names else number)
        axes.plot(*zip(*sorted(curve.items()), strict=True), **look, label=name)
    for number, (name, curve) in enumerate(expected.items()):
        dashes = [(0, (7, 3)), (0, (2, 2)), (0, (7, 2, 2, 2))][number % 3]
        look = {"color": INK, "linewidth": 1.2, "linestyle": dashes, "zorder": 1}
        axes.plot(*zip(*sorted(curve.items()), strict=True), **look, label=name)
