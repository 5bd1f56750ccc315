"""Exercises: what a learner calls in a notebook.

from course_lib.grading import check, hint, checkpoint, fill

check("01.rows", by_rows)       judge an answer and say what is wrong
total("01")                     the sum of the points of a chapter
hint("01.rows")                 a question, then the idea, then nearly the line
checkpoint("01.doubling", 8)    a chapter's question, explained at once
@fill("03.gauss")               a chapter's line that the learner types, above its function
baseline("02.fast")             what a speed task is timed against
"""

from course_lib.grading.check import baseline, check, hint, total
from course_lib.grading.checkpoints import checkpoint
from course_lib.grading.fills import fill
from course_lib.grading.registry import task, tasks

__all__ = ["baseline", "check", "checkpoint", "fill", "hint", "task", "tasks", "total"]
