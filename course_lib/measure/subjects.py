"""One function of a comparison while it is measured: its inputs, its trials and its samples."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import repeat

import numpy as np

from course_lib.measure import clocks, inputs, results

SHORTEST_SAMPLE_S = 1e-3  # a thousand times what reading a clock costs
TRIALS = 3


class Subject:
    """One function under measurement: its own inputs, its batch size and its samples."""

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
        self.result = results.numbers(result)
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
