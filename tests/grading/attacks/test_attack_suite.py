"""Hostile and broken submissions, graded in one class with honest students between them.

None of them may gain a point that it did not earn, lose one that it did, change another student's grade, see
what is secret, or stop the run. They are the frozen class of tests/golden, which keeps its grades; tricks
that are a text and nothing else are in tricks.txt.
"""

from __future__ import annotations

import csv
import functools
import html
import json
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from grading_tools import ASSIGNMENTS, ROOT
from pace import slowness

from course_lib.grading import registry
from course_lib.grading.check import PUBLIC_SEED
from course_lib.grading.classroom import secret
from course_lib.grading.classroom.run import GradingOrder, grade
from course_lib.grading.judge import generator
from course_lib.grading.sandbox.bubblewrap import AnswerLimits, Sandbox

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "golden"))

import corpus

pytestmark = pytest.mark.needs("bubblewrap")
NAME = ASSIGNMENTS["01"]
TASKS = tuple(task.id[3:] for task in registry.tasks("01"))
LIMITS = AnswerLimits(call_s=1, task_s=15, memory_mb=600, disk_mb=16, processes=16)
SEEDS = ("words that nobody may know 7391", "other words 42")
DAEMON = "86399"  # marks what must not live on after the class is graded
HONEST = ("honest-a", "honest-m", "honest-z")
#: One attacker of each kind is in every run of the tests; all of them are among the long proofs.
OF_EACH_KIND = (
    *("truncated", "zip-slip", "metadata-stripped", "a-thousand-points", "patched-builtins", "text-bomb-sum"),
    *("noise", "loop", "fork-bomb", "much-memory", "daemon", "told-inputs"),
    *("blas-builtins", "memory-default", "rounded", "nan"),
    *HONEST,
)


@dataclass(frozen=True)
class Class:
    """A graded class: its seed and folder, how long it took, and its verdicts by student."""

    seed: str
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

        names = {f"01-{task.replace('_', '-')}-points": f"01.{task}" for task in TASKS}
        with Gradebook(f"sqlite:///{(self.folder / 'gradebook.db').as_posix()}") as book:
            return {
                one.student.id: {
                    names[mark.name]: (mark.auto_score, mark.needs_manual_grade) for mark in one.grades
                }
                for one in book.notebook_submissions(NAME, NAME)
            }


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((SEEDS[0], OF_EACH_KIND), id="one of each kind"),
        *(pytest.param((seed, ()), id=seed, marks=pytest.mark.slow) for seed in SEEDS),
    ],
)
def attacked(tmp_path_factory, request) -> Class:
    """Attackers and the honest students between them, handed in and graded as one class."""
    Sandbox().check()  # without bubblewrap: NoSandbox says what to install
    seed, students = request.param
    folder = tmp_path_factory.mktemp("attacked")
    source, target = corpus.hand_in(folder, students), folder / "grades"
    target.mkdir()
    (target / secret.FILE).write_text(seed, encoding="utf-8")
    start = time.perf_counter()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(secret.VARIABLE, raising=False)
        grade(GradingOrder(source, target, ROOT, NAME, limits=LIMITS))
    seconds = time.perf_counter() - start
    found = [json.loads(path.read_text("utf-8")) for path in (target / "verdicts" / NAME).glob("*.json")]
    wanted = {*(students or corpus.graded_class()[seed])}
    assert {one["student"] for one in found} == wanted and len(wanted) >= len(OF_EACH_KIND)
    return Class(seed, target, seconds, {one["student"]: one for one in found})


# --- every grade -------------------------------------------------------------------------------------------


def as_recorded(verdict: dict, then: dict) -> bool:
    """Whether a frozen submission got its grade; points for speed may be lost to a busy moment.

    Tasks that came later are in none of the notebooks, and give nobody a point.
    """
    return bool(verdict["manual"]) == then["manual"] and all(
        _alike(now_of(task), then["tasks"].get(task["id"], [0.0, task["state"], "", False]), task["id"])
        for task in verdict["tasks"]
    )


def now_of(task: dict) -> list:
    return [task["points"], task["state"], bool(task["manual"])]


def _alike(now: list, then: list, id: str) -> bool:
    then = [*then[:2], then[3]]  # what is said of a wrong one may be something else by now
    measured = {now[1], then[1]} <= {"right", "partly"} and now[2] == then[2]
    return now == then or (measured and registry.task(id).points_for_being_right <= now[0] <= then[0])


def is_flagged(verdict: dict) -> bool:
    return bool(verdict["manual"]) or any(task["manual"] for task in verdict["tasks"])


def test_everybody_gets_the_grade_that_was_earned_and_nobody_else_one(attacked):
    recorded, allowed = corpus.graded_class()[attacked.seed], corpus.changed()
    assert set(attacked.verdicts) == set(attacked.rows) == set(attacked.book)
    other = {}
    for name, verdict in attacked.verdicts.items():
        given = {task["id"]: task["points"] for task in verdict["tasks"]}
        if ("class", name) not in allowed and not as_recorded(verdict, recorded[name]):
            other[name] = [*map(now_of, verdict["tasks"]), verdict["manual"]]
        row = attacked.rows[name]
        assert {id: float(row[id]) for id in given} == given, name
        assert float(row["points"]) == sum(given.values()), name
        assert {task: score for task, (score, _) in attacked.book[name].items()} == given, name
        looks = any(look for _, look in attacked.book[name].values())
        assert bool(row["manual"]) == looks == is_flagged(verdict), name
    assert not other, "\n".join(f"{name}: {said}" for name, said in other.items())


@pytest.mark.slow
def test_honest_students_get_the_same_as_without_attackers(attacked):
    """Points for speed may be lost once: that is a busy moment, an attacker would cost all of them."""
    recorded = corpus.graded_class()[attacked.seed]
    tasks = [(name, task) for name in HONEST for task in attacked.verdicts[name]["tasks"]]
    then = [recorded[name]["tasks"].get(task["id"]) for name, task in tasks]
    lost = [one for one, was in zip(tasks, then, strict=True) if was and now_of(one[1])[:2] != was[:2]]
    assert len(lost) <= 1, lost


def test_nothing_lives_on_and_the_machine_is_as_it_was(attacked):
    import psutil

    running = [one.info["cmdline"] or [] for one in psutil.process_iter(["cmdline"])]
    assert not [command for command in running if DAEMON in command]
    for place in ("owned", "large", "0"):
        assert not (Path("/tmp") / place).exists()
    assert attacked.seconds < 4 * len(attacked.verdicts) * slowness()


# --- what the students read --------------------------------------------------------------------------------


def numbers_of(seed: int) -> set[str]:
    """Return the inputs and results of all cases under a seed, in the forms in which pages print them."""
    found = set()
    for task in registry.tasks("01"):
        for case in task.cases(generator(task, seed)):
            for number in (*_floats(case.args), *_floats(task.reference(*case.args))):
                texts = {f"{number:.6g}", f"{number:.7g}", repr(number)}
                found |= {one for one in texts if len(one.strip("-0.")) >= 6}
    return found


def _floats(value) -> list[float]:
    if isinstance(value, float):
        return [value]
    return [one for item in value for one in _floats(item)] if isinstance(value, list | tuple) else []


def numbers_in(page: str) -> set[str]:
    return set(re.findall(r"-?\d+\.?\d*(?:e[-+]?\d+)?", html.unescape(page)))


def test_no_page_of_a_student_tells_a_secret_input(attacked):
    numbers = numbers_of(secret.from_text(attacked.seed, "the test")) - numbers_of(PUBLIC_SEED)
    assert len(numbers) > 1000
    for student, page in attacked.feedback.items():
        assert not numbers_in(page) & numbers, student
    teacher = (attacked.folder / "teacher" / NAME).glob("*.html")
    assert any(numbers_in(page.read_text("utf-8")) & numbers for page in teacher)  # they do show them


def test_no_trace_of_the_seed(attacked):
    seed = secret.from_text(attacked.seed, "the test")
    forms = (attacked.seed, str(seed), f"{seed:x}", secret.FILE)
    texts = {**attacked.feedback, "csv": (attacked.folder / f"{NAME}-grades.csv").read_text(encoding="utf-8")}
    for name in attacked.verdicts:
        graded = attacked.folder / "autograded" / name / NAME / f"{NAME}.ipynb"
        texts[f"{name}, graded"] = graded.read_text("utf-8")
    for name, text in texts.items():
        own = name.split(",")[0].startswith("spy-")  # whose own words look for it
        assert not any(one in text for one in forms if not (own and one == secret.FILE)), name
