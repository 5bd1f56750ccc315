"""What a task is: one declaration that the learner's own check and the grader of a class both run.

A task says which inputs to make (from a seed), what is right, how to compare, which rules hold, what is fast
enough, what it is worth and how to help. It knows nothing of where it is judged: inputs and results are plain
numbers, lists and NumPy arrays, code is source text.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from course_lib.arguments import number, refusal, whole
from course_lib.grading.compare import exact
from course_lib.grading.sources import Code

if TYPE_CHECKING:
    import numpy as np

    from course_lib.grading.compare import ResultComparison
    from course_lib.grading.launch import Launch
    from course_lib.grading.rules import Rule
    from course_lib.grading.tape import CountsOperations

ID_PATTERN = re.compile(r"(\d\d|[A-Z])\.[a-z][a-z0-9_]*")
#: What puts an answer on all ranks, and on one alone. No name in an answer begins with __ (language).
STAGE, ALONE = "__on_every_rank", "__on_one_rank"
PLAY = f"""


def {STAGE}(*args):
    from course_lib.grading.stage import play
    return play({{entry}}, args)


def {ALONE}(*args):
    from course_lib.grading.stage import part_again
    return part_again({{entry}}, *args)
"""
HINTS = ("a question", "the idea", "nearly the line")


@dataclass(frozen=True)
class Case:
    """One call of the answer: `args`, and a `label` that says to the learner which input this is.

    `must_not_change` says that the arguments must be as before after the call. `guard` asks for a second run
    of the answer in which memory that was never written reads as NaN and every index of compiled code is
    checked.
    """

    args: tuple
    label: str
    must_not_change: bool = True
    guard: bool = False

    def __post_init__(self) -> None:
        _require(isinstance(self.args, tuple), "args", self.args, "a tuple of arguments")
        _require(bool(self.label), "label", self.label, "words that tell the learner which input it is")


@dataclass(frozen=True)
class SpeedRule:
    """The answer must be faster than `baseline` on the inputs `make_inputs(rng)`, measured side by side.

    `thresholds` are pairs (times as fast, share of the points), both rising, the last share 1. The share is
    that of the highest threshold that the median reaches. `on_the_way` is said where it is not the last.
    `fastest` is how many times as fast the fastest known answer is: a teacher should see what is much faster.
    """

    baseline: Code
    make_inputs: Callable[[np.random.Generator], tuple]
    thresholds: tuple[tuple[float, float], ...]
    points: float
    budget_s: float = 2.5
    on_the_way: str = ""
    fastest: float = 0.0

    def __post_init__(self) -> None:
        speeds = [speed for speed, _ in self.thresholds]
        shares = [share for _, share in self.thresholds]
        rising = bool(speeds) and speeds == sorted(set(speeds)) and shares == sorted(set(shares))
        _require(rising, "thresholds", self.thresholds, "pairs (times as fast, share) that both rise")
        _require(shares[0] > 0 and shares[-1] == 1, "thresholds", self.thresholds, "shares in (0, 1], last 1")
        _require(self.points > 0, "points", self.points, "more than 0 points for the speed")

    def share(self, speedup: float) -> float:
        """Return the share of the speed points for being `speedup` times as fast as the baseline."""
        return max((share for speed, share in self.thresholds if speedup >= speed), default=0.0)

    def is_between(self, low: float, high: float) -> bool:
        """Whether one of the thresholds lies between two speeds."""
        return any(low <= speed <= high for speed, _ in self.thresholds)

    def next_threshold(self, speedup: float) -> float | None:
        """Return the lowest threshold above `speedup`, or None at the top."""
        return next((speed for speed, _ in self.thresholds if speed > speedup), None)


@dataclass(frozen=True)
class Oracle:
    """Something that an answer explores by experiment: a helper that is handed out, and a key that hides it.

    The answer gets the key as its first argument, and hands it to `helper` by the name `key`. In a class the
    key is an opaque number, and the helper asks the judge: `answer` is what the helper is, but must raise
    nothing that the key tells. `work` says how many numbers a question has to do with; ValueError if its
    arrays do not fit.
    """

    helper: str
    key: str
    answer: Callable
    work: Callable[..., int]


def source(text: str) -> str:
    """Return code that is written indented in a declaration, as it would stand in a file."""
    return textwrap.dedent(text).lstrip("\n")


@dataclass(frozen=True, kw_only=True)
class Task:
    """One exercise, declared once; see the field names. Results are compared exactly unless it says how.

    `entry` is the function's name in the assignment: that of `reference`, unless it is given. `lookalikes`
    maps sentences of the report to recognisers of typical slips: `make(*args)` returns the result that the
    slip gives, or, where no one result is typical, a function whose first parameter is called `got` says
    whether the slip was made, `fits(got, *args)`. What the reference gives for other arguments is known by
    these alone, as {"itemsize": 8}; a word is its argument `slip`. All are asked only about results of the
    right type and shape.

    `points` are all points of the task; a SpeedRule's points are part of them, the rest is for being right.
    With an `oracle` the first argument of each case is its key.
    `yours` gives what the learner has measured as one more input (`own_numbers`); its LookupError names what
    is not measured.
    With `collective` each rank of a rehearsal calls the answer, with a wire and its entry of each argument;
    `reference` is `stage.played(…)`, which plays ours.
    With a `launch` the answer is a CUDA kernel, which runs in the tracer alone: its language is KERNEL,
    and `reference` gives what the result argument must be afterwards.
    """

    id: str
    title: str
    points: float = 3
    difficulty: int = 3
    minutes: int = 15
    cases: Callable[[np.random.Generator], Iterable[Case]]
    reference: Callable
    comparison: ResultComparison = exact()  # noqa: RUF009 - it is frozen
    hints: tuple[str, str, str]
    entry: str = ""
    rules: tuple[Rule, ...] = ()
    counts: CountsOperations | None = None
    speed: SpeedRule | None = None
    lookalikes: Mapping[str, Callable | Mapping[str, Any] | str] = field(default_factory=dict)
    launch: Launch | None = None
    oracle: Oracle | None = None
    yours: Callable[[], Case] | None = None
    collective: bool = False

    def __post_init__(self) -> None:
        _require(bool(ID_PATTERN.fullmatch(str(self.id))), "id", self.id, 'like "01.rows"')
        number("points", self.points, above=0)
        whole("difficulty", self.difficulty, most=5)
        number("minutes", self.minutes, above=0)
        _require(bool(self.title), "title", self.title, "words for the learner")
        if not self.entry:
            object.__setattr__(self, "entry", self.reference.__name__)
        _require(self.entry.isidentifier(), "entry", self.entry, "the name of a function")
        good_hints = len(self.hints) == len(HINTS) and all(self.hints)
        _require(good_hints, "hints", self.hints, f"exactly three: {', '.join(HINTS)}")
        known = {says: _recogniser(self.reference, one) for says, one in self.lookalikes.items()}
        object.__setattr__(self, "lookalikes", known)
        if self.launch:
            from course_lib.grading.language import KERNEL

            object.__setattr__(self, "rules", self.rules or (KERNEL,))
            _require(self.speed is self.counts is None, "speed or counts", self.speed, "None for a kernel")
        _require(self.points_for_being_right >= 0, "speed.points", self.speed, "at most the task's points")

    def code(self, text: str, entry: str = "", stage: str = STAGE) -> Code:
        """Return the text of an answer as it is run: of a collective one all ranks are played, or one is."""
        entry = entry or self.entry
        return Code(text + PLAY.format(entry=entry), stage) if self.collective else Code(text, entry)

    @property
    def by_hand(self) -> bool:
        """Whether the guarded run refuses what is computed with arrays (array_arithmetic)."""
        return any(getattr(rule, "kind", "") == "loops" for rule in self.rules)

    @property
    def points_for_being_right(self) -> float:
        """The points that need no speed."""
        return self.points - (self.speed.points if self.speed else 0.0)

    @property
    def chapter(self) -> str:
        """The chapter's two digits, or an interlude's letter."""
        return self.id.partition(".")[0]


def _recogniser(reference: Callable, slip: Callable | Mapping[str, Any] | str) -> Callable:
    others = {"slip": slip} if isinstance(slip, str) else slip
    named = inspect.signature(reference)
    return slip if callable(slip) else lambda *args: reference(**{**named.bind(*args).arguments, **others})


def _require(holds: bool, field: str, got: Any, wanted: str) -> None:
    if not holds:
        raise refusal(field, got, wanted)
