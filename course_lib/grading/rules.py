"""Rules about the heart of one task, read in the text of an answer: the order of its loops, a key handed on …

What an answer may be written in at all says `language`, the first rule of every task. A rule needs the text
and the entry's name, nothing that runs; one that cannot read the entry does not pass it.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from course_lib.grading.loop_nests import depth, writing_orders
from course_lib.grading.program import Program, at, bound_by, read_program, returns_something


class Rule(Protocol):
    """A condition on the source."""

    def judge(self, source: str, entry: str) -> str | None:
        """Return None if the rule is kept, else one sentence that names the fault."""


class EntryRule:
    """A rule on the entry: one that cannot be read does not pass; without a result, running says more."""

    def judge(self, source: str, entry: str) -> str | None:
        """Return None if the rule is kept, else one sentence that names the fault."""
        program = read_program(source, entry)
        function = program.function()
        if function is None:
            return f"{entry} cannot be read: write it with `def {entry}(…)`, at the top of a cell."
        return self.fault(program, function) if returns_something(function) else None

    def fault(self, program: Program, function: ast.FunctionDef) -> str | None:
        """Return a sentence that names the fault of an entry that can be read, None if there is none."""
        raise NotImplementedError


@dataclass(frozen=True)
class LoopOrder(EntryRule):
    """Every element of the result is computed in loops of this order: LoopOrder("kij").

    i runs over the rows of the result, j over its columns, k over the summands, whatever they are called.
    """

    order: str

    def fault(self, program: Program, function: ast.FunctionDef) -> str | None:
        """Return a sentence unless all loops that compute the result have the order, outermost first."""
        for node in program.nodes():
            if isinstance(node, ast.FunctionDef) and node is not function and _has_loop(node):
                return f"The loops are in {node.name}: this task wants them in {program.entry} itself."
        found = writing_orders(function)
        wrong = [one for one in found if one[0] != tuple(self.order)]
        if found and not wrong:
            return None
        said = _order_text(*wrong[0]) if wrong else "not nested, or they do not write the result"
        return f"The loops run over {said}; this task wants {', '.join(self.order)}, outermost first."


@dataclass(frozen=True)
class NestedLoops(EntryRule):
    """At least so many loops run inside each other; the functions called in a loop count with theirs.

    np.ndindex over several axes is as many loops as it has axes; a loop in which nothing changes is none.
    """

    at_least: int
    instead: str

    def fault(self, program: Program, function: ast.FunctionDef) -> str | None:
        """Return a sentence if arithmetic with whole arrays stands for loops that are asked for."""
        found = depth(program)
        if found >= self.at_least:
            return None
        return f"The deepest nest of loops in your answer has {found}: {self.instead}."


def _has_loop(function: ast.FunctionDef) -> bool:
    return any(isinstance(node, ast.For | ast.While | ast.comprehension) for node in ast.walk(function))


def _order_text(roles: tuple[str, ...], names: tuple[str, ...]) -> str:
    said = ", ".join(roles)
    return said if roles == names else f"{said} (you call them {', '.join(names)})"


@dataclass(frozen=True)
class OnlyHandedTo(EntryRule):
    """The argument `key` of the entry goes to the helper `to` and nowhere else: nobody looks at it.

    A judged function gets plain numbers, never a function. So what an answer is to explore by experiment
    comes as a helper in the assignment and a key as an argument; the helper knows what the key means. A
    function of the answer's own may take it on as an argument of the same name.
    """

    key: str
    to: str

    def fault(self, program: Program, function: ast.FunctionDef) -> str | None:
        """Return a sentence for the first use of the key that is no handing on."""
        if self.key not in _parameters(function):
            return self._said(function, program.source)
        nodes = [node for node in program.nodes() if id(node) not in self._of_helper(program)]
        taking: dict[str, list[ast.FunctionDef]] = {}
        for node in nodes:
            if isinstance(node, ast.FunctionDef):
                taking.setdefault(node.name, []).append(node)
        others = {*dir(builtins)}  # which such a name may still mean elsewhere
        others.update(*(_bound(node) for node in nodes if not isinstance(node, ast.FunctionDef)))
        helper = program.functions.get(self.to)
        taking = {name: every for name, every in taking.items() if name not in others}
        taking |= {self.to: [helper]} if helper else {}
        fine = {
            place for node in nodes if isinstance(node, ast.Call) for place in self._handed_on(node, taking)
        }
        for node in nodes:
            if isinstance(node, ast.Name) and node.id == self.key and id(node) not in fine:
                return self._said(node, program.source)
        return None

    def _said(self, node: ast.AST, source: str) -> str:
        return (
            f"Your answer looks at {self.key}{at(node, source)}: hand it to {self.to} as it is, "
            "and find out by experiment."
        )

    def _of_helper(self, program: Program) -> set[int]:
        helper = program.functions.get(self.to)
        return {id(node) for node in ast.walk(helper)} if helper else set()

    def _handed_on(self, call: ast.Call, taking: dict[str, list[ast.FunctionDef]]) -> Iterator[int]:
        """Yield the ids of the arguments of a call in whose place the key may stand."""
        meant = taking.get(call.func.id, []) if isinstance(call.func, ast.Name) else []
        if not meant or any(isinstance(one, ast.Starred) for one in call.args):
            return
        for place, one in enumerate(call.args):
            if all([*_positional(each), *[""] * 99][place] == self.key for each in meant):
                yield id(one)
        for word in call.keywords:
            if word.arg == self.key and all(self.key in _parameters(each) for each in meant):
                yield id(word.value)


def _bound(node: ast.AST) -> set[str]:
    return {node.arg} if isinstance(node, ast.arg) else bound_by(node)


def _positional(function: ast.FunctionDef) -> list[str]:
    return [one.arg for one in (*function.args.posonlyargs, *function.args.args)]


def _parameters(function: ast.FunctionDef) -> list[str]:
    return [one.arg for one in (*function.args.args, *function.args.kwonlyargs)]
