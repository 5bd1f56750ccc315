"""Rules judged from source text: what is forbidden is found in every disguise, the rest is left alone."""

import pytest

from course_lib.grading.program import is_stub
from course_lib.grading.rules import (
    PRODUCTS,
    WHOLE_ARRAY,
    CountsOperations,
    FastmathOnly,
    MustBeCompiled,
    NoCalls,
    NoOperator,
    OnlyImports,
)
from course_lib.grading.task import source

NO_PRODUCTS = NoCalls(PRODUCTS | WHOLE_ARRAY)

#: Ways to let a library multiply; each defines f.
DISGUISES = {
    "call": "import numpy as np\ndef f(A, B): return np.dot(A, B)",
    "method": "def f(A, B): return A.dot(B)",
    "alias": "import numpy as np\nd = np.dot\ndef f(A, B): return d(A, B)",
    "alias of an alias": "import numpy as np\nd = np.dot\ne = d\ndef f(A, B): return e(A, B)",
    "alias of the module": "import numpy as np\nn = np\ndef f(A, B): return n.dot(A, B)",
    "import as": "from numpy import dot as harmless\ndef f(A, B): return harmless(A, B)",
    "import inside": "def f(A, B):\n    from numpy import dot as d\n    return d(A, B)",
    "submodule": "from numpy.linalg import multi_dot as m\ndef f(A, B): return m([A, B])",
    "star": "from numpy import *\ndef f(A, B): return dot(A, B)",
    "getattr": "import numpy as np\ndef f(A, B): return getattr(np, 'dot')(A, B)",
    "getattr, glued": "import numpy as np\ndef f(A, B): return getattr(np, 'd' + 'ot')(A, B)",
    "getattr, f-string": "import numpy as np\ndef f(A, B): return getattr(np, f'd{\"ot\"}')(A, B)",
    "getattr, computed": "import numpy as np\ndef f(A, B): return getattr(np, 'tod'[::-1])(A, B)",
    "getattr, alias": "import numpy as np\ng = getattr\ndef f(A, B): return g(np, 'dot')(A, B)",
    "getattr, renamed": "import numpy as np\ng = getattr\nh = g\ndef f(A): return h(np, 'tod'[::-1])(A)",
    "dunder dict": "import numpy as np\ndef f(A, B): return np.__dict__['dot'](A, B)",
    "vars": "import numpy as np\ndef f(A, B): return vars(np)['dot'](A, B)",
    "operator": "import operator\ndef f(A, B): return operator.matmul(A, B)",
    "operator, imported": "from operator import matmul as m\ndef f(A, B): return m(A, B)",
    "dunder": "def f(A, B): return A.__matmul__(B)",
    "dunder, right": "def f(A, B): return B.__rmatmul__(A)",
    "dunder, by class": "import numpy as np\ndef f(A, B): return np.ndarray.__matmul__(A, B)",
    "einsum": "import numpy as np\ndef f(A, B): return np.einsum('ik,kj', A, B)",
    "tensordot": "import numpy as np\ndef f(A, B): return np.tensordot(A, B, 1)",
    "inner": "import numpy as np\ndef f(A, B): return np.inner(A, B.T)",
    "vdot": "import numpy as np\ndef f(A, B): return [[np.vdot(r, c) for c in B.T] for r in A]",
    "vecdot": "import numpy as np\ndef f(A, B): return np.vecdot(A[:, None], B.T)",
    "sum": "import numpy as np\ndef f(A, B): return (A[:, :, None] * B).sum(axis=1)",
    "add.reduce": "import numpy as np\ndef f(A, B): return np.add.reduce(A[:, :, None] * B, axis=1)",
    "multiply": "import numpy as np\ndef f(A, B): return [[sum(np.multiply(r, c)) for c in B.T] for r in A]",
    "helper": "import numpy as np\ndef g(A, B): return np.dot(A, B)\ndef f(A, B): return g(A, B)",
    "helper of a helper": "def h(A, B): return A.dot(B)\ndef g(A, B): return h(A, B)\ndef f(A, B): return "
    "g(A, B)",
    "nested function": "def f(A, B):\n    def g(): return A.dot(B)\n    return g()",
    "lambda": "import numpy as np\ng = lambda A, B: np.dot(A, B)\ndef f(A, B): return g(A, B)",
    "default argument": "import numpy as np\ndef f(A, B, m=np.dot): return m(A, B)",
    "table": "import numpy as np\nt = {'x': np.dot}\ndef f(A, B): return t['x'](A, B)",
    "table, filled later": "import numpy as np\nt = []\nt.append(np.dot)\ndef f(A, B): return t[0](A, B)",
    "attribute, set later": "import numpy as np\ndef g(): pass\ng.m = np.dot\ndef f(A, B): return g.m(A, B)",
    "setattr": "import numpy as np\ndef g(): pass\nsetattr(g, 'm', np.dot)\ndef f(A, B): return g.m(A, B)",
    "defaults, set later": "import numpy as np\ndef f(A, B, m=None): return m(A, B)\nf.__defaults__ = "
    "(np.dot,)",
    "decorator": "import numpy as np\ndef d(g): return np.dot\n@d\ndef f(A, B): pass",
    "entry replaced": "import numpy as np\ndef f(A, B): return [[0]]\nf = np.dot",
    "entry replaced in an if": "import numpy as np\ndef f(A, B): return [[0]]\nif True:\n    f = np.dot",
    "entry replaced in a try": "import numpy as np\ndef f(A, B): return 0\ntry:\n    f = np.dot\nexcept "
    "E: pass",
    "class": "class M:\n    def go(self, A, B): return A.dot(B)\ndef f(A, B): return M().go(A, B)",
    "walrus": "import numpy as np\ndef f(A, B): return (m := np.dot)(A, B)",
    "tuple assignment": "import numpy as np\na, m = 1, np.dot\ndef f(A, B): return m(A, B)",
    "eval": "def f(A, B): return eval('A' + chr(64) + 'B')",
    "exec": "def f(A, B):\n    exec('C = A' + chr(64) + 'B')\n    return C",
    "eval, alias": "e = eval\ndef f(A, B): return e('A' + chr(64) + 'B')",
    "importlib": "import importlib\ndef f(A, B): return importlib.import_module('numpy')",
    "dunder import": "def f(A, B): return __import__('numpy')",
    "ctypes": "import ctypes\ndef f(A, B): return ctypes.CDLL('blas').dgemm(A, B)",
    "methodcaller": "from operator import methodcaller\ndef f(A, B): return methodcaller('do' 't', B)(A)",
    "globals": "def f(A, B): return globals()['n' + 'p'](A, B)",
    "object mode": "from numba import njit, objmode\n@njit\ndef f(A, B):\n    with objmode(): pass",
    "scipy": "from scipy.linalg.blas import dgemm\ndef f(A, B): return dgemm(1.0, A, B)",
    "torch": "import torch\ndef f(A, B): return torch.mm(A, B)",
}


@pytest.mark.parametrize("text", DISGUISES.values(), ids=DISGUISES)
def test_a_disguised_product_is_found(text):
    said = NO_PRODUCTS.judge(text, "f")
    assert said is not None
    assert said.startswith("Your answer uses ")


#: Operators in disguise; each defines f.
OPERATORS = {
    "plain": "def f(A, B): return A @ B",
    "in place": "def f(A, B):\n    A @= B\n    return A",
    "in a helper": "def g(A, B): return A @ B\ndef f(A, B): return g(A, B)",
    "in a lambda": "g = lambda A, B: A @ B\ndef f(A, B): return g(A, B)",
    "in a comprehension": "def f(A, B): return [row @ B for row in A]",
    "by function": "import operator as o\ndef f(A, B): return o.matmul(A, B)",
    "by function, in place": "from operator import imatmul as o\ndef f(A, B): return o(A, B)",
    "by name": "def f(A, B): return getattr(A, '__matmul__')(B)",
}


@pytest.mark.parametrize("text", OPERATORS.values(), ids=OPERATORS)
def test_the_operator_is_found_by_every_name(text):
    assert NoOperator("@").judge(text, "f") is not None


#: Honest answers that only look suspicious; each defines f.
HONEST = {
    "an own function called dot": "def dot(r, c):\n    t = 0\n    for a, b in zip(r, c): t += a * b\n    "
    "return t\n"
    "def f(A, B): return [[dot(r, c) for c in zip(*B)] for r in A]",
    "an own variable called inner": "def f(A, B):\n    inner = 0\n    for a in A: inner += a\n    return "
    "inner",
    "an argument called outer": "def f(outer, B): return outer",
    "the word in a docstring": 'def f(A, B):\n    """Like np.dot, without @."""\n    return 0',
    "the docstring is the word": 'def f(A, B):\n    """dot"""\n    return 0',
    "a decorator is no product": "from numba import njit\n@njit\ndef f(A, B): return 0",
    "a product elsewhere": "import numpy as np\ndef f(A, B): return 0\ndef experiment(A, B): return A @ "
    "B, np.dot(A, B)",
    "a check in another cell": "import numpy as np\ndef f(A, B): return 0\nC = f(1, 2)\nD = np.dot(3, "
    "4)\nassert C == D",
    "another function's variable": "import numpy as np\ndef f(A, B):\n    t = 0\n    return t\n"
    "def g(A, B):\n    t = np.dot(A, B)\n    return t",
    "loops": "import numpy as np\ndef f(A, B):\n    C = np.zeros((2, 2))\n    for i in range(2): C[i, 0] "
    "+= A[i, 0]\n"
    "    return C",
}


@pytest.mark.parametrize("text", HONEST.values(), ids=HONEST)
def test_honest_answers_are_left_alone(text):
    assert NO_PRODUCTS.judge(text, "f") is None
    assert NoOperator("@").judge(text, "f") is None


def test_the_message_names_what_was_used_and_where():
    said = NO_PRODUCTS.judge("import numpy as np\nd = np.dot\ndef f(A, B):\n    return d(A, B)", "f")
    assert "numpy.dot in `" in said
    assert (
        NoOperator("@")
        .judge("def f(A, B):\n    return A @ B", "f")
        .startswith("Your answer uses the operator @ in `return A @ B`")
    )


@pytest.mark.parametrize(
    ("text", "module"),
    [
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
    ],
)
def test_imports_are_found(text, module):
    assert module in OnlyImports().judge(text, "f")


def test_allowed_and_unused_imports_are_fine():
    assert (
        OnlyImports(("numpy",)).judge("import numpy.linalg as la\ndef f(A): return la.norm(A)", "f") is None
    )
    assert (
        OnlyImports().judge("import numpy as np\ndef f(A): return A\ndef g(A): return np.abs(A)", "f") is None
    )
    assert OnlyImports().judge("from __future__ import annotations\ndef f(A): return A", "f") is None


@pytest.mark.parametrize(
    ("text", "fine"),
    [
        ("from numba import njit\n@njit\ndef f(A): return A", True),
        ("import numba as nb\n@nb.njit(cache=True)\ndef f(A): return A", True),
        ("from numba import njit as fast\n@fast(fastmath={'contract'})\ndef f(A): return A", True),
        ("from numba import njit\ncompiled = njit(nogil=True)\n@compiled\ndef f(A): return A", True),
        ("from numba import njit\ndef g(A): return A\nf = njit(g)", True),
        ("def f(A): return A", False),
        ("from numba import njit\n@njit\ndef g(A): return A\ndef f(A): return g(A)", False),
        ("from numba import jit\n@jit(forceobj=True)\ndef f(A): return A", False),
        ("from functools import cache\n@cache\ndef f(A): return A", False),
    ],
)
def test_must_be_compiled(text, fine):
    said = MustBeCompiled().judge(text, "f")
    assert (said is None) == fine, said


@pytest.mark.parametrize(
    ("option", "fine"),
    [
        ("", True),
        ("(cache=True)", True),
        ('(fastmath={"contract", "reassoc"})', True),
        ("(fastmath=False)", True),
        ("(fastmath=frozenset({'reassoc'}))", True),
        ("(fastmath=FLAGS)", True),
        ("(fastmath=True)", False),
        ("(fastmath=not False)", False),
        ("(fastmath={'nnan'})", False),
        ("(fastmath={'contract', 'fast'})", False),
        ("(fastmath=LIE)", False),
        ("(**OPTIONS)", False),
    ],
)
def test_fastmath_may_not_assume_nan_away(option, fine):
    text = source(f"""
        from numba import njit
        FLAGS = {{"contract"}}
        LIE = True
        OPTIONS = dict(fastmath=True)
        @njit{option}
        def f(A):
            return A
    """)
    assert (FastmathOnly().judge(text, "f") is None) == fine


def test_counts_are_compared_with_the_formula():
    rule = CountsOperations(multiplications=lambda n: n * n, additions=lambda n: n)
    assert rule.judge((3,), 9, 3) is None
    assert "10 multiplications on this input, more than the 9" in rule.judge((3,), 10, 3)
    assert "2 additions on this input, fewer than the 3" in rule.judge((3,), 9, 2)
    assert CountsOperations(multiplications=lambda n: n).judge((3,), 3, 99) is None
    assert CountsOperations(lambda n: n, whose="that are enough").judge((3,), 4, 0) == (
        "Your answer did 4 multiplications on this input, more than the 3 that are enough."
    )


@pytest.mark.parametrize(
    ("body", "stub"),
    [
        ("    raise NotImplementedError", True),
        ("    raise NotImplementedError()", True),
        ('    """Say what."""\n    raise NotImplementedError("not yet")', True),
        ("    for a in A:\n        raise NotImplementedError()", True),
        ("    ...", True),
        ("    pass", True),
        ("    return ...", True),
        ('    """Say what."""', True),
        ("    return A", False),
        ("    raise ValueError(A)", False),
        ("    try:\n        return A\n    except E:\n        raise", False),
    ],
)
def test_stubs_are_told_from_answers(body, stub):
    assert is_stub(f"def f(A):\n{body}\n", "f") == stub
