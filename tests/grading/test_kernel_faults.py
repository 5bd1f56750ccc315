"""Systematic faults in kernels: nearly all of them are caught, and the rest are none."""

import pytest
from kernel_examples import RIGHT, TASKS, declare
from tools.mutation import judging, survey
from tools.mutation.faults import needed

#: Faults that are none, with the reason.
EQUAL = {
    "A.shape[-1]": "a matrix has two sizes, so the last is that of index 1",
    "out.shape[-1]": "a matrix has two sizes, so the last is that of index 1",
    "x.shape[-1]": "a vector has one size, so the last is the first",
    "x.shape[0 - 1]": "a vector has one size, so the last is the first",
    "i < y.shape[0]": "x and y have the same size",
}


@pytest.fixture(autouse=True)
def chapter(monkeypatch):
    declare(monkeypatch)


def test_nearly_every_fault_of_a_right_kernel_is_caught_and_the_rest_is_none():
    for task in TASKS:
        code = needed(RIGHT[task.id], task.entry)
        known = survey.faults_of(task, code)
        assert len(known) > 30
        assert not {one.operator for one in known} & {"result", "input", "kept", "precision"}
        assert judging.caught(judging.Job(task.id, code.text, (9, 10))) == (False, False)
        survivors = [one for one in known if not all(judging.caught(judging.Job(task.id, one.source, (9,))))]
        unexplained = [str(one) for one in survivors if not any(words in one.change for words in EQUAL)]
        assert not unexplained, task.id
