"""Number fields for prices: a rented machine has a price for an hour, a bought one what makes it up."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from course_lib.speech.costs import Choice, Purchase, checked
from course_lib.views.live import widgets

WORDS = {
    "price": "price",
    "years": "years of use",
    "watts": "W with work",
    "price_per_kwh": "price of a kWh",
    "idle_watts": "W without work",
}
MONEY = ("price", "price_per_kwh")
LABEL, WIDTH = {"description_width": "15em"}, "27em"


class Fields:
    """The fields of one machine; `choice()` gives what they say, or raises ValueError with a sentence."""

    def __init__(
        self,
        name: str,
        audio_per_s: float,
        price: float | Purchase,
        utilisation: float,
        currency: str,
        changed: Callable[[], None],
    ) -> None:
        kit = widgets()
        self.name, self.audio_per_s, self._price = name, audio_per_s, price
        box = {"style": LABEL, "layout": {"width": WIDTH}}
        if isinstance(price, Purchase):
            names = [field.name for field in fields(Purchase)]
            values = {name: (WORDS[name], getattr(price, name), name in MONEY) for name in names}
        else:
            values = {"price_per_hour": ("price for an hour", price, True)}
        self.numbers = {
            key: kit.FloatText(value=value, description=f"{text}, {currency}" if money else text, **box)
            for key, (text, value, money) in values.items()
        }
        percent = 100 * utilisation
        digits = 0 if percent >= 1 else math.ceil(-math.log10(percent))  # 0.2 is no 0 %
        self.utilisation = kit.FloatSlider(
            value=percent,
            min=min(1.0, percent),
            max=100,
            step=1,
            readout_format=f".{digits}f",
            description="% of hours with work",
            **box,
        )
        for control in (*self.numbers.values(), self.utilisation):
            control.observe(lambda _: changed(), names="value")
        head = kit.HTML(f"<b>{name}</b>")
        self.box = kit.VBox([head, *self.numbers.values(), self.utilisation])

    def choice(self) -> Choice:
        """Return the machine as the fields say."""
        share = self.utilisation.value / 100
        numbers: dict[str, Any] = {key: field.value for key, field in self.numbers.items()}
        if isinstance(self._price, Purchase):
            price: float | Purchase = replace(self._price, **numbers)
        else:
            price = numbers["price_per_hour"]
        return machine(self.name, self.audio_per_s, price, share)


def machine(name: str, audio_per_s: float, price: float | Purchase, utilisation: float) -> Choice:
    """Return a machine that is rented (a price for an hour) or bought; raises ValueError, naming it."""
    try:
        share = checked("utilisation", utilisation, most=1)
        if isinstance(price, Purchase):
            return Choice(name, audio_per_s, price.price_per_hour(share), share, price.price_per_hour(0))
        return Choice(name, audio_per_s, price, share)
    except ValueError as problem:
        raise ValueError(f"{name}: {problem}") from None
