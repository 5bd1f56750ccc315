"""What 1000 hours of speech cost: throughput and a price. The prices are the reader's own.

    cpu = Choice("CPU", audio_per_s=30, price_per_hour=0.10)
    gpu = Choice("GPU", audio_per_s=900, price_per_hour=2.0, utilisation=0.1)
    cpu.per_1000_hours, gpu.per_1000_hours, break_even_ratio(cpu, gpu)

A machine that is kept costs money in every hour, with work or without: utilisation is the share of the
hours in which it has work, and the busy hours pay for the idle ones. All prices are in one currency, any one.
"""

from __future__ import annotations

from dataclasses import dataclass

from course_lib.arguments import number

HOURS_A_YEAR = 365.25 * 24


@dataclass(frozen=True)
class Choice:
    """A machine that encodes `audio_per_s` seconds of audio a second while it has work, and its price.

    `price_per_hour` is paid in every hour, `utilisation` is the share of hours with work (1: a machine that
    is rented for the busy hours only). Raises ValueError for numbers that cannot be.
    """

    name: str
    audio_per_s: float
    price_per_hour: float
    utilisation: float = 1.0

    def __post_init__(self) -> None:
        number("audio_per_s", self.audio_per_s, above=0)
        number("price_per_hour", self.price_per_hour, least=0)
        number("utilisation", self.utilisation, above=0, most=1)

    @property
    def per_speech_hour(self) -> float:
        """What an hour of speech costs: price / (throughput · utilisation)."""
        return self.price_per_hour / (self.audio_per_s * self.utilisation)

    @property
    def per_1000_hours(self) -> float:
        """What 1000 hours of speech cost."""
        return 1000 * self.per_speech_hour

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
    part. None: never, since one machine cannot encode as much in a year, or the other costs nothing.
    """
    hour_elsewhere = by_the_hour.price_per_hour / by_the_hour.audio_per_s * kept.audio_per_s
    if kept.price_per_hour > hour_elsewhere or not hour_elsewhere:
        return None
    return kept.price_per_hour / hour_elsewhere * kept.audio_per_s * HOURS_A_YEAR


def hours_that_pay(price: float, first: Choice, second: Choice) -> float | None:
    """Return after how many hours of speech the cheaper choice has saved `price` (a cast-iron bridge, say).

    None if neither saves anything. Raises ValueError for what is no price.
    """
    number("the price", price, least=0)
    saved = abs(first.per_speech_hour - second.per_speech_hour)  # in an hour of speech
    return price / saved if saved else None
