"""A GPU that runs anywhere: kernels of `@cuda.jit` in lockstep on the CPU, with every access counted.

`trace` runs a kernel, `occupancy` says how many of its warps fit on an SM; `warp_scheduler` shows what they
hide. No driver is touched.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from course_lib.simulators.gpu.occupancy import occupancy

if TYPE_CHECKING:
    from course_lib.simulators.gpu.launch import trace
    from course_lib.simulators.gpu.result import Trace
    from course_lib.simulators.gpu.source import NotTraceable

__all__ = ["NotTraceable", "Trace", "occupancy", "trace"]

_ROOMS = {"trace": "launch", "NotTraceable": "source", "Trace": "result"}


def __getattr__(name: str) -> Any:
    """Load the tracer, and Numba with it, when it is asked for."""
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_ROOMS[name]}"), name)
