"""Structural rules, judged from source text: ways around them are found, honest answers are left alone."""

import pytest
import rule_texts as texts


def rules(name: str) -> tuple:
    """Return the rules of this name, as the tasks combine them."""
    from course_lib.grading.rules import (
        PRODUCTS,
        WHOLE_ARRAY,
        MustBeCompiled,
        NoCalls,
        NoMemory,
        NoOperator,
        OnlyImports,
    )
    from course_lib.grading.tasks import compiled_loops

    return {
        "compiled loops": tuple(
            rule for rule in compiled_loops.LOOPS_ONLY if not isinstance(rule, MustBeCompiled)
        ),
        "plain Python": (NoOperator("@"), NoCalls(PRODUCTS)),
        "no memory": (NoMemory(),),
        "no products": (NoCalls(PRODUCTS | WHOLE_ARRAY),),
        "no operator": (NoOperator("@"),),
        "a library": (OnlyImports(("numpy", "math", "collections", "itertools", "heapq", "threading")),),
    }[name]


def said(name: str, text: str, closed: bool = True) -> list[str]:
    """Return what the rules say; `closed`: all of the text is the answer's, as in a graded class."""
    from course_lib.grading.program import CLOSED

    whole = f"{CLOSED}\n{text}" if closed else text
    return [words for rule in rules(name) if (words := rule.judge(whole, "f"))]


#: The rules, ways around them, whether all of the text counts, and how a refusal begins or ends.
REFUSED = (
    ("compiled loops", texts.OUT_OF_LOOPS, True, ""),
    ("plain Python", texts.OUT_OF_PYTHON, True, ""),
    ("no memory", texts.KEPT, True, "every call must do all of its work."),
    ("no products", texts.PRODUCTS_IN_DISGUISE, False, "Your answer uses "),
    ("no operator", texts.OPERATORS, False, "Your answer uses "),
)
#: The rules, and what they must leave alone.
FINE = (
    ("compiled loops", texts.HONEST_LOOPS, True),
    ("plain Python", texts.HONEST_PYTHON, True),
    ("a library", texts.HONEST_LIBRARY, True),
    ("no memory", texts.WITHIN_A_CALL, True),
    ("no products", texts.HONEST_PRODUCTS, False),
    ("no operator", texts.HONEST_PRODUCTS, False),
)


@pytest.mark.parametrize(("name", "ways", "closed", "words"), REFUSED, ids=[row[0] for row in REFUSED])
def test_every_way_around_a_rule_is_refused(name, ways, closed, words):
    for way, text in ways.items():
        refusals = said(name, text, closed)
        assert refusals and words in refusals[0], f"{way}: {refusals}"


@pytest.mark.parametrize(
    ("name", "forms", "closed"), FINE, ids=[f"{row[0]}, {n}" for n, row in enumerate(FINE)]
)
def test_what_honest_learners_write_is_left_alone(name, forms, closed):
    for form, text in forms.items():
        assert said(name, text, closed) == [], form


def test_a_refusal_says_what_where_and_why():
    for text, words in (
        (
            "import numpy as np\ndef f(A):\n    return np.fft.fft(A)",
            "numpy.fft.fft in `return np.fft.fft(A)`: this task takes",
        ),
        ("import numpy as np\nd = np.dot\ndef f(A, B):\n    return d(A, B)", "numpy.dot in `"),
        (
            "def f(A):\n    match A:\n        case Exception(__traceback__=tb):\n            return tb\n",
            "__traceback__",
        ),
    ):
        assert said("no products", text, closed=False)[0].startswith(f"Your answer uses {words}"), text
    operator = said("no operator", "def f(A, B):\n    return A @ B", closed=False)
    assert operator[0].startswith("Your answer uses the operator @ in `return A @ B`")


def test_ways_into_the_interpreter_are_refused():
    from course_lib.grading.vocabulary import DODGES

    frames = ("f_locals", "f_globals", "f_builtins", "f_back", "tb_frame", "gi_frame", "cr_frame")
    names = (*frames, "__subclasses__", "__traceback__")
    for name in names:
        assert name in DODGES
        for form in (f"A.{name}", f"getattr(A, '{name}')"):
            assert f"uses {name} in" in said("no products", f"def f(A):\n    return {form}\n", False)[0], form


def test_imports_are_found_and_allowed_ones_are_fine():
    from course_lib.grading.rules import OnlyImports

    for text, module in (
        ("import numpy as np\ndef f(A): return np.abs(A)", "numpy"),
        ("def f(A):\n    import math\n    return math.pi", "math"),
        ("from os.path import join as j\ndef f(A): return j(A)", "os.path"),
        ("from math import *\ndef f(A): return sqrt(A)", "math"),
        (
            "try:\n    import numpy as np\nexcept ImportError:\n    np = None\ndef f(A): return np.abs(A)",
            "numpy",
        ),
        ("import numpy as np\ndef g(A): return np.abs(A)\ndef f(A): return g(A)", "numpy"),
        ("def f(A): return __import__('numpy')", "__import__"),
        # an import is named before what is done with it
        ("def f(x):\n    return torch.softmax(x)\nif f:\n    import torch", "Your answer imports torch"),
    ):
        assert module in OnlyImports().judge(text, "f"), text
    for allowed, text in (
        (("numpy",), "import numpy.linalg as la\ndef f(A): return la.norm(A)"),
        ((), "import numpy as np\ndef f(A): return A\ndef g(A): return np.abs(A)"),
        ((), "from __future__ import annotations\ndef f(A): return A"),
    ):
        assert OnlyImports(allowed).judge(text, "f") is None, text
    behind = OnlyImports(("numpy",)).judge("import numpy as np\ndef f(): return np.ma.core.x('torch')", "f")
    assert behind == (
        "Your answer uses numpy.ma.core.x in `def f(): return np.ma.core.x('torch')`: "
        "this task takes plain Python, and of a library what computes with numbers and arrays."
    )


def test_an_answer_must_be_compiled_itself():
    from course_lib.grading.rules import MustBeCompiled

    for text, fine in (
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
        assert (MustBeCompiled().judge(text, "f") is None) == fine, text


def test_fastmath_may_not_assume_nan_away():
    from course_lib.grading.rules import FastmathOnly

    above = "from numba import njit\nFLAGS = {'contract'}\nLIE = True\nOPTIONS = dict(fastmath=True)\n"
    fine = ("", "(cache=True)", "(fastmath={'contract', 'reassoc'})", "(fastmath=False)")
    fine += ("(fastmath=frozenset({'reassoc'}))", "(fastmath=FLAGS)")
    bad = ("(fastmath=True)", "(fastmath=not False)", "(fastmath={'nnan'})", "(fastmath=LIE)", "(**OPTIONS)")
    for option in (*fine, *bad, "(fastmath={'contract', 'fast'})"):
        text = f"{above}@njit{option}\ndef f(A):\n    return A\n"
        assert (FastmathOnly().judge(text, "f") is None) == (option in fine), option


def test_counts_are_compared_with_the_formula():
    from course_lib.grading.rules import CountsOperations

    rule = CountsOperations(multiplications=lambda n: n * n, additions=lambda n: n)
    assert rule.judge((3,), 9, 3) is None
    assert "10 multiplications on this input, more than the 9" in rule.judge((3,), 10, 3)
    assert "2 additions on this input, fewer than the 3" in rule.judge((3,), 9, 2)
    assert CountsOperations(multiplications=lambda n: n).judge((3,), 3, 99) is None
    assert CountsOperations(lambda n: n, whose="that are enough").judge((3,), 4, 0) == (
        "Your answer did 4 multiplications on this input, more than the 3 that are enough."
    )


def test_stubs_are_told_from_answers():
    from course_lib.grading.program import is_stub

    stubs = (
        "    raise NotImplementedError",
        "    raise NotImplementedError()",
        '    """Say what."""\n    raise NotImplementedError("not yet")',
        "    for a in A:\n        raise NotImplementedError()",
        "    ...",
        "    pass",
        "    return ...",
        '    """Say what."""',
        "    for k in A:\n        for i in A:\n            raise NotImplementedError\n    return C",
        "    x = 1\n    raise NotImplementedError",
    )
    answers = (
        "    return A",
        "    raise ValueError(A)",
        "    try:\n        return A\n    except E:\n        raise",
        "    if len(A) != 3:\n        raise NotImplementedError('3 rows only')\n    return A",
        "    if len(A) == 3:\n        return A\n    raise NotImplementedError('3 rows only')",
        "    try:\n        return A\n    except E:\n        raise NotImplementedError",
    )
    for body in (*stubs, *answers):
        assert is_stub(f"def f(A):\n{body}\n", "f") == (body in stubs), body


#: Bodies of 07.bmm (how they begin is the same for all), and how deep their loops are nested.
NESTS = {
    "four": (
        "for b in range(n):\n for i in range(M):\n  for j in range(N):\n   for k in range(K): C[b,i]+=A[k,j]",
        4,
    ),
    "a slice": ("for b in range(n):\n for i in range(M):\n  for k in range(K): C[b,i]+=A[b,i,k]*B[b,k]", 3),
    "ndindex": ("for b,i,j in np.ndindex(C.shape):\n for k in range(K): C[b,i,j]+=A[b,i,k]*B[b,k,j]", 4),
    "ndindex, bare": ("for at in np.ndindex(n, M, N):\n for k in range(K): C[at]+=A[at[0],at[1],k]", 4),
    "a helper": ("for b in range(n): product(A[b], B[b], C[b])", 4),
    "while": (
        "b=0\nwhile b < n:\n for i in range(M):\n  for k in range(K): C[b,i]+=A[b,i,k]*B[b,k]\n b+=1",
        3,
    ),
    "pairs": ("for a,b,c in zip(A,B,C):\n for k in range(K): c += a[:,k:k+1]*b[k]", 2),
    "all at once": ("for k in range(K): C += A[:,:,k:k+1]*B[:,k:k+1]", 1),
    "idle loops": ("for x in range(1):\n for y in range(M):\n  for k in range(K): C += A[:,:,k:k+1]", 1),
    "none": ("C = A * B", 0),
}
PRODUCT = (
    "def product(A, B, C):\n    for i in range(A.shape[0]):\n        for j in range(B.shape[1]):\n"
    "            for k in range(A.shape[1]):\n                C[i, j] += A[i, k] * B[k, j]\n"
)


def test_loops_are_counted_and_whole_arrays_do_not_stand_for_them():
    from course_lib.grading.loop_nests import depth
    from course_lib.grading.program import Program
    from course_lib.grading.rules import NestedLoops

    for name, (body, deep) in NESTS.items():
        lines = "\n".join(f"    {line}" for line in body.splitlines())
        text = f"{PRODUCT}\ndef bmm(A, B):\n{lines}\n    return C\n"
        assert depth(Program(text, "bmm")) == deep, name
        wanted = None if deep >= 3 else f"The deepest nest of loops in your answer has {deep}: write four."
        assert NestedLoops(3, "write four").judge(text, "bmm") == wanted, name
