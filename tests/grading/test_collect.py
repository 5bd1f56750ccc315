"""An answer is found in one way: in a notebook's session and in the notebook that is handed in."""

import ast
import functools
import re
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from grading_tools import ASSIGNMENTS, notebook_of, solution_path
from test_answers_by_others import HONEST, with_given

from course_lib.grading import registry
from course_lib.grading.cells import python
from course_lib.grading.check import as_handed_in, examine
from course_lib.grading.classroom.submission import read
from course_lib.grading.collect import collect
from course_lib.grading.language import Language
from course_lib.grading.runner import InProcess
from course_lib.grading.sources import Code, NoSource

STUB = "def f(x):\n    # Write it.\n    raise NotImplementedError()"


def odd_notebooks() -> dict[str, tuple[list[str], object, str, str]]:
    """Return for each the cells, an argument for f, what the text leaves out, and words of a refusal."""
    found = {}
    text = Path(__file__).with_name("odd_notebooks.txt").read_text(encoding="utf-8")
    for part in text.split("\n=== ")[1:]:
        head, _, cells = part.partition("\n")
        name, argument, left_out, refused = (word.strip() for word in f"{head}|".split("|", 3))
        texts = cells.strip("\n").split("\n---\n")
        found[name] = (texts, ast.literal_eval(argument), left_out, refused.rstrip("|").strip())
    return found


def handed_in(texts: list[str]) -> list[str]:
    """Return the cells as a class reads them."""
    return [cell.text for cell in read(notebook_of(*texts)).cells if cell.is_answer]


def run(text: str, entry: str = "f"):
    space = {"__name__": "__main__"}
    exec(compile(text, "<answer>", "exec", dont_inherit=True), space)
    return space[entry]


def in_both_places(live, texts: list[str], entry: str) -> tuple[str, str]:
    """Return the text, or the sentence, that check() finds and the one that the class finds."""
    theirs = collect(handed_in(texts), entry)
    try:
        own = as_handed_in(live, entry).text
    except NoSource as problem:
        own = str(problem)
    return own, theirs.problem or theirs.text


# --- what is found ------------------------------------------------------------------------------------------


def test_odd_notebooks_are_read_alike_in_a_session_and_in_a_class(session):
    for name, (texts, argument, left_out, refused) in odd_notebooks().items():
        live = session(texts)["f"]
        own, theirs = in_both_places(live, texts, "f")
        if refused:
            assert refused in theirs and theirs.endswith("."), (name, theirs)
            assert own == theirs or "hand in the function itself" in own, (name, own)
            continue
        assert own == theirs and theirs.startswith("from __future__") <= ("->" in theirs or ": " in theirs), (
            name
        )
        assert not left_out or left_out not in theirs, (name, theirs)
        if STUB not in texts:
            same = repr(run(theirs)(argument)) == repr(live(argument))
            assert same == (name not in OF_A_LATER_TASK), name


OF_A_LATER_TASK = {
    "a constant for a later task",
    "an import, and a helper of a later task under its name",
    "a constant in the same cell and in a later one",
    "a constant bound in a loop behind the answer",
}


def test_honest_answers_are_read_alike_in_a_session_and_in_a_class(session):
    for id, name, text in HONEST:
        entry, texts = registry.task(id).entry, [with_given(registry.task(id), text)]
        own, theirs = in_both_places(session(texts)[entry], texts, entry)
        assert own == theirs and f"def {entry}(" in theirs, (name, own, theirs)


def test_solutions_are_read_alike_and_without_the_experiments_beside_them(session):
    for chapter in ASSIGNMENTS:
        texts = [cell.text for cell in read(solution_path(chapter).read_bytes()).cells if cell.is_answer]
        space = session(
            [text for text in texts if not re.search(r"^(check|views|trace|baseline)", text, re.M)]
        )
        for task in registry.tasks(chapter):
            own, theirs = in_both_places(space[task.entry], texts, task.entry)
            assert own == theirs and "course_lib" not in own, task.id
            assert run(own, task.entry)


def test_each_line_knows_its_place_in_its_cell():
    cells = [
        "import math\nfrom os import (\n    path)\n\nN = 3",
        "\n# mine\n@staticmethod\ndef f(x):\n    return g(x) + N + math.pi\n",
        "%time x = 1\ng = (lambda x:\n   path)",
    ]
    found = collect(cells, "f")
    own = dict(zip(found.text.split("\n"), found.lines, strict=False))
    assert (own["N = 3"], own["@staticmethod"], own["    return g(x) + N + math.pi"]) == (5, 3, 5)
    assert (own["import math"], own["from os import path"], own["def g(x):"], own["    return path"]) == (
        1,
        2,
        2,
        2,
    )


def test_a_fault_is_told_with_the_line_of_its_cell_also_by_numba_and_while_the_text_is_loaded():
    found = collect(["\nfrom numba import njit", "@(\n njit)\ndef f(x):\n    return x.nonsense()"], "f")
    fault = InProcess(Code(found.text, "f"), lines=found.lines).call((1,)).fault
    assert "Numba cannot compile it in line 4, `return x.nonsense()`" in fault.message
    found = collect(["N = 0", "\nM = 1 // N", "def f(x):\n    return M"], "f")
    fault = InProcess(Code(found.text, "f"), lines=found.lines).call((1,)).fault
    assert fault.sentence().startswith("ZeroDivisionError in line 2, `M = 1 // N`: ")


def test_what_is_not_begun_is_nothing_and_what_is_no_python_is_told():
    broken = "# my answer\ndef f(x):\n    return (x"
    for others in ((), (STUB,)):
        found = collect([*others, broken], "f")
        assert (found.text, found.cell) == ("", broken)
        assert found.problem.startswith("SyntaxError in line 3 of its cell: ")
    assert collect([broken, "def f(x):\n    return x"], "f").problem == ""
    assert "'return' outside function" in collect(["return 3\ndef f(x):\n    return x"], "f").problem
    assert collect([STUB, "def g(x):\n    return x"], "f").text == STUB + "\n"
    assert collect(["f(3)", "g = f"], "f") == collect([], "f")
    own, last = "def total(x):\n    return x\n\n", "from course_lib.grading import total\ntotal('05')"
    assert collect([f"{own}def f(x):\n    return total(x)", last], "f").text.startswith(own)


def test_a_trick_beside_the_answer_is_not_there_and_one_that_it_uses_is_refused():
    answer = "def f(a, b):\n    return sum(x * y for x, y in zip(a, b))"
    for trick in (
        "globals()['f'] = list.__len__",
        "import sys\nsys.modules['numpy'] = None",
        "exec('def f(a, b): return 3')",
        "import numpy\nnumpy.allclose = f.__defaults__ = lambda *a: True",
        "get_ipython().input_transformers_cleanup.append(lambda lines: [])",
    ):
        assert collect([trick, answer, trick], "f").text == answer + "\n", trick
    for value in ("eval('lambda a, b: 3')", "__import__('numpy').dot", "iter([1])", "open('x')"):
        found = collect([f"T = {value}", "def f(a, b):\n    return T"], "f")
        assert f"in `T = {value}`: " in Language().judge(found.text, "f"), value


def test_what_is_no_function_of_ones_own_is_refused_with_a_sentence():
    for answer, words in (
        (lambda x: x, "is a lambda: write a function with `def`"),
        (np.add, "is a ufunc: hand in the function itself, written with `def`"),
        (sum, "is a builtin_function_or_method: "),
        (functools.partial(run, 1), "is a partial: "),
        (3.0, "is a float: hand in the function itself, written with `def`, and do not call it"),
        ([[1.0]], "is a list: "),
    ):
        with pytest.raises(NoSource, match=words):
            as_handed_in(answer, "f")


def test_check_says_how_a_function_must_be_called_and_which_constants_are_others_by_now(session):
    task = replace(registry.task("01.dot"), entry="f")
    answer = "N = 0\ndef f(row, col):\n    return sum([a * b for a, b in zip(row, col)], N)"
    space = session([answer, "def g(row, col):\n    return 0.0", "N = 2", "h = g"])
    assert examine(task, space["f"]).passed
    for other in (space["g"], space["h"]):
        assert "called g: call it `f`, for a class is graded by that name." in str(examine(task, other))
    space = session([answer.replace("= 0", "= 3"), "N = 1"])
    assert "Judged with N = 3, as your cells say; by now it is 1 in this session." in str(
        examine(task, space["f"])
    )
    for blank in ("", "\n\n"):
        space = session([f"{blank}def f(row, col):\n    return 0.0\nfirst = f\n{answer}"])
        assert examine(task, space["f"]).passed
    assert "defines `f` again below, and a class is graded by the last" in str(examine(task, space["first"]))


# --- magics -------------------------------------------------------------------------------------------------

MAGICS = {
    "x = 7 % 4\n\n\ny = not x != 2": "x = 7 % 4\n\n\ny = not x != 2",
    "%%time\nx = 1": "\nx = 1",
    "\n%%capture out\n%%time\nx = 1": "\n\n\nx = 1",
    "%time x = f(2)\ny = 3": "x = f(2)\ny = 3",
    "%matplotlib inline\nx = 1": "pass\nx = 1",
    "%%timeit\nx = 1": "\n",
    "%%bash\nls |\nfor": "\n\n",
    "f?\nx = (1\n % 4)": "pass\nx = (1\n % 4)",
    "x = !ls\ny = 1  # why?": "pass\ny = 1  # why?",
    "!ls \\\n  -l\nx = 1": "pass\n\nx = 1",
    ">>> x = 1\n... y = 2": "x = 1\ny = 2",
    "  x = 1\n  %time y": "x = 1\ny",
    "for i in a:\n    %timeit g(i)\nx = 1": "for i in a:\n    pass\nx = 1",
    "'''\n%time x\n'''\n%time y = 1": "'''\n%time x\n'''\ny = 1",
}


def test_magics_are_passed_over_and_lines_stay_where_they_are():
    for text, want in MAGICS.items():
        assert python(text) == want, text
        ast.parse(want)


# --- hostile cells ------------------------------------------------------------------------------------------

F = "def f(x):\n    return a\n"
HOSTILE = {
    "doubling": "a0 = 1\n" + "".join(f"a{n + 1} = a{n}, a{n}\n" for n in range(250)) + "a = a250\n" + F,
    "doubling functions": "".join(f"def g{n + 1}(): g{n}(), g{n}()\n" for n in range(250)) + "a = g250\n" + F,
    "newlines": "\n" * 40_000 + "%time\n" + F,
    "spaces": (" " * 90 + "\n") * 100 + "!x\n" + " " * 80_000 + "x !\n" + F,
    "brackets": "a = " + "[" * 10_000 + "]" * 10_000 + "\n" + F,
    "minus": "a = " + "-" * 90_000 + "1\n" + F,
    "elif": "def f(x):\n    if x: pass\n" + "    elif x: pass\n" * 3000,
    "20 MB": F + "# pad\n" * 3_400_000,
    "a statement after the other": "a = 1;" * 9_000 + "\n" + F,
    "targets": "a = " * 9_000 + "'" + "b" * 40_000 + "'\n" + F,
    "commas": "a = [" + "[]," * 9_000 + "]\n" + F,
    "stubs": "def a():\n    raise NotImplementedError\n" * 1500 + F,
    "quotes": "'''" * 30_000 + "\n%time x\n" + F,
    "a power": "a = 10 ** 10 ** 10 ** 10\n" + F,
    "NUL and surrogate": "a = '\0\ud800'\n" + F,
    "many statements": "b = 1\n" * 9_000 + F,
    "finally": "".join(f"{' ' * n}try: pass\n{' ' * n}finally:\n" for n in range(18)) + " " * 18 + "x\n" + F,
    "an early end": "x\0\0\n\0" + F,
    "ends of lines as once on a Mac": "# one\r# two\r" + F.replace("\n", "\r"),
    "a long note": "# " + "x" * 1_100_000 + "\n" + F,
    "names that nobody knows": "x = = 1\n"
    + "y = 1\n" * 9_000
    + f"def f(x): return [{'a%d,' * 3_000}]" % (*range(3_000),),
}


def test_hostile_cells_are_read_or_refused_in_a_sentence_at_once():
    for kind, text in HOSTILE.items():
        start = time.process_time()
        for cells in ((text,), (text, STUB), (*(f"{text}\nc{n} = 1" for n in range(3)), F)):
            found = collect(cells, "f")
            assert bool(found.text) != bool(found.problem), (kind, found)
            assert not found.problem or found.problem.endswith("."), (kind, found.problem)
        assert time.process_time() - start < 5, kind
