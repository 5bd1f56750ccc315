"""Tasks of chapter 01: the triple loop in plain Python.

One module per task; `shared` has what several use.
"""

from __future__ import annotations

from course_lib.grading.tasks.python_loops import alias, count, dot, faster, matmul, predict_time

#: In the order of the chapter.
TASKS = (count.TASK, dot.TASK, matmul.TASK, alias.TASK, faster.TASK, predict_time.TASK)
