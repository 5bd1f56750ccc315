"""What an attack is, how its notebook is made, and how it is laid out as one submission of a class."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grading_tools import ASSIGNMENTS, ROOT, grader_of, read_notebook, solution_path, text_of

NAME = ASSIGNMENTS["01"]
TASKS = {
    "01.count": "01-count-answer",
    "01.dot": "01-dot-answer",
    "01.matmul": "01-matmul-answer",
    "01.alias": "01-alias-answer",
    "01.faster": "01-faster-answer",
    "01.predict_time": "01-predict-time-answer",
}
POINTS = {"01.count": 1, "01.dot": 1, "01.matmul": 3, "01.alias": 2, "01.faster": 3, "01.predict_time": 2}
FULL = dict(POINTS)

Notebook = dict[str, Any]
Place = Callable[[Path, str, bytes], None]


def _without_marks(cell: dict) -> str:
    return "\n".join(line for line in text_of(cell).splitlines() if "### " not in line)


#: The right answers, by task.
RIGHT = {
    task: _without_marks(
        next(one for one in read_notebook(solution_path("01"))["cells"] if one["id"] == cell)
    )
    for task, cell in TASKS.items()
}


@dataclass(frozen=True)
class Attack:
    """A hostile or broken submission: what it tries, and what it must get.

    `answers` go into the answer cells, `before` and `after` are cells of its own, `edit` is the last change
    to the notebook and may give bytes, `place` puts them into the class's folder. `earns` are the points of
    each task (0 for those not named); `flagged`: somebody has to look at it (None: chance decides).
    """

    name: str
    tries: str
    answers: dict[str, str] = field(default_factory=dict)
    earns: dict[str, float] = field(default_factory=dict)
    flagged: bool | None = False
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    edit: Callable[[Notebook], Notebook | bytes] | None = None
    place: Place | None = None
    id: str = ""  # of the student, if it is not the name

    @property
    def student(self) -> str:
        """The student's id in the class."""
        return self.id or self.name

    def points(self) -> dict[str, float]:
        """Return the points of every task."""
        return {task: float(self.earns.get(task, 0)) for task in TASKS}

    def put(self, source: Path) -> None:
        """Lay the submission out in the folder of the class."""
        notebook = notebook_with(self.answers, self.before, self.after)
        made = self.edit(notebook) if self.edit else notebook
        data = made if isinstance(made, bytes) else json.dumps(made).encode()
        (self.place or as_usual)(source, self.name, data)


def notebook_with(
    answers: dict[str, str], before: tuple[str, ...] = (), after: tuple[str, ...] = ()
) -> Notebook:
    """Return the released notebook with these answers, and cells of the student's own around them."""
    notebook = read_notebook(ROOT / "exercises" / NAME / f"{NAME}.ipynb")
    cells = {TASKS[task]: text for task, text in answers.items()}
    for cell in notebook["cells"]:
        if grader_of(cell).get("solution") and cell["id"] in cells:
            cell["source"] = cells[cell["id"]]
    extra = [
        [code_cell(text, f"own-{place}{n}") for n, text in enumerate(texts)]
        for place, texts in (("before", before), ("after", after))
    ]
    notebook["cells"] = [*extra[0], *notebook["cells"], *extra[1]]
    return notebook


def code_cell(text: str, id: str = "own") -> dict[str, Any]:
    """Return a code cell."""
    plain = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": 1}
    return {**plain, "id": id, "source": text}


def as_usual(source: Path, student: str, data: bytes) -> None:
    """Hand in a notebook as nbgrader lays it out."""
    file(source, student).write_bytes(data)


def file(source: Path, student: str) -> Path:
    """Return where a student's notebook belongs; its folder is made."""
    folder = source / student / NAME
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{NAME}.ipynb"


def honest(*tasks: str) -> dict[str, str]:
    """Return the right answers to these tasks."""
    return {task: RIGHT[task] for task in tasks}


def worth(*tasks: str) -> dict[str, float]:
    """Return the full points of these tasks."""
    return {task: POINTS[task] for task in tasks}


def text(code: str) -> str:
    """Return code that is written indented in a declaration."""
    return textwrap.dedent(code).strip("\n")


def count(body: str, result: str = "0, 0") -> str:
    """Return an answer to 01.count with this body, and a result that is wrong unless said otherwise."""
    return f"def operations(M, K, N):\n{textwrap.indent(text(body), '    ')}\n    return {result}\n"


#: The right result of 01.count.
RIGHT_COUNT = "M * N * K, M * N * max(K - 1, 0)"


def spying(code: str) -> str:
    """Return an answer to 01.count that is right only if `code` sets found: so that finding gives points."""
    body = (
        "found = False\ntry:\n" + textwrap.indent(text(code), "    ") + "\nexcept BaseException:\n    pass\n"
    )
    return count(body, f"({RIGHT_COUNT}) if found else (0, 0)")


def on_count(name: str, tries: str, code: str, right: bool = False, flagged: bool = False, dot: bool = True):
    """Return an attack in the answer to 01.count, beside a right answer that must keep its point."""
    return Attack(
        name,
        tries,
        {"01.count": text(code), **(honest("01.dot") if dot else {})},
        {**(worth("01.count") if right else {}), **(worth("01.dot") if dot else {})},
        flagged,
    )
