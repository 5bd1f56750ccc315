"""Other ways to write what is asked for, and wrong answers to tasks that are newer than the golden corpus.

There are also the answers in which another library or the course itself works, or that look into a box.
"""

import re
from pathlib import Path

import pytest
from golden import corpus
from grading_tools import GPU_HEAD

TEXTS = Path(__file__).with_name("answers_by_others.txt").read_text(encoding="utf-8")
ANSWERS = re.findall(r"^==== (honest|wrong) (\S+): (.*)\n((?:(?!====).*\n)+)", TEXTS, re.MULTILINE)
HONEST = [row[1:] for row in ANSWERS if row[0] == "honest"]
WRONG = [row[1:] for row in ANSWERS if row[0] == "wrong"]
a_part_or_all = pytest.mark.parametrize("every", (4, pytest.param(1, marks=pytest.mark.slow)))


def test_every_answer_of_the_file_is_read():
    assert len(ANSWERS) == TEXTS.count("\n====") > len(HONEST) > 0


def with_given(task, text: str) -> str:
    """Return the answer below the helpers that the task hands out."""
    return "\n\n".join([GPU_HEAD if task.chapter == "06" else "", task.rules[0].given, text])


@pytest.mark.parametrize("id", ["10.accumulator", "10.scales"])
def test_looking_at_what_is_to_be_found_by_experiment_tells_nothing(id, judged):
    report = judged(id, corpus.text_of(id, f"{id[3:]}: the key"))
    assert report.points == 0


@a_part_or_all
@pytest.mark.usefixtures("tracer_compiled")
def test_another_way_to_write_it_gets_all_points(judged, every):
    from course_lib.grading import registry

    for id, way, text in HONEST[::every]:
        task = registry.task(id)
        whole = with_given(task, text)
        report = judged(id, whole)
        assert report.points == task.points, f"{way}: {report}"
        assert all(rule.judge(whole, task.entry) is None for rule in task.rules), way


@a_part_or_all
@pytest.mark.usefixtures("tracer_compiled")
def test_typical_wrong_answers_are_rejected_in_words_that_name_the_fault(judged, every):
    """Those that are newer than the golden corpus."""
    from course_lib.grading import registry

    for id, way, text in WRONG[::every]:
        report = judged(id, with_given(registry.task(id), text))
        assert report.points == 0 and way.partition(" | ")[2] in str(report), f"{way}\n{report}"
