"""Answers that are kernels, in the notebook and in the sandbox: what is right, and what is said of others."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from kernel_examples import RIGHT, SCALE, SCALED, TASKS, TURN, TURNED, WRONG

from course_lib.grading.check import PUBLIC_SEED, examine
from course_lib.grading.judge import judge
from course_lib.grading.launch import Launch
from course_lib.grading.limits import TotalSectors
from course_lib.grading.program import CLOSED
from course_lib.grading.report import NOT_STARTED
from course_lib.grading.rules_gpu import KernelOnly
from course_lib.grading.runner import InProcess
from course_lib.grading.sandbox import tracer
from course_lib.grading.sandbox.bubblewrap import AnswerLimits, Sandbox
from course_lib.grading.sandbox.outside import SandboxedRunner
from course_lib.grading.sources import load
from course_lib.grading.task import Code, source

pytestmark = pytest.mark.usefixtures("tracer_ready")
LIMITS = AnswerLimits(call_s=4, task_s=60, memory_mb=600, disk_mb=16, processes=16)
SAFE = Sandbox(limits=LIMITS)
HEAD = "from numba import cuda\n\n\n@cuda.jit\n"


def boxed(task, text, sandbox=SAFE):
    """Return the report on a text that runs in the sandbox, as the grader of a class has it."""
    code = Code(f"{CLOSED}\n{text}", task.entry)
    lines = (0, *range(1, text.count("\n") + 2))
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


def test_a_missing_barrier_is_a_fault_though_the_result_is_right():
    from course_lib.simulators.gpu import trace

    text = TURNED.replace("    cuda.syncthreads()\n", "")
    A, out = np.ones((40, 33), np.float32), np.zeros((33, 40), np.float32)
    A[:] = np.arange(40 * 33).reshape(A.shape)
    assert trace(load(text, "turned"), (2, 2), (32, 32), A, out).hazards
    assert np.array_equal(out, A.T)  # by luck
    report = noted(TURN, text)
    assert report.lines[0].startswith("Data race in line 15, `out[row, column]")
    assert "happens to be right" in report.lines[-1]


def test_a_stub_is_not_started():
    for judged in BOTH:
        for body in ("pass", "...", "raise NotImplementedError()", '"""Write it."""\n'):
            assert judged(SCALE, scaled(body)).state == NOT_STARTED


def test_entries_that_no_thread_wrote_are_counted():
    for judged in BOTH:
        report = judged(SCALE, SCALED.replace("x.shape[0]:", "x.shape[0] and i % 2 == 0:"))
        assert (
            "No thread wrote 50 of the 100 entries of y: NaN stood there before the launch." in report.lines
        )


def test_a_result_that_is_added_to_is_not_said_to_be_unwritten():
    """NaN plus a number has the NaN's own bits on many a processor."""
    for judged in BOTH:
        report = judged(SCALE, scaled("i = cuda.grid(1)\nif i < x.size:\n    y[i] += 3 * x[i]"))
        said = (
            "or what it wrote was made from that NaN. Line 8, `y[i] += 3 * x[i]`, reads y: begin a sum with 0"
        )
        assert any(said in line for line in report.lines)
        assert not any("No thread wrote" in line for line in report.lines)


def test_a_constant_may_be_any_number():
    """From the live kernel of a notebook, whose constants are found as values."""
    for constant in (
        "from math import inf\nLIMIT = inf",
        "import math\nLIMIT = -math.inf * -1",
        "LIMIT = float('inf')",
        "import numpy as np\nLIMIT = np.float32(1e30)",
        "import numpy as np\nLIMIT = np.float64('inf')",
    ):
        text = SCALED.replace("@cuda.jit", constant + "\n\n\n@cuda.jit", 1)
        text = text.replace("x.shape[0]:", "x.shape[0] and x[i] < LIMIT:")
        assert "LIMIT:" in text and noted(SCALE, text).passed, constant
        assert KernelOnly().judge(f"{CLOSED}\n{text}", SCALE.entry) is None, constant  # as a class has it


def test_an_input_must_not_be_written():
    for judged in BOTH:
        report = judged(
            SCALE, scaled("i = cuda.grid(1)\nif i < x.size:\n    y[i] = 3 * x[i]\n    x[i] = 0.0")
        )
        assert report.lines == (
            "Your kernel writes into the first argument, `x`, which is there to be read only.",
        )


# --- what stops a kernel ------------------------------------------------------------------------------------

STOPPED = (
    ("t = [1, 2]\ny[0] = t[0]", "Line 6, `t = [1, 2]`: a list is not supported in a"),
    ("y[0] = 1.0\nreturn y", "Line 7, `return y`: a kernel returns nothing"),
    ("y[0] = x.sum()", "Line 6, `y[0] = x.sum()`: x.sum() is not a function"),
    ("y[0] = factor * x[0]", "Line 6, `y[0] = factor * x[0]`: factor is not defined."),
    ("y[0] = 'one'", "Line 6, `y[0] = 'one'`"),
)


def test_what_the_tracer_refuses_has_the_line_of_the_cell():
    for body, words in STOPPED:
        for judged in BOTH:
            report = judged(SCALE, scaled(body))
            assert report.state == "wrong" and report.lines[0].startswith(words), str(report)


def test_a_loop_without_end_is_stopped_with_its_line():
    text = scaled("i = 0\nwhile i >= 0:\n    i += 1\ny[0] = i")
    here = judge(SCALE, InProcess(load(text, "scaled"), longest_s=0.3), text, 1)
    assert here.lines[0] in {
        f"Your kernel was stopped in line {line}, `{code}`: it did not finish in 0.3 s: does a loop end?"
        for line, code in ((7, "while i >= 0:"), (8, "i += 1"))
    }
    there = boxed(SCALE, text, Sandbox(limits=replace(LIMITS, call_s=1)))
    assert "`: it did not finish in 0.9 s: does a loop end?" in there.lines[0]


def test_the_wrong_number_of_parameters_is_named():
    for judged in BOTH:
        few = judged(SCALE, scaled("x[0] = 1", "def scaled(x):"))
        assert few.lines == ("`scaled` takes 1 parameter (x), but it is launched with 2: x, y.",)
        many = judged(SCALE, scaled("y[0] = n", "def scaled(x, y, n):"))
        assert many.lines == ("`scaled` takes 3 parameters (x, y, n), but it is launched with 2: x, y.",)


def test_a_plain_function_is_no_kernel():
    for judged in BOTH:
        plain = judged(SCALE, "def scaled(x, y):\n    y[:] = 3 * x\n")
        assert "the plain function scaled, without @cuda.jit" in plain.lines[0]
        device = judged(SCALE, SCALED.replace("@cuda.jit\ndef scaled", "@cuda.jit(device=True)\ndef scaled"))
        assert "leave device=True away" in device.lines[0]


# --- counts -------------------------------------------------------------------------------------------------


def test_a_missed_limit_shows_which_lines_cost_what():
    for judged in BOTH:
        report = judged(TURN, TURNED.replace("TILE + 1", "TILE"))
        assert report.lines[0].startswith("The result is right")
        assert "Reading tile in line 16, `out[row, column]" in report.lines[1]
        assert "takes 5 wavefronts" in report.lines[1]
        assert any("store of tile, 10 requests, 10 wavefronts (1 each)" in line for line in report.lines)


def test_limits_hold_whatever_the_learner_calls_the_arguments():
    for judged in BOTH:
        text = scaled(
            "i = cuda.grid(1)\nj = i * 7 % 64 if i < 64 else i\nif j < b.size:\n    a[j] = 3 * b[j]"
        )
        report = judged(SCALE, text.replace("def scaled(x, y)", "def scaled(b, a)"))
        assert "Writing a in line 9" in report.lines[1], str(report)
        assert any("load of b, " in line for line in report.lines)


def test_limits_are_judged_in_order_and_get_the_arguments():
    def none(x, y):
        return 0 if x.size > 100 else 100

    limits = (TotalSectors(none, "none at all", "store"), TotalSectors(lambda x, y: -1, "less than none"))
    task = replace(SCALE, launch=replace(SCALE.launch, limits=limits))
    assert "sectors to write" not in str(noted(task, SCALED))
    first = replace(task, launch=replace(task.launch, limits=limits[:1]))
    report = noted(first, SCALED)
    assert report.lines[1].endswith("needs 16 sectors to write, and 0 are enough: none at all.")


def test_a_kernel_task_needs_the_rule_and_has_no_speed():
    with pytest.raises(ValueError, match="KernelOnly"):
        replace(SCALE, rules=())
    with pytest.raises(ValueError, match="speed or counts"):
        replace(SCALE, counts=object())
    assert KernelOnly in map(type, SCALE.rules)
    assert isinstance(SCALE.launch, Launch)


def test_dynamic_shared_memory_is_not_part_of_a_launch():
    for judged in BOTH:
        text = scaled(
            "i = cuda.grid(1)\nt = cuda.shared.array(0, float32)\nif i < x.size:\n"
            "    t[cuda.threadIdx.x] = x[i]\n    y[i] = 3 * t[cuda.threadIdx.x]"
        )
        text = text.replace("import cuda", "import cuda, float32")
        assert "dynamic shared memory" in judged(SCALE, text).lines[0]


def test_without_a_sandbox_it_is_judged_alike():
    open_air = Sandbox(limits=LIMITS, unsafe=True)
    wrong, *_ = WRONG[TURN.id]
    assert str(boxed(TURN, wrong, open_air)) == str(noted(TURN, wrong))


# --- where a line is ----------------------------------------------------------------------------------------


def test_lines_of_helpers_are_those_of_their_own_cells():
    space = {}
    cells = {
        "constants": "from numba import cuda\n\nSHIFT = 1",
        "helper": "\n\n\n@cuda.jit(device=True)\ndef beyond(x, i):\n    return x[i + SHIFT]",
        "kernel": "@cuda.jit\ndef scaled(x, y):\n    i = cuda.grid(1)\n    if i < x.size:\n"
        "        y[i] = beyond(x, i)",
    }
    import linecache

    for name, text in cells.items():
        linecache.cache[f"<{name}>"] = (len(text), None, text.splitlines(keepends=True), f"<{name}>")
        exec(compile(text, f"<{name}>", "exec"), space)
    report = examine(SCALE, space["scaled"])
    assert "in line 6, `return x[i + SHIFT]`" in report.lines[0], str(report)


# --- time ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_compiling_the_tracer_costs_no_answer_its_time(monkeypatch):
    monkeypatch.setattr(tracer, "_kept", dict)  # nothing kept: it compiles, for seconds
    small = Sandbox(limits=replace(LIMITS, call_s=1, task_s=12))
    report = boxed(SCALE, SCALED, small)
    assert report.passed, str(report)


@pytest.mark.slow
def test_compiling_the_tracer_costs_no_time_in_the_notebook(tmp_path):
    code = (
        "from kernel_examples import SCALE, SCALED\n"
        "from course_lib.grading.judge import judge\n"
        "from course_lib.grading.runner import InProcess\n"
        "from course_lib.grading.sources import load\n"
        "print(judge(SCALE, InProcess(load(SCALED, 'scaled'), longest_s=1.0), SCALED, 1).state)\n"
    )
    paths = os.pathsep.join([os.path.dirname(__file__), *filter(None, sys.path)])
    place = {**os.environ, "PYTHONPATH": paths, "NUMBA_CACHE_DIR": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", code], env=place, capture_output=True, text=True, timeout=120)
    assert run.stdout.strip() == "right", run.stderr
