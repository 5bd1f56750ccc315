"""Every interleaving of a few threads, checked: a model checker for threads written in plain Python.

    verdict = explore([work, work], shared={"total": [0], "lock": Lock()}, expect={"total": [2]})
    verdict.kind                "ok", "race", "wrong result", "deadlock", …
    verdict.witness             a schedule that leads there, step by step

One step is one read or one write of something shared, or one operation on a lock; `total[0] += 1` is a
read, an addition that nobody else can see, and a write, as in machine code and in bytecode. All schedules
of such steps are covered, by a search over the states they can reach (a state that comes up again is not
searched again); schedules that seldom switch between threads come first, because what goes wrong usually
needs few switches (Musuvathi & Qadeer 2007, "Iterative context bounding for systematic testing of
multithreaded programs").

A data race is a state in which two threads stand before conflicting accesses to one variable, at least one
of them a write. Memory is sequentially consistent here; a program without data races behaves so on real
machines as well (Adve & Hill 1990, "Weak ordering – a new definition").
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from course_lib.arguments import is_number, is_whole, refusal, whole
from course_lib.simulators.interleavings.expectation import ASK, Expect, NotJudged, Serial, expectation
from course_lib.simulators.interleavings.language import NotUnderstood
from course_lib.simulators.interleavings.program import Thread, ThreadProgram
from course_lib.simulators.interleavings.replay import Replay, ReplayStep, replay
from course_lib.simulators.interleavings.search import JointState, Search
from course_lib.simulators.interleavings.shared import Lock, RLock, Semaphore

__all__ = [
    "Finding",
    "JointState",
    "Lock",
    "NotJudged",
    "NotUnderstood",
    "RLock",
    "Replay",
    "ReplayStep",
    "Semaphore",
    "Verdict",
    "explore",
    "run_schedule",
]

#: What may be found, the gravest first.
KINDS = ("deadlock", "error", "lock error", "wrong result", "race")


@dataclass(frozen=True)
class Finding:
    """One way in which the program goes wrong, and the schedule that gets there."""

    kind: str
    sentence: str
    replay: Replay = field(repr=False)


@dataclass(frozen=True)
class Verdict:
    """What the search found. `kind` is "ok", "not finished" or the kind of the gravest finding."""

    kind: str
    sentence: str
    states: int  # different states of the whole program
    schedules: int | None  # different schedules that these states stand for; None: unknown or without end
    complete: bool  # whether every schedule is covered
    seconds: float
    outcomes: tuple[dict[str, Any], ...]  # the different final values of the shared variables
    findings: tuple[Finding, ...]  # at most one of each kind

    @property
    def ok(self) -> bool:
        """Whether every schedule was covered and nothing is wrong with any."""
        return self.kind == "ok"

    @property
    def witness(self) -> Replay | None:
        """The schedule that leads to the gravest finding; None if there is none."""
        return self.findings[0].replay if self.findings else None

    def finding(self, kind: str) -> Finding | None:
        """Return the finding of one kind, None if there is none."""
        return next((finding for finding in self.findings if finding.kind == kind), None)

    def __str__(self) -> str:
        steps = "" if self.witness is None else f"\n{self.witness}"
        return f"{self.kind}: {self.sentence}{steps}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        steps = "" if self.witness is None else self.witness._repr_html_()
        return f"<div><b>{html.escape(self.kind)}</b>: {html.escape(self.sentence)}</div>{steps}"


def explore(
    threads: Sequence[Thread],
    shared: Mapping[str, Any] | None = None,
    expect: Expect | None = None,
    *,
    source: str | None = None,
    max_states: int = 200_000,
    time_limit_s: float = 5.0,
    observe: Callable[[JointState], Any] | None = None,
) -> Verdict:
    """Return what can happen when the threads run at the same time, over all schedules.

    `threads` are Python functions, or tuples (function, argument, …). Their source is read, never run.
    Global names that they use are taken from `shared` (numbers, texts, lists and dicts of them, locks) and
    else from where the functions were defined; a shared list keeps its length. With `source` the functions
    come from that text and `threads` holds their names. At most `max_states` states are searched, for at
    most about `time_limit_s` seconds; then the verdict is "not finished" unless something was found.

    `expect` says what is right at the end: final values {"total": [2]}, or a function of all final values
    that returns True (right), False, or a sentence that names the fault; NotJudged (a TypeError) is raised if
    it returns anything else. None: what some order of whole threads, one after the other, gives
    (serialisability); ValueError is raised if trying these orders takes longer than `time_limit_s`, or if the
    threads can end but in none of these orders, so that nothing says what is right. Raises NotUnderstood with
    one sentence for what cannot be read. `observe` is shown every state that was searched, as a JointState.
    """
    whole("max_states", max_states)
    if time_limit_s != math.inf and (not is_number(time_limit_s) or time_limit_s <= 0):
        raise refusal("time_limit_s", time_limit_s, "a number above 0")
    program = ThreadProgram(threads, shared, source)
    judge = expectation(expect, program, time_limit_s)
    search = Search(program, judge)
    search.run(max_states, time_limit_s)
    if isinstance(judge, Serial) and not judge.allowed and search.final and not search.found:
        raise ValueError(f"These threads do not end one after the other, in no order: {ASK}")
    for state in search.numbers if observe else ():
        observe(JointState(program, *state))
    return _verdict(program, search)


def run_schedule(
    threads: Sequence[Thread],
    shared: Mapping[str, Any] | None = None,
    schedule: Sequence[int] = (),
    *,
    source: str | None = None,
    complete: bool = True,
) -> Replay:
    """Run the threads in one given order: `schedule` names the thread of each step, [0, 0, 1, …].

    A thread that cannot move when it is named waits, and that counts as a step. With `complete` what is
    left runs one thread after the other. Arguments as in `explore`; raises ValueError for a thread that
    does not exist.
    """
    program = ThreadProgram(threads, shared, source)
    for number in schedule:
        if not is_whole(number) or not 0 <= number < len(program.start):
            raise ValueError(f"schedule names {number!r}; threads are 0 to {len(program.start) - 1}.")
    return replay(program, schedule, complete=complete)


def _verdict(program: ThreadProgram, search: Search) -> Verdict:
    """Return what was found, with a replay of the schedule that leads to each finding."""
    findings = tuple(
        Finding(kind, sentence, replay(program, search.path(state, then), complete=False))
        for kind, (sentence, state, then) in sorted(search.found.items(), key=lambda one: KINDS.index(one[0]))
    )
    schedules = None if search.stopped else search.schedules()
    if findings:
        kind, sentence = findings[0].kind, findings[0].sentence
    elif search.stopped:
        kind = "not finished"
        sentence = (
            f"Not every schedule was checked, because {search.stopped}; nothing wrong was found in the "
            f"{len(search.numbers):,} states searched. Check a smaller case: fewer threads or turns."
        )
    else:
        kind = "ok"
        many = "every schedule" if schedules is None else f"all {schedules:,} schedules"
        sentence = f"Right in {many} of {len(program.start)} threads ({len(search.numbers):,} states)."
    outcomes = tuple(program.heap.plain(cells) for cells, _ in search.final)
    return Verdict(
        kind,
        sentence,
        len(search.numbers),
        schedules,
        not search.stopped,
        search.seconds,
        outcomes,
        findings,
    )
