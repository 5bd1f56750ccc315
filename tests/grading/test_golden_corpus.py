"""Known answers get the grades they always got: see tests/golden/corpus.py. `make proof` asks all of them."""

import json
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))
sys.path.append(str(Path(__file__).resolve().parent / "attacks"))

import corpus

MEGABYTES = re.compile(r"used \d+ MB")  # measured when the answer was stopped
EACH = 25  # in every run: each so-many-th answer
SLOW_ANSWER = "the baseline itself"  # right, and judged as if it were measured to be as slow as the baseline


def grade(recorded: dict, seed: int) -> list:
    """Judge an answer in this process, with a clock that always says the same."""
    from course_lib.grading import registry
    from course_lib.grading.judge import judge
    from course_lib.grading.runner import InProcess, Timing
    from course_lib.grading.sources import load

    class Timeless(InProcess):
        def time(self, speed, args):
            speedup = 1.0 if recorded["slow"] else 100.0
            return Timing(speedup, speedup * 0.97, speedup * 1.03, 1e-3, 1e-3 * speedup)

    task = registry.task(recorded["task"])
    runner = Timeless(load(recorded["text"], task.entry), 60.0)
    report = judge(task, runner, recorded["text"], seed)
    return [report.points, report.state, report.lines[0] if report.lines else ""]


def differences(answers: list[dict], seeds: tuple[int, ...]) -> list[str]:
    """Return a line for every grade that is not the recorded one and has no written reason."""
    allowed, found = corpus.changed(), []
    for one in answers:
        if (one["task"], one["name"]) in allowed:
            continue
        for seed in seeds:
            now, then = grade(one, seed), one["grades"][str(seed)]
            if now != then:
                found.append(f"{one['task']} {one['name']} (seed {seed}): was {then}, is {now}")
    return found


def graded() -> list[dict]:
    return [one for one in corpus.answers() if "grades" in one]


@pytest.mark.usefixtures("tracer_compiled")
def test_known_answers_keep_their_grades():
    answers = graded()
    assert len(answers) == 794 and {one["kind"] for one in answers} == {"solution", "mutant", "honest"}
    assert differences(answers[::EACH], (9,)) == []


@pytest.mark.slow
@pytest.mark.usefixtures("tracer_compiled")
def test_all_known_answers_keep_their_grades():
    assert differences(graded(), (9, 2025)) == []


def test_rules_say_what_they_said():
    from course_lib.grading import registry

    allowed, found = corpus.changed(), []
    texts = [one for one in corpus.answers() if "says" in one]
    for one in texts:
        task = registry.task(one["task"])
        said = [
            words for rule in task.rules if (words := rule.judge(one["text"], one.get("entry") or task.entry))
        ]
        if said != one["says"] and (one["task"], one["name"]) not in allowed:
            found.append(f"{one['task']} {one['kind']} {one['name']}: was {one['says']}, is {said}")
    assert len(texts) == 198
    assert found == []


def test_a_changed_grade_would_be_seen():
    first = next(one for one in graded() if one["kind"] == "solution" and one["task"] == "01.count")
    forged = {**first, "grades": {"9": [0.0, "wrong", "no"]}}
    assert len(differences([forged], (9,))) == 1


@pytest.mark.slow
@pytest.mark.needs("bubblewrap")
def test_the_attacked_class_keeps_its_grades(tmp_path):
    """Points for speed are measured: of them only whether the answer was right is compared."""
    allowed = corpus.changed()
    for seed, students in corpus.graded_class().items():
        found = graded_anew(tmp_path / seed.replace(" ", "-"), seed)
        assert set(found) == set(students)
        wrong = []
        for student, then in students.items():
            now = found[student]
            same = now["manual"] == then["manual"] and all(
                _alike(now["tasks"][task], grade) for task, grade in then["tasks"].items()
            )
            if not same and ("class", student) not in allowed:
                wrong.append(f"{student}: was {then}, is {now}")
        assert wrong == [], seed


def graded_anew(folder: Path, seed: str) -> dict[str, dict]:
    """Grade the frozen class with the limits that it was graded with; return what class.json has of it."""
    from attack_tools import NAME
    from test_attack_suite import LIMITS

    from course_lib.grading.classroom import secret
    from course_lib.grading.classroom.run import GradingOrder, grade

    target = folder / "grades"
    target.mkdir(parents=True)
    (target / secret.FILE).write_text(seed, encoding="utf-8")
    grade(GradingOrder(corpus.hand_in(folder), target, assignment=NAME, limits=LIMITS))
    verdicts = [json.loads(path.read_text("utf-8")) for path in (target / "verdicts" / NAME).glob("*.json")]
    return {
        verdict["student"]: {
            "manual": bool(verdict["manual"]),
            "tasks": {
                task["id"]: [
                    task["points"],
                    task["state"],
                    (task["teacher"]["lines"] or [""])[0],
                    bool(task["manual"]),
                ]
                for task in verdict["tasks"]
            },
        }
        for verdict in verdicts
    }


def _alike(now: list, then: list) -> bool:
    measured = {"right", "partly"}
    now, then = ([*grade[:2], MEGABYTES.sub("used … MB", grade[2]), grade[3]] for grade in (now, then))
    return now == then or ({now[1], then[1]} <= measured and now[3] == then[3])
