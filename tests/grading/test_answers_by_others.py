"""Answers in which another library or the course itself works, or that look into a box.

Each is right, or may be: only the rules stand in its way. Beside them: other ways to write what is asked for.
"""

import re
from pathlib import Path

import pytest
from grading_tools import GPU_HEAD

TEXTS = Path(__file__).with_name("answers_by_others.txt").read_text(encoding="utf-8")
ANSWERS = re.findall(r"^==== (attack|honest|wrong) (\S+): (.*)\n((?:(?!====).*\n)+)", TEXTS, re.MULTILINE)
ATTACKS = [row[1:] for row in ANSWERS if row[0] == "attack"]
HONEST = [row[1:] for row in ANSWERS if row[0] == "honest"]


def test_every_answer_of_the_file_is_read():
    assert len(ANSWERS) == TEXTS.count("\n====") and (len(ATTACKS), len(HONEST)) == (46, 40)


def with_given(task, text: str) -> str:
    """Return the answer below the helpers that the task hands out."""
    return "\n\n".join([GPU_HEAD if task.chapter == "06" else "", task.rules[0].given, text])


def test_nobody_else_works_for_an_answer():
    from course_lib.grading import registry
    from course_lib.grading.program import CLOSED

    for id, way, text in ATTACKS:
        task = registry.task(id)
        for head in ("", f"{CLOSED}\n"):  # in a notebook, in a class
            whole = head + with_given(task, text)
            assert any(rule.judge(whole, task.entry) for rule in task.rules), (id, way, head)
    assert {id for id, _, _ in ATTACKS} >= {task.id for task in registry.tasks("10")}


@pytest.mark.parametrize("id", ["10.accumulator", "10.scales"])
def test_the_rules_are_asked_before_an_answer_runs(id, judged):
    from course_lib.grading import registry

    text = next(text for other, way, text in ATTACKS if (other, way) == (id, "the key"))
    report = judged(id, with_given(registry.task(id), text))
    assert report.points == 0 and "find out by experiment" in str(report)


@pytest.mark.usefixtures("tracer_compiled")
def test_another_way_to_write_it_gets_all_points(judged):
    from course_lib.grading import registry
    from course_lib.grading.program import CLOSED

    for id, way, text in HONEST:
        task = registry.task(id)
        whole = with_given(task, text)
        report = judged(id, whole)
        assert report.points == task.points, f"{way}: {report}"
        assert all(rule.judge(f"{CLOSED}\n{whole}", task.entry) is None for rule in task.rules), way


@pytest.mark.usefixtures("tracer_compiled")
def test_typical_wrong_answers_are_rejected_in_words_that_name_the_fault(judged):
    """Those that are newer than the golden corpus."""
    from course_lib.grading import registry

    for id, way, text in (row[1:] for row in ANSWERS if row[0] == "wrong"):
        report = judged(id, with_given(registry.task(id), text))
        assert report.points == 0 and way.partition(" | ")[2] in str(report), f"{way}\n{report}"
