"""Type a number, or flip its bits, and see what a format of eight bits makes of it.

The arithmetic is that of `fp8.formats`; `format_picture` draws one number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from course_lib.fp8.formats import FORMATS, Format, Look
from course_lib.theme import INK
from course_lib.views.format_picture import fields, finding, frame, in_words, weights
from course_lib.views.live import FITS, Live, widgets
from course_lib.views.paper import GREY_TINT, PINK_TINT, VIOLET_TINT, Html, escape

KEYS = (
    "Keyboard: type a number and press Enter; Tab goes to the format and to the bits, where Space "
    "chooses and flips."
)
COLOURS = (GREY_TINT, VIOLET_TINT, PINK_TINT)  # of the fields, as in the picture
FIELDS = ("sign", "exponent", "fraction")


def explore_format(x: float = 0.3, format: str = "e4m3") -> FormatExplorer:
    """Return a widget that shows how a number is stored in eight bits: bits, formula, neighbours, error.

    format: "e4m3" or "e5m2". Raises ValueError for another, and for an x that is no finite number.
    """
    if format not in FORMATS:
        raise ValueError(f"format is {format!r}, but it must be one of {', '.join(map(repr, FORMATS))}.")
    return FormatExplorer(FORMATS[format].look_at(typed(x)))


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


class FormatExplorer(Live):
    """The explorer: `.field` takes the number, `.choice` the format, `.bits` flip; `.look` is shown."""

    def __init__(self, look: Look) -> None:
        self.look = self._first = look
        self._is_moving = False
        kit = widgets()
        self.field = kit.Text(
            description="number", continuous_update=False, tooltip=KEYS, layout={"width": "240px"}
        )
        self.field.observe(self._typed, names="value")
        self.choice = kit.ToggleButtons(
            options=list(FORMATS), value=look.format.name, style={"button_width": "auto"}
        )
        self.choice.observe(self._chosen, names="value")
        self.bits = [kit.Button(layout={"width": "38px"}) for _ in range(8)]
        for place, button in enumerate(self.bits):
            button.on_click(self._flipper(place))
        self.status = kit.HTML(layout={"width": "auto"})
        self.picture = kit.HTML(layout={"width": "auto"})
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

    def frame(self, look: Look) -> str:
        """Return the picture of one number."""
        return frame(look)

    def static(self) -> Html:
        """Return the picture of the number that the widget began with."""
        return Html(frame(self._first), f"{finding(self._first)}. {in_words(self._first)}")

    def _flipper(self, place: int) -> Callable[[Any], None]:
        return lambda _: self.flip(place)

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
        self._is_moving = True  # the controls follow, and none of them answers
        try:
            self.field.value = _written(look.x)
            self.choice.value = look.format.name
        finally:
            self._is_moving = False
        self._write_bits(look.format, f"{look.code:08b}")
        self.picture.value = f'<div style="{FITS}">{frame(look)}</div>'
        self._say(KEYS)

    def _write_bits(self, form: Format, text: str) -> None:
        for place, button in enumerate(self.bits):
            field = fields(form)[place]
            button.description = text[place]
            button.tooltip = f"Flip this bit of the {FIELDS[field]}; it counts {weights(form)[place]}"
            button.style.button_color, button.style.text_color = COLOURS[field], INK  # on dark pages, too

    def _say(self, words: str) -> None:
        self.status.value = f'<div role="status" style="{FITS};line-height:1.45">{escape(words)}</div>'


def _written(x: float) -> str:
    """Return a number as it could be typed."""
    return repr(int(x)) if math.isfinite(x) and x == int(x) and x and abs(x) < 1e9 else repr(x)
