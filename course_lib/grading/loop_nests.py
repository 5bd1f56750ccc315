"""Loop nests of a matrix product, read from source text: which loop runs over rows, columns, summands.

What a loop is called does not matter. Its role follows from where its variable stands: i and j index the
result, k indexes the columns of the first argument and the rows of the second. How deep loops are nested is
read through the functions that are called in them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from course_lib.grading.program import Program, bindings

UNKNOWN = "?"
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


def writing_orders(function: ast.FunctionDef) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return for each place that computes an element of the result the loops around it, outermost first.

    Each is (roles, names): (("k", "i", "j"), ("kk", "ii", "jj")); "?" is a loop without a role of its own.
    Setting elements to a constant is no computing. Loops beside the write, inside the same loop, count too:
    a sum in a local name.
    """
    results = _results(function)
    found = []
    for loops, statement in _inside_loops(function.body):
        if not _computes(statement, results):
            continue
        nest = [*loops, *_deepest(loops[-1].body, statement)]
        roles = _roles(function, loops[0], results)
        names = [_variable(loop) for loop in nest]
        found.append((tuple(roles.get(name, UNKNOWN) for name in names), tuple(names)))
    return list(dict.fromkeys(found))


def _inside_loops(body: list[ast.stmt], around: tuple[Loop, ...] = ()) -> Iterator:
    """Yield (loops around it, statement) for every simple statement in a loop."""
    for statement in body:
        inner = (*around, statement) if isinstance(statement, Loop) else around
        parts = [getattr(statement, part, []) for part in ("body", "orelse", "finalbody")]
        if not any(parts) and around:
            yield around, statement
        for part in parts:
            yield from _inside_loops(part, inner)


def _results(function: ast.FunctionDef) -> set[str]:
    """Return the names of the result: those returned, and views of them."""
    nodes = list(ast.walk(function))
    own = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    returned = [node.value for node in nodes if isinstance(node, ast.Return) and node.value is not None]
    names = {one.id for value in returned for one in ast.walk(value) if isinstance(one, ast.Name)} & own
    pairs = [(target, _viewed(value)) for node in nodes for target, value in bindings(node)]
    while True:  # D = C[:], C = D.T, and so on
        more = {one for pair in pairs if names.intersection(pair) for one in pair if one in own} - names
        if not more:
            return names
        names |= more


def _viewed(value: ast.expr) -> str:
    """Return the name that C, C[i], C.T, C.reshape(…) look into."""
    while isinstance(value, ast.Subscript | ast.Attribute | ast.Call):
        if isinstance(value, ast.Subscript) and _is_element(value):
            return ""
        value = value.func if isinstance(value, ast.Call) else value.value
    return value.id if isinstance(value, ast.Name) else ""


def _is_element(value: ast.Subscript) -> bool:
    """Whether it takes one number: two indices and no slice."""
    return isinstance(value.slice, ast.Tuple) and not any(
        isinstance(one, ast.Slice) for one in value.slice.elts
    )


def _computes(statement: ast.stmt, results: set[str]) -> bool:
    """Whether the statement stores something computed in an element of the result."""
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
        return False
    stored = [
        node
        for node in ast.walk(statement)
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
    ]
    return any(_indexed(node)[0] in results for node in stored)


def _deepest(body: list[ast.stmt], statement: ast.stmt) -> list[Loop]:
    """Return the deepest chain of loops in a body, beside the statement."""
    chains = [
        [one, *_deepest(one.body, statement)]
        for one in body
        if isinstance(one, Loop) and statement not in ast.walk(one)
    ]
    return max(chains, key=len, default=[])


def _variable(loop: Loop) -> str:
    """Return the name that a loop counts with: of `for j, b in enumerate(…)`, of `while j < N`, too."""
    if isinstance(loop, ast.While):
        counter = loop.test.left if isinstance(loop.test, ast.Compare) else None
        stored = [node for one in loop.body for node in ast.walk(one) if _counts(node, counter)]
        one_step = len(stored) == 1 and any(
            isinstance(one, ast.AugAssign) and isinstance(one.op, ast.Add) and one.target is stored[0]
            for one in loop.body
        )
        return counter.id if one_step else UNKNOWN
    target = loop.target
    if isinstance(target, ast.Tuple) and getattr(getattr(loop.iter, "func", None), "id", "") == "enumerate":
        target = target.elts[0]
    return target.id if isinstance(target, ast.Name) else UNKNOWN


def _counts(node: ast.AST, counter: ast.expr | None) -> bool:
    named = isinstance(node, ast.Name) and isinstance(counter, ast.Name) and node.id == counter.id
    return named and isinstance(node.ctx, ast.Store)


def _roles(function: ast.FunctionDef, nest: Loop, results: set[str]) -> dict[str, str]:
    """Map the loop variables of a nest to "i", "j" and "k"."""
    names = [one.arg for one in function.args.args][:2]
    first, second = names if len(names) == 2 else ("", "")
    row_of = {
        target: _indexed(value)[0]
        for node in ast.walk(nest)
        for target, value in bindings(node)
        if isinstance(value, ast.Subscript) and len(_indexed(value)[1]) == 1
    }
    loops = {_variable(node) for node in ast.walk(nest) if isinstance(node, Loop)}
    uses: list[tuple[str, int, set[str]]] = []  # matrix, axis, loop variables in that index
    for node in ast.walk(nest):
        if isinstance(node, ast.Subscript):
            matrix, indices = _indexed(node)
            shift = 1 if matrix in row_of else 0
            for axis, index in enumerate(indices):
                inside = {one.id for one in ast.walk(index) if isinstance(one, ast.Name)} & loops
                uses.append((row_of.get(matrix, matrix), axis + shift, inside))
    roles: dict[str, str] = {}
    for role, wanted in (
        ("i", [(name, 0) for name in results]),
        ("j", [(name, 1) for name in results]),
        ("k", [(first, 1)]),
        ("k", [(second, 0)]),
    ):
        if role == "k" and "k" in roles.values():
            continue
        for matrix, axis, inside in uses:
            if (matrix, axis) in wanted:
                for name in inside:
                    roles.setdefault(name, role)
    return roles


def _indexed(node: ast.expr) -> tuple[str, list[ast.expr]]:
    """Return the name and the indices of C[i, j], C[i][j] or C[i]; ("", []) for anything else."""
    indices: list[ast.expr] = []
    while isinstance(node, ast.Subscript):
        own = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        indices = [*own, *indices]
        node = node.value
    return (node.id, indices) if isinstance(node, ast.Name) else ("", [])
