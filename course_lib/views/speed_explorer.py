"""Batch, length, number format, threads and the way to run as sliders over what was measured.

Only measured settings can be reached: a choice that was not measured leads to the nearest one that was, and a
sentence says what gave way. The picture marks the chosen one on its curve, beside the baseline: batch 1,
float32, eager.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from course_lib import theme
from course_lib.measure.table import digits, seconds_in_words, times
from course_lib.speech import encoder_recordings
from course_lib.speech.encoder_recordings import EncoderRecording
from course_lib.speech.encoder_speed import SpeedPoint
from course_lib.speech.encoder_variants import DTYPES, HOWS, Setting
from course_lib.theme import GREY, INK, PINK, Picture
from course_lib.views.figures import headline, hollow
from course_lib.views.figures import series as look_of
from course_lib.views.live import KEYS, Explorer, buttons, widgets
from course_lib.views.paper import Html, card, escape, note, plural, table, upper

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EXPLAINED = (
    "A forward: so long every utterance of the batch waits. An utterance: that divided by the batch, what "
    "one costs the machine. Error: the largest difference from eager float32 for the same input, over the "
    "largest value there."
)
WAITS = "GPU busy: the GPU's own time; what a forward takes beyond it, the GPU waits for the CPU's launches."


def encoder_speed(
    source: EncoderRecording | Sequence[SpeedPoint] | None, origin: str = ""
) -> SpeedExplorer | Html:
    """Return sliders over the points of a recording, or over what `encoder_speed.measure` gave.

    origin: where points come from, shown with them (a recording knows its own). None, for a recording that
    there is not, gives a sentence. Raises TypeError or ValueError for points that make no sweep.
    """
    if source is None:
        sentence = encoder_recordings.none()
        return Html(card(escape(sentence), sentence), sentence)
    if isinstance(source, EncoderRecording):
        return SpeedExplorer(Measured(source.points), source.origin, source.notes)
    return SpeedExplorer(Measured(source), origin)


class SpeedExplorer(Explorer):
    """The sliders: `.controls` by axis, `.setting` the chosen one; `frame(setting, axis)` draws a choice."""

    def __init__(self, measured: Measured, origin: str = "", notes: Sequence[str] = ()) -> None:
        self.measured, self.origin, self.notes = measured, origin, notes
        self.setting = best(measured).setting
        self.axis = "batch"
        super().__init__()
        kit = widgets()
        self.controls: dict[str, Any] = {}
        for axis in AXES:
            values = measured.values(axis)
            if len(values) < 2:
                continue  # nothing to choose
            shown = {
                "options": [(words(axis, value), value) for value in values],
                "value": getattr(self.setting, axis),
                "description": NAMES[axis],
            }
            if axis in CURVES:
                control = kit.SelectionSlider(**shown, layout={"width": "min(420px, 95%)"}, tooltip=KEYS)
            else:
                control = buttons(**shown, layout={"width": "auto"})
            control.observe(partial(self._moved, axis), names="value")
            self.controls[axis] = control
        self._show("")
        self.widget = kit.VBox([*self.controls.values(), self.status, self.picture])

    def _moved(self, axis: str, change: Any) -> None:
        if self._is_moving:
            return
        self.setting, given_way = self.measured.choose(self.setting, axis, change["new"])
        self.axis = axis if axis in CURVES else self.axis
        with self._moving():  # the others follow
            for other, control in self.controls.items():
                control.value = getattr(self.setting, other)
        self._show(given_way)

    def _show(self, sentence: str) -> None:
        self._draw(self.frame(self.setting, self.axis))
        self._say(sentence or KEYS)

    def frame(self, setting: Setting, axis: str = "batch") -> str:
        """Return the curves along an axis with a setting marked, and its figures beside the baseline's."""
        picture = chosen_curves(self.measured, setting, axis, self.origin)
        rows = dict.fromkeys((setting, self.measured.base))  # one row, if it is the baseline
        body = picture._repr_html_() + self._table(rows, marked=0)
        return card(body + note(self._explained()), picture.alt)

    def static(self) -> Html:
        """Return the curves over the batch, and every point in a table."""
        picture = main_curves(self.measured, self.origin)
        every = self.measured.points
        fastest = list(every).index(best(self.measured).setting)
        body = picture._repr_html_() + self._table(every, marked=fastest)
        said = finding(self.measured, best(self.measured).setting)
        explained = " ".join([self._explained(), *self.notes])
        return Html(card(body + note(explained), picture.alt), f"{said}. {picture.alt} {explained}")

    def _explained(self) -> str:
        baseline = f"The baseline is {in_words(self.measured.base)}."
        return " ".join([EXPLAINED, *([WAITS] if self._has_busy() else []), baseline])

    def _has_busy(self) -> bool:
        return any(point.busy_s is not None for point in self.measured.points.values())

    def _table(self, settings: Iterable[Setting], marked: int) -> str:
        head = ["", "audio, s a second", "x baseline", "a forward, ms", "an utterance, ms", "error"]
        if self._has_busy():
            head.insert(4, "GPU busy, ms")
        rows = [self._cells(one) for one in settings]
        return f'<div style="overflow-x:auto">{table(head, rows, marked=(marked,))}</div>'

    def _cells(self, setting: Setting) -> list[str]:
        point, base = self.measured[setting], self.measured[self.measured.base]
        name = escape(in_words(setting)) + (" (baseline)" if setting == self.measured.base else "")
        cells = [
            name,
            digits(point.audio_per_s),
            times(point.audio_per_s / base.audio_per_s),
            f"{digits(point.seconds * 1e3)} ± {digits(point.spread_s * 1e3, 2)}",
            digits(point.per_utterance_s * 1e3),
            f"{point.error:.0e}" if point.error else "0",
        ]
        if self._has_busy():
            cells.insert(4, "–" if point.busy_s is None else digits(point.busy_s * 1e3))
        return cells


#: What can be chosen, in the order of the controls; on one device.
AXES = ("batch", "frames", "dtype", "threads", "how")
CURVES = ("batch", "frames", "threads")  # along these, which are numbers, there are curves
NAMES = {"batch": "batch", "frames": "length", "dtype": "dtype", "threads": "threads", "how": "run"}
HOW_WORDS = {"eager": "eager", "compiled": "torch.compile", "graph": "CUDA graph"}


def words(axis: str, value: Any) -> str:
    """Return a value of an axis as it is shown: 5 s, torch.compile."""
    if axis == "frames":
        return f"{value / 100:g} s"
    return HOW_WORDS[value] if axis == "how" else str(value)


def in_words(setting: Setting, but: Setting | None = None) -> str:
    """Return a setting in short; with `but`, what differs from that one (and always the batch)."""
    parts = [f"batch {setting.batch}"]
    for axis in ("frames", "dtype", "how"):
        if but is None or getattr(setting, axis) != getattr(but, axis):
            parts.append(words(axis, getattr(setting, axis)))
    if setting.device == "cpu" and (but is None or setting.threads != but.threads):
        parts.append(plural(setting.threads, "thread"))
    return ", ".join(parts)


class Measured:
    """The points of one sweep on one device, by setting; `base` is batch 1, float32, eager."""

    def __init__(self, points: Sequence[SpeedPoint]) -> None:
        """Raise TypeError or ValueError for what is no sweep over one device with a baseline."""
        points = list(points)
        if not points or not all(isinstance(point, SpeedPoint) for point in points):
            raise TypeError("The points must be SpeedPoints, one or more: give what measure() gave.")
        if len({point.setting.device for point in points}) > 1:
            raise ValueError("The points are of two devices: give those of one, a view for each.")
        self.points = {point.setting: point for point in points}
        plain = [one for one in self.points if (one.batch, one.dtype, one.how) == (1, "float32", "eager")]
        if not plain:
            raise ValueError(
                "No point has batch 1, float32 and eager, to compare the others with: measure that, too."
            )
        self.base = max(plain, key=lambda one: one.threads)

    def __getitem__(self, setting: Setting) -> SpeedPoint:
        return self.points[setting]

    def values(self, axis: str) -> list[Any]:
        """Return what was measured of an axis, in order."""
        found = {getattr(setting, axis) for setting in self.points}
        known = {"dtype": DTYPES, "how": HOWS}.get(axis)
        return [value for value in known if value in found] if known else sorted(found)

    def choose(self, now: Setting, axis: str, value: Any) -> tuple[Setting, str]:
        """Return the measured setting nearest to `now` with `value` on `axis`, and what had to give way.

        Nearest: the fewest other axes move, numbers by the smallest factor, names rather to the baseline's.
        """
        wanted = now.but(**{axis: value})
        if wanted in self.points:
            return wanted, ""
        fitting = [setting for setting in self.points if getattr(setting, axis) == value]
        found = min(
            fitting, key=lambda one: (_moves(one, wanted), _distance(one, wanted), _moves(one, self.base))
        )
        moved = [other for other in AXES if getattr(found, other) != getattr(wanted, other)]
        changes = " and ".join(
            f"{NAMES[other]} went from {words(other, getattr(wanted, other))} to "
            f"{words(other, getattr(found, other))}"
            for other in moved
        )
        return found, f"{upper(in_words(wanted))} was not measured: {changes}."

    def along(self, axis: str, setting: Setting) -> list[SpeedPoint]:
        """Return a setting's point and those that differ from it in one axis only, in order of that axis."""
        own = {axis: getattr(setting, axis)}
        found = [point for one, point in self.points.items() if one.but(**own) == setting]
        return sorted(found, key=lambda point: getattr(point.setting, axis))


def _distance(setting: Setting, other: Setting) -> float:
    """Return by how many doublings the numbers of two settings differ."""
    return sum(abs(math.log2(getattr(setting, axis) / getattr(other, axis))) for axis in CURVES)


def _moves(setting: Setting, other: Setting) -> int:
    return sum(getattr(setting, axis) != getattr(other, axis) for axis in AXES)


LABELS = {
    "batch": "batch: utterances in one forward",
    "frames": "length of an utterance, s",
    "threads": "threads",
}
#: What the two panels show of a point.
PANELS = {
    "seconds of audio a second": lambda point: point.audio_per_s,
    "ms until a forward is done": lambda point: point.seconds * 1e3,
}
WIDE_RANGE = 25.0  # from this ratio on an axis that starts at 0 would hide the small values


def finding(measured: Measured, setting: Setting) -> str:
    """Say in one sentence how a setting compares with the baseline."""
    if setting == measured.base:
        point = measured[setting]
        return (
            f"The baseline, {in_words(setting)}: {digits(point.audio_per_s)} s of audio a second, "
            f"ready after {seconds_in_words(point.seconds)}"
        )
    point, base = measured[setting], measured[measured.base]
    name = upper(in_words(setting, but=measured.base))
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


# -- one choice --------------------------------------------------------------------------------------------


def chosen_curves(measured: Measured, setting: Setting, axis: str, origin: str) -> Picture:
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
        parts.append(plural(setting.threads, "thread"))
    return ", ".join(parts)


# -- all of it ---------------------------------------------------------------------------------------------


def main_curves(measured: Measured, origin: str) -> Picture:
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
    with theme.figure(8.6, 3.7 + 0.2 * len(series)) as fig:
        for axes, (what, y) in zip(fig.subplots(1, 2), PANELS.items(), strict=True):
            for number, (name, points) in enumerate(series.items()):
                x = [_x(axis, point.setting) for point in points]
                axes.plot(x, list(map(y, points)), **look_of(number), markersize=6, label=name)
            _mark(axes, _x(axis, base.setting), y(base), "baseline", INK, "x", 8)
            if chosen is not None:
                _mark(axes, _x(axis, chosen), y(measured[chosen]), "chosen", PINK, "o", 14)
            _scales(axes, axis, series)
            scale = ", logarithmic" if axes.get_yscale() == "log" else ""
            axes.set_title(what + scale, fontsize=10.5, fontweight="normal")
        handles, labels = axes.get_legend_handles_labels()  # those of one panel
        fig.legend(handles, labels, loc="outside lower left", ncols=2, fontsize=9)
        headline(fig, said, 62)
        if origin:
            fig.text(0.995, 0.005, origin, ha="right", va="bottom", fontsize=7.5, color=GREY)
        alt = f"Audio a second and time of a forward against {LABELS[axis]}. {said}. "
        parts = []
        for name, points in series.items():
            values = (
                f"{_x(axis, one.setting):g}: {digits(one.audio_per_s)} s/s, {seconds_in_words(one.seconds)}"
                for one in points
            )
            parts.append(f"{name}: {', '.join(values)}")
        end = f" {upper(origin)}." if origin else ""
        return Picture.of(fig, f"{alt}{'; '.join(parts)}.{end}")


def _x(axis: str, setting: Setting) -> float:
    return setting.length_s if axis == "frames" else getattr(setting, axis)


def _mark(axes: Axes, x: float, y: float, name: str, colour: str, shape: str, size: float) -> None:
    look = hollow(colour, size, 2.2)
    axes.plot([x], [y], marker=shape, linestyle="none", zorder=5, label=name, **look)


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
