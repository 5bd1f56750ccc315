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


LOOPS = (ast.For, ast.While)


@dataclass(frozen=True)
class ReadOnce:
    """The answer reads elements of an argument in one place, under so many loops: ReadOnce("B", loops=2).

    A third loop around that place would go over the rows, and read every number of B once for each of them.
    """

    name: str
    loops: int

    @property
    def wanted(self) -> str:
        return f"{self.name}[...] read in one place, under {self.loops} loops"

    def judge(self, source: str, entry: str) -> str | None:
        """Return a sentence if it is read in several places, in another loop, or under another name."""
        program = Program(source, entry)
        function = program.function()
        named = [one.arg for one in function.args.args] if function else []
        if named and self.name not in named:
            return f"Your function has no parameter {self.name}: keep the parameters as they were given."
        reads, others = [], []
        for statement in program.reached:
            for path in _paths(statement):
                if isinstance(path[-1], ast.Name) and path[-1].id == self.name:
                    (reads if isinstance(path[-2], ast.Subscript) else others).append(path)
        name = f"{self.name}[...]"
        if any(not _is_harmless(path) for path in others):
            return (
                f"Your answer uses {self.name} in another way than {name}, {self.name}.shape and "
                f"{self.name}.dtype: read single numbers, {self.name}[k, j], in one place."
            )
        if len(reads) > 1:
            return (
                f"Your answer reads {name} in {len(reads)} places: read the number once, keep it in a local "
                "variable, and use it for all rows of the tile. That is what the tile is for."
            )
        around = sum(isinstance(node, LOOPS) for path in reads for node in path)
        if around > self.loops:
            return (
                f"Your answer reads {name} under {around} loops, so each number of {self.name} is read more "
                f"than once: {self.loops} loops, over j and over k, are enough. Write the four rows out."
            )
        return None


def _paths(node: ast.AST, above: tuple[ast.AST, ...] = ()) -> Iterator[tuple[ast.AST, ...]]:
    """Yield the way down to every node; what a `for` iterates over is evaluated outside that loop."""
    yield (*above, node)
    for child in ast.iter_child_nodes(node):
        outside = isinstance(node, ast.For) and child is node.iter
        yield from _paths(child, above if outside else (*above, node))


def _is_harmless(path: tuple[ast.AST, ...]) -> bool:
    """Whether only the shape or the type is asked for, or the name is bound (a parameter is no Name)."""
    parent = path[-2]
    size = isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id == "len"
    return (isinstance(parent, ast.Attribute) and parent.attr in ("shape", "dtype", "size", "ndim")) or size
