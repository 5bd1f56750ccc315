"""What a fair comparison found: as a table, a figure, data, and the card that says how it was measured."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from course_lib.measure import inputs as inputs_
from course_lib.measure.table import Facts, Table, digits, seconds_in_words

if TYPE_CHECKING:
    from course_lib.theme import Picture


WITHIN_THIS_RUN = "this holds within this run: another run on a busy machine may differ more"
UNREADABLE = 0.1  # a speed below this many times the baseline's is written as a fraction


@dataclass(frozen=True)
class Row:
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

    @property
    def differs(self) -> bool:
        """Whether its time differs from the baseline's by more than the uncertainty."""
        return self.ratio_low > 1 or self.ratio_high < 1


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


@dataclass(frozen=True)
class Comparison:
    """The rows in the order they were given, and how they were measured."""

    rows: tuple[Row, ...]
    baseline: str
    threads: int
    dtype: str
    shapes: tuple[tuple[int, ...], ...]
    conditions: Conditions

    def row(self, name: str) -> Row:
        """Return the row of one function."""
        for row in self.rows:
            if row.name == name:
                return row
        raise ValueError(
            f"There is no function {name!r} here; there are {_listed(r.name for r in self.rows)}."
        )

    @property
    def ratio(self) -> float:
        """The time of the other function over the time of the baseline, when there are exactly two."""
        if len(self.rows) != 2:
            raise ValueError(
                f"A single ratio needs two functions, and this comparison has {len(self.rows)}: "
                f"ask for one with row(name).ratio."
            )
        return next(row for row in self.rows if row.name != self.baseline).ratio

    def speedup(self, name: str) -> float:
        """Return how many times as fast as the baseline a function is."""
        return 1 / self.row(name).ratio

    def ranking(self) -> list[str]:
        """Return the names, fastest first."""
        return [row.name for row in sorted(self.rows, key=lambda row: row.seconds)]

    def data(self) -> dict[str, Any]:
        """Return everything as JSON-ready values."""
        conditions = asdict(self.conditions)
        return {
            "baseline": self.baseline,
            "threads": self.threads,
            "dtype": self.dtype,
            "shapes": [list(shape) for shape in self.shapes],
            "rows": [{**asdict(row), "max_error": _json_number(row.max_error)} for row in self.rows],
            "conditions": {
                **conditions,
                "inputs": list(self.conditions.inputs),
                "notes": list(conditions["notes"]),
            },
        }

    # -- to be looked at -----------------------------------------------------------------------------------

    def table(self) -> Table:
        """Return the times, rates, speeds relative to the baseline, and errors."""
        with_rate = any(row.gflops is not None for row in self.rows)
        with_error = any(row.max_error is not None for row in self.rows)
        columns = ["", "us", *(["GFLOP/s"] * with_rate), "x baseline", *(["max error"] * with_error)]
        rows = []
        for row in self.rows:
            cells = [row.name, _microseconds(row), *([digits(row.gflops)] * with_rate), self._speed(row)]
            rows.append((*cells, *([_error(row, self.baseline)] * with_error)))
        return Table(tuple(columns), tuple(rows), marked=self.baseline, notes=self._table_notes())

    def _speed(self, row: Row) -> str:
        unsure = "" if row.differs or row.name == self.baseline else "≈ "
        return unsure + (_fraction(row) or digits(1 / row.ratio))

    def _table_notes(self) -> tuple[str, ...]:
        legend = ["us: median ± half the middle 50 %", "x baseline: 2.00 is twice as fast"]
        fraction = next(filter(None, map(_fraction, self.rows)), None)
        if fraction:
            legend.append(f"{fraction}: {fraction.removeprefix('1/')} times slower")
        if any(not row.differs for row in self.rows if row.name != self.baseline):
            legend.append("≈ no difference that can be told from noise")
        if any(row.max_error is not None for row in self.rows if row.name != self.baseline):
            legend.append(f"max error: against the result of {self.baseline}")
        return ("; ".join(legend) + ".",)

    def figure(self, guess: Any = None, guess_label: str = "your guess", speed: bool = False) -> Picture:
        """Draw the times as multiples of the baseline's (`speed`: the speeds), and a guess of that multiple.

        `guess` is a number, an object with a `.value`, or None.
        """
        from course_lib.measure.bars import draw

        return draw(self, guess, guess_label, speed)

    def card(self) -> Facts:
        """Return the fair-comparison card: what was held equal, and how it was measured."""
        how = self.conditions
        facts = [
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
        parts = (threads, self.dtype, _rounds(self.conditions.rounds), self.conditions.clock)
        return ", ".join(part for part in parts if part)

    def _baseline_blas(self) -> str:
        return f"; the BLAS in this process is {self.conditions.blas}" if self.conditions.blas else ""

    def _samples_in_words(self) -> str:
        how = self.conditions
        return (
            f"{_rounds(how.rounds)} of all functions in shuffled order, after a warm-up; "
            f"a sample is one call or as many as take {seconds_in_words(how.sample_s)}; the median counts"
        )

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
    phrases: dict[str, int] = {}
    for array in inputs_.arrays(inputs):
        shape = "(" + " x ".join(str(n) for n in array.shape) + ")"
        phrase = f"{inputs_.dtype_of((array,))} {shape}, {inputs_.layout_of(array)}"
        phrases[phrase] = phrases.get(phrase, 0) + 1
    return tuple(phrase if count == 1 else f"{count} of {phrase}" for phrase, count in phrases.items())


def _rounds(count: int) -> str:
    return f"{count} round{'s' if count > 1 else ''}"


def _microseconds(row: Row) -> str:
    median = digits(row.seconds * 1e6)
    return f"{median} ± {digits(row.spread_s * 1e6, 2)}" if row.rounds > 2 else f"{median} (one call)"


def _fraction(row: Row) -> str | None:
    """Return a speed far below the baseline's as "1/893", None for one that reads well as a number."""
    return f"1/{digits(row.ratio, 2)}" if 1 / row.ratio < UNREADABLE else None


def _error(row: Row, baseline: str) -> str:
    if row.max_error is None or row.name == baseline:
        return "–"
    return f"{row.max_error:.0e}" if row.max_error else "0"


def _json_number(value: float | None) -> float | str | None:
    return "inf" if value == float("inf") else value


def _listed(names: Any) -> str:
    return ", ".join(repr(name) for name in names)
