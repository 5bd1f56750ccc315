"""The three loops of the first circle, one pair at a time.

The code beside the matrices is the rung's own (`circles.python_lists.multiply`), so picture and code cannot
drift apart.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from course_lib.theme import (
    DEEP_PINK,
    GREY,
    GREY_TINT,
    INK,
    LINE,
    PAPER,
    PINK,
    PINK_TINT,
    QUIET,
    VIOLET,
    VIOLET_TINT,
)
from course_lib.views.live import Steps
from course_lib.views.paper import CODE_LINE, Area, Html, Sheet, card, number, plural, side_by_side

LARGEST = 6
PANEL = 430  # widest small picture: two fit beside each other in a notebook
Matrix = tuple[tuple[float, ...], ...]


def step_through(A: Sequence[Sequence[float]], B: Sequence[Sequence[float]]) -> Stepper:
    """Return a widget that steps through A @ B (at most 6 x 6 each) as the three Python loops compute it."""
    return Stepper(*_checked(A, B))


@dataclass(frozen=True)
class LoopStep:
    """One moment: which line runs (`kind`), at which row i, column j and pair k (None: not there yet)."""

    kind: str  # "columns", "row", "column", "pair", "append" or "done"
    i: int | None = None
    j: int | None = None
    k: int | None = None


#: The line of `multiply` that each kind of step runs: how it begins.
LINES = {
    "columns": "columns =",
    "row": "for row in A",
    "column": "for col in columns",
    "pair": "total +=",
    "append": "C[-1].append(total)",
}


class Stepper(Steps):
    """Every step of A @ B (M x K times K x N) in the order the three loops take them."""

    def __init__(self, A: Matrix, B: Matrix) -> None:
        self.A, self.B = A, B
        self.shape = (len(A), len(B), len(B[0]))
        self.steps = tuple(self._walk())
        self.last = len(self.steps) - 1
        self._done_at = {(at.i, at.j): step for step, at in enumerate(self.steps) if at.kind == "append"}
        self.code = _code()
        starts = self.next_where(lambda step: self.steps[step].kind == "column")
        super().__init__({"next element »": ("Jump to the next element of C", starts)})

    def static(self) -> Html:
        """Return a sheet of the key steps."""
        panels = [self.panel(step) for step in self.key_steps()]
        M, K, N = self.shape
        done = self.pairs(self.last)
        words = (
            f"Step by step through A ({M} x {K}) times B ({K} x {N}) in three Python loops: row in A, "
            f"column in B, pair in (row, column). In all {done} multiplications and "
            f"{done} additions, {M}·{N}·{K} of each."
        )
        title = f"{M}·{N}·{K} = {done} pairs, one after the other"
        return Html(card(side_by_side(panels), words, title=title), words)

    def _walk(self):
        M, K, N = self.shape
        yield LoopStep("columns")
        for i in range(M):
            yield LoopStep("row", i)
            for j in range(N):
                yield LoopStep("column", i, j)
                for k in range(K):
                    yield LoopStep("pair", i, j, k)
                yield LoopStep("append", i, j)
        yield LoopStep("done")

    def pairs(self, step: int) -> int:
        """Return how many pairs were multiplied and added up to and including the step."""
        return sum(1 for at in self.steps[: step + 1] if at.kind == "pair")

    def reads(self, step: int) -> int:
        """Return how many numbers were taken out of a list up to and including the step."""
        _, K, N = self.shape
        return K * N + 2 * self.pairs(step)

    def total(self, step: int) -> float:
        """Return the running sum after the step (0 before the first pair of an element)."""
        at = self.steps[step]
        if at.kind == "pair":
            return _dot(self.A[at.i], self.B, at.j, at.k + 1)
        return _dot(self.A[at.i], self.B, at.j, self.shape[1]) if at.kind == "append" else 0.0

    def key_steps(self) -> list[int]:
        """Return up to six telling steps: first pairs, first sum, next column, next row, the end."""
        M, K, N = self.shape
        wanted = [
            LoopStep("pair", 0, 0, 0),
            LoopStep("pair", 0, 0, min(1, K - 1)),
            LoopStep("append", 0, 0),
            LoopStep("pair", 0, min(1, N - 1), 0),
            LoopStep("pair", min(1, M - 1), 0, 0),
            LoopStep("done"),
        ]
        return sorted({self.steps.index(step) for step in wanted})

    def frame(self, step: int) -> str:
        """Return the picture of a step: matrices, running sum and counters, with the code beside them."""
        on = Sheet()
        width, height = self._matrices(on, step)
        left = max(width, 250.0) + 36
        code_width = 7.6 * max(map(len, self.code)) + 24
        begins = LINES.get(self.steps[step].kind, "no line")
        on.code(self.code, left, 8, code_width, lambda _, line: line.strip().startswith(begins))
        below = 8 + CODE_LINE * len(self.code) + 34
        self._counters(on, step, left, below)
        bottom = max(height, below + 66) + 26
        on.write(12, bottom, self._sentence(step), size=15, bold=True)
        longest = max(len(self._sentence(any_step)) for any_step in range(self.last + 1))
        full = max(left + code_width, 12 + 8.6 * longest) + 12  # one size for all steps: nothing jumps
        return on.svg(full, bottom + 14, self._label(step))

    def panel(self, step: int) -> str:
        """Return a small picture of a step: matrices, running sum and one line of counts."""
        on = Sheet()
        width, height = self._matrices(on, step)
        pairs = self.pairs(step)
        on.write(12, height + 22, self._sentence(step), size=13, bold=True)
        count = f"{plural(pairs, 'multiplication')}, {plural(pairs, 'addition')}"
        on.write(12, height + 42, count, size=12.5, fill=QUIET)
        full = max(width, 20 + 7.6 * len(self._sentence(step)), 270.0)
        return on.svg(full, height + 52, self._label(step), widest=PANEL)

    def _matrices(self, on: Sheet, step: int) -> tuple[float, float]:
        """Draw B above C and A to its left, so that a row and a column meet in the element they make."""
        at = self.steps[step]
        M, K, N = self.shape
        written = [number(x) for matrix in (self.A, self.B) for row in matrix for x in row]
        written += [self._element(self.last, i, j) for i in range(M) for j in range(N)]
        side = 34.0 if max(map(len, written)) <= 4 else 44.0
        high = 32.0
        x_A, x_B = 12.0, 12.0 + K * side + 26
        y_B, y_A = 26.0, 26.0 + K * high + 34
        active = at.kind in ("pair", "append", "column")
        row = at.i
        column = at.j if active else None
        now = (at.i, at.k, at.j) if at.kind == "pair" else (None, None, None)
        on.write(x_A, y_A - 8, f"A  {M} × {K}", fill=DEEP_PINK, bold=True)
        on.write(x_B, y_B - 8, f"B  {K} × {N}", fill=VIOLET, bold=True)
        on.write(x_B, y_A - 8, f"C  {M} × {N}", bold=True)

        def cells(x: float, y: float, shown: Sequence[Sequence[str]], ground: Callable) -> None:
            for i, line in enumerate(shown):
                for j, text in enumerate(line):
                    _cell(on, (x + j * side, y + i * high, side, high), text, ground(i, j, text))

        def of_A(i: int, k: int, _: str) -> str:
            return PINK if (i, k) == now[:2] else PINK_TINT if i == row else PAPER

        def of_B(k: int, j: int, _: str) -> str:
            return VIOLET if (k, j) == now[1:] else VIOLET_TINT if j == column else PAPER

        cells(x_A, y_A, [[number(x) for x in line] for line in self.A], of_A)
        cells(x_B, y_B, [[number(x) for x in line] for line in self.B], of_B)
        C = [[self._element(step, i, j) for j in range(N)] for i in range(M)]
        cells(x_B, y_A, C, lambda i, j, text: GREY_TINT if text else PAPER)
        if active:
            place = x_B + at.j * side, y_A + at.i * high
            on.box(*place, side, high, fill="none", stroke=INK, stroke_width=3)
        band = {"fill": "none", "stroke_width": 2.5, "radius": 3}
        if row is not None:
            on.box(x_A, y_A + row * high, K * side, high, stroke=DEEP_PINK, **band)
        if column is not None:
            on.box(x_B + column * side, y_B, side, K * high, stroke=VIOLET, **band)
        return x_B + N * side + 12, y_A + M * high + 4

    def _element(self, step: int, i: int, j: int) -> str:
        """Return what stands in C[i][j] after the step; the running sum counts as standing there."""
        at = self.steps[step]
        if at.kind in ("column", "pair") and (i, j) == (at.i, at.j):
            return number(self.total(step))
        return number(_dot(self.A[i], self.B, j, self.shape[1])) if self._done_at[i, j] <= step else ""

    def _counters(self, on: Sheet, step: int, x: float, y: float) -> None:
        M, K, N = self.shape
        lines = [
            ("multiplications", self.pairs, f"M·N·K = {M}·{N}·{K}"),
            ("additions", self.pairs, f"M·N·K = {M}·{N}·{K}"),
            ("numbers read", self.reads, f"2·M·N·K + K·N = 2·{M * N * K} + {K * N}"),
        ]
        for row, (name, count, formula) in enumerate(lines):
            top = y + 22 * row
            on.write(x, top, name)
            on.write(x + 152, top, count(step), bold=True, anchor="end")
            on.write(x + 160, top, f"of {count(self.last)}")
            on.write(x + 212, top, formula, size=12, fill=QUIET)

    def _sentence(self, step: int) -> str:
        """Return the step in one line: "row 1, column 2:  1·5 + 2·7 = 19"."""
        at = self.steps[step]
        M, K, N = self.shape
        if at.kind == "columns":
            return f"Before the loops: read B once and make {N} columns of it"
        if at.kind == "row":
            return f"row {at.i + 1} of {M}"
        if at.kind == "done":
            return f"Done: {M}·{N} = {M * N} elements, {M}·{N}·{K} = {M * N * K} pairs"
        place = f"row {at.i + 1}, column {at.j + 1}"
        if at.kind == "column":
            return f"{place}:  total = 0"
        if at.kind == "append":
            return f"{place}:  {number(self.total(step))} goes into C"
        pairs = [(self.A[at.i][k], self.B[k][at.j]) for k in range(at.k + 1)]
        terms = " + ".join(f"{_factor(a)}·{_factor(b)}" for a, b in pairs)
        return f"{place}:  {terms} = {number(self.total(step))}"

    def _label(self, step: int) -> str:
        done = f"{self.pairs(step)} of {self.pairs(self.last)}"
        return (
            f"Step {step} of {self.last}: {self._sentence(step)}. {done} multiplications, {done} additions, "
            f"{self.reads(step)} of {self.reads(self.last)} numbers read."
        )


def _dot(row: Sequence[float], B: Matrix, j: int, count: int) -> float:
    """Return the first `count` terms of row · column j, added in order as the loop adds them."""
    total = 0.0
    for k in range(count):
        total += row[k] * B[k][j]
    return total


def _factor(value: float) -> str:
    return f"({number(value)})" if value < 0 else number(value)


def _cell(on: Sheet, area: Area, content: str, ground: str) -> None:
    strong = ground in (PINK, VIOLET)
    words = {"size": 15 if len(content) <= 4 else 12, "ink": PAPER if strong else INK, "bold": strong}
    edge = LINE if ground != PAPER else GREY
    on.cell(area, area[3] / 2 + 5, content, fill=ground, stroke=edge, stroke_width=0.8, **words)


def _code() -> list[str]:
    """Return the body of the rung's function, without its docstring, shifted to the margin."""
    from course_lib.circles.python_lists import multiply

    text = inspect.getsource(multiply)
    _, first, *_ = ast.parse(text).body[0].body
    return textwrap.dedent("\n".join(text.splitlines()[first.lineno - 1 :])).splitlines()


def _checked(A: Any, B: Any) -> tuple[Matrix, Matrix]:
    """Return A and B as tuples of floats; raises one sentence for what cannot be stepped through."""
    first, second = _matrix("A", A), _matrix("B", B)
    if len(first[0]) != len(second):
        raise ValueError(
            f"A is {len(first)} x {len(first[0])} and B is {len(second)} x {len(second[0])}, but A needs "
            "as many columns as B has rows: check the order of the operands."
        )
    return first, second


def _matrix(name: str, rows: Any) -> Matrix:
    try:
        matrix = tuple(tuple(float(x) for x in row) for row in rows)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must be a matrix of numbers, as a list of rows: for example [[1, 2], [3, 4]]."
        ) from None
    if not matrix or not matrix[0] or len({len(row) for row in matrix}) != 1:
        raise ValueError(f"{name} must have at least one row and one column, and rows of one length.")
    if max(len(matrix), len(matrix[0])) > LARGEST:
        raise ValueError(
            f"{name} is {len(matrix)} x {len(matrix[0])}, but at most {LARGEST} x {LARGEST} can be "
            "followed by eye: step through a corner of it."
        )
    return matrix
