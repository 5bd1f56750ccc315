"""Type a number, or flip its bits, and see what a format of eight bits makes of it; all numbers on a line.

The arithmetic is that of `fp8.formats`; the picture of a number is a pure function of its `Look`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from course_lib import theme
from course_lib.arguments import one_of
from course_lib.fp8.formats import BFLOAT16, E4M3, E5M2, FLOAT32, FORMATS, Format, Look
from course_lib.theme import (
    DEEP_PINK,
    GREY,
    GREY_TINT,
    INK,
    PINK,
    PINK_TINT,
    QUIET,
    SERIES,
    VIOLET,
    VIOLET_TINT,
    Picture,
)
from course_lib.views.figures import beside, headline
from course_lib.views.live import Explorer, buttons, widgets
from course_lib.views.paper import MONO, Html, Sheet, card, escape, note, table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KEYS = (
    "Keyboard: type a number and press Enter; Tab goes to the format and to the bits, where Space "
    "chooses and flips."
)
FIELDS = ("sign", "exponent", "fraction")


def explore_format(x: float = 0.3, format: str = "e4m3") -> FormatExplorer:
    """Return a widget that shows how a number is stored in eight bits: bits, formula, neighbours, error.

    format: "e4m3" or "e5m2". Raises ValueError for another, and for an x that is no finite number.
    """
    return FormatExplorer(FORMATS[one_of("format", format, FORMATS)].look_at(typed(x)))


def typed(x: object) -> float:
    """Return a typed number, "0.3", "1e-4" or "1/3"; raises ValueError with a sentence for anything else."""
    example = "type one like 0.3, -1e-4 or 1/3"
    if isinstance(x, bool) or (not isinstance(x, str) and not hasattr(x, "__float__")):
        raise ValueError(f"x is {x!r}, but it must be a number: {example}.")
    text = x.strip() if isinstance(x, str) else x
    if text == "":
        raise ValueError(f"There is no number: {example}.")
    try:
        if isinstance(text, str):
            above, bar, below = text.partition("/")
            value = float(above) / float(below) if bar else float(above)
        else:
            value = float(text)
    except (ValueError, TypeError):
        hint = "with a point instead of the comma" if "," in str(text) else example
        raise ValueError(f"{text!r} is no number: {hint}.") from None
    except (OverflowError, ZeroDivisionError):
        value = math.inf
    if not math.isfinite(value):
        raise ValueError(f"{text} is not finite, but a number must be: {example}, or flip bits to find NaN.")
    return value


class FormatExplorer(Explorer):
    """The explorer: `.field` takes the number, `.choice` the format, `.bits` flip; `.look` is shown."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self.look = self._first = look
        kit = widgets()
        self.field = kit.Text(
            description="number", continuous_update=False, tooltip=KEYS, layout={"width": "240px"}
        )
        self.field.observe(self._typed, names="value")
        self.choice = buttons(list(FORMATS), value=look.format.name)
        self.choice.observe(self._chosen, names="value")
        self.bits = [kit.Button(layout={"width": "38px"}) for _ in range(8)]
        for place, button in enumerate(self.bits):
            button.on_click(lambda _, place=place: self.flip(place))
        self._show(look)
        centred = {"flex_flow": "row wrap", "align_items": "center"}
        flips = kit.HBox([kit.Label("flip a bit:"), *self.bits], layout=centred)
        top = kit.HBox([self.field, self.choice], layout=centred)
        self.widget = kit.VBox([top, flips, self.status, self.picture])

    def flip(self, place: int) -> None:
        """Flip a bit, 0 (the sign) to 7, and show the number that the bits then are."""
        code = self.look.code ^ 0x80 >> place
        form = self.look.format
        self._show(Look(form, float(form.values[code]), code))

    def static(self) -> Html:
        """Return the picture of the number that the widget began with."""
        return Html(frame(self._first), f"{finding(self._first)}. {in_words(self._first)}")

    def _typed(self, change: Any) -> None:
        if self._is_moving:
            return
        try:
            x = typed(change["new"])
        except ValueError as problem:
            self._say(f"{problem} The picture still shows {_written(self.look.x)}.")
        else:
            self._show(self.look.format.look_at(x))

    def _chosen(self, change: Any) -> None:
        if not self._is_moving:
            self._show(FORMATS[change["new"]].look_at(self.look.x))

    def _show(self, look: Look) -> None:
        self.look = look
        with self._moving():
            self.field.value = _written(look.x)
            self.choice.value = look.format.name
        form = look.format
        for button, bit, field, weight in zip(
            self.bits, f"{look.code:08b}", fields(form), weights(form), strict=True
        ):
            button.description = bit
            button.tooltip = f"Flip this bit of the {FIELDS[field]}; it counts {weight}"
            button.style.button_color, button.style.text_color = GROUNDS[field], INK  # on dark pages, too
        self._draw(frame(look))
        self._say(KEYS)


def _written(x: float) -> str:
    """Return a number as it could be typed."""
    return repr(int(x)) if math.isfinite(x) and x == int(x) and x and abs(x) < 1e9 else repr(x)


WIDTH, EDGE = 660.0, 70.0  # of a drawing; from its side to a neighbour
BIT, HIGH, GAP = 46.0, 40.0, 14.0  # of a bit's box; between sign, exponent and fraction
GROUNDS = (GREY_TINT, VIOLET_TINT, PINK_TINT)
EDGES = (GREY, VIOLET, PINK)
EXPLAINED = "Step: the distance to the next number, away from 0. Rounding errs by half a step at most."


def kind(look: Look) -> str:
    """Return how a number is stored: "normal", "subnormal", "zero", "NaN", "infinity" or "saturated"."""
    beyond = look.format.round(look.x, saturate=False)
    return "saturated" if math.isfinite(look.value) and not math.isfinite(beyond) else look.kind


def finding(look: Look) -> str:
    """Say in one sentence what becomes of the number."""
    name, what = look.format.name, kind(look)
    if what in ("NaN", "infinity"):
        sign = "minus " if what == "infinity" and look.value < 0 else ""
        return f"Code 0x{look.code:02x} of {name} is {sign}{what}: no number"
    if what == "saturated":
        far = "any number" if math.isinf(look.x) else f"{short(look.x)}"
        return f"{far} lies beyond the largest number of {name}: saturated, {short(look.value)} is stored"
    if what == "zero" and look.x:
        return f"{short(look.x)} becomes 0: the smallest number of {name} is {short(look.format.smallest)}"
    tail = "" if what == "zero" else f" ({what})"
    if not look.error:
        return f"{short(look.x)} is a number of {name}{tail}: no error"
    ways = ("small", "large") if look.x > 0 else ("near to 0", "far from 0")
    off = f"{_percent(look.relative_error)} too {ways[abs(look.value) > abs(look.x)]}"
    return f"{short(look.x)} becomes {short(look.value)} in {name}{tail}: {off}"


def frame(look: Look) -> str:
    """Return the card of one number: bits, formula, neighbours and the same number in four formats."""
    said = finding(look)
    parts = [bits(look), formula(look), neighbours(look), formats_table(look), note(EXPLAINED)]
    return card("".join(parts), f"{said}. {in_words(look)}", title=said)


def in_words(look: Look) -> str:
    """Return bits, formula, neighbours and errors as sentences."""
    sign, exponent, fraction = look.bits
    said = [f"Sign {sign}, exponent {exponent}, fraction {fraction}: code 0x{look.code:02x}, {kind(look)}."]
    if math.isfinite(look.value):
        below, above = look.neighbours
        said.append(f"Value {look.formula}. Neighbours {_neighbour(below)} and {_neighbour(above)}.")
    if math.isfinite(look.error):
        said.append(f"Error {look.error:+.3g}, {_percent(look.relative_error)} of the number.")
    return " ".join(said)


def short(value: float) -> str:
    """Return a number of eight bits in full, others to six digits."""
    return f"{value:.10g}" if len(f"{value:.10g}") <= 12 else f"{value:.6g}"


def _percent(share: float) -> str:
    if not math.isfinite(share):
        return "–"
    return "0 %" if not share else f"{float(f'{100 * share:.2g}'):g} %"


def weights(form: Format) -> tuple[str, ...]:
    """Return what each of the eight bits counts: "±", "8", ..., "1/8"."""
    exponent = [str(2**n) for n in reversed(range(form.exponent_bits))]
    fraction = [f"1/{2**n}" for n in range(1, form.fraction_bits + 1)]
    return ("±", *exponent, *fraction)


def fields(form: Format) -> tuple[int, ...]:
    """Return for each of the eight bits, from the left, its field: 0 sign, 1 exponent, 2 fraction."""
    return (0, *[1] * form.exponent_bits, *[2] * form.fraction_bits)


def bits(look: Look) -> str:
    """Return the eight bits in boxes, each with what it counts, under the names of the three fields."""
    on = Sheet()
    form, text = look.format, f"{look.code:08b}"
    _, exponent, fraction = (int(part, 2) for part in look.bits)
    names = ("sign", f"exponent field = {exponent}", f"fraction = {fraction}/{2**form.fraction_bits}")
    x, last = 4.0, 0
    for n, (field, worth) in enumerate(zip(fields(form), weights(form), strict=True)):
        x += GAP if field != last else 0
        if field != last or n == 0:
            on.write(x, 16, names[field], size=12.5, fill=QUIET)
        last = field
        on.box(x, 24, BIT, HIGH, fill=GROUNDS[field], stroke=EDGES[field], stroke_width=1.5)
        on.write(x + BIT / 2, 51, text[n], size=20, anchor="middle", bold=True, mono=True)
        on.write(x + BIT / 2, 24 + HIGH + 17, worth, size=12, anchor="middle", fill=QUIET)
        x += BIT
    on.write(x + 24, 42, f"code 0x{look.code:02x}", size=15, bold=True)
    on.write(x + 24, 62, kind(look), size=14)
    on.write(x + 24, 24 + HIGH + 17, "what the bit counts", size=12, fill=QUIET)
    label = f"The bits of {form.name}: sign {look.bits[0]}, exponent {look.bits[1]}, fraction {look.bits[2]}"
    return on.svg(WIDTH, 24 + HIGH + 26, label)


def formula(look: Look) -> str:
    """Return how the fields give the value, as a line of HTML with real exponents."""
    form = look.format
    style = "font-size:16px;margin:6px 0 10px;line-height:1.5"
    if not math.isfinite(look.value):
        said = "the exponent's ones with the fraction 0 stand for infinity"
        if look.kind == "NaN":
            said = "the exponent's ones and this fraction stand for NaN, “not a number”"
        return f'<div style="{style}">{said}</div>'
    sign, exponent, fraction = (int(part, 2) for part in look.bits)
    whole = 2**form.fraction_bits
    lead, power = (1, f"{exponent}−{form.bias}") if exponent else (0, f"1−{form.bias}")
    why = "" if exponent else " &nbsp; (exponent field 0: no leading 1, and the exponent of field 1)"
    up = '<sup style="line-height:0">'
    return (
        f'<div style="{style}">(−1){up}{sign}</sup> · 2{up}{power}</sup> · ({lead} + {fraction}/{whole}) '
        f'= <b>{escape(short(look.value))}</b><span style="color:{QUIET};font-size:13px">{why}</span></div>'
    )


def neighbours(look: Look) -> str:
    """Return the stored number between its two neighbours, with x where it lies; nothing for NaN."""
    on = Sheet()
    below, above = look.neighbours
    if not math.isfinite(look.value):
        return ""
    left = below if math.isfinite(below) else 2 * look.value - above
    right = above if math.isfinite(above) else 2 * look.value - below
    y = 46.0

    def place(value: float) -> float:
        return EDGE + (value - left) / (right - left) * (WIDTH - 2 * EDGE)

    on.line(EDGE - 40, y, WIDTH - EDGE + 40, y, stroke=GREY, width=1.5)
    for value in (below, above):
        if math.isfinite(value):
            x, half = place(value), place((value + look.value) / 2)
            on.line(x, y - 9, x, y + 9, stroke=INK, width=2)
            on.write(x, y + 27, short(value), anchor="middle")
            dashes = {"stroke": GREY, "stroke_dasharray": "2 2"}
            on.tag("line", x1=half, y1=y - 6, x2=half, y2=y + 6, **dashes)
        else:
            x = EDGE if value < 0 else WIDTH - EDGE
            on.write(x, y + 27, "no number beyond", size=12, fill=QUIET, anchor="middle")
    x = place(look.value)
    on.box(x - 6, y - 6, 12, 12, fill=VIOLET, stroke=INK)
    on.write(x, y + 27, short(look.value), anchor="middle", bold=True, fill=VIOLET)
    _mark_of_x(on, look, place(look.x), y)
    words = "dashed: half-way, from there on the neighbour is nearer"
    on.write(x, y + 48, words, size=12, fill=QUIET, anchor="middle")
    label = (
        f"Number line: x = {short(look.x)}; stored is {short(look.value)}, "
        f"its neighbours are {_neighbour(below)} and {_neighbour(above)}"
    )
    return on.svg(WIDTH, y + 56, label)


def _mark_of_x(on: Sheet, look: Look, x: float, y: float) -> None:
    """Draw a diamond at x with its number; an arrow to the edge for what lies beyond the picture."""
    words = f"x = {short(look.x)}"
    if look.x == look.value:
        on.write(x, y - 18, f"{words}, stored exactly", anchor="middle", fill=DEEP_PINK)
    elif not 20 < x < WIDTH - 20:
        side = 1 if look.x > 0 else -1
        edge, anchor = (WIDTH - 4, "end") if side > 0 else (4, "start")
        on.arrow(edge - 28 * side, y - 10, edge, y - 10, stroke=DEEP_PINK, width=2)
        on.write(edge, y - 20, words, anchor=anchor, bold=True, fill=DEEP_PINK)
    else:
        points = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in ((0, -7), (7, 0), (0, 7), (-7, 0)))
        on.tag("polygon", points=points, fill=PINK, stroke=INK)
        on.write(x, y - 18, words, anchor="middle", bold=True, fill=DEEP_PINK)


def formats_table(look: Look) -> str:
    """Return a table: what e4m3, e5m2, bfloat16 and float32 make of the same number."""
    rows = []
    for form in FORMATS.values():
        one = look if form.name == look.format.name else form.look_at(look.x)
        rows.append(_row(form.name, one.bits, one.value, _step(one), one.relative_error, kind(one)))
    for wide in (BFLOAT16, FLOAT32):
        stored = wide.store(look.x)
        error = abs(stored.value - look.x) / (abs(look.x) or 1)
        rows.append(_row(wide.name, stored.bits, stored.value, stored.step, error, ""))
    head = ["format", "sign, exponent, fraction", "stored", "step", "error", ""]
    marked = [list(FORMATS).index(look.format.name)]
    return f'<div style="overflow-x:auto">{table(head, rows, left=(0, 1, 5), marked=marked)}</div>'


def _row(
    name: str, parts: tuple[str, str, str], value: float, step: float, error: float, remark: str
) -> list[str]:
    code = f'<span style="font:12.5px {MONO}">{" ".join(parts)}</span>'
    shown = f"{step:.3g}" if math.isfinite(step) else "–"
    return [name, code, f"{value:.9g}", shown, _percent(error), remark]


def _step(look: Look) -> float:
    """Return the distance to the next number away from 0, at the largest number that to the one before."""
    below, above = look.neighbours
    inner, outer = (below, above) if look.value >= 0 else (above, below)
    return abs(outer - look.value) if math.isfinite(outer) else abs(look.value - inner)


def _neighbour(value: float) -> str:
    return short(value) if math.isfinite(value) else "none"


# -- all numbers on a line -------------------------------------------------------------------------------

ROWS = {E4M3: 1.0, E5M2: 0.0}
TICKS = (-16, -9, -6, 0, 8, 15)  # exponents of 2 that the picture names
NEAR_ZERO = 2.0**-4


def format_lines() -> Picture:
    """Draw every positive number of e4m3 and e5m2 on a logarithmic line, and those near 0 on a linear one."""
    said = (
        f"e4m3 has {2**E4M3.fraction_bits} numbers for each power of two, e5m2 only "
        f"{2**E5M2.fraction_bits}, but over a wider range"
    )
    with theme.figure(8.0, 4.6) as fig:
        logs, linear = fig.subplots(2, 1)
        for axes in (logs, linear):
            for form, row in ROWS.items():
                _draw_line(axes, form, row)
            axes.set_yticks(list(ROWS.values()), [form.name for form in ROWS])
            axes.set(ylim=(-0.65, 1.75))
            axes.grid(visible=False)
            axes.spines["left"].set_visible(False)
        logs.set_xscale("log", base=2)
        logs.set(xlim=(2.0**-18, 2.0**17.5), xticks=[2.0**n for n in TICKS])
        logs.minorticks_off()
        logs.set(xlabel="value, logarithmic: the same number of lines for each factor of two")
        linear.set(xlim=(-0.0012, NEAR_ZERO * 1.02))
        linear.set(xlabel="value near 0, linear: subnormal numbers go on to 0 in equal steps")
        for form, row in ROWS.items():
            logs.annotate(f"{form.smallest:.3g}", (form.smallest, row + 0.33), ha="left", fontsize=9)
            logs.annotate(f"{form.largest:g}", (form.largest, row + 0.33), ha="right", fontsize=9)
            first = form.smallest_normal
            linear.vlines(first, row - 0.3, row + 0.6, color=GREY, linewidth=1.5, linestyle=":")
            words = f"{form.name}: normal from {first:.3g}"
            beside(linear, words, (first, row + 0.33), (4, 0), fontsize=9)
        handles, labels = logs.get_legend_handles_labels()
        fig.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=9)
        headline(fig, said, 66)
        return Picture.of(fig, f"{said}. {' '.join(range_in_words(form) for form in ROWS)}")


def positive(form: Format) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the subnormal and the normal numbers above 0, in order."""
    values = form.values[1 : form.largest_code + 1]
    return values[values < form.smallest_normal], values[values >= form.smallest_normal]


def range_in_words(form: Format) -> str:
    """Return a format's range and steps as a sentence."""
    subnormal, normal = positive(form)
    return (
        f"{form.name}: {len(subnormal)} subnormal numbers from {form.smallest:.4g} to {subnormal[-1]:.4g} in "
        f"equal steps, {len(normal)} normal ones from {form.smallest_normal:.4g} to {form.largest:g}; "
        f"rounding a normal one errs by at most 1/{2 ** (form.fraction_bits + 1)} of it."
    )


def _draw_line(axes: Axes, form: Format, row: float) -> None:
    subnormal, normal = positive(form)
    colour, marker, _ = SERIES[list(ROWS).index(form)]
    look = {"color": colour, "markersize": 17, "label": f"{form.name}, normal"}
    axes.plot(normal, np.full(len(normal), row), "|", **look)
    look = {"markerfacecolor": "none", "color": colour, "markersize": 5.5}
    axes.plot(subnormal, np.full(len(subnormal), row), marker, label=f"{form.name}, subnormal", **look)
