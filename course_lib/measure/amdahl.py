"""How much of a program is serial: Amdahl's law fitted to times measured on 1, 2, … threads.

    measured = speedups(run, threads=(1, 2, 4))      run(t) does the same work on t threads
    law = measured.fit()
    law.serial_fraction, law.interval, law.limit, law.speedup(64)

Amdahl (1967): a part `a` of the time stays, a part `b` is divided: T(p) = a + b / p, with the serial fraction
s = a / (a + b). Karp & Flatt (1990): the serial fraction that each single speed-up asks for; if it rises with
p, it is no serial part but a cost of being many.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from course_lib.arguments import number, whole
from course_lib.measure import hardware
from course_lib.measure.comparison import Comparison, TimedRow
from course_lib.measure.table import Shown, Table, digits, seconds_in_words
from course_lib.measure.timing import compare

DRAWS = 2000
TOO_WIDE = 0.2  # an interval of serial fractions wider than this tells none
#: 97.5 % quantiles of Student's t for 1, 2, … degrees of freedom: few points say little about the noise.
T_QUANTILE = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
Z_QUANTILE = 1.96
TWO_POINTS = (
    "Two thread counts determine the serial fraction exactly: they cannot test whether the law holds. "
    "That takes a third."
)


@dataclass(frozen=True, repr=False)
class Fit(Shown):
    """Amdahl's law through measured times."""

    times: dict[int, float]  # threads -> seconds
    serial: float  # a: seconds that stay
    parallel: float  # b: seconds that are divided
    interval: tuple[float, float] | None  # 95 % for the serial fraction; None: cannot be said
    exact: bool  # two points: the law goes through both and is not tested
    note: str

    @property
    def serial_fraction(self) -> float:
        """The part of the time on one thread that does not get shorter."""
        return self.serial / (self.serial + self.parallel)

    @property
    def limit(self) -> float:
        """The speed-up that no number of threads exceeds, by this law."""
        return 1 / self.serial_fraction if self.serial_fraction else math.inf

    @property
    def is_told(self) -> bool:
        """Whether the times tell the serial fraction: False where its interval is wide."""
        return _tells(self.interval)

    def time(self, p: float) -> float:
        """Return the fitted seconds on p threads."""
        return self.serial + self.parallel / p

    def speedup(self, p: float) -> float:
        """Return T(1) / T(p) by the fitted law."""
        return self.time(1) / self.time(p)

    def table(self) -> Table:
        """Return measured and fitted speed-ups and Karp and Flatt's fraction, a row for each thread count."""
        base = self.times.get(1, self.time(1))
        rows = []
        for p, seconds in self.times.items():
            karp = digits(karp_flatt(base / seconds, p)) if p > 1 else "–"
            fitted = digits(self.speedup(p))
            rows.append((str(p), seconds_in_words(seconds), digits(base / seconds), fitted, karp))
        columns = ("threads", "time", "speed-up", "by the law", "serial fraction (Karp–Flatt)")
        return Table(columns, tuple(rows), notes=(str(self),))

    def __str__(self) -> str:
        known = ""
        if self.interval is not None:
            low, high = (100 * end for end in self.interval)
            known = f" (95 %: {digits(low, 2)} to {digits(high, 2)} %)"
        if not self.is_told:
            span = known.removeprefix(" (").removesuffix(")")
            or_else = "" if self.exact else "; if it stays so, Amdahl's law does not describe this program"
            said = f"The serial fraction cannot be told on this run ({span}): run again{or_else}."
            return f"{said} {self.note}".strip()
        limit = "no limit" if math.isinf(self.limit) else f"at most {digits(self.limit)}x"
        serial = digits(100 * self.serial_fraction, 2)
        return f"Serial fraction {serial} %{known}: {limit}. {self.note}".strip()


@dataclass(frozen=True, repr=False)
class Speedups(Shown):
    """Measured times on growing numbers of threads."""

    times: dict[int, float]  # threads -> median seconds
    errors: dict[int, float]  # threads -> relative standard error
    cores: int  # of this process; more threads than cores are no part of the fit
    comparison: Comparison

    def fit(self) -> Fit:
        """Return Amdahl's law through the thread counts that have a core each."""
        within = {p: seconds for p, seconds in self.times.items() if p <= self.cores}
        if len(within) < 2:
            raise ValueError(
                f"Only {len(within)} of the thread counts {list(self.times)} has a core for each thread "
                f"(this process has {self.cores}): a serial fraction needs two."
            )
        return fit(within, self.errors)

    def table(self) -> Table:
        """Return times and speed-ups, a row for each thread count."""
        base = self.times[min(self.times)]
        rows = [
            (f"{p}{' (oversubscribed)' * (p > self.cores)}", seconds_in_words(s), digits(base / s))
            for p, s in self.times.items()
        ]
        return Table(("threads", "time", f"x {min(self.times)} thread"), tuple(rows))


def speedups(
    run: Callable[[int], Any], threads: Sequence[int] = (1, 2), *, budget_s: float = 4.0
) -> Speedups:
    """Time run(t), the same work on t threads, for each t, in turns.

    `run` must itself use t threads: threads of its own, or numba.set_num_threads(t). Counts beyond the cores
    of this process are measured too (oversubscription), but are no part of the fit.
    """
    counts = _counts(threads)
    if not callable(run):
        raise TypeError(f"run is {run!r}, but it must be a function that is called with a number of threads.")
    names = {p: f"{p} thread{'s' if p > 1 else ''}" for p in counts}
    functions = {names[p]: partial(run, p) for p in counts}
    comparison = compare(functions, threads=max(counts), budget_s=budget_s, max_error=False, progress=False)
    rows = {p: comparison.row(names[p]) for p in counts}
    return Speedups(
        times={p: row.seconds for p, row in rows.items()},
        errors={p: _relative_error(row) for p, row in rows.items()},
        cores=hardware.cores(),
        comparison=comparison,
    )


def _relative_error(row: TimedRow) -> float:
    return (row.ratio_high - row.ratio_low) / row.ratio / (2 * Z_QUANTILE)


def fit(times: Mapping[int, float], errors: Mapping[int, float] | None = None) -> Fit:
    """Return Amdahl's law through `times` (threads -> seconds), least squares of the relative deviations.

    `errors` are relative standard errors of the times (threads -> 0.01 for 1 %); without them the deviations
    from the law tell the noise, which takes three thread counts or more. A negative part is no part: it
    counts as 0, and the note says so. Raises ValueError for fewer than two thread counts.
    """
    counts, seconds = _checked(times)
    a, b = _parts(counts, seconds)
    deviations = seconds / (a + b / counts) - 1
    noise, is_known = _noise(counts, deviations, errors)
    interval = _interval(counts, a + b / counts if len(counts) > 2 else seconds, noise) if is_known else None
    return Fit(
        times={int(p): float(s) for p, s in zip(counts, seconds, strict=True)},
        serial=float(a),
        parallel=float(b),
        interval=interval,
        exact=len(counts) == 2,
        note=_note(counts, seconds, a, b, deviations, interval),
    )


def karp_flatt(speedup: float, p: int) -> float:
    """Return the serial fraction that a speed-up on p > 1 threads asks for (Karp & Flatt 1990)."""
    if p < 2:
        raise ValueError(f"p is {p}, but a serial fraction shows only on two threads or more.")
    return (1 / speedup - 1 / p) / (1 - 1 / p)


def _parts(counts: np.ndarray, seconds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a, b >= 0 with a + b / p nearest to the times, relative deviations squared.

    `seconds` (…, points): one a and b for each row. Where a free solution has a negative part, the better of
    the two edges a = 0 and b = 0 is taken.
    """
    u, v = 1 / seconds, 1 / (counts * seconds)
    uu, uv, vv, us, vs = ((x * y).sum(-1) for x, y in ((u, u), (u, v), (v, v), (u, 1), (v, 1)))
    determinant = uu * vv - uv * uv
    a, b = (us * vv - vs * uv) / determinant, (vs * uu - us * uv) / determinant
    is_inside = (a >= 0) & (b >= 0)
    only_a = us * us / uu >= vs * vs / vv  # how much of the sum of squares each edge explains
    a = np.where(is_inside, a, np.where(only_a, us / uu, 0.0))
    b = np.where(is_inside, b, np.where(only_a, 0.0, vs / vv))
    return a, b


def _noise(
    counts: np.ndarray, deviations: np.ndarray, errors: Mapping[int, float] | None
) -> tuple[np.ndarray, bool]:
    """Return the relative standard error of each time and whether it is known at all."""
    measured = np.array([float((errors or {}).get(int(p), 0.0)) for p in counts])
    freedom = len(counts) - 2
    spread = 0.0
    if freedom > 0:  # the points may lie further off the law than by their own noise: it is not quite true
        quantile = T_QUANTILE[min(freedom, len(T_QUANTILE)) - 1]
        spread = math.sqrt(float((deviations**2).sum()) / freedom) * quantile / Z_QUANTILE
    noise = np.maximum(measured, spread)
    return noise, bool(measured.any()) or freedom > 0


def _interval(counts: np.ndarray, centre: np.ndarray, noise: np.ndarray) -> tuple[float, float]:
    """Return the middle 95 % of serial fractions refitted to times with that noise."""
    random = np.random.default_rng(0)
    a, b = _parts(counts, centre * np.exp(noise * random.standard_normal((DRAWS, len(counts)))))
    low, high = np.percentile(a / (a + b), (2.5, 97.5))
    return float(low), float(high)


def _tells(interval: tuple[float, float] | None) -> bool:
    return interval is None or interval[1] - interval[0] <= TOO_WIDE


def _note(
    counts: np.ndarray,
    seconds: np.ndarray,
    a: float,
    b: float,
    deviations: np.ndarray,
    interval: tuple[float, float] | None,
) -> str:
    first, last = np.argmin(counts), np.argmax(counts)
    gained = (seconds[first] / seconds[last]) / (counts[last] / counts[first])
    notes = []
    if a == 0 and gained > 1:
        notes.append(
            f"{counts[last]:g} threads were more than {counts[last] / counts[first]:g}x as fast as "
            f"{counts[first]:g} (superlinear: more caches work, or the measurement is off), so the serial "
            "part counts as 0."
        )
    elif b == 0 and _tells(interval):
        notes.append(
            "More threads were no faster at all, so everything counts as serial (or other programs held the "
            "cores: then run again)."
        )
    if len(counts) == 2:
        notes.append(TWO_POINTS)
    else:
        notes.append(f"The law misses no time by more than {100 * np.abs(deviations).max():.1f} %.")
    return " ".join(notes)


def _counts(threads: Sequence[int]) -> list[int]:
    counts = {whole("A number of threads", p, most=256) for p in threads}
    if not counts:
        raise ValueError("threads is empty, but at least one number of threads is needed.")
    return sorted(counts)


def _checked(times: Mapping[int, float]) -> tuple[np.ndarray, np.ndarray]:
    if not isinstance(times, Mapping):
        raise TypeError(f"times is {times!r}, but it must be a dict: number of threads -> seconds.")
    counts = _counts(times) if times else []
    if len(counts) < 2:
        raise ValueError(
            f"times has {len(counts)} thread count{'s' if len(counts) != 1 else ''}, but a serial fraction "
            "needs two or more: measure on 1 and on 2 threads at least."
        )
    seconds = [number(f"The time in seconds on {p} threads", float(times[p]), above=0) for p in counts]
    return np.array(counts, float), np.array(seconds)
