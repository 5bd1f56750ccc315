"""Answers that are kernels, in the notebook and in the sandbox: what is right, and what is said of others."""

from dataclasses import replace

import pytest
from kernel_examples import RIGHT, SCALE, SCALED, TASKS, TURN, TURNED, WRONG

from course_lib.grading.check import PUBLIC_SEED, examine
from course_lib.grading.judge import judge
from course_lib.grading.runner import InProcess
from course_lib.grading.sandbox import process
from course_lib.grading.sandbox.bubblewrap import AnswerLimits, Sandbox
from course_lib.grading.sandbox.outside import SandboxedRunner
from course_lib.grading.sources import load
from course_lib.grading.task import Code, source

pytestmark = [pytest.mark.needs("bubblewrap"), pytest.mark.usefixtures("tracer_ready")]
LIMITS = AnswerLimits(call_s=4, task_s=60, memory_mb=600, disk_mb=16, processes=16)
SAFE = Sandbox(limits=LIMITS)
HEAD = "from numba import cuda\n\n\n@cuda.jit\n"


def boxed(task, text, sandbox=SAFE):
    """Return the report on a text that runs in the sandbox, as the grader of a class has it."""
    code = Code(text, task.entry)
    lines = tuple(range(1, text.count("\n") + 2))
    with SandboxedRunner(code, sandbox, lines) as runner:
        return judge(task, runner, code.text, PUBLIC_SEED)


def noted(task, text):
    """Return the report on a live function, as `check` in the notebook has it."""
    return examine(task, load(text, task.entry))


BOTH = (noted, boxed)


def scaled(body: str, head: str = "def scaled(x, y):") -> str:
    """Return an answer to 99.scaled with this body."""
    return HEAD + head + "\n" + "\n".join(f"    {line}" for line in source(body).splitlines()) + "\n"


# --- right and wrong ----------------------------------------------------------------------------------------


def test_right_and_typical_wrong_kernels_get_the_same_report_in_both_places():
    for task in TASKS:
        here, there = (str(judged(task, RIGHT[task.id])) for judged in BOTH)
        assert here == there and here.startswith("✓"), here
        for text, words in WRONG[task.id].items():
            here, there = (judged(task, text) for judged in BOTH)
            assert here.state == "wrong" and here.points == 0, str(here)
            assert words in str(here), str(here)
            assert str(here) == str(there), words


FIRST = "i = cuda.grid(1)\nif i < x.size:\n    "
#: What is said of a kernel, with the line of its cell: the kernel, and words of the report.
SAID = (
    # NaN plus a number has the NaN's own bits on many a processor: "No thread wrote" would be wrong
    (scaled(f"{FIRST}y[i] += 3 * x[i]"), "Line 8, `y[i] += 3 * x[i]`, reads y: begin a sum with 0"),
    (scaled(f"{FIRST}y[i] = 3 * x[i]\n    x[i] = 0.0"), "Your kernel writes into the first argument, `x`"),
    (scaled("t = [1, 2]\ny[0] = t[0]"), "Line 6, `t = [1, 2]`: a list is not supported in a"),
    (scaled("y[0] = 1.0\nreturn y"), "Line 7, `return y`: a kernel returns nothing"),
    (scaled("y[0] = x.sum()"), "Line 6, `y[0] = x.sum()`: x.sum() is not a function"),
    (scaled("y[0] = factor * x[0]"), "Line 6, `y[0] = factor * x[0]`: factor is not defined."),
    (scaled("y[0] = 'one'"), "Line 6, `y[0] = 'one'`"),
    (scaled("x[0] = 1", "def scaled(x):"), "takes 1 parameter (x), but it is launched with 2: x, y."),
    (scaled("y[0] = n", "def scaled(x, y, n):"), "takes 3 parameters (x, y, n), but it is launched with 2"),
    ("def scaled(x, y):\n    y[:] = 3 * x\n", "the plain function scaled, without @cuda.jit"),
    (SCALED.replace("jit\ndef scaled", "jit(device=True)\ndef scaled"), "leave device=True away"),
)


def test_what_is_no_right_kernel_is_told_alike_in_both_places():
    for text, words in SAID:
        for judged in BOTH:
            report = judged(SCALE, text)
            assert report.state == "wrong" and words in str(report), f"{text}\n{report}"
            assert "No thread wrote" not in str(report)


def test_a_loop_without_end_is_stopped_with_its_line():
    text = scaled("i = 0\nwhile i >= 0:\n    i += 1\ny[0] = i")
    here = judge(SCALE, InProcess(load(text, "scaled"), longest_s=0.3), text, 1)
    assert here.lines[0] in {
        f"Your kernel was stopped in line {line}, `{code}`: it did not finish in 0.3 s: does a loop end?"
        for line, code in ((7, "while i >= 0:"), (8, "i += 1"))
    }
    there = boxed(SCALE, text, Sandbox(limits=replace(LIMITS, call_s=1)))
    assert "`: it did not finish in 0.9 s: does a loop end?" in there.lines[0]


# --- counts -------------------------------------------------------------------------------------------------


def test_a_missed_limit_shows_which_lines_cost_what():
    for judged in BOTH:
        report = judged(TURN, TURNED.replace("TILE + 1", "TILE"))
        assert report.lines[0].startswith("The result is right")
        assert "Reading tile in line 16, `out[row, column]" in report.lines[1]
        assert "takes 5 wavefronts" in report.lines[1]
        assert any("store of tile, 10 requests, 10 wavefronts (1 each)" in line for line in report.lines)


@pytest.mark.slow  # the tracer is compiled anew
def test_without_a_sandbox_it_is_judged_alike():
    open_air = Sandbox(limits=LIMITS, unsafe=True)
    wrong, *_ = WRONG[TURN.id]
    assert str(boxed(TURN, wrong, open_air)) == str(noted(TURN, wrong))


# --- where a line is ----------------------------------------------------------------------------------------


def test_lines_of_helpers_are_those_of_their_own_cells(session):
    cells = (
        "from numba import cuda\n\nSHIFT = 1",
        "\n\n\n@cuda.jit(device=True)\ndef beyond(x, i):\n    return x[i + SHIFT]",
        "@cuda.jit\ndef scaled(x, y):\n    i = cuda.grid(1)\n    if i < x.size:\n        y[i] = beyond(x, i)",
    )
    report = examine(SCALE, session(cells)["scaled"])
    assert "in line 6, `return x[i + SHIFT]`" in report.lines[0], str(report)


# --- time ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_compiling_the_tracer_costs_no_answer_its_time(monkeypatch):
    monkeypatch.setattr(process, "_kept", dict)  # nothing kept: it compiles, for seconds
    small = Sandbox(limits=replace(LIMITS, call_s=1, task_s=12))
    report = boxed(SCALE, SCALED, small)
    assert report.passed, str(report)
