"""Tasks of chapter 02: the same loop compiled, its order, and what limits it.

One module per task; `shared` has what several use.
"""

from __future__ import annotations

from course_lib.grading.tasks.compiled_loops import bug, fast, matmul, order, roofline, strides

#: In the order of the chapter.
TASKS = (strides.TASK, order.TASK, matmul.TASK, fast.TASK, bug.TASK, roofline.TASK)
