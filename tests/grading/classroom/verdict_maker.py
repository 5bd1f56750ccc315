"""Verdicts for the tests of the pages: reports as the judge writes them, on typical wrong answers."""

from __future__ import annotations

import functools
import random

from course_lib.grading import registry
from course_lib.grading.judge import judge, not_started
from course_lib.grading.report import Report
from course_lib.grading.runner import InProcess
from course_lib.grading.sources import load

ASSIGNMENT = "01_python_loops"
RUN = {
    "assignment": ASSIGNMENT,
    "started": "2031-05-04 10:00",
    "finished": "2031-05-04 10:07",
    "machine": "a computer of 16 cores",
    "sandbox": True,
    "workers": 16,
    "course_version": "0.1.0",
    "seconds": 420.0,
}


LOOPS = """def {entry}(A, B):
    M, K, N = len(A), len(B), len(B[0])
    C = {made}
    for i in range(M):
        for j in range(N):
            for k in range({terms}):
                C[i][j] {how} A[i][k] * B[k][j]
    return C
"""
ROWS = "[[0.0] * N for _ in range(M)]"
#: Typical wrong answers, by task.
WRONG = {
    "01.count": (
        "def operations(M, K, N):\n    return M * N * K, M * N * K\n",
        "def operations(M, K, N):\n    return 2 * M * N * K\n",
    ),
    "01.dot": (
        "def dot(row, col):\n    total = 0.0\n    for a, b in zip(row, col):\n        total = a * b\n"
        "    return total\n",
        "def dot(row, col):\n    print(sum(a * b for a, b in zip(row, col)))\n",
    ),
    "01.rows": (
        "def by_rows(A, B):\n    return [[a * b for k, a in row for b in B[k]] for row in A]\n",
        "def by_rows(A, B):\n    return [[sum(a * B[k][0] for k, a in row)] * len(B[0]) for row in A]\n",
    ),
    "01.alias": (LOOPS.format(entry="repaired", made="[[0.0] * N] * M", terms="K", how="+="),),
    "01.yours": ('def faster(results, one, other):\n    return 1.0, 1.0, "cannot tell"\n',),
    "01.predict_time": (
        "def extrapolate(sizes, seconds, N):\n    return 3.0, seconds[-1] * (N / sizes[-1]) ** 3\n",
    ),
}


@functools.cache
def answers() -> dict[str, list[tuple[str, Report]]]:
    """Return each task's judged answers: a right one (claimed, not run), nothing, and wrong ones."""
    found = {}
    for task in registry.tasks("01"):
        right = Report(task.id, task.title, task.points, task.points, "right", ("Right.",))
        begun = f"def {task.entry}(A, B):\n    "
        found[task.id] = [
            (f"{begun}return product(A, B)  # claimed\n", right),
            (f"{begun}raise NotImplementedError\n", not_started(task)),
            *(
                (one, judge(task, InProcess(load(one, task.entry)), one, seed=77))
                for one in WRONG.get(task.id, ())
            ),
        ]
    return found


def task_entry(source: str, report: Report) -> dict:
    plain = report.to_json()
    return {
        **{key: plain[key] for key in ("title", "points", "max_points", "state")},
        "id": report.task_id,
        "feedback": plain,
        "teacher": report.to_json(),
        "why": "" if report.passed else report.lines[0],
        "manual": [],
        "answer": source,
        "seconds": {"kernel": 1.2, "wall": 1.4},
    }


def verdict(student: str = "ada", pick=lambda choices: choices[0], **changes) -> dict:
    """Return the verdict on a student; `pick` chooses the answer to each task."""
    made = {
        "format": 1,
        "assignment": ASSIGNMENT,
        "student": student,
        "key": "0",
        "received": {"name": f"{student}.ipynb", "sha256": "ab" * 32, "bytes": 12345},
        "manual": [],
        "tasks": [task_entry(*pick(choices)) for choices in answers().values()],
    }
    return {**made, **changes}


def classroom(students: int, seed: int = 5) -> list[dict]:
    """Return a class in which each student has about half of the tasks right."""
    chance = random.Random(seed)

    def pick(choices):
        return choices[0] if chance.random() < 0.5 else chance.choice(choices)

    return [verdict(f"student{number:03}", pick) for number in range(students)]


def with_text(text: str) -> dict:
    """Return a verdict in which every string that a student can reach is this text."""
    made = verdict(text, lambda choices: choices[-1], assignment=text, manual=[text])
    made["received"] = {"name": text, "sha256": text, "bytes": 1}
    for task in made["tasks"]:
        task.update(title=text, why=text, answer=text, manual=[text, text])
        for kind in ("feedback", "teacher"):
            mismatch = {"says": [text], "got": text, "want": text + "!", "rows": [[text] * 3], "wrong": 9}
            mismatch |= {"total": 9, "errors": [[0.0, None], [1.0, 0.5]], "form": False}
            task[kind] = {**task[kind], "title": text, "lines": [text], "notes": [text], "mismatch": mismatch}
    return made
