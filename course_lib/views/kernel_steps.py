"""A time slider on a kernel of one's own: what one warp touches, instruction by instruction.

The kernel runs in the tracer (`simulators.gpu`), so no GPU is needed. Only the chosen block is run, on copies
of the arrays: what the notebook holds stays as it is. A step is shown as where the warp is, the line it runs,
the array, and what memory does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from course_lib.simulators.gpu.counting import WARP
from course_lib.theme import GREY_TINT, INK, PINK, PINK_TINT, QUIET
from course_lib.views.kernel_access import finding, is_costly, key_steps, sentence
from course_lib.views.kernel_map import hierarchy, place, written
from course_lib.views.kernel_memory import SMALL, height, memory
from course_lib.views.kernel_window import LEFT, SIDE, Window
from course_lib.views.live import Steps, widgets
from course_lib.views.paper import MONO, Html, Sheet, card, escape, note, side_by_side

if TYPE_CHECKING:
    from course_lib.simulators.gpu.result import Trace
    from course_lib.simulators.gpu.tally import WarpStep

ARRAY_WIDTH = LEFT + SIDE + 8
LINES = 22  # of the source that are shown
PANEL = 350.0  # of the still twin: two fit beside each other in a notebook
_SAMPLE = 64  # steps that are looked at to choose a height for all


def gpu_steps(
    kernel: Any,
    griddim: Any = None,
    blockdim: Any = None,
    *args: Any,
    block: Any = 0,
    warp: int = 0,
) -> KernelSteps:
    """Return a widget that steps through what one warp of `kernel[griddim, blockdim](*args)` touches.

    kernel: one for `@cuda.jit`, traced on the CPU. block: a number or (x, y, z); warp: 0 is the one of the
    block's first 32 threads. Both can be chosen in the widget; the kernel is then traced again. `args` stay
    as they are. Raises what `simulators.gpu.trace` raises, and ValueError without the launch.
    """
    from course_lib.simulators.gpu import trace

    if griddim is None or blockdim is None:
        raise ValueError("gpu_steps needs the launch: gpu_steps(kernel, griddim, blockdim, *args).")
    traced = partial(trace, kernel, griddim, blockdim, *args, races=False, progress=False, copies=True)
    return KernelSteps(traced, block, warp)


class KernelSteps(Steps):
    """The step-through: `.trace` and its `.steps` are the present warp's, `.title` is the finding for it.

    `.block` (a field for each dimension of the grid) and `.warp` choose another warp.
    """

    def __init__(self, traced: Callable[..., Trace], block: Any, warp: int) -> None:
        kit = widgets()
        self._traced = traced
        self._load(block, warp)
        launch = self.trace.launch
        number, warp = self.trace.recorded
        at = place(number, launch.grid)
        self.block = [
            self._field(f"block {name}" if len(at) > 1 else "block", value, size - 1)
            for name, value, size in zip("xyz", at, launch.grid, strict=False)
        ]
        self.warp = self._field("warp", warp, -(-math.prod(launch.block) // WARP) - 1)
        costly = self.next_where(lambda step: is_costly(self.steps[step]))
        jumps = {
            "next line »": ("Jump to the next step in another line", self._next_line),
            "next costly »": ("Jump to the next step that costs more than it must", costly),
        }
        super().__init__(jumps, readout=False)
        fields = [*self.block, self.warp]
        for field in fields:
            field.observe(lambda _: self._changed(), names="value")
        row = kit.HBox(fields, layout={"flex_flow": "row wrap"})
        self.widget = kit.VBox([row, self.widget])

    def _load(self, block: Any, warp: int) -> None:
        """Take the steps of a warp; only its block is run."""
        self.trace = self._traced(blocks=[block], record=(block, warp))
        self.steps: list[WarpStep] = self.trace.steps
        self.last = max(0, len(self.steps) - 1)
        self._window = lru_cache(maxsize=256)(Window)
        self.title = self._finding()
        self._heights = self._highest()

    def _finding(self) -> str:
        """Return the finding for this warp; a hazard of its block comes first."""
        launch, hazards = self.trace.launch, self.trace.hazards
        number, warp = self.trace.recorded
        where = written(place(number, launch.grid))
        found = f"{hazards[0].kind} in line {hazards[0].line}" if hazards else finding(self.steps)
        return f"{launch.kernel}, block {where}, warp {warp}: {found}"

    def _field(self, name: str, value: int, most: int) -> Any:
        tip = f"{name}, 0 to {most:,}. Keyboard: arrow keys up and down"
        look = {"description": name, "tooltip": tip, "layout": {"width": "170px"}}
        return widgets().BoundedIntText(value, min=0, max=most, disabled=most == 0, **look)

    def _next_line(self, step: int) -> int:
        steps = self.steps
        return self.next_where(lambda later: steps[later].line != steps[step].line)(step)

    def _changed(self) -> None:
        self._load([field.value for field in self.block], self.warp.value)
        self.restart()

    def sentence(self, number: int) -> str:
        """Return a step in words."""
        nothing = "This warp touches no global and no shared memory"
        return sentence(self.steps[number]) if self.steps else nothing

    def label(self, number: int) -> str:
        """Return a step and where it stands, in words."""
        count = f"Step {number + 1:,} of {len(self.steps):,}: " if self.steps else ""
        return f"{self.title}. {count}{self.sentence(number)}."

    def frame(self, number: int) -> str:
        """Return the picture of a step as HTML that wraps on a narrow page."""
        step = self.steps[number] if self.steps else None
        left = self._map(step) + self._source(step)
        array_height, memory_height = self._heights
        flex = "display:flex;flex-wrap:wrap;gap:16px 24px;align-items:flex-start"
        body = (
            f'<div style="{flex}"><div style="flex:1 1 320px;min-width:0;max-width:460px">{left}</div>'
            f'<div style="flex:0 1 auto;min-width:0">{self._array(step, array_height)}</div></div>'
        )
        if step is not None:
            body += f'<div style="margin-top:12px">{memory(step, least=memory_height)}</div>'
        return card(self._head(number) + body + self._foot(), self.label(number), title=self.title)

    def _head(self, number: int) -> str:
        count = f"step {number + 1:,} of {len(self.steps):,}" if self.steps else "no steps"
        if self.trace.steps_cut:
            count += ", later ones not kept"
        return (
            f'<div style="min-height:3em;margin:0 0 6px"><span style="color:{QUIET}">{count} – </span>'
            f'<span style="font-weight:700;font-size:15px">{escape(self.sentence(number))}</span></div>'
        )

    def _foot(self) -> str:
        """Return what the tracer found wrong in this block."""
        return "".join(note(f"Hazard: {hazard}") for hazard in self.trace.hazards[:3])

    def static(self) -> Html:
        """Return a sheet of a few telling steps of the present warp."""
        chosen = key_steps(self.steps)
        words = " ".join(self.label(number).removeprefix(f"{self.title}. ") for number in chosen)
        words = f"{self.title}. {words}"
        top = side_by_side([self._map(self.steps[chosen[0]] if chosen else None), self._source(None)])
        panels = [self._panel(number) for number in chosen]
        count = f"{len(chosen)} of the {len(self.steps):,} steps of this warp. {_LEGEND}" if chosen else ""
        return Html(
            card(top + side_by_side(panels) + note(count) + self._foot(), words, title=self.title), words
        )

    # -- parts ----------------------------------------------------------------------------------------------

    def _panel(self, number: int) -> str:
        step = self.steps[number]
        head = (
            f'<div style="font-weight:700;margin:14px 0 6px;min-height:4.4em;max-width:{PANEL:.0f}px">'
            f"Step {number + 1:,}, {escape(self.sentence(number))}</div>"
        )
        return head + self._array(step, 0.0, PANEL) + memory(step, SMALL, widest=PANEL)

    def _map(self, step: WarpStep | None) -> str:
        launch = self.trace.launch
        return hierarchy(launch.grid, launch.block, *self.trace.recorded, step)

    def _array(self, step: WarpStep | None, least: float, widest: float = 960) -> str:
        on = Sheet()
        if step is None or step.kind == "barrier":
            said = "A barrier: no array is touched." if step else "No array is touched."
            on.write(0, 14, said, fill=QUIET)
            return on.svg(ARRAY_WIDTH, max(least, 24.0), said)
        window = self._window(step)
        window.draw(on)
        return on.svg(ARRAY_WIDTH, max(least, window.height), window.words(), widest=widest)

    def _highest(self) -> tuple[float, float]:
        """Return one height for the array and one for memory, of every step: nothing jumps."""
        looked_at = [*self.steps[:_SAMPLE], *self.steps[:: max(1, len(self.steps) // _SAMPLE)]]
        seen = {(step.array, step.line, step.kind, step.cost): step for step in looked_at}.values()
        arrays = [self._window(step).height for step in seen if step.kind != "barrier"]
        return max(arrays, default=40.0), max(map(height, seen), default=0.0)

    def _source(self, step: WarpStep | None) -> str:
        """Return the kernel's text with the current line marked by colour, an edge and a pointer."""
        lines = _shown(self.trace.source, step.line if step else None)
        digits = len(str(max(lines, default=0)))
        shown = []
        for number, text in lines.items():
            now = step is not None and number == step.line
            gutter = f"{'▶' if now else ' '}{number:>{digits + 1}}  "
            ground, edge = (PINK_TINT, PINK) if now else ("transparent", "transparent")
            indent = len(text) - len(text.lstrip()) + digits + 6  # where a line that wraps goes on
            shown.append(
                f'<span style="display:block;background:{ground};border-left:4px solid {edge};'
                f'padding-left:calc({indent}ch + 5px);text-indent:-{indent}ch">'
                f'<span style="color:{QUIET};user-select:none">{gutter}</span>'
                f"{escape(text)}</span>"
            )
        style = (
            f"margin:8px 0 0;padding:6px 4px;background:{GREY_TINT};color:{INK};font:12px/1.45 {MONO};"
            "white-space:pre-wrap;overflow-wrap:anywhere;border-radius:4px"
        )
        return f'<pre style="{style}">{"".join(shown)}</pre>'


_LEGEND = "In the array: full, touched (a dot: by lane 0); hatched, moved along in a sector for nothing."


def _shown(source: Mapping[int, str], now: int | None) -> dict[int, str]:
    """Return the lines that are shown: all, or of a long kernel those around line `now` if there is one."""
    numbers = list(source)
    if len(numbers) > LINES and now is not None:
        at = numbers.index(now) if now in source else 0
        start = min(max(0, at - LINES // 2), len(numbers) - LINES)
        numbers = numbers[start : start + LINES]
    common = min((len(t) - len(t.lstrip()) for t in source.values() if t.strip()), default=0)
    return {number: source[number][common:] for number in numbers}
