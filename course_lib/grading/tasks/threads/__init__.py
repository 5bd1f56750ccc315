"""Tasks of chapter 05: threads that share memory, judged under every schedule, and work dealt out evenly.

One module per task; `shared` has the locks that several use.
"""

from __future__ import annotations

from course_lib.grading.tasks.threads import amdahl, balance, bands, invalidations, pool, race, transfer

#: In the order of the chapter.
TASKS = (
    bands.TASK,
    race.TASK,
    transfer.TASK,
    pool.TASK,
    invalidations.TASK,
    balance.TASK,
    amdahl.TASK,
)
