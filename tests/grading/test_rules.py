"""Structural rules, judged from source text: ways around them are found, honest answers are left alone."""

import textwrap

from rule_texts import ROWS, text

#: Around the body of a text on loops: the order is read from what they index, not from what they are called.
ORDER = """\
import numpy as np
from numba import njit


@njit
def f(A, B):
    M, K = A.shape
    N = B.shape[1]
    C = np.zeros((M, N), A.dtype)
{body}
    return C
"""
NEST = """\
def product(A, B, C):
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            for k in range(A.shape[1]):
                C[i, j] += A[i, k] * B[k, j]

def f(A, B):
{body}
    return C
"""


def said(rules: str, text: str) -> list[str]:
    """Return what the rules of this name say of a text; of memory and a library as in a graded class."""
    from course_lib.grading.program import CLOSED
    from course_lib.grading.rules import (
        PRODUCTS,
        WHOLE_ARRAY,
        LoopOrder,
        NestedLoops,
        NoCalls,
        NoMemory,
        NoOperator,
        OnlyImports,
    )

    rule, before, around = {
        "no memory": (NoMemory(), f"{CLOSED}\n", ""),
        "no products": (NoCalls(PRODUCTS | WHOLE_ARRAY), "", ""),
        "no operator": (NoOperator("@"), "", ""),
        "a library": (
            OnlyImports(("numpy", "math", "collections", "itertools", "heapq", "threading")),
            f"{CLOSED}\n",
            "",
        ),
        "loop order": (LoopOrder("kij"), "", ORDER),
        "nested loops": (NestedLoops(3, "write four"), "", NEST),
    }[rules]
    whole = around.format(body=textwrap.indent(text, "    ")) if around else text
    return [words for words in [rule.judge(before + whole, "f")] if words]


def test_every_way_around_a_rule_is_refused_and_what_honest_learners_write_is_left_alone():
    ends = {
        "no memory": "every call must do all of its work.",
        "loop order": "wants k, i, j, outermost first.",
        "nested loops": "write four.",
    }
    for verdict, rules, name, words, body in ROWS:
        sentences = said(rules, body)
        assert bool(sentences) == (verdict == "refused"), (rules, name, sentences)
        for sentence in sentences:
            assert words in sentence and sentence.endswith(ends.get(rules, ".")), (rules, name, sentence)
    assert all(said("no operator", row[4]) == [] for row in ROWS if row[:2] == ("fine", "no products"))
    assert [sum(row[0] == verdict for row in ROWS) for verdict in ("refused", "fine")] == [125, 35]


def test_loops_are_counted_whatever_they_are_called():
    from course_lib.grading.loop_nests import depth
    from course_lib.grading.program import Program

    for _, rules, name, words, body in ROWS:
        if rules == "nested loops":
            whole = NEST.format(body=textwrap.indent(body, "    "))
            assert depth(Program(whole, "f")) == int(words), name


def test_the_task_takes_the_renamed_right_answer_and_refuses_the_renamed_wrong_one(judged):
    for name, passed in (("other names", True), ("letters renamed", False)):
        body = textwrap.indent(text("loop order", name), "    ")
        report = judged("02.order", ORDER.replace("def f(", "def matmul_kij(").format(body=body))
        assert report.passed == passed and ("you call them" in str(report)) != passed, name


def test_a_refusal_says_what_where_and_why():
    for rules, code, words in (
        (
            "no products",
            "import numpy as np\ndef f(A):\n    return np.fft.fft(A)",
            "numpy.fft.fft in `return np.fft.fft(A)`: this task takes plain Python, and of NumPy and Numba",
        ),
        ("no products", "import numpy as np\nd = np.dot\ndef f(A, B):\n    return d(A, B)", "numpy.dot in `"),
        (
            "a library",
            "import numpy as np\ndef f(): return np.ma.core.x('torch')",
            "numpy.ma.core.x in `def f(): return np.ma.core.x('torch')`: this task takes plain Python, and "
            "of a library what computes with numbers and arrays.",
        ),
        ("no operator", "def f(A, B):\n    return A @ B", "the operator @ in `return A @ B`"),
    ):
        assert said(rules, code)[0].startswith(f"Your answer uses {words}"), code


def test_ways_into_the_interpreter_are_refused():
    frames = ("f_locals", "f_globals", "f_builtins", "f_back", "tb_frame", "gi_frame", "cr_frame")
    for name in (*frames, "__subclasses__", "__traceback__"):
        for form in (f"A.{name}", f"getattr(A, '{name}')"):
            assert f"uses {name} in" in said("no products", f"def f(A):\n    return {form}\n")[0], form


def test_imports_are_found_and_allowed_ones_are_fine():
    from course_lib.grading.rules import OnlyImports

    for code, module in (
        ("import numpy as np\ndef f(A): return np.abs(A)", "numpy"),
        ("def f(A):\n    import math\n    return math.pi", "math"),
        ("from os.path import join as j\ndef f(A): return j(A)", "os.path"),
        ("from math import *\ndef f(A): return sqrt(A)", "math"),
        (
            "try:\n    import numpy as np\nexcept ImportError:\n    np = None\ndef f(A): return np.abs(A)",
            "numpy",
        ),
        ("import numpy as np\ndef g(A): return np.abs(A)\ndef f(A): return g(A)", "numpy"),
        # an import is named before what is done with it
        ("def f(x):\n    return torch.softmax(x)\nif f:\n    import torch", "torch"),
    ):
        assert OnlyImports().judge(code, "f").startswith(f"Your answer imports {module} in "), code
    for allowed, code in (
        (("numpy",), "import numpy.linalg as la\ndef f(A): return la.norm(A)"),
        ((), "import numpy as np\ndef f(A): return A\ndef g(A): return np.abs(A)"),
        ((), "from __future__ import annotations\ndef f(A): return A"),
    ):
        assert OnlyImports(allowed).judge(code, "f") is None, code


def test_an_answer_must_be_compiled_itself():
    from course_lib.grading.rules import MustBeCompiled

    for code, fine in (
        ("from numba import njit\n@njit\ndef f(A): return A", True),
        ("import numba as nb\n@nb.njit(cache=True)\ndef f(A): return A", True),
        ("from numba import njit as fast\n@fast(fastmath={'contract'})\ndef f(A): return A", True),
        ("from numba import njit\ncompiled = njit(nogil=True)\n@compiled\ndef f(A): return A", True),
        ("from numba import njit\ndef g(A): return A\nf = njit(g)", True),
        ("def f(A): return A", False),
        ("from numba import njit\n@njit\ndef g(A): return A\ndef f(A): return g(A)", False),
        ("from numba import jit\n@jit(forceobj=True)\ndef f(A): return A", False),
        ("from functools import cache\n@cache\ndef f(A): return A", False),
    ):
        assert (MustBeCompiled().judge(code, "f") is None) == fine, code


def test_fastmath_may_not_assume_nan_away():
    from course_lib.grading.rules import FastmathOnly

    above = "from numba import njit\nFLAGS = {'contract'}\nLIE = True\nOPTIONS = dict(fastmath=True)\n"
    fine = ("", "(cache=True)", "(fastmath={'contract', 'reassoc'})", "(fastmath=False)")
    fine += ("(fastmath=frozenset({'reassoc'}))", "(fastmath=FLAGS)")
    bad = ("(fastmath=True)", "(fastmath=not False)", "(fastmath={'nnan'})", "(fastmath=LIE)", "(**OPTIONS)")
    for option in (*fine, *bad, "(fastmath={'contract', 'fast'})"):
        code = f"{above}@njit{option}\ndef f(A):\n    return A\n"
        assert (FastmathOnly().judge(code, "f") is None) == (option in fine), option


def test_counts_are_compared_with_the_formula():
    from course_lib.grading.rules import CountsOperations

    rule = CountsOperations(multiplications=lambda n: n * n, additions=lambda n: n)
    assert rule.judge((3,), 9, 3) is None
    assert "10 multiplications on this input, more than the 9" in rule.judge((3,), 10, 3)
    assert "2 additions on this input, fewer than the 3" in rule.judge((3,), 9, 2)
    assert CountsOperations(multiplications=lambda n: n).judge((3,), 3, 99) is None


def test_stubs_are_told_from_answers():
    from course_lib.grading.program import is_stub

    stubs = (
        "raise NotImplementedError",
        "raise NotImplementedError()",
        '"""Say what."""\nraise NotImplementedError("not yet")',
        "for a in A:\n    raise NotImplementedError()",
        "...",
        "pass",
        "return ...",
        '"""Say what."""',
        "for k in A:\n    for i in A:\n        raise NotImplementedError\nreturn C",
        "x = 1\nraise NotImplementedError",
    )
    answers = (
        "return A",
        "raise ValueError(A)",
        "try:\n    return A\nexcept E:\n    raise",
        "if len(A) != 3:\n    raise NotImplementedError('3 rows only')\nreturn A",
        "if len(A) == 3:\n    return A\nraise NotImplementedError('3 rows only')",
        "try:\n    return A\nexcept E:\n    raise NotImplementedError",
    )
    for body in (*stubs, *answers):
        code = f"def f(A):\n{textwrap.indent(body, '    ')}\n"
        assert is_stub(code, "f") == (body in stubs), body
