"""Tasks of chapter 04: sets, blocks, panels and tiles.

One module per task; `shared` has what several use.
"""

from __future__ import annotations

from course_lib.grading.tasks.cache_and_simd import block, edge, fast, pack, sets, tile, visits

#: In the order of the chapter.
TASKS = (sets.TASK, block.TASK, visits.TASK, pack.TASK, tile.TASK, edge.TASK, fast.TASK)
