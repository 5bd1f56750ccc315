"""The paper the views are drawn on: HTML and SVG that bring their own colours.

A notebook may be light or dark and styles tables, `pre` and links itself. So everything here carries its
background and its ink inline, and reads the same on any page. Drawings are `role="img"` with a label in
words; tables and listings stay readable text inside a labelled figure.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from course_lib.measure.sizes import in_bytes as in_bytes
from course_lib.theme import DEEP_PINK, GREY_TINT, INK, LINE, PAPER, PINK, PINK_TINT, QUIET

SANS = "system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif"
MONO = "ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace"
Area = tuple[float, float, float, float]  # x, y, width, height
CODE_LINE, CODE_LETTER = 19, 7.5  # height of a line of code in a drawing, mean width of its letters


@dataclass(frozen=True)
class Html:
    """Something drawn in HTML: what a notebook shows, a page embeds, and the same in words for a terminal."""

    body: str
    text: str

    def _repr_html_(self) -> str:
        return self.body

    def __repr__(self) -> str:
        return self.text


def escape(value: object) -> str:
    """Return the value as text that is safe inside HTML and its attributes."""
    return html.escape(str(value), quote=True)


def tag(name: str, content: str = "", **attributes: object) -> str:
    """Return one element; `stroke_width=2` becomes stroke-width="2", None leaves an attribute out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_short(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{written}>{content}</{name}>"


def _short(value: object) -> object:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value


class Sheet:
    """A drawing in SVG: what is drawn later lies above what was there before."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    def tag(self, name: str, content: str = "", **attributes: object) -> None:
        """Draw an element."""
        self.parts.append(tag(name, content, **attributes))

    def svg(self, width: float, height: float, label: str, *, widest: float = 960) -> str:
        """Return a drawing on white paper, at most `widest` wide; `label` says in words what it shows."""
        scale = min(1.0, widest / width)
        ground = tag("rect", width=width, height=height, fill=PAPER)
        return tag(
            "svg",
            ground + "".join(self.parts),
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {_short(float(width))} {_short(float(height))}",
            width=width * scale,
            height=height * scale,
            role="img",
            aria_label=label,
            style=f"max-width:100%;height:auto;display:block;background:{PAPER};color:{INK}",
        )

    def write(
        self,
        x: float,
        y: float,
        content: object,
        *,
        size: float = 13,
        fill: str = INK,
        anchor: str = "start",
        bold: bool = False,
        mono: bool = False,
    ) -> None:
        """Write text whose baseline starts (or is centred, or ends) at x, y."""
        self.tag(
            "text",
            escape(content),
            x=x,
            y=y,
            fill=fill,
            font_size=size,
            font_family=MONO if mono else SANS,
            font_weight="700" if bold else None,
            text_anchor=None if anchor == "start" else anchor,
            style="white-space:pre",
        )

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        fill: str = PAPER,
        stroke: str | None = LINE,
        stroke_width: float = 1,
        dash: str | None = None,
        radius: float | None = None,
    ) -> None:
        """Draw a rectangle."""
        self.tag(
            "rect",
            x=x,
            y=y,
            width=width,
            height=height,
            fill=fill,
            stroke=stroke,
            stroke_width=stroke_width if stroke else None,
            stroke_dasharray=dash,
            rx=radius,
        )

    def line(
        self, x1: float, y1: float, x2: float, y2: float, *, stroke: str = INK, width: float = 1
    ) -> None:
        """Draw a line."""
        self.tag("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=stroke, stroke_width=width)

    def cell(
        self, area: Area, base: float, said: object, *, ink: str = INK, size: float = 13, bold=False, **look
    ) -> None:
        """Draw a box (x, y, width, height) that looks as `look` says, with words in its middle.

        base: from its top to the line on which the words stand.
        """
        x, y, width, _ = area
        self.box(*area, **look)
        self.write(x + width / 2, y + base, said, size=size, fill=ink, anchor="middle", bold=bold)

    def code(
        self,
        lines: Sequence[str],
        x: float,
        y: float,
        width: float,
        runs: Callable[[int, str], bool],
        remarks: Mapping[int, str] | None = None,
    ) -> None:
        """Draw lines of code on a grey ground, the line that runs tinted, edged and bold.

        With `remarks`, which stand behind their lines (counted from 1), every line has its number.
        """
        self.box(x, y, width, CODE_LINE * len(lines) + 12, fill=GREY_TINT, stroke=None, radius=4)
        for number, text in enumerate(lines, start=1):
            top = y + 6 + CODE_LINE * (number - 1)
            is_running = runs(number, text)
            if is_running:
                self.box(x, top, width, CODE_LINE, fill=PINK_TINT, stroke=None)
                self.box(x, top, 4, CODE_LINE, fill=PINK, stroke=None)
            start = x + 12
            if remarks is not None:
                start = x + 38
                self.write(x + 30, top + 14, number, size=11, mono=True, fill=QUIET, anchor="end")
            self.write(start, top + 14, text, size=12.5, mono=True, bold=is_running)
            if remarks and number in remarks:
                end = start + 6 + CODE_LETTER * len(text)
                self.write(end, top + 14, remarks[number], size=12, fill=DEEP_PINK, bold=True)

    def arrow(
        self, x1: float, y1: float, x2: float, y2: float, *, stroke: str = INK, width: float = 1.5
    ) -> None:
        """Draw a line with a head at x2, y2 (the head is drawn, so two drawings never share an id)."""
        length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5 or 1.0
        ux, uy = (x2 - x1) / length, (y2 - y1) / length
        back_x, back_y = x2 - 7 * ux, y2 - 7 * uy
        head = f"{x2:.1f},{y2:.1f} {back_x - 3.5 * uy:.1f},{back_y + 3.5 * ux:.1f} "
        head += f"{back_x + 3.5 * uy:.1f},{back_y - 3.5 * ux:.1f}"
        self.line(x1, y1, back_x, back_y, stroke=stroke, width=width)
        self.tag("polygon", points=head, fill=stroke)


def card(content: str, label: str, *, title: str | None = None, width: str = "fit-content") -> str:
    """Return the content on a white card: a labelled figure that keeps its colours on a dark page.

    `width` is a CSS width, for what fills its place instead of having a size of its own.
    """
    style = (
        f"background:{PAPER};color:{INK};font:14px/1.45 {SANS};padding:12px 16px;border:1px solid {LINE};"
        f"border-radius:6px;width:{width};max-width:100%;overflow-x:auto;box-sizing:border-box;"
        "text-align:left"
    )
    head = f'<div style="font-weight:700;margin:0 0 8px;color:{INK}">{escape(title)}</div>' if title else ""
    return f'<div role="figure" aria-label="{escape(label)}" style="{style}">{head}{content}</div>'


def note(content: object) -> str:
    """Return a quiet line of small text."""
    return (
        f'<div style="color:{QUIET};font-size:12.5px;margin:6px 0 0;max-width:76ch">{escape(content)}</div>'
    )


def side_by_side(panels: Sequence[str], gap: int = 24) -> str:
    """Return the panels in a row that wraps when the page is narrow."""
    cells = "".join(f'<div style="min-width:0;max-width:100%">{panel}</div>' for panel in panels)
    return f'<div style="display:flex;flex-wrap:wrap;gap:{gap}px;align-items:flex-start">{cells}</div>'


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,), marked=()
) -> str:
    """Return an HTML table of HTML cells. Columns in `left` stand left, rows in `marked` are tinted.

    Every cell carries its colours, because notebooks stripe the rows of tables in the colours of the page.
    """

    def one(kind: str, column: int, content: str, ground: str, extra: str) -> str:
        side = "left" if column in left else "right"
        style = f"text-align:{side};padding:3px 10px 3px 4px;background:{ground};color:{INK};{extra}"
        scope = ' scope="col"' if kind == "th" else ""
        return f'<{kind}{scope} style="{style}">{content}</{kind}>'

    rule = f"border-bottom:1px solid {INK};font-weight:600;vertical-align:bottom"
    top = "".join(one("th", c, name, PAPER, rule) for c, name in enumerate(head))
    lines = []
    for number, row in enumerate(rows):
        ground = PINK_TINT if number in marked else PAPER
        edge = f"border-bottom:1px solid {LINE};white-space:nowrap"
        cells = "".join(one("td", c, name, ground, edge) for c, name in enumerate(row))
        lines.append(f'<tr style="background:{ground}">{cells}</tr>')
    return table_of(top, lines, "margin:0;font-size:13px")


def table_of(head: str, rows: Iterable[str], style: str, columns: str = "") -> str:
    """Return an HTML table of finished head cells and rows (`<tr>…</tr>`), with a style of its own."""
    whole = f"border-collapse:collapse;{style};color:{INK};background:{PAPER}"
    return (
        f'<table style="{whole}">{columns}<thead><tr style="background:{PAPER}">{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def listing(lines: Iterable[str], numbers: Iterable[object] | None = None) -> str:
    """Return lines of code (HTML already) as a block, each with its number if given.

    A `pre`, because notebooks look for formulas between dollar signs everywhere else.
    """
    shown = list(lines)
    if numbers is not None:
        labels = [str(n) for n in numbers]
        width = max(map(len, labels), default=0)
        shown = [
            f'<span style="color:{QUIET};user-select:none">{label.rjust(width)}  </span>{line}'
            for label, line in zip(labels, shown, strict=True)
        ]
    style = (
        f"margin:0;padding:8px 10px;background:{GREY_TINT};color:{INK};font:12.5px/1.5 {MONO};"
        "white-space:pre;overflow-x:auto;border-radius:4px"
    )
    return f'<pre style="{style}">' + "\n".join(shown) + "</pre>"


def number(value: float) -> str:
    """Return a number as short as it can be read: 7, -2.5, 1.23e-08."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e6:
        return str(int(value))
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def upper(sentence: str) -> str:
    """Return a sentence with a capital first; `str.capitalize` would also make "NVIDIA" "nvidia"."""
    return sentence[:1].upper() + sentence[1:]


def plural(count: int, noun: str) -> str:
    """Return the count with its noun: 1 step, 2 steps, 3 passes, 4 copies."""
    if count == 1:
        return f"1 {noun}"
    if noun.endswith(("s", "ch")):
        return f"{count:,} {noun}es"
    return f"{count:,} {noun[:-1]}ies" if noun.endswith("y") else f"{count:,} {noun}s"


def times(factor: float) -> str:
    """Return a factor in words of three figures: 1.26x, 12.3x, 1,230x."""
    return f"{float(f'{factor:.3g}'):,.0f}x" if factor >= 100 else f"{factor:.3g}x"
