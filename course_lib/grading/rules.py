"""Rules about the heart of one task, read in the text of an answer: right under every schedule, not by luck.

What an answer may be written in at all says `language`, the first rule of every task. A rule needs the text
and the entry's name, nothing that runs; one that cannot read the entry does not pass it.

The rule here is for functions that several threads run at once. The answer is read, never run
(`simulators.interleavings`): every order in which the threads' reads, writes and lock operations can follow
each other is covered, so that a race or a deadlock which a million runs would not show is found, and shown
with a schedule that leads to it.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Protocol

from course_lib.grading.program import Program, bindings, names_of, read_program, returns_something
from course_lib.simulators.interleavings import (
    JointState,
    Lock,
    NotJudged,
    Replay,
    Semaphore,
    Verdict,
    explore,
)
from course_lib.simulators.interleavings.values import COMPUTE

MOST_STATES = 50_000  # right answers need up to some thousands
TIME_LIMIT_S = 20.0  # far more than that takes on the slowest laptop
STEPS_SHOWN = 14
RESULTS = "results"
#: Functions that the checker knows by their names.
KNOWN = frozenset(["print", "reversed", "enumerate", *COMPUTE])
#: What the assignment hands out; whatever else is given to the checker plays the others.
HANDED_OUT = frozenset(["lock_of", "slots_of", "use"])
POLLS = (
    "a thread asks again and again instead of sleeping; two may do so in step for ever. Wait for a lock or a "
    "place with `with` or acquire(), and for nothing else."
)


class Rule(Protocol):
    """A condition on the source."""

    def judge(self, source: str, entry: str) -> str | None:
        """Return None if the rule is kept, else one sentence that names the fault."""


@dataclass(frozen=True)
class AtOnce:
    """Work that threads must be able to do at the same time: writing to entries of the shared list `on`.

    `doing` says it in words that follow "thread 0 …": "is inside `use`".
    """

    on: str
    doing: str


@dataclass(frozen=True)
class Scenario:
    """Threads that run at once: `calls` such as "transfer(0, 1, 5, balance)", on `shared` variables.

    What call n returns becomes results[n]. `right(final)` gets all final values by name, the results as well,
    and returns True or a sentence's end that names the fault ("balance ends as …"). `given` is the text of
    the helpers that the assignment hands out, as the checker is to read them. `at_once` is what a thread must
    not keep the others from while it does it itself. `kept` gets each state on the way, and returns True or a
    sentence's end, as `right` does. Others who are `restless` go on until a thread ends.
    """

    said: str  # in words, for the report: "two transfers in opposite directions"
    calls: tuple[str, ...]
    shared: Mapping[str, Any]
    right: Callable[[dict[str, Any]], bool | str]
    given: str = ""
    at_once: AtOnce | None = None
    kept: Callable[[JointState], bool | str] | None = None
    restless: bool = False


@dataclass(frozen=True)
class UnderAllSchedules:
    """The entry is right in every scenario, under every schedule: no race, no deadlock, no wrong value.

    Further scenarios are `drawn`, for each text others, so that none can be written for their numbers.
    """

    scenarios: tuple[Scenario, ...]
    drawn: Callable[[random.Random], Iterable[Scenario]] = lambda _: ()

    def judge(self, source: str, entry: str) -> str | None:
        """Return a sentence for the first scenario with a fault, and a schedule that leads there.

        Of an entry without a result running says more.
        """
        program = read_program(source, entry)
        function = program.function()
        if function is None:
            return f"{entry} cannot be read: write it with `def {entry}(…)`, at the top of a cell."
        if not returns_something(function):
            return None
        scenarios = (*self.scenarios, *self.drawn(random.Random(source)))
        return next(filter(None, (self._fault(program, scenario) for scenario in scenarios)), None)

    def _fault(self, program: Program, scenario: Scenario) -> str | None:
        own = _own_functions(program, scenario)
        text = f"{_needed(program, own)}\n\n{scenario.given}\n\n{_threads(scenario, program.entry)}"
        names = [_name(number) for number in range(len(scenario.calls))]
        shared = {**scenario.shared, RESULTS: [None] * len(names)}
        if taken := _taken(program, scenario, own, {*shared, *names}):
            return (
                f"The schedules of your answer cannot be checked. Its `{taken}` means something else to the "
                "checker: give it another name."
            )
        in_between = _InBetween(scenario)
        try:
            verdict = explore(
                names,
                shared,
                scenario.right,
                source=text,
                max_states=MOST_STATES,
                time_limit_s=TIME_LIMIT_S,
                observe=in_between if scenario.at_once or scenario.kept else None,
            )
        except NotJudged:
            raise  # a fault of the scenario, not of the answer
        except (ValueError, TypeError) as problem:  # NotUnderstood, or values it does not know
            return f"The schedules of your answer cannot be checked. {_quoting(_ended(str(problem)), text)}"
        if not verdict.ok:
            return _quoting(_in_given_names(_report(verdict, scenario), scenario), text)
        polls = verdict.schedules is None and not scenario.restless
        said = in_between.fault() or (POLLS if polls else None)
        return said and _in_given_names(f"With {scenario.said}: {said}", scenario)


def _name(number: int) -> str:
    return f"thread_{number}_of_the_checker"


def _threads(scenario: Scenario, entry: str) -> str:
    return "\n\n".join(
        f"def {_name(number)}():\n    {RESULTS}[{number}] = {call.format(entry=entry)}"
        for number, call in enumerate(scenario.calls)
    )


def _needed(program: Program, own: list[ast.FunctionDef]) -> str:
    def written(node: ast.AST) -> str:  # unparsed it may mean something else
        return ast.get_source_segment(program.source, node)

    values = {name: value for one in program.reached for name, value in bindings(one) if value is not None}
    constants = [f"{name} = ({written(value)})" for name, value in values.items()]
    return "\n\n".join([*constants, *map(written, own)])


def _taken(program: Program, scenario: Scenario, own: list[ast.FunctionDef], shared: set[str]) -> str | None:
    """Return a name from the top of the text that has another meaning for the checker."""
    imports = [one for one in program.reached if isinstance(one, ast.Import | ast.ImportFrom)]
    imported = {name for one in imports for name, _ in names_of(one)}
    others = _given(scenario) | (_called(ast.parse(scenario.given)) & {*program.functions})
    theirs = shared | (others - HANDED_OUT) | (KNOWN & imported)
    for function in own:
        names = [one for one in ast.walk(function) if isinstance(one, ast.Name)]
        local = {one.arg for one in function.args.args} | {
            one.id for one in names if isinstance(one.ctx, ast.Store)
        }
        found = next((one.id for one in names if one.id in theirs - local), None)
        if found:
            return found
    return None


def _given(scenario: Scenario) -> set[str]:
    return {one.name for one in ast.parse(scenario.given).body if isinstance(one, ast.FunctionDef)}


def _called(tree: ast.AST) -> set[str]:
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return {called.id for called in calls if isinstance(called, ast.Name)}


def _own_functions(program: Program, scenario: Scenario) -> list[ast.FunctionDef]:
    """Return the entry and the functions of the text that are called from it; none of those given."""
    but, names, found = _given(scenario), [program.entry], []
    while names:
        name = names.pop()
        if name in program.functions and name not in {*but, *found}:
            found.append(name)
            names += sorted(_called(program.functions[name]))
    return [program.functions[name] for name in found]


def _report(verdict: Verdict, scenario: Scenario) -> str:
    case = f"With {scenario.said}: "
    said = _ended(verdict.sentence)
    steps = _in_words(verdict.witness) if verdict.witness else ""
    return f"{case}{said} A schedule that leads there: {steps}." if steps else f"{case}{said}"


def _quoting(sentence: str, text: str) -> str:
    """Return the sentence with code where it has the number of a line, which only the checker's text has."""
    lines = text.splitlines()

    def code(found: re.Match) -> str:
        number = int(found[1])
        return f"`{lines[number - 1].strip()}`" if 0 < number <= len(lines) else found[0]

    return re.sub(r"\b[Ll]ine (\d+)", code, sentence)


class _InBetween:
    """Looks at every moment before the end, of answers whose end is right under every schedule."""

    def __init__(self, scenario: Scenario) -> None:
        self.kept = scenario.kept
        self.work = scenario.at_once
        self.lost: str | None = None
        self.hindered: str | None = None
        self.together = False

    def __call__(self, moment: JointState) -> None:
        if self.kept and not self.lost:
            verdict = self.kept(moment)
            if verdict is not True:
                self.lost = f"there is a moment at which {verdict}."
        if self.work and not self.hindered:
            self._look_for_hindrance(moment, self.work)

    def _look_for_hindrance(self, moment: JointState, work: AtOnce) -> None:
        """Note what keeps threads from working at the same time."""
        at_work = [
            thread
            for thread, (kind, name) in enumerate(moment.coming)
            if kind == "write" and name.startswith(f"{work.on}[")
        ]
        self.together |= len(at_work) > 1
        for waiting, (kind, lock) in enumerate(moment.coming):
            holder = moment.holders.get(lock)  # a semaphore is held by nobody
            if kind in ("acquire", "try") and holder in at_work:
                self.hindered = (
                    f"thread {holder} {work.doing} and holds {lock} meanwhile, for which "
                    f"thread {waiting} waits. Release it before the work."
                )
                return

    def fault(self) -> str | None:
        """Return what is wrong, None if nothing is."""
        if self.lost or self.hindered or self.work is None or self.together:
            return self.lost or self.hindered
        return f"under no schedule is there a second thread that {self.work.doing} meanwhile."


def _in_given_names(sentence: str, scenario: Scenario) -> str:
    """Return the sentence with lock_of("busy") for locks['busy'], as the assignment's text has it."""
    for table, helper, kind, noun in (
        ("locks", "lock_of", Lock, "lock"),
        ("slots", "slots_of", Semaphore, "semaphore"),
    ):
        keys = [key for key, one in scenario.shared.get(table, {}).items() if isinstance(one, kind)]
        there = " and ".join(f"{helper}({_quoted(repr(key))})" for key in keys)
        only = f"only {there} {'are' if len(keys) > 1 else 'is'} there" if keys else "none is there"
        if any(isinstance(key, int) for key in keys):  # accounts
            only = f"every account needs its own lock, that of its number, and here {only}"
        name = rf"\b{table}\[('[^']*'|-?\d+)\]"
        sentence = re.sub(
            rf"asks for {name}, which is not there( \([^()]*\))*",
            lambda found, said=f"{helper}({{}}), but there is no such {noun}: {only}": (
                f"asks for {said.format(_quoted(found[1]))}"
            ),
            sentence,
        )
        sentence = re.sub(name, lambda found, called=helper: f"{called}({_quoted(found[1])})", sentence)
    return sentence


def _quoted(key: str) -> str:
    return key.replace("'", '"')


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith((".", "?", "!")) else f"{sentence}."


def _in_words(replay: Replay) -> str:
    """Return the last steps of a schedule, those of one thread together."""
    steps = [step for step in replay.steps if not step.code.startswith(f"{RESULTS}[")]
    shown = steps[-STEPS_SHOWN:]
    parts = [
        f"thread {thread} {', '.join(step.does for step in group)}"
        for thread, group in groupby(shown, key=lambda step: step.thread)
    ]
    return ("… " if len(shown) < len(steps) else "") + "; ".join(parts)
