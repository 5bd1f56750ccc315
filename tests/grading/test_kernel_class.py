"""Kernel answers on their way through a class: verdicts and pages."""

import html
import json
import re

import pytest
from kernel_examples import SCALE, SCALED, SEED, TURN, TURNED, declare, graded

from course_lib.grading.classroom.pages.render import feedback_page, teacher_page
from course_lib.grading.classroom.verdict import GRADED, OTHER
from course_lib.grading.judge import generator
from course_lib.grading.judge_launch import BY_LUCK

pytestmark = [pytest.mark.needs("bubblewrap"), pytest.mark.usefixtures("tracer_ready")]
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


@pytest.fixture(autouse=True)
def chapter(monkeypatch):
    declare(monkeypatch)


def task_of(verdict: dict, id: str) -> dict:
    return next(one for one in verdict["tasks"] if one["id"] == id)


def test_a_notebook_of_kernels_gets_its_points_and_its_pages():
    verdict = graded(*NOTEBOOK, SCALED)
    assert [one["points"] for one in verdict["tasks"]] == [3.0, 1.0]
    assert not verdict["manual"] and not any(one["manual"] for one in verdict["tasks"])
    assert all(one["feedback"]["lines"] == [GRADED] for one in verdict["tasks"])
    assert GRADED in html.unescape(feedback_page(verdict))


def test_a_hazard_is_told_with_the_line_of_the_students_cell():
    answer = NOTEBOOK[6].replace("    cuda.syncthreads()\n", "")
    line = 1 + answer.splitlines().index(LAST)
    verdict = graded(*NOTEBOOK[:6], answer, NOTEBOOK[7])
    said = task_of(verdict, TURN.id)["feedback"]["lines"][0]
    assert said.startswith(f"Data race in line {line}, `out[row, column]")
    page = html.unescape(re.sub("<[^>]*>", "", feedback_page(verdict)))
    assert f"Data race in line {line}" in page and BY_LUCK in page
    assert "Data race" in teacher_page(verdict)


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
