"""Kernel answers on their way through a notebook and a class: slices, verdicts, pages, check() itself."""

import html
import json
import re
from pathlib import Path

import pytest
from kernel_examples import SCALE, SCALED, TASKS, TURN, TURNED, declare

from course_lib.grading.classroom.assignment import Item
from course_lib.grading.classroom.pages.render import feedback_page, teacher_page
from course_lib.grading.classroom.verdict import GRADED, OTHER, SubmissionJob, judged
from course_lib.grading.judge import generator
from course_lib.grading.judge_launch import BY_LUCK
from course_lib.grading.sandbox.bubblewrap import AnswerLimits, Sandbox

SANDBOX = Sandbox(limits=AnswerLimits(call_s=4, task_s=60, memory_mb=700, disk_mb=16, processes=16))
ITEMS = tuple(Item(task.id, task.entry, f"{task.id}-points", task.points) for task in TASKS)
SEED = 4711
NOTEBOOK = (
    "import numpy as np\nfrom numba import cuda, float32\nfrom course_lib.grading import check\n"
    "import matplotlib.pyplot as plt\nrng = np.random.default_rng(1)",
    "TILE = 32\nSHAPE = (TILE, TILE + 1)\nOTHER = 5",
    "@cuda.jit(device=True)\ndef inside(i, j, A):\n    return i < A.shape[1] and j < A.shape[0]",
    "from course_lib.simulators.gpu import trace\nA = np.ones((4, 4), np.float32)\nB = A.copy()",
    "@cuda.jit\ndef other(A):\n    A[0] = OTHER",
    "@cuda.jit\ndef turned(A, out):\n    pass",
    "# my answer\n\n"
    + TURNED.partition("SHAPE = (TILE, TILE + 1)\n\n")[2].replace(
        "i < A.shape[1] and j < A.shape[0]", "inside(i, j, A)"
    ),
    'trace(turned, 1, (32, 32), A, B)\ncheck("99.turned", turned)',
)

LAST = "        out[row, column] = tile[cuda.threadIdx.x, cuda.threadIdx.y]"


def sandboxed(test):
    """Mark a test that has a whole notebook judged."""
    return pytest.mark.needs("bubblewrap")(pytest.mark.usefixtures("tracer_ready")(test))


@pytest.fixture(autouse=True)
def chapter(monkeypatch):
    declare(monkeypatch)


def graded(*texts: str) -> dict[str, dict]:
    """Return the verdict on a notebook, by task."""
    plain = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": 1}
    made = [{**plain, "id": f"c{n}", "source": text} for n, text in enumerate(texts)]
    data = json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": made}).encode()
    return judged(SubmissionJob("short", "ada", ITEMS, data, "short.ipynb", (), SEED, SANDBOX))


def task_of(verdict: dict, id: str) -> dict:
    return next(one for one in verdict["tasks"] if one["id"] == id)


@sandboxed
def test_an_answer_keeps_its_points_when_a_later_task_has_another_constant():
    assert task_of(graded(TURNED, "TILE = 16"), TURN.id)["points"] == TURN.points


@sandboxed
def test_a_notebook_of_kernels_gets_its_points_and_its_pages():
    verdict = graded(*NOTEBOOK, SCALED)
    assert [one["points"] for one in verdict["tasks"]] == [3.0, 1.0]
    assert not verdict["manual"] and not any(one["manual"] for one in verdict["tasks"])
    assert all(one["feedback"]["lines"] == [GRADED] for one in verdict["tasks"])
    assert GRADED in html.unescape(feedback_page(verdict))


@sandboxed
def test_a_hazard_is_told_with_the_line_of_the_students_cell():
    answer = NOTEBOOK[6].replace("    cuda.syncthreads()\n", "")
    line = 1 + answer.splitlines().index(LAST)
    verdict = graded(*NOTEBOOK[:6], answer, NOTEBOOK[7])
    said = task_of(verdict, TURN.id)["feedback"]["lines"][0]
    assert said.startswith(f"Data race in line {line}, `out[row, column]")
    page = html.unescape(re.sub("<[^>]*>", "", feedback_page(verdict)))
    assert f"Data race in line {line}" in page and BY_LUCK in page
    assert "Data race" in teacher_page(verdict)


@sandboxed
def test_a_plain_function_is_told_and_not_taken_for_nothing():
    verdict = graded("def scaled(x, y):\n    y[:] = 3 * x\n")
    one = task_of(verdict, SCALE.id)
    assert one["state"] == "wrong" and "without @cuda.jit" in one["feedback"]["lines"][0]
    assert task_of(verdict, TURN.id)["state"] == "not started"


@sandboxed
def test_what_only_the_secret_inputs_show_is_told_without_them():
    (*_, public), (*_, secret) = (list(SCALE.cases(generator(SCALE, seed))) for seed in (9, SEED))
    size, other = public.args[0].size, secret.args[0].size
    assert size != other
    fitted = SCALED.replace(
        "if i < x.shape[0]:", f"if i < x.shape[0] and (x.size < 200 or x.size == {size}):"
    )
    one = task_of(graded(fitted), SCALE.id)
    assert one["points"] == 0 and one["feedback"]["lines"][0] == OTHER
    assert str(other) not in json.dumps(one["feedback"]) and "No thread wrote" in one["teacher"]["lines"][0]
    assert one["manual"]


# --- the learner's own notebook -----------------------------------------------------------------------------


def test_check_in_a_real_notebook_names_the_lines_of_its_cells(tmp_path):
    import nbformat
    from nbclient import NotebookClient

    folder = Path(__file__).parent
    head = (
        f"import sys\nsys.path.insert(0, {str(folder)!r})\nimport pytest, kernel_examples\n"
        "kernel_examples.declare(pytest.MonkeyPatch())"
    )
    wrong = NOTEBOOK[6].replace("    cuda.syncthreads()\n", "")
    book = nbformat.v4.new_notebook()
    texts = (head, *NOTEBOOK, wrong, NOTEBOOK[7])
    book.cells = [nbformat.v4.new_code_cell(text) for text in texts]
    NotebookClient(book, timeout=120, kernel_name="python3").execute(cwd=str(tmp_path))
    right, last = (book.cells[n]["outputs"][-1]["data"]["text/plain"] for n in (len(NOTEBOOK), -1))
    assert "3 of 3 points" in right
    line = 1 + wrong.splitlines().index(LAST)
    assert f"Data race in line {line}, `out[row, column]" in last, last
