"""How deep the loops of an answer are nested, read through the functions that are called in them."""

from __future__ import annotations

import ast

from course_lib.grading.program import Program

Loop = ast.For | ast.While


def depth(program: Program) -> int:
    """Return how many loops of the answer run inside each other at most, those of its helpers included."""
    functions = {node.name: node for node in program.nodes() if isinstance(node, ast.FunctionDef)}
    known: dict[str, int] = {}  # 0 while a function is being read, so that a circle ends

    def read(name: str) -> int:
        deepest = known[name] = 0
        todo: list[tuple[ast.AST, int]] = [(functions[name], 0)]
        while todo:
            node, around = todo.pop()
            called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
            if called in functions:
                deepest = max(deepest, around + (known[called] if called in known else read(called)))
            around += _passes_over(node) if isinstance(node, Loop) else 0
            deepest = max(deepest, around)
            todo += ((one, around) for one in ast.iter_child_nodes(node))
        known[name] = deepest
        return deepest

    return read(program.entry) if program.entry in functions else 0


def _passes_over(loop: Loop) -> int:
    """Return for how many loops this one stands: several for np.ndindex, none if nothing changes in it."""
    if isinstance(loop, ast.While):
        return 0 if isinstance(loop.test, ast.Constant) else 1
    names = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
    used = {node.id for one in loop.body for node in ast.walk(one) if isinstance(node, ast.Name)}
    values = loop.iter.args if isinstance(loop.iter, ast.Call) else []
    if not names & used or (values and all(isinstance(one, ast.Constant) for one in values)):
        return 0
    called = loop.iter.func if isinstance(loop.iter, ast.Call) else None
    if getattr(called, "attr", getattr(called, "id", "")) == "ndindex":
        return max(len(names), len(values))
    return 1
