"""Colours and plot style of the course, and the Picture every figure is returned as.

Two colours carry the course. A chart that compares more than two things takes the further ones *and*
a marker or line style of its own, so that nobody has to tell colours apart.
"""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Annotation

PINK = "#ff007f"
VIOLET = "#9700ff"
INK = "#1f1b24"
GREY = "#8a8494"
PAPER = "#ffffff"
#: Text colours that keep a contrast of at least 4.5 on white (the bright pink alone does not).
QUIET = "#6b6375"
DEEP_PINK = "#c4005f"
#: Light fills for areas, with INK written on them.
PINK_TINT = "#ffe3f0"
VIOLET_TINT = "#efdcff"
GREY_TINT = "#f4f2f6"
LINE = "#d9d3e0"

#: Colour, marker and line style belong together: series n takes SERIES[n % len(SERIES)].
SERIES: tuple[tuple[str, str, str], ...] = (
    (PINK, "o", "-"),
    (VIOLET, "s", "--"),
    ("#00857c", "^", "-."),
    ("#b35c00", "D", ":"),
    ("#2f5fd0", "v", (0, (5, 1, 1, 1))),
    ("#6b6375", "P", (0, (1, 1))),
)

STYLE = {
    "figure.facecolor": PAPER,
    "figure.dpi": 100,
    "figure.figsize": (8.0, 4.2),
    "figure.constrained_layout.use": True,
    "axes.facecolor": PAPER,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 13,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e7e3ec",
    "grid.linewidth": 0.8,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "font.size": 10.5,
    "legend.frameon": False,
    "lines.linewidth": 2.0,
}


def mixed(first: str, second: str, share: float, pale: float = 0.0) -> str:
    """Return the colour at `share` of the way from the first to the second, `pale` of the way to white."""
    pairs = ((int(first[at : at + 2], 16), int(second[at : at + 2], 16)) for at in (1, 3, 5))
    parts = (round((1 - pale) * ((1 - share) * a + share * b) + pale * 255) for a, b in pairs)
    return "#" + "".join(f"{part:02x}" for part in parts)


@contextmanager
def figure(width: float = 8.0, height: float = 4.2) -> Iterator[Figure]:
    """Give a styled matplotlib Figure that pyplot does not know, so no cell can show or leak it twice."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        yield Figure(figsize=(width, height))


def beside(
    axes: Axes, words: str, at: tuple[float, float], shift: tuple[float, float], **look: Any
) -> Annotation:
    """Write words `shift` points away from a place; `look` is what matplotlib's `annotate` takes."""
    return axes.annotate(words, at, xytext=shift, textcoords="offset points", **look)


@dataclass(frozen=True)
class Picture:
    """A finished figure with its alt text: what a notebook shows, a page embeds and a test can read.

    ``png`` holds the picture (twice the nominal resolution), ``alt`` says in words what it shows.
    """

    png: bytes
    alt: str
    width: int  # nominal width in CSS pixels

    @classmethod
    def of(cls, fig: Figure, alt: str) -> Picture:
        """Render ``fig`` at twice its nominal resolution."""
        buffer = io.BytesIO()
        fig.savefig(buffer, format="png", dpi=2 * fig.dpi)
        return cls(buffer.getvalue(), alt, int(fig.get_figwidth() * fig.dpi))

    def _repr_html_(self) -> str:
        data = base64.b64encode(self.png).decode()
        alt = html.escape(self.alt, quote=True)
        return (
            f'<img alt="{alt}" style="max-width:100%;background:#fff" width="{self.width}" '
            f'src="data:image/png;base64,{data}">'
        )

    def __repr__(self) -> str:
        return f"Picture: {self.alt}"
