"""Tasks of chapter 06: kernels judged without a GPU, on their results, their hazards and what they cost.

One module per task; `shared` has the inputs and the slips that several use. The kernels run in the tracer.
"""

from __future__ import annotations

from course_lib.grading.tasks.gpu import (
    banks,
    barrier,
    coalesce,
    index,
    matmul,
    reduction,
    register,
    sectors,
    softmax,
    transpose,
)

#: In the order of the chapter.
TASKS = (
    sectors.TASK,
    index.TASK,
    barrier.TASK,
    coalesce.TASK,
    banks.TASK,
    reduction.TASK,
    transpose.TASK,
    matmul.TASK,
    register.TASK,
    softmax.TASK,
)
