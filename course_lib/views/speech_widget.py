"""Where the learner's voice comes in: a file or the microphone; without either a sound made by code."""

from __future__ import annotations

import base64
import binascii
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from course_lib.speech import sample, synthetic
from course_lib.speech.audio import UnreadableAudio, as_wav
from course_lib.speech.sample import RATE, Sample
from course_lib.theme import DEEP_PINK, INK, PAPER
from course_lib.views import microphone
from course_lib.views.live import Live, widgets
from course_lib.views.log_mel_figure import log_mel
from course_lib.views.paper import Html, card, escape, note

HOW = (
    "Keyboard: Tab to a button, Space or Enter presses it; in the list Space, arrow keys and Enter choose. "
    "Files of up to about 7 MB; for larger ones give views.speech_input a path."
)


def speech_input(path: str | Path | None = None) -> SpeechInput:
    """Return a sound for the recogniser, and the means to give your own: upload, microphone, or `path`.

    `.samples` is float32 (n,), 16,000 a second, one channel, ready for `LogMel`. At first it is the sample
    that you gave last, or else three vowels made by code, the same everywhere. Raises UnreadableAudio for a
    `path` that holds no sound that can be read.
    """
    return SpeechInput(path)


class SpeechInput(Live):
    """The samples that were given, the one in use, and the widget. A bad file changes nothing."""

    rate = RATE

    def __init__(self, path: str | Path | None = None) -> None:
        self._given = [Sample(synthetic.NAME, synthetic.vowels(RATE))]
        self._now = self._given[0]
        self._pictures: dict[str, Any] = {}
        self._complaint = ""
        self._recall()
        if path is not None:
            try:
                content = Path(path).read_bytes()
            except OSError as problem:
                raise UnreadableAudio(
                    f"{path} cannot be read ({problem.strerror}): name a sound file of yours."
                ) from None
            self._add(Sample.of(content, str(path)))
        self._build()

    @property
    def samples(self) -> NDArray[np.float32]:
        """The sound in use: float32 (n,), 16,000 a second, full scale 1."""
        return self._now.samples

    @property
    def name(self) -> str:
        """What the sound in use is: a file's name, a recording, or what was made by code."""
        return self._now.name

    @property
    def seconds(self) -> float:
        """How long the sound in use is."""
        return self._now.seconds

    def take(self, content: bytes, name: str) -> None:
        """Use the sound in a file's bytes from now on, and keep it.

        Raises UnreadableAudio, and then changes nothing.
        """
        self._add(Sample.of(content, name))
        try:
            sample.keep(self._now)
        except OSError as problem:
            self._complaint = (
                f"{sample.path()} cannot be written ({problem.strerror}): your sample lasts as long as this "
                "kernel."
            )
        self._show()

    def forget(self) -> None:
        """Use the sound made by code, drop the others, and delete the one that is kept."""
        del self._given[1:]
        self._now, self._complaint = self._given[0], ""
        self._pictures.clear()
        try:
            sample.forget()
        except OSError as problem:
            self._complaint = f"{sample.path()} cannot be deleted ({problem.strerror}): delete it yourself."
        self._show()

    def picture(self) -> Any:
        """Return the figure of wave and log-mel bands of the sound in use."""
        if self._now.name not in self._pictures:
            self._pictures[self._now.name] = log_mel(self._now.samples)
        return self._pictures[self._now.name]

    def static(self) -> Html:
        """Return what the sound in use is, with its wave and its log-mel bands."""
        where = "In a running notebook you can give your own here: a file, or your voice."
        said = f"The sound in use: {self._described()}"
        body = card(self.picture()._repr_html_() + note(where), f"{said}. {where}", title=said)
        return Html(body, f"{said}. {self.picture().alt} {where}")

    # -- inside --------------------------------------------------------------------------------------------

    def _described(self) -> str:
        silent = ", all silence (is the microphone muted?)" if self._now.is_silent else ""
        return f"{self.name}, {self.seconds:.1f} s{silent}"

    def _add(self, given: Sample) -> None:
        """Use a new sample; if its name is another's already, it gets a number."""
        names = {one.name for one in self._given}
        name, number = given.name, 1
        while name in names:
            number += 1
            name = f"{given.name} ({number})"
        self._now, self._complaint = Sample(name, given.samples), ""
        self._given.append(self._now)

    def _recall(self) -> None:
        try:
            last = sample.kept()
        except UnreadableAudio as problem:
            self._complaint = f"Your last sample was not taken: {problem}"
        else:
            if last is not None:
                self._add(last)

    def _complain(self, sentence: str) -> None:
        self._complaint = sentence
        self._show()

    def _build(self) -> None:
        kit = widgets()
        self.upload = kit.FileUpload(
            description="Upload a sound file",
            accept="audio/*,.wav,.flac,.ogg,.mp3",
            layout={"width": "auto"},
            tooltip="Take a file from this computer",
        )
        self.record = kit.HTML(microphone.button())
        self.choice = kit.Dropdown(description="sound", layout={"width": "min(460px, 95%)"})
        self.drop = kit.Button(
            description="Forget mine",
            tooltip=f"Drop your samples; the last one, {sample.path()}, is deleted",
            layout={"width": "auto"},
        )
        self.data = kit.Textarea(continuous_update=False, layout={"display": "none"})
        self.data.add_class(microphone.DATA)
        self.player = kit.Audio(autoplay=False, loop=False, controls=True)
        self.said = kit.HTML()
        self.shown = kit.HTML()
        row = {"flex_flow": "row wrap", "align_items": "center"}
        giving = kit.HBox([self.record, self.upload], layout=row)
        choosing = kit.HBox([self.choice, self.drop], layout=row)
        self.widget = kit.VBox([giving, choosing, self.said, self.player, self.shown, self.data])
        self.widget.add_class(microphone.ROOT)
        self.upload.observe(self._uploaded, names="value")
        self.data.observe(self._recorded, names="value")
        self.choice.observe(self._chosen, names="value")
        self.drop.on_click(lambda _: self.forget())
        self._show()

    def _show(self) -> None:
        picture = self.picture()._repr_html_()  # takes longest, and all changes at once
        names = [one.name for one in self._given]
        if self.choice.options != tuple(names):
            self.choice.unobserve(self._chosen, "value")  # of new options the first is chosen: by nobody
            self.choice.options = names
            self.choice.observe(self._chosen, "value")
        self.choice.value = self.name
        self.drop.disabled = len(names) == 1
        complaint = self._complaint and (
            f'<div role="alert" style="color:{DEEP_PINK};font-weight:600">{escape(self._complaint)}</div>'
        )
        style = f"background:{PAPER};color:{INK};line-height:1.45;padding:2px 4px;white-space:normal"
        now = f"<div>In use: {escape(self._described())}.</div>"
        kept = f" Your last sample is kept in {sample.path()}."
        self.said.value = f'<div role="status" style="{style}">{complaint}{now}{note(HOW + kept)}</div>'
        self.player.value = as_wav(self.samples, RATE)
        self.shown.value = f'<div style="width:0;min-width:100%">{picture}</div>'

    def _uploaded(self, change: Any) -> None:
        for file in change["new"]:
            self._try(bytes(file["content"]), file["name"])
        if change["new"]:
            self.upload.value = ()  # the same file may be taken again

    def _recorded(self, change: Any) -> None:
        text = change["new"]
        if not text:
            return
        try:
            content = base64.b64decode(text.removeprefix(microphone.HEAD), validate=True)
        except binascii.Error:
            self._complain("The recording did not arrive whole: record it again.")
        else:
            self._try(content, "your recording")
        self.data.value = ""

    def _try(self, content: bytes, name: str) -> None:
        try:
            self.take(content, name)
        except UnreadableAudio as problem:
            self._complain(f"{problem} The sound in use stays what it was.")

    def _chosen(self, change: Any) -> None:
        chosen = next(one for one in self._given if one.name == change["new"])
        if chosen is not self._now:
            self._now, self._complaint = chosen, ""
            self._show()
