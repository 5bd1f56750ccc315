"""Tasks of chapter 07: batched products and what becomes one, and reading the profile of a network."""

from __future__ import annotations

from course_lib.grading.tasks.batched.layouts import BMM, IM2COL, REL_SHIFT, STRIDES
from course_lib.grading.tasks.batched.models import BATCH, PROFILE, SLOW, SOFTMAX

#: In the order of the chapter.
TASKS = (STRIDES, BMM, IM2COL, REL_SHIFT, SOFTMAX, PROFILE, SLOW, BATCH)
