"""The second line: what is marked for a manual look, and that honest answers hardly ever are."""

import random
import re
from pathlib import Path

import pytest
from rule_texts import ROWS
from short_course import ROOT

from course_lib.grading import registry
from course_lib.grading.classroom import assignment as assignments
from course_lib.grading.classroom.oddities import jumps, oddities
from course_lib.grading.judge import KEPT
from course_lib.grading.report import RIGHT, make_report, wrong
from course_lib.grading.runner import Timing

SHORT = "def f(n):\n    return n\n"
RARELY = 0.01  # of honest classes, at most


def marked(id: str, text: str, size: int = 40, timing: Timing | None = None) -> list[str]:
    task = registry.task(id)
    return [*oddities(task, size, text, make_report(task, task.points, RIGHT, []), timing)]


def took(speedup: float, samples=()) -> Timing:
    return Timing(speedup, speedup, speedup, 1.0, speedup, samples=samples)


def honest_texts() -> list[tuple[str, str]]:
    """Return (task, text) of the solutions, and of right answers by others."""
    path = Path(__file__).parents[1] / "answers_by_others.txt"
    rows = re.findall(r"^==== honest (\S+): .*\n((?:(?!====).*\n)+)", path.read_text("utf-8"), re.MULTILINE)
    return rows + [("01.alias", text) for kind, _, _, _, text in ROWS if kind == "fine"]


def test_honest_texts_are_hardly_ever_marked():
    loaded = [assignments.load(ROOT, name) for name in assignments.names(ROOT)]
    sizes = {item.task_id: item.size for one in loaded for item in one.items}
    texts = [(id, text) for id, text in honest_texts() if id in sizes]
    found = [(id, said) for id, text in texts if (said := marked(id, text, sizes[id]))]
    assert len(texts) > 50 and all(sizes.values())
    assert len(found) < RARELY * len(texts), found


@pytest.mark.parametrize(
    "text, says",
    [
        (SHORT + "def g(n):\n" + "    n = n * 3 + 1\n" * 100, "times as large as the solution"),
        (f"TABLE = {'x' * 300!r}\n" + SHORT, "unusually long"),
        (f"def f(n):\n    return {3**200} >> n\n", "unusually long"),
    ],
)
def test_texts_unlike_any_known_one_are_marked(text, says):
    assert [says in said for said in marked("01.count", text)] == [True]


def test_what_is_much_faster_than_any_known_answer_is_marked():
    for id, solution, odd in (("01.faster", 2.4, 190.0), ("02.fast", 60.0, 400.0), ("04.fast", 2.4, 15.0)):
        assert not marked(id, SHORT, timing=took(solution))
        assert "as fast as the baseline" in marked(id, SHORT, timing=took(odd))[0]


def test_wrong_results_of_timed_calls_are_marked_without_points():
    task = registry.task("01.faster")
    assert "guess which ones count" in next(oddities(task, 40, SHORT, wrong(task, [KEPT]), None))
    assert not [*oddities(task, 1, SHORT * 500, wrong(task, ["Wrong."]), None)]


def samples(own, base=lambda n: 1.0, rounds: int = 20) -> list[tuple[float, float]]:
    chance = random.Random(3)
    return [(own(n) * chance.uniform(1, 1.3), base(n) * chance.uniform(1, 1.3)) for n in range(rounds)]


def test_a_time_that_jumps_is_marked_and_a_busy_machine_is_not():
    for own in (lambda n: 0.1 if n % 4 == 0 else 1.0, lambda n: 5.0 if n > 15 else 0.1):
        assert jumps(samples(own))
        assert not jumps(samples(own, own))
    assert not jumps(samples(lambda n: 1.0)) and not jumps(samples(lambda n: 9.0 if n == 7 else 1.0))
    assert "jumps" in marked("01.faster", SHORT, timing=took(2.0, samples(lambda n: 1 + 9 * (n % 2))))[0]
