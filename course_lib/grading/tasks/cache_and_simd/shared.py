"""What several tasks of chapter 04 use, on top of what chapter 02 has: the products, inputs and rules."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from course_lib.grading.program import Program
from course_lib.grading.rules import (
    PRODUCTS,
    WHOLE_ARRAY,
    FastmathOnly,
    MustBeCompiled,
    NoCalls,
    NoOperator,
    OnlyImports,
)
from course_lib.grading.tasks.compiled_loops.shared import pair

#: Compiled loops without a product or a sum from a library.
LOOPS_ONLY = (
    OnlyImports(("numba", "numpy", "math")),
    NoOperator("@"),
    NoCalls(PRODUCTS | WHOLE_ARRAY, "this task is to write the loops yourself"),
    MustBeCompiled(),
    FastmathOnly(),
)


def zero_meets_inf(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return A (rows, 5) and B (5, rows + 3): in each row of A a 0 meets inf, inf a 0, and B holds a NaN."""
    A, B = pair(rng, rows, 5, rows + 3)
    for row in range(rows):
        A[row, 1], A[row, 3] = 0.0, np.inf if row % 2 else -np.inf
    B[1, rows], B[3, rows + 1], B[0, rows + 2] = np.inf, 0.0, np.nan
    return A, B


@dataclass(frozen=True)
class ReadOnce:
    """The answer reads each number of an argument once, as far as the text tells: ReadOnce("B", loops=2).

    One and the same element, B[k, j], stands in one place, under so many loops, as a single number. A third
    loop would go over the rows, and read every number of B once for each of them. The answer may hand B on to
    a function of its own: what is read there is read under the loops around the call, too.
    """

    name: str
    loops: int

    @property
    def wanted(self) -> str:
        return f"each element of {self.name} read in one place, under {self.loops} loops"

    def judge(self, source: str, entry: str) -> str | None:
        """Return a sentence if it is read in several places, in another loop, or under another name."""
        program = Program(source, entry)
        function = program.function()
        if function is None or function.args.vararg:
            return None
        if self.name not in [one.arg for one in function.args.args]:
            return f"Your function has no parameter {self.name}: keep the parameters as they were given."
        own = {one.name: one for one in ast.walk(program.tree) if isinstance(one, ast.FunctionDef)}
        reads = list(_reads(own, function, self.name))
        name = f"{self.name}[...]"
        if any(read.element is None for read in reads):
            return (
                f"Your answer uses {self.name} in another way than {name} and {self.name}.shape: read single "
                f"numbers, {self.name}[k, j], and call nothing else than your own functions with it."
            )
        places = [read.element for read in reads]
        if len(set(places)) < len(places):
            return (
                f"Your answer reads one element of {name} in several places ({len(places)} in all): read the "
                "number once, keep it in a local variable, and use it for all rows of the tile. That is what "
                "the tile is for."
            )
        around = max((read.loops for read in reads), default=0)
        if around > self.loops:
            return (
                f"Your answer reads {name} under {around} loops, so each number of {self.name} is read more "
                f"than once: {self.loops} loops, over j and over k, are enough. Write the four rows out."
            )
        return None


@dataclass(frozen=True)
class _Read:
    """An element in the answer's own words, "k, j", None for any other use; and how many loops are around."""

    element: str | None
    loops: int


def _reads(
    own: dict[str, ast.FunctionDef], function: ast.FunctionDef, name: str, outside: int = 0
) -> Iterator[_Read]:
    others = {one: other for one, other in own.items() if other is not function}  # a circle would never end
    for path in _paths(function):
        node, parent = path[-1], path[-2] if len(path) > 1 else None
        if not isinstance(node, ast.Name) or node.id != name:
            continue
        loops = outside + sum(map(_loops, path))
        if isinstance(parent, ast.Subscript) and parent.value is node:
            whole = any(isinstance(one, ast.Slice) for one in ast.walk(parent.slice))
            yield _Read(None if whole else f"{function.name}: {ast.unparse(parent.slice)}", loops)
        elif isinstance(parent, ast.Call) and node in parent.args:
            called, place = ast.unparse(parent.func), parent.args.index(node)
            if called in others and place < len(others[called].args.args):
                yield from _reads(others, others[called], others[called].args.args[place].arg, loops)
            elif called != "len":
                yield _Read(None, loops)
        elif not (isinstance(parent, ast.Attribute) and parent.attr in ("shape", "dtype", "size", "ndim")):
            yield _Read(None, loops)


def _loops(node: ast.AST) -> int:
    """Return how many loops this node is: `for i, j in …` goes over two things."""
    if isinstance(node, ast.For):
        return len(node.target.elts) if isinstance(node.target, ast.Tuple) else 1
    if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp):
        return len(node.generators)
    return int(isinstance(node, ast.While))


def _paths(node: ast.AST, above: tuple[ast.AST, ...] = ()) -> Iterator[tuple[ast.AST, ...]]:
    """Yield the way down to every node; what a `for` iterates over is evaluated outside that loop."""
    yield (*above, node)
    for child in ast.iter_child_nodes(node):
        outside = isinstance(node, ast.For) and child is node.iter
        yield from _paths(child, above if outside else (*above, node))
