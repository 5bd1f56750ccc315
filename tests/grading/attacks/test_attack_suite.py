"""Hostile and broken submissions, graded in one class with honest students between them.

None of them may gain a point that it did not earn, lose one that it did, change another student's grade, see
what is secret, or stop the run.
"""

from __future__ import annotations

import csv
import functools
import html
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import attacks_inside
import attacks_on_files
import attacks_on_machine
import attacks_on_rules
import pytest
from attack_tools import FULL, NAME, POINTS, TASKS, Attack, honest
from grading_tools import ROOT
from pace import slowness

from course_lib.grading import registry
from course_lib.grading.check import PUBLIC_SEED
from course_lib.grading.classroom import secret
from course_lib.grading.classroom.run import GradingOrder, grade
from course_lib.grading.judge import generator
from course_lib.grading.sandbox.bubblewrap import AnswerLimits, Sandbox

pytestmark = pytest.mark.needs("bubblewrap")
LIMITS = AnswerLimits(call_s=1, task_s=15, memory_mb=600, disk_mb=16, processes=16)
TIMED = {task for task in TASKS if registry.task(task).speed}
SEED = "words that nobody may know 7391"
HONEST = tuple(
    Attack(name, "an honest student", honest(*FULL), FULL) for name in ("honest-a", "honest-m", "honest-z")
)
ATTACKS = (*attacks_on_files.ALL, *attacks_inside.ALL, *attacks_on_machine.ALL, *attacks_on_rules.ALL)
TRICKS = attacks_on_rules.TRICKS  # with the stopwatch: in every class of `make proof`, which measures alone
OTHERS = [attack for attack in ATTACKS if attack not in TRICKS]
#: One attacker of each kind is in every run of the tests; all of them are among the long proofs.
OF_EACH_KIND = (
    *("truncated", "zip-slip", "metadata-stripped", "a-thousand-points", "patched-builtins", "text-bomb-sum"),
    *("replaced-harness", "forged-reply", "noise"),
    *("loop", "fork-bomb", "much-memory", "daemon", "told-inputs"),
    *("blas-builtins", "tape-cleared", "memory-default", "rounded"),
)
CLASSES = {
    "one of each kind": (*(one for one in OTHERS if one.name in OF_EACH_KIND), *HONEST),
    **{
        name: (*OTHERS[first::3], *TRICKS, *HONEST)
        for first, name in enumerate(("a third", "the second", "the last"))
    },
}


@dataclass(frozen=True)
class Class:
    """A graded class: its students and folder, how long it took, and its verdicts by student."""

    students: tuple[Attack, ...]
    folder: Path
    seconds: float
    verdicts: dict[str, dict]

    @property
    def feedback(self) -> dict[str, str]:
        """The feedback pages by student."""
        pages = {name: self.folder / "feedback" / name / NAME / f"{NAME}.html" for name in self.verdicts}
        return {name: page.read_text(encoding="utf-8") for name, page in pages.items()}

    @functools.cached_property
    def rows(self) -> dict[str, dict[str, str]]:
        """The rows of the csv by student."""
        with (self.folder / f"{NAME}-grades.csv").open(encoding="utf-8-sig", newline="") as file:
            return {row["student"].lstrip("'"): row for row in csv.DictReader(file)}

    @functools.cached_property
    def book(self) -> dict[str, dict[str, tuple[float, bool]]]:
        """What nbgrader's grade book has: by student and task the points, and whether it waits for a look."""
        from nbgrader.api import Gradebook

        found = {}
        names = {f"{cell.removesuffix('-answer')}-points": task for task, cell in TASKS.items()}
        with Gradebook(f"sqlite:///{(self.folder / 'gradebook.db').as_posix()}") as book:
            for one in book.notebook_submissions(NAME, NAME):
                marks = {
                    names[grade.name]: (grade.auto_score, grade.needs_manual_grade) for grade in one.grades
                }
                found[one.student.id] = marks
        return found


def graded(folder: Path, students: tuple[Attack, ...], workers: int = 0) -> Class:
    """Have a class handed in and graded."""
    source, target = folder / "handed_in", folder / "grades"
    source.mkdir()
    target.mkdir()
    (target / secret.FILE).write_text(SEED, encoding="utf-8")
    for one in students:
        one.put(source)
    start = time.perf_counter()
    grade(GradingOrder(source, target, ROOT, NAME, workers=workers, limits=LIMITS))
    seconds = time.perf_counter() - start
    found = (
        json.loads(path.read_text(encoding="utf-8")) for path in (target / "verdicts" / NAME).glob("*.json")
    )
    return Class(students, target, seconds, {one["student"]: one for one in found})


@pytest.fixture(scope="module")
def classes(tmp_path_factory, request) -> Callable[[str], Class]:
    """The classes by name, each graded when it is first asked for."""
    Sandbox().check()  # without bubblewrap: NoSandbox says what to install
    patch = pytest.MonkeyPatch()
    request.addfinalizer(patch.undo)
    patch.delenv(secret.VARIABLE, raising=False)
    return functools.cache(lambda name: graded(tmp_path_factory.mktemp("attacked"), CLASSES[name]))


@pytest.fixture(
    params=[
        pytest.param(name, marks=() if name == "one of each kind" else pytest.mark.slow) for name in CLASSES
    ]
)
def attacked(classes, request) -> Class:
    """Attackers and the honest students between them, graded as one class."""
    return classes(request.param)


@pytest.fixture(scope="module")
def peaceful(tmp_path_factory, classes) -> Class:
    """The honest students alone, with the same seed."""
    return graded(tmp_path_factory.mktemp("peaceful"), HONEST)


def points(verdict: dict) -> dict[str, float]:
    return {task["id"]: task["points"] for task in verdict["tasks"]}


def is_flagged(verdict: dict) -> bool:
    return bool(verdict["manual"]) or any(task["manual"] for task in verdict["tasks"])


def _said(verdict: dict) -> str:
    lines = [
        f"{task['id']}: {task['points']} {task['teacher']['lines']} {task['manual']}"
        for task in verdict["tasks"]
    ]
    return "\n".join([str(verdict["manual"]), *lines])


# --- every grade -------------------------------------------------------------------------------------------


def test_there_are_enough_attacks_and_no_two_by_one_name():
    names = [one.student for one in (*ATTACKS, *HONEST)]
    assert len(ATTACKS) >= 170
    assert len(set(names)) == len(names)
    assert len(CLASSES["one of each kind"]) == len(OF_EACH_KIND) + len(HONEST)


def test_everybody_gets_the_grade_that_was_earned_and_nobody_else_one(attacked):
    names = {one.student for one in attacked.students}
    assert set(attacked.verdicts) == set(attacked.rows) == set(attacked.book) == names
    for one in attacked.students:
        verdict, wanted = attacked.verdicts[one.student], one.points()
        given = points(verdict)
        short = {task for task in TASKS if given[task] != wanted[task]}
        if one.earns == FULL:  # points for speed may be lost to a busy moment
            assert short <= TIMED, f"{one.name}: {_said(verdict)}"
            assert all(given[task] >= registry.task(task).points_for_being_right for task in short), one.name
        else:
            assert not short, f"{one.name}: {_said(verdict)}"
        row = attacked.rows[one.student]
        assert {task: float(row[task]) for task in POINTS} == given, one.name
        assert float(row["points"]) == sum(given.values()), one.name
        assert {task: score for task, (score, _) in attacked.book[one.student].items()} == given, one.name


def test_what_needs_a_look_is_flagged_and_nothing_else(attacked):
    for one in attacked.students:
        verdict = attacked.verdicts[one.student]
        wanted = is_flagged(verdict) if one.flagged is None else one.flagged
        assert is_flagged(verdict) == wanted, f"{one.name}: {_said(verdict)}"
        assert bool(attacked.rows[one.student]["manual"]) == wanted, one.name
        assert any(look for _, look in attacked.book[one.student].values()) == wanted, one.name


@pytest.mark.slow
def test_honest_students_get_the_same_with_and_without_attackers(attacked, peaceful):
    """Points for speed may be lost once: that is a busy moment, an attacker would cost all of them."""
    for one_class in (attacked, peaceful):
        short = []
        for one in HONEST:
            found = points(one_class.verdicts[one.name])
            short += [task for task in TASKS if found[task] != one.points()[task]]
        assert {*short} <= TIMED and len(short) <= 1


def test_nothing_lives_on_and_the_machine_is_as_it_was(attacked):
    import psutil

    running = [one.info["cmdline"] or [] for one in psutil.process_iter(["cmdline"])]
    assert not [command for command in running if attacks_on_machine.DAEMON in command]
    for place in ("owned", "large", "0"):
        assert not (Path("/tmp") / place).exists()
    assert attacked.seconds < 240 * slowness()


# --- what the students read --------------------------------------------------------------------------------


def secret_numbers() -> set[str]:
    """Return the secret inputs and their results as a page would print them; none that is public, too."""
    return numbers_of(secret.from_text(SEED, "the test")) - numbers_of(PUBLIC_SEED)


def numbers_of(seed: int) -> set[str]:
    """Return the numbers of all cases under a seed, in the forms in which pages print them."""
    found = set()
    for task in registry.tasks("01"):
        for case in task.cases(generator(task, seed)):
            for number in (*_floats(case.args), *_floats(task.reference(*case.args))):
                texts = {f"{number:.6g}", f"{number:.7g}", repr(number)}
                found |= {one for one in texts if len(one.strip("-0.")) >= 7}
    return found


def _floats(value) -> list[float]:
    if isinstance(value, float):
        return [value]
    return [one for item in value for one in _floats(item)] if isinstance(value, list | tuple) else []


def numbers_in(page: str) -> set[str]:
    return set(re.findall(r"-?\d+\.?\d*(?:e[-+]?\d+)?", html.unescape(page)))


def test_no_page_of_a_student_tells_a_secret_input(attacked):
    numbers = secret_numbers()
    assert len(numbers) > 1000
    for student, page in attacked.feedback.items():
        assert not numbers_in(page) & numbers, student
    teacher = (attacked.folder / "teacher" / NAME).glob("*.html")
    assert any(numbers_in(page.read_text("utf-8")) & numbers for page in teacher)  # they do show them


def test_no_trace_of_the_seed(attacked):
    seed = secret.from_text(SEED, "the test")
    forms = (SEED, str(seed), f"{seed:x}", secret.FILE)
    texts = {**attacked.feedback, "csv": (attacked.folder / f"{NAME}-grades.csv").read_text(encoding="utf-8")}
    for name in attacked.verdicts:
        texts[f"{name}, graded"] = (attacked.folder / "autograded" / name / NAME / f"{NAME}.ipynb").read_text(
            "utf-8"
        )
    for name, text in texts.items():
        own = name.split(",")[0].startswith("spy-")  # whose own words look for it
        assert not any(one in text for one in forms if not (own and one == secret.FILE)), name


def test_pages_run_nothing_of_a_student(attacked):
    pages = {**attacked.feedback, "summary": (attacked.folder / f"{NAME}-summary.html").read_text("utf-8")}
    pages |= {
        f"teacher {path.stem}": path.read_text("utf-8")
        for path in attacked.folder.glob(f"teacher/{NAME}/*.html")
    }
    for name, page in pages.items():
        assert "<script>alert" not in page, name
        assert "<img src=x" not in page, name
