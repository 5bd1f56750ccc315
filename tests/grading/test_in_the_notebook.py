"""check(), hint(), baseline() and checkpoint() as a learner meets them."""

import json
import linecache
import math
import re
import sys

import numpy as np
import pytest
from grading_tools import ROOT, execute, noise, notebook_of

from course_lib.grading import baseline, check, checkpoint, checkpoints, fill, hint, registry, total
from course_lib.grading.questions import FILLS
from course_lib.grading.sources import load, plain_function


def test_check_prints_the_report_and_returns_it(capsys):
    report = check(
        "01.count", load("def operations(M, K, N):\n    return M * N * K, M * N * K\n", "operations")
    )
    printed = capsys.readouterr()
    assert "✗ 01.count · Count the operations · 0 of 1 point" in printed.out
    assert "K - 1" in printed.out
    assert printed.err == ""
    assert (report.points, report.max_points, report.passed) == (0.0, 1, False)


def test_no_answer_and_every_stub_is_not_started(capsys):
    for answer in (None, ...):
        report = check("01.rows", answer)
        assert (report.points, report.started, report.passed) == (0.0, False, False)
        assert "Not started: write `by_rows`" in capsys.readouterr().out
    for task in registry.tasks():
        compiled = task.id in ("02.matmul", "02.fast", "02.bug")
        head = "from numba import njit\n@njit\n" if compiled else ""
        for body in ("raise NotImplementedError()", "...", "pass", "return ..."):
            stub = load(f"{head}def {task.entry}(*args):\n    {body}\n", task.entry)
            report = check(task.id, stub)
            assert not report.started, (task.id, body)
            assert ("still stand there? Delete it." in str(report)) == ("raise" in body)


def test_hints_come_one_by_one_from_a_question_to_nearly_the_line():
    first, second, third, again = (hint("02.change") for _ in range(4))
    assert [note.head[:11] for note in (first, second, third, again)] == [
        f"Hint {number} of 3" for number in (1, 2, 3, 3)
    ]
    assert "a question" in first.head and "?" in first.body
    assert 'Call `hint("02.change")` again for the idea.' in first.body
    assert "That was the last hint." in third.body
    assert "<code" in first._repr_html_()
    for task in registry.tasks():
        assert "?" in task.hints[0] and len(set(task.hints)) == 3, task.id


def test_the_baseline_can_be_read_and_called():
    given = baseline("01.faster")
    assert "for k in range(K):" in repr(given)
    assert given([[1.0, 2.0]], [[3.0], [4.0]]) == [[11.0]]
    assert "<pre" in given._repr_html_()
    with pytest.raises(ValueError, match=r"01\.count has no baseline"):
        baseline("01.count")


def test_the_total_adds_up_what_was_checked(capsys, monkeypatch):
    monkeypatch.setattr(sys.modules["course_lib.grading.check"], "_latest", {})
    assert str(total("01")).startswith("0 of 14 points\nNot started: 01.count, 01.dot")
    check("01.dot", load("def dot(row, col):\n    return sum(a * b for a, b in zip(row, col))\n", "dot"))
    check("01.count", None)
    assert total("01").head == "1 of 14 points"
    assert "01.count" in total("01").body and "01.dot" not in total("01").body
    assert capsys.readouterr().err == ""
    with pytest.raises(KeyError, match="no tasks for chapter '99'"):
        total("99")


# --- checkpoints ---


def test_a_checkpoint_explains_right_and_typical_wrong_answers():
    for question in checkpoints.questions():
        asked = checkpoint(question.id)
        assert asked.right is None, question.id
        assert question.text in str(asked) and f'checkpoint("{question.id}", ' in str(asked), question.id
        sample = re.search(r"`checkpoint\(.*, (.*)\)`", asked.says)[1]
        assert sample in ('"…"', "..."), question  # nothing that could be the answer
        right = checkpoint(question.id, question.answer)
        assert right.right is True and question.why in str(right), question.id
        assert len(question.wrong) >= 2, question.id
        for given, says in question.wrong.items():
            response = checkpoint(question.id, given)
            assert response.right is False and says in str(response), question.id
        assert checkpoint(question.id, "nonsense").right is False, question.id
        assert "checkpoint(" in str(checkpoint(question.id, "nonsense")), question.id
        assert question.id in right._repr_html_(), question.id


def test_the_answers_are_what_arithmetic_says_and_what_learners_answered_is_explained():
    for id, right, answer, words in (
        ("00.amdahl", (1 / (1 - 0.45), 1.82), 1.84, "for 45.62 %"),
        ("00.linear", ("addmm", "aten::addmm"), "aten::mm", "the product alone"),
        ("00.flops", (524_288_000, 5.24e8, "524,288,000"), 0.52, "in GFLOP; answer in FLOP"),
        ("01.doubling", (2**3, "8x", " 8 ×", "8X"), 6.4, "may have measured that; the count says more"),
        ("01.doubling", (), 7.9, "may have measured that; the count says more"),
        ("01.doubling", (), 8.5, "may have measured that; the count says less"),
        ("01.additions", (sum(19 for _ in range(10) for _ in range(30)),), 1, "Write it as a formula"),
        ("01.bytes", ((8 + 24) / 8,), 5, "Write it as a formula"),
        ("02.innermost", ("J ",), "k", "jumps over a whole row"),
        ("02.lanes", (512 // 32, "16"), 17, "Write it as a formula"),
        ("02.intensity", (2 / (3 * 8), 0.083, 0.08), "17", "Write it as a formula"),
        ("06.register_tile", ("8x8", " 8 × 8", "8 X 8"), "64x1", "64 + 1 loads"),
    ):
        assert all(checkpoint(id, one).right is True for one in right), id
        response = checkpoint(id, answer)
        assert response.right is False and words in response.says, (id, answer)


def test_odd_answers_get_a_sentence():
    assert checkpoint("01.doubling", math.nan).right is False
    for given in (True, np.True_, float, 10**400):
        assert "is not a number" in str(checkpoint("01.doubling", given))
    for given in ("1,5", "8,000", "8 ms", "0,500", "08,000,000", [8.0], np.array([8.0])):  # it may be a point
        assert "is not a number" in str(checkpoint("01.doubling", given))
    assert "is not among the options" in str(checkpoint("02.innermost", 3))
    assert "is not among the options" in str(checkpoint("06.register_tile", "88"))
    with pytest.raises(KeyError, match=r"01\.doubling"):
        checkpoint("01.dubling")


# --- fill-ins ---


NAMES = """
import threading
from itertools import pairwise
import numpy as np
from numba import njit, prange
from course_lib import ladder
from course_lib.circles import simd, vectors
from course_lib.grading import fill
ROW = simd.ROW_BYTES
"""


def test_a_fill_in_goes_on_with_ours_until_the_learners_line_is_right(tmp_path, capsys):
    cells = [
        cell
        for path in (ROOT / "notebooks").glob("*.ipynb")
        for cell in json.loads(path.read_text())["cells"]
    ]
    for number, one in enumerate(FILLS):
        (cell,) = [cell for cell in cells if f'fill("{one.id}"' in "".join(cell["source"])]
        given, text = "".join(cell["source"]), one.filled("...")
        called = f'{text}\n\n\n{one.name} = fill("{one.id}", {one.name})'
        assert given in (f'@fill("{one.id}")\n{text}', called) and "fill" in cell["metadata"]["tags"], one.id
        typed = [(line, "✗", says) for line, says in one.wrong.items()] + [
            ("not_a_name()", "✗", "not_a_name")
        ]
        for line, sign, says in [("...", "○", "where `...` stands"), *typed, (one.line, "✓", one.why)]:
            cell = tmp_path / f"{number}.py"
            cell.write_text(NAMES + given.replace("...", line), encoding="utf-8")
            linecache.checkcache()
            function = load(cell.read_text(encoding="utf-8"), one.name, str(cell))
            said = capsys.readouterr().out
            assert said.startswith(sign) and says in said, (one.id, line, said)
            is_theirs = plain_function(function).__code__.co_filename == str(cell)
            assert is_theirs == (sign == "✓"), (one.id, line)
        assert len(typed) > 1 and all(text in str(fill(one.id)) for text in (one.hint, one.line)), one.id
        assert fill(one.id)._repr_html_().count("<details") == 2, one.id
    with pytest.raises(KeyError, match=r"03\.gauss"):
        fill("03.gaus")


# --- in a real kernel ---


def test_a_report_is_shown_once_and_stays_silent_on_stderr(tmp_path):
    cells = [
        "from course_lib.grading import check, checkpoint, hint",
        "def helper(M, N):\n    print('noise')\n    return M * N",
        "def operations(M, K, N):\n    return helper(M, N) * K, helper(M, N) * max(K - 1, 0)",
        'check("01.count", operations)',
        'report = check("01.count", operations)\nreport.points',
        "report",
        'hint("01.count"), checkpoint("01.doubling", 8)',
        "def operations(M, K, N):\n\n    return undefined",
        'check("01.count", operations)',
        "pair = lambda a, b: a * b\ndot = lambda row, col: sum(pair(a, b) for a, b in zip(row, col))",
        'check("01.dot", dot)',
        'from course_lib.grading import total\ntotal("01")',
    ]
    path = tmp_path / "learner.ipynb"
    path.write_bytes(notebook_of(*cells))
    executed = execute(path, tmp_path)
    assert noise(executed) == []
    outputs = [cell["outputs"] for cell in executed["cells"]]
    assert [output["output_type"] for output in outputs[3]] == ["display_data"]
    assert [output["output_type"] for output in outputs[4]] == ["display_data", "execute_result"]
    assert outputs[4][1]["data"]["text/plain"] == "1.0"
    assert [output["output_type"] for output in outputs[5]] == ["display_data"]  # shown again when asked for
    assert "visible tests pass" in outputs[3][0]["data"]["text/html"]
    assert "NameError in line 3, `return undefined`" in outputs[8][0]["data"]["text/plain"]
    assert "visible tests pass" in outputs[10][0]["data"]["text/plain"]
    assert "1 of 14 points" in outputs[11][0]["data"]["text/plain"]


def test_a_check_without_the_tasks_name_says_how_to_call_it():
    with pytest.raises(TypeError, match=r'as in check\("01.rows", by_rows\)'):
        check(lambda A, B: None)
