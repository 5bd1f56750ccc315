"""What a fair comparison found: as a table, a figure, data, and the card that says how it was measured."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from course_lib import theme
from course_lib.measure import inputs as inputs_
from course_lib.measure.table import Facts, Table, digits, seconds_in_words, times

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from course_lib.measure.peaks import Peaks

WITHIN_THIS_RUN = "this holds within this run: another run on a busy machine may differ more"
WIDE_RANGE = 20.0  # from this ratio on a linear axis would hide the short bars
TELLING = 0.1  # an interval that reaches further than this from 1 leaves a difference open
TITLE_WIDTH = 68
LABEL_WIDTH = 80
UNITS = {"us": 1e6, "ms": 1e3, "s": 1.0}
LONGEST_IN_UNIT = 1e4  # a table is in the first unit in which half of its times are shorter
UNREADABLE = 0.1  # a speed below this many times the baseline's is written as a fraction


@dataclass(frozen=True)
class TimedRow:
    """One function of a comparison."""

    name: str
    seconds: float  # median of the samples, per call
    spread_s: float  # half the range of the middle 50 % of the samples
    rounds: int  # samples; 1 when one call takes longer than the whole budget
    gflops: float | None
    ratio: float  # time / the baseline's time: above 1 is slower
    ratio_low: float  # 95 % interval (bootstrap); equal to the ratio after a single sample
    ratio_high: float
    max_error: float | None  # max|C - C_baseline| / max|C_baseline|
    on_gpu: bool = False  # its operations are done by no core of the CPU

    @property
    def differs(self) -> bool:
        """Whether its time differs from the baseline's by more than the uncertainty."""
        return self.ratio_low > 1 or self.ratio_high < 1

    @property
    def half_width(self) -> float:
        """Half the width of the interval, relative to its middle."""
        return (self.ratio_high - self.ratio_low) / (self.ratio_high + self.ratio_low)


@dataclass(frozen=True)
class Conditions:
    """How a comparison was measured."""

    inputs: tuple[str, ...]  # one phrase per array: "float64 (512, 512), C order"
    blas: str | None  # the BLAS in this process, None when none is loaded
    clock: str
    clock_why: str
    rounds: int
    sample_s: float
    ended: str  # "certain enough", "budget spent" or "one call was longer than the budget"
    half_width: float  # the widest relative 95 % half-width among the ratios
    target: float
    max_error: bool
    seconds_spent: float
    notes: tuple[str, ...]
    hasty: str = ""  # that it was measured in haste, as a sentence; "" if it was not
    held: str = ""  # that other programs held the cores, as a sentence; "" if they did not


@dataclass(frozen=True)
class Comparison:
    """The rows in the order they were given, and how they were measured."""

    rows: tuple[TimedRow, ...]
    baseline: str
    threads: int
    dtype: str
    shapes: tuple[tuple[int, ...], ...]
    conditions: Conditions

    def row(self, name: str) -> TimedRow:
        """Return the row of one function."""
        for row in self.rows:
            if row.name == name:
                return row
        known = ", ".join(repr(row.name) for row in self.rows)
        raise ValueError(f"There is no function {name!r} here; there are {known}.")

    @property
    def held(self) -> bool:
        """Whether other programs held the cores: then a ratio of times says more about them."""
        return bool(self.conditions.held)

    def called_held(self, why: str) -> Comparison:
        """Return the same, but `held`: for a reason that its clock could not see."""
        return replace(self, conditions=replace(self.conditions, held=self.conditions.held or why))

    @property
    def rough(self) -> tuple[str, ...]:
        """The functions whose times are no result to be kept: in haste, on held cores, or too scattered."""
        names = tuple(row.name for row in self.rows)
        if self.conditions.hasty or self.held:
            return names
        if len(self.rows) == 1:
            return names if self.conditions.half_width > TELLING else ()
        widths = {row.name: row.half_width for row in self.rows if row.name != self.baseline}
        widths[self.baseline] = min(widths.values())  # in all ratios: if it scatters, so do all
        return tuple(name for name in names if widths[name] > TELLING)

    def ranking(self) -> list[str]:
        """Return the names, fastest first."""
        return [row.name for row in sorted(self.rows, key=lambda row: row.seconds)]

    def data(self) -> dict[str, Any]:
        """Return everything as JSON-ready values."""
        data = asdict(self)
        for row in data["rows"]:
            row["max_error"] = "inf" if row["max_error"] == math.inf else row["max_error"]
        return data

    # -- to be looked at -----------------------------------------------------------------------------------

    def table(self) -> Table:
        """Return the times, rates, speeds relative to the baseline, and errors."""
        with_rate = any(row.gflops is not None for row in self.rows)
        with_error = any(row.max_error is not None for row in self.rows)
        unit, limits = self._unit(), self._limits() if with_rate else None
        rates = ["GFLOP/s"] if with_rate else []
        if limits:
            rates.append(f"FLOP/cycle, of {limits.per_cycle(self.dtype, self.threads)}")
        columns = ["", unit, *rates, "x baseline", *(["max error"] * with_error)]
        rows = []
        for row in self.rows:
            cells = [row.name, _time(row, UNITS[unit]), *([digits(row.gflops)] * with_rate)]
            if limits:
                cells.append("–" if row.on_gpu else digits(row.gflops / limits.ghz))
            rows.append((*cells, self._speed(row), *([_error(row, self.baseline)] * with_error)))
        return Table(tuple(columns), tuple(rows), marked=self.baseline, notes=self._table_notes())

    def _limits(self) -> Peaks | None:
        """Return what this machine can do in this dtype, if that has been measured before."""
        from course_lib.measure import machine

        known = machine.known_peaks()
        return known if known and self.dtype in known.flops else None

    def _unit(self) -> str:
        """Return the unit of the times in the table: one for all, so that they can be compared at sight."""
        typical = sorted(row.seconds for row in self.rows)[(len(self.rows) - 1) // 2]
        return next((unit for unit in UNITS if typical * UNITS[unit] < LONGEST_IN_UNIT), "s")

    def _speed(self, row: TimedRow) -> str:
        unsure = "" if row.differs or row.name == self.baseline else "≈ "
        return unsure + (_fraction(row) or digits(1 / row.ratio))

    def _table_notes(self) -> tuple[str, ...]:
        legend = [f"{self._unit()}: median ± half the middle 50 %", "x baseline: 2.00 is twice as fast"]
        fraction = next(filter(None, map(_fraction, self.rows)), None)
        if fraction:
            legend.append(f"{fraction}: {fraction.removeprefix('1/')} times slower")
        if any(not row.differs for row in self.rows if row.name != self.baseline):
            legend.append("≈ no difference that can be told from noise")
        if any(row.max_error is not None for row in self.rows if row.name != self.baseline):
            legend.append(f"max error: against the result of {self.baseline}")
        return ("; ".join(legend) + ".",)

    def figure(self, guess: Any = None, speed: bool = False) -> theme.Picture:
        """Draw the times as multiples of the baseline's (`speed`: the speeds), and a guess of that multiple.

        `guess` is a number, an object with a `.value`, or None.
        """
        return _draw(self, value_of(guess), speed)

    def card(self) -> Facts:
        """Return the fair-comparison card: what was held equal, and how it was measured."""
        how = self.conditions
        facts = [
            *([("rough", self._why_rough())] if self.rough else []),
            ("threads", f"{self.threads} for every function (BLAS, OpenMP, Numba and torch capped together)"),
            ("inputs", f"{'; '.join(how.inputs) or 'no arrays'}; every function has its own equal copy"),
            ("baseline", f"{self.baseline}{self._baseline_blas()}"),
            ("clock", f"{how.clock}: {how.clock_why}"),
            ("samples", self._samples_in_words()),
            ("caches", "as the calls before left them: warm for short calls, which run many times in a row"),
            *([("uncertainty", self._uncertainty_in_words())] * (len(self.rows) > 1)),
            *(
                [("max error", "largest difference from the baseline's result / its largest entry")]
                * how.max_error
            ),
            *(("note", note) for note in how.notes),
            ("machine", self._machine_in_words()),
        ]
        return Facts(f"Fair comparison: {self._in_short()}", tuple(facts), folded=True)

    def _in_short(self) -> str:
        threads = f"{self.threads} thread{'s' if self.threads > 1 else ''}"
        rough = ["rough"] * bool(self.rough)
        return ", ".join(
            [*rough, threads, self.dtype, _rounds(self.conditions.rounds), self.conditions.clock]
        )

    def _baseline_blas(self) -> str:
        return f"; the BLAS in this process is {self.conditions.blas}" if self.conditions.blas else ""

    def _samples_in_words(self) -> str:
        how = self.conditions
        return (
            f"{_rounds(how.rounds)} of all functions in shuffled order, after a warm-up; "
            f"a sample is one call or as many as take {seconds_in_words(how.sample_s)}; the median counts"
        )

    def _why_rough(self) -> str:
        scattered = f"{', '.join(self.rough)}: known to worse than ±{100 * TELLING:.0f} %, as on held cores"
        return self.conditions.hasty or self.conditions.held or f"{scattered}; measure again."

    def _uncertainty_in_words(self) -> str:
        how = self.conditions
        width = f"each ratio is known to ±{100 * how.half_width:.2g} % or better (95 %, bootstrap of medians)"
        target = f"±{100 * how.target:.2g} %"
        if how.ended == "certain enough":
            return f"{width}; the target was {target}; {WITHIN_THIS_RUN}"
        if how.ended == "budget spent":
            return f"{width}; the time was over before the target of {target} was reached; {WITHIN_THIS_RUN}"
        return "not known: one call took longer than the whole budget, and a single sample has no spread"

    def _machine_in_words(self) -> str:
        from course_lib.measure import machine

        here = machine.describe()
        return f"{here.cpu}, {here.cores} cores, {here.simd}; {here.system}, Python {here.python}"

    def __str__(self) -> str:
        return f"{self.table()}\n\n{self.card()}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.table()._repr_html_() + self.card()._repr_html_()


def describe_inputs(inputs: tuple) -> tuple[str, ...]:
    """Return one phrase per array among the inputs; equal neighbours share one."""
    phrases = Counter(
        f"{inputs_.dtype_of((array,))} ({' x '.join(map(str, array.shape))}), {inputs_.layout_of(array)}"
        for array in inputs_.arrays(inputs)
    )
    return tuple(phrase if count == 1 else f"{count} of {phrase}" for phrase, count in phrases.items())


def _rounds(count: int) -> str:
    return f"{count} round{'s' if count > 1 else ''}"


def _time(row: TimedRow, factor: float) -> str:
    median = digits(row.seconds * factor)
    return f"{median} ± {digits(row.spread_s * factor, 2)}" if row.rounds > 2 else f"{median} (one call)"


def _fraction(row: TimedRow) -> str | None:
    """Return a speed far below the baseline's as "1/893", None for one that reads well as a number."""
    return f"1/{digits(row.ratio, 2)}" if 1 / row.ratio < UNREADABLE else None


def _error(row: TimedRow, baseline: str) -> str:
    if row.max_error is None or row.name == baseline:
        return "–"
    return f"{row.max_error:.0e}" if row.max_error else "0"


# -- the figure: a bar for each function, in multiples of the baseline -------------------------------------


def _draw(comparison: Comparison, guessed: float | None, speed: bool) -> theme.Picture:
    if len(comparison.rows) < 2:
        raise ValueError(
            "The figure compares functions, and this comparison has only one: look at its table."
        )
    title = finding(comparison, speed)
    values = [1 / row.ratio if speed else row.ratio for row in comparison.rows]
    everything = [*values, 1.0, *([guessed] if guessed and guessed > 0 else [])]
    with theme.figure(8.0, 1.5 + 0.55 * len(values)) as fig:
        axes = fig.subplots()
        is_log = max(everything) / min(everything) > WIDE_RANGE
        if is_log:
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
        for place, (row, value) in enumerate(zip(comparison.rows, values, strict=True)):
            _bar(axes, place, row, value, comparison, speed, is_log)
        ends = [_whiskers(row, value)[1] for row, value in zip(comparison.rows, values, strict=True)]
        low, high = min(everything), max(*everything, *ends)  # the labels stand behind the whiskers
        axes.set_xlim((low / 2.5, high * 12) if is_log else (0, high * 1.3))
        names = [_name(row, comparison) for row in comparison.rows]
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.5, -0.95 if guessed is not None else -0.6)
        what = "speed" if speed else "time"
        scale = ", logarithmic" if is_log else ""
        label = f"{what} relative to {comparison.baseline}{scale} (whiskers: middle half of the samples)"
        axes.set_xlabel(textwrap.fill(label, LABEL_WIDTH))
        axes.grid(False, axis="y")
        axes.set_axisbelow(True)
        # of the figure, not of the axes: long names beside the bars would push it over the right edge
        fig.suptitle(textwrap.fill(title, TITLE_WIDTH), x=0.01, ha="left", fontsize=13, fontweight="bold")
        if guessed is not None:
            _draw_guess(axes, guessed, is_log)
        return theme.Picture.of(fig, _alt(comparison, title, values, what, guessed))


def value_of(guess: Any) -> float | None:
    """Return the number in a guess: a number, an object with a `.value`, or None."""
    value = getattr(guess, "value", guess)
    return None if value is None else float(value)


def finding(comparison: Comparison, speed: bool = False) -> str:
    """Say in one sentence what the comparison found."""
    base = comparison.baseline
    others = [row for row in comparison.rows if row.name != base]
    if len(others) == 1:
        return _versus(others[0], base, speed)
    faster = [row for row in others if row.differs and row.ratio < 1]
    best = min(faster, key=lambda row: row.ratio, default=None)
    rivals = [row for row in others if is_open(row) and row.ratio_low < (best.ratio if best else 1)]
    if rivals:
        return _left_open(best, rivals, base)
    if best is None:
        return f"Nothing beats {base}; {_versus(max(others, key=lambda row: row.ratio), base, speed)}"
    return f"{best.name} {_verb(best.name, 'is', 'are')} fastest: {times(1 / best.ratio)} as fast as {base}"


def is_open(row: TimedRow) -> bool:
    """Say whether the row may be as fast as the baseline, and may as well be much faster or slower."""
    return not row.differs and max(row.ratio_high - 1, 1 - row.ratio_low) > TELLING


def _left_open(best: TimedRow | None, rivals: list[TimedRow], base: str) -> str:
    names = ", ".join(row.name for row in rivals)
    said = f"No difference between {base} and {names} can be told in this run: run it again"
    return said if best is None else f"{_versus(best, base, True)}. {said}"


def _versus(row: TimedRow, base: str, speed: bool) -> str:
    if is_open(row):
        span = f"{times(row.ratio_low)} to {times(row.ratio_high)} of its time"
        return f"No difference between {base} and {row.name} can be told in this run ({span}): run it again"
    if not row.differs:
        return f"{row.name} and {base} take the same time, as far as can be told here"
    if row.ratio > 1 and not speed:
        return f"{row.name} {_verb(row.name, 'takes', 'take')} {times(row.ratio)} as long as {base}"
    return f"{row.name} {_verb(row.name, 'is', 'are')} {times(1 / row.ratio)} as fast as {base}"


def _verb(name: str, singular: str, plural: str) -> str:
    """Choose the verb: names such as "rows" or "python-lists" are plurals, "blas" and "class" are not."""
    return plural if name.endswith("s") and not name.endswith(("ss", "as", "us", "is")) else singular


def _name(row: TimedRow, comparison: Comparison) -> str:
    name = textwrap.fill(row.name, 26)
    return f"{name}\n(baseline)" if row.name == comparison.baseline else name


def _bar(
    axes: Axes, place: int, row: TimedRow, value: float, comparison: Comparison, speed: bool, is_log: bool
) -> None:
    is_baseline = row.name == comparison.baseline
    colour = theme.VIOLET if is_baseline else theme.PINK
    if is_log:  # a logarithmic axis has no zero: bars begin at the baseline's 1
        axes.barh(place, value - 1, left=1, height=0.5, color=colour, alpha=0.85)
        axes.plot([value], [place], "o", color=colour, markersize=7)
    else:
        axes.barh(place, value, height=0.5, color=colour, alpha=0.85)
    low, high = _whiskers(row, value)
    axes.errorbar(
        value, place, xerr=[[value - low], [high - value]], color=theme.INK, capsize=4, linewidth=1.2
    )
    said = "1x" if is_baseline else times(value)
    theme.beside(
        axes,
        f"{said}  ({seconds_in_words(row.seconds)})",
        (max(high, value, 1.0 if is_log else 0), place),
        (9, 0),
        va="center",
        # the guess's line may pass behind a label
        bbox={"boxstyle": "square,pad=0.1", "facecolor": theme.PAPER, "edgecolor": "none"},
        zorder=4,
    )


def _whiskers(row: TimedRow, value: float) -> tuple[float, float]:
    share = min(0.9, row.spread_s / row.seconds)
    return value * (1 - share), value * (1 + share)


def _draw_guess(axes: Axes, guessed: float, is_log: bool) -> None:
    if is_log and guessed <= 0:
        return
    axes.axvline(guessed, color=theme.INK, linestyle=(0, (4, 2)), linewidth=1.6, zorder=2.5)
    low, high = axes.get_xlim()
    is_right = guessed > ((low * high) ** 0.5 if is_log else (low + high) / 2)
    theme.beside(
        axes,
        f"your guess: {guessed:,.4g}x",
        (guessed, axes.get_ylim()[1]),
        (-5 if is_right else 5, -3),
        ha="right" if is_right else "left",
        va="top",
        style="italic",
    )


def _alt(comparison: Comparison, title: str, values: list[float], what: str, guessed: float | None) -> str:
    bars = ", ".join(
        f"{row.name} {times(value)} ({seconds_in_words(row.seconds)})"
        for row, value in zip(comparison.rows, values, strict=True)
    )
    marked = "" if guessed is None else f" A dashed line marks your guess: {guessed:,.4g}x."
    return f"Bar chart: {title}. Bars of {what} relative to {comparison.baseline}: {bars}.{marked}"
