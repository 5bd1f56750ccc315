"""How time grows with size: the exponent of O(N^p), from the learner's own timings.

growth = scaling({"python-lists": matmul}, (16, 32, 64, 128), make_lists)
growth.exponent("python-lists")          near 3
growth.predict("python-lists", 1024)     seconds, by the fitted power law
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from course_lib import theme
from course_lib.measure.comparison import value_of
from course_lib.measure.progress import Progress
from course_lib.measure.table import Shown, Table, digits, seconds_in_words
from course_lib.measure.timing import compare

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROUNDS = 3  # the fit over all sizes evens out what few rounds leave uncertain


@dataclass(frozen=True, repr=False)
class Scaling(Shown):
    """Measured times over sizes, and the power law seconds = c * n^p fitted to each function's."""

    points: dict[str, list[tuple[int, float]]]  # name -> (n, median seconds of a call)

    def exponent(self, name: str) -> float:
        """Return p of the fitted c * n^p: the slope of the line through the points on log-log axes."""
        return self._fit(name)[0]

    def predict(self, name: str, n: float) -> float:
        """Return the seconds that the fitted power law gives for size n."""
        slope, intercept = self._fit(name)
        return math.exp(intercept) * n**slope

    def _fit(self, name: str) -> tuple[float, float]:
        if name not in self.points:
            known = ", ".join(map(repr, self.points))
            raise ValueError(f"There is no function {name!r} here; there are {known}.")
        if len(self.points[name]) < 2:
            raise ValueError(f"{name} was measured at one size only, and a growth needs two or more.")
        import numpy as np

        sizes, seconds = zip(*self.points[name], strict=True)
        slope, intercept = np.polyfit(np.log(sizes), np.log(seconds), 1)
        return float(slope), float(intercept)

    def table(self) -> Table:
        """Return the times, a row per size, and the exponents under them."""
        names = tuple(self.points)
        sizes = [n for n, _ in self.points[names[0]]]
        times = {name: dict(self.points[name]) for name in names}
        rows = tuple((str(n), *(digits(1e6 * times[name][n]) for name in names)) for n in sizes)
        fits = (f"{name}: time grows as n^{self.exponent(name):.2f}" for name in names if len(sizes) > 1)
        return Table(("n", *(f"{name} (us)" for name in names)), rows, notes=tuple(fits))

    def figure(self, guess: Any = None) -> theme.Picture:
        """Draw points and fitted lines, and the growth for a guessed exponent (number, `.value` or None)."""
        guessed = value_of(guess)
        title = self._finding()
        with theme.figure(8.0, 4.6) as fig:
            axes = fig.subplots()
            axes.set(xscale="log", yscale="log", xlabel="size n", ylabel="time of a call (s)")
            for number, name in enumerate(self.points):
                self._draw(axes, name, theme.SERIES[number % len(theme.SERIES)])
            if guessed is not None:
                self._draw_guess(axes, guessed)
            sizes = [n for n, _ in next(iter(self.points.values()))]
            axes.set_xticks(sizes, [str(n) for n in sizes])
            axes.minorticks_off()
            axes.legend(loc="upper left")
            axes.set_title(title)
            return theme.Picture.of(fig, self._alt(title, guessed))

    def _draw(self, axes: Axes, name: str, style: tuple) -> None:
        colour, marker, line = style
        sizes, seconds = zip(*self.points[name], strict=True)
        axes.plot(sizes, seconds, marker, color=colour, markersize=7)
        ends = (min(sizes), max(sizes))
        label = f"{name}: n^{self.exponent(name):.2f}"
        fitted = [self.predict(name, n) for n in ends]
        axes.plot(ends, fitted, linestyle=line, color=colour, linewidth=1.6)
        axes.plot([], [], marker, linestyle=line, color=colour, label=label)  # marker and line in one entry

    def _draw_guess(self, axes: Axes, guessed: float) -> None:
        """Draw the guessed growth from where the first function's line begins."""
        name, points = next(iter(self.points.items()))
        ends = (points[0][0], points[-1][0])
        start = self.predict(name, ends[0])
        seconds = [start * (n / ends[0]) ** guessed for n in ends]
        axes.plot(
            ends,
            seconds,
            color=theme.INK,
            linestyle=(0, (4, 2)),
            linewidth=1.4,
            label=f"your guess: n^{guessed:g}",
        )

    def _finding(self) -> str:
        exponents = {name: self.exponent(name) for name in self.points}
        if len(exponents) == 1:
            ((name, exponent),) = exponents.items()
            return f"{name}: twice the size takes {2**exponent:.1f}x the time (n^{exponent:.2f})"
        low, high = min(exponents.values()), max(exponents.values())
        if high - low < 0.1:
            return f"Time grows as n^{(low + high) / 2:.2f} for all of them"
        return f"Time grows as n^{low:.2f} to n^{high:.2f}"

    def _alt(self, title: str, guessed: float | None) -> str:
        lines = "; ".join(
            f"{name} from {seconds_in_words(points[0][1])} at n = {points[0][0]} "
            f"to {seconds_in_words(points[-1][1])} at n = {points[-1][0]}"
            for name, points in self.points.items()
        )
        marked = "" if guessed is None else f" A dashed line shows your guess, n^{guessed:g}."
        return f"Time against size on log-log axes with fitted lines. {title}. {lines}.{marked}"


def scaling(
    functions: Mapping[str, Callable],
    sizes: Sequence[int],
    make_inputs: Callable[[int], tuple],
    *,
    budget_s: float = 6.0,
) -> Scaling:
    """Measure functions at growing sizes, each size as a fair comparison.

    `make_inputs(n)` returns the inputs as a tuple. `budget_s` is for all sizes together; slow calls get at
    least one sample at each size.
    """
    sizes = _checked(sizes)
    points: dict[str, list[tuple[int, float]]] = {name: [] for name in functions}
    with Progress(None) as bar:
        for done, n in enumerate(sizes):
            # time grows with size, so the last sizes take most of it
            bar.update((done / len(sizes)) ** 2, f"n = {n}")
            inputs = make_inputs(n)
            if not isinstance(inputs, tuple):
                kind = type(inputs).__name__
                raise TypeError(f"make_inputs({n}) returned a {kind}, but it must return a tuple of inputs.")
            result = compare(
                functions,
                *inputs,
                budget_s=budget_s / len(sizes),
                min_rounds=ROUNDS,
                max_error=False,
                progress=False,
            )
            for row in result.rows:
                points[row.name].append((n, row.seconds))
    return Scaling(points)


def _checked(sizes: Sequence[int]) -> list[int]:
    wanted = [int(n) for n in sizes]
    if not wanted or min(wanted) < 1:
        raise ValueError(f"sizes is {list(sizes)}, but it must be positive whole numbers, one or more.")
    return sorted(set(wanted))
