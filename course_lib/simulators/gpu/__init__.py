"""A GPU that runs anywhere: kernels of `@cuda.jit` in lockstep on the CPU, with every access counted."""

from course_lib.simulators.gpu.launch import trace
from course_lib.simulators.gpu.refusal import NotTraceable
from course_lib.simulators.gpu.result import Trace

__all__ = ["NotTraceable", "Trace", "trace"]
