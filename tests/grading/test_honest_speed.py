"""Answers that are fast, or right, by cheating: on sizes that are not tested, by remembering, by peeking."""

import dataclasses
import signal
import time

import numpy as np
import pytest

from course_lib.grading import registry
from course_lib.grading.judge import generator, judge
from course_lib.grading.memory import kept
from course_lib.grading.program import DODGES, Program, is_stub
from course_lib.grading.rules import PRODUCTS, NoCalls, NoMemory
from course_lib.grading.runner import InProcess, Timing
from course_lib.grading.sources import NoSource, answer_source, load
from course_lib.grading.task import source

PYTHON = source("""
    def matmul_fast(A, B):
        # HERE
        columns = list(zip(*B))
        C = [[sum([a * b for a, b in zip(row, col)]) for col in columns] for row in A]
        return C
""")
COMPILED = source("""
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
""")


class Swift(InProcess):
    """A runner whose clock always says the same: 100 times as fast."""

    def time(self, speed, args):
        return Timing(100.0, 97.0, 103.0, 1e-3, 0.1)


def verdict(id: str, text: str, kind=Swift):
    task = registry.task(id)
    return judge(task, kind(load(text, task.entry)), text, 9)


def test_a_grade_is_never_measured_in_haste(monkeypatch):
    from course_lib.measure import timing

    asked = []
    monkeypatch.setenv("NINE_CIRCLES_HASTE", "1")
    monkeypatch.setattr(timing._Run, "hurry", lambda run: asked.append(run))
    task = registry.task("01.faster")
    InProcess(load(PYTHON, task.entry)).time(task.speed, ([[1.0]], [[1.0]]))
    assert not asked


# --- wrong on the inputs that are timed ---

WRONG_WHEN_LARGE = {
    "nothing at all": ("01.faster", PYTHON.replace("# HERE", "if len(A) > 20: return []")),
    "nothing for the timed size": ("01.faster", PYTHON.replace("# HERE", "if len(A) > 45: return []")),
    "only the first row": ("01.faster", PYTHON.replace("# HERE", "if len(A) > 45: A = A[:1]")),
    "rounded": (
        "01.alias",
        PYTHON.replace("sum(", "round(sum(").replace("])", "]), 4)").replace("_fast", ""),
    ),
    "zeros": ("02.fast", COMPILED.replace("# HERE", "if M > 100: return C")),
    "a part of every sum": ("02.fast", COMPILED.replace("range(K)", "range(min(K, 23))")),
    "a part of the timed sum": ("02.fast", COMPILED.replace("range(K)", "range(min(K, 100))")),
}


@pytest.mark.parametrize(("id", "text"), WRONG_WHEN_LARGE.values(), ids=WRONG_WHEN_LARGE)
def test_what_is_wrong_on_large_inputs_gets_nothing(id, text):
    report = verdict(id, text.replace("def matmul(", "def repaired("))
    assert (report.points, report.passed) == (0, False), str(report)


def test_the_honest_forms_of_these_answers_pass():
    assert verdict("01.faster", PYTHON).passed
    assert verdict("02.fast", COMPILED).passed


def test_an_index_beyond_the_timed_array_is_reported_before_it_does_harm():
    report = verdict("02.fast", COMPILED.replace("range(K)", "range(K + (M > 200))"))
    assert "outside an array" in str(report)


# --- remembering ---

MEMORIES = {
    "a default dict": source("""
        def matmul_fast(A, B, _cache={}):
            key = id(A), id(B)
            if key not in _cache:
                _cache[key] = [[sum([a * b for a, b in zip(row, col)]) for col in zip(*B)] for row in A]
            return [row[:] for row in _cache[key]]
    """),
    "a function attribute": source("""
        def matmul_fast(A, B):
            if getattr(matmul_fast, "key", None) != (id(A), id(B)):
                matmul_fast.key = id(A), id(B)
                matmul_fast.C = [[sum([a * b for a, b in zip(row, col)]) for col in zip(*B)] for row in A]
            return [row[:] for row in matmul_fast.C]
    """),
    "setattr": "def matmul_fast(A, B):\n    setattr(matmul_fast, 'C', A)\n    return matmul_fast.C\n",
    "a global": "C = None\ndef matmul_fast(A, B):\n    global C\n    C = C or A\n    return C\n",
    "a global dict": "D = {}\ndef matmul_fast(A, B):\n    D[id(A)] = A\n    return D[id(A)]\n",
    "a global list": "D = []\ndef matmul_fast(A, B):\n    D.append(A)\n    return D[0]\n",
    "a global by another name": "D = {}\ndef matmul_fast(A, B):\n    d = D\n    d[0] = A\n    return d\n",
    "a class": "class D:\n    C = {}\ndef matmul_fast(A, B):\n    d = D.C\n    d[0] = A\n    return d\n",
    "a closure": "def make():\n    D = {}\n    def f(A, B):\n        nonlocal D\n        D = A\n"
    "    return f\n"
    "matmul_fast = make()\n",
    "a decorator": "def keep(g):\n    D = {}\n    def f(A, B):\n        D[0] = D.get(0) or g(A, B)\n"
    "        return D[0]\n    return f\n@keep\ndef matmul_fast(A, B): return A\n",
    "a helper": "def g(A, D={}):\n    D[0] = A\n    return D\ndef matmul_fast(A, B): return g(A)\n",
}


@pytest.mark.parametrize("text", MEMORIES.values(), ids=MEMORIES)
def test_what_is_kept_between_calls_is_found(text):
    said = NoMemory().judge(text, "matmul_fast")
    assert said is not None
    assert said.endswith("every call must do all of its work.")


@pytest.mark.parametrize(
    "text",
    [
        PYTHON,
        "AXES = {'i': 0}\ndef matmul_fast(A, B):\n    x = {}\n    x[0] = AXES['i']\n    return [x]\n",
        "STEP = 4\ndef matmul_fast(A, B, step=STEP, f=None, z=-1, t=(1, 2)):\n    C = []\n    C.append(A)\n"
        "    return C\n",
        "def matmul_fast(A, B):\n    def add(x):\n        C[0] += x\n    C = [0]\n    add(1)\n    return C\n",
    ],
)
def test_work_within_a_call_is_left_alone(text):
    assert NoMemory().judge(text, "matmul_fast") is None
    assert not list(kept(Program(text, "matmul_fast")))


@pytest.mark.parametrize("name", ["a default dict", "a function attribute"])
def test_a_result_from_an_earlier_call_is_wrong_even_without_the_rule(name):
    task = registry.task("01.faster")
    quick = dataclasses.replace(
        task,
        rules=(),
        cases=lambda rng: [],
        speed=dataclasses.replace(task.speed, budget_s=0.1),
    )
    report = judge(quick, InProcess(load(MEMORIES[name], "matmul_fast")), MEMORIES[name], 9)
    assert report.points == 0
    assert "does it keep results of earlier calls?" in str(report)
    assert judge(quick, InProcess(load(PYTHON, "matmul_fast")), PYTHON, 9).points >= 1


def test_both_memories_fail_the_task():
    for name in ("a default dict", "a function attribute"):
        assert verdict("01.faster", MEMORIES[name], InProcess).points == 0


# --- peeking ---


@pytest.mark.parametrize(
    "name",
    [
        "f_locals",
        "f_globals",
        "f_builtins",
        "f_back",
        "tb_frame",
        "gi_frame",
        "cr_frame",
        "__subclasses__",
        "__traceback__",
    ],
)
@pytest.mark.parametrize("form", ["A.{}", "getattr(A, '{}')"])
def test_ways_into_the_interpreter_are_refused(name, form):
    assert name in DODGES
    text = f"def f(A):\n    return {form.format(name)}\n"
    assert f"uses {name} in" in NoCalls(PRODUCTS).judge(text, "f")


PEEKING = source("""
    def repaired(A, B):
        try:
            1 / 0
        except Exception as error:
            frame = error.__traceback__.tb_frame
            while frame:
                if 'task' in frame.f_locals:
                    return frame.f_locals['task'].reference(A, B)
                frame = frame.f_back
""")


def test_the_reference_cannot_be_had_from_the_traceback():
    report = verdict("01.alias", PEEKING)
    assert report.points == 0
    assert "cannot be read" in str(report)


def test_nor_by_a_pattern():
    text = "def f(A):\n    match A:\n        case Exception(__traceback__=tb):\n            return tb\n"
    assert "__traceback__" in NoCalls(PRODUCTS).judge(text, "f")


# --- inputs ---


@pytest.mark.parametrize("id", ["01.matmul", "01.alias", "01.faster", "02.matmul", "02.order", "02.bug"])
def test_sizes_depend_on_the_seed_and_one_is_large(id):
    task = registry.task(id)
    shapes = [
        [tuple(np.shape(one) for one in case.args) for case in task.cases(generator(task, seed))]
        for seed in range(6)
    ]
    assert len({tuple(one[-2 if id == "02.matmul" else -1]) for one in shapes}) > 3
    assert all(max(A[0] for A, B in one) >= 24 for one in shapes)
    for one in shapes:  # swapped sizes show in both directions
        inner = [(A[0], B[1]) for A, B in one if len(A) == len(B) == 2 and 0 not in (*A, *B)]
        assert any(M < N for M, N in inner) and any(M > N for M, N in inner)


@pytest.mark.parametrize("id", ["02.matmul", "02.fast", "02.order", "02.bug"])
def test_every_case_of_compiled_code_is_guarded(id):
    task = registry.task(id)
    assert all(case.guard for case in task.cases(generator(task, 1)))


@pytest.mark.parametrize("where", ["A.itemsize == 4", "A.strides[1] != A.itemsize", "M == 5 and K == 4"])
def test_an_index_beyond_the_array_is_found_in_every_kind_of_input(where):
    body = f"if {where}: a0 = B[K + 10**6, 0]; C[0, 0] += a0"
    report = verdict("02.fast", COMPILED.replace("# HERE", body))
    assert "outside an array" in str(report)


# --- honest answers that were refused ---


def test_constants_in_containers_may_be_used():
    text = "AXES = {'i': (0, [1, 2]), 3: {'x'}}\nPAIRS = ((1, 2), (3, 4))\ndef f():\n    return AXES, PAIRS\n"
    function = load(text, "f")
    code = answer_source(function)
    assert load(code.text, code.entry)() == function()


@pytest.mark.parametrize("value", [{"a": np.ones(2)}, [[print]]])
def test_containers_of_other_things_are_still_refused(value):
    function = load("def f():\n    return THINGS\n", "f")
    function.__globals__["THINGS"] = value
    with pytest.raises(NoSource, match="uses the global THINGS"):
        answer_source(function)


def test_a_list_that_contains_itself_is_no_constant():
    function = load("THINGS = []\nTHINGS.append(THINGS)\ndef f():\n    return THINGS\n", "f")
    with pytest.raises(NoSource):
        answer_source(function)


@pytest.mark.parametrize(
    ("body", "stub"),
    [
        ("    if len(A) != 3:\n        raise NotImplementedError('3 rows only')\n    return A", False),
        ("    if len(A) == 3:\n        return A\n    raise NotImplementedError('3 rows only')", False),
        ("    try:\n        return A\n    except E:\n        raise NotImplementedError", False),
        (
            "    C = []\n    for k in A:\n        for i in A:\n            raise NotImplementedError()\n"
            "    return C",
            True,
        ),
        ("    x = 1\n    raise NotImplementedError", True),
    ],
)
def test_only_what_always_raises_is_not_started(body, stub):
    assert is_stub(f"def f(A):\n{body}\n", "f") == stub


# --- the time of a call ---

needs_timer = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timer on this system")


@needs_timer
def test_a_loop_without_end_is_stopped_and_named():
    before = signal.getsignal(signal.SIGALRM)
    text = "def f():\n    while 1:\n        try: x = 1\n        except Exception: pass\n"
    outcome = InProcess(load(text, "f"), longest_s=0.2).call(())
    assert "did not finish in 0.2 s: does a loop end?" in outcome.fault.sentence()
    assert outcome.fault.line
    assert signal.getsignal(signal.SIGALRM) is before


@needs_timer
def test_a_timer_that_was_running_goes_on():
    rang = []
    before = signal.signal(signal.SIGALRM, lambda *_: rang.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        InProcess(load("def f():\n    return 1\n", "f")).call(())
        time.sleep(0.3)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert rang
