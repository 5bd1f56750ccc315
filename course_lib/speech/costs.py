"""What 1000 hours of speech cost: throughput and a price, rented or bought. The prices are the reader's own.

    cpu = Choice("CPU", audio_per_s=30, price_per_hour=0.10)
    gpu = Choice("GPU", audio_per_s=900, price_per_hour=2.0, utilisation=0.1)
    bought = Purchase(price=30_000, years=4, watts=700, price_per_kwh=0.3)
    own = Choice("GPU", 900, bought.price_per_hour(0.1), 0.1, bought.price_per_hour(0))
    cpu.per_1000_hours, gpu.per_1000_hours, break_even_ratio(cpu, gpu)

A machine that is kept costs money in every hour, with work or without: utilisation is the share of the
hours in which it has work, and the busy hours pay for the idle ones. All prices are in one currency, any one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from course_lib.arguments import number

HOURS_A_YEAR = 365.25 * 24
SPEECH_HOURS = 1000.0


def checked(name: str, value: Any, *, zero: bool = False, most: float | None = None) -> float:
    """Return a finite number above 0 (`zero`: or 0) and up to `most`; raises ValueError with one sentence."""
    limits = {"least": 0} if zero else {"above": 0}
    return float(number(name, value, **limits, most=most))


@dataclass(frozen=True)
class Purchase:
    """A machine that is bought: its price, the years it serves, its power in W and what a kWh costs.

    `idle_watts` is its power without work. Raises ValueError for what is no price, time or power.
    """

    price: float
    years: float
    watts: float
    price_per_kwh: float
    idle_watts: float = 0.0

    def __post_init__(self) -> None:
        checked("price", self.price, zero=True)
        checked("years", self.years)
        for name in ("watts", "price_per_kwh", "idle_watts"):
            checked(name, getattr(self, name), zero=True)

    def price_per_hour(self, utilisation: float) -> float:
        """Return what an hour costs on average, with work or without: its part of the price, and the power.

        Of a utilisation of 0 it is what an hour without work costs.
        """
        busy = checked("utilisation", utilisation, zero=True, most=1)
        watts = busy * self.watts + (1 - busy) * self.idle_watts
        return self.price / (self.years * HOURS_A_YEAR) + watts / 1000 * self.price_per_kwh


@dataclass(frozen=True)
class Choice:
    """A machine that encodes `audio_per_s` seconds of audio a second while it has work, and its price.

    `price_per_hour` is paid in every hour, `utilisation` is the share of hours with work (1: a machine that
    is rented for the busy hours only). `idle_price_per_hour` is what an hour without work costs where that is
    another price (None: the same), as of a bought machine, by its power: `price_per_hour` is then the mean.
    Raises ValueError for numbers that cannot be.
    """

    name: str
    audio_per_s: float
    price_per_hour: float
    utilisation: float = 1.0
    idle_price_per_hour: float | None = None

    def __post_init__(self) -> None:
        checked("audio_per_s", self.audio_per_s)
        checked("price_per_hour", self.price_per_hour, zero=True)
        checked("utilisation", self.utilisation, most=1)
        if self.idle_price_per_hour is not None:
            idle = checked("idle_price_per_hour", self.idle_price_per_hour, zero=True)
            if (1 - self.utilisation) * idle > self.price_per_hour * (1 + 1e-9):
                raise ValueError(
                    f"idle_price_per_hour is {idle:g}, but then the hours without work alone cost more than "
                    f"the mean price_per_hour of {self.price_per_hour:g}: give the mean over all hours."
                )

    @property
    def per_speech_hour(self) -> float:
        """What an hour of speech costs: price / (throughput · utilisation)."""
        return self.price_per_hour / (self.audio_per_s * self.utilisation)

    @property
    def per_1000_hours(self) -> float:
        """What 1000 hours of speech cost."""
        return SPEECH_HOURS * self.per_speech_hour

    @property
    def speech_hours_a_year(self) -> float:
        """Hours of speech that one such machine encodes in a year, with the work it has."""
        return self.audio_per_s * self.utilisation * HOURS_A_YEAR


def break_even_ratio(first: Choice, second: Choice) -> float:
    """Return how many times the price of `first` an hour of `second` may cost before it costs more a speech.

    It is the ratio of throughputs, each times its utilisation; the prices play no part in it.
    """
    return second.audio_per_s * second.utilisation / (first.audio_per_s * first.utilisation)


def break_even_hours(kept: Choice, by_the_hour: Choice) -> float | None:
    """Return from how many hours of speech a year on it is cheaper to keep a machine all year.

    `kept` is paid in all hours of the year, `by_the_hour` only while it works: their utilisation plays no
    part. With a share u of busy hours the one costs idle + u · more an hour, the other
    u · what the same speech costs on it; they meet at u = idle / (that − more). None: never, since one
    machine cannot encode as much in a year, or the other costs no more than the power of the one at work.
    """
    idle = kept.price_per_hour if kept.idle_price_per_hour is None else kept.idle_price_per_hour
    more = (kept.price_per_hour - idle) / kept.utilisation  # an hour with work than one without
    saved = by_the_hour.price_per_hour / by_the_hour.audio_per_s * kept.audio_per_s - more
    if saved <= 0 or idle > saved:
        return None
    return idle / saved * kept.audio_per_s * HOURS_A_YEAR


def hours_that_pay(price: float, first: Choice, second: Choice) -> float | None:
    """Return after how many hours of speech the cheaper choice has saved `price` (a cast-iron bridge, say).

    None if neither saves anything. Raises ValueError for what is no price.
    """
    price = checked("the price", price, zero=True)
    saved = abs(first.per_speech_hour - second.per_speech_hour)  # in an hour of speech
    return price / saved if saved else None
