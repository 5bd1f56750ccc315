"""Systematic faults: each operator makes its fault, every fault of every solution is caught or explained."""

import ast
import os
import time

import numpy as np
import pytest

from course_lib.grading import registry
from course_lib.grading.mutation import equivalents, judging, survey, workers
from course_lib.grading.mutation.faults import Fault, faults, needed
from course_lib.grading.mutation.operators import OPERATORS
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


def made(text: str, args: tuple, value) -> list[Fault]:
    return faults(needed(text, "total"), args, value)


@pytest.fixture(scope="module")
def on_arrays() -> list[Fault]:
    return made(SUM, (np.ones((2, 3)), np.ones((2, 3))), np.ones((2, 3)))


@pytest.fixture(scope="module")
def on_lists() -> list[Fault]:
    return made(LISTS, ([[1.0]], [2.0]), [[1.0]])


# --- the generator ---


@pytest.mark.parametrize(
    ("operator", "line"),
    [
        ("bounds", "for i in range(0 + 1, M):"),
        ("bounds", "for i in range(0, M - 1):"),
        ("bounds", "for j in range(1, N + 1, 2):"),
        ("step", "for j in range(1, N):"),
        ("step", "for i in range(0, M, 2):"),
        ("edge tile", "for i in range(0, M // 4 * 4):"),
        ("loop twice", "for i in range(M):"),
        ("early end", "return C"),
        ("constant", "C[0, 0] = 1.5"),
        ("constant", "C[i, j] += A[i, j] * B[i, j] - 4"),
        ("name", "C[i, j] += A[i, j] * A[i, j] - 3"),
        ("name", "C[i, j] += A[j, j] * B[i, j] - 3"),
        ("unpacking", "N, M = A.shape"),
        ("operator", "C[i, j] += A[i, j] * B[i, j] + 3"),
        ("operator", "C[i, j] += A[i, j] + B[i, j] - 3"),
        ("operands", "C[i, j] += 3 - A[i, j] * B[i, j]"),
        ("operand missing", "C[i, j] += A[i, j] - 3"),
        ("comparison", "if M <= N:"),
        ("condition", "if True:"),
        ("condition", "if False:"),
        ("function", "C = np.empty((M, N), A.dtype)"),
        ("index", "C[i, j] += A[j, i] * B[i, j] - 3"),
        ("index", "C[i, j - 1] += A[i, j] * B[i, j] - 3"),
        ("dtype", "C = np.zeros((M, N), np.float32)"),
        ("dtype", "C = np.zeros((M, N), np.float16)"),
        ("accumulate", "C[i, j] = A[i, j] * B[i, j] - 3"),
        ("accumulate", "C[i, j] -= A[i, j] * B[i, j] - 3"),
        ("accumulate", "C[0, 0] += 0.5"),
        ("precision", "C[i, j] = np.float32(C[i, j] + (A[i, j] * B[i, j] - 3))"),
        ("precision", "C[i, j] += abs(A[i, j] * B[i, j] - 3)"),
        ("skip zeros", "if A[i, j] != 0:"),
        ("deleted", "return C"),
        ("decorator", "@njit(fastmath=True)"),
        ("result", "return result.T"),
        ("result", "return result.astype(np.float32)"),
        ("result", "return None"),
        ("input", "A *= 2"),
        ("input", "return A"),
        ("kept", "return kept[key]"),
    ],
)
def test_an_operator_makes_its_fault_on_arrays(on_arrays, operator, line):
    assert _changes(on_arrays, SUM, operator, line)


@pytest.mark.parametrize(
    ("operator", "line"),
    [
        ("items", "for row, factor in list(zip(rows, scale))[1:]:"),
        ("edge tile", "for row, factor in list(zip(rows, scale))[:len(list(zip(rows, scale))) // 2 * 2]:"),
        ("operands", "for row, factor in zip(scale, rows):"),
        ("unpacking", "for factor, row in zip(rows, scale):"),
        ("one list", "C = [[0.0] * len(rows)] * len(range(2))"),
        ("index", "C[1][0] = max(factor, 2.0)"),
        ("function", "C[0][1] = min(factor, 2.0)"),
        ("word", "word = 'right' if C else 'right'"),
        ("constant", "word = 'LEFT' if C else 'right'"),
        ("condition", "word = 'left' if not C else 'right'"),
        ("result", "return [list(row) for row in zip(*result)]"),
        ("result", "return tuple((tuple(row) for row in result))"),
        ("result", "return [[round(c, 6) for c in row] for row in result]"),
        ("result", "return numpy.array(result)"),
        ("input", "rows.reverse()"),
        ("input", "rows[:] = result"),
        ("kept", "key = str(tuple(map(_size, given)))"),
    ],
)
def test_an_operator_makes_its_fault_on_lists(on_lists, operator, line):
    assert _changes(on_lists, LISTS, operator, line)


def _changes(found: list[Fault], before: str, operator: str, line: str) -> bool:
    """Whether some fault of the operator has the line more often, or less often, than the text before."""
    lines = [one.strip() for one in ast.unparse(ast.parse(before)).splitlines()]
    for fault in (one for one in found if one.operator == operator):
        if [one.strip() for one in fault.source.splitlines()].count(line) != lines.count(line):
            return True
    return False


def test_every_operator_is_used_by_the_examples(on_arrays, on_lists):
    assert {one.operator for one in on_arrays + on_lists} >= set(OPERATORS)


def test_a_recursion_loses_its_end():
    text = "def total(n):\n    if n == 0:\n        return 0\n    return n + total(n - 1)\n"
    found = made(text, (3,), 6)
    assert any("if False:" in one.source for one in found)
    assert any("if n == 0" not in one.source and one.operator == "deleted" for one in found)


def test_an_exception_is_swallowed():
    text = "def total(n):\n    if n < 0:\n        raise ValueError('n')\n    return n\n"
    assert any("raise" not in one.source and "if n < 0" in one.source for one in made(text, (3,), 6))


def test_faults_are_python_different_from_the_answer_and_from_each_other(on_arrays, on_lists):
    for found, text in ((on_arrays, SUM), (on_lists, LISTS)):
        dumps = [ast.dump(ast.parse(one.source)) for one in found]
        assert len(set(dumps)) == len(dumps)
        assert ast.dump(ast.parse(text)) not in dumps
        assert len({one.key for one in found}) == len(found)
        assert all("total" in one.source for one in found)


def test_the_generator_is_deterministic(on_lists):
    assert made(LISTS, ([[1.0]], [2.0]), [[1.0]]) == on_lists


def test_names_of_faults_do_not_depend_on_the_lines_around(on_lists):
    longer = LISTS.replace("    word", "    spare = None\n    word")
    keys = {one.key for one in made(longer, ([[1.0]], [2.0]), [[1.0]])}
    same = [one for one in on_lists if one.operator == "one list"]
    assert same and all(one.key in keys for one in same)


def test_only_what_the_answer_needs_is_changed():
    code = needed("import os\n\ndef other():\n    return 1\n\n" + LISTS, "total")
    assert "other" not in code.text and "import os" not in code.text


def test_what_is_given_has_no_faults():
    text = "def helper(x):\n    return x + 1\n\ndef total(x):\n    return helper(x) * 2\n"
    found = faults(needed(text, "total"), (3,), 8, given=frozenset({"helper"}))
    assert found
    assert all("return x + 1" in one.source for one in found)
    assert not all("return x + 1" in one.source for one in faults(needed(text, "total"), (3,), 8))


def test_the_survey_knows_what_is_given():
    task = registry.task("10.promotion")
    found = survey.faults_of(task, survey.solution(task))
    assert found
    assert all("unit = np.ldexp(1.0, top - sum_bits)" in one.source for one in found)


# --- judging ---


def _job(source: str, id: str = "01.dot") -> judging.Job:
    return judging.Job(id, source, (9, 4))


@pytest.mark.parametrize(
    ("body", "check"),
    [
        ("return sum(a * b for a, b in zip(row, col))", judging.SURVIVED),
        ("return sum(a + b for a, b in zip(row, col))", "value"),
        ("import math\n    return 0.0", "rule"),
        ("return [0.0]", "type"),
        ("return row[99]", "exception"),
        (
            "row.reverse()\n    col.reverse()\n    return sum(a * b for a, b in zip(row, col))",
            "input changed",
        ),
        ("return sum(a * b * 1.0 for a, b in zip(row, col))", "count"),
    ],
)
def test_the_check_that_catches_is_named(body, check):
    assert judging.caught_by(_job(f"def dot(row, col):\n    {body}\n")) == (check, check)


def test_shape_dtype_and_guard_are_named_too():
    from course_lib.grading.tasks.compiled_loops.shared import loops

    found = {
        "dtype": loops("matmul", C="np.zeros((M, N), np.float32)"),
        "guard": loops("matmul", C="np.empty((M, N), A.dtype)"),
        "shape": loops("matmul").replace("return C", "return C[1:]"),
    }
    for check, text in found.items():
        assert judging.caught_by(judging.Job("02.matmul", text, (9,))) == (check,)


def test_speed_is_no_matter_here():
    task = registry.task("01.faster")
    assert judging.without_speed(task).speed is None
    assert judging.caught_by(_job(task.speed.baseline.text.replace("_indexed", "_fast"), task.id)) == ("", "")


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


def test_what_a_job_leaves_in_memory_takes_no_room_from_the_others():
    found = dict(workers.spread(work, ["keep"] * 3, workers=1))  # the third would not fit beside the others
    assert found == dict.fromkeys(range(3), "keepkeep")


def test_a_fault_of_the_survey_itself_is_not_taken_for_a_catch():
    with pytest.raises(workers.WorkFailed, match="the work itself"):
        list(workers.spread(work, ["fail"], workers=1))


# --- the survey ---


def test_every_fault_of_the_short_tasks_is_caught_or_explained():
    found = survey.survey(map(registry.task, PLAIN), [9])
    assert [one.task_id for one in found] == list(PLAIN)
    _expect_enough(found)


@pytest.mark.slow
def test_every_fault_of_every_task_is_caught_or_explained():
    _expect_enough(survey.survey(registry.tasks(), [9, int.from_bytes(os.urandom(4))]))


def _expect_enough(found):
    told = survey.table(found)
    assert not any(one.survived for one in found), told
    assert not any(one.stale for one in found), told
    total = sum(one.total for one in found)
    explained = sum(len(one.equivalent) for one in found)
    assert sum(one.caught.total() for one in found) >= ENOUGH * (total - explained), told
    assert explained <= MOST_EXPLAINED * total, told


def test_a_survivor_a_flaky_one_and_a_stale_reason_are_told():
    fault = Fault("bounds", "a -> b", "")
    found = survey.Findings("01.dot", stale=["name | x -> y"])
    found.caught["value"] = 3
    for checks in (("", ""), ("value", "")):
        survey._sort_in(found, fault, checks)
    assert [one.flaky for one in found.survived] == [False, True]
    told = survey.table([found])
    assert "3 (60.0 %)" in told
    assert "SURVIVED 01.dot  bounds: a -> b  (shown by no seed)" in told
    assert "(shown by some seeds only)" in told
    assert "STALE    01.dot  name | x -> y" in told


def test_an_explained_fault_that_some_seed_shows_is_a_survivor_all_the_same():
    found = survey.Findings("01.dot")
    key = next(iter(equivalents.reasons("01.dot")))
    operator, _, change = key.partition(" | ")
    for checks in (("", ""), ("", "value"), ("value", "value")):
        survey._sort_in(found, Fault(operator, change, ""), checks)
    assert (len(found.equivalent), len(found.survived), found.caught.total()) == (1, 1, 1)


@pytest.mark.slow
def test_reasons_belong_to_faults_that_exist():
    for task in registry.tasks():
        keys = {one.key for one in survey.faults_of(task, survey.solution(task))}
        assert set(equivalents.reasons(task.id)) <= keys


def test_reasons_are_sentences():
    for entry in equivalents.EQUIVALENTS:
        assert entry.reason[0].isupper() or entry.reason.startswith("a * b")
        assert entry.reason.endswith(".")
        assert all(registry.task(id) for id in entry.tasks)


def test_without_solutions_the_survey_says_so(tmp_path):
    with pytest.raises(survey.SurveyError, match="needs the course's repository"):
        survey.solution(registry.task("01.dot"), tmp_path)


def test_a_solution_that_is_wrong_itself_ends_the_survey(monkeypatch):
    monkeypatch.setattr(
        survey, "solution", lambda task, root: Code("def dot(row, col):\n    return 1\n", "dot")
    )
    with pytest.raises(survey.SurveyError, match="itself is not right"):
        survey.survey([registry.task("01.dot")], [9], workers=1)


def test_the_command_prints_the_table_and_writes_json(tmp_path, capsys):
    import argparse
    import json

    from course_lib.commands import mutants

    parser = argparse.ArgumentParser()
    mutants.add_arguments(parser)
    target = tmp_path / "found.json"
    words = ["--task", "02.roofline", "--seed", "9", "--workers", "1", "--json", str(target)]
    assert mutants.run(parser.parse_args(words)) == 0
    assert "02.roofline" in capsys.readouterr().out
    (task,) = json.loads(target.read_text(encoding="utf-8"))["tasks"]
    assert task["faults"] == sum(task["caught"].values()) > 30
    assert mutants.run(parser.parse_args(["--task", "09.none"])) == 2
    assert "There is no task '09.none'" in capsys.readouterr().out
    assert mutants.run(parser.parse_args(["--seed", "-1"])) == 2
