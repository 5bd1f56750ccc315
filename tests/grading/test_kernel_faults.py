"""Systematic faults in kernels: each operator makes its own, and nearly all of them are caught."""

import pytest
from kernel_examples import RIGHT, SCALE, TASKS, TURN, TURNED, declare
from tools.mutation import judging, survey
from tools.mutation.faults import faults, needed
from tools.mutation.operators import KERNEL_OPERATORS

#: Faults that are none, with the reason.
EQUAL = {
    "A.shape[-1]": "a matrix has two sizes, so the last is that of index 1",
    "out.shape[-1]": "a matrix has two sizes, so the last is that of index 1",
    "x.shape[-1]": "a vector has one size, so the last is the first",
    "x.shape[0 - 1]": "a vector has one size, so the last is the first",
    "i < y.shape[0]": "x and y have the same size",
}
HISTOGRAM = """
from numba import cuda

@cuda.jit
def count(x, bins):
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if i < x.size and x[i] >= 0:
        cuda.atomic.add(bins, x[i], 1)
    cuda.syncthreads()
"""


@pytest.fixture(autouse=True)
def chapter(monkeypatch):
    declare(monkeypatch)


def test_each_operator_makes_its_faults():
    made = [
        (one.operator, one.source) for one in faults(needed(HISTOGRAM, "count"), (), None, KERNEL_OPERATORS)
    ]
    for operator, line in (
        ("barrier", "    cuda.syncwarp()"),
        ("barrier", "    if cuda.threadIdx.x > 0:\n        cuda.syncthreads()"),
        ("axis", "cuda.blockIdx.y * cuda.blockDim.x + cuda.threadIdx.x"),
        ("axis", "cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.x"),
        ("axis", "cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.y"),
        ("coordinate", "cuda.threadIdx.x * cuda.blockDim.x + cuda.threadIdx.x"),
        ("coordinate", "cuda.blockIdx.x * cuda.gridDim.x + cuda.threadIdx.x"),
        ("bound", "if i < x.size - 1 and x[i] >= 0:"),
        ("bound", "if i < x.size + 1 and x[i] >= 0:"),
        ("bound", "if i < x.size:"),
        ("condition", "if True:"),
        ("atomic", "bins[x[i]] += 1"),
        ("operator", "cuda.blockIdx.x * cuda.blockDim.x - cuda.threadIdx.x"),
    ):
        assert any(name == operator and line in text for name, text in made), (operator, line)
    # a kernel gets no faults of results and of lists
    assert not {name for name, _ in made} & {"result", "input", "kept", "dtype", "items", "precision"}


def test_nearly_every_fault_of_a_right_kernel_is_caught_and_the_rest_is_none():
    for task in TASKS:
        code = needed(RIGHT[task.id], task.entry)
        known = survey.faults_of(task, code)
        assert len(known) > 30
        assert not {one.operator for one in known} & {"result", "input", "kept", "precision"}
        assert judging.caught_by(judging.Job(task.id, code.text, (9, 10))) == ("", "")
        survivors = [one for one in known if "" in judging.caught_by(judging.Job(task.id, one.source, (9,)))]
        unexplained = [str(one) for one in survivors if not any(words in one.change for words in EQUAL)]
        assert not unexplained, task.id


def test_the_check_that_catches_is_named():
    for task, text, check in (
        (TURN, TURNED.replace("    cuda.syncthreads()\n", ""), "hazard"),
        (TURN, TURNED.replace("TILE + 1", "TILE"), "cost"),
        (TURN, TURNED.replace("TILE = 32", "TILE = 32.5"), "exception"),
        (TURN, TURNED.replace("@cuda.jit\n", ""), "rule"),
        (TURN, TURNED.replace("turned(A, out)", "turned(A)"), "exception"),
        (TURN, TURNED.replace("out[row, column] = ", "out[row, column] = 2 * "), "value"),
        (SCALE, RIGHT[SCALE.id].rstrip() + "\n        x[i] = 0.0\n", "input changed"),
    ):
        assert judging.caught_by(judging.Job(task.id, text, (9,))) == (check,), text
