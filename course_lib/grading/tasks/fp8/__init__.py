"""Tasks of chapter 10: an FP8 matrix product for Hopper in parts that need no GPU."""

from __future__ import annotations

from course_lib.grading.tasks.fp8.experiments import ACCUMULATOR, SCALES
from course_lib.grading.tasks.fp8.kernels import PARITY, SCHEDULE, SWIZZLE, TILES
from course_lib.grading.tasks.fp8.numbers import DECODE, ENCODE, PROMOTION, QUANTISE

#: In the order of the chapter.
TASKS = (DECODE, ENCODE, QUANTISE, PROMOTION, PARITY, SWIZZLE, SCHEDULE, TILES, ACCUMULATOR, SCALES)
