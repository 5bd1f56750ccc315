"""Tasks of chapter 07: batched products and what becomes one, and reading the profile of a network.

One module per task.
"""

from __future__ import annotations

from course_lib.grading.tasks.batched import batch, bmm, im2col, profile, rel_shift, slow, softmax, strides

#: In the order of the chapter.
TASKS = (
    strides.TASK,
    bmm.TASK,
    im2col.TASK,
    rel_shift.TASK,
    softmax.TASK,
    profile.TASK,
    slow.TASK,
    batch.TASK,
)
