"""What an answer can find out where it runs: nothing about the calls, and of an oracle what it says."""

import dataclasses
import inspect

import numpy as np
import pytest

from course_lib.grading import registry
from course_lib.grading.judge import judge
from course_lib.grading.sandbox import questions
from course_lib.grading.sandbox.bubblewrap import AnswerLimits, Sandbox
from course_lib.grading.sandbox.outside import SandboxedRunner
from course_lib.grading.task import Code, source

SAFE = Sandbox(limits=AnswerLimits(call_s=4, task_s=60, memory_mb=600, disk_mb=16, processes=12))
pytestmark = pytest.mark.needs("bubblewrap")


def judged(id: str, text: str, seed: int = 7, **changes):
    """Return the report on a text that no rule was asked about."""
    task = dataclasses.replace(registry.task(id), rules=(), **changes)
    with SandboxedRunner(Code(text, task.entry), SAFE, oracle=task.oracle) as runner:
        return judge(task, runner, text, seed)


# --- timed calls ---

BELOW = source("""
    import sys
    def f(*args):
        frame, frames = sys._getframe().f_back, 0
        while frame:
            frame, frames = frame.f_back, frames + 1
        return frames
""")
RIGHT, NOT_PLAIN, KEPT = "The values are right.", "NotPlain: a timed call", "does it keep results"
#: Each got all points on the baseline's own work, or gave back what it writes over later; what is said now.
SKIPS = {
    "all calls but the last, which frames show": (RIGHT, """
        def matmul_fast(A, B, kept=[0]):
            frame = sys._getframe()
            while frame:
                here = frame.f_locals
                if "changes" in here and "places" in here and here["places"] is not here["changes"][-1]:
                    return kept[0]
                frame = frame.f_back
            kept[0] = product(A, B)
            return kept[0]
    """),
    "all calls but the one that is shipped": (NOT_PLAIN, """
        class Later(list):
            def __len__(self):
                return len(self.args[0])
            def __iter__(self):
                return iter(product(*self.args))
        def matmul_fast(A, B):
            found = Later()
            found.args = A, B
            return found
    """),
    "every fourth call": (KEPT, """
        def matmul_fast(A, B, kept=[0, None]):
            kept[0] += 1
            if kept[0] % 4 or kept[1] is None:
                kept[1] = product(A, B)
            return kept[1]
    """),
    "room for a new result": (KEPT, """
        def matmul_fast(A, B, kept={}):
            rows = kept.setdefault(len(A), [])
            rows[:] = product(A, B)
            return rows
    """),
}  # fmt: skip


def test_work_left_out_in_timed_calls_never_pays():
    right = registry.task("01.faster")
    speed = dataclasses.replace(
        right.speed, budget_s=0.3, make_inputs=lambda rng: tuple(rng.standard_normal((2, 20, 20)).tolist())
    )
    baseline = f"import sys\n{speed.baseline.text.replace(speed.baseline.entry, 'product')}\n"
    for name, (said, text) in SKIPS.items():
        report = judged("01.faster", baseline + source(text), cases=lambda rng: [], speed=speed)
        assert report.points <= (said == RIGHT) and said in str(report), (name, report)


def test_below_an_answer_there_is_no_frame():
    with SandboxedRunner(Code(BELOW, "f"), SAFE) as runner:
        assert runner.call((1,)).value == 0
        timing = runner.time(
            dataclasses.replace(registry.task("01.faster").speed, budget_s=0.1), ([[1.0]],) * 2
        )
    assert len(timing.checked) >= 7 and {value for _, value in timing.checked} == {0}


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
    (f"tensor_core(4, {ONE}, 0, core)", "ValueError in line 4"),
    ("tensor_core(np.ones((1, 99)), np.ones((1, 5)), 0, core)", "not (1, 99) and (1, 5)"),
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


#: Shapes of a question's arrays; the helper that is handed out fails at them with some keys only.
TELLING = (
    ("10.accumulator", (1, 1000), (1, 5), (1, 1)),
    ("10.accumulator", (1, 8), (1, 12), ()),
    ("10.scales", (2, 256), (2, 2), (150, 256), (2, 2)),
    ("10.scales", (12, 256), (12, 2), (0, 256), (0, 2)),
    ("10.scales", (12, 256), (12, 2), (150, 256), (1, 2)),
    ("10.scales", (12, 256), (12, 2), (150, 256), (2, 1)),
)


def test_whether_a_question_fails_and_how_does_not_depend_on_the_key():
    for id, *shapes in TELLING:
        task, said = registry.task(id), set()
        for case in task.cases(np.random.default_rng(1)):
            asked = questions.Questions(task.oracle, case.args[0])
            names = [
                name for name in inspect.signature(task.oracle.answer).parameters if name != task.oracle.key
            ]
            words = dict(zip(names, map(np.ones, shapes), strict=True))
            reply = asked.answer({"args": (), "words": {**words, task.oracle.key: asked.key}})
            said.add(reply.get("message", "no fault"))
        assert len(said) == 1, (id, shapes, said)
