"""The cost of 1000 hours of speech on a CPU and on a GPU, at the reader's own prices – or of a bridge."""

from __future__ import annotations

from collections.abc import Callable

from course_lib import theme
from course_lib.arguments import number
from course_lib.measure.table import digits, times
from course_lib.speech.costs import (
    HOURS_A_YEAR,
    Choice,
    break_even_hours,
    break_even_ratio,
    hours_that_pay,
)
from course_lib.theme import INK, PINK, VIOLET, Picture
from course_lib.views.figures import headline
from course_lib.views.live import Explorer, widgets
from course_lib.views.paper import Html, card, escape, note, table

KEYS = "Keyboard: Tab goes from field to field, arrow keys change a number, Enter takes a typed one."
COLOURS = ((PINK, "o", "-"), (VIOLET, "s", "--"))
PERCENTS = (1, 2, 5, 10, 20, 50, 100)


def costs(
    cpu_audio_per_s: float,
    gpu_audio_per_s: float,
    *,
    cpu_price: float,
    gpu_price: float,
    bridge_price: float,
    currency: str,
    cpu_origin: str = "",
    gpu_origin: str = "",
) -> Costs:
    """Return fields for prices and hours with work, and what 1000 hours of speech then cost on CPU and GPU.

    audio_per_s: seconds of audio a second, measured; `origin` says where and is shown. A price is that of an
    hour, or of the bridge.
    Raises ValueError for numbers that cannot be, and for a currency that is no text.
    """
    if not isinstance(currency, str) or not currency.strip():
        raise ValueError(f"currency is {currency!r}, but it must be a text, such as 'EUR'.")
    cpu = ("CPU", cpu_audio_per_s, cpu_price)
    gpu = ("GPU", gpu_audio_per_s, gpu_price)
    number("bridge_price", bridge_price, least=0)
    return Costs(cpu, gpu, bridge_price, currency.strip(), (cpu_origin, gpu_origin))


class Costs(Explorer):
    """The fields `.cpu`, `.gpu` and `.bridge`; `choices()` gives the machines as they stand there."""

    def __init__(
        self, cpu: tuple, gpu: tuple, bridge_price: float, currency: str, origins: tuple[str, str]
    ) -> None:
        super().__init__()
        kit = widgets()
        self.currency, self.origins = currency, origins
        self._given = (machine(*cpu), machine(*gpu), bridge_price)
        self.cpu, self.gpu = (Fields(*one, currency, self._show) for one in (cpu, gpu))
        self.bridge = kit.FloatText(bridge_price, description=f"cast-iron bridge, {currency}", **LOOK)
        self.bridge.observe(lambda _: self._show(), names="value")
        self._show()
        both = kit.HBox([self.cpu.box, self.gpu.box], layout={"flex_flow": "row wrap"})
        self.widget = kit.VBox([both, self.bridge, self.status, self.picture])

    def choices(self) -> tuple[Choice, Choice]:
        """Return the CPU and the GPU as the fields stand; raises ValueError for what cannot be."""
        return self.cpu.choice(), self.gpu.choice()

    def _show(self) -> None:
        try:
            cpu, gpu = self.choices()
            bridge = number("the price of the bridge", self.bridge.value, least=0)
        except ValueError as problem:
            self._say(f"{problem} The picture still shows the numbers before.")
        else:
            self._draw(self.frame(cpu, gpu, bridge).body)
            self._say(KEYS)

    def frame(self, cpu: Choice, gpu: Choice, bridge_price: float) -> Html:
        """Return the picture, the table and the bridge for two machines."""
        picture = figure(cpu, gpu, self.currency)
        words = in_words(cpu, gpu, bridge_price, self.currency)
        body = picture._repr_html_() + self._table(cpu, gpu) + note(words)
        told = f"{picture.alt} {words}"
        return Html(card(body, told), told)

    def static(self) -> Html:
        """Return the same for the prices that were given."""
        return self.frame(*self._given)

    def _table(self, *machines: Choice) -> str:
        head = ["", "audio, s a second", f"an hour, {self.currency}", "hours with work",
                f"1000 h of speech, {self.currency}", "h of speech a year", "measured"]  # fmt: skip
        rows = [
            [
                one.name,
                digits(one.audio_per_s),
                digits(one.price_per_hour),
                _percent(one.utilisation),
                digits(one.per_1000_hours),
                _rounded(one.speech_hours_a_year),
                escape(origin or "–"),
            ]
            for one, origin in zip(machines, self.origins, strict=True)
        ]
        cheap = min(range(2), key=lambda number: machines[number].per_1000_hours)
        return f'<div style="overflow-x:auto">{table(head, rows, left=(0, 6), marked=(cheap,))}</div>'


def finding(cpu: Choice, gpu: Choice, currency: str) -> str:
    """Say which machine is cheaper for 1000 hours of speech."""
    cheap, dear = sorted((cpu, gpu), key=lambda one: one.per_1000_hours)
    if f"{cheap.per_1000_hours:.3g}" == f"{dear.per_1000_hours:.3g}":
        return f"1000 hours of speech cost {_money(cpu.per_1000_hours, currency)} on either"
    if not cheap.per_1000_hours:
        return f"1000 hours of speech cost nothing on the {cheap.name}"
    ratio = dear.per_1000_hours / cheap.per_1000_hours
    return (
        f"1000 hours of speech: {_money(cheap.per_1000_hours, currency)} on the {cheap.name}, "
        f"{times(ratio)} that on the {dear.name}"
    )


def in_words(cpu: Choice, gpu: Choice, bridge_price: float, currency: str) -> str:
    """Return the break-even prices and what became of the bridge, in sentences."""
    ratio = break_even_ratio(cpu, gpu)
    paid = "any number of times that, since the CPU costs nothing"
    if cpu.price_per_hour:
        paid = times(gpu.price_per_hour / cpu.price_per_hour)
    said = [
        f"An hour of the GPU may cost {times(ratio)} that of the CPU before it is the dearer one, the ratio "
        f"of what they encode in it; here it costs {paid}."
    ]
    hours = break_even_hours(gpu, cpu)
    said.append(
        "Kept all year, a GPU is cheaper than CPUs rented for the busy hours as soon as it has work in "
        f"{100 * hours / (gpu.audio_per_s * HOURS_A_YEAR):.2g} % of its hours ({_rounded(hours)} hours of "
        "speech a year)."
        if hours is not None
        else "A GPU that is kept all year is never cheaper than CPUs rented for the busy hours."
    )
    hours_paid = hours_that_pay(bridge_price, cpu, gpu)
    if hours_paid is None:
        return " ".join([*said, "Neither saves anything, so no bridge is ever paid."])
    cheap = min((cpu, gpu), key=lambda one: one.per_1000_hours)
    years = hours_paid / cheap.speech_hours_a_year
    said.append(
        f"Or buy a cast-iron bridge for {_money(bridge_price, currency)}: what the {cheap.name} saves has "
        f"paid for it after {_rounded(hours_paid)} hours of speech, {_rounded(years)} years of one "
        f"{cheap.name} as busy as this."
    )
    return " ".join(said)


def figure(cpu: Choice, gpu: Choice, currency: str) -> Picture:
    """Draw the cost of 1000 hours of speech against the share of hours with work, at these hourly prices."""
    said = finding(cpu, gpu, currency)
    shares = [0.01 ** (1 - step / 40) for step in range(41)]  # up to 100 %
    with theme.figure(8.2, 3.8) as fig:
        axes = fig.subplots()
        for one, (colour, marker, line) in zip((cpu, gpu), COLOURS, strict=True):
            busy = one.per_1000_hours * one.utilisation
            percent, curve = [100 * share for share in shares], [busy / share for share in shares]
            axes.plot(percent, curve, line, color=colour)
            look = {"color": colour, "markersize": 10, "markeredgecolor": INK, "linestyle": line}
            name = f"{one.name}: {_money(one.per_1000_hours, currency)}"
            axes.plot([100 * one.utilisation], [one.per_1000_hours], marker, label=name, **look)
        axes.set_xscale("log")
        if min(cpu.per_1000_hours, gpu.per_1000_hours) > 0:
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
        axes.set_xticks(PERCENTS, map(str, PERCENTS))
        axes.minorticks_off()
        axes.set(xlabel="% of the hours with work", ylabel=f"1000 hours of speech, {currency}")
        axes.legend(loc="upper right")
        headline(fig, said, 66)
        each = "; ".join(
            f"{one.name} {digits(one.audio_per_s)} s of audio a second for "
            f"{_money(one.price_per_hour, currency)} an hour, {_percent(one.utilisation)} of the hours with "
            f"work: {_money(one.per_1000_hours, currency)}"
            for one in (cpu, gpu)
        )
        what = "Cost of 1000 hours of speech against the share of hours with work"
        return Picture.of(fig, f"{what}. {said}. {each}.")


def _money(value: float, currency: str) -> str:
    return f"{_rounded(value)} {currency}"


def _rounded(value: float) -> str:
    """Return three digits of a number, large ones too: what was measured has no more."""
    return digits(float(f"{value:.3g}"))


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"


LOOK = {"style": {"description_width": "15em"}, "layout": {"width": "27em"}}


class Fields:
    """The fields of one machine; `choice()` gives what they say, or raises ValueError with a sentence."""

    def __init__(
        self, name: str, audio_per_s: float, price: float, currency: str, changed: Callable[[], None]
    ) -> None:
        kit = widgets()
        self.name, self.audio_per_s = name, audio_per_s
        self.price = kit.FloatText(value=price, description=f"price for an hour, {currency}", **LOOK)
        look = {"readout_format": ".0f", "description": "% of hours with work", **LOOK}
        self.utilisation = kit.FloatSlider(value=100, min=1, max=100, step=1, **look)
        for control in (self.price, self.utilisation):
            control.observe(lambda _: changed(), names="value")
        self.box = kit.VBox([kit.HTML(f"<b>{name}</b>"), self.price, self.utilisation])

    def choice(self) -> Choice:
        """Return the machine as the fields say."""
        return machine(self.name, self.audio_per_s, self.price.value, self.utilisation.value / 100)


def machine(name: str, audio_per_s: float, price: float, utilisation: float = 1.0) -> Choice:
    """Return a machine; raises ValueError, naming it."""
    try:
        return Choice(name, audio_per_s, price, utilisation)
    except ValueError as problem:
        raise ValueError(f"{name}: {problem}") from None
