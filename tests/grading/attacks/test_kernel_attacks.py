"""Hostile kernels, handed in as a notebook: each is refused or judged wrong, and none stops the grader."""

from __future__ import annotations

import json

import attacks
import pytest
from kernel_examples import SCALE, SCALED, TURN, TURNED, declare

from course_lib.grading.classroom.assignment import Item
from course_lib.grading.classroom.verdict import SubmissionJob, judged
from course_lib.grading.sandbox.bubblewrap import AnswerLimits, Sandbox

pytestmark = [pytest.mark.needs("bubblewrap"), pytest.mark.usefixtures("tracer_ready")]
SANDBOX = Sandbox(limits=AnswerLimits(call_s=2, task_s=30, memory_mb=700, disk_mb=16, processes=16))
ITEMS = tuple(Item(task.id, task.entry, f"{task.id}-points", task.points) for task in (TURN, SCALE))
HEAD = "from numba import cuda, float32, int32\n"
WRONG = "@cuda.jit\ndef scaled(x, y):\n    i = cuda.grid(1)\n    if i < x.size:\n        y[i] = x[i]\n"
UNSAFE = "@cuda.jit\ndef scaled(x, y):\n    i = cuda.grid(1)\n    y[i] = 3 * x[i]\n"  # beyond the end
COSTLY = (  # right and safe, but neighbouring threads are far from each other
    "@cuda.jit\ndef scaled(x, y):\n    t = cuda.grid(1)\n    for i in range(t * 8, min(t * 8 + 8, x.size)):\n"
    "        y[i] = 3 * x[i]\n"
)
NO_BARRIER = TURNED.replace("    cuda.syncthreads()\n", "")


def inside(body: str) -> str:
    """Return an answer to 99.scaled with this body."""
    lines = attacks.text(body).splitlines()
    return HEAD + "@cuda.jit\ndef scaled(x, y):\n" + "\n".join(f"    {line}" for line in lines) + "\n"


def above(code: str, kernel: str = COSTLY) -> str:
    """Return an answer to 99.scaled with Python above its kernel, which reaches it by a name it reads."""
    return HEAD + attacks.text(code) + "\n" + kernel


#: Attack -> the answer, to 99.scaled unless it defines `turned`.
ATTACKS = {
    "counts of the tracer patched": above("""
        from course_lib.simulators.gpu import tally
        tally.KernelTally.row = lambda self, *key: None
    """, COSTLY.replace("3 *", "3 * tally *")),
    "hazards of the tracer patched": above("""
        import course_lib.simulators.gpu.tally as tally
        tally.KernelTally.note = lambda self, *hazard, **kind: None
    """, UNSAFE.replace("3 *", "3 * tally *")),
    "numba patched": above("""
        import numba.cuda
        numba.cuda.jit = lambda f: None
    """, WRONG.replace("@cuda", "@numba.cuda")),
    "syncthreads replaced": NO_BARRIER.replace("TILE = 32", "TILE = 32\ncuda.syncthreads = cuda.syncwarp"),
    "cuda replaced": above("""
        class cuda:
            @staticmethod
            def jit(f):
                return f
    """, WRONG),
    "runs when it is loaded": above("import os\nN = os.system('id')", WRONG.replace("x[i]", "x[i] * N")),
    "writes the reply itself": above("""
        import os
        N = os.write(1, b'{}')
    """, WRONG.replace("x[i]", "x[i] * N")),
    "reads the judge's file": above("N = open('/proc/self/mem').read(1)", WRONG.replace("x[i]", "x[i] * N")),
    "a class of an array": inside("A = x.__class__\ny[0] = 1"),
    "the memory of an array": inside("y[0] = x.ctypes.data"),
    "the base of an array": inside("z = y.base\nz[0] = 3"),
    "a printing setting": HEAD + WRONG.replace("cuda.jit", "cuda.jit(debug=print('x'))"),
    "a linked file": HEAD + WRONG.replace("cuda.jit", "cuda.jit(link='/etc/passwd')"),
    "a default that runs": HEAD + WRONG.replace("(x, y)", "(x, y=exec('import os'))"),
    "eval in a kernel": inside("eval('1')\ny[0] = 1"),
    "exec in an index": inside("y[exec('1')] = 1"),
    "a method of a text": inside("y['a'.join('b')] = 1"),
    "a name of the rewritten text": inside("L = 3\nL.tally.hazards.clear()\ny[0] = 1"),
    "the machine by its name": inside("L.tally.hazards.clear()\ny[0] = 1"),
    "a mask by its name": inside("m.lanes[:] = False\ny[0] = _nobody"),
    "a site by its name": inside("_site0.rows.clear()\ny[0] = 1"),
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
    "a guarded lie": above("if True:\n    FACTOR = 3", COSTLY.replace("3 *", "FACTOR *")),
}  # fmt: skip

#: One of each kind, in every run of the tests; `make proof` has them all, some seconds each.
OF_EACH_KIND = (
    "counts of the tracer patched",
    "cuda replaced",
    "writes the reply itself",
    "a class of an array",
    "a default that runs",
    "deep arithmetic",
    "a loop without end",
    "the result by luck",
)

#: Attacks that a person should look at.
FLAGGED = ("deep arithmetic",)


@pytest.fixture(autouse=True)
def chapter(monkeypatch):
    declare(monkeypatch)


def graded(*answers: str) -> dict[str, dict]:
    """Return the verdict on a notebook with these answers, by task."""
    cells = [attacks.code_cell(text, f"cell-{n}") for n, text in enumerate(answers)]
    data = json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}).encode()
    found = judged(SubmissionJob("short", "eve", ITEMS, data, "short.ipynb", (), 77, SANDBOX))
    return {task["id"]: task for task in found["tasks"]}


def test_the_honest_answers_get_their_points():
    tasks = graded(TURNED, SCALED)
    assert {id: one["points"] for id, one in tasks.items()} == {TURN.id: 3.0, SCALE.id: 1.0}
    assert not any(one["manual"] for one in tasks.values())


@pytest.mark.parametrize(
    "names",
    [OF_EACH_KIND, pytest.param([*ATTACKS], marks=pytest.mark.slow)],
    ids=["one of each kind", "all"],
)
def test_an_attack_gains_nothing_and_costs_no_other_answer(names):
    for name in names:
        text = ATTACKS[name]
        attacked, honest = (TURN, SCALE) if "def turned" in text else (SCALE, TURN)
        tasks = graded(text, SCALED if honest is SCALE else TURNED)
        verdict = tasks[attacked.id]
        lines = verdict["teacher"]["lines"]
        assert verdict["points"] == 0 and verdict["state"] == "wrong", (name, lines)
        assert lines and "could not be judged" not in lines[0], (name, verdict["manual"])
        assert sum(map(len, lines)) < 8_000, name
        assert not verdict["manual"] or name in FLAGGED, (name, verdict["manual"])
        assert tasks[honest.id]["points"] == honest.points, name


def test_the_costly_kernel_is_right_but_for_its_cost():
    """What several attacks try to hide is there to be found, by the names that they patch."""
    from course_lib.simulators.gpu.tally import KernelTally

    assert KernelTally.row and KernelTally.note
    lines = graded(HEAD + COSTLY)[SCALE.id]["teacher"]["lines"]
    assert lines[0].startswith("The result is right")
    assert "sectors for each request" in lines[1]
