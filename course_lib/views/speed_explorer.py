"""Batch, length, number format, threads and the way to run as sliders over what was measured.

Only measured settings can be reached (see `speed_choice`); the picture marks the chosen one on its curve,
beside the baseline: batch 1, float32, eager.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from course_lib.measure.table import digits, times
from course_lib.speech import encoder_recordings
from course_lib.speech.encoder_recordings import EncoderRecording
from course_lib.speech.encoder_speed import SpeedPoint
from course_lib.speech.encoder_variants import Setting
from course_lib.views.live import FITS, Live, widgets
from course_lib.views.paper import Html, card, escape, note, table
from course_lib.views.speed_choice import AXES, NAMES, Measured, in_words, words
from course_lib.views.speed_curves import CURVES, best, chosen_curves, finding, main_curves

KEYS = "Keyboard: Tab goes from control to control, arrow keys move a slider, Space presses a button."
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


class SpeedExplorer(Live):
    """The sliders: `.controls` by axis, `.setting` the chosen one; `frame(setting, axis)` draws a choice."""

    def __init__(self, measured: Measured, origin: str = "", notes: Sequence[str] = ()) -> None:
        self.measured, self.origin, self.notes = measured, origin, tuple(notes)
        self.setting = best(measured).setting
        self.axis = "batch"
        self._build()

    def _build(self) -> None:
        kit = widgets()
        self.controls: dict[str, Any] = {}
        for axis in AXES:
            values = self.measured.values(axis)
            if len(values) < 2:
                continue  # nothing to choose
            is_slider = axis in CURVES
            make = kit.SelectionSlider if is_slider else kit.ToggleButtons
            control = make(
                options=[(words(axis, value), value) for value in values],
                value=getattr(self.setting, axis),
                description=NAMES[axis],
                layout={"width": "min(420px, 95%)"} if is_slider else {"width": "auto"},
                **({"tooltip": KEYS} if is_slider else {"style": {"button_width": "auto"}}),
            )
            control.observe(self._moved(axis), names="value")
            self.controls[axis] = control
        self.status = kit.HTML(layout={"width": "auto"})
        self.picture = kit.HTML(layout={"width": "auto"})
        self._is_moving = False
        self._show("")
        self.widget = kit.VBox([*self.controls.values(), self.status, self.picture])

    def _moved(self, axis: str) -> Callable[[Any], None]:
        def moved(change: Any) -> None:
            if self._is_moving:
                return
            chosen = self.measured.choose(self.setting, axis, change["new"])
            self.setting = chosen.setting
            self.axis = axis if axis in CURVES else self.axis
            self._is_moving = True  # the others follow, and no one answers them
            try:
                for other, control in self.controls.items():
                    control.value = getattr(self.setting, other)
            finally:
                self._is_moving = False
            self._show(chosen.sentence)

        return moved

    def _show(self, sentence: str) -> None:
        said = escape(sentence or KEYS)
        self.picture.value = f'<div style="{FITS}">{self.frame(self.setting, self.axis)}</div>'
        self.status.value = f'<div role="status" style="{FITS};line-height:1.45">{said}</div>'

    def frame(self, setting: Setting, axis: str = "batch") -> str:
        """Return the curves along an axis with a setting marked, and its figures beside the baseline's."""
        picture = chosen_curves(self.measured, setting, axis, self.origin)
        rows = [setting, *([self.measured.base] if setting != self.measured.base else [])]
        body = picture._repr_html_() + self._table(rows, marked=(0,))
        return card(body + note(self._explained()), picture.alt)

    def static(self) -> Html:
        """Return the curves over the batch, and every point in a table."""
        picture = main_curves(self.measured, self.origin)
        body = picture._repr_html_() + self._table(list(self.measured.points), marked=self._best_row())
        said = finding(self.measured, best(self.measured).setting)
        explained = " ".join([self._explained(), *self.notes])
        return Html(
            card(body + note(explained), picture.alt, title=None), f"{said}. {picture.alt} {explained}"
        )

    def _best_row(self) -> tuple[int, ...]:
        return (list(self.measured.points).index(best(self.measured).setting),)

    def _explained(self) -> str:
        baseline = f"The baseline is {in_words(self.measured.base)}."
        return " ".join([EXPLAINED, *([WAITS] if self._has_busy() else []), baseline])

    def _has_busy(self) -> bool:
        return any(point.busy_s is not None for point in self.measured.points.values())

    def _table(self, settings: Sequence[Setting], marked: tuple[int, ...]) -> str:
        head = ["", "audio, s a second", "x baseline", "a forward, ms", "an utterance, ms", "error"]
        if self._has_busy():
            head.insert(4, "GPU busy, ms")
        rows = [self._cells(one) for one in settings]
        return f'<div style="overflow-x:auto">{table(head, rows, marked=marked)}</div>'

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
            cells.insert(4, digits(point.busy_s * 1e3) if point.busy_s is not None else "–")
        return cells
