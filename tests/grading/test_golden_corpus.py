"""Known answers get the grades they always got: see tests/golden/corpus.py. `make proof` asks all of them.

Of the frozen class of attackers `attacks/test_attack_suite.py` says the same.
"""

from contextlib import nullcontext

import pytest
from golden import corpus
from grading_tools import ASSIGNMENTS, verdict
from tools.mutation.judging import uncompiled

#: Their fault, or its words, is the compiler's.
COMPILED = {
    ("02.matmul", "fixed types"),
    ("02.matmul", "contiguous inputs only"),
    ("04.fast", "contiguous inputs only"),
    ("07.bmm", "contiguous inputs only"),
    ("07.bmm", "whole arrays at once"),
}
SLOW_ANSWER = "the baseline itself"  # right, and judged as if it were measured to be as slow as the baseline


def grade(recorded: dict, seed: int) -> list:
    from course_lib.grading import registry
    from course_lib.grading.collect import collect

    task = registry.task(recorded["task"])
    text = recorded["text"]
    if recorded["kind"] == "solution":  # a whole notebook
        text = collect([text], task.entry).text
    report = verdict(task, text, seed, 1.0 if recorded["slow"] else 100.0)
    return [report.points, report.state, report.lines[0] if report.lines else ""]


def differences(answers: list[dict], seeds: tuple[int, ...], compiled: bool = True) -> list[str]:
    """Return a line for every grade that is not the recorded one and has no written reason.

    Unless `compiled`, most answers run as Python, in which they are as wrong.
    """
    from course_lib.grading import registry

    allowed, found = corpus.changed(), []
    for one in answers:
        if (one["task"], one["name"]) in allowed:
            continue
        for seed in seeds:
            plain = not compiled and (one["task"], one["name"]) not in COMPILED
            with uncompiled(registry.task(one["task"])) if plain else nullcontext():
                now, then = grade(one, seed), one["grades"][str(seed)]
            if now != then:
                found.append(f"{one['task']} {one['name']} (seed {seed}): was {then}, is {now}")
    return found


def graded() -> list[dict]:
    return [one for one in corpus.answers() if "grades" in one]


@pytest.mark.usefixtures("tracer_compiled")
@pytest.mark.parametrize("chapter", [name for name in ASSIGNMENTS if name not in ("00", "08", "C")])  # newer
def test_typical_wrong_answers_keep_their_grades_and_the_words_that_name_their_faults(chapter):
    """Solutions are judged where their notebooks run."""
    answers = graded()
    assert len(answers) == 693 and {one["kind"] for one in answers} == {"solution", "mutant", "honest"}
    of_chapter = [one for one in answers if one["task"].startswith(chapter) and one["kind"] != "solution"]
    assert len({one["task"] for one in of_chapter}) >= 4
    quick = [one for one in of_chapter if one["name"] != SLOW_ANSWER]
    assert differences(quick, (9,), compiled=False) == []


@pytest.mark.slow
@pytest.mark.usefixtures("tracer_compiled")
def test_all_known_answers_keep_their_grades():
    assert differences(graded(), (9, 2025)) == []


def test_what_rules_refused_is_refused_and_honest_forms_are_taken():
    from course_lib.grading import registry

    allowed, found = corpus.changed(), []
    texts = [one for one in corpus.answers() if "says" in one]
    for one in texts:
        task = registry.task(one["task"])
        said = [
            words for rule in task.rules if (words := rule.judge(one["text"], one.get("entry") or task.entry))
        ]
        if task.oracle and not said and one["says"]:  # what is hidden is not there to be looked at
            said = [grade({**one, "slow": False}, 9)[2]] if not grade({**one, "slow": False}, 9)[0] else []
        if bool(said) != bool(one["says"]) and (one["task"], one["name"]) not in allowed:
            found.append(f"{one['task']} {one['kind']} {one['name']}: was {one['says']}, is {said}")
    assert len(texts) == 198
    assert found == []


def test_a_changed_grade_would_be_seen():
    first = next(one for one in graded() if one["kind"] == "solution" and one["task"] == "01.count")
    forged = {**first, "grades": {"9": [0.0, "wrong", "no"]}}
    assert len(differences([forged], (9,))) == 1
