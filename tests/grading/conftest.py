"""What the grading tests share: the answers from the solution notebooks, and a way to judge source text."""

import pytest
from grading_tools import ASSIGNMENTS, answers_of, read_notebook, solution_path

from course_lib.grading import registry
from course_lib.grading.check import PUBLIC_SEED, examine
from course_lib.grading.sources import load


@pytest.fixture(scope="session")
def solutions() -> dict[str, str]:
    """The text of all answers, by chapter."""
    return {chapter: answers_of(read_notebook(solution_path(chapter))) for chapter in ASSIGNMENTS}


@pytest.fixture
def judged():
    """judged("01.matmul", source_text) -> the report on that answer."""

    def judge_text(id: str, text: str, seed: int = PUBLIC_SEED, entry: str | None = None):
        task = registry.task(id)
        return examine(task, load(text, entry or task.entry), seed)

    return judge_text
