"""The six orders of the three loops: what each innermost loop does to the memory of A, B and C.

All matrices are row-major: the next element of a row is `itemsize` bytes away, the next row a whole row away.
`strides_of` is the arithmetic; the drawings and the table say it in pictures and words.
"""

from __future__ import annotations

from collections.abc import Mapping

from course_lib.arguments import one_of, whole
from course_lib.theme import DEEP_PINK, GREY, INK, PAPER, PINK, PINK_TINT, QUIET, VIOLET, VIOLET_TINT
from course_lib.views.live import Steps, widgets
from course_lib.views.paper import Html, Sheet, card, in_bytes, note, plural, side_by_side, table

ORDERS = ("ijk", "ikj", "jik", "jki", "kij", "kji")
#: Which loop index walks down the rows of a matrix and which along its columns.
AXES = {"A": ("i", "k"), "B": ("k", "j"), "C": ("i", "j")}
COLOURS = {"A": (PINK, PINK_TINT, DEEP_PINK), "B": (VIOLET, VIOLET_TINT, VIOLET), "C": (INK, "#dedae3", INK)}
LINE_BYTES = 64
DRAWN = 4  # cells to a side in the drawings, whatever n is
PANEL = 410  # widest small picture: two fit beside each other in a notebook


def strides_of(order: str, n: int, itemsize: int) -> dict[str, int]:
    """Return how many bytes A, B and C, n x n, move at each step of the innermost loop.

    0 means that the loop stays on one element.
    """
    inner = order[-1]
    whole("n", n)
    whole("itemsize", itemsize)
    return {
        name: itemsize if inner == along else itemsize * n if inner == down else 0
        for name, (down, along) in AXES.items()
    }


def strides_table(n: int, itemsize: int) -> Html:
    """Return the table of all six orders: bytes a step in A, B, C, and cache lines fetched per step."""
    rows, words = [], []
    for order in sorted(ORDERS, key=lambda order: _lines_per_step(strides_of(order, n, itemsize))):
        moves = strides_of(order, n, itemsize)
        lines = f"{_lines_per_step(moves):.3g}"
        rows.append([f"<b>{order}</b>", order[-1], *(_briefly(moves[name]) for name in AXES), lines])
        said = ", ".join(f"{name} {_in_words(moves[name])}" for name in AXES)
        words.append(f"{order}: {said}, {lines}")
    head = ["order", "innermost", "in A", "in B", "in C", f"new {LINE_BYTES}-byte lines a step"]
    title = f"The innermost loop decides: {n:,} × {n:,} matrices, {in_bytes(itemsize)} an element"
    explained = note(
        f"How far a step of the innermost loop moves; bold: past a cache line of {LINE_BYTES} bytes. New "
        "lines a step: what must be fetched if no line is still in a cache when its turn comes again; a real "
        "cache does better."
    )
    text = title + "; new lines a step last. " + ". ".join(words) + "."
    return Html(card(table(head, rows, left=(0, 1, 2, 3, 4)) + explained, text, title=title), text)


def walk(order: str = "ikj") -> Walker:
    """Return a widget that walks the whole loop nest in a chosen order and shows the cells it touches."""
    return Walker(one_of("order", order, ORDERS))


class Walker(Steps):
    """The walk: `.order` is the drop-down."""

    last = DRAWN**3 - 1

    def __init__(self, order: str) -> None:
        self.order = widgets().Dropdown(
            options=ORDERS, value=order, description="order", tooltip="Keyboard: arrow keys choose an order"
        )
        next_turn = "Jump to the next turn of the middle loop", lambda step: (step // DRAWN + 1) * DRAWN
        leap = {f"next {order[1]} »": next_turn}
        super().__init__(leap, self.order, interval_ms=350, readout=False)
        self.order.observe(lambda _: self._name_the_leap(), names="value")

    def frame(self, step: int) -> str:
        """Return the picture of one step in the chosen order as SVG."""
        return frame(self.order.value, step)

    def static(self) -> Html:
        """Return six small pictures: where each order stands after the same number of steps."""
        step = DRAWN + 1
        panels = [frame(order, step, widest=PANEL) for order in ORDERS]
        inner = {end: [order for order in ORDERS if order[-1] == end] for end in "ijk"}
        words = (
            f"The first {step + 1} steps of the three loops for {DRAWN} x {DRAWN} matrices in all six "
            f"orders. With j innermost ({' and '.join(inner['j'])}) B and C are walked along their rows, "
            f"with i innermost ({' and '.join(inner['i'])}) A and C down their columns; with k innermost "
            f"({' and '.join(inner['k'])}) A along its rows and B down its columns."
        )
        title = f"After {step + 1} steps each order has touched other cells"
        return Html(card(side_by_side(panels), words, title=title), words)

    def _name_the_leap(self) -> None:
        (leap,) = self.jumps.values()
        leap.description = f"next {self.order.value[1]} »"


def frame(order: str, step: int, widest: float = 960) -> str:
    """Return where A, B and C of 4 x 4 are touched after `step` more steps of the nest, as SVG."""
    on = Sheet()
    cells = [_cells(order, earlier) for earlier in range(step + 1)]
    touched = {name: {cell[name] for cell in cells} for name in AXES}
    indices = _indices(order, step)
    side, n = 30.0, DRAWN
    on.write(12, 22, order, size=17, bold=True)
    at = "  ".join(f"{name} = {indices[name]}" for name in order)
    on.write(62, 22, at, size=14, mono=True)
    i, j, k = (indices[name] for name in "ijk")
    statement = f"C[{i}, {j}] += A[{i}, {k}] * B[{k}, {j}]"
    for position, name in enumerate(AXES):
        x = 12 + position * (n * side + 26)
        _touched_grid(on, name, x, 62.0, side, touched[name], cells[-1][name])
    width = 12 + 3 * (n * side + 26)
    bottom = 62 + n * side
    on.write(12, bottom + 24, statement, size=14, mono=True)
    seen = ", ".join(f"{plural(len(touched[name]), 'cell')} of {name}" for name in AXES)
    on.write(12, bottom + 44, f"step {step + 1} of {n**3:,}: {seen} so far", size=12.5, fill=QUIET)
    label = f"Loop order {order}, step {step + 1} of {n**3}: {statement}. Touched so far: {seen}."
    return on.svg(width, bottom + 56, label, widest=widest)


def _indices(order: str, step: int) -> dict[str, int]:
    return dict(zip(order, (step // DRAWN**2, step // DRAWN % DRAWN, step % DRAWN), strict=True))


def _cells(order: str, step: int) -> dict[str, tuple[int, int]]:
    indices = _indices(order, step)
    return {name: (indices[down], indices[along]) for name, (down, along) in AXES.items()}


def _touched_grid(
    on: Sheet, name: str, x: float, y: float, side: float, cells: set[tuple[int, int]], now: tuple[int, int]
) -> None:
    strong, tint, ink = COLOURS[name]
    down, along = AXES[name]
    on.write(x, y - 8, f"{name}[{down}, {along}]", size=13, fill=ink, bold=True)
    for row in range(DRAWN):
        for column in range(DRAWN):
            ground = strong if (row, column) == now else tint if (row, column) in cells else PAPER
            place = x + column * side, y + row * side
            on.box(*place, side, side, fill=ground, stroke=GREY, stroke_width=0.8)
    row, column = now
    centre = {"cx": x + column * side + side / 2, "cy": y + row * side + side / 2}
    on.tag("circle", **centre, r=side / 6, fill=PAPER)


def _in_words(step: int) -> str:
    if step == 0:
        return "stays"
    return f"moves {in_bytes(step)} a step" if step < LINE_BYTES else f"jumps {in_bytes(step)}"


def _briefly(step: int) -> str:
    return f"<b>{in_bytes(step)}</b>" if step >= LINE_BYTES else in_bytes(step) if step else "stays"


def _lines_per_step(moves: Mapping[str, int]) -> float:
    """Return how many new cache lines a step needs at most, when nothing survives in the cache."""
    return sum(min(step, LINE_BYTES) / LINE_BYTES for step in moves.values())
