"""Attacks that know the grader from inside, on assignment 01: they name its modules, classes and replies.

The others know nothing of it. They were frozen with the grades that they must get, and are handed in as they
were (tests/golden: `tar xf handed_in.tar.xz` shows them). Such a one is a row here as well, if it is new.
"""

from __future__ import annotations

import json
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

from grading_tools import ASSIGNMENTS, ROOT, read_notebook

NAME = ASSIGNMENTS["01"]
TASKS = ("count", "dot", "matmul", "alias", "faster", "predict_time")


@dataclass(frozen=True)
class Attack:
    """A hostile submission: what it tries, its answers, and what it must get.

    `earns` are the points of each task (0 for those not named); `flagged`: somebody has to look at it.
    """

    name: str
    tries: str
    answers: dict[str, str]
    earns: dict[str, float] = field(default_factory=dict)
    flagged: bool = False

    def put(self, source: Path) -> None:
        """Hand it in below a class's folder, as nbgrader lays it out."""
        notebook = read_notebook(ROOT / "exercises" / NAME / f"{NAME}.ipynb")
        cells = {
            f"{id.replace('.', '-').replace('_', '-')}-answer": code for id, code in self.answers.items()
        }
        for cell in notebook["cells"]:
            cell["source"] = cells.pop(cell["id"], cell["source"])
        assert not cells, cells
        folder = source / self.name / NAME
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{NAME}.ipynb").write_text(json.dumps(notebook))


def text(code: str) -> str:
    """Return code that is written indented in a declaration."""
    return textwrap.dedent(code).strip("\n")


def on_count(name: str, tries: str, code: str, result: str = "0, 0", flagged: bool = False) -> Attack:
    """Return an attack from inside the answer to 01.count, beside a right answer that must keep its point."""
    body = textwrap.indent(f"{text(code)}\nreturn {result}", "    ")
    dot = "def dot(row, col):\n    return sum([a * b for a, b in zip(row, col)])\n"
    answers = {"01.count": f"def operations(M, K, N):\n{body}\n", "01.dot": dot}
    return Attack(name, tries, answers, {"01.dot": 1}, flagged)


def spy(name: str, tries: str, code: str) -> Attack:
    """Return an attack that is right only if `code` sets found: so that finding gives points."""
    body = "found = False\ntry:\n" + textwrap.indent(text(code), "    ")
    body += "\nexcept BaseException:\n    pass"
    return on_count(f"spy-{name}", tries, body, "(M * N * K, M * N * max(K - 1, 0)) if found else (0, 0)")


ATTACKS = (
    on_count("trace", "traces and profiles the harness, to change its variables", """
        import sys
        def spy(frame, event, arg):
            for name in ('outcome', 'value', 'reply', 'fault'):
                if name in frame.f_locals:
                    frame.f_locals[name] = (M * N * K, 0)
            return spy
        sys.settrace(spy)
        sys.setprofile(spy)
    """),
    on_count("replaced-harness", "replaces the harness's own functions", """
        import gc, sys
        from course_lib.grading import runner, tape
        from course_lib.grading.sandbox import inside
        right = M * N * K, M * N * max(K - 1, 0)
        runner.InProcess.call = lambda self, args: runner.Outcome(right, None, args)
        inside._Answers.call = lambda self, which, args: {'value': right, 'fault': None, 'args_after': args}
        tape.count = lambda *a: None
        for thing in gc.get_objects():
            if type(thing).__name__ == '_Answers':
                thing.functions[:] = [lambda M, K, N: right] * len(thing.functions)
    """, "right"),
    on_count("own-points", "claims points in the reply", """
        from course_lib.grading.sandbox import inside
        send, right = inside._Line.send, (M * N * K, M * N * max(K - 1, 0))
        inside._Line.send = lambda line, reply: send(line, {**reply, 'points': 1000.0, 'state': 'right',
            'passed': True, 'value': right})
    """, "right"),
    on_count("forged-reply", "right-looking replies ahead of time", """
        import os
        from course_lib.grading.sandbox.wire import frame
        reply = {'value': (24, 16), 'fault': None, 'args_after': (2, 3, 4), 'owner': None, 'printed': 0}
        for fd in map(int, os.listdir('/proc/self/fd')):
            try:
                if fd > 2 and os.readlink(f'/proc/self/fd/{fd}').startswith('pipe'):
                    os.write(fd, frame(reply) * 30)
            except OSError:
                pass
    """),
    spy("tasks", "imports the declarations of the tasks", """
        from course_lib.grading import registry
        found = callable(registry.task('01.count').reference)
    """),
    spy("references", "looks for a task or a case in the harness's memory", """
        import gc, sys
        for thing in gc.get_objects():
            found = found or type(thing).__name__ in ('Task', 'Case', 'SubmissionJob', 'GradingOrder')
        frame = sys._getframe()
        while frame:
            found = found or any(one in frame.f_locals for one in ('seed', 'task', 'reference', 'want'))
            frame = frame.f_back
    """),
    Attack("tape-cleared", "wipes what the operands wrote down", {
        "01.dot": text("""
            class Mine:
                zero = tape = codes = left = right = 0.0  # names of the answer's own pass the rules
            def dot(row, col):
                total = Mine.zero
                for a, b in zip(row, col):
                    total += a * b + a * b - a * b
                if row and type(row[0]) is not float:
                    del row[0].tape.codes[:], row[0].tape.left[:], row[0].tape.right[:]
                return total
        """),
        "01.matmul": text("""
            def matmul(A, B):
                C = [[sum(a * b for a, b in zip(row, col)) for col in zip(*B)] for row in A]
                for row in A:
                    for a in row:
                        if type(a) is not float:
                            type(a).__mul__ = lambda x, y: x
                return C
        """)}),
)  # fmt: skip
