"""What honest learners write stays allowed, however strict the rules are with the rest."""

import pytest
from attack_tools import HEAD, LOOPS_ONLY, PLAIN

from course_lib.grading.memory import kept
from course_lib.grading.program import CLOSED, Program
from course_lib.grading.rules import MustBeCompiled, OnlyImports
from course_lib.grading.task import source


def with_options(options: str) -> str:
    return HEAD.replace("@njit", f"@njit({options})")


#: Each defines f.
COMPILED = {
    "types as text": with_options("'float64[:, ::1](float64[:, ::1], float64[:, ::1])'"),
    "types by name": "from numba import float64\n" + with_options("float64[:, :](float64[:, :])"),
    "types in a list": with_options("['float32(float32, float32)', 'f8(f8, f8)']"),
    "options": with_options("fastmath={'contract'}, cache=True, parallel=True, error_model='numpy'"),
    "compiled later": "from numba import njit\ndef g(A, B): return A\nf = njit(g)",
    "a compiler of its own": "from numba import njit\nfast = njit(nogil=True)\n@fast\ndef f(A, B): return A",
    "prange": source("""
        import numba as nb
        @nb.njit(parallel=True)
        def f(A, B):
            for i in nb.prange(3):
                A[i] = 0
            return A
    """),
    "arrays": HEAD
    + source("""
        @njit
        def f(A, B):
            C = np.zeros((2, 2), np.float32)
            C.fill(0)
            D = np.empty_like(C.T.copy()).astype(np.float64).ravel().reshape(2, 2)
            if np.isnan(C).any() or C.dtype != D.dtype or np.abs(C).max() > np.finfo(C.dtype).eps:
                raise ValueError("odd")
            return np.ascontiguousarray(D), C.shape[0], C.size, C.strides, C.itemsize
    """),
    "checks of shape": HEAD
    + source("""
        def f(A, B):
            if A.ndim != 2 or A.shape[1] != B.shape[0]:
                raise ValueError("shapes {} and {}".format(A.shape, B.shape))
    """),
    "math": HEAD + "import math\ndef f(A, B): return math.sqrt(math.fabs(A)) + math.inf",
}
PYTHON = {
    "lists and texts": source("""
        def f(A, B):
            C = []
            C.append(A)
            C.extend(B)
            d = {}
            d.setdefault(1, []).append(", ".join(map(str, C)).strip().split())
            return sorted(d.items(), key=lambda pair: pair[0])
    """),
    "operators as methods": "def f(A, B): return [list(map(float.__mul__, A, c)) for c in zip(*B)]",
    "a class": source("""
        class M:
            def __init__(self, rows):
                self.rows = rows
                self._n = len(rows)
            def __getitem__(self, i):
                return self.rows[i]
            def __len__(self):
                return self._n
        def f(A, B):
            return M(A).rows
    """),
    "the type of a value": "def f(A, B): return type(A)(B) if type(A) is list else isinstance(B, tuple)",
    "names of builtins": source("""
        def f(A, B):
            input = A[0]
            vars = [input for open in B]
            return [type for type in vars]
    """),
    "a pattern": source("""
        def f(A, B):
            match A:
                case int(n) | float(n): return n
                case [first, *rest]: return first
                case {"a": x}: return x
    """),
    "the usual end": "def f(A, B): return A\nif __name__ == '__main__':\n    print(f(1, 2))",
    "a generator": source("""
        def g(A):
            yield from A
        def f(A, B):
            it = g(A)
            return next(it), it.send(None)
    """),
    "exceptions": source("""
        def f(A, B):
            try:
                return A[0]
            except (IndexError, TypeError) as error:
                print(error.args)
                raise ValueError(str(error)) from error
    """),
}


def judged(rules, text: str) -> list[str]:
    return [said for rule in rules if (said := rule.judge(f"{CLOSED}\n{text}", "f"))]


@pytest.mark.parametrize("text", COMPILED.values(), ids=COMPILED)
def test_compiled_loops_may_use_what_is_usual(text):
    assert judged(LOOPS_ONLY, text) == []


@pytest.mark.parametrize("text", PYTHON.values(), ids=PYTHON)
def test_plain_python_may_use_what_is_usual(text):
    assert judged(PLAIN, text) == []


#: With a library that may do the work; each defines f.
LIBRARY = {
    "a class and containers": source("""
        import collections, itertools, heapq
        class Cache:
            def __init__(self, ways):
                self.lines = collections.OrderedDict()
                self.ways = ways
        def f(A, B):
            heap = [Cache(A).ways, B]
            heapq.heapify(heap)
            return list(itertools.chain(heap, Cache(A).lines)), itertools.islice(heap, 2)
    """),
    "NumPy's own sums": source("""
        import numpy as np
        def f(A, B):
            slope, start = np.polyfit(np.log(A), np.log(B), 1)
            return np.linalg.norm(A @ B), np.cumsum(A).std(), np.add.reduce(A), np.einsum("i,i", A, B), slope
    """),
    "windows": source("""
        from numpy.lib.stride_tricks import as_strided, sliding_window_view
        import numpy.linalg as la
        def f(A, B): return as_strided(A, (2, 2), (8, 8)), sliding_window_view(B, 3), la.solve(A, B)
    """),
    "locks": source("""
        import threading
        lock = threading.Lock()
        def f(A, B):
            with lock:
                threads = [threading.Thread(target=print, args=(n,)) for n in range(A)]
            for thread in threads:
                thread.start()
            return [thread.join() for thread in threads], lock.acquire(), lock.release(), lock.locked()
    """),
}


@pytest.mark.parametrize("text", LIBRARY.values(), ids=LIBRARY)
def test_a_library_may_compute_where_it_is_allowed(text):
    allowed = OnlyImports(("numpy", "math", "collections", "itertools", "heapq", "threading"))
    assert judged((allowed,), text) == []


def test_a_compiler_of_its_own_counts_as_one():
    assert judged((MustBeCompiled(),), COMPILED["a compiler of its own"]) == []


#: Work within one call; each defines f.
WITHIN = {
    "tables of constants": source("""
        ORDER = [0, 1, 2]
        NAMES = {"a": 1}
        STEP = 4
        PAIR = (1, -2)
        def f(A, B):
            for n in ORDER:
                A = NAMES["a"] + ORDER[n] + len(ORDER) + STEP + PAIR[0] + NAMES.get("b", 0)
            return A
    """),
    "helpers": source("""
        def g(t, x):
            t.append(x)
            return t
        def f(A, B):
            out = []
            g(out, A)
            return out
    """),
    "inner helpers": source("""
        def f(A, B):
            out, columns = [], list(zip(*B))
            def add(row):
                out.append([row, columns])
            for row in A:
                add(row)
            return out
    """),
    "comprehensions": source("""
        def f(A, B):
            cols = [list(c) for c in zip(*B)]
            return [[sum(a * b for a, b in zip(r, c)) for c in cols] for r in A]
    """),
    "names for methods": source("""
        def f(A, B):
            out = []
            add = out.append
            for row in A:
                add(row)
            return out
    """),
    "functions as values": "def g(x): return x\ndef f(A, B): return list(map(g, A))",
    "iterators": "def f(A, B):\n    rows = iter(A)\n    first = next(rows)\n    return [first, *rows]",
}


@pytest.mark.parametrize("text", WITHIN.values(), ids=WITHIN)
def test_work_within_a_call_is_no_memory(text):
    assert list(kept(Program(f"{CLOSED}\n{text}", "f"))) == []
