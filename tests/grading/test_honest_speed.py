"""Points for speed, and answers that are fast by leaving work out."""

import math
import signal
import time
from dataclasses import replace

import numpy as np
import pytest
from grading_tools import verdict

from course_lib.grading import registry
from course_lib.grading.judge import generator
from course_lib.grading.runner import Fault, InProcess, Timing, settled
from course_lib.grading.sandbox.bubblewrap import Sandbox
from course_lib.grading.sandbox.outside import SandboxedRunner
from course_lib.grading.sources import load
from course_lib.grading.task import Code
from course_lib.measure import timing

PYTHON = """
def matmul_fast(A, B):
    # HERE
    columns = list(zip(*B))
    C = [[sum([a * b for a, b in zip(row, col)]) for col in columns] for row in A]
    return C
"""
COMPILED = """
import numpy as np
from numba import njit

@njit
def matmul_fast(A, B):
    M, K = A.shape
    N = B.shape[1]
    C = np.zeros((M, N), A.dtype)
    # HERE
    for i in range(M):
        for k in range(K):
            a = A[i, k]
            for j in range(N):
                C[i, j] += a * B[k, j]
    return C
"""


def test_a_grade_is_never_measured_in_haste(monkeypatch):
    asked = []
    monkeypatch.setenv("NINE_CIRCLES_HASTE", "1")
    monkeypatch.setattr(timing._Run, "hurry", lambda run: asked.append(run))
    task = registry.task("01.faster")
    InProcess(load(PYTHON, task.entry)).time(task.speed, ([[1.0]], [[1.0]]))
    assert not asked


# --- points for speed ---


def taken(speedup: float, half_width: float = 0.02):
    return Timing(speedup, speedup * (1 - half_width), speedup * (1 + half_width), 1.0, speedup)


def test_the_median_of_all_takes_counts_and_nothing_else():
    speed = registry.task("01.faster").speed  # 1.3x and 1.8x
    busy, idle = (replace(taken(0.0), fault=Fault((kind,), "")) for kind in ("TimeLimit", "Stashed"))
    for takes, speedup in (
        ((2.5,), 2.5),  # far from any: once is enough
        ((1.5,), 1.5),
        ((1.75, 1.9, 1.7, 1.9, 1.76), 1.76),  # near, then on both sides
        ((1.84, 1.87), 1.855),  # near, but above it in both
        ((1.78, busy), 1.78),
        ((1.8, idle), 0.0),
    ):
        given = iter([one if isinstance(one, Timing) else taken(one) for one in takes])
        assert settled(speed, lambda given=given: next(given)).speedup == pytest.approx(speedup), takes
        assert next(given, None) is None, takes


def test_the_same_answer_gets_the_same_points_again():
    """By a clock that errs by 1 % within a process and by 2.5 % between processes."""
    speed, rng = registry.task("01.faster").speed, np.random.default_rng(4)
    for apart in (0.9, 0.96, 1.04, 1.1):  # of the threshold
        shares = []
        for _ in range(400):
            takes = (taken(1.8 * apart * each) for each in np.exp(0.027 * rng.standard_normal(5)))
            shares.append(speed.share(settled(speed, takes.__next__).speedup))
        assert np.mean(np.array(shares) == (0.5 if apart < 1 else 1.0)) >= 0.97, apart


@pytest.mark.slow
@pytest.mark.timing
@pytest.mark.needs("bubblewrap")
def test_of_twenty_equal_answers_nineteen_get_equal_points():
    """Between two thresholds that are 6 % away."""

    def timed(speed) -> float:
        with SandboxedRunner(Code(PYTHON, "matmul_fast"), Sandbox()) as runner:
            return runner.time(speed, speed.make_inputs(np.random.default_rng(5))).speedup

    speed = registry.task("01.faster").speed
    about = np.median([timed(replace(speed, thresholds=((99.0, 1.0),))) for _ in range(3)])
    near = replace(speed, thresholds=((0.94 * about, 0.5), (1.06 * about, 1.0)))
    shares = [near.share(timed(near)) for _ in range(20)]
    assert shares.count(0.5) >= 19, shares


# --- wrong on the inputs that are timed, or beyond them ---

PARTS = {
    "nothing at all": ("01.faster", PYTHON, "# HERE", "if len(A) > 20: return []"),
    "nothing for the timed size": ("01.faster", PYTHON, "# HERE", "if len(A) > 45: return []"),
    "only the first row": ("01.faster", PYTHON, "# HERE", "if len(A) > 45: A = A[:1]"),
    "rounded": ("01.alias", PYTHON.replace("])", "]), 4)"), "sum(", "round(sum("),
    "zeros": ("02.fast", COMPILED, "# HERE", "if M > 100: return C"),
    "a part of every sum": ("02.fast", COMPILED, "range(K)", "range(min(K, 23))"),
    "a part of the timed sum": ("02.fast", COMPILED, "range(K)", "range(min(K, 100))"),
}
BEYOND = {
    "in the timed size": ("range(K)", "range(K + (M > 200))"),
    **{
        where: ("# HERE", f"if {where}: a0 = B[K + 10**6, 0]; C[0, 0] += a0")
        for where in ("A.itemsize == 4", "A.strides[1] != A.itemsize", "M == 3 and K == 3")
    },
}


def test_what_is_wrong_on_large_inputs_gets_nothing_and_the_honest_forms_pass():
    for name, (id, text, old, new) in PARTS.items():
        task = registry.task(id)
        report = verdict(task, text.replace(old, new).replace("matmul_fast", task.entry))
        assert (report.points, report.passed) == (0, False), f"{name}: {report}"
    for id, text in (("01.faster", PYTHON), ("02.fast", COMPILED)):
        assert verdict(registry.task(id), text).passed, id


def test_an_index_beyond_the_array_is_found_in_every_kind_of_input_before_it_does_harm():
    for where, (old, new) in BEYOND.items():
        report = verdict(registry.task("02.fast"), COMPILED.replace(old, new))
        assert "outside an array" in str(report), where


# --- inputs ---


def test_sizes_depend_on_the_seed_and_one_is_large():
    for id in ("01.alias", "01.faster", "02.matmul", "02.bug"):
        task = registry.task(id)
        shapes = [
            [tuple(np.shape(matrix) for matrix in case.args) for case in task.cases(generator(task, seed))]
            for seed in range(6)
        ]
        assert id < "02" or all(case.guard for case in task.cases(generator(task, 1))), id
        assert len({max(cases, key=lambda pair: sum(map(math.prod, pair))) for cases in shapes}) > 3, id
        for cases in shapes:  # swapped sizes show in both directions
            assert max(A[0] for A, B in cases) >= 24, id
            inner = [(A[0], B[1]) for A, B in cases if len(A) == len(B) == 2 and 0 not in (*A, *B)]
            assert any(M < N for M, N in inner) and any(M > N for M, N in inner), id


# --- the time of a call ---

needs_timer = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timer on this system")


@needs_timer
def test_a_loop_without_end_is_stopped_and_named_and_a_timer_that_was_running_goes_on():
    before = signal.getsignal(signal.SIGALRM)
    text = "def f():\n    while 1:\n        try: x = 1\n        except Exception: pass\n"
    outcome = InProcess(load(text, "f"), longest_s=0.2).call(())
    assert "did not finish in 0.2 s: does a loop end?" in outcome.fault.sentence()
    assert outcome.fault.line
    assert signal.getsignal(signal.SIGALRM) is before
    waits = InProcess(load("import time\ndef f(s):\n    time.sleep(s)\n", "f"), longest_s=0.2)
    assert waits.call((0.3,)).fault is None  # others had the CPU
    assert "did not finish in 1 s: does it wait for something?" in waits.call((2,)).fault.sentence()
    rang = []
    signal.signal(signal.SIGALRM, lambda *_: rang.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        InProcess(load("def f():\n    return 1\n", "f")).call(())
        time.sleep(0.3)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert rang
