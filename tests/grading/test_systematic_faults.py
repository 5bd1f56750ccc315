"""Systematic faults: every fault of every solution is caught or explained."""

import os

import pytest
from tools.mutation import survey

from course_lib.grading import registry

SHORT = ("01.count", "01.dot", "01.rows", "01.predict_time", "02.strides", "06.coalesce")
ENOUGH = 0.98
MOST_EXPLAINED = 0.15  # whole numbers hide faults of rounding; more than that would be an excuse


def test_every_fault_of_the_short_tasks_is_caught_or_explained():
    found = survey.survey(map(registry.task, SHORT), [9])
    assert [findings.task_id for findings in found] == list(SHORT)
    _expect_enough(found)


@pytest.mark.slow
def test_every_fault_of_every_task_is_caught_or_explained():
    _expect_enough(survey.survey(registry.tasks(), [9, int.from_bytes(os.urandom(4))]))


def _expect_enough(found):
    told = survey.table(found)
    assert not any(findings.survived or findings.stale for findings in found), told
    total = sum(findings.total for findings in found)
    explained = sum(len(findings.equivalent) for findings in found)
    assert sum(findings.caught for findings in found) >= ENOUGH * (total - explained), told
    assert explained <= MOST_EXPLAINED * total, told
