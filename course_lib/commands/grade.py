"""`python -m course_lib grade SUBMISSIONS`: grade a class, from a platform's download to the pages."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument(
        "submissions",
        type=_path,
        nargs="?",
        metavar="SUBMISSIONS",
        help="a folder or zip as Moodle, Canvas or nbgrader give it (the class folder's submitted/)",
    )
    parser.add_argument("--assignment", metavar="NAME", help="such as 01_python_loops")
    parser.add_argument(
        "--class-folder",
        type=Path,
        default=ROOT / "grading",
        metavar="DIR",
        help="seed, grades and pages go here",
    )
    parser.add_argument(
        "--root", type=Path, default=ROOT, metavar="DIR", help="the folder that holds solutions/"
    )
    parser.add_argument(
        "--workers", type=int, default=0, metavar="N", help="submissions at a time (one for each core)"
    )
    parser.add_argument(
        "--scheduler", metavar="ADDRESS", help="grade on the Dask cluster with this scheduler"
    )
    parser.add_argument(
        "--unsafe-no-sandbox",
        action="store_true",
        help="run the answers with all of your own rights: only for answers that you trust",
    )


def _path(text: str) -> Path:
    return Path(text).expanduser()  # make passes ~ on as it stands


def run(args: argparse.Namespace) -> int:
    """Grade, say where everything is, and return the exit code."""
    from tqdm import tqdm

    from course_lib.grading.classroom.assignment import AssignmentError
    from course_lib.grading.classroom.gradebook import BookLocked
    from course_lib.grading.classroom.intake import IntakeError
    from course_lib.grading.classroom.names import some
    from course_lib.grading.classroom.run import Busy, GradingOrder, grade
    from course_lib.grading.classroom.secret import SeedError
    from course_lib.grading.classroom.team import SchedulerError
    from course_lib.grading.sandbox.bubblewrap import NoSandbox

    if args.workers < 0:
        print(
            f"grade: --workers is {args.workers}, but it must be 1 or more.",
            file=sys.stderr,
        )
        return 2
    order = GradingOrder(
        source=args.submissions or args.class_folder / "submitted",
        folder=args.class_folder,
        root=args.root,
        assignment=args.assignment,
        workers=args.workers,
        scheduler=args.scheduler,
        unsafe=args.unsafe_no_sandbox,
    )
    if order.unsafe:
        print("WARNING: Without a sandbox the answers run with all of your rights: they can do what you can.")
    try:
        # it appears with the first verdict
        with tqdm(unit="student", desc="grading", mininterval=0.2, delay=1e-3) as bar:

            def show(done: int, total: int) -> None:
                bar.total = total
                bar.update(done - bar.n)

            done = grade(order, show)
    except (AssignmentError, BookLocked, IntakeError, SeedError, NoSandbox, SchedulerError, Busy) as problem:
        print(f"grade: {problem}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stopped:
        in_work = f" Not judged yet: {some(stopped.args, 8)}." if stopped.args else ""
        told = "Stopped. What is judged is kept: the same command goes on from here."
        print(f"\n{told}{in_work}", file=sys.stderr)
        return 130
    print(f"{done.assignment.name}: {done.judged} judged, {done.kept} kept, {done.seconds:.0f} s.")
    for note in done.notes:
        print(note)
    if done.published.looks:
        print(f"{done.published.looks} of {done.published.students} need a manual look: see the summary.")
    print(f"summary:  {done.published.summary}")
    print(f"grades:   {done.published.grades}")
    print(f"feedback: {order.folder / 'feedback'}")
    return 0
