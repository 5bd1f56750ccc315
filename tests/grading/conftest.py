"""What the grading tests share: the answers from the solution notebooks, and a way to judge source text."""

import json
from pathlib import Path

import pytest

from course_lib.grading.check import PUBLIC_SEED, examine
from course_lib.grading.registry import task as task_of
from course_lib.grading.sources import load

ROOT = Path(__file__).resolve().parents[2]
ASSIGNMENTS = {"01": "01_python_loops", "02": "02_compiled_loops"}


def read_notebook(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def text_of(cell: dict) -> str:
    return "".join(cell["source"])


def grader_of(cell: dict) -> dict:
    return cell["metadata"].get("nbgrader", {})


@pytest.fixture(scope="session")
def solution_notebooks() -> dict[str, dict]:
    return {
        chapter: read_notebook(ROOT / "solutions" / name / f"{name}.ipynb")
        for chapter, name in ASSIGNMENTS.items()
    }


@pytest.fixture(scope="session")
def solutions(solution_notebooks) -> dict[str, str]:
    """All answers of an assignment as one text, imports first."""
    texts = {}
    for chapter, notebook in solution_notebooks.items():
        code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        kept = [cell for cell in code if grader_of(cell).get("solution") or cell["id"] == "setup"]
        texts[chapter] = "\n\n\n".join(map(text_of, kept)) + "\n"
    return texts


@pytest.fixture
def judged():
    """judged("01.matmul", source_text) -> the report on that answer."""

    def judge_text(id: str, text: str, seed: int = PUBLIC_SEED, entry: str | None = None):
        task = task_of(id)
        return examine(task, load(text, entry or task.entry), seed)

    return judge_text
