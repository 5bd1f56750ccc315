"""What an answer can find out where it runs: nothing about the calls, and of an oracle what it says."""

import dataclasses

import numpy as np
import pytest

from course_lib.grading import registry
from course_lib.grading.judge import judge
from course_lib.grading.sandbox import questions
from course_lib.grading.sandbox.bubblewrap import AnswerLimits, Sandbox
from course_lib.grading.sandbox.outside import SandboxedRunner
from course_lib.grading.task import Code

SAFE = Sandbox(limits=AnswerLimits(call_s=4, task_s=60, memory_mb=600, disk_mb=16, processes=12))
pytestmark = pytest.mark.needs("bubblewrap")


def judged(id: str, text: str, seed: int = 7, **changes):
    """Return the report on a text that no rule was asked about."""
    task = dataclasses.replace(registry.task(id), rules=(), **changes)
    with SandboxedRunner(Code(text, task.entry), SAFE, oracle=task.oracle) as runner:
        return judge(task, runner, text, seed)


# --- oracles ---

#: All right as long as the key told, or the number of the call.
NO_EXPERIMENT = (
    ("10.accumulator", "def widths(core):\n    return tuple(core)\n"),
    ("10.accumulator", "import sys\ndef widths(core):\n    return sys._getframe(1).f_locals['args'][0]\n"),
    (
        "10.scales",
        "def judged(kernel, a, b):\n    return 'wrong' if any(kernel[:4]) or kernel[5] >= 0 else 'right'",
    ),
    (
        "10.scales",
        "n = []\ndef judged(kernel, a, b):\n    n.append(1)\n    return 'wrong' if n[4:] else 'right'",
    ),
)


def test_what_an_oracle_hides_is_nowhere_inside_and_experiments_work(solutions):
    for id, text in NO_EXPERIMENT:
        assert judged(id, text).points == 0, text
    for id in ("10.accumulator", "10.scales"):
        assert judged(id, solutions["10"]).passed, id


ONE, LARGE = "np.ones((1, 4))", "np.ones((2000, 4))"
ASKED = (
    (f"tensor_core({ONE}, {ONE}, 0, core=core)", ""),
    (f"tensor_core({ONE}, {ONE}, 0, 7)", "ValueError in line 4, `return tensor_core(np.ones((1, 4))"),
    (f"tensor_core({ONE}, {ONE}, core)", "TypeError in line 4"),
    (f"tensor_core(4, {ONE}, 0, core)", "IndexError in line 4"),
    (f"tensor_core({LARGE}, {LARGE}, 0, core)", "20,020,005 numbers at once, and 4,194,304 are the most"),
    (f"tensor_core(np.ones((3000, 3000)), {ONE}, 0, core)", "a value of 69 MB is too large to be shipped"),
    (f"[tensor_core({ONE}, {ONE}, 0, core) for n in range(99)]", "QuestionLimit: it asked tensor_core 51"),
)


def test_questions_are_answered_within_bounds_and_faults_are_the_learners(monkeypatch):
    monkeypatch.setattr(questions, "MOST_QUESTIONS", 50)
    for line, words in ASKED:
        text = f"import numpy as np\ntensor_core = None\ndef widths(core):\n    return {line}\n"
        task = registry.task("10.accumulator")
        with SandboxedRunner(Code(text, "widths"), SAFE, oracle=task.oracle) as runner:
            outcome = runner.call(((4, 9, 9),))
            assert outcome.args_after == ((4, 9, 9),)
        if words:
            assert words in outcome.fault.sentence(), line
        else:
            assert outcome.value == np.float32(4.0) and outcome.value.dtype == np.float32
