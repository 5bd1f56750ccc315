"""What a class costs: little more than its answers' processes, in flat memory."""

import json
import os
import time
from dataclasses import replace
from statistics import median

import psutil
import pytest
from short_course import NAME, RIGHT, make_class, make_course, make_whole_class

from course_lib.grading.classroom import run, verdict
from course_lib.grading.classroom.run import GradingOrder, grade
from course_lib.grading.sandbox.bubblewrap import Sandbox

pytestmark = [pytest.mark.slow, pytest.mark.needs("bubblewrap")]
STUDENTS = 200


class Watch:
    """Notes time and memory of the grader and its workers, answers not counted, as verdicts come in."""

    def __init__(self) -> None:
        self.memory_mb: list[float] = []
        self.start = time.perf_counter()
        self.last = 0.0

    def __call__(self, done: int, total: int) -> None:
        self.last = time.perf_counter() - self.start
        own = psutil.Process()
        grader = [own, *(one for one in own.children() if "python" in one.name())]
        self.memory_mb.append(sum(one.memory_info().rss for one in grader) / 2**20)


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """A class of STUDENTS: (what was done, what was noted, its folder)."""
    course = make_course(tmp_path_factory.mktemp("course"))
    place = tmp_path_factory.mktemp("class")
    submissions = make_class(course, place / "submissions", STUDENTS)
    watch = Watch()
    done = grade(GradingOrder(submissions, place / "class", course), watch)
    assert done.judged == STUDENTS
    return done, watch, place / "class"


@pytest.mark.timing
def test_a_class_costs_little_more_than_its_answers(graded):
    done, _, folder = graded
    verdicts = [json.loads(path.read_text()) for path in (folder / "verdicts").rglob("*.json")]
    ideal = sum(task["seconds"]["kernel"] for one in verdicts for task in one["tasks"]) / run.hardware.cores()
    print(f"{STUDENTS} students: {done.seconds:.1f} s, answers alone {ideal:.1f} s")
    assert done.seconds <= 1.25 * ideal


def test_memory_is_flat(graded):
    _, watch, _ = graded
    early, late = median(watch.memory_mb[20:50]), median(watch.memory_mb[-30:])
    print(f"memory of grader and workers: {early:.0f} MB after 20 students, {late:.0f} MB after 170")
    assert late <= early + 30


@pytest.mark.timing
def test_the_sandbox_costs_less_than_a_tenth(tmp_path_factory):
    """One submission, judged in turns with and without a sandbox."""
    course = make_course(tmp_path_factory.mktemp("course"))
    submissions = make_class(course, tmp_path_factory.mktemp("class"), 1)
    order = GradingOrder(submissions, tmp_path_factory.mktemp("graded"), course)
    assignment = run._assignment(order)
    (job,) = run._Run(order, assignment, order.sandbox(), 7)._jobs(run.intake.receive(submissions, NAME))
    seconds: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(25):
        for unsafe in (False, True):
            start = time.perf_counter()
            found = verdict.judged(replace(job, sandbox=Sandbox(unsafe=unsafe)))
            seconds[unsafe].append(time.perf_counter() - start)
            assert sum(task["points"] for task in found["tasks"]) == len(RIGHT)
    cost = median(seconds[False]) / median(seconds[True]) - 1
    print(
        f"with a sandbox {median(seconds[False]):.3f} s, without {median(seconds[True]):.3f} s: {cost:+.1%}"
    )
    assert cost < 0.10


@pytest.mark.timing
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="two workers need two cores")
def test_two_workers_of_a_cluster_are_nearly_twice_as_fast_as_one(tmp_path_factory):
    from distributed import LocalCluster

    submissions = make_whole_class(tmp_path_factory.mktemp("class"), 28)
    some = make_whole_class(tmp_path_factory.mktemp("some"), 4)
    rates = []
    for workers in (1, 2):
        with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster:
            folder, scheduler = tmp_path_factory.mktemp("graded"), cluster.scheduler_address
            grade(GradingOrder(some, folder, scheduler=scheduler))  # each worker has imported what it needs
            watch = Watch()
            assert grade(GradingOrder(submissions, folder, scheduler=scheduler), watch).judged == 24
            rates.append(24 / watch.last)
    one, two = rates
    print(f"students a second: {one:.2f} by one worker, {two:.2f} by two: {two / one:.2f}x")
    assert two >= 1.7 * one
