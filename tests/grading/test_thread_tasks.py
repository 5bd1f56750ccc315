"""Tasks of chapter 05: judged under every schedule, other right answers accepted, references proved."""

import ast
import json
from itertools import pairwise
from pathlib import Path

import pytest
from wrong_answers import wrong_answer

from course_lib.grading import registry, rules_threads
from course_lib.grading.judge import generator, judge
from course_lib.grading.rules_threads import AtOnce, Scenario, UnderAllSchedules
from course_lib.grading.runner import InProcess
from course_lib.grading.sources import load
from course_lib.grading.task import source
from course_lib.grading.tasks import threads as declared
from course_lib.measure.scheduling import best_makespan, plan
from course_lib.simulators import coherence
from course_lib.simulators.interleavings import Lock

ROOT = Path(__file__).resolve().parents[2]
SOLUTION = ROOT / "solutions" / "05_threads" / "05_threads.ipynb"
SEEDS = (0, 7, 12345)


BANDS, RACE, TRANSFER, POOL = declared.BANDS, declared.RACE, declared.TRANSFER, declared.POOL
INVALIDATIONS, BALANCE, AMDAHL = declared.INVALIDATIONS, declared.BALANCE, declared.AMDAHL


def on_locks(answer: str) -> str:
    """Return the answer below the helpers that are handed out."""
    return f"{declared.LOCKS}\n\n{source(answer)}"


def verdict(task, text: str, seed: int = 9):
    return judge(task, InProcess(load(text, task.entry)), text, seed)


def counting(answer: str, expected: int = 2) -> str | None:
    """Judge `count(total)`, run by two threads, each of which must add 1 and return 0."""
    scenario = Scenario(
        "two threads",
        ("{entry}(total)",) * 2,
        {"total": [0], "locks": {"total": Lock()}, "slots": {"-": 0}},
        lambda final: final["total"] == [expected],
        declared.CHECKED_LOCKS,
    )
    return UnderAllSchedules((scenario,), declared.LOCKS).judge(answer, "count")


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


def test_a_wrong_value_without_a_race_is_found():
    assert "In some schedule" in counting(LOCKED, expected=3)


def test_an_answer_that_returns_nothing_is_left_to_running_it():
    assert counting("def count(total):\n    total[0] += 1\n") is None


def test_sentences_quote_code_where_the_checker_has_lines_of_its_own_text():
    said = counting(LOCKED.replace("total[0] += 1", "total.append(1)"))
    assert "cannot be checked" in said and "`total.append(1)`" in said
    assert "line" not in said.lower()


def test_the_given_helpers_must_stay_as_they_are():
    for answer in (
        LOCKED.replace("threading.Lock()", "threading.RLock()"),
        LOCKED + "\n\ndef lock_of(name):\n    return threading.Lock()\n",
        LOCKED + "\n\nlock_of = print\n",
        LOCKED + "\n\nfrom threading import Lock as lock_of\n",
    ):
        assert "changes lock_of, which is given" in counting(answer), answer
    assert "decorator" in counting(LOCKED.replace("def count", "@staticmethod\ndef count"))


def test_helpers_of_the_answer_are_read_and_what_it_does_not_call_is_not():
    helped = LOCKED.replace("total[0] += 1", "add(total)") + "\n\ndef add(where):\n    where[0] += 1\n"
    assert counting(helped) is None
    unrelated = "\n\ndef total(rows):\n    return [row for row in rows]\n"  # named like a parameter
    assert counting(LOCKED + unrelated) is None


def test_an_unfinished_search_is_said_and_gives_no_points(monkeypatch):
    monkeypatch.setattr(rules_threads, "MOST_STATES", 3)
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
    return UnderAllSchedules((scenario,), declared.LOCKS).judge(answer, "count")


def test_threads_that_work_under_one_lock_are_told_which_one():
    serial = LOCKED.replace("total)", "total, own)").replace("total[0]", "total[own]")
    said = together(serial)
    assert said.startswith("With threads that must meet: thread ")
    assert 'adds 1 and holds lock_of("total") meanwhile, for which thread' in said
    assert together(serial.replace('with lock_of("total"):', "if True:")) is None


def test_threads_that_never_meet_are_found_without_a_lock_as_well():
    said = together("def count(total, own):\n    total[own] += 1\n    return 0\n", threads=1)
    assert "under no schedule is there a second thread that adds 1" in said


SERIAL = on_locks("""
    def repaired(tiles, following, done):
        mine = 0
        with lock_of("following"):
            while following[0] < tiles:
                tile = following[0]
                following[0] += 1
                done[tile] += 1
                mine += 1
        return mine
""")


def test_a_serial_answer_to_the_race_gets_no_points():
    report = verdict(RACE, SERIAL)
    assert report.points == 0
    assert "must be able to work at the same time" in str(report)
    assert "does its tile (`done[tile] += 1`) and holds lock_of" in str(report)


def test_a_mutex_held_in_use_is_said_in_the_students_words(solution_text):
    inside = solution_text.replace("    use(", "        use(")
    report = verdict(POOL, inside)
    assert 'is inside `use` and holds lock_of("busy") meanwhile' in str(report)
    assert "here[" not in str(report) and "locks[" not in str(report)


def test_a_transfer_to_oneself_must_not_be_parted():
    parted = on_locks("""
        def transfer(giver, taker, amount, balance):
            with lock_of(giver):
                if balance[giver] < amount:
                    return 0
                balance[giver] -= amount
            with lock_of(taker):
                balance[taker] += amount
            return amount
    """)
    report = verdict(TRANSFER, parted)
    assert report.points == 0
    assert "the balances end as (10, 20) instead of (5, 25)" in str(report)


def test_a_lock_that_is_not_there_is_called_as_the_student_calls_it(solution_text):
    assert "min(giver, taker)" in solution_text
    said = str(verdict(TRANSFER, solution_text.replace("min(giver, taker)", "'bank'")))
    assert (
        'asks for lock_of("bank"), but there is no such lock: only lock_of(0) and lock_of(1) are there.'
        in said
    )
    assert "locks[" not in said and "shared dict" not in said


# --- other right answers ------------------------------------------------------------------------------------

OTHERS = {
    "acquire and release": (
        TRANSFER,
        """
        def transfer(giver, taker, amount, balance):
            first, second = lock_of(min(giver, taker)), lock_of(max(giver, taker))
            first.acquire()
            if giver != taker:
                second.acquire()
            moved = amount if balance[giver] >= amount else 0
            balance[giver] -= moved
            balance[taker] += moved
            if giver != taker:
                second.release()
            first.release()
            return moved
        """,
    ),
    "a helper takes the next": (
        RACE,
        """
        def take(following):
            with lock_of("following"):
                following[0] += 1
                return following[0] - 1

        def repaired(tiles, following, done):
            mine = 0
            tile = take(following)
            while tile < tiles:
                done[tile] += 1
                mine = mine + 1
                tile = take(following)
            return mine
        """,
    ),
    "the last free buffer": (
        POOL,
        """
        def borrow(busy, uses):
            slots_of("free").acquire()
            with lock_of("busy"):
                for buffer in range(len(busy)):
                    if not busy[buffer]:
                        mine = buffer
                busy[mine] = 1
            use(mine, uses)
            with lock_of("busy"):
                busy[mine] = 0
            slots_of("free").release()
            return mine
        """,
    ),
}


def test_other_right_answers_get_all_points():
    for name, (task, answer) in OTHERS.items():
        report = verdict(task, on_locks(answer))
        assert report.passed, f"{name}\n{report}"


def test_the_search_of_each_solution_is_far_from_its_limits(solution_text, monkeypatch):
    monkeypatch.setattr(rules_threads, "MOST_STATES", 5_000)
    for task in (RACE, TRANSFER, POOL):
        assert verdict(task, solution_text).passed


# --- comparisons and references -----------------------------------------------------------------------------


def test_any_even_bands_are_accepted():
    def larger_first(rows, threads):
        small, larger = divmod(rows, threads)
        edges = [t * small + min(t, larger) for t in range(threads + 1)]
        return [list(pair) for pair in pairwise(edges)]

    for rows, threads in ((10, 4), (11, 4), (3, 5), (0, 2), (1000, 7)):
        args = (rows, threads)
        got, want = larger_first(*args), declared.bands(*args)
        assert declared.EvenBands().compare(got, want, args) is None
    assert declared.EvenBands().compare([[0, 5], [5, 8]], declared.bands(8, 2), (8, 2)) is not None


def test_any_distribution_within_ten_percent_is_accepted():
    compare = declared.WithinTenPercent().compare
    costs = [10.0, 10.0, 1.0]
    assert compare([0, 1, 1], [0, 0, 0], (costs, 2)) is None
    assert compare([1, 0, 1], [0, 0, 0], (costs, 2)) is None
    found = compare([0, 0, 1], [0, 0, 0], (costs, 2))
    assert "82 % after the best that is possible, 11" in found.says[0]
    assert compare([0, 1], [0, 0, 0], (costs, 2)).form
    assert "no thread 2" in compare([0, 1, 2], [0, 0, 0], (costs, 2)).says[0]


def test_bands_may_be_tuples_as_in_the_chapter():
    args = (10, 4)
    pairs = [tuple(pair) for pair in declared.bands(*args)]
    compare = declared.EvenBands().compare
    assert compare(pairs, declared.bands(*args), args) is None
    assert "The last band stops at 9" in compare([*pairs[:-1], (7, 9)], declared.bands(*args), args).says[0]
    assert compare(tuple(pairs), declared.bands(*args), args).form


def test_a_known_slip_is_named_first():
    for id, name, says in (
        ("05.invalidations", "the writer loses it too", "only the other cores lose theirs"),
        ("05.amdahl", "rounded", "right to 2 digits after the point: do you round?"),
    ):
        assert says in verdict(registry.task(id), wrong_answer(id, name).source).lines[0]


def test_blind_policies_fail_on_some_input_and_longest_first_on_none():
    for seed in SEEDS:
        failed = set()
        for case in BALANCE.cases(generator(BALANCE, seed)):
            costs, threads = case.args
            best, _ = best_makespan(costs, threads)
            for policy in ("static", "cyclic", "dynamic", "guided", "longest"):
                if plan(costs, threads, policy).makespan > declared.MOST_OVER * best:
                    failed.add(policy)
        assert failed == {"static", "cyclic", "dynamic", "guided"}, seed


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


@pytest.fixture(scope="module")
def solution_text(cells) -> str:
    return "\n\n\n".join(text for id, text in cells.items() if id == "setup" or id.endswith("-answer"))


def test_the_assignment_hands_out_the_declared_helpers_and_the_declared_bug(cells):
    given = {one.name: ast.dump(one) for one in ast.parse(declared.LOCKS).body if hasattr(one, "name")}
    handed = {one.name: ast.dump(one) for one in ast.parse(cells["setup"]).body if hasattr(one, "name")}
    assert handed == given
    broken = cells["05-race-given"].replace("def broken", "def repaired")
    assert verdict(RACE, f"{declared.LOCKS}\n\n{broken}").points == 0


def test_what_the_checker_reads_for_the_helpers_has_their_names_and_parameters():
    read = {one.name: len(one.args.args) for one in ast.parse(declared.CHECKED_LOCKS).body}
    assert set(read) == {"lock_of", "slots_of", "use"}
