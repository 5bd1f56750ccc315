"""A slice does what the whole notebook does, holds nothing else, and no text makes the slicer fall."""

import ast
import time
from codeop import Compile
from dataclasses import replace
from pathlib import Path

from grading_tools import solution_path

from course_lib.grading import registry
from course_lib.grading.classroom.slices import answer_slice
from course_lib.grading.classroom.submission import Cell, code, read
from course_lib.grading.judge import judge
from course_lib.grading.runner import InProcess
from course_lib.grading.sources import load

STUB = "def f(x):\n    # Write it.\n    raise NotImplementedError()"


def cells_of(*texts: str) -> tuple[Cell, ...]:
    return tuple(Cell("code", text) for text in texts)


def sliced(*texts: str, entry: str = "f", stub: str = STUB):
    return answer_slice(cells_of(*texts), entry, stub)


class Quiet:
    """Stands for IPython: whatever is asked, nothing happens."""

    def __getattr__(self, name):
        return lambda *args: None


def whole(texts: tuple[str, ...]) -> dict:
    """Run a notebook from top to bottom; a cell that fails ends there."""
    space = {"__name__": "__main__", "get_ipython": Quiet, "check": print, "print": lambda *args: None}
    remembering = Compile()  # as IPython, it keeps `from __future__` imports for later cells
    for text in texts:
        try:
            exec(remembering(code(text), "<cell>", "exec"), space)
        except Exception:
            continue
    return space


def alone(text: str) -> dict:
    space = {"__name__": "__main__"}
    exec(compile(text, "<slice>", "exec", dont_inherit=True), space)
    return space


# --- the assignments ----------------------------------------------------------------------------------------


def test_the_slice_of_a_solution_passes():
    for task in registry.tasks()[::8]:
        found = answer_slice(read(solution_path(task.chapter).read_bytes()).cells, task.entry)
        assert found.problem == "" and "course_lib" not in found.text, task.id
        report = judge(replace(task, speed=None), InProcess(load(found.text, task.entry)), found.text, 2025)
        assert report.passed, f"{task.id}\n{report}"


# --- honest styles ------------------------------------------------------------------------------------------


def honest_notebooks() -> dict[str, tuple[tuple[str, ...], object, str]]:
    """Return for each notebook of the file the cells, an argument for f, and what the slice leaves out.

    Each begins with `=== what it shows | the argument | what is left out`; `---` stands between two cells.
    """
    notebooks = {}
    text = Path(__file__).with_name("honest_notebooks.txt").read_text(encoding="utf-8")
    for part in f"\n{text}".split("\n=== ")[1:]:
        head, _, cells = part.partition("\n")
        name, argument, left_out = (word.strip() for word in head.split("|"))
        notebooks[name] = (tuple(cells.strip("\n").split("\n---\n")), ast.literal_eval(argument), left_out)
    return notebooks


STUB_BEHIND = ("a duplicate of the stub behind", "the stub and the answer wrapped")


def test_a_slice_does_what_the_whole_notebook_does():
    for name, (texts, argument, left_out) in honest_notebooks().items():
        found = sliced(*texts)
        assert found.problem == "", name
        assert not left_out or left_out not in found.text, name
        ran = tuple(text for text in texts if text != STUB) if name in STUB_BEHIND else texts
        full, part = whole(ran)["f"], alone(found.text)["f"]
        if name not in ("a memo", "a test function with globals"):
            assert part(argument) == full(argument), name
            assert part(argument) == full(argument), name
        else:  # trial calls left something behind
            full(argument), part(argument)


# --- what is no answer --------------------------------------------------------------------------------------


def test_a_syntax_error_in_the_answer_is_told_with_its_line():
    broken = "# my answer\ndef f(x):\n    return (x"
    for others in ((), (STUB,)):
        found = sliced(*others, broken)
        assert found.text == ""
        assert found.problem.startswith("SyntaxError in line 3 of its cell: ")
        assert found.cell == broken
    assert sliced("def f(x):\n    return x", broken).problem == ""
    assert "'return' outside function" in sliced("return 3\ndef f(x):\n    return x").problem


def test_grade_cells_check_cells_and_other_cells_are_never_used():
    answer = "def f(x):\n    return x"
    other = "def f(x):\n    return 2"
    asks = "from course_lib.grading import baseline\nf = baseline('01.faster')\nf"
    cells = [Cell("code", answer), Cell("code", other, is_grade=True), Cell("markdown", other)]
    assert answer_slice([*cells, Cell("code", asks)], "f").text == answer + "\n"


# --- hostile notebooks --------------------------------------------------------------------------------------

TRICKS = {
    "globals": "globals()['dot'] = list.__len__",
    "sys.modules": "import sys\nsys.modules['numpy'] = None",
    "exec": "exec('def dot(a, b): return 3')",
    "a patch": "import numpy\nnumpy.allclose = lambda *a: True",
    "a hook": "get_ipython().input_transformers_cleanup.append(lambda lines: [])",
    "exit": "import os\nos._exit(0)",
}


def test_a_trick_beside_the_answer_is_not_there_and_one_that_it_uses_is_refused():
    answer = "def f(a, b):\n    return sum(x * y for x, y in zip(a, b))"
    for kind, trick in TRICKS.items():
        assert sliced(trick, answer, trick).text == answer + "\n", kind
    task, uses = registry.task("01.dot"), "def dot(a, b):\n    return T[0](a, b)"
    for trick in ("np.dot", "eval('lambda a, b: 3')", "__import__('numpy').dot"):
        found = sliced(f"import numpy as np\nT = [{trick}]", uses, entry="dot")
        assert trick in found.text
        report = judge(task, InProcess(len), found.text, 1)
        assert report.points == 0 and "Your answer" in report.lines[0], trick


HOSTILE = {
    "NUL": "def f(x):\n    return '\0'",
    "brackets": "def f(x): return " + "(" * 5000 + ")" * 5000,
    "minus": "def f(x): return " + "-" * 100_000 + "x",
    "elif": "def f(x):\n    if x: pass\n" + "    elif x: pass\n" * 3000,
    "a power": "def f(x): return 10 ** 10 ** 10 ** 10",
    "a surrogate": "def f(x): return '\ud800'",
    "no future": "from __future__ import braces\ndef f(x): return x",
    "too much": "def f(x):\n    return x\n" + "# pad\n" * 200_000,
    "many commas": "def f(x): return [" + "[]," * 20_000 + "]",
    "imports": "from " + "." * 100_000 + " import *\ndef f(x): return x",
}


def test_hostile_text_gives_a_slice_or_a_sentence_at_once():
    for kind, text in HOSTILE.items():
        start = time.process_time()
        for cells in ((text,), (text, STUB)):
            found = sliced(*cells)
            assert bool(found.text) != bool(found.problem), kind
            assert not found.problem or found.problem.endswith("."), kind
        assert time.process_time() - start < 10, kind
