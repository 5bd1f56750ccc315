"""The curves of an encoder's sweep: audio a second and the wait for it, over batch, length or threads."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from course_lib import theme
from course_lib.measure.table import digits, seconds_in_words, times
from course_lib.speech.encoder_speed import SpeedPoint
from course_lib.speech.encoder_variants import DTYPES, HOWS, Setting
from course_lib.theme import GREY, INK, PINK, SERIES, Picture
from course_lib.views.speed_choice import Measured, in_words, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CURVES = ("batch", "frames", "threads")  # along these there are curves
LABELS = {
    "batch": "batch: utterances in one forward",
    "frames": "length of an utterance, s",
    "threads": "threads",
}
WIDTH, HEIGHT = 8.6, 3.7
WIDE_RANGE = 25.0  # from this ratio on an axis that starts at 0 would hide the small values
SIZE = 62  # of a figure's title, in letters a line


def finding(measured: Measured, setting: Setting) -> str:
    """Say in one sentence how a setting compares with the baseline."""
    if setting == measured.base:
        point = measured[setting]
        return (
            f"The baseline, {in_words(setting)}: {digits(point.audio_per_s)} s of audio a second, "
            f"ready after {seconds_in_words(point.seconds)}"
        )
    point, base = measured[setting], measured[measured.base]
    name = _upper(in_words(setting, but=measured.base))
    more, longer = point.audio_per_s / base.audio_per_s, point.seconds / base.seconds
    if is_open(point, base, more):
        return f"{name}: as much audio a second as the baseline, as far as can be told"
    said = f"{name}: {times(more)} the audio a second of the baseline"
    if setting.batch > 1 or setting.frames != measured.base.frames:
        return f"{said}, each utterance waits {times(longer)} as long"
    return said if setting.dtype == "float32" else f"{said}, off by {point.error:.0e} of the largest value"


def best(measured: Measured) -> SpeedPoint:
    """Return the point with the most audio a second."""
    return max(measured.points.values(), key=lambda point: point.audio_per_s)


def is_open(point: SpeedPoint, base: SpeedPoint, ratio: float) -> bool:
    """Say whether a ratio is within the spread of the two times."""
    return abs(ratio - 1) <= point.spread_s / point.seconds + base.spread_s / base.seconds


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


# -- one choice --------------------------------------------------------------------------------------------


def chosen_curves(measured: Measured, setting: Setting, axis: str, origin: str = "") -> Picture:
    """Draw both figures along an axis for a chosen setting, beside the same curve of the baseline."""
    base = measured.base
    beside = base.but(**{other: getattr(setting, other) for other in ("batch", "frames") if other != axis})
    series: dict[str, Sequence[SpeedPoint]] = {_family(setting, axis): measured.along(axis, setting)}
    plain = measured.along(axis, beside) or measured.along(axis, base)
    if plain and plain[0].setting not in {point.setting for point in next(iter(series.values()))}:
        series[_family(plain[0].setting, axis)] = plain
    return _draw(measured, series, axis, finding(measured, setting), setting, origin)


def _family(setting: Setting, axis: str) -> str:
    """Return what the points of a curve share."""
    parts = [setting.dtype, words("how", setting.how)]
    if axis != "frames":
        parts.append(words("frames", setting.frames))
    if axis != "batch":
        parts.append(f"batch {setting.batch}")
    if axis != "threads" and setting.device == "cpu":
        parts.append(f"{setting.threads} thread{'s' * (setting.threads > 1)}")
    return ", ".join(parts)


# -- all of it ---------------------------------------------------------------------------------------------


def main_curves(measured: Measured, origin: str = "") -> Picture:
    """Draw both figures over the batch, a curve for each way to run; the title names the fastest."""
    base, series = measured.base, {}
    for how in HOWS:
        for dtype in DTYPES:
            points = measured.along("batch", base.but(dtype=dtype, how=how))
            if points:
                series[f"{dtype}, {words('how', how)}"] = points
    return _draw(measured, series, "batch", finding(measured, best(measured).setting), None, origin)


def _draw(
    measured: Measured,
    series: Mapping[str, Sequence[SpeedPoint]],
    axis: str,
    said: str,
    chosen: Setting | None,
    origin: str,
) -> Picture:
    base = measured[measured.base]
    with theme.figure(WIDTH, HEIGHT + 0.2 * len(series)) as fig:
        speed, wait = fig.subplots(1, 2)
        for axes, what in ((speed, "audio_per_s"), (wait, "ms")):
            for number, (name, points) in enumerate(series.items()):
                colour, marker, line = SERIES[number % len(SERIES)]
                x = [_x(axis, point.setting) for point in points]
                y = [_y(what, point) for point in points]
                axes.plot(x, y, marker=marker, linestyle=line, color=colour, markersize=6, label=name)
            _mark(axes, _x(axis, base.setting), _y(what, base), "baseline", INK, "x")
            if chosen is not None:
                _mark(axes, _x(axis, chosen), _y(what, measured[chosen]), "chosen", PINK, "o")
            _scales(axes, axis, series)
        for axes, what in ((speed, "seconds of audio a second"), (wait, "ms until a forward is done")):
            scale = ", logarithmic" if axes.get_yscale() == "log" else ""
            axes.set_title(what + scale, fontsize=10.5, fontweight="normal")
        handles, labels = speed.get_legend_handles_labels()
        fig.legend(handles, labels, loc="outside lower left", ncols=2, fontsize=9)
        fig.suptitle(textwrap.fill(said, SIZE), x=0.01, ha="left", fontsize=13, fontweight="bold", color=INK)
        if origin:
            fig.text(0.995, 0.005, origin, ha="right", va="bottom", fontsize=7.5, color=GREY)
        return Picture.of(fig, _alt(said, series, axis, origin))


def _x(axis: str, setting: Setting) -> float:
    return setting.length_s if axis == "frames" else getattr(setting, axis)


def _y(what: str, point: SpeedPoint) -> float:
    return point.audio_per_s if what == "audio_per_s" else point.seconds * 1e3


def _mark(axes: Axes, x: float, y: float, name: str, colour: str, shape: str) -> None:
    size = 14 if shape == "o" else 8
    look = {"markerfacecolor": "none", "markeredgecolor": colour, "markeredgewidth": 2.2, "linestyle": "none"}
    axes.plot([x], [y], marker=shape, markersize=size, zorder=5, label=name, **look)


def _scales(axes: Axes, axis: str, series: Mapping[str, Sequence[SpeedPoint]]) -> None:
    """Put the measured values on the lower axis; the other one starts at 0 unless that hides something."""
    axes.set_xscale("log", base=2)
    ticks = sorted({_x(axis, point.setting) for points in series.values() for point in points})
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xlim(ticks[0] / 1.3, ticks[-1] * 1.3)
    drawn = [y for line in axes.lines for y in line.get_ydata()]
    if max(drawn) / min(drawn) > WIDE_RANGE:
        axes.set_yscale("log")
        axes.set_ylim(min(drawn) / 1.6, max(drawn) * 1.6)
        low, high = axes.get_ylim()
        steps = (1, 2, 5) if high / low < 1e3 else (1,)
        marks = [step * 10.0**power for power in range(-4, 9) for step in steps]
        marks = [mark for mark in marks if low <= mark <= high]
        axes.set_yticks(marks, [f"{mark:,g}" for mark in marks])
    else:
        axes.set_ylim(0, max(drawn) * 1.12)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axes.minorticks_off()
    axes.set_xlabel(LABELS[axis])


def _alt(said: str, series: Mapping[str, Sequence[SpeedPoint]], axis: str, origin: str) -> str:
    parts = []
    for name, points in series.items():
        values = ", ".join(
            f"{_x(axis, point.setting):g}: {digits(point.audio_per_s)} s/s, {seconds_in_words(point.seconds)}"
            for point in points
        )
        parts.append(f"{name}: {values}")
    end = f" {_upper(origin)}." if origin else ""
    return f"Audio a second and time of a forward against {LABELS[axis]}. {said}. {'; '.join(parts)}.{end}"
