"""Judging an answer: rules on its source, then its results case by case, then its operations, then its speed.

The judge makes the inputs, compares and writes the points. The answer runs wherever the runner runs it; the
judge reads nothing from there but values, faults and times.
"""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from course_lib.grading import judge_launch, tape
from course_lib.grading.compare import Mismatch, counted, recognise
from course_lib.grading.program import is_stub, read_program
from course_lib.grading.report import (
    OTHER_INPUTS,
    PARTLY,
    RIGHT,
    WRONG,
    Report,
    argument_name,
    input_note,
    make_report,
    not_started,
    refused,
    wrong,
)
from course_lib.grading.runner import Fault, Outcome, Runner, clone, unchanged
from course_lib.grading.sources import guard
from course_lib.grading.stage import Played, is_the_same
from course_lib.grading.task import ALONE, Case, Code, Task

KEPT = (
    "A timed call gave a wrong result, though the same function was right before. The numbers change with "
    "every call: does it keep results of earlier calls?"
)
STAYS = "The result of an earlier call must still be right after later ones, too: make a new one in each."
MOST_FOLLOWED = 4  # inputs, and the largest, on which it is seen whether counting changes the steps
OTHER_STEPS = (
    "With floats it leaves out most of what it does with the numbers that count its operations: for every "
    "type the same is to be done."
)
#: Faults of timed calls that put their work off: their results are none.
DODGES = ("NotPlain", "Late")
GUARD_NOTE = (
    "Found in a second run of your function, in which memory that was never written reads as NaN and every "
    "index is checked. The plain run may look right by luck."
)

OUTSIDE = (
    "Your compiled code reads or writes outside an array. Numba does not check indices by itself: without "
    "the check it takes whatever lies in memory there."
)
NEVER_WRITTEN = (
    "Your result depends on memory that was never written: np.empty gives room, not zeros. (NaN stands for "
    "that memory here.)"
)
NOT_BY_MESSAGES = (
    "The values are right. But a rank, alone with the messages that it got, does something else than before: "
    "what it sends and returns must follow from its own numbers and these messages."
)
MOST_ALONE = 4  # ranks of a case
MEDIAN = "Points follow the first number, a median; close to a limit it is measured again."
#: Lines that say the same whatever the inputs are.
FIXED_WORDS = (
    OTHER_INPUTS,
    KEPT,
    STAYS,
    GUARD_NOTE,
    OUTSIDE,
    NEVER_WRITTEN,
    NOT_BY_MESSAGES,
    judge_launch.BY_LUCK,
    judge_launch.DOUBLE,
    judge_launch.NOT_KEPT,
)


def judge(task: Task, runner: Runner, source: str, seed: int, entry: str | None = None) -> Report:
    """Judge one answer to `task`: its `source` text with the function `entry`, run by `runner`.

    The inputs depend on the seed and the task alone. Judging stops at the first fault.
    """
    code = Code(source, entry or task.entry)
    if is_stub(code.text, code.entry):
        return not_started(task, source=code.text)
    sentences = (rule.judge(code.text, code.entry) for rule in task.rules)
    broken = next(filter(None, sentences), None)  # the first is of the language: what follows relies on it
    if broken:
        return wrong(task, [broken])
    cases = list(task.cases(generator(task, seed)))
    if task.launch:
        report = judge_launch.report_on_launches(task, runner, code, cases, _report_on_outcome)
        right = [OTHER_INPUTS, *judge_launch.remarks(code)]
        return report or make_report(task, task.points, RIGHT, right)
    report = _report_on_cases(task, runner, code, cases) or _report_on_counts(task, runner, cases, seed)
    if report:
        return report
    if not task.speed:
        return make_report(task, task.points, RIGHT, [OTHER_INPUTS])
    timed = Case(
        task.speed.make_inputs(generator(task, seed, part=1)),
        "the large one that is timed",
        guard=any(case.guard for case in cases),
    )
    return _report_on_cases(task, runner, code, [timed]) or _report_on_speed(task, runner, timed.args)


def generator(task: Task, seed: int, part: int = 0) -> np.random.Generator:
    """Return the random numbers of a task: they depend on its id, the seed and the part (cases, speed)."""
    return np.random.default_rng([seed, zlib.crc32(task.id.encode()), part])


def _report_on_cases(task: Task, runner: Runner, code: Code, cases: list[Case]) -> Report | None:
    """Return the report on the first thing that is wrong; a guarded run comes first, as it does no harm."""
    guarded: Callable[[tuple], Outcome] | None = None
    if any(case.guard for case in cases):
        try:
            guarded = runner.guarded(Code(guard(code.text, task.by_hand), code.entry))
        except Exception as error:  # the text does not stand on its own: say so rather than guess
            return refused(task, f"Your code cannot be run by itself ({type(error).__name__}: {error}).")
    outcomes = _called_in_any_order(runner, cases) if task.oracle else {}
    printed = 0
    for number, case in enumerate(cases):
        if outcomes and number not in outcomes:
            continue
        report = _report_on_guarded_run(task, runner, guarded, case, code) if guarded and case.guard else None
        if report:
            return report
        outcome = outcomes.get(number) or runner.call(clone(case.args))
        printed += outcome.printed
        report = _report_on_outcome(task, case, outcome)
        if task.collective and not report:
            report = _report_on_ranks_alone(task, runner, code, case, outcome.value)
        if report:
            report = _blamed_on_stubs(report, code, outcome.fault)
            said = (
                (f"Your function printed {counted(printed, 'line')} during the check (not shown).",)
                if printed
                else ()
            )
            return replace(report, notes=(*report.notes, *said))
    return None


def _report_on_ranks_alone(
    task: Task, runner: Runner, code: Code, case: Case, played: Played
) -> Report | None:
    """Have ranks do their part again, each where no other rank's numbers of this case have been."""
    values, _, notes = played
    alone = task.code(code.text, code.entry, ALONE)
    for place, rank in enumerate(random.sample(range(len(values)), min(len(values), MOST_ALONE))):
        own = tuple(entries[rank] for entries in case.args)
        try:
            sent, received = notes[rank]  # none of too many messages
        except (TypeError, IndexError, ValueError):
            return wrong(task, [NOT_BY_MESSAGES], input_note(task, case))
        outcome = runner.elsewhere(alone, place)((rank, len(values), clone(own), received))
        if outcome.fault or not is_the_same(sent, values[rank], outcome.value):
            said = outcome.fault.sentence() if outcome.fault else NOT_BY_MESSAGES
            return wrong(task, [said], input_note(task, case))
    return None


def _called_in_any_order(runner: Runner, cases: list[Case]) -> dict[int, Outcome]:
    """Return the outcomes by number: where something is hidden, counting the calls must tell nothing.

    They end with a call that was stopped.
    """
    outcomes: dict[int, Outcome] = {}
    for number in random.sample(range(len(cases)), len(cases)):
        outcomes[number] = runner.call(clone(cases[number].args))
        fault = outcomes[number].fault
        if fault and "Exception" not in fault.kinds:
            break
    return outcomes


def _blamed_on_stubs(report: Report, code: Code, fault: Fault | None) -> Report:
    """Say which of the answer's helpers is not started, if that is what stopped it."""
    if fault is None or fault.kind != "NotImplementedError":
        return report
    helpers = [
        name
        for name in read_program(code.text, code.entry).functions
        if name != code.entry and is_stub(code.text, name)
    ]
    if not helpers:
        return report
    return replace(report, lines=(f"Your answer uses `{helpers[0]}`, which is not started.", *report.lines))


def _report_on_guarded_run(
    task: Task, runner: Runner, guarded: Callable[[tuple], Outcome], case: Case, code: Code
) -> Report | None:
    """Return what only a guarded run shows; ordinary faults the plain run shows, with the learner's lines."""
    outcome = guarded(clone(case.args))
    if task.by_hand and outcome.fault:
        if outcome.fault.kind == "NotByHand":
            return wrong(task, [outcome.fault.message])
        if "IndexError" not in outcome.fault.kinds and not runner.call(clone(case.args)).fault:
            said = f"What your answer computes cannot be looked at. {outcome.fault.sentence()}"
            return wrong(task, [said], input_note(task, case))
    report = _report_on_outcome(task, case, outcome)
    outside = outcome.fault is not None and "IndexError" in outcome.fault.kinds
    if not report or (outside and "jit" not in code.text):
        return None  # Python checks its indices by itself: the plain run tells more
    own = report.lines if report.mismatch else ()  # those about an exception point into the rewritten text
    if outside:
        plain = Code(re.sub("^@.*", "", code.text, flags=re.MULTILINE), code.entry)  # Python says which index
        fault = runner.guarded(plain)(clone(case.args)).fault
        if fault and "IndexError" in fault.kinds and fault.line:
            own = (f"`{code.text.splitlines()[fault.line - 1].strip()}`: {fault.message}.",)
    else:
        plain = runner.call(clone(case.args))
        alike = _same_nans(outcome.value, plain.value)
        if outcome.fault or (alike and _report_on_outcome(task, case, plain)):
            return None  # the answer is wrong, or writes NaN itself
    shown = OUTSIDE if outside else NEVER_WRITTEN
    lines = (shown, *_built_wrong(task, case, outcome.fault), *own)
    return replace(report, lines=lines, notes=(*report.notes, GUARD_NOTE))


def _same_nans(guarded: Any, plain: Any) -> bool:
    """Whether the plain run gave NaN wherever the guarded one did."""
    if isinstance(guarded, tuple):
        alike = isinstance(plain, tuple) and len(plain) == len(guarded)
        return alike and all(map(_same_nans, guarded, plain))
    if not isinstance(guarded, np.ndarray) or guarded.dtype.kind != "f" or not np.isnan(guarded).any():
        return True
    alike = isinstance(plain, np.ndarray) and plain.shape == guarded.shape and plain.dtype.kind == "f"
    return bool(alike and np.isnan(plain)[np.isnan(guarded)].all())


def _report_on_outcome(task: Task, case: Case, outcome: Outcome) -> Report | None:
    if outcome.fault:
        lines = [outcome.fault.sentence(), *_built_wrong(task, case, outcome.fault)]
        return wrong(task, lines, input_note(task, case))
    if outcome.value is ...:
        return not_started(task)
    if case.must_not_change:
        changed = [
            n
            for n, pair in enumerate(zip(case.args, outcome.args_after, strict=True))
            if not unchanged(*pair)
        ]
        if changed:
            said = f"Your function changed its input, {argument_name(changed[0])}: work on a copy, "
            return wrong(task, [f"{said}the caller still needs the original."], input_note(task, case))
    with np.errstate(all="ignore"):
        want = task.reference(*clone(case.args))
        mismatch = _compare(task, case, outcome.value, want)
    if mismatch:
        got, formed = outcome.value, not mismatch.form
        recognised = recognise(got, want, case.args, task.lookalikes, formed)
        only = ["Printing is not returning: write `return …`."] if got is None and outcome.printed else []
        return wrong(task, [*recognised, *mismatch.says, *only], input_note(task, case), mismatch)
    if outcome.owner is not None:
        place = argument_name(outcome.owner)
        sentence = f"Your function returned memory of its own input, {place}: make a new result."
        return wrong(task, [sentence], input_note(task, case))
    return None


def _compare(task: Task, case: Case, got: Any, want: Any) -> Mismatch | None:
    """Compare; a value that breaks the comparison itself is a wrong value."""
    try:
        return task.comparison.compare(got, want, case.args)
    except Exception as error:
        return Mismatch((f"Your result cannot be compared with the expected one ({type(error).__name__}).",))


def _built_wrong(task: Task, case: Case, fault: Fault | None) -> list[str]:
    """Say that the result was built with rows and columns swapped, if an index error shows it."""
    if fault is None or not fault.built:
        return []
    want = task.reference(*clone(case.args))
    shape = () if isinstance(want, tuple) else np.shape(want)
    if len(shape) != 2 or shape[0] == shape[1]:
        return []
    rows, columns = shape
    return [
        f"`{name}` has {columns} rows of {rows}; {rows} rows of {columns} are needed."
        for name, shape in fault.built
        if shape == (columns, rows)
    ][:1]


def _report_on_counts(task: Task, runner: Runner, cases: list[Case], seed: int) -> Report | None:
    if not task.counts:
        return None
    rng = generator(task, seed, part=2)
    numbers = [sum(1 for _ in tape.floats(case.args)) for case in cases]
    chosen = [place for place, so_many in enumerate(numbers) if so_many <= task.counts.most_numbers]
    rising = sorted(chosen, key=numbers.__getitem__)  # small ones show little, large ones take long
    middle = rising[len(chosen) // 3 : -len(chosen) // 5 or None]
    followed = {*rng.permutation(middle)[:MOST_FOLLOWED], *rising[-1:]}
    for place in chosen:
        case = cases[place]
        counted = runner.count(clone(case.args), place in followed)
        if counted.fault:
            sentence = (
                f"On numbers that count their operations your function failed: {counted.fault.sentence()}"
            )
        else:
            sentence = _miscount(task, case, counted, rng) or ("" if counted.alike else OTHER_STEPS)
        if sentence:
            return wrong(task, ["The values are right.", sentence], input_note(task, case))
    return None


def _miscount(task: Task, case: Case, counted: Outcome, rng: np.random.Generator) -> str | None:
    """Return what is wrong with the operations written down; they must compute the result of any numbers."""
    args = tape.whole(case.args, rng)
    want = tape.residues(task.reference(*clone(args)))
    try:
        done = tape.count(counted.tape)
        got = tape.replay(counted.tape, counted.value, args)
    except ValueError:
        return (
            "What your function does on numbers that count cannot be followed: is the result a list of them?"
        )
    sentence = task.counts.judge(case.args, done.multiplications, done.additions)
    sentence = sentence or task.counts.judge_tiles(counted.tape, args)
    if sentence or got != want:
        return (
            sentence or "The operations it does on this input do not give the right result for other numbers."
        )
    return task.counts.judge_products(args, tape.products(counted.tape, args))


def _report_on_speed(task: Task, runner: Runner, args: tuple) -> Report:
    rule = task.speed
    timing = runner.time(rule, clone(args))
    base = task.points_for_being_right
    if timing.fault and timing.fault.kind in DODGES:
        return wrong(task, [timing.fault.sentence()])
    if timing.fault:
        said = ["The values are right, but timing it failed.", timing.fault.sentence()]
        return make_report(task, base, PARTLY if base else WRONG, said)
    for own, value in timing.checked:
        case = Case(own, "a timed call", must_not_change=False)
        report = _report_on_outcome(task, case, Outcome(value))
        if report:
            return replace(report, lines=(KEPT, STAYS, *report.lines))
    reached = round(timing.speedup, 2)  # as it is shown
    points = base + rule.points * rule.share(reached)
    goal = rule.next_threshold(reached)
    lines = [
        f"{timing.speedup:.2f}x as fast as the baseline (95 % between {timing.low:.2f}x and "
        f"{timing.high:.2f}x): {_time(timing.seconds)} against {_time(timing.baseline_seconds)}, equal "
        "inputs, one thread, interleaved."
    ]
    if goal is None:
        return make_report(task, task.points, RIGHT, [*lines, OTHER_INPUTS])
    gain = base + rule.points * rule.share(goal)
    lines.append(f"The values are right. {goal:g}x gives {gain:g} of {task.points:g} points. {MEDIAN}")
    if rule.on_the_way:
        lines.append(rule.on_the_way)
    return make_report(task, points, PARTLY if points else WRONG, lines)


def _time(seconds: float) -> str:
    scale, unit = next(
        (pair for pair in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")) if seconds >= pair[0]), (1e-9, "ns")
    )
    return f"{seconds / scale:.3g} {unit}"
