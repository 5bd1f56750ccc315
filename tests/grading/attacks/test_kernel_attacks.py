"""Kernels without end or measure, handed in as a notebook: each gets nothing, and none stops the grader.

Tricks with their text are in tricks.txt.
"""

from __future__ import annotations

import pytest
from kernel_examples import SCALE, SCALED, TURN, TURNED, declare, graded

from course_lib.grading.sandbox.bubblewrap import AnswerLimits

pytestmark = [pytest.mark.needs("bubblewrap"), pytest.mark.usefixtures("tracer_ready")]
LIMITS = AnswerLimits(call_s=2, task_s=30, memory_mb=700, disk_mb=16, processes=16)
HEAD = "from numba import cuda, float32, int32\n"
WRONG = "@cuda.jit\ndef scaled(x, y):\n    i = cuda.grid(1)\n    if i < x.size:\n        y[i] = x[i]\n"
NO_BARRIER = TURNED.replace("    cuda.syncthreads()\n", "")


def inside(body: str) -> str:
    """Return an answer to 99.scaled with this body."""
    lines = body.splitlines()
    return HEAD + "@cuda.jit\ndef scaled(x, y):\n" + "\n".join(f"    {line}" for line in lines) + "\n"


#: Attack -> the answer, to 99.scaled unless it defines `turned`.
ATTACKS = {
    "a huge shared array": inside("t = cuda.shared.array(10**11, float32)\nt[0] = 1\ny[0] = t[0]"),
    "a huge local array": inside("t = cuda.local.array((10**6, 10**6), float32)\nt[0, 0] = 1\ny[0] = 1"),
    "a huge number": HEAD + "N = 10 ** 10 ** 10\n" + WRONG.replace("x[i]", "x[i] * N"),
    "a huge tuple": inside("y[0] = (" + "1, " * 20_000 + ")[5]"),
    "deep arithmetic": inside("y[0] = " + "(" * 150 + "1" + "+ 1)" * 150),
    "deep blocks": HEAD + "@cuda.jit\ndef scaled(x, y):\n" + "".join(
        "    " + " " * n + "if x[0] > 0:\n" for n in range(60)) + "    " + " " * 60 + "y[0] = 1\n",
    "a loop without end": inside("i = 0\nwhile i >= 0:\n    i += 1\ny[0] = i"),
    "a loop over all numbers": inside("for i in range(2**62):\n    y[0] = i"),
    "a lock": inside("while cuda.atomic.cas(y, 0, 0, 1) != 0:\n    pass\ny[0] = 1"),
    "it calls itself": HEAD + "@cuda.jit\ndef scaled(x, y):\n    scaled(x, y)\n",
    "many hazards": inside("i = cuda.grid(1)\n" + "\n".join(f"y[i + {n}] = x[i - {n}]" for n in range(300))),
    "many rows": inside("\n".join("y[0] = x[0]" for _ in range(6_000))),
    "a long name": HEAD + "@cuda.jit\ndef scaled(x, " + "y" * 5_000 + "):\n    " + "y" * 5_000 + "[0] = 1\n",
    "writes below the array": inside("i = cuda.grid(1)\ny[-1000 - i] = 3.0"),
    "writes far beyond": inside("y[2**40] = 3.0"),
    "inputs overwritten": inside("i = cuda.grid(1)\nif i < x.size:\n    x[i] = 0.0\n    y[i] = 0.0"),
    "the result by luck": NO_BARRIER,
}  # fmt: skip

#: One of each kind, in every run of the tests; `make proof` has them all, some seconds each.
OF_EACH_KIND = ("deep arithmetic", "a loop without end", "the result by luck")

#: Attacks that a person should look at.
FLAGGED = ("deep arithmetic", "many rows")


@pytest.fixture(autouse=True)
def chapter(monkeypatch):
    declare(monkeypatch)


@pytest.mark.parametrize(
    "names",
    [OF_EACH_KIND, pytest.param([*ATTACKS], marks=pytest.mark.slow)],
    ids=["one of each kind", "all"],
)
def test_an_attack_gains_nothing_and_costs_no_other_answer(names):
    for name in names:
        text = ATTACKS[name]
        attacked, honest = (TURN, SCALE) if "def turned" in text else (SCALE, TURN)
        found = graded(text, SCALED if honest is SCALE else TURNED, limits=LIMITS)
        tasks = {task["id"]: task for task in found["tasks"]}
        verdict = tasks[attacked.id]
        lines = verdict["teacher"]["lines"]
        assert verdict["points"] == 0 and verdict["state"] == "wrong", (name, lines)
        assert lines and "could not be judged" not in lines[0], (name, verdict["manual"])
        assert sum(map(len, lines)) < 8_000, name
        assert not verdict["manual"] or name in FLAGGED, (name, verdict["manual"])
        assert tasks[honest.id]["points"] == honest.points, name
