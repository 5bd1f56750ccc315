"""Tasks of chapter 05: judged under every schedule, other right answers accepted, references proved."""

import ast
import json
from pathlib import Path

import pytest
from grading_tools import verdict

from course_lib.grading import rules
from course_lib.grading.judge import generator
from course_lib.grading.rules import AtOnce, Scenario, UnderAllSchedules
from course_lib.grading.task import source
from course_lib.grading.tasks import threads as declared
from course_lib.simulators import coherence
from course_lib.simulators.interleavings import Lock

ROOT = Path(__file__).resolve().parents[2]
SOLUTION = ROOT / "solutions" / "05_threads" / "05_threads.ipynb"
SEEDS = (0, 7, 12345)


RACE, POOL = declared.RACE, declared.POOL
INVALIDATIONS = declared.INVALIDATIONS


def on_locks(answer: str) -> str:
    """Return the answer below the helpers that are handed out."""
    return f"{declared.LOCKS}\n\n{source(answer)}"


def counting(answer: str, expected: int = 2) -> str | None:
    """Judge `count(total)`, run by two threads, each of which must add 1 and return 0."""
    scenario = Scenario(
        "two threads",
        ("{entry}(total)",) * 2,
        {"total": [0], "locks": {"total": Lock()}, "slots": {"-": 0}},
        lambda final: final["total"] == [expected],
        declared.CHECKED_LOCKS,
    )
    return declared.THREADS.judge(answer, "count") or UnderAllSchedules((scenario,)).judge(answer, "count")


LOCKED = on_locks("""
    def count(total):
        with lock_of("total"):
            total[0] += 1
        return 0
""")


# --- the rule -----------------------------------------------------------------------------------------------


def test_a_locked_counter_is_right_and_an_unlocked_one_is_not():
    assert counting(LOCKED) is None
    said = counting(LOCKED.replace('with lock_of("total"):', "if True:"))
    assert "With two threads: " in said
    assert "A schedule that leads there: thread 0 reads total[0]: 0; thread 1 reads total[0]: 0" in said
    assert said.endswith(".")


def test_the_given_helpers_must_stay_as_they_are():
    for answer in (
        LOCKED.replace("threading.Lock()", "threading.RLock()"),
        LOCKED + "\n\ndef lock_of(name):\n    return threading.Lock()\n",
        LOCKED + "\n\nfrom threading import Lock as lock_of\n",
    ):
        assert "changes lock_of, which is given" in counting(answer), answer
    assert "uses staticmethod" in counting(LOCKED.replace("def count", "@staticmethod\ndef count"))


def test_an_unfinished_search_is_said_and_gives_no_points(monkeypatch):
    monkeypatch.setattr(rules, "MOST_STATES", 3)
    said = counting(LOCKED)
    assert "Not every schedule was checked" in said and "smaller" in said


def test_an_endless_answer_ends_the_search_not_the_grader():
    said = counting(LOCKED.replace("    return 0", "    while True:\n        total[0] += 1\n    return 0"))
    assert said is not None


# --- working at the same time ---


def together(answer: str, threads: int = 2) -> str | None:
    """Judge `count(total)` with a place of its own for each thread, which all must reach at once."""
    scenario = Scenario(
        "threads that must meet",
        tuple(f"{{entry}}(total, {own})" for own in range(threads)),
        {"total": [0, 0], "locks": {"total": Lock()}, "slots": {"-": 0}},
        lambda final: True,
        declared.CHECKED_LOCKS,
        AtOnce("total", "adds 1"),
    )
    return UnderAllSchedules((scenario,)).judge(answer, "count")


def test_threads_that_work_under_one_lock_are_told_which_one():
    serial = LOCKED.replace("total)", "total, own)").replace("total[0]", "total[own]")
    said = together(serial)
    assert said.startswith("With threads that must meet: thread ")
    assert 'adds 1 and holds lock_of("total") meanwhile, for which thread' in said
    assert together(serial.replace('with lock_of("total"):', "if True:")) is None


# --- comparisons and references -----------------------------------------------------------------------------


def test_a_log_without_an_entry_or_with_one_too_many_is_told_what_it_leads_to():
    compare, deaf = declared.NothingLeft().compare, ([(9, 9, 1, 1)], 5, 2)
    right = declared.parent(*deaf)
    assert compare(right, right, deaf) is None and [what for _, what, _ in right] == [*declared.MISSING]
    for n, (what, says) in enumerate(declared.MISSING.items()):
        (said,) = compare(right[:n] + right[n + 1 :], right, deaf).says
        assert says in said and f"no “{what}”" in said
        (said,) = compare([*right, (7, what, 1)], right, deaf).says
        assert declared.NEEDLESS[what] in said
    assert "comes after" in compare([right[0], right[2], right[1], *right[3:]], right, deaf).says[0]


def test_any_distribution_within_ten_percent_is_accepted():
    compare = declared.WithinTenPercent().compare
    costs = [10.0, 10.0, 1.0]
    assert compare([0, 1, 1], [0, 0, 0], (costs, 2)) is None
    assert compare([1, 0, 1], [0, 0, 0], (costs, 2)) is None
    found = compare([0, 0, 1], [0, 0, 0], (costs, 2))
    assert "82 % after the best that is possible, 11" in found.says[0]
    assert compare([0, 1], [0, 0, 0], (costs, 2)).form
    assert "no thread 2" in compare([0, 1, 2], [0, 0, 0], (costs, 2)).says[0]


def test_the_reference_counts_what_the_coherence_simulator_counts():
    for seed in SEEDS:
        some = 0
        for case in INVALIDATIONS.cases(generator(INVALIDATIONS, seed)):
            events, line_bytes = case.args
            simulated = coherence.simulate(events, None, line_bytes).invalidations
            assert declared.invalidations(events, line_bytes) == simulated, case.label
            some += simulated
        assert some > 1000


# --- the assignment -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cells() -> dict[str, str]:
    notebook = json.loads(SOLUTION.read_text(encoding="utf-8"))
    return {cell["id"]: "".join(cell["source"]) for cell in notebook["cells"]}


def test_the_assignment_hands_out_the_declared_helpers_and_the_declared_bug(cells):
    given = {one.name: ast.dump(one) for one in ast.parse(declared.LOCKS).body if hasattr(one, "name")}
    handed = {one.name: ast.dump(one) for one in ast.parse(cells["setup"]).body if hasattr(one, "name")}
    assert handed == given
    broken = cells["05-race-given"].replace("def broken", "def repaired")
    assert verdict(RACE, f"{declared.LOCKS}\n\n{broken}").points == 0
