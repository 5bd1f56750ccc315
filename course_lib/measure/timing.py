"""A fair comparison of functions that do the same job.

    result = compare({"rows": sum_rows, "columns": sum_columns}, X)
    result.table(), result.figure(), result.card()

Fair means: every function gets its own equal copy of the inputs, is called once before anything is timed,
takes turns with the others in shuffled order, and has the same number of threads. The median and its
uncertainty are reported; measuring ends when the ratios are certain enough or the time is over.
"""

from __future__ import annotations

import gc
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import numpy as np

from course_lib.arguments import number, one_of, whole
from course_lib.measure import clocks, hardware, inputs
from course_lib.measure.comparison import Comparison, Conditions, TimedRow, describe_inputs
from course_lib.measure.progress import Progress

__all__ = ["Comparison", "TimedRow", "compare"]

SHORTEST_SAMPLE_S = 1e-3  # a thousand times what reading a clock costs
TRIALS = 3
TARGET = 0.02  # half of the 95 % interval of a ratio, as a part of it, at which the measuring ends
LONGEST_SAMPLE_S = 20e-3
HASTE_VARIABLE = "NINE_CIRCLES_HASTE"  # set: a look at what a chapter does, in a fraction of the time
HASTY_ROUNDS, HASTY_SHARE = 2, 0.1
SHORTEST_MEASURING_S = 0.15  # agreement within less may be luck: clock frequencies change in such times
RESAMPLES = 1000
FEWEST_RESAMPLES = 200
MOST_DRAWS = 200_000  # so that the check costs milliseconds however many samples there are


def compare(
    functions: Mapping[str, Callable],
    *arguments: Any,
    baseline: str | None = None,
    flops: float | None = None,
    threads: int = 1,
    budget_s: float = 3.0,
    min_rounds: int = 7,
    max_error: bool = True,
    progress: bool | None = None,
    seed: int = 0,
    haste: bool | None = None,
) -> Comparison:
    """Time functions against each other on equal copies of the same inputs.

    `baseline` is the name the others are compared with (None: the first). `flops` is the work of one call;
    None counts 2MNK when the inputs are two matrices (M, K) and (K, N). Thread pools are held to `threads`.
    Rounds are added until the 95 % interval of every ratio is within ± 2 % of it or `budget_s` is spent,
    but at least `min_rounds` (a function of which one call outlasts the budget is timed once, and the card
    says so). A progress bar appears when it takes long (`progress` True: always, False: never). In `haste`
    a tenth of the budget and two rounds do, if a call takes no longer than that, and the card says so (None:
    where the environment has NINE_CIRCLES_HASTE).
    """
    baseline = _checked(functions, baseline, threads, budget_s, min_rounds)
    usable = hardware.threads()
    subjects = {name: TimedFunction(name, function, arguments) for name, function in functions.items()}
    random = np.random.default_rng(seed)
    run = _Run(list(subjects.values()), subjects[baseline], budget_s, min_rounds, random)
    if in_haste() if haste is None else haste:
        run.hurry()
    with Progress(progress) as bar, clocks.ThreadCap(min(threads, usable)) as cap:
        run.warm_up(cap, min(threads, usable), bar)
        before = clocks.accounts()
        run.measure(bar)
        run.judge(clocks.held_since(before))
    if threads > usable:
        run.notes.append(f"{threads} threads were asked for, and this process may use {usable}.")
    return run.comparison(arguments, min(threads, usable), flops, max_error)


def in_haste() -> bool:
    """Does this machine's user want a quick look rather than good numbers?"""
    return bool(os.environ.get(HASTE_VARIABLE))


@dataclass
class _Run:
    """The course of one comparison."""

    subjects: list[TimedFunction]
    baseline: TimedFunction
    budget_s: float
    min_rounds: int
    random: np.random.Generator
    notes: list[str] = field(default_factory=list)
    rounds: int = 0
    half_width: float = math.inf
    ended: str = ""
    hasty: str = ""
    held: str = ""

    def __post_init__(self) -> None:
        self.patience_s = self.budget_s
        self.start = time.perf_counter()

    def hurry(self) -> None:
        """Measure what has to be measured, but not well: what takes long is timed once."""
        self.patience_s = self.budget_s = HASTY_SHARE * self.budget_s
        self.min_rounds = min(self.min_rounds, HASTY_ROUNDS)
        self.hasty = f"Measured in haste (as with {HASTE_VARIABLE}): these times are rough."

    def warm_up(self, cap: clocks.ThreadCap, threads: int, bar: Progress) -> None:
        """Call every function first, then find out how long each takes and which clock is right for all."""
        for subject in self.subjects:
            bar.update(0.0, f"{subject.name}: first call")
            subject.first_call()
        cap.apply()  # what the first calls have loaded
        for subject in self.subjects:
            bar.update(0.0, f"{subject.name}: trial")
            self._wait_for_other_threads(threads)  # or a short call looks long, and is sampled by ones
            subject.try_out(self.patience_s)
        reasons = {subject.name: clocks.why_not_cpu_time(subject.trials) for subject in self.subjects}
        self.clock = clocks.choose(threads, reasons)
        self.threads = threads
        slowest = max(subject.call_s for subject in self.subjects)
        # beside a slow function, longer samples of the fast ones cost little
        self.sample_s = min(max(slowest / 20, SHORTEST_SAMPLE_S), LONGEST_SAMPLE_S)
        if threads > 1:  # the pause before each sample costs more than a long sample
            self.sample_s = LONGEST_SAMPLE_S
        for subject in self.subjects:
            subject.batch = max(1, math.ceil(self.sample_s / subject.call_s))

    def measure(self, bar: Progress) -> None:
        """Add rounds until the ratios are certain enough or the budget is spent."""
        self._settle_slow_ones()
        start = time.perf_counter()
        check_at = self.min_rounds
        while self._moving():
            for index in self.random.permutation(len(self._moving())):
                self._settle(self._moving()[index])
                self._moving()[index].sample(self.clock.read)
            self.rounds += 1
            spent = time.perf_counter() - start
            bar.update(max(spent / self.patience_s, 0.0), f"round {self.rounds}")
            is_over = spent > self.patience_s
            if self.rounds < self.min_rounds or (self.rounds < check_at and not is_over):
                continue
            check_at = math.ceil(1.3 * self.rounds)  # the check costs as much as some rounds
            if self._inputs_changed_late():
                self.rounds, check_at = 0, self.min_rounds
                continue
            self.half_width = self._widest()
            if self.half_width < TARGET and spent >= min(SHORTEST_MEASURING_S, self.patience_s / 2):
                self.ended = self.ended or "certain enough"
                return
            if is_over:
                self.ended = self.ended or "budget spent"
                return

    def judge(self, held: float) -> None:
        """Say if other programs held the cores, for the share `held`; CPU time does not count that."""
        if not held:
            return
        waited = f"Other programs held the cores: for {100 * held:.0f} % of its time this one waited for one"
        if self.clock.read is time.perf_counter:
            self.held = f"{waited}. These times are rough: measure again."
        else:
            self.notes.append(f"{waited}, which its CPU time does not count.")

    def _settle(self, subject: TimedFunction) -> None:
        """Wait until the last function's threads have gone to sleep, then wake this one's: not timed."""
        if self._wait_for_other_threads(self.threads) and subject.call_s < LONGEST_SAMPLE_S:
            subject.sample(self.clock.read)
            subject.samples.pop()

    def _wait_for_other_threads(self, threads: int) -> bool:
        """Let the threads that the last function left spinning go to sleep; say whether there may be any."""
        is_needed = threads > 1 and len(self.subjects) > 1
        if is_needed:
            clocks.wait_for_other_threads()
        return is_needed

    def _moving(self) -> list[TimedFunction]:
        return [subject for subject in self.subjects if subject.call_s <= self.budget_s]

    def _settle_slow_ones(self) -> None:
        """Take the trial of a function whose call outlasts the budget for its only sample."""
        for subject in self.subjects:
            if subject.call_s <= self.budget_s:
                continue
            is_cpu_time = self.clock.read is not time.perf_counter
            subject.samples = [subject.trials[0].cpu if is_cpu_time else subject.trials[0].wall]
            self.ended = "one call was longer than the budget"
            self.notes.append(
                f"{subject.name}: one call takes {subject.call_s:.1f} s, longer than the budget of "
                f"{self.budget_s:g} s, so it was timed once and its uncertainty is not known."
            )

    def _inputs_changed_late(self) -> bool:
        """Look for a function that has begun to change its inputs; then every sample is taken anew."""
        late = [s for s in self._moving() if not s.changes_inputs and s.refresh_if_changed()]
        if late:
            for subject in self._moving():
                subject.samples.clear()
        return bool(late)

    def _widest(self) -> float:
        """Return the widest relative 95 % half-width of a ratio (of the time, for a single function)."""
        widths = [0.0]
        for subject in self.subjects:
            if subject is self.baseline and len(self.subjects) > 1:
                continue
            low, high = self._interval(subject)
            widths.append((high - low) / (high + low))
        return max(widths)

    def _interval(self, subject: TimedFunction) -> tuple[float, float]:
        reference = [1.0] * len(subject.samples) if len(self.subjects) == 1 else self.baseline.samples
        return ratio_interval(np.array(subject.samples), np.array(reference))

    # -- the outcome ---------------------------------------------------------------------------------------

    def comparison(self, arguments: tuple, threads: int, flops: float | None, max_error: bool) -> Comparison:
        """Return what was found."""
        flops = inputs.matmul_flops(arguments) if flops is None else flops
        rows = tuple(self._row(subject, flops, max_error) for subject in self.subjects)
        self.notes += [
            f"{subject.name} changes its inputs; it got fresh copies before every call, which were not timed."
            for subject in self.subjects
            if subject.changes_inputs
        ]
        self._note_shapes()
        conditions = Conditions(
            inputs=describe_inputs(arguments),
            blas=_loaded_blas(),
            clock=self.clock.name,
            clock_why=self.clock.why,
            rounds=max(1, self.rounds),
            sample_s=self.sample_s,
            ended=self.ended,
            half_width=self.half_width if math.isfinite(self.half_width) else 0.0,
            target=TARGET,
            max_error=any(row.max_error is not None for row in rows),
            seconds_spent=time.perf_counter() - self.start,
            notes=tuple(self.notes),
            hasty=self.hasty,
            held=self.held,
        )
        shapes = tuple(tuple(int(n) for n in array.shape) for array in inputs.arrays(arguments))
        return Comparison(rows, self.baseline.name, threads, inputs.dtype_of(arguments), shapes, conditions)

    def _row(self, subject: TimedFunction, flops: float | None, max_error: bool) -> TimedRow:
        seconds = float(np.median(subject.samples))
        quarter, three_quarters = np.percentile(subject.samples, (25, 75))
        low, high = (1.0, 1.0) if subject is self.baseline else self._interval(subject)
        ratio = seconds / float(np.median(self.baseline.samples))
        return TimedRow(
            name=subject.name,
            seconds=seconds,
            spread_s=float(three_quarters - quarter) / 2,
            rounds=len(subject.samples),
            gflops=flops / seconds / 1e9 if flops else None,
            ratio=ratio,
            ratio_low=min(low, ratio),
            ratio_high=max(high, ratio),
            max_error=largest_error(subject.result, self.baseline.result) if max_error else None,
            on_gpu=getattr(subject.function, "on_gpu", False),
        )

    def _note_shapes(self) -> None:
        expected = self.baseline.result
        for subject in self.subjects:
            if expected is None or subject.result is None or subject.result.shape == expected.shape:
                continue
            self.notes.append(
                f"{subject.name} returns shape {subject.result.shape}, {self.baseline.name} "
                f"{expected.shape}: they do not do the same job."
            )


def _loaded_blas() -> str | None:
    name, architecture = hardware.blas()
    if name == hardware.UNKNOWN:
        return None
    return name if architecture == hardware.UNKNOWN else f"{name} with its {architecture} kernels"


def _checked(
    functions: Mapping[str, Callable],
    baseline: str | None,
    threads: int,
    budget_s: float,
    min_rounds: int,
) -> str:
    """Return the baseline's name, after refusing arguments that make no sense."""
    if not isinstance(functions, Mapping) or not functions:
        raise TypeError(
            f"functions is {functions!r}, but it must be a dict {{name: function}} with one or more."
        )
    for name, function in functions.items():
        if not isinstance(name, str) or not callable(function):
            raise TypeError(f"functions has {name!r}: {function!r}, but it must map names to functions.")
    if baseline is not None:
        one_of("baseline", baseline, functions)
    whole("threads", threads)
    whole("min_rounds", min_rounds)
    number("budget_s", budget_s, above=0)
    return next(iter(functions)) if baseline is None else baseline


# -- one function under measurement ------------------------------------------------------------------------


class TimedFunction:
    """One function of a comparison: its own inputs, its trials, its batch size and its samples."""

    def __init__(self, name: str, function: Callable, original: tuple) -> None:
        self.name = name
        self.function = function
        self.original = original
        self.inputs = inputs.clone(original)
        self.result: np.ndarray | None = None
        self.changes_inputs = False
        self.call_s = 0.0
        self.batch = 1
        self.trials: list[clocks.Trial] = []
        self.samples: list[float] = []  # seconds per call

    def first_call(self) -> None:
        """Call it once: this compiles, loads libraries, gives the result and shows whether inputs change."""
        with _named(self.name):
            result = self.function(*self.inputs)
        self.result = numbers(result)
        self.refresh_if_changed()

    def refresh_if_changed(self) -> bool:
        """Give it fresh inputs if a call has changed them; say whether."""
        if not inputs.changed(self.inputs, self.original):
            return False
        self.changes_inputs = True
        self.inputs = inputs.clone(self.original)
        return True

    def try_out(self, budget_s: float) -> None:
        """Find how long a call takes and where its time goes."""
        calls, spent = 1, 0.0
        while self._needs_a_trial(spent, budget_s):
            with _named(self.name), _no_garbage_collection():
                trial = clocks.try_out(self.function, self.inputs, calls)
            spent += trial.wall
            if self.changes_inputs:
                self.inputs = inputs.clone(self.original)
            elif trial.wall < SHORTEST_SAMPLE_S / 2 and calls < 10**6:
                calls *= min(100, max(2, math.ceil(SHORTEST_SAMPLE_S / max(trial.wall, 1e-7))))
                continue
            self.trials.append(trial)
        self.call_s = min(trial.wall for trial in self.trials) / calls

    def _needs_a_trial(self, spent: float, budget_s: float) -> bool:
        if not self.trials or len(self.trials) >= TRIALS:
            return not self.trials
        if spent < budget_s / 10:
            return True
        # one odd trial may be chance: if two like it would decide the clock, there must be two
        is_odd = clocks.why_not_cpu_time(self.trials * clocks.SEVERAL) is not None
        return len(self.trials) < clocks.SEVERAL and spent <= budget_s and is_odd

    def sample(self, clock: Callable[[], float]) -> None:
        """Add one sample: a batch of calls, per call."""
        function, own = self.function, self.inputs
        with _named(self.name), _no_garbage_collection():
            if self.changes_inputs:
                self.samples.append(self._sample_refreshing(clock))
                return
            start = clock()
            for _ in repeat(None, self.batch):
                function(*own)
            self.samples.append((clock() - start) / self.batch)

    def _sample_refreshing(self, clock: Callable[[], float]) -> float:
        """Time each call of a batch by itself, with fresh inputs before it."""
        total = 0.0
        for _ in repeat(None, self.batch):
            own = inputs.clone(self.original)
            start = clock()
            self.function(*own)
            total += clock() - start
        return total / self.batch


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Add to an exception which of the functions raised it."""
    try:
        yield
    except Exception as problem:
        problem.add_note(f"It was the function {name!r} that raised this, while it was being compared.")
        raise


# -- how certain, and how far apart ------------------------------------------------------------------------


def ratio_interval(times: np.ndarray, reference: np.ndarray) -> tuple[float, float]:
    """Return the 95 % interval of median(times) / median(reference), by bootstrap.

    Samples of the same round are drawn together: what disturbed a whole round then cancels in the ratio.
    """
    if min(len(times), len(reference)) < 2:
        ratio = float(np.median(times) / np.median(reference))
        return ratio, ratio
    random = np.random.default_rng(0)
    resamples = max(FEWEST_RESAMPLES, min(RESAMPLES, MOST_DRAWS // len(times)))
    drawn = random.integers(len(times), size=(resamples, len(times)))
    drawn_reference = drawn
    if len(times) != len(reference):
        drawn_reference = random.integers(len(reference), size=(resamples, len(reference)))
    ratios = np.median(times[drawn], axis=1) / np.median(reference[drawn_reference], axis=1)
    low, high = np.percentile(ratios, (2.5, 97.5))
    return float(low), float(high)


def numbers(result: Any) -> np.ndarray | None:
    """Return a float64 (or complex128) copy of a result, None when it holds no numbers.

    A copy, because a function may return one of its inputs or a buffer that its next call overwrites.
    """
    if result is None:
        return None
    if hasattr(result, "detach") and hasattr(result, "cpu"):  # a torch tensor; NumPy knows no bfloat16
        result = result.detach().cpu()
        result = (result if result.is_complex() else result.double()).numpy()
    try:
        array = np.asarray(result)
    except (ValueError, TypeError):  # a ragged list, or something that is no data at all
        return None
    if array.dtype.kind not in "biufc":
        return None
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def largest_error(result: np.ndarray | None, reference: np.ndarray | None) -> float | None:
    """Return max|C - C_reference| / max|C_reference|, both as `numbers` gives them.

    Infinite when the shapes differ or when NaN or inf stand in different places; None without numbers.
    """
    if result is None or reference is None:
        return None
    if result.shape != reference.shape:
        return math.inf
    if result.size == 0:
        return 0.0
    same = (result == reference) | (np.isnan(result) & np.isnan(reference))  # also equal infinities
    if same.all():
        return 0.0
    if not (np.isfinite(result[~same]).all() and np.isfinite(reference[~same]).all()):
        return math.inf
    largest = float(np.abs(reference[np.isfinite(reference)]).max())
    apart = float(np.abs(result[~same] - reference[~same]).max())
    return apart / largest if largest else math.inf
