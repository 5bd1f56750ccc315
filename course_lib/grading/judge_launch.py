"""Judging a GPU kernel by its launches in the tracer, and what the learner is told: hazards, cost, and where.

First comes what stopped it, then hazards, then arguments that it must not write, then the result, then what
it cost. Every sentence names the line of the learner's cell and its code.
"""

from __future__ import annotations

import ast
import inspect
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from course_lib.grading.launch import UNDEFINED, HazardRow, LaunchCounts, Limit, LineCount, Shape
from course_lib.grading.program import Program, at, read_program
from course_lib.grading.report import Report, argument_name, input_note, wrong
from course_lib.grading.runner import Fault, Outcome, Runner, clone, unchanged
from course_lib.grading.task import Case, Code, Task
from course_lib.grading.vocabulary import KERNEL_METHODS

MOST_TOLD = 3  # hazards; a missing barrier shows at many lines
MOST_ROWS_TOLD = 8
BY_LUCK = (
    "Even where the result happens to be right, this is a fault: on a GPU it depends on which thread comes "
    "first."
)
NOT_KEPT = "The result is right and there are no hazards, but it costs more than it may."
DOUBLE = (
    "A remark: `total = 0.0` makes a sum of float64, and on most GPUs those take up to 64 times as long as "
    "sums of float32. Let it begin with float32(0)."
)
HAZARD = {
    "race": "Data race",
    "uninitialised": "Read before anything was written",
    "out-of-bounds": "Outside of the array",
    "divergent-barrier": "A barrier that not every thread reaches",
    "mask": "A mask that does not name just the lanes that come",
    "undefined-value": "A value of a lane that has none to give",
}
Judged = Callable[[Task, Case, Outcome], Report | None]  # the report on a wrong result, or None


def remarks(code: Code) -> list[str]:
    """Return what is worth saying of a kernel that is right: a sum that begins as a float of Python."""
    for function in read_program(code.text, code.entry).functions.values():
        nodes = [*ast.walk(function)]
        starts = (one for one in nodes if isinstance(one, ast.Assign) and isinstance(one.value, ast.Constant))
        doubles = {
            ast.unparse(place) for one in starts if type(one.value.value) is float for place in one.targets
        }
        if any(isinstance(one, ast.AugAssign) and ast.unparse(one.target) in doubles for one in nodes):
            return [DOUBLE]
    return []


def report_on_launches(
    task: Task, runner: Runner, code: Code, cases: list[Case], judged: Judged
) -> Report | None:
    """Return the first thing that is wrong with the launches of a kernel; `judged` compares its results."""
    program = read_program(code.text, code.entry)
    own = [one.arg for one in program.function().args.args]  # without one the language has refused it
    given = [*inspect.signature(task.reference).parameters]
    said = _wrong_number(code.entry, own, given) or _read_by_atomic(program)
    if said:
        return wrong(task, [said])
    for case in (*cases, *_with_numbers(cases[-1])):
        traced = runner.trace(task.launch.shape(case.args), clone(case.args))
        found = _report_on_launch(task, case, traced, own, judged)
        if found:
            return found
    return None


def _with_numbers(case: Case) -> list[Case]:
    """Return a case with numbers where its result was full of NaN: who needs those gets nothing right."""
    *given, result = case.args
    if result.dtype.kind != "f" or not np.isnan(result).all():
        return []
    chance = np.random.default_rng(zlib.crc32(given[-1].tobytes()))  # so that no kernel knows which is where
    numbers = chance.choice(np.array([1000, -1000], result.dtype), result.shape)
    label = f"{case.label}, and the result holds numbers before the launch"
    return [replace(case, args=(*given, numbers), label=label)]


def _report_on_launch(
    task: Task, case: Case, traced: Outcome, own: list[str], judged: Judged
) -> Report | None:
    """Return the report on a launch that did not end, is unsafe, wrong, or costs too much; else None."""
    if traced.fault:
        return wrong(task, [_fault_line(traced.fault)], input_note(task, case))
    shape = task.launch.shape(case.args)
    notes = (*input_note(task, case), *look_closer(task.entry, shape, own))
    undefined = [one for one in traced.value.hazards if one.kind == UNDEFINED]
    hazards = [one for one in traced.value.hazards if one.kind != UNDEFINED]
    if hazards:
        return wrong(task, _hazard_lines(hazards), notes)
    before, after = case.args, traced.args_after
    for n, pair in enumerate(zip(before[:-1], after[:-1], strict=True)):
        if case.must_not_change and not unchanged(*pair):
            said = f"Your kernel writes into {argument_name(n)}, `{own[n]}`, which is there to be read only."
            return wrong(task, [said], input_note(task, case))
    found = judged(task, replace(case, must_not_change=False), Outcome(after[-1]))
    left = _never_written(before[-1], after[-1], own[-1], traced.value.of("global"))
    if found:
        return replace(found, lines=(*left, *_hazard_lines(undefined), *found.lines))
    if left:  # where NaN is right
        return wrong(task, left, input_note(task, case))
    costly = (_limit_lines(limit, traced.value, case.args) for limit in task.launch.limits)
    lines = next(filter(None, costly), None)
    return wrong(task, lines, notes) if lines else None


def _read_by_atomic(program: Program) -> str | None:
    """Return a sentence if the kernel uses what an atomic gives back, which nothing orders but a barrier.

    Atomics never race with each other. So a kernel that writes and reads by them alone needs no barrier in
    lockstep, and on a GPU reads what is not there yet.
    """
    nodes = [*ast.walk(program.tree)]
    alone = {id(one.value) for one in nodes if isinstance(one, ast.Expr)}
    calls = (one for one in nodes if isinstance(one, ast.Call) and id(one) not in alone)
    for call in calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr in KERNEL_METHODS - {"array"}:
            return (
                f"Your kernel uses what an atomic gives back{at(call, program.source)}: on a GPU that "
                "depends on which thread comes first. Let it stand alone, and read the array behind a "
                "barrier."
            )
    return None


# --- in words -----------------------------------------------------------------------------------------------


def _wrong_number(entry: str, own: Sequence[str], given: Sequence[str]) -> str | None:
    """Return a sentence if the kernel does not take as many arguments as the launch hands out."""
    if len(own) == len(given):
        return None
    takes = f"{_number(len(own), 'parameter')} ({', '.join(own)})" if own else "no parameters"
    return f"`{entry}` takes {takes}, but it is launched with {len(given)}: {', '.join(given)}."


def _fault_line(fault: Fault) -> str:
    if fault.kind == "NotTraceable":
        said = fault.message  # it may begin with a name of the kernel's: no capital
        place = f"Line {fault.line}, `{fault.code}`: " if fault.line else ""
        return f"{place}{said}{'' if said.endswith(('.', '?')) else '.'}"
    if fault.kind == "TimeLimit" and fault.line:
        return f"Your kernel was stopped in line {fault.line}, `{fault.code}`: {fault.message}"
    return fault.sentence()


def _hazard_lines(hazards: Sequence[HazardRow]) -> list[str]:
    """Return a sentence for each of the first hazards, what the others are in number, and why it counts."""
    lines = [_hazard(one) for one in hazards[:MOST_TOLD]]
    more = len(hazards) - MOST_TOLD
    if more > 0:
        lines.append(f"… and {more} more of this sort in other places.")
    return [*lines, BY_LUCK] if any(one.kind == "race" for one in hazards) else lines


def _hazard(one: HazardRow) -> str:
    times = f" ({one.times:,} times in all)" if one.times > 1 else ""
    place = f"line {one.line}, `{one.code}`" if one.line else "the kernel"
    of_a_warp = one.kind == "divergent-barrier" and "syncthreads" not in one.what
    sort = HAZARD["mask" if of_a_warp else one.kind]
    return f"{sort} in {place}, block ({', '.join(map(str, one.block))}): {one.what}{times}."


def look_closer(entry: str, shape: Shape, names: Sequence[str]) -> tuple[str, ...]:
    """Return the note that says how to see every line of the kernel with its cost."""
    given = [entry, str(shape.grid), str(shape.block), *names]
    call = f"trace({', '.join(given)}).report()"
    return (f"`{call}`, with values of your own for {', '.join(names)}, shows it line by line.",)


def _limit_lines(limit: Limit, counts: LaunchCounts, args: tuple) -> list[str]:
    """Return what to say of a limit: nothing if it is kept, else its sentence and the rows it is about."""
    missed = limit.judge(counts, args)
    if not missed:
        return []
    said, rows = missed
    rows = sorted(rows, key=lambda row: row.cost or row.requests, reverse=True)
    lines = [_row(row) for row in rows[:MOST_ROWS_TOLD]]
    more = len(rows) - MOST_ROWS_TOLD
    return [NOT_KEPT, said, *lines, *([f"… and {more} more lines."] if more > 0 else [])]


def _row(row: LineCount) -> str:
    place = f"line {row.line}, `{row.code}`: " if row.line else ""
    if row.where == "shuffle":
        return f"{place}{_number(row.requests, 'shuffle')}"
    if row.where == "barrier":
        return f"{place}{_number(row.requests, 'warp')} at the barrier"
    unit = "sector" if row.where == "global" else "wavefront"
    return (
        f"{place}{row.kind} of {row.array}, {_number(row.requests, 'request')}, "
        f"{_number(row.cost, unit)} ({row.each:.3g} each)"
    )


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _never_written(before: Any, after: Any, name: str, rows: Sequence[LineCount]) -> list[str]:
    """Say how many entries of the result hold the NaN that stood there before the launch, if any do.

    A NaN goes through sums and products as it is: where a line of `rows` adds to the result, it may have been
    written again.
    """
    alike = isinstance(before, np.ndarray) and isinstance(after, np.ndarray) and before.shape == after.shape
    if not alike or before.dtype.kind != "f" or not np.isnan(before).any():
        return []
    bits = f"u{before.dtype.itemsize}"  # a NaN that the kernel computed has others
    same = np.ascontiguousarray(before).view(bits) == np.ascontiguousarray(after).view(bits)
    left = int((np.isnan(before) & same).sum())
    if not left:
        return []
    reads = next((row for row in rows if row.array == name and _is_added_to(row, rows)), None)
    part = f"{left:,} of the {before.size:,} entries of {name}"
    if reads:
        return [
            f"NaN from before the launch is left in {name if left == before.size else part}: no thread wrote "
            f"there, or what it wrote was made from that NaN. Line {reads.line}, `{reads.code}`, reads "
            f"{name}: begin a sum with 0, in a variable of the thread."
        ]
    return [f"No thread wrote {name if left == before.size else part}: NaN stood there before the launch."]


def _is_added_to(row: LineCount, rows: Sequence[LineCount]) -> bool:
    """Whether the row's line reads an element and writes it, and no other line writes its array."""
    stores = {one.line for one in rows if one.array == row.array and one.kind == "store"}
    return row.kind == "atomic" or (row.kind == "load" and stores == {row.line})
