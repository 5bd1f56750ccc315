"""Products of sums of blocks as grids of terms: what each contributes, and how the rest cancels.

A product (A11 + A22)(B11 + B22) is a set of terms A_ik B_lj. On a 4 x 4 grid – a row for each block of A,
a column for each block of B – it is a rectangle of signs. An algorithm is a list of rectangles whose sums
leave just the two terms of its definition for every block of C (so drawn by Fawzi et al., Nature 610, 2022).
"""

from __future__ import annotations

from collections.abc import Sequence

from course_lib.theme import INK
from course_lib.views.paper import (
    GREY_TINT,
    LINE,
    PINK_TINT,
    QUIET,
    VIOLET_TINT,
    Html,
    box,
    card,
    note,
    svg,
    write,
)

Rows = Sequence[Sequence[int]]

BLOCKS = ("11", "12", "21", "22")
CELL = 22  # px
LABEL = 28  # room for the names of rows and columns
GRID = LABEL + 4 * CELL
GAP = 46
LINE_HEIGHT = 16
SIGNS = {1: "+", -1: "\N{MINUS SIGN}"}


def block_products(left: Rows, right: Rows, into: Rows, *, name: str = "M") -> Html:
    """Return the picture of an algorithm for 2 x 2 blocks: one grid of terms for each of its products.

    left, right, into: a row for each product with the signs (-1, 0, 1) of the blocks 11, 12, 21, 22 of A, of
    B, and of C into which it goes. Raises ValueError for tables that do not fit together.
    """
    _check(left, right, into)
    grids, words = [], []
    for number, (a, b, c) in enumerate(zip(left, right, into, strict=True)):
        terms = [[x * y for y in b] for x in a]
        factors = _factor("A", a), _factor("B", b)
        grids.append((terms, f"{name}{number + 1}", (_goes(c), *factors)))
        words.append(f"{name}{number + 1} = {' '.join(factors)}, {_goes(c)}")
    label = f"{len(grids)} products of sums of blocks, each as a grid of its terms. " + "; ".join(words) + "."
    drawing = _lay_out(grids, label, columns=4)
    hint = "A row for each block of A, a column for each block of B: + and \N{MINUS SIGN} mark the terms."
    return Html(card(drawing + note(hint), label, title=_count(len(grids))), "\n".join(words))


def cancellation(left: Rows, right: Rows, into: Rows, block: str = "22", *, name: str = "M") -> Html:
    """Return the picture of one block of C: the products that go into it, and what is left of their terms.

    block: "11", "12", "21" or "22"; the tables as for `block_products`. Raises ValueError for another block.
    """
    _check(left, right, into)
    if block not in BLOCKS:
        raise ValueError(f"block is {block!r}, but it must be one of {', '.join(BLOCKS)}.")
    place = BLOCKS.index(block)
    total = [[0] * 4 for _ in range(4)]
    grids, words = [], []
    for number, (a, b, c) in enumerate(zip(left, right, into, strict=True)):
        if not c[place]:
            continue
        terms = [[c[place] * x * y for y in b] for x in a]
        total = [
            [t + u for t, u in zip(row, other, strict=True)] for row, other in zip(total, terms, strict=True)
        ]
        sign = SIGNS[c[place]]
        grids.append((terms, f"{sign} {name}{number + 1}", ()))
        words.append(f"{sign} {name}{number + 1}")
    rest = _terms(total)
    grids.append((total, f"C{block} = {rest}", ()))
    says = f"C{block} = {' '.join(words).removeprefix('+ ')} leaves {rest}"
    label = f"{says}: all other terms of these products cancel."
    return Html(card(_lay_out(grids, label, columns=5, has_result=True), label, title=says), label)


def _count(number: int) -> str:
    return f"{number} products of sums of blocks, and the terms that each of them makes"


def _check(left: Rows, right: Rows, into: Rows) -> None:
    sizes = {len(table) for table in (left, right, into)}
    good = len(sizes) == 1 and all(len(row) == 4 for table in (left, right, into) for row in table)
    if not good or any(
        sign not in (-1, 0, 1) for table in (left, right, into) for row in table for sign in row
    ):
        raise ValueError(
            "The tables left, right and into must have a row for each product, each of four signs "
            "-1, 0 or 1 (blocks 11, 12, 21, 22)."
        )


def _factor(matrix: str, signs: Sequence[int]) -> str:
    """Return a factor: A11, or a sum in parentheses."""
    text = _sum(matrix, signs)
    return f"({text})" if " " in text or text.startswith(SIGNS[-1]) else text


def _sum(matrix: str, signs: Sequence[int]) -> str:
    """Return "A11 + A22", the blocks with a + first."""
    named = sorted(zip(signs, BLOCKS, strict=True), key=lambda pair: -pair[0])
    text = " ".join(f"{SIGNS[sign]} {matrix}{block}" for sign, block in named if sign)
    return text[2:] if text.startswith("+") else text.replace(" ", "", 1)


def _goes(signs: Sequence[int]) -> str:
    """Return where a product goes: "into C21, -C22"."""
    named = zip(signs, BLOCKS, strict=True)
    return "into " + ", ".join(f"{SIGNS[-1] if s < 0 else ''}C{block}" for s, block in named if s)


def _terms(total: Sequence[Sequence[int]]) -> str:
    """Return a grid's terms in words: A11 B11 + A12 B21."""
    parts = [
        f"{SIGNS.get(count, f'{count:+d}')} A{BLOCKS[a]} B{BLOCKS[b]}"
        for a, row in enumerate(total)
        for b, count in enumerate(row)
        if count
    ]
    return " ".join(parts).removeprefix("+ ") or "nothing"


def _lay_out(grids: Sequence[tuple], label: str, columns: int, has_result: bool = False) -> str:
    """Return the grids in rows of `columns`; the last one is the sum of the others if it `has_result`."""
    lines = max(len(said) for _, _, said in grids)
    width, height = GRID + GAP + (44 if lines else 0), GRID + 28 + LINE_HEIGHT * lines
    parts = []
    for number, (terms, title, said) in enumerate(grids):
        x, y = number % columns * width + 4, number // columns * height + 16
        is_result = has_result and number == len(grids) - 1
        parts.append(_grid(x, y, terms, title, said, framed=is_result))
        if is_result:
            parts.append(write(x - GAP / 2, y + LABEL + 2 * CELL + 6, "=", size=20, anchor="middle"))
    extra = 60 if has_result else 0  # its title is long
    across, down = min(len(grids), columns), -(-len(grids) // columns)
    return svg(across * width - GAP / 2 + extra, down * height - 6, parts, label)


def _grid(
    x: float, y: float, terms: Sequence[Sequence[int]], title: str, said: Sequence[str], framed: bool
) -> str:
    """Return one grid of signs: its title, lines of what it is, then a cell for each term."""
    parts = [write(x, y, title, size=13, bold=True)]
    for number, line in enumerate(said):
        if number == 0:
            parts.append(write(x + LABEL, y, line, size=11.5, fill=QUIET))
        else:
            parts.append(write(x, y + number * LINE_HEIGHT, line, size=12))
    top, side = y + LABEL + LINE_HEIGHT * max(len(said) - 1, 0), x + LABEL
    for place, block in enumerate(BLOCKS):
        middle = (place + 0.5) * CELL
        parts.append(write(side + middle, top - 6, f"B{block}", size=9, fill=QUIET, anchor="middle"))
        parts.append(write(side - 5, top + middle + 4, f"A{block}", size=9, fill=QUIET, anchor="end"))
    for a, row in enumerate(terms):
        for b, count in enumerate(row):
            fill = {0: GREY_TINT, 1: PINK_TINT, -1: VIOLET_TINT}[(count > 0) - (count < 0)]
            left, up = side + b * CELL, top + a * CELL
            parts.append(box(left, up, CELL, CELL, fill=fill, stroke=LINE))
            if count:
                sign = SIGNS.get(count, f"{count:+d}")
                parts.append(
                    write(left + CELL / 2, up + CELL / 2 + 5, sign, size=15, bold=True, anchor="middle")
                )
    if framed:
        parts.append(box(side, top, 4 * CELL, 4 * CELL, fill="none", stroke=INK, stroke_width=2))
    return "".join(parts)
