"""Systematic faults: each operator makes its fault, every fault of every solution is caught or explained."""

import ast
import json
import os
import time

import numpy as np
import pytest
from tools.mutation import judging, survey, workers
from tools.mutation.__main__ import main
from tools.mutation.faults import Fault, faults, needed
from tools.mutation.operators import OPERATORS

from course_lib.grading import registry
from course_lib.grading.task import Code

PLAIN = ("01.count", "01.dot", "01.matmul", "01.predict_time", "02.strides")
ENOUGH = 0.98
MOST_EXPLAINED = 0.15  # whole numbers hide faults of rounding; more than that would be an excuse
SUM = """
import numpy as np
from numba import njit

@njit
def total(A, B):
    'What it does.'
    M, N = A.shape
    C = np.zeros((M, N), A.dtype)
    for i in range(M):
        for j in range(1, N, 2):
            C[i, j] += A[i, j] * B[i, j] - 3
    if M < N:
        C[0, 0] = 0.5
    return C
"""
LISTS = """
def total(rows, scale):
    C = [[0.0] * len(rows) for _ in range(2)]
    for row, factor in zip(rows, scale):
        C[0][1] = max(factor, 2.0)
    word = 'left' if C else 'right'
    return C
"""
#: operator -> lines that some of its faults have, in the answer on arrays and in that on lists
ON_ARRAYS = {
    "bounds": ("for i in range(0 + 1, M):", "for i in range(0, M - 1):", "for j in range(1, N + 1, 2):"),
    "step": ("for j in range(1, N):", "for i in range(0, M, 2):"),
    "edge tile": ("for i in range(0, M // 4 * 4):",),
    "loop twice": ("for i in range(M):",),
    "early end": ("return C",),
    "constant": ("C[0, 0] = 1.5", "C[i, j] += A[i, j] * B[i, j] - 4"),
    "name": ("C[i, j] += A[i, j] * A[i, j] - 3", "C[i, j] += A[j, j] * B[i, j] - 3"),
    "unpacking": ("N, M = A.shape",),
    "operator": ("C[i, j] += A[i, j] * B[i, j] + 3", "C[i, j] += A[i, j] + B[i, j] - 3"),
    "operands": ("C[i, j] += 3 - A[i, j] * B[i, j]",),
    "operand missing": ("C[i, j] += A[i, j] - 3",),
    "comparison": ("if M <= N:",),
    "condition": ("if True:", "if False:"),
    "function": ("C = np.empty((M, N), A.dtype)",),
    "index": ("C[i, j] += A[j, i] * B[i, j] - 3", "C[i, j - 1] += A[i, j] * B[i, j] - 3"),
    "dtype": ("C = np.zeros((M, N), np.float32)", "C = np.zeros((M, N), np.float16)"),
    "accumulate": ("C[i, j] = A[i, j] * B[i, j] - 3", "C[i, j] -= A[i, j] * B[i, j] - 3", "C[0, 0] += 0.5"),
    "precision": (
        "C[i, j] = np.float32(C[i, j] + (A[i, j] * B[i, j] - 3))",
        "C[i, j] += abs(A[i, j] * B[i, j] - 3)",
    ),
    "skip zeros": ("if A[i, j] != 0:",),
    "deleted": ("return C",),
    "decorator": ("@njit(fastmath=True)",),
    "result": ("return result.T", "return result.astype(np.float32)", "return None"),
    "input": ("A *= 2", "return A"),
    "kept": ("return kept[key]",),
}
ON_LISTS = {
    "items": ("for row, factor in list(zip(rows, scale))[1:]:",),
    "edge tile": ("for row, factor in list(zip(rows, scale))[:len(list(zip(rows, scale))) // 2 * 2]:",),
    "operands": ("for row, factor in zip(scale, rows):",),
    "unpacking": ("for factor, row in zip(rows, scale):",),
    "one list": ("C = [[0.0] * len(rows)] * len(range(2))",),
    "index": ("C[1][0] = max(factor, 2.0)",),
    "function": ("C[0][1] = min(factor, 2.0)",),
    "word": ("word = 'right' if C else 'right'",),
    "constant": ("word = 'LEFT' if C else 'right'",),
    "condition": ("word = 'left' if not C else 'right'",),
    "result": ("return [list(row) for row in zip(*result)]", "return numpy.array(result)"),
    "input": ("rows.reverse()", "rows[:] = result"),
    "kept": ("key = str(tuple(map(_size, given)))",),
}


def made(text: str, args: tuple, value) -> list[Fault]:
    return faults(needed(text, "total"), args, value)


@pytest.fixture(scope="module")
def on_arrays() -> list[Fault]:
    return made(SUM, (np.ones((2, 3)), np.ones((2, 3))), np.ones((2, 3)))


@pytest.fixture(scope="module")
def on_lists() -> list[Fault]:
    return made(LISTS, ([[1.0]], [2.0]), [[1.0]])


# --- the generator ---


def test_every_operator_makes_its_faults(on_arrays, on_lists):
    for found, text, expected in ((on_arrays, SUM, ON_ARRAYS), (on_lists, LISTS, ON_LISTS)):
        for operator, lines in expected.items():
            for line in lines:
                assert _changes(found, text, operator, line), f"{operator}: {line}"
    assert set(ON_ARRAYS) | set(ON_LISTS) >= set(OPERATORS)


def _changes(found: list[Fault], before: str, operator: str, line: str) -> bool:
    """Whether some fault of the operator has the line more often, or less often, than the text before."""
    lines = [one.strip() for one in ast.unparse(ast.parse(before)).splitlines()]
    texts = (fault.source for fault in found if fault.operator == operator)
    return any([one.strip() for one in text.splitlines()].count(line) != lines.count(line) for text in texts)


def test_recursions_lose_their_end_and_exceptions_are_swallowed():
    recursion = made(
        "def total(n):\n    if n == 0:\n        return 0\n    return n + total(n - 1)\n", (3,), 6
    )
    assert any("if False:" in fault.source for fault in recursion)
    assert any("if n == 0" not in fault.source and fault.operator == "deleted" for fault in recursion)
    raising = made("def total(n):\n    if n < 0:\n        raise ValueError('n')\n    return n\n", (3,), 6)
    assert any("raise" not in fault.source and "if n < 0" in fault.source for fault in raising)


def test_faults_are_different_python_with_names_that_last(on_arrays, on_lists):
    for found, text in ((on_arrays, SUM), (on_lists, LISTS)):
        dumps = [ast.dump(ast.parse(fault.source)) for fault in found]
        assert len(set(dumps)) == len(dumps) == len({fault.key for fault in found})
        assert ast.dump(ast.parse(text)) not in dumps
    assert made(LISTS, ([[1.0]], [2.0]), [[1.0]]) == on_lists
    longer = made(LISTS.replace("    word", "    spare = None\n    word"), ([[1.0]], [2.0]), [[1.0]])
    same = {fault.key for fault in on_lists if fault.operator == "one list"}
    assert same and same <= {fault.key for fault in longer}


def test_only_what_the_answer_needs_is_changed_and_nothing_that_is_given():
    code = needed("import os\n\ndef other():\n    return 1\n\n" + LISTS, "total")
    assert "other" not in code.text and "import os" not in code.text
    text = "def helper(x):\n    return x + 1\n\ndef total(x):\n    return helper(x) * 2\n"
    found = faults(needed(text, "total"), (3,), 8, given=frozenset({"helper"}))
    assert found and all("return x + 1" in fault.source for fault in found)
    assert not all("return x + 1" in fault.source for fault in faults(needed(text, "total"), (3,), 8))
    task = registry.task("10.promotion")
    found = survey.faults_of(task, survey.solution(task))
    assert found and all("unit = np.ldexp(1.0, top - sum_bits)" in fault.source for fault in found)


# --- judging ---


def test_the_check_that_catches_is_named():
    for check, body in {
        judging.SURVIVED: "return sum(a * b for a, b in zip(row, col))",
        "value": "return sum(a + b for a, b in zip(row, col))",
        "rule": "import math\n    return 0.0",
        "type": "return [0.0]",
        "exception": "return row[99]",
        "input changed": (
            "row.reverse()\n    col.reverse()\n    return sum(a * b for a, b in zip(row, col))"
        ),
        "count": "return sum(a * b * 1.0 for a, b in zip(row, col))",
    }.items():
        job = judging.Job("01.dot", f"def dot(row, col):\n    {body}\n", (9, 4))
        assert judging.caught_by(job) == (check, check), body
    right = survey.solution(registry.task("02.matmul")).text
    for check, (old, new) in {
        "dtype": ("A.dtype", "np.float32"),
        "guard": ("np.zeros", "np.empty"),
        "shape": ("return C", "return C[1:]"),
    }.items():
        assert old in right
        assert judging.caught_by(judging.Job("02.matmul", right.replace(old, new), (9,))) == (check,), new


def test_speed_is_no_matter_here():
    task = registry.task("01.faster")
    assert judging.without_speed(task).speed is None
    text = task.speed.baseline.text.replace("_indexed", "_fast")
    assert judging.caught_by(judging.Job(task.id, text, (9, 4))) == ("", "")


# --- processes that may hang or die ---


kept_for_ever = []


def work(job):
    """Do what the job says; it runs in a process of its own."""
    if job == "hang":
        time.sleep(600)
    if job == "die":
        os._exit(3)
    if job == "fail":
        raise ValueError("the work itself")
    if job == "keep":
        kept_for_ever.append(np.empty(3 * 2**29, np.uint8))  # 1.5 GiB of addresses: nothing is written there
    return job * 2


def test_what_hangs_or_dies_costs_only_itself():
    jobs = [1, "hang", 2, "die", 3]
    found = dict(workers.spread(work, jobs, workers=2, limit_s=1.5))
    assert found == {0: 2, 1: workers.TIME, 2: 4, 3: workers.CRASH, 4: 6}
    # what a job leaves in memory takes no room from the others: the third would not fit beside them
    found = dict(workers.spread(work, ["keep"] * 3, workers=1))
    assert found == dict.fromkeys(range(3), "keepkeep")
    with pytest.raises(workers.WorkFailed, match="the work itself"):  # that is no catch
        list(workers.spread(work, ["fail"], workers=1))


# --- the survey ---


def test_every_fault_of_the_short_tasks_is_caught_or_explained():
    found = survey.survey(map(registry.task, PLAIN), [9])
    assert [findings.task_id for findings in found] == list(PLAIN)
    _expect_enough(found)


@pytest.mark.slow
def test_every_fault_of_every_task_is_caught_or_explained():
    _expect_enough(survey.survey(registry.tasks(), [9, int.from_bytes(os.urandom(4))]))


def _expect_enough(found):
    told = survey.table(found)
    assert not any(findings.survived or findings.stale for findings in found), told
    total = sum(findings.total for findings in found)
    explained = sum(len(findings.equivalent) for findings in found)
    assert sum(findings.caught.total() for findings in found) >= ENOUGH * (total - explained), told
    assert explained <= MOST_EXPLAINED * total, told


def test_a_survivor_a_flaky_one_and_a_stale_reason_are_told():
    fault = Fault("bounds", "a -> b", "")
    found = survey.Findings("01.dot", stale=["name | x -> y"])
    found.caught["value"] = 3
    for checks in (("", ""), ("value", "")):
        survey._sort_in(found, fault, checks)
    assert [survivor.flaky for survivor in found.survived] == [False, True]
    told = survey.table([found])
    assert "3 (60.0 %)" in told
    assert "SURVIVED 01.dot  bounds: a -> b  (shown by no seed)" in told
    assert "(shown by some seeds only)" in told
    assert "STALE    01.dot  name | x -> y" in told


def test_an_explained_fault_that_some_seed_shows_is_a_survivor_all_the_same():
    found = survey.Findings("01.dot")
    operator, _, change = next(iter(survey.reasons("01.dot"))).partition(" | ")
    for checks in (("", ""), ("", "value"), ("value", "value")):
        survey._sort_in(found, Fault(operator, change, ""), checks)
    assert (len(found.equivalent), len(found.survived), found.caught.total()) == (1, 1, 1)


def test_reasons_are_sentences():
    ids = {task.id for task in registry.tasks()}
    for tasks, key, reason in survey.explained():
        assert reason[0].isupper() or reason.startswith("a * b"), key
        assert reason.endswith(".") and tasks <= ids, key


@pytest.mark.slow
def test_reasons_belong_to_faults_that_exist():
    for task in registry.tasks():
        keys = {fault.key for fault in survey.faults_of(task, survey.solution(task))}
        assert set(survey.reasons(task.id)) <= keys, task.id


def test_without_a_right_solution_the_survey_says_so(tmp_path, monkeypatch):
    with pytest.raises(survey.SurveyError, match="needs the course's repository"):
        survey.solution(registry.task("01.dot"), tmp_path)
    wrong = Code("def dot(row, col):\n    return 1\n", "dot")
    monkeypatch.setattr(survey, "solution", lambda task, root: wrong)
    with pytest.raises(survey.SurveyError, match="itself is not right"):
        survey.survey([registry.task("01.dot")], [9], workers=1)


def test_the_command_prints_the_table_and_writes_json(tmp_path, capsys):
    target = tmp_path / "found.json"
    assert main(["--task", "02.roofline", "--seed", "9", "--workers", "1", "--json", str(target)]) == 0
    assert "02.roofline" in capsys.readouterr().out
    (task,) = json.loads(target.read_text(encoding="utf-8"))["tasks"]
    assert task["faults"] == sum(task["caught"].values()) > 30
    assert main(["--task", "09.none"]) == 2
    assert "There is no task '09.none'" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["--seed", "-1"])
    assert "must be 0 or more" in capsys.readouterr().err
