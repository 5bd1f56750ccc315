"""What check() says in a notebook and what grading says of it are the same, in every honest style.

The cells run in IPython, and check() looks at the function there; grading reads the same cells and judges in
the sandbox.

In notebooks_both_ways.txt each begins with `=== style | chapter | tasks that both refuse`; `---` stands
between two cells. All other tasks get all points from both.
"""

import random
import re
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from grading_tools import ASSIGNMENTS as NAMES
from grading_tools import notebook_of
from short_course import ROOT

from course_lib.grading.check import examine
from course_lib.grading.classroom import assignment as assignments
from course_lib.grading.classroom.assignment import Item
from course_lib.grading.classroom.verdict import SubmissionJob, judged
from course_lib.grading.sandbox.bubblewrap import AnswerLimits, Sandbox
from course_lib.grading.task import Task

pytestmark = pytest.mark.needs("bubblewrap")
SANDBOX = Sandbox(limits=AnswerLimits(call_s=5, task_s=60, memory_mb=1500))


def notebooks() -> dict[str, tuple[str, set[str], list[str]]]:
    """Return for each style: the chapter, what both refuse, and the cells."""
    found = {}
    text = Path(__file__).with_name("notebooks_both_ways.txt").read_text(encoding="utf-8")
    for part in f"\n{text}".split("\n=== ")[1:]:
        head, _, rest = part.partition("\n")
        name, chapter, refused, *_ = (word.strip() for word in f"{head}||".split("|"))
        found[name] = (chapter, set(refused.split()), rest.strip("\n").split("\n---\n"))
    return found


NOTEBOOKS = notebooks()


class Untimed(Item):
    """An item without its speed: seconds are no matter here."""

    @property
    def task(self) -> Task:
        return replace(super().task, speed=None)


@pytest.fixture(scope="module")
def items() -> dict[str, Untimed]:
    found = [item for name in NAMES.values() for item in assignments.load(ROOT, name).items]
    return {one.task_id: Untimed(**vars(one)) for one in found}


@pytest.fixture
def undone():
    """Take back what a notebook sets for the whole process."""
    seeded, floats, options = random.getstate(), np.geterr(), np.get_printoptions()
    with warnings.catch_warnings():
        yield
    random.setstate(seeded)
    np.seterr(**floats)
    np.set_printoptions(**options)


def graded(chapter: str, texts: list[str], wanted: tuple[Untimed, ...]) -> dict[str, dict]:
    data = notebook_of(*texts)
    job = SubmissionJob(NAMES[chapter], "ada", wanted, data, "a.ipynb", (), 20250917, SANDBOX)
    return {one["id"]: one for one in judged(job)["tasks"]}


def defines(texts: list[str], entry: str) -> bool:
    return any(re.search(rf"^(def {entry}\(|{entry} = )", text, re.MULTILINE) for text in texts)


def check_and_grading_agree(names, items, session) -> None:
    for name in names:
        chapter, refused, texts = NOTEBOOKS[name]
        wanted = [one for one in items.values() if one.task.chapter == chapter and defines(texts, one.entry)]
        assert wanted, name
        ran, verdicts = session(texts), graded(chapter, texts, tuple(wanted))
        for one in wanted:
            live = examine(one.task, ran[one.entry])
            verdict = verdicts[one.task_id]
            told = f"{name}\n{live}\n\n{verdict['teacher']['lines']}\n\n{verdict['answer']}"
            assert live.points == verdict["points"] == (0 if one.task_id in refused else one.points), told
            if one.task_id in refused:
                assert list(live.lines) == verdict["feedback"]["lines"], told
            assert not verdict["manual"] or one.task_id in refused, told


def test_grading_says_what_check_says(items, undone, session):
    check_and_grading_agree([*NOTEBOOKS][::4], items, session)


@pytest.mark.slow
def test_grading_says_what_check_says_in_every_style(items, undone, session):
    check_and_grading_agree(NOTEBOOKS, items, session)
