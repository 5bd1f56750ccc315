"""A guess the learner commits before measuring, a slider that locks; and the guess beside what was measured.

The measuring cell's figure takes the prediction as `guess=` and draws it beside what was measured. A locked
guess cannot be moved: run the cell again to start anew. The slider then starts at the last guess, also after
the kernel was restarted: locked guesses are remembered beside the ladder. `claim` sets what a chapter itself
predicts beside what its cell measures.
"""

from __future__ import annotations

import math
import re
import textwrap
import warnings
from contextlib import suppress
from typing import Any

from course_lib import theme
from course_lib.arguments import is_number, refusal
from course_lib.measure.store import Store, StoreNotice
from course_lib.theme import DEEP_PINK, GREY, INK, LINE, PINK, QUIET
from course_lib.views.live import Live, widgets
from course_lib.views.paper import Html, Sheet, card, escape, note

STEPS_PER_DECADE = 40
KEYS = "Keyboard: Tab to the slider, arrow keys move it; Tab to the button, Space locks the guess in."


def predict(
    question: str,
    unit: str = "",
    low: float = 0,
    high: float = 100,
    step: float | None = None,
) -> Prediction:
    """Return a slider from `low` to `high` that the learner locks in as their guess.

    It is logarithmic when the range spans two decades or more and starts above 0. Guesses move in steps of
    `step` (None: fine ones, two digits on a logarithmic slider).
    """
    low, high, step = _checked(question, low, high, step)
    return Prediction(question, unit, low, high, step)


class Prediction(Live):
    """A guess: `.value` is None until it is locked in, then a float; `.locked` says which.

    `.last` is what was locked in when the question was asked before, or None: the slider starts there.
    `lock()` does what the button does; `lock(120)` locks that number, for where there is no slider.
    """

    def __init__(self, question: str, unit: str, low: float, high: float, step: float | None) -> None:
        self.question, self.unit, self.low, self.high = question, unit, low, high
        self.log = _is_logarithmic(low, high)
        self.step = step
        self._value: float | None = None
        self.last = self._remembered()
        self._build()

    @property
    def value(self) -> float | None:
        """The locked guess, or None."""
        return self._value

    @property
    def locked(self) -> bool:
        """Whether the guess is locked in."""
        return self._value is not None

    def __float__(self) -> float:
        if self._value is None:
            raise ValueError(
                f"No guess is locked in yet for {self.question!r}: press “Lock in my guess” first."
            )
        return self._value

    def lock(self, value: float | None = None) -> None:
        """Lock in `value` (None: where the slider stands); raises ValueError when it cannot be locked."""
        if self.locked:
            raise ValueError(
                f"The guess for {self.question!r} is locked in at {self._written()}: "
                "run its cell again to start anew."
            )
        self._value = self._present() if value is None else self._in_range(value)
        self.slider.value = self._value
        self.slider.disabled = self.button.disabled = True
        self.button.description = "Locked in"
        self._say()
        self._remember()

    def static(self) -> Html:
        """Return the question and the scale as a picture, with the guess marked if there is one."""
        return Html(card(_scale_of(self), self._summary(), title=self.question), self._summary())

    def _key(self) -> str:
        return f"{self.question}|{self.unit}|{self.low:g}|{self.high:g}"

    def _remembered(self) -> float | None:
        """Return the guess that was locked in here before, None without one."""
        try:
            # a lost guess is no reason to alarm anybody
            with warnings.catch_warnings(action="ignore", category=StoreNotice):
                return self._in_range(Store("guesses").read().get(self._key()))
        except (ValueError, OSError):
            return None

    def _remember(self) -> None:
        # where it cannot be saved the guess counts all the same, for as long as this kernel runs
        with suppress(OSError), warnings.catch_warnings(action="ignore", category=StoreNotice):
            Store("guesses").update(lambda values: values.update({self._key(): self._value}))

    def _build(self) -> None:
        kit = widgets()
        middle = math.sqrt(self.low * self.high) if self.log else (self.low + self.high) / 2
        look = {
            "value": self._rounded(middle) if self.last is None else self.last,
            "readout_format": f",.{_decimals(self.step)}f" if self.step else ",.2r",
            "tooltip": KEYS,
            "layout": {"width": "min(460px, 95%)"},
        }
        if self.log:
            low, high = math.log10(self.low), math.log10(self.high)
            fine = (high - low) / round((high - low) * STEPS_PER_DECADE)
            self.slider = kit.FloatLogSlider(base=10, min=low, max=high, step=fine, **look)
        else:
            self.slider = kit.FloatSlider(min=self.low, max=self.high, step=self.step, **look)
        self.button = kit.Button(
            description="Lock in my guess",
            tooltip="A locked guess cannot be moved. " + KEYS,
            layout={"width": "auto", "align_self": "flex-start"},
        )
        self.button.on_click(lambda _: self.lock())
        question = kit.HTML(f'<div style="line-height:1.45;font-weight:700">{escape(self.question)}</div>')
        self.status = kit.HTML()
        self.slider.observe(lambda _: self._say(), names="value")
        self._say()
        guess = kit.HBox([self.slider, kit.Label(self.unit)])
        self.widget = kit.VBox([question, guess, self.button, self.status])

    def _say(self) -> None:
        if self.locked:
            words = f"Locked in: <b>{escape(self._written())}</b>. Run this cell again to start anew."
        else:
            now = escape(_written(self._present(), self.unit))
            before = ""
            if self.last is not None:
                last = escape(_written(self.last, self.unit))
                before = f"Last time you locked in {last}; running the cell opened it. "
            words = f"{before}Your guess: <b>{now}</b> ({escape(self._range())}), not locked in. {KEYS}"
        self.status.value = f'<div role="status" style="line-height:1.45;max-width:76ch">{words}</div>'

    def _present(self) -> float:
        return self._in_range(self._rounded(self.slider.value))

    def _in_range(self, value: float) -> float:
        if not is_number(value) or not self.low <= value <= self.high:
            raise ValueError(
                f"The guess is {value!r}, but it must be a number from {_written(self.low)} to "
                f"{_written(self.high)}."
            )
        return float(value)

    def _rounded(self, value: float) -> float:
        """Return the guess nearest to `value`: in steps from the low end, or two digits on a log scale."""
        if self.step:
            origin = 0 if self.log else self.low
            value = origin + round((value - origin) / self.step) * self.step
            value = round(value, _decimals(self.step) + 2)  # 0.1 + 0.2 is 0.3 to a learner
        else:
            value = float(f"{value:.1e}")
        return min(max(value, self.low), self.high)

    def _written(self) -> str:
        return _written(float(self), self.unit)

    def _range(self) -> str:
        return f"from {_written(self.low, self.unit)} to {_written(self.high, self.unit)}"

    def _summary(self) -> str:
        if self.locked:
            return f"{self.question} Your guess, {self._range()}: {self._written()}, locked in."
        return f"{self.question} A guess {self._range()}, not locked in."


def _written(value: float, unit: str = "") -> str:
    """Return the number with thousands separated and its unit: 12,000 x."""
    plain = f"{value:,.6g}" if abs(value) < 1e6 else f"{value:,.0f}"
    return f"{plain} {unit}".strip()


def _decimals(step: float) -> int:
    """Return how many decimals it takes to write multiples of the step."""
    return next((n for n in range(9) if math.isclose(round(step, n), step, rel_tol=1e-9)), 9)


def _is_logarithmic(low: float, high: float) -> bool:
    return low > 0 and high / low >= 100


def _checked(question: str, low: float, high: float, step: float | None) -> tuple[float, float, float | None]:
    """Return low, high and step, decided; raises one sentence for what makes no slider."""
    if not isinstance(question, str) or not question.strip():
        raise ValueError(f"The question is {question!r}, but it must be a text: say what is to be guessed.")
    for name, end in (("low", low), ("high", high)):
        if not is_number(end):
            raise refusal(name, end, "a finite number: give the range of the guess")
    if low >= high:
        raise ValueError(
            f"low is {low} and high is {high}, but low must be the smaller one: swap or move them."
        )
    if step is not None and not (is_number(step) and 0 < step <= high - low):
        most = f"at most high - low = {high - low}: give a smaller one, or leave it out"
        raise refusal("step", step, f"a number above 0 and {most}")
    if step is None and not _is_logarithmic(low, high):
        step = 10.0 ** math.floor(math.log10((high - low) / 100) + 1e-9)
    return float(low), float(high), step


def _scale_of(guess: Prediction) -> str:
    """Return the scale with its ends, and the guess if it is locked in."""
    on = Sheet()
    left, right, y = 30.0, 450.0, 44.0

    def place(value: float) -> float:
        low, high, at = guess.low, guess.high, value
        if guess.log:
            low, high, at = math.log(low), math.log(high), math.log(at)
        return left + (right - left) * (at - low) / (high - low)

    on.tag("line", x1=left, y1=y, x2=right, y2=y, stroke=LINE, stroke_width=4, stroke_linecap="round")
    for value in _ticks(guess):
        x = place(value)
        on.line(x, y - 5, x, y + 5, stroke=GREY, width=1)
        on.write(x, y + 22, _written(value), size=12, fill=QUIET, anchor="middle")
    if guess.locked:
        x = place(float(guess))
        on.tag("circle", cx=x, cy=y, r=8, fill=PINK, stroke=INK, stroke_width=1.5)
        words = f"your guess: {guess._written()}"
        on.write(min(max(x, 80), 400), y - 18, words, fill=DEEP_PINK, anchor="middle", bold=True)
    else:
        words = "no guess locked in: the slider needs a running kernel"
        on.write(left, y - 18, words, size=12.5, fill=QUIET)
    return on.svg(480, 76, guess._summary()) + (note(f"in {guess.unit}") if guess.unit else "")


def _ticks(guess: Prediction) -> list[float]:
    """Return where the scale is marked: both ends, and decades or quarters between them."""
    if not guess.log:
        return [guess.low + part * (guess.high - guess.low) / 4 for part in range(5)]
    decades = [
        10.0**n for n in range(math.ceil(math.log10(guess.low)), math.floor(math.log10(guess.high)) + 1)
    ]
    between = decades[:: math.ceil(len(decades) / 6)]
    room = (guess.high / guess.low) ** (1 / 8)  # no label closer than an eighth of the scale to an end
    kept = [x for x in between if guess.low * room < x < guess.high / room]
    return [guess.low, *kept, guess.high]


WHAT_TO_DO = "lock one in above and run this cell again"
MEASURE_AGAIN = "measure again, with a guess locked in above"
WIDE_RANGE = 20.0  # from this ratio on, a linear axis would squeeze the smaller number against zero
TOO_WIDE = 1.5  # an interval whose ends are further apart than this tells no number
TITLE_WIDTH = 72


def verdict(
    guess: Any,
    measured: float,
    unit: str = "",
    what: str = "measured",
    *,
    interval: tuple[float, float] | None = None,
    busy: bool = False,
    source: str = "measured",
) -> theme.Picture:
    """Draw a locked guess and the measured value of `what` on one axis.

    `guess` is a Prediction, a number or None (nothing was locked in: then the picture says so). `interval` is
    the 95 % interval of `measured` (an end may be inf); `busy` says that other programs held the cores.
    `source` is what stands at the point, "by a model" where nothing was measured.
    A guess is not judged by a measurement that tells nothing, nor refuted while it lies in the interval.
    """
    guessed = getattr(guess, "value", guess)
    is_open = busy or bool(interval and not 0 < interval[1] <= TOO_WIDE * interval[0])
    said = [_finding(guessed, measured, unit, what, None if busy else interval, is_open)]
    if guessed is None:
        said.append(MEASURE_AGAIN if is_open else WHAT_TO_DO)
    title = "\n".join(_wrapped(line) for line in said)
    with theme.figure(8.0, 1.65 + 0.25 * len(title.splitlines())) as fig:
        axes = fig.subplots()
        axes.axhline(0, color=theme.GREY, linewidth=1)
        ends = [end for end in interval or () if math.isfinite(end)]
        values = [measured, *ends, *([] if guessed is None else [guessed])]
        if ends:  # an open end runs to the edge
            span = [ends[0], interval[1] if len(ends) == 2 else 10 * max(values)]
            axes.plot(span, [0, 0], color=theme.PINK, linewidth=7, alpha=0.35, solid_capstyle="butt")
        _mark(axes, measured, unit, source, theme.PINK, "o", above=True)
        if guessed is not None:
            _mark(axes, guessed, unit, "your guess", theme.VIOLET, "D", above=False)
        _scale(axes, values, unit)
        axes.set(title=title, yticks=[], ylim=(-1, 1), xlabel=f"{what} ({unit})" if unit else what)
        axes.spines["left"].set_visible(False)
        axes.grid(False)
        return theme.Picture.of(fig, f"Number line. {': '.join(said)}.")


def claim(
    name: str, predicted: float, measured: float, unit: str = "", why: str = "", source: str = "measured"
) -> None:
    """Print what a chapter predicted beside what was measured, and how far apart they are.

    `name` begins with the chapter, "02.chain"; `source` is another word for where the second number comes
    from, "simulated". A test runs the chapters and refuses lines that are more than
    30 % off, but for those with a `why`: what makes the two differ on some machines. Raises ValueError for
    what is no positive number.
    """
    for what, value in (("predicted", predicted), ("measured", measured)):
        if not is_number(value) or not value > 0:
            raise refusal(what, value, f"a number above 0, to be held against the other one of {name!r}")
    apart = 100 * (measured / predicted - 1)
    said = f"predicted {_say(predicted, unit)}, {source} {_say(measured, unit)}"
    print(f"{name}: {said} ({'+' if apart >= 0 else '−'}{abs(apart):.0f} %)" + (f"; {why}" if why else ""))


def _wrapped(line: str) -> str:
    """Return a line of the title on several, none of which begins within a parenthesis."""
    whole = re.sub(r"\(.*?\)", lambda found: found[0].replace(" ", "\xa0"), line)
    return textwrap.fill(whole, TITLE_WIDTH).replace("\xa0", " ")


def _finding(
    guessed: float | None,
    measured: float,
    unit: str,
    what: str,
    interval: tuple[float, float] | None,
    is_open: bool,
) -> str:
    if is_open:
        return f"{what}: {_open(guessed, unit, interval)}"
    said = f"{what}: {_say(measured, unit)}"
    if guessed is None:
        return f"{said} (no guess was locked in)"
    apart = max(guessed / measured, measured / guessed) if min(guessed, measured) > 0 else math.inf
    if apart < 1.1 or (apart < math.inf and interval and interval[0] <= guessed <= interval[1]):
        return f"{said}, and you guessed it"
    if unit == "%" or apart == math.inf:
        return f"{said}, you guessed {_say(guessed, unit)}"
    return f"{said}, your guess was {apart:.2g} times too {'high' if guessed > measured else 'low'}"


def _open(guessed: float | None, unit: str, interval: tuple[float, float] | None) -> str:
    """Say why nothing can be told (interval None: the machine was busy), and which guess lies outside."""
    again = "" if guessed is None else ": run again"
    if interval is None:
        return f"this machine was busy, so it cannot be told on this run{again}"
    low, high = interval
    span = f"{_say(low, unit)} to {_say(high, unit)}" if math.isfinite(high) else f"{_say(low, unit)} or more"
    said = f"cannot be told on this run ({span}){again}"
    if guessed is None or low <= guessed <= high:
        return said
    return (
        f"{said} (your guess, {_say(guessed, unit)}, is {'above' if guessed > high else 'below'} all of it)"
    )


def _say(value: float, unit: str) -> str:
    number = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{number}{'' if unit == 'x' else ' '}{unit}".strip()


def _mark(axes, value: float, unit: str, name: str, colour: str, marker: str, above: bool) -> None:
    axes.plot([value], [0], marker, color=colour, markersize=11, zorder=3)
    height, anchor = (0.3, "bottom") if above else (-0.3, "top")
    look = {"ha": "center", "va": anchor, "color": colour, "fontsize": 10}
    axes.text(value, height, f"{name}\n{_say(value, unit)}", **look)


def _scale(axes, values: list[float], unit: str) -> None:
    low, high = min(values), max(values)
    if unit == "%":
        axes.set_xlim(-4, 104)
    elif low > 0 and high / low > WIDE_RANGE:
        axes.set_xscale("log")
        axes.set_xlim(low / 4, high * 4)
    else:
        axes.set_xlim(min(0, low) - 0.05 * abs(high), max(high, 0) * 1.25 or 1)
