"""Tasks of chapter 03: Strassen's seven products – counted, completed, written, repaired and priced.

One module per task; `shared` has the product of the blocks, the inputs and the rules that several use.
"""

from __future__ import annotations

from course_lib.grading.tasks.strassen import any_shape, bug, count, crossover, level, lost, winograd

#: In the order of the chapter.
TASKS = (
    count.TASK,
    lost.TASK,
    level.TASK,
    winograd.TASK,
    any_shape.TASK,
    bug.TASK,
    crossover.TASK,
)
