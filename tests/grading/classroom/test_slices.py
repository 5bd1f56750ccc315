"""A slice does what the whole notebook does, holds nothing else, and no text makes the slicer fall."""

import time
from codeop import Compile
from dataclasses import replace

import pytest
from grading_tools import ASSIGNMENTS, solution_path
from honest_notebooks import honest_notebooks
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.grading import registry
from course_lib.grading.classroom import slices
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


@pytest.fixture(scope="module")
def solution_cells() -> dict[str, tuple[Cell, ...]]:
    return {chapter: read(solution_path(chapter).read_bytes()).cells for chapter in ASSIGNMENTS}


@pytest.mark.sample(6)
@pytest.mark.parametrize("task", registry.tasks(), ids=lambda task: task.id)
def test_the_slice_of_a_solution_passes(task, solution_cells):
    found = answer_slice(solution_cells[task.chapter], task.entry)
    assert found.problem == ""
    assert "course_lib" not in found.text
    assert "broken" not in found.text.replace("`broken`", "")
    untimed = replace(task, speed=None)
    report = judge(untimed, InProcess(load(found.text, task.entry)), found.text, 2025)
    assert report.passed, str(report)


# --- honest styles ------------------------------------------------------------------------------------------

HONEST = honest_notebooks()


STUB_BEHIND = ("a duplicate of the stub behind", "the stub and the answer wrapped")


@pytest.mark.parametrize("name", HONEST)
def test_a_slice_does_what_the_whole_notebook_does(name):
    texts, argument, left_out = HONEST[name]
    found = sliced(*texts)
    assert found.problem == ""
    assert not left_out or left_out not in found.text
    ran = tuple(text for text in texts if text != STUB) if name in STUB_BEHIND else texts
    full, part = whole(ran)["f"], alone(found.text)["f"]
    if name != "a memo" and name != "a test function with globals":
        assert part(argument) == full(argument)
        assert part(argument) == full(argument)
    else:  # trial calls left something behind
        full(argument), part(argument)


@pytest.mark.parametrize("name", HONEST)
def test_lines_lead_back_to_the_cell(name):
    texts, _, _ = HONEST[name]
    found = sliced(*texts)
    rows = found.text.split("\n")[:-1]
    assert len(rows) == len(found.lines)
    own = [code(text).split("\n") for text in texts]
    for row, number in zip(rows, found.lines, strict=True):
        if number == 0:
            assert row in ("", "from __future__ import annotations")
        else:
            theirs = [lines[number - 1] for lines in own if number <= len(lines)]
            assert any(row.strip() in line for line in theirs) or _is_rewritten(row, theirs)


def _is_rewritten(row: str, theirs: list[str]) -> bool:
    """Whether the row stands for a star import, or for a magic in a branch."""
    return any(
        (row.startswith("from ") and line.startswith("from ") and line.endswith("import *"))
        or (row.strip().startswith("pass") and "get_ipython" in line)
        for line in theirs
    )


# --- what is no answer --------------------------------------------------------------------------------------


def test_an_entry_that_is_nowhere_is_not_started():
    found = sliced("def g(x):\n    return x", "from math import *")
    assert (found.text, found.problem) == ("", "")
    assert sliced().text == ""


def test_a_stub_stays_if_there_is_no_other_definition():
    assert sliced(STUB).text == STUB + "\n"


def test_a_wrapped_stub_is_no_definition_of_its_own():
    found = sliced("import functools", STUB, "f = functools.lru_cache(f)")
    assert STUB in found.text


def test_the_handed_out_text_counts_as_a_stub_whatever_it_does():
    given_text = "def f(x):\n    # mend this\n    return x - 1"
    found = sliced("def f(x):\n    return x", "def f(x):\n    return x - 1  # copied", stub=given_text)
    assert found.text == "def f(x):\n    return x\n"


def test_a_syntax_error_in_the_answer_is_told_with_its_line():
    broken = "# my answer\ndef f(x):\n    return (x"
    for others in ((), (STUB,)):
        found = sliced(*others, broken)
        assert found.text == ""
        assert found.problem.startswith("SyntaxError in line 3 of its cell: ")
        assert found.cell == broken
    assert sliced("def f(x):\n    return x", broken).problem == ""


def test_only_what_the_compiler_refuses_is_told_too():
    assert "'return' outside function" in sliced("return 3\ndef f(x):\n    return x").problem


@pytest.mark.parametrize("line", ["T = !ls", "T = %timeit -o 3", "T = get_ipython().getoutput('ls')"])
def test_a_name_from_a_magic_is_told(line):
    found = sliced(line, "def f(x):\n    return T")
    assert "T in line 1 of its cell needs a magic" in found.problem


def test_a_name_from_a_run_script_is_told():
    assert (
        "h is defined by no plain Python" in sliced("%run helpers.py", "def f(x):\n    return h(x)").problem
    )
    assert sliced("%run helpers.py", "def f(x):\n    return x").problem == ""


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
    "builtins": "import builtins\nbuiltins.sum = len",
    "a patch": "import numpy\nnumpy.allclose = lambda *a: True",
    "a hook": "get_ipython().input_transformers_cleanup.append(lambda lines: [])",
    "exit": "import os\nos._exit(0)",
    "atexit": "import atexit\natexit.register(print, 'points: 3')",
    "a print": "print('### points: 100')",
    "a trace": "import sys\nsys.settrace(lambda *a: None)",
}


@pytest.mark.parametrize("trick", TRICKS.values(), ids=TRICKS)
def test_a_trick_beside_the_answer_is_simply_not_there(trick):
    answer = "def f(a, b):\n    return sum(x * y for x, y in zip(a, b))"
    assert sliced(trick, answer, trick).text == answer + "\n"


@pytest.mark.parametrize("trick", ["np.dot", "eval('lambda a, b: 3')", "__import__('numpy').dot"])
def test_a_trick_that_the_answer_uses_is_in_the_slice_and_refused(trick):
    found = sliced(f"import numpy as np\nT = [{trick}]", "def dot(a, b):\n    return T[0](a, b)", entry="dot")
    assert trick in found.text
    task = registry.task("01.dot")
    report = judge(task, InProcess(len), found.text, 1)
    assert report.points == 0
    assert "Your answer" in report.lines[0]


HOSTILE = {
    "NUL": "def f(x):\n    return '\0'",
    "brackets": "def f(x): return " + "(" * 5000 + ")" * 5000,
    "minus": "def f(x): return " + "-" * 100_000 + "x",
    "attributes": "def f(x): return x" + ".a" * 100_000,
    "sums": "def f(x): return x" + " + x" * 3000,
    "calls": "def f(x): return x" + "()" * 2000,
    "elif": "def f(x):\n    if x: pass\n" + "    elif x: pass\n" * 3000,
    "indents": "def f(x):\n" + "".join(" " * (n + 1) + "if x:\n" for n in range(99)) + " " * 101 + "pass",
    "digits": "def f(x): return " + "9" * 100_000,
    "a power": "def f(x): return 10 ** 10 ** 10 ** 10",
    "a surrogate": "def f(x): return '\ud800'",
    "a future": "from __future__ import barry_as_FLUFL\ndef f(x): return x",
    "no future": "from __future__ import braces\ndef f(x): return x",
    "globals twice": "x = 1; global x\ndef f(x): return x",
    "await": "await f\ndef f(x): return x",
    "too much": "def f(x):\n    return x\n" + "# pad\n" * 200_000,
    "BOM": "\ufeffdef f(x): return x",
    "decorators": "@f\n" * 3000 + "def f(x): return x",
    "commas": "def f(x): return [" + "[]," * 5_000 + "]",
    "many commas": "def f(x): return [" + "[]," * 20_000 + "]",
    "f-strings": "def f(x): return " + "f'{" * 40 + "x" + "}'" * 40,
    "types": "def f(x: " + "list[" * 1000 + "]" * 1000 + "): return x",
    "imports": "from " + "." * 100_000 + " import *\ndef f(x): return x",
}


LONG = ("many commas",)


@pytest.mark.parametrize(
    "text",
    [pytest.param(HOSTILE[name], id=name, marks=[pytest.mark.slow] * (name in LONG)) for name in HOSTILE],
)
def test_hostile_text_gives_a_slice_or_a_sentence_at_once(text):
    start = time.process_time()
    for cells in ((text,), (text, STUB)):
        found = sliced(*cells)
        assert bool(found.text) != bool(found.problem) or "barry" in text
        assert not found.problem or found.problem.endswith(".")
    assert time.process_time() - start < 10


MANY = 5000
CROWDS = {
    "definitions": [f"def g{n}(x):\n    return g{n - 1}(x)" for n in range(MANY)],
    "users": [f"def g{n}(x):\n    return x\nT{n} = g{n}(T{n - 1})" for n in range(MANY)],
    "one table": ["f.t = []", *["f.t.append(len(f.t))"] * MANY],
    "redefinitions": ["def f(x):\n    return f(x)"] * MANY,
    "aliases": [f"a{n} = a{n - 1}\na{n}.append(f)" for n in range(MANY)],
    "a chain that is called": [
        line for n in range(MANY) for line in (f"def g{n}(x):\n    return g{n - 1}(x)", f"f = f(g{n})")
    ],
    "stores": [f"def s{n}():\n    global v{n}\n    v{n} = 1\n    s{n - 1}()\ns{n}()" for n in range(MANY)],
    "stubs": [STUB] * MANY,
}


def crowd(name):
    return pytest.param(CROWDS[name], id=name, marks=[] if name in ("users", "stubs") else pytest.mark.slow)


@pytest.mark.parametrize("crowd", [crowd(name) for name in CROWDS])
def test_thousands_of_cells_are_bounded_in_time(crowd):
    last = f"def f(x):\n    return g{MANY - 1}, T{MANY - 1}, a{MANY - 1}, a1, v1"
    start = time.process_time()
    found = sliced("def f(x):\n    return x", *crowd, last)
    assert found.text or found.problem
    assert time.process_time() - start < 20


def test_too_many_ways_is_a_sentence(monkeypatch):
    monkeypatch.setattr(slices, "MOST_STEPS", 10)
    assert "too many ways" in sliced(*[f"x{n} = f\ndef f(x):\n    return x{n}" for n in range(9)]).problem


# --- any notebook made of ordinary statements ---------------------------------------------------------------

NAMES = st.sampled_from("abcf")
EXPRESSIONS = st.one_of(
    st.integers(0, 9).map(str),
    NAMES,
    st.tuples(NAMES, NAMES).map(lambda pair: f"[{pair[0]}, {pair[1]}]"),
    st.tuples(NAMES, NAMES).map(lambda pair: f"call({pair[0]}, {pair[1]})"),
)
STATEMENTS = st.one_of(
    st.tuples(NAMES, EXPRESSIONS).map(lambda one: f"{one[0]} = {one[1]}"),
    st.tuples(NAMES, EXPRESSIONS).map(lambda one: f"def {one[0]}(x):\n    return {one[1]}"),
    st.tuples(NAMES, NAMES).map(lambda one: f"{one[0]} = [{one[1]}]"),
    st.tuples(NAMES, EXPRESSIONS).map(lambda one: f"if len(str({one[0]})) % 2:\n    {one[0]} = {one[1]}"),
    st.tuples(NAMES, EXPRESSIONS).map(lambda one: f"for {one[0]} in [1, {one[1]}]:\n    pass"),
    NAMES.map(lambda name: f"{name} = [0]"),
)
PREAMBLE = """
def call(g, x):
    return g(x) if callable(g) else x
"""


def shape(value, depth: int = 0):
    """Return a value in a form that can be compared: functions by what they return."""
    if depth > 4:
        return "deep"
    if callable(value):
        try:
            return ("function", shape(value(1), depth + 1))
        except RecursionError:
            return "endless"
        except NameError as error:
            return str(error)
    return [shape(one, depth + 1) for one in value] if isinstance(value, list) else value


@settings(max_examples=300, deadline=None)
@given(st.lists(STATEMENTS, min_size=1, max_size=9))
def test_any_notebook_and_its_slice_give_the_same(statements):
    texts = (PREAMBLE, "a = b = c = f = 0", *statements)
    found = sliced(*texts)
    assert found.problem == ""
    space: dict = {}
    try:
        exec("\n".join(texts), space)
    except (RecursionError, NameError):
        return  # no honest notebook
    assert shape(alone(found.text)["f"]) == shape(space["f"])
