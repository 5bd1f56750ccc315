"""What a learner has passed so far: small facts in one file that outlives the notebooks.

For each task the file holds the best result and the latest, how many answers were tried and how many hints
were read; of an answer it holds only a fingerprint, to tell a new one from the same one checked again.
Trouble with the file must not reach a check (a warning under it would cost points where any stderr counts as
a failure): it is kept for `problems()`, and the progress page says it.
"""

from __future__ import annotations

import datetime
import functools
import hashlib
import math
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from course_lib.grading.report import PARTLY, RIGHT, WRONG, Report
from course_lib.measure.store import Store, data_dir

STATES = (WRONG, PARTLY, RIGHT)


@dataclass(frozen=True)
class CheckResult:
    """What one check gave. `when` is ISO 8601 with its time zone."""

    state: str
    points: float
    max_points: float
    when: str

    def __post_init__(self) -> None:
        numbers = (self.points, self.max_points)
        sound = all(isinstance(n, int | float) and not isinstance(n, bool) for n in numbers)
        if self.state not in STATES or not sound or not 0 <= self.points <= self.max_points < math.inf:
            raise ValueError(f"{self} is no result of a check: points from 0 to max_points are needed.")
        _ = self.day  # raises ValueError for a time that is none

    @property
    def day(self) -> datetime.datetime:
        """When it was, in the time of this computer."""
        try:
            return datetime.datetime.fromisoformat(self.when).astimezone()
        except (TypeError, OverflowError, OSError):
            raise ValueError(f"when is {self.when!r}, but it must be a time in ISO 8601.") from None


@dataclass(frozen=True)
class Record:
    """All that is known of one task: results (None: never checked), answers tried, hints read."""

    best: CheckResult | None = None
    latest: CheckResult | None = None
    tries: int = 0
    hints: int = 0
    answer: str = ""  # the fingerprint of the latest answer

    def __post_init__(self) -> None:
        counts = all(type(count) is int and count >= 0 for count in (self.tries, self.hints))
        if not counts or (self.best is None) != (self.latest is None):
            raise ValueError(f"{self} is no record of a task: two results and two counts are needed.")


def remember_check(report: Report, answer: str) -> None:
    """Add the report on an answer (its source text) to the record; never raises for trouble with the file.

    An answer that is not started is no try, and takes nothing away.
    """
    if not report.started:
        return
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    result = CheckResult(report.state, float(report.points), float(report.max_points), now)
    print_of_it = hashlib.blake2b(answer.encode("utf-8", "replace"), digest_size=8).hexdigest()

    def add(old: Record) -> Record:
        tries = old.tries + (print_of_it != old.answer)
        return Record(_better(old.best, result), result, tries, old.hints, print_of_it)

    _change(report.task_id, add)


def remember_hint(id: str, number: int) -> None:
    """Add to the record that `number` hints of the task were read; never raises for trouble with the file."""
    _change(id, lambda old: replace(old, hints=max(old.hints, number)))


def records() -> tuple[dict[str, Record], int]:
    """Return the records by task id, and how many entries of the file this version cannot read."""
    saved = _quietly(lambda: _store().read()) or {}
    found = {id: record for id, entry in saved.items() if (record := _restore(entry))}
    return found, len(saved) - len(found)


def problems() -> tuple[str, ...]:
    """Return the sentences about trouble with the file in this session, each once."""
    return tuple(_problems)


def _better(old: CheckResult | None, new: CheckResult) -> CheckResult:
    """Return the result with more points, the earlier of equal ones; another total does not compare."""
    comparable = old is not None and old.max_points == new.max_points
    return old if comparable and old.points >= new.points else new


def _change(id: str, change: Callable[[Record], Record]) -> None:
    def write(values: dict[str, Any]) -> None:
        values[id] = asdict(change(_restore(values.get(id)) or Record()))

    _quietly(lambda: _store().update(write))


def _restore(saved: Any) -> Record | None:
    """Return the saved record, or None for an entry this version cannot read (JSON lets anything through)."""
    try:
        known = {field.name: saved[field.name] for field in fields(Record)}
        for name in ("best", "latest"):
            known[name] = CheckResult(**known[name]) if known[name] is not None else None
        return Record(**known)
    except (TypeError, KeyError, ValueError):
        return None


_problems: dict[str, None] = {}  # in order


def _store() -> Store:
    return _store_in(data_dir())


@functools.lru_cache(maxsize=1)
def _store_in(folder: Path) -> Store:
    """One Store as long as the folder is the same: it remembers that it fell back to memory."""
    _problems.clear()
    return Store("tasks", folder)


def _quietly(step: Callable[[], Any]) -> Any:
    """Run a step on the file; keep what it warns of or fails with for `problems`. None if it fails."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            return step()
        except Exception as problem:
            _problems[f"Your tasks could not be recorded ({type(problem).__name__}: {problem})."] = None
            return None
        finally:
            _problems.update((str(one.message), None) for one in caught)
