"""Tasks of chapter 10: an FP8 matrix product for Hopper in parts that need no GPU.

One module per task; `shared` has the tensor core that is handed out, `protocol` tries the orders of a ring.
"""

from __future__ import annotations

from course_lib.grading.tasks.fp8 import (
    accumulator,
    decode,
    encode,
    parity,
    promotion,
    quantise,
    scales,
    schedule,
    swizzle,
    tiles,
)

#: In the order of the chapter.
TASKS = (
    decode.TASK,
    encode.TASK,
    quantise.TASK,
    promotion.TASK,
    parity.TASK,
    swizzle.TASK,
    schedule.TASK,
    tiles.TASK,
    accumulator.TASK,
    scales.TASK,
)
