"""Finding in source text what a function keeps from one call to the next."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from course_lib.grading.program import Program, bindings, root_name, words

CHANGING = words("""
    append extend insert add update setdefault pop popitem clear remove discard reverse sort __setitem__
    __setattr__ send
""")
MUTABLE = (ast.Dict, ast.List, ast.Set, ast.DictComp, ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.Call)
Function = ast.FunctionDef | ast.Lambda


def kept(program: Program) -> Iterator[tuple[ast.AST, str]]:
    """Yield (node, words for it) for each way to remember something that the entry can reach."""
    shared = {
        name
        for statement in program.tree.body
        for name, value in bindings(statement)
        if isinstance(value, MUTABLE)
    }
    entry = program.function()
    inside = {id(node) for node in ast.walk(entry)} if entry else set()
    for node in program.nodes():
        if isinstance(node, Function):
            # the entry's locals end with the call; those around any other inner function may outlive it
            own = _own_names(entry if id(node) in inside else node)
            yield from _of_function(node, own, shared)
        elif isinstance(node, ast.ClassDef):
            yield node, "a class"


def _of_function(function: Function, own: set[str], shared: set[str]) -> Iterator[tuple[ast.AST, str]]:
    """Yield what a function with these own names remembers; `shared` are changeable things outside."""
    for default in (*function.args.defaults, *filter(None, function.args.kw_defaults)):
        if isinstance(default, MUTABLE) or (isinstance(default, ast.Name) and default.id in shared):
            yield default, "a default value that can change"
    for node in ast.walk(function):
        if isinstance(node, ast.Global | ast.Nonlocal):
            yield node, "global" if isinstance(node, ast.Global) else "nonlocal"
        elif isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            if root_name(node) not in own:
                yield node, f"a write to {root_name(node) or 'something'} outside the function"
        elif isinstance(node, ast.Call):
            yield from _of_call(node, own)
    for node in ast.walk(function):
        for name, value in bindings(node):
            if isinstance(value, ast.Name | ast.Subscript) and root_name(value) in shared - own:
                yield value, f"another name ({name}) for {root_name(value)}, which outlives the call"


def _of_call(node: ast.Call, own: set[str]) -> Iterator[tuple[ast.AST, str]]:
    if isinstance(node.func, ast.Name) and node.func.id in ("setattr", "delattr"):
        yield node, node.func.id
    if isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING:
        root = root_name(node.func)
        if root and root not in own:
            yield node, f"{root}.{node.func.attr} on something outside the function"


def _own_names(function: Function) -> set[str]:
    """Return the arguments and local names of a function and of the functions in it."""
    found = {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
    stored = (node for node in ast.walk(function) if isinstance(node, ast.Name))
    return found | {node.id for node in stored if isinstance(node.ctx, ast.Store)}
