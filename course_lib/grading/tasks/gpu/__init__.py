"""Tasks of chapter 06: kernels judged without a GPU, on their results, their hazards and what they cost."""

from __future__ import annotations

from course_lib.grading.tasks.gpu.kernels import MATMUL, REDUCTION, REGISTER, SOFTMAX, TRANSPOSE
from course_lib.grading.tasks.gpu.memory import BANKS, BARRIER, COALESCE, INDEX, SECTORS

#: In the order of the chapter.
TASKS = (SECTORS, INDEX, BARRIER, COALESCE, BANKS, REDUCTION, TRANSPOSE, MATMUL, REGISTER, SOFTMAX)
