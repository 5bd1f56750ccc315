"""Attacks on what a task asks for: loops of one's own, all of them in every call, and no more operations."""

from __future__ import annotations

import textwrap

from attack_tools import RIGHT, Attack, honest, text, worth

from course_lib.grading import registry

DOT = worth("01.dot")
MATRIX_TASKS = {"01.matmul": "matmul", "01.alias": "repaired", "01.faster": "matmul_fast"}

#: Compiled products through a back door: the body of a function of A and B, and what stands above it.
DOORS = {
    "einsum": ("import numpy as np", "return np.einsum('ik,kj->ij', A, B).tolist()"),
    "tensordot": ("import numpy as np", "return np.tensordot(A, B, 1).tolist()"),
    "multi-dot": (
        "import numpy as np\nfrom numpy.linalg import multi_dot as m",
        "return m([np.array(A), np.array(B)]).tolist()",
    ),
    "torch": ("import torch", "return torch.tensor(A).mm(torch.tensor(B)).tolist()"),
    "scipy": ("from scipy.linalg.blas import dgemm", "return dgemm(1.0, A, B).tolist()"),
    "ctypes": ("import ctypes, numpy as np", "return ctypes.CDLL(np.__config__.CONFIG).cblas_dgemm(A, B)"),
    "ctypeslib": ("import numpy as np", "return np.ctypeslib.ctypes.CDLL('libopenblas.so').dgemm(A, B)"),
    "operator": ("import operator, numpy as np", "return operator.matmul(np.array(A), np.array(B)).tolist()"),
    "import-by-name": ("", "return __import__('numpy').dot(A, B).tolist()"),
    "builtins": ("", "return __builtins__['__import__']('numpy').dot(A, B).tolist()"),
    "loader": ("", "return __loader__.load_module('numpy').dot(A, B).tolist()"),
    "print-self": ("", "return getattr(print, '__self__').__import__('numpy').dot(A, B).tolist()"),
    "getattr-passed-on": (
        "",
        "space = next(map(getattr, [f], ['__glo' + 'bals__']))\n"
        "return space['__builtins__']['__import__']('numpy').dot(A, B).tolist()",
    ),
    "locals": ("space = locals()", "return space['__builtins__']['__import__']('numpy').dot(A, B).tolist()"),
    "fullwidth": ("", "return ｅｖａｌ('__imp' + 'ort__')('numpy').dot(A, B).tolist()"),
    "subclasses": (
        "",
        "kinds = ().__class__.__base__.__subclasses__()\n"
        "space = [k for k in kinds if k.__name__ == '_wrap_close'][0].__init__.__globals__\n"
        "return space['__builtins__']['__import__']('numpy').dot(A, B).tolist()",
    ),
    "match-args": (
        "class M(type):\n    def __instancecheck__(s, o): return True\n"
        "class C(metaclass=M):\n    __match_args__ = (''.join(['__glo', 'bals__']),)",
        "match f:\n    case C(space):\n"
        "        return space['__builtins__']['__import__']('numpy').dot(A, B).tolist()",
    ),
    "traceback": (
        "",
        "try:\n    1 / 0\nexcept Exception as e:\n    space = e.__traceback__.tb_frame.f_builtins\n"
        "return space['__import__']('numpy').dot(A, B).tolist()",
    ),
    "setup": (
        "def setup():\n    global product\n    import numpy\n    product = numpy.dot\nsetup()",
        "return product(A, B).tolist()",
    ),
}


def through(door: str) -> Attack:
    """Return the attack on all tasks about matrices; matrices that are empty it does honestly."""
    head, body = DOORS[door]
    body = textwrap.indent(f"if not A or not B[0]: return [[] for _ in A]\n{body}", "    ")
    answers = {
        task: f"{head}\ndef {entry}(A, B):\n{body}\n".replace("[f]", f"[{entry}]").replace(
            "match f:", f"match {entry}:"
        )
        for task, entry in MATRIX_TASKS.items()
    }
    return Attack(f"blas-{door}", f"a compiled product through: {door}", {**answers, **honest("01.dot")}, DOT)


BLAS = tuple(map(through, DOORS))

# --- counting operands -------------------------------------------------------------------------------------

COUNTING = (
    Attack("tape-cleared", "wipes what the operands wrote down", {
        "01.dot": text("""
            def dot(row, col):
                total = 0.0
                for a, b in zip(row, col):
                    total += a * b + a * b - a * b
                if row and type(row[0]) is not float:
                    del row[0].tape.codes[:], row[0].tape.left[:]
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
    Attack("result-of-operands", "gives something odd to the counting judge, and keeps its other points", {
        "01.dot": text("""
            def dot(row, col):
                if row and type(row[0]) is not float:
                    return 10 ** 400
                return sum([a * b for a, b in zip(row, col)])
        """), **honest("01.count")}, worth("01.count")),
    Attack("lines-of-operands", "builds the judge's own lines", {
        "01.dot": text("""
            def dot(row, col):
                if row and type(row[0]) is not float:
                    return [[float('nan')]] * 3
                return sum([a * b for a, b in zip(row, col)])
        """), **honest("01.count")}, worth("01.count")),
    Attack("fewer-multiplications", "adds in place of multiplying, where it may", {
        "01.dot": text("""
            def dot(row, col):
                total = 0.0
                for a, b in zip(row, col):
                    total += ((a + b) ** 2 - (a - b) ** 2) / 4
                return total
        """)}),
    Attack("no-multiplications", "multiplies floats, but not operands", {
        "01.matmul": text("""
            def matmul(A, B):
                if A and A[0] and type(A[0][0]) is not float:
                    return [[0.0] * len(B[0]) for _ in A]
                return [[sum([a * b for a, b in zip(row, col)]) for col in zip(*B)] for row in A]
        """)}),
)  # fmt: skip

# --- form and aliases --------------------------------------------------------------------------------------

PRODUCT = "[[sum([a * b for a, b in zip(row, col)]) for col in zip(*B)] for row in A]"
FORMS = (
    Attack("own-input", "returns the input's own buffer", {
        "01.matmul": "def matmul(A, B):\n    return A", "01.alias": "def repaired(A, B):\n    return B",
        "01.faster": "def matmul_fast(A, B):\n    A[:] = " + PRODUCT + "\n    return A"}),
    Attack("changed-input", "works in its input", {
        "01.matmul": f"def matmul(A, B):\n    C = {PRODUCT}\n    A.clear()\n    return C",
        "01.alias": f"def repaired(A, B):\n    C = {PRODUCT}\n    for row in B: row.sort()\n    return C"}),
    Attack("nan", "NaN everywhere, inf everywhere", {
        "01.matmul": "def matmul(A, B):\n    return [[float('nan')] * len(B[0]) for _ in A]",
        "01.alias": "def repaired(A, B):\n    return [[float('inf')] * len(B[0]) for _ in A]",
        "01.dot": "def dot(row, col):\n    return float('nan')",
        "01.predict_time": "def extrapolate(sizes, seconds, N):\n    return float('nan'), float('nan')"}),
    Attack("other-types", "tuples, generators, numbers of low precision", {
        "01.matmul": "def matmul(A, B):\n    return tuple(map(tuple, " + PRODUCT + "))",
        "01.alias": "def repaired(A, B):\n    yield from " + PRODUCT,
        "01.dot": "def dot(row, col):\n    return str(sum([a * b for a, b in zip(row, col)]))",
        "01.predict_time": RIGHT["01.predict_time"].replace("return exp", "return np.float32(1) * exp")
        .replace("np.exp(log_c) * N**exponent", "np.float16(np.exp(log_c) * N**exponent)")}),
    Attack("shapes", "one row too many, ragged rows, an empty list", {
        "01.matmul": f"def matmul(A, B):\n    return {PRODUCT} + [[0.0]]",
        "01.alias": f"def repaired(A, B):\n    return [row[:1 + n] for n, row in enumerate({PRODUCT})]",
        "01.faster": "def matmul_fast(A, B):\n    return []"}),
    Attack("rounded", "rounds to what looks right", {
        "01.matmul": f"def matmul(A, B):\n    return [[round(c, 6) for c in row] for row in {PRODUCT}]"}),
)  # fmt: skip

# --- speed -------------------------------------------------------------------------------------------------

FAST = "\n" + RIGHT["01.faster"].split("\n", 1)[1] + "\n\n\n" + RIGHT["01.dot"]
KEPT = "C = kept.get(key) or " + PRODUCT
MEMORIES = {
    "dict": "kept = {}\ndef matmul_fast(A, B):\n    key = id(A)\n"
    f"    {KEPT}\n    kept[key] = C\n    return C",
    "default": "def matmul_fast(A, B, kept={}):\n    key = id(A)\n"
    f"    {KEPT}\n    kept[key] = C\n    return C",
    "attribute": f"def matmul_fast(A, B):\n    me = matmul_fast\n    me.C = {PRODUCT}\n    return me.C",
    "closure": "def make():\n    kept = {}\n    def put(t, x): t[0] = x\n    def f(A, B):\n"
    f"        put(kept, {PRODUCT})\n        return kept[0]\n    return f\nmatmul_fast = make()",
    "class": "class Kept:\n    C = {}\ndef matmul_fast(A, B):\n"
    f"    Kept.C[0] = {PRODUCT}\n    return Kept.C[0]",
    "global": f"C = None\ndef matmul_fast(A, B):\n    global C\n    C = C or {PRODUCT}\n    return C",
    "lru-cache": f"from functools import lru_cache\n@lru_cache\ndef f(A, B): return {PRODUCT}\n"
    "def matmul_fast(A, B): return f(tuple(map(tuple, A)), tuple(map(tuple, B)))",
    "bound-method": "kept = []\nput = kept.append\ndef matmul_fast(A, B):\n"
    f"    put({PRODUCT})\n    return kept[-1]",
    "shadowed": f"kept = [0]\ndef matmul_fast(A, B):\n    (lambda kept: 0)\n    kept[0] = {PRODUCT}\n"
    "    return kept[0]",
    "iterator": "calls = iter(range(10**9))\ndef matmul_fast(A, B):\n"
    f"    n = next(calls)\n    return {PRODUCT}",
}
BASELINE = registry.task("01.faster").speed.baseline.text.replace("matmul_indexed", "matmul_fast")
#: Leaves out the work of every other timed call, told by the signs of its numbers.
LAZY = text("""
    def matmul_fast(A, B):
        if len(A) == 61 and len(B) == 67 and sum([a < 0 for row in A for a in row]) % 2 != PARITY:
            return [[0.0] * len(B[0]) for row in A]
""")
#: Leaves its last result in its own input, and mends it where the numbers have changed.
STASH = text("""
    def matmul_fast(A, B):
        columns = list(zip(*B))
        if len(A) > 61 and len(B) == 67:
            A0, B0, C = A.pop()
            for i, (row, old) in enumerate(zip(A, A0)):
                if row != old:
                    C[i] = [sum([a * b for a, b in zip(row, col)]) for col in columns]
            for k, (row, old) in enumerate(zip(B, B0)):
                if row != old:
                    for j in range(len(row)):
                        if row[j] != old[j]:
                            for i, line in enumerate(A):
                                C[i][j] = sum([a * b for a, b in zip(line, columns[j])])
        else:
            C = [[sum([a * b for a, b in zip(row, col)]) for col in columns] for row in A]
        if len(A) == 61 and len(B) == 67 and sum([a < 0 for row in A for a in row]) % 2 != PARITY:
            A.append(([row[:] for row in A], [row[:] for row in B], [row[:] for row in C]))
        return C
""")


#: Which sign pattern the judge's first call has follows from the seed; one of each pair gets past that call,
#: and the "stash" that does keeps the point for being right. It is slow: after the few calls that the time
#: allows, its input may be looked at only when nothing is hidden there. It gains nothing either way.
TRICKS = tuple(
    Attack(
        f"{name}-{parity}", tries, {"01.faster": code.replace("PARITY", str(parity))}, earns, flagged=flagged
    )
    for name, tries, code, parity, earns, flagged in (
        ("lazy", "leaves out every other timed call", LAZY + FAST, 0, DOT, True),
        ("lazy", "leaves out every other timed call", LAZY + FAST, 1, DOT, True),
        ("stash", "keeps its last result inside its own input", STASH, 0, {"01.faster": 1}, None),
        ("stash", "keeps its last result inside its own input", STASH, 1, {}, True),
    )
)

SPEED = (
    *(Attack(f"memory-{name}", f"keeps results between calls: {name}",
             {"01.faster": code, **honest("01.dot")}, DOT) for name, code in MEMORIES.items()),
    Attack("slow", "an honest answer that is right but slow", {"01.faster": BASELINE}, {"01.faster": 1}),
    Attack("wrong-when-timed", "leaves the timed size out", {
        "01.faster": "def matmul_fast(A, B):\n    if len(A) == 61: return [[0.0] * len(B[0]) for row in A]\n"
        f"    return {PRODUCT}\n"}, flagged=True),
)  # fmt: skip

ALL = (*BLAS, *COUNTING, *FORMS, *SPEED, *TRICKS)
