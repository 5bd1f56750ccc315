"""What every widget shares: a still twin for pages without a kernel, a walk through frames, an explorer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from course_lib.views.paper import Html, escape

KEYS = "Keyboard: Tab goes from control to control, arrow keys move a slider, Space presses a button."
#: An output area is as wide as its content; this style keeps the content as wide as the output area.
FITS = "width:0;min-width:100%"


def widgets() -> ModuleType:
    """Return ipywidgets; raises ImportError with one sentence when it is not installed."""
    try:
        import ipywidgets
    except ImportError as problem:
        raise ImportError(
            "This view is interactive and needs ipywidgets, which is not installed: "
            "run pip install 'nine-circles-of-matmul[lab]'."
        ) from problem
    return ipywidgets


def buttons(options: Sequence[Any], **more: Any) -> Any:
    """Return buttons of which one is pressed. (Lab takes the keys that a list to unfold would need.)"""
    return widgets().ToggleButtons(options=options, style={"button_width": "auto"}, **more)


class Live:
    """Something interactive. A notebook shows `widget`, an exported page or a terminal shows `static()`."""

    widget: Any

    def static(self) -> Html:
        """Return the picture that stands where no widget can."""
        raise NotImplementedError

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        still = self.static()
        if hasattr(self.widget, "_repr_mimebundle_"):
            shown = self.widget._repr_mimebundle_()
        else:  # ipywidgets 7, which Colab has, would rather print itself than say what it prints
            identity = {"version_major": 2, "version_minor": 0, "model_id": self.widget.model_id}
            shown = {"application/vnd.jupyter.widget-view+json": identity}
        return {**shown, "text/html": still._repr_html_(), "text/plain": repr(still)}

    def __repr__(self) -> str:
        return repr(self.static())


class Explorer(Live):
    """Controls over a picture: what they say is drawn, and `status`, a line of words, says what became of it.

    A subclass makes its controls and draws with `_draw`. Inside `with self._moving():` the code sets
    controls; their handlers look at `_is_moving` and do not answer.
    """

    def __init__(self) -> None:
        kit = widgets()
        self.status = kit.HTML(layout={"width": "auto"})
        self.picture = kit.HTML(layout={"width": "auto"})
        self._is_moving = False

    def _draw(self, picture: str) -> None:
        self.picture.value = f'<div style="{FITS}">{picture}</div>'

    def _say(self, words: str) -> None:
        self.status.value = f'<div role="status" style="{FITS};line-height:1.45">{escape(words)}</div>'

    @contextmanager
    def _moving(self) -> Iterator[None]:
        self._is_moving = True
        try:
            yield
        finally:
            self._is_moving = False


class Steps(Live):
    """A walk through frames 0 … `last`: play, back, next, jumps and a slider; `.step` is the present frame.

    The slider has the focus of the keyboard: arrow keys step, Page Up and Page Down leap, Home and End go to
    the ends. A subclass knows its `last` and draws with `frame`. `jumps` names further buttons; each maps the
    present frame to the one it goes to. `choice`, a control, chooses among walks; a new choice begins at
    frame 0. `readout` False hides the slider's number: for pictures that count their frames from 1.
    """

    KEYS = "Keyboard: Tab to the slider, then arrow keys step; Home and End go to the ends"
    last: int

    def __init__(
        self,
        jumps: Mapping[str, tuple[str, Callable[[int], int]]] | None = None,
        choice: Any = None,
        interval_ms: int = 700,
        readout: bool = True,
    ) -> None:
        kit = widgets()
        ends = {"value": 0, "min": 0, "max": self.last}
        look = {"description": "step", "tooltip": self.KEYS, "layout": {"width": "min(420px, 90%)"}}
        self.slider = kit.IntSlider(**ends, **look, readout=readout)
        self.play = kit.Play(**ends, interval=interval_ms, tooltip="Play all steps")
        kit.jslink((self.play, "value"), (self.slider, "value"))
        self.back = self._button("◀ back", "One step back", lambda frame: frame - 1)
        self.forward = self._button("next ▶", "One step forward", lambda frame: frame + 1)
        self.jumps = {name: self._button(name, tip, go) for name, (tip, go) in (jumps or {}).items()}
        self.picture = kit.HTML(self.frame(0))
        self.slider.observe(lambda _: self._show(), names="value")
        buttons = [self.play, self.back, self.forward, *self.jumps.values()]
        row = kit.HBox(buttons, layout={"flex_flow": "row wrap", "align_items": "center"})
        self.widget = kit.VBox([self.picture, row, self.slider])
        if choice is not None:
            choice.observe(lambda _: self.restart(), names="value")
            self.widget = kit.VBox([choice, self.widget])

    def _button(self, name: str, tip: str, go: Callable[[int], int]) -> Any:
        button = widgets().Button(description=name, tooltip=tip, layout={"width": "auto"})

        def pressed(_: Any) -> None:
            self.slider.value = min(max(go(self.step), 0), self.last)

        button.on_click(pressed)
        return button

    @property
    def step(self) -> int:
        """The frame shown now."""
        return self.slider.value

    def _show(self) -> None:
        self.picture.value = self.frame(self.step)

    def restart(self) -> None:
        """Go to frame 0 of another walk."""
        self.slider.value = 0
        self.slider.max = self.play.max = self.last
        self._show()

    def frame(self, step: int) -> str:
        """Return the picture of a step as HTML or SVG."""
        raise NotImplementedError

    def next_where(self, found: Callable[[int], bool]) -> Callable[[int], int]:
        """Return the jump to the next step for which `found` holds, to the last one if none follows."""
        return lambda step: next(filter(found, range(step + 1, self.last + 1)), self.last)
