"""Speed against size: where a rung falls out of a cache, and what powers of two do to it.

`ladder.speeds` measures; what it finds draws itself. Sizes come in threes, a power of two with its neighbours
8 below and 8 above: rows whose length is a power of two put all lines of a column into few sets of a cache,
so a dip that the neighbours do not have is a conflict, and one that they share is a matter of size.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from course_lib import theme
from course_lib.measure.comparison import TITLE_WIDTH
from course_lib.measure.table import Shown, Table, digits, times

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZES = tuple(2**k + off for k in range(6, 12) for off in (-8, 0, 8))
BESIDE = 8  # so far from a power of two lie the sizes that it is compared with
FALLEN = 0.8  # of a rung's best speed: below it, the rung has fallen
DIP = 1.15  # a speed lower than its neighbours' by more than this is called a dip


def is_power(n: int) -> bool:
    """Whether a size is a power of two."""
    return n & (n - 1) == 0


@dataclass(frozen=True, repr=False)
class Speeds(Shown):
    """GFLOP/s of rungs against n, for products of (rows, n, n); without `rows` of (n, n, n)."""

    points: Mapping[str, Mapping[int, float]]  # rung -> n -> GFLOP/s
    rows: int | None
    dtype: str
    threads: int
    filled: Mapping[str, float]  # level of cache -> the n whose B fills it
    peak: float | None  # GFLOP/s, if it has been measured
    rough: bool = False  # in haste, or on cores that others held

    def dips(self, name: str) -> dict[int, float]:
        """Return for each power of two with neighbours: their mean speed over its own."""
        own = self.points[name]
        around = {n: [own[at] for at in (n - BESIDE, n + BESIDE) if at in own] for n in own if is_power(n)}
        return {n: sum(near) / len(near) / own[n] for n, near in around.items() if near}

    def fallen(self, name: str) -> int | None:
        """Return the first n beyond the fastest where a rung is below `FALLEN` of that; powers left out."""
        top, best = self._best(name)
        below = (n for n, speed in self.points[name].items() if n > top and speed < FALLEN * best)
        return min((n for n in below if not is_power(n)), default=None)

    def _best(self, name: str) -> tuple[int, float]:
        """Return the n at which a rung is fastest, and its speed there; powers left out."""
        return max(
            ((n, speed) for n, speed in self.points[name].items() if not is_power(n)), key=lambda at: at[1]
        )

    def table(self) -> Table:
        """Return a row for each size; – where a call would have taken too long."""
        sizes = sorted({n for own in self.points.values() for n in own})
        rows = [
            (str(n), *(digits(own[n]) if n in own else "–" for own in self.points.values())) for n in sizes
        ]
        return Table((self._shape(), *self.points), tuple(rows), f"GFLOP/s, {self._how()}")

    def figure(self, fall_of: str | None = None) -> theme.Picture:
        """Draw the speeds; powers of two hollow; dashed the peak, dotted where B fills a cache.

        The title tells the deepest dip, or where the rung `fall_of` falls: below a line that is drawn then.
        """
        title = self._finding() if fall_of is None else self._fall(fall_of)
        with theme.figure(8.0, 4.8) as fig:
            axes = fig.subplots()
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            axes.set(xlabel=self._shape(), ylabel=f"GFLOP/s ({self._how()})")
            for number, (name, own) in enumerate(self.points.items()):
                colour, marker, line = theme.SERIES[number % len(theme.SERIES)]
                ns = sorted(own)
                speeds = [own[n] for n in ns]
                axes.plot(ns, speeds, marker, linestyle=line, color=colour, label=name, markersize=5)
                powers = [n for n in ns if is_power(n)]
                hollow = {"color": colour, "markerfacecolor": theme.PAPER, "markersize": 8, "zorder": 4}
                axes.plot(powers, [own[n] for n in powers], marker, linestyle="", **hollow)
            if fall_of is not None:
                line = FALLEN * self._best(fall_of)[1]
                said = f"{100 * FALLEN:.0f} % of {fall_of}'s best"
                axes.axhline(line, color=theme.INK, linestyle=":", linewidth=1.2, label=said)
            self._limits(axes)
            fig.legend(loc="outside lower center", ncols=len(self.points) + 1)
            axes.set_title(textwrap.fill(title, TITLE_WIDTH, break_on_hyphens=False), pad=17)
            return theme.Picture.of(fig, self._alt(title))

    def _limits(self, axes: Axes) -> None:
        from matplotlib.ticker import LogLocator

        sizes = [n for own in self.points.values() for n in own]
        axes.set_xticks(powers := sorted({n for n in sizes if is_power(n)}), [str(n) for n in powers])
        axes.minorticks_off()
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
        if self.peak:
            axes.axhline(self.peak, color=theme.INK, linestyle="--", linewidth=1.2, label="peak")
        low, high = min(sizes) / 1.15, max(sizes) * 1.15
        axes.set_xlim(low, high)
        for level, n in self.filled.items():
            if low < n < high:
                axes.axvline(n, color=theme.GREY, linestyle=":", linewidth=1.4)
                side = "right" if n > high / 1.5 else "center"
                words = {"ha": side, "va": "bottom", "color": theme.QUIET, "fontsize": 9}
                axes.text(n, 1.0, f"B fills {level}", transform=axes.get_xaxis_transform(), **words)

    def _shape(self) -> str:
        return f"n of ({'n' if self.rows is None else self.rows}, n, n)"

    def _how(self) -> str:
        threads = f"{self.threads} thread{'s' if self.threads > 1 else ''}"
        return f"{self.dtype}, {threads}{', rough' if self.rough else ''}"

    def _fall(self, name: str) -> str:
        n, share = self.fallen(name), f"{100 * FALLEN:.0f} % of its best"
        return f"{name} {f'is below {share} from n = {n} on' if n else f'stays above {share}'}"

    def _finding(self) -> str:
        worst = {
            name: max(dips.items(), key=lambda dip: dip[1])
            for name in self.points
            if (dips := self.dips(name))
        }
        if not worst:
            return "Speed against size"
        name = max(worst, key=lambda name: worst[name][1])
        n, dip = worst.pop(name)
        if dip < DIP:
            lost = round(100 * (1 - 1 / dip))
            said = f"No power of two costs more than {lost} % of the speed beside it"
            return said if lost > 0 else "Powers of two cost nothing here"
        said = f"At n = {n} {name} takes {times(dip)} as long as beside it"
        if worst:
            said += f", the others at most {times(max(1.0, *(dip for _, dip in worst.values())))}"
        return said

    def _alt(self, title: str) -> str:
        lines = "; ".join(
            f"{name} " + ", ".join(f"{digits(own[n])} at {n}" for n in sorted(own))
            for name, own in self.points.items()
        )
        full = ", ".join(f"{level} at n = {n:.0f}" for level, n in self.filled.items())
        roof = f" Peak {digits(self.peak)}." if self.peak else ""
        return (
            f"GFLOP/s against {self._shape()}, {self._how()}. {title}. {lines}.{roof} B fills {full or '?'}."
        )
