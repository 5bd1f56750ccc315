"""Which instructions of an answer run how often: with floats it must do what it does with numbers that count.

An answer that can tell the numbers that count from floats could do the work that is asked for with the former
alone, and let a library do it with the latter. So it is called with both, and its steps are compared.
"""

from __future__ import annotations

import sys
from collections import Counter
from types import FrameType
from typing import Any


class StepCounter:
    """For `sys.settrace`: counts in `taken` the instructions that stand in a file, each by its place."""

    def __init__(self, file: str) -> None:
        self.taken: Counter[tuple[int, int]] = Counter()
        self._file = file
        # Python 3.12 looks once, when tracing begins, whether any frame has ever asked for instructions
        sys._getframe().f_trace_opcodes = True

    def __call__(self, frame: FrameType, event: str, arg: Any) -> Any:
        """Take part in a call if its code stands in the file."""
        if frame.f_code.co_filename != self._file:
            return None
        frame.f_trace = self._step  # first: Python 3.13 asks a frame for instructions that is traced
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        return self._step

    def left_out_by(self, other: StepCounter) -> float:
        """Return which part of these instructions the other one did not run, or not as often."""
        return (self.taken - other.taken).total() / (self.taken.total() or 1)

    def _step(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "opcode":
            self.taken[id(frame.f_code), frame.f_lasti] += 1
        return self._step
