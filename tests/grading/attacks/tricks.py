"""The table of tricks (tricks.txt), and a generator that crosses each with every task that it could serve.

A combination is an answer with a trick in it: the task's solution, or one that earns nothing, though its
values are right. It is judged as in a graded class, from the notebook on: first its text; only what is not
refused is run.
"""

from __future__ import annotations

import ast
import functools
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from grading_tools import answers_of, code_cell, read_notebook, solution_path

TABLE = Path(__file__).with_name("tricks.txt").read_text(encoding="utf-8")
OTHER = "other_work"
PRODUCTS = ("02.matmul", "02.fast", "02.bug", "04.edge", "04.fast", "07.bmm")
PRODUCTS_OF_LISTS = ("00.addmm", "01.alias", "01.faster")
COUNTED = ("03.level", "03.winograd", "03.any", "03.bug")
IMPORTS = ("numpy as np", "math", "functools", "operator", "torch", "scipy.linalg")
CLASSICAL = """\
import math
import numpy as np
def {entry}(A, B{more}):
    C = np.empty((A.shape[0], B.shape[1]), A.dtype)
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            total = 0.0
            for k in range(A.shape[1]):
                u, v = A[i, k], B[k, j]
                total = total + {product}
            C[i, j] = total
    return C
"""
TILES = """\
def repaired(tiles, following, done):
    mine = 0
    while True:
        {taken}
        if tile >= tiles:
            return mine
        done[tile] += 1
        mine += 1
"""


@dataclass(frozen=True)
class Trick:
    """One line of the table; `must_be` is "refused" or "earned"."""

    place: str
    must_be: str
    before: str
    code: str


@dataclass(frozen=True)
class Combination:
    """An answer to a task, and what it is worth without its trick."""

    id: str
    text: str
    worth: float
    trick: Trick | None
    name: str

    @property
    def task(self):
        from course_lib.grading import registry

        return registry.task(self.id)


def tricks() -> list[Trick]:
    """Return the lines of the table."""
    found = []
    for place, must_be, lines in re.findall(
        r"^==== (.*): (refused|earned)\n((?:.+\n)+)", TABLE, re.MULTILINE
    ):
        for line in lines.splitlines():
            before, _, code = line.rpartition("  ## ")[0].replace("\\n", "\n").rpartition("||| ")
            found.append(Trick(place, must_be, before.strip(), code))
    return found


def combinations(every: int = 1) -> Iterator[Combination]:
    """Yield each trick in all tasks that it could serve, or in one of `every` of them; then whole answers."""
    from course_lib.grading import registry

    for number, trick in enumerate(tricks()):
        make, serves = PLACES[trick.place]
        tasks = [task for task in registry.tasks() if serves(task)]
        rare = every if len(tasks) > every else 1
        for task in tasks[number % rare :: rare]:
            worth = 0.0 if trick.must_be == "earned" else task.points
            name = f"{task.id}, {trick.place}: {trick.code}"
            yield Combination(task.id, make(trick, task), worth, trick, name)
    answers = r"^==== answer to (\S+) worth ([\d.]+): (.*)\n((?:(?!====).*\n)+)"
    for id, worth, tries, text in re.findall(answers, TABLE, re.MULTILINE):
        whole = f"{_given(registry.task(id))}\n\n{text}"
        yield Combination(id, whole, float(worth), None, f"{id}: {tries}")


# --- where a trick is put -----------------------------------------------------------------------------------


def _named(code: str, task, first: str = "") -> str:
    return code.replace("ENTRY", task.entry).replace("OTHER", OTHER).replace("FIRST", first)


def _first_statement(trick: Trick, task) -> str:
    text, function = _solution(task.chapter, task.entry)
    code = _named(trick.code, task, function.args.args[0].arg).split("\n")
    lines, place = text.splitlines(), function.body[0].lineno - 1
    lines[place:place] = [line if line.startswith("    ") else f"    {line}" for line in code]
    return "\n".join([_named(trick.before, task), *lines, ""])


def _decorator(trick: Trick, task) -> str:
    text, function = _worthless(task)
    lines = text.splitlines()
    lines.insert(min(one.lineno for one in (function, *function.decorator_list)) - 1, trick.code)
    return "\n".join([trick.before, *lines, ""])


def _binding(trick: Trick, task) -> str:
    text, function = _worthless(task)
    lines, place = text.splitlines(), function.lineno - 1
    lines[place] = lines[place].replace(f"def {task.entry}(", f"def {OTHER}(")
    return "\n".join([*lines, _named(trick.code, task), ""])


def _product(trick: Trick, task) -> str:
    needed = [one for one in IMPORTS if f"{one.split()[-1].split('.')[0]}." in trick.code]
    compiled = "from numba import njit\n@njit\n" if task.id in PRODUCTS else ""
    head = "".join(f"import {one}\n" for one in needed)
    return f"{head}{compiled}{_head(task)}    return {trick.code}\n"


def _uncounted(trick: Trick, task) -> str:
    more = ", cutoff" if task.id == "03.any" else ""
    return CLASSICAL.format(entry=task.entry, more=more, product=trick.code)


def _without_a_lock(trick: Trick, task) -> str:
    return _given(task) + TILES.format(taken=trick.code.replace("\n", "\n        "))


def _any(task) -> bool:
    return True


def _kernels(task) -> bool:
    return task.launch is not None


#: Where a trick goes, and to which tasks.
PLACES: dict[str, tuple[Callable, Callable]] = {
    "first statement of a right answer": (_first_statement, _any),
    "top of the text, and its use as the first statement of a right answer": (_first_statement, _any),
    "first statement of a right kernel": (_first_statement, _kernels),
    "top of the text, and its use as the first statement of a right kernel": (_first_statement, _kernels),
    "decorator of a right answer": (_decorator, _any),
    "the entry's name for a function of another name": (_binding, _any),
    "what a product returns in the place of loops": (
        _product,
        lambda task: task.id in PRODUCTS + PRODUCTS_OF_LISTS,
    ),
    "a product of u and v that is to look like none": (_uncounted, lambda task: task.id in COUNTED),
    "how the next tile is taken without a lock": (_without_a_lock, lambda task: task.id == "05.race"),
}


# --- answers ------------------------------------------------------------------------------------------------


Answer = tuple[str, ast.FunctionDef]


@functools.cache
def _solutions(chapter: str) -> str:
    text = answers_of(read_notebook(solution_path(chapter)))
    return re.sub(r"^from course_lib.*\n", "", text, flags=re.MULTILINE)


@functools.cache
def _solution(chapter: str, entry: str) -> Answer:
    """Return the answers to a chapter without what stands behind this one, and the function."""
    text = _solutions(chapter)
    function = _entry(text, entry)
    return "\n".join(text.splitlines()[: function.end_lineno]) + "\n", function


def _worthless(task) -> Answer:
    """Return an answer in which a library does the product; where there is none, the solution."""
    if task.id not in PRODUCTS + PRODUCTS_OF_LISTS:
        return _solution(task.chapter, task.entry)
    value = "A @ B" if task.id in PRODUCTS else "(np.array(A) @ np.array(B)).tolist()"
    if task.id == "00.addmm":
        value = "(beta * np.array(input) + alpha * (np.array(A) @ np.array(B))).tolist()"
    text = f"import numpy as np\n{_head(task)}    return {value}\n"
    return text, _entry(text, task.entry)


def _head(task) -> str:
    return f"def {task.entry}({ast.unparse(_solution(task.chapter, task.entry)[1].args)}):\n"


def _given(task) -> str:
    """Return what the assignment hands out above the answer to a task on threads, or on an oracle."""
    if task.chapter == "05":
        from course_lib.grading.tasks import threads

        return threads.LOCKS
    return {"10.accumulator": _text_of("TENSOR_CORE"), "10.scales": _text_of("KERNELS")}.get(task.id, "")


def _text_of(name: str) -> str:
    from course_lib.grading.tasks.fp8 import experiments

    return getattr(experiments, name)


def _entry(text: str, name: str) -> ast.FunctionDef:
    return [one for one in ast.parse(text).body if isinstance(one, ast.FunctionDef) and one.name == name][-1]


# --- judging ------------------------------------------------------------------------------------------------


def judged(one: Combination, sandbox, seed: int = 77) -> dict:
    """Return what a class gets for this answer alone."""
    from course_lib.grading.classroom.assignment import Item
    from course_lib.grading.classroom.verdict import SubmissionJob
    from course_lib.grading.classroom.verdict import judged as in_a_class

    item = Item(one.id, one.task.entry, f"{one.id}-points", one.task.points)
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [code_cell(one.text, "cell")]}
    data = json.dumps(notebook).encode()
    return in_a_class(SubmissionJob("short", "eve", (item,), data, "short.ipynb", (), seed, sandbox))[
        "tasks"
    ][0]


def refusal(one: Combination, monkeypatch, sandbox) -> str | None:
    """Return what is said of the text; None if it would run."""
    from course_lib.grading.sandbox import outside
    from course_lib.grading.sandbox.process import GraderFault

    def start(*_):
        raise GraderFault("it would run")

    with monkeypatch.context() as patch:
        patch.setattr(outside, "start", start)
        try:
            found = judged(one, sandbox)
        except GraderFault:
            return None
    assert found["points"] == 0, one.name
    return " ".join(found["teacher"]["lines"])
