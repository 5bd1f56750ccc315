"""A course with one short assignment, and classes that hand it in, for tests of whole runs."""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tests" / "grading"))
from grading_tools import grader_of, read_notebook, solution_path, text_of  # noqa: E402

NAME = "short"
TASKS = ("01-count", "01-dot")

RIGHT = {
    "01-count-answer": "def operations(M, K, N):\n    return M * N * K, M * N * max(K - 1, 0)\n",
    "01-dot-answer": "def dot(row, col):\n    return sum(a * b for a, b in zip(row, col))\n",
}
WRONG = {
    "01-count-answer": "def operations(M, K, N):\n    return M * N * K, M * N * K\n",
    "01-dot-answer": "def dot(row, col):\n    return row[-1] * col[-1] if row else 0.0\n",
}
STUB = {
    "01-count-answer": "def operations(M, K, N):\n    raise NotImplementedError()\n",
    "01-dot-answer": "def dot(row, col):\n    raise NotImplementedError()\n",
}


def make_course(root: Path) -> Path:
    """Write a course with the assignment `short`: tasks 01.count and 01.dot, a point each."""
    notebook = read_notebook(solution_path("01"))
    notebook["cells"] = [cell for cell in notebook["cells"] if _belongs(cell)]
    notebook["metadata"].pop("nine_circles", None)
    path = root / "solutions" / NAME / f"{NAME}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return root


def _belongs(cell: dict) -> bool:
    mark = grader_of(cell).get("grade_id", "")
    return mark == "setup" or mark.startswith(TASKS)


def answered(root: Path, answers: dict[str, str]) -> dict:
    """Return a notebook as a student hands it in, with these answers."""
    notebook = read_notebook(root / "solutions" / NAME / f"{NAME}.ipynb")
    for cell in notebook["cells"]:
        mark = grader_of(cell).get("grade_id")
        if grader_of(cell).get("solution"):
            cell["source"] = answers.get(mark, STUB[mark])
        assert "### BEGIN" not in text_of(cell)
    return notebook


def hand_in(root: Path, folder: Path, student: str, answers: dict[str, str] | bytes) -> Path:
    """Write a submission in nbgrader's layout; bytes are written as they are."""
    path = folder / student / NAME / f"{NAME}.ipynb"
    path.parent.mkdir(parents=True)
    given = answers if isinstance(answers, bytes) else json.dumps(answered(root, answers)).encode()
    path.write_bytes(given)
    return path


def make_class(root: Path, folder: Path, students: int) -> Path:
    """Write a class in which every third student is right, every third wrong, every third half-way."""
    half = {"01-count-answer": RIGHT["01-count-answer"]}
    for number in range(students):
        hand_in(root, folder, f"student{number:03d}", (RIGHT, WRONG, half)[number % 3])
    return folder


#: What `make_class` must get, in turn.
POINTS = (2.0, 0.0, 1.0)


def make_whole_class(folder: Path, students: int) -> Path:
    """Write a class that hands in the first assignment of the course, all of it right."""
    name = "01_python_loops"
    notebook = read_notebook(ROOT / "exercises" / name / f"{name}.ipynb")
    solved = {cell["id"]: _without_marks(cell) for cell in read_notebook(solution_path("01"))["cells"]}
    for cell in notebook["cells"]:
        if grader_of(cell).get("solution"):
            cell["source"] = solved[cell["id"]]
    for number in range(students):
        path = folder / f"student{number:03d}" / name / f"{name}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(notebook), encoding="utf-8")
    return folder


def _without_marks(cell: dict) -> str:
    return "\n".join(line for line in text_of(cell).splitlines() if "### " not in line)
