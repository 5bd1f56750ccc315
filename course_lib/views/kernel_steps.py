"""A time slider on a kernel of one's own: what one warp touches, instruction by instruction.

The kernel runs in the tracer (`simulators.gpu`), so no GPU is needed. Only the chosen block is run, on a copy
of the arrays: what the notebook holds stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from course_lib.simulators.gpu.counting import WARP
from course_lib.simulators.gpu.result import Trace
from course_lib.views.kernel_access import is_costly
from course_lib.views.kernel_frame import Frames
from course_lib.views.kernel_map import place
from course_lib.views.live import Live, Player, widgets
from course_lib.views.paper import Html

KEPT = 8  # traces of other warps that are kept


def gpu_steps(
    kernel: Any,
    griddim: Any = None,
    blockdim: Any = None,
    *args: Any,
    block: Any = 0,
    warp: int = 0,
    shared_bytes: int = 0,
) -> KernelSteps:
    """Return a widget that steps through what one warp of `kernel[griddim, blockdim](*args)` touches.

    kernel: one for `@cuda.jit`, traced on the CPU; or a `Trace` made with record=(block, warp), alone.
    block: a number or (x, y, z); warp: 0 is the one of the block's first 32 threads. Both can be chosen in
    the widget; the kernel is then traced again. `args` are copied first and stay as they are.
    Raises what `simulators.gpu.trace` raises, and ValueError for a trace without steps.
    """
    if isinstance(kernel, Trace):
        if griddim is not None or kernel.recorded is None:
            raise ValueError(
                "A trace is shown alone, and must have been made with record=(block, warp): "
                "gpu_steps(trace(kernel, griddim, blockdim, …, record=(0, 0)))."
            )
        return KernelSteps(Frames(kernel))
    if griddim is None or blockdim is None:
        raise ValueError("gpu_steps needs the launch: gpu_steps(kernel, griddim, blockdim, *args).")
    runs = Runs(kernel, griddim, blockdim, args, shared_bytes)
    return KernelSteps(runs.frames(block, warp), runs)


class Runs:
    """Traces a launch again for every warp that is asked for, each time on a copy of the first arguments."""

    def __init__(self, kernel: Any, griddim: Any, blockdim: Any, args: tuple, shared_bytes: int) -> None:
        self._kernel, self._griddim, self._blockdim = kernel, griddim, blockdim
        self._args = copied(args)
        self._shared_bytes = shared_bytes
        self._kept: dict[tuple, Frames] = {}

    def frames(self, block: Any, warp: int) -> Frames:
        """Return the pictures of a warp's steps; only its block is run."""
        from course_lib.simulators.gpu import trace

        key = (block, warp)
        if key not in self._kept:
            if len(self._kept) >= KEPT:
                del self._kept[next(iter(self._kept))]
            seen = trace(
                self._kernel,
                self._griddim,
                self._blockdim,
                *copied(self._args),
                blocks=[block],
                shared_bytes=self._shared_bytes,
                races=False,
                record=(block, warp),
                progress=False,
            )
            self._kept[key] = Frames(seen)
        return self._kept[key]


def copied(args: tuple) -> tuple:
    """Return the arguments with copies of their arrays; views of one array stay views of one copy.

    A copy keeps strides and the distance from the start of the memory, which decide what a sector holds.
    """
    from course_lib.simulators.gpu.arrays import storages

    args = _as_numpy(args)
    memory = [(storage, storage.memory.copy()) for storage in storages(_arrays(args))]
    return _copy(args, memory)


def _as_numpy(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_as_numpy, value))
    if isinstance(value, np.ndarray | np.generic):
        return value
    is_array = hasattr(value, "__array_interface__") or type(value).__module__.startswith("torch")
    return np.asarray(value) if is_array else value


def _arrays(value: Any) -> Iterator[np.ndarray]:
    if isinstance(value, tuple):
        for part in value:
            yield from _arrays(part)
    elif isinstance(value, np.ndarray):
        yield value


def _copy(value: Any, memory: list[tuple[Any, np.ndarray]]) -> Any:
    if isinstance(value, tuple):
        return tuple(_copy(part, memory) for part in value)
    if not isinstance(value, np.ndarray):
        return value
    first = value.__array_interface__["data"][0]
    for storage, copied_bytes in memory if value.size else ():
        if storage.start <= first < storage.end:
            copy = np.ndarray(value.shape, value.dtype, copied_bytes, first - storage.start, value.strides)
            copy.flags.writeable = value.flags.writeable
            return copy
    return value.copy()


class KernelSteps(Live):
    """The step-through: `.player` has the controls, `.frames` the present warp's pictures.

    `.block` (a field for each dimension of the grid) and `.warp` choose another warp; without `runs` they
    only say which one was recorded.
    """

    def __init__(self, frames: Frames, runs: Runs | None = None) -> None:
        kit = widgets()
        self.frames, self._runs = frames, runs
        launch = frames.trace.launch
        self._grid = launch.grid
        threads = launch.block[0] * launch.block[1] * launch.block[2]
        at = place(frames.block, launch.grid)
        self.block = [
            self._field(f"block {name}" if len(at) > 1 else "block", value, size - 1)
            for name, value, size in zip("xyz", at, launch.grid, strict=False)
        ]
        self.warp = self._field("warp", frames.warp, -(-threads // WARP) - 1)
        jumps = {
            "next line »": ("Jump to the next step in another line", self.next_line),
            "next costly »": ("Jump to the next step that costs more than it must", self.next_costly),
        }
        self.player = Player(frames.last, self.frame, jumps, readout=False)
        fields = [*self.block, self.warp]
        if runs is None:
            for field in fields:
                field.disabled = True
        for field in fields:
            field.observe(lambda _: self._changed(), names="value")
        row = kit.HBox(fields, layout={"flex_flow": "row wrap"})
        self.widget = kit.VBox([row, self.player.box])

    def _field(self, name: str, value: int, most: int) -> Any:
        return widgets().BoundedIntText(
            value=value,
            min=0,
            max=most,
            description=name,
            tooltip=f"{name}, 0 to {most:,}. Keyboard: arrow keys up and down",
            disabled=most == 0,
            layout={"width": "170px"},
        )

    @property
    def step(self) -> int:
        """The step shown now, from 0."""
        return self.player.slider.value

    def frame(self, step: int) -> str:
        """Return the picture of one step as HTML."""
        return self.frames.frame(step)

    def static(self) -> Html:
        """Return a sheet of a few telling steps of the present warp."""
        return self.frames.static()

    def next_line(self, step: int) -> int:
        """Return the next step whose line is another one (the last step if none follows)."""
        steps = self.frames.steps
        later = range(step + 1, len(steps))
        return next((n for n in later if steps[n].line != steps[step].line), self.frames.last)

    def next_costly(self, step: int) -> int:
        """Return the next step that costs more than it must (the last step if none follows)."""
        later = range(step + 1, len(self.frames.steps))
        return next((n for n in later if is_costly(self.frames.steps[n])), self.frames.last)

    def _changed(self) -> None:
        if self._runs is None:
            return
        at = [field.value for field in self.block]
        at += [0] * (3 - len(at))
        number = at[0] + self._grid[0] * (at[1] + self._grid[1] * at[2])
        self.frames = self._runs.frames(number, self.warp.value)
        self.player.restart(self.frames.last)
