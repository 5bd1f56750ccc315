"""Tables and fact sheets: what measurements are shown as, in a notebook (HTML) and in a terminal (text)."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass

from course_lib.theme import PINK

NAME_WIDTH = "6em"  # names break at narrow pages, but not at every word
_CELL = "padding:.25em .7em;border:0;border-bottom:1px solid #8a849440"


@dataclass(frozen=True)
class Table:
    """Rows of finished text under columns; the first column holds names, the others numbers (or ``words``).

    ``marked`` names the row that everything is compared with; ``notes`` stand under the table.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    marked: str | None = None
    notes: tuple[str, ...] = ()
    words: bool = False

    def __str__(self) -> str:
        body = [self._named(row) for row in self.rows]
        widths = [max(len(row[i]) for row in (self.columns, *body)) for i in range(len(self.columns))]
        lines = [self.caption] if self.caption else []
        lines.append(self._text_row(self.columns, widths))
        lines.append("  ".join("-" * width for width in widths))
        lines += [self._text_row(row, widths) for row in body]
        return "\n".join([*lines, *self.notes])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        caption = (
            f'<caption style="text-align:left">{html.escape(self.caption)}</caption>' if self.caption else ""
        )
        head = "".join(
            f'<th scope="col" style="{_CELL};text-align:{self._side(i)}">{html.escape(name)}</th>'
            for i, name in enumerate(self.columns)
        )
        body = "".join(self._html_row(row) for row in self.rows)
        notes = "".join(
            f'<div style="font-size:90%;opacity:.85">{html.escape(note)}</div>' for note in self.notes
        )
        return (
            '<div style="overflow-x:auto">'  # on a narrow page the table scrolls, not the page
            f'<table style="border-collapse:collapse;font-variant-numeric:tabular-nums">{caption}'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{notes}"
        )

    def _html_row(self, row: tuple[str, ...]) -> str:
        is_marked = row[0] == self.marked
        edge = f"border-left:4px solid {PINK if is_marked else 'transparent'}"
        weight = "bold" if is_marked else "normal"
        first, *others = self._named(row)
        style = f"{_CELL};{edge};text-align:left;font-weight:{weight};min-width:{NAME_WIDTH}"
        wrap = "white-space:normal" if self.words else "white-space:nowrap"
        name = f'<th scope="row" style="{style}">{html.escape(first)}</th>'
        cells = "".join(
            f'<td style="{_CELL};text-align:{self._side(i)};{wrap}">{html.escape(cell)}</td>'
            for i, cell in enumerate(others, 1)
        )
        return f"<tr>{name}{cells}</tr>"

    def _text_row(self, cells: tuple[str, ...], widths: list[int]) -> str:
        sides = (self._side(i) for i in range(len(cells)))
        padded = (
            cell.rjust(width) if side == "right" else cell.ljust(width)
            for cell, width, side in zip(cells, widths, sides, strict=True)
        )
        return "  ".join(padded).rstrip()

    def _side(self, column: int) -> str:
        return "right" if column and not self.words else "left"

    def _named(self, row: tuple[str, ...]) -> tuple[str, ...]:
        return (f"{row[0]} (baseline)", *row[1:]) if row[0] == self.marked else row


class Shown:
    """What is shown as its `table()`; a dataclass that is to show itself so says ``repr=False``."""

    def __str__(self) -> str:
        return str(self.table())

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


@dataclass(frozen=True)
class Facts:
    """A titled list of (what, value): the card beside a measurement. Folded away when ``folded``."""

    title: str
    facts: tuple[tuple[str, str], ...]
    folded: bool = False

    def __str__(self) -> str:
        width = max((len(what) for what, _ in self.facts), default=0)
        return "\n".join([self.title, *(f"  {what:<{width}}  {value}" for what, value in self.facts)])

    __repr__ = __str__

    def __getitem__(self, what: str) -> str:
        return dict(self.facts)[what]

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th scope="row" style="{_CELL};text-align:left;vertical-align:top;white-space:nowrap">'
            f'{html.escape(what)}</th><td style="{_CELL};text-align:left">{html.escape(value)}</td></tr>'
            for what, value in self.facts
        )
        table = f'<table style="border-collapse:collapse">{rows}</table>'
        title = html.escape(self.title)
        if self.folded:
            return f"<details><summary>{title}</summary>{table}</details>"
        return f"<div><b>{title}</b>{table}</div>"


def digits(value: float | None, significant: int = 3) -> str:
    """Return ``value`` rounded for a table: 3 significant digits, thousands in groups, "–" when unknown."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value) or value == 0:
        return f"{value:g}"
    before_the_point = math.floor(math.log10(abs(value))) + 1
    if before_the_point < -3:
        return f"{value:.{significant - 1}e}"
    return f"{value:,.{max(0, significant - before_the_point)}f}"


def times(value: float) -> str:
    """Return a ratio as it is said, with three digits at most: "5.2x", "0.19x", "1.04x", "1,730x"."""
    value = float(f"{value:.3g}")
    is_close_to_one = 0.7 < value < 1.3
    return f"{digits(value, 3 if is_close_to_one or value >= 10 else 2)}x"


def seconds_in_words(seconds: float, significant: int = 3) -> str:
    """Return a duration with the unit that suits it: "12.3 us", "4.56 ms", "7.89 s"."""
    for limit, factor, unit in ((1e-3, 1e6, "us"), (1.0, 1e3, "ms")):
        if seconds < limit:
            return f"{digits(seconds * factor, significant)} {unit}"
    return f"{digits(seconds, significant)} s"
