"""Tasks of chapter 01: the triple loop in plain Python."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from course_lib.grading.compare import close, close_product, exact
from course_lib.grading.rules import PRODUCTS, CountsOperations, NoCalls, NoOperator, OnlyImports
from course_lib.grading.task import Case, Code, Lookalike, Mutant, SpeedRule, Task, source

Rows = list[list[float]]


def product(A: Rows, B: Rows) -> Rows:
    """Return the product of two lists of lists, exactly as defined, each entry rounded once."""
    return [
        [math.fsum(a * b for a, b in zip(row, col, strict=True)) for col in zip(*B, strict=True)] for row in A
    ]


def rows(rng: np.random.Generator, M: int, N: int) -> Rows:
    """Return M rows of N random floats, none of them 0, in no order that a mistake could keep."""
    return (rng.uniform(0.5, 2.0, (M, N)) * rng.choice([-1.0, 1.0], (M, N))).round(2).tolist()


def pair(rng: np.random.Generator, M: int, K: int, N: int) -> tuple[Rows, Rows]:
    """Return A (M, K) and B (K, N)."""
    return rows(rng, M, K), rows(rng, K, N)


def product_cases(rng: np.random.Generator) -> Iterator[Case]:
    """Yield rectangular, square, thin and empty matrices, small ones first."""
    yield Case(pair(rng, 3, 3, 3), "A 3 x 3, B 3 x 3")
    yield Case(pair(rng, 2, 3, 4), "A 2 x 3, B 3 x 4")
    yield Case(pair(rng, 1, 5, 1), "A 1 x 5, B 5 x 1")
    yield Case(pair(rng, 4, 1, 3), "A 4 x 1, B 1 x 3")
    yield Case(pair(rng, 1, 1, 1), "A 1 x 1, B 1 x 1")
    yield Case(([], rows(rng, 3, 2)), "A without rows, B 3 x 2: the result has no rows")
    yield Case((rows(rng, 3, 2), [[], []]), "A 3 x 2, B 2 x 0: the result has three empty rows")
    M, K, N = (int(n) for n in rng.permutation([5, 7, 11]))
    yield Case(pair(rng, M, K, N), f"A {M} x {K}, B {K} x {N}")


PRODUCT_SLIPS = (
    Lookalike("This is B times A: the operands are swapped.", lambda A, B: product(B, A)),
    Lookalike(
        "This is A times the transpose of B: you multiply rows by rows, but the definition pairs a row of A "
        "with a column of B.",
        lambda A, B: product(A, [list(col) for col in zip(*B, strict=True)]),
    ),
    Lookalike(
        "The first product of every sum is missing: the sum over k begins at 0.",
        lambda A, B: product([row[1:] for row in A], B[1:]),
    ),
    Lookalike(
        "The last product of every sum is missing: the sum over k has K terms.",
        lambda A, B: product([row[:-1] for row in A], B[:-1]),
    ),
    Lookalike(
        "Only the last product of every sum is there: add to the sum (+=) instead of replacing it.",
        lambda A, B: product([row[-1:] for row in A], B[-1:]),
    ),
    Lookalike(
        "Only the first product of every sum is there: does the function return too early?",
        lambda A, B: product([row[:1] for row in A], B[:1]),
    ),
)


# --- 01.count -----------------------------------------------------------------------------------------------


def operations(M: int, K: int, N: int) -> tuple[int, int]:
    """Return (multiplications, additions) of an M x K by K x N product, by the definition."""
    return M * N * K, M * N * max(K - 1, 0)


def _sizes(rng: np.random.Generator) -> Iterator[Case]:
    for M, K, N in ((2, 3, 4), (1, 1, 1), (5, 1, 2), (100, 200, 300), (4, 0, 3), (0, 5, 2)):
        yield Case((M, K, N), f"{M} x {K} by {K} x {N}")
    for _ in range(4):
        M, K, N = (int(n) for n in rng.choice(np.arange(2, 500), 3, replace=False))
        yield Case((M, K, N), f"{M} x {K} by {K} x {N}")


COUNT = Task(
    id="01.count",
    title="Count the operations",
    kind="predict",
    points=1,
    difficulty=1,
    minutes=5,
    good_for="knowing the work before you run it",
    entry="operations",
    cases=_sizes,
    reference=operations,
    comparison=exact(("multiplications", "additions")),
    lookalikes=(
        Lookalike(
            "One addition too many per element: the first product has nothing to be added to, so K products "
            "need K - 1 additions.",
            lambda M, K, N: (M * N * K, M * N * K),
        ),
        Lookalike(
            "The two numbers are swapped: multiplications come first.",
            lambda M, K, N: operations(M, K, N)[::-1],
        ),
        Lookalike(
            "The number of additions is negative: with K = 0 there is nothing to add, and that is 0.",
            lambda M, K, N: (M * N * K, M * N * (K - 1)) if K == 0 else None,
        ),
        Lookalike(
            "Those are the elements of the result. Each of them is a sum of K products.",
            lambda M, K, N: (M * N, M * N),
        ),
    ),
    hints=(
        "How many elements has the result, and how many products are summed for one of them?",
        "M * N elements, K products each. Put plus signs between K products: how many do you need? And if "
        "K is 0?",
        "Return M * N * K and M * N * max(K - 1, 0).",
    ),
    mutants=(
        Mutant(
            "K additions",
            source("""
            def operations(M, K, N):
                return M * N * K, M * N * K
        """),
            ("K - 1",),
        ),
        Mutant(
            "swapped",
            source("""
            def operations(M, K, N):
                return M * N * (K - 1), M * N * K
        """),
            ("swapped",),
        ),
        Mutant(
            "negative",
            source("""
                def operations(M, K, N):
                    return M * N * K, M * N * (K - 1)
            """),
            ("negative", "K = 0"),
        ),
        Mutant(
            "per element",
            source("""
                def operations(M, K, N):
                    return M * N, M * N
            """),
            ("elements of the result",),
        ),
        Mutant(
            "one number",
            source("""
            def operations(M, K, N):
                return 2 * M * N * K
        """),
            ("tuple of 2",),
        ),
        Mutant(
            "K from the wrong side",
            source("""
                def operations(M, K, N):
                    return M * N * K, M * K * max(N - 1, 0)
            """),
            ("additions", "expected"),
        ),
    ),
)


# --- 01.dot -------------------------------------------------------------------------------------------------


def dot(row: list[float], col: list[float]) -> float:
    """Return the sum of the products of the pairs in (row, col)."""
    return math.fsum(a * b for a, b in zip(row, col, strict=True))


def _vectors(rng: np.random.Generator) -> Iterator[Case]:
    for K in (2, 3, 1, 7, 31):
        row, col = rows(rng, 2, K)
        yield Case((row, col), f"two lists of {K}")
    yield Case(([], []), "two empty lists: an empty sum is 0")


DOT = Task(
    id="01.dot",
    title="For pair in (row, col)",
    kind="complete",
    points=1,
    difficulty=1,
    minutes=5,
    good_for="the innermost loop, the one that takes all the time",
    entry="dot",
    cases=_vectors,
    reference=dot,
    comparison=close(rtol=1e-12, atol=1e-12),
    rules=(OnlyImports(), NoOperator("@")),
    counts=CountsOperations(
        multiplications=lambda row, col: len(row), wanted="one multiplication for each pair"
    ),
    lookalikes=(
        Lookalike(
            "Only the last pair is in the result: add to the total (+=) instead of replacing it.",
            lambda row, col: row[-1] * col[-1] if len(row) > 1 else None,
        ),
        Lookalike(
            "Only the first pair is in the result: does the function return inside the loop?",
            lambda row, col: row[0] * col[0] if len(row) > 1 else None,
        ),
        Lookalike("The pairs are added; they have to be multiplied.", lambda row, col: sum(row) + sum(col)),
        Lookalike(
            "The products are multiplied with each other; they have to be added up.",
            lambda row, col: math.prod(row) * math.prod(col),
        ),
        Lookalike("The total stays 0: is anything added to it?", lambda row, col: 0.0),
    ),
    hints=(
        "What happens to one pair (a, b), and where does the result of it go?",
        "Multiply the two numbers of the pair and add the product to the running total.",
        "total += a * b",
    ),
    mutants=(
        Mutant(
            "replaces the total",
            source("""
                def dot(row, col):
                    total = 0.0
                    for a, b in zip(row, col):
                        total = a * b
                    return total
            """),
            ("last pair", "+="),
        ),
        Mutant(
            "adds instead of multiplying",
            source("""
                def dot(row, col):
                    total = 0.0
                    for a, b in zip(row, col):
                        total += a + b
                    return total
            """),
            ("have to be multiplied",),
        ),
        Mutant(
            "multiplies the total",
            source("""
                def dot(row, col):
                    total = 0.0
                    for a, b in zip(row, col):
                        total *= a * b
                    return total
            """),
            ("stays 0",),
        ),
        Mutant(
            "returns in the loop",
            source("""
                def dot(row, col):
                    total = 0.0
                    for a, b in zip(row, col):
                        total += a * b
                        return total
                    return total
            """),
            ("first pair", "return"),
        ),
        Mutant(
            "forgets to return",
            source("""
                def dot(row, col):
                    total = 0.0
                    for a, b in zip(row, col):
                        total += a * b
            """),
            ("None", "return"),
        ),
        Mutant(
            "imports it",
            source("""
                from math import fsum
                def dot(row, col):
                    return fsum(a * b for a, b in zip(row, col))
            """),
            ("imports math",),
        ),
    ),
)


# --- 01.matmul ----------------------------------------------------------------------------------------------

_LOOPS = """\
def matmul(A, B):
    M, K, N = len(A), len(B), len(B[0])
    C = {C}
    for i in range({M}):
        for j in range({N}):
            for k in range({K}):
                {step}
    return {result}
"""


def _loops(**changes: str) -> str:
    """Return a triple loop with some of its parts changed."""
    parts = {
        "C": "[[0.0] * N for _ in range(M)]",
        "M": "M",
        "N": "N",
        "K": "K",
        "step": "C[i][j] += A[i][k] * B[k][j]",
        "result": "C",
    }
    return _LOOPS.format(**{**parts, **changes})


MATMUL = Task(
    id="01.matmul",
    title="Write the triple loop",
    kind="write",
    points=3,
    difficulty=2,
    minutes=15,
    good_for="having written, once, what every later circle makes fast",
    entry="matmul",
    cases=product_cases,
    reference=product,
    comparison=close_product(),
    rules=(OnlyImports(), NoOperator("@"), NoCalls(PRODUCTS)),
    counts=CountsOperations(
        multiplications=lambda A, B: len(A) * len(B) * len(B[0]),
        wanted="exactly M * N * K multiplications",
    ),
    lookalikes=PRODUCT_SLIPS,
    hints=(
        "Which numbers of A and B does the one element C[i][j] need? Say it in words before you write a "
        "loop.",
        "For row in A, for col in B: each element is the sum over the pairs in (row, col). zip(*B) gives the "
        "columns of B; your `dot` adds up the pairs.",
        "return [[dot(row, col) for col in zip(*B)] for row in A]  (or three loops over indices i, j, k).",
    ),
    mutants=(
        Mutant("rows by rows", _loops(step="C[i][j] += A[i][k] * B[j % K][k % N]"), ("wrong",)),
        Mutant(
            "A times B transposed",
            source("""
                def matmul(A, B):
                    return [[sum(a * b for a, b in zip(row, other)) for other in B] for row in A]
            """),
            ("rows by rows",),
        ),
        Mutant(
            "transposed result",
            source("""
                def matmul(A, B):
                    return [[sum(a * b for a, b in zip(row, col)) for row in A] for col in zip(*B)]
            """),
            ("transposed",),
        ),
        Mutant("B times A", _loops(step="C[i][j] += B[i % K][k % N] * A[k % M][j % K]"), ("swapped",)),
        Mutant("one list for all rows", _loops(C="[[0.0] * N] * M"), ("rows of your result are the same",)),
        Mutant("sum starts at 1", _loops(K="1, K"), ("first product", "missing")),
        Mutant("sum stops early", _loops(K="K - 1"), ("last product", "missing")),
        Mutant(
            "replaces instead of adding", _loops(step="C[i][j] = A[i][k] * B[k][j]"), ("last product", "+=")
        ),
        Mutant("forgets the last column", _loops(N="N - 1"), ("last column",)),
        Mutant("forgets to return", _loops(result="None"), ("None", "return")),
        Mutant("shape from A", _loops(N="K"), ("column",)),
        Mutant(
            "uses up its input",
            source("""
                def matmul(A, B):
                    C = []
                    for row in A:
                        C.append([sum(a * b for a, b in zip(row, col)) for col in zip(*B)])
                        row.reverse()
                    return C
            """),
            ("changed its input",),
        ),
        Mutant(
            "returns tuples",
            source("""
                def matmul(A, B):
                    return tuple(tuple(sum(a * b for a, b in zip(row, col)) for col in zip(*B)) for row in A)
            """),
            ("tuple", "list of lists"),
        ),
        Mutant(
            "NumPy does it",
            source("""
                import numpy as np
                def matmul(A, B):
                    return (np.array(A) @ np.array(B)).tolist()
            """),
            ("imports numpy",),
        ),
        Mutant(
            "twice the work",
            source("""
                def matmul(A, B):
                    C = []
                    for row in A:
                        C.append([sum(a * b for a, b in zip(row, col)) for col in zip(*B)])
                        [a * b for a, b in zip(row, row)]
                    return C
            """),
            ("multiplications", "more than"),
        ),
        Mutant(
            "no rows, no answer",
            source("""
                def matmul(A, B):
                    K = len(A[0])
                    return [[sum(row[k] * B[k][j] for k in range(K)) for j in range(len(B[0]))] for row in A]
            """),
            ("IndexError", "without rows"),
        ),
    ),
)


# --- 01.alias -----------------------------------------------------------------------------------------------

BROKEN = """\
def broken(A, B):
    M, K, N = len(A), len(B), len(B[0])
    C = [[0.0] * M] * N
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i][j] += A[i][k] * B[k][j]
    return C
"""


def _repaired(C: str) -> str:
    return BROKEN.replace("broken", "repaired").replace("[[0.0] * M] * N", C)


ALIAS = Task(
    id="01.alias",
    title="Find the two bugs",
    kind="debug",
    points=2,
    difficulty=2,
    minutes=10,
    good_for="names and objects: what managed memory does behind your back",
    entry="repaired",
    cases=product_cases,
    reference=product,
    comparison=close_product(),
    rules=(OnlyImports(), NoOperator("@"), NoCalls(PRODUCTS)),
    lookalikes=PRODUCT_SLIPS,
    hints=(
        "Take A and B of 2 x 2. Print C after every change of one element: how many elements change?",
        "[x] * n does not make n lists, it makes n references to one list. And which of M and N is the "
        "number "
        "of rows?",
        "C = [[0.0] * N for _ in range(M)]",
    ),
    mutants=(
        Mutant("nothing repaired", _repaired("[[0.0] * M] * N"), ("rows of your result are the same",)),
        Mutant("dimensions only", _repaired("[[0.0] * N] * M"), ("rows of your result are the same",)),
        Mutant("rows only", _repaired("[[0.0] * M for _ in range(N)]"), ("IndexError", "line")),
        Mutant(
            "a shallow copy of the outer list",
            _repaired("list([[0.0] * N] * M)"),
            ("rows of your result are the same",),
        ),
        Mutant(
            "one row more",
            _repaired("[[0.0] * N for _ in range(max(M, N))]"),
            ("shape", "needed"),
        ),
    ),
)


# --- 01.faster ----------------------------------------------------------------------------------------------

INDEXED = Code(
    """\
def matmul_indexed(A, B):
    M, K, N = len(A), len(B), len(B[0])
    C = [[0.0] * N for _ in range(M)]
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i][j] += A[i][k] * B[k][j]
    return C
""",
    "matmul_indexed",
)

FASTER = Task(
    id="01.faster",
    title="As fast as Python goes",
    kind="fast",
    points=3,
    difficulty=3,
    minutes=25,
    good_for="seeing what a loop costs besides its arithmetic, and where plain Python ends",
    entry="matmul_fast",
    cases=product_cases,
    reference=product,
    comparison=close_product(),
    rules=(OnlyImports(), NoOperator("@"), NoCalls(PRODUCTS)),
    speed=SpeedRule(
        baseline=INDEXED,
        make_inputs=lambda rng: pair(rng, 61, 67, 59),
        thresholds=((1.3, 0.5), (1.8, 1.0)),
        points=2,
        flops=lambda A, B: 2 * len(A) * len(B) * len(B[0]),
    ),
    lookalikes=PRODUCT_SLIPS,
    hints=(
        "Per inner step the baseline looks up four lists by index to do one multiplication. Which "
        "look-ups give "
        "the same object again and again?",
        "Loop over the numbers, not over indices (zip), and keep the sum in a local name: that is about "
        "1.6x. "
        "Then let one pass over a row serve several columns, so that the cost of a loop step is shared.",
        "for a, b0, b1, b2, b3 in zip(row, *columns[j:j + 4]): c0 += a * b0; c1 += a * b1; … and the columns "
        "that are left over one by one.",
    ),
    mutants=(
        Mutant(
            "the baseline itself", INDEXED.text.replace("matmul_indexed", "matmul_fast"), ("1.3x", "baseline")
        ),
        Mutant(
            "drops the columns left over",
            source("""
                def matmul_fast(A, B):
                    columns, C = list(zip(*B)), []
                    for row in A:
                        out = []
                        for j in range(0, len(columns) - 1, 2):
                            c0 = c1 = 0.0
                            for a, b0, b1 in zip(row, *columns[j:j + 2]):
                                c0 += a * b0
                                c1 += a * b1
                            out += [c0, c1]
                        C.append(out)
                    return C
            """),
            ("shape", "needed"),
        ),
        Mutant(
            "NumPy does it",
            source("""
                import numpy as np
                def matmul_fast(A, B):
                    return np.dot(A, B).tolist()
            """),
            ("imports numpy",),
        ),
        Mutant(
            "columns used up",
            source("""
                def matmul_fast(A, B):
                    columns = zip(*B)
                    return [[sum([a * b for a, b in zip(row, col)]) for col in columns] for row in A]
            """),
            ("Row 1", "row 0"),
        ),
    ),
)


# --- 01.predict_time ----------------------------------------------------------------------------------------


def extrapolate(sizes: list[float], seconds: list[float], N: float) -> tuple[float, float]:
    """Return the exponent of the power law through the points (least squares in logs) and the time at N."""
    slope, offset = np.polyfit(np.log(sizes), np.log(seconds), 1)
    return float(slope), float(np.exp(offset) * N**slope)


def _timings(rng: np.random.Generator) -> Iterator[Case]:
    plain = [8.0, 16.0, 32.0, 64.0]
    yield Case((plain, [1e-9 * n**3 for n in plain], 500.0), "an exact cubic law, 1 ns per step")
    for exponent, count in ((3.0, 5), (2.0, 4), (2.81, 7), (1.0, 3)):
        sizes = sorted(float(n) for n in rng.choice(np.arange(10, 400), count, replace=False))
        noise = rng.uniform(0.75, 1.35, count)
        seconds = [float(3e-8 * n**exponent * e) for n, e in zip(sizes, noise, strict=True)]
        yield Case((sizes, seconds, 1024.0), f"{count} noisy timings")
    yield Case(([100.0, 200.0], [0.5, 4.1], 50.0), "two points, N below them")


PREDICT_TIME = Task(
    id="01.predict_time",
    title="How long would a large one take?",
    kind="open",
    points=2,
    difficulty=3,
    minutes=20,
    good_for="reading an exponent off your own timings, and knowing when not to wait",
    entry="extrapolate",
    cases=_timings,
    reference=extrapolate,
    comparison=close(rtol=1e-6, parts=("exponent", "seconds at N")),
    rules=(OnlyImports(("math", "numpy")),),
    lookalikes=(
        Lookalike(
            "The exponent is fixed at 3: fit it to the timings, they may follow another law.",
            lambda sizes, seconds, N: (
                3.0,
                float(np.exp(np.mean(np.log(seconds) - 3 * np.log(sizes))) * N**3),
            ),
        ),
        Lookalike(
            "Only the first and the last point are used: noise in one of them spoils the fit. Use all "
            "points.",
            lambda sizes, seconds, N: _two_points(sizes, seconds, N, 0),
        ),
        Lookalike(
            "Only the last two points are used: noise in one of them spoils the fit. Use all points.",
            lambda sizes, seconds, N: _two_points(sizes, seconds, N, -2),
        ),
        Lookalike(
            "This is a straight line through the times themselves. A power law is straight in the "
            "logarithms.",
            lambda sizes, seconds, N: _line(sizes, seconds, N),
        ),
        Lookalike(
            "The second number is the logarithm of the time: take exp of it.",
            lambda sizes, seconds, N: (
                extrapolate(sizes, seconds, N)[0],
                math.log(extrapolate(sizes, seconds, N)[1]),
            ),
        ),
    ),
    hints=(
        "If t = c * N^p, what is log t? Which kind of curve is that in log N?",
        "log t = log c + p * log N is a straight line: fit one through (log N, log t) by least squares. Its "
        "slope is p.",
        "slope, offset = np.polyfit(np.log(sizes), np.log(seconds), 1); the time at N is exp(offset) * N "
        "** slope.",
    ),
    mutants=(
        Mutant(
            "straight line in the times",
            source("""
                import numpy as np
                def extrapolate(sizes, seconds, N):
                    slope, offset = np.polyfit(sizes, seconds, 1)
                    return slope, offset + slope * N
            """),
            ("straight line", "logarithms"),
        ),
        Mutant(
            "the exponent is 3 anyway",
            source("""
                import numpy as np
                def extrapolate(sizes, seconds, N):
                    c = np.exp(np.mean(np.log(seconds) - 3 * np.log(sizes)))
                    return 3.0, c * N ** 3
            """),
            ("fixed at 3",),
        ),
        Mutant(
            "first and last point only",
            source("""
                from math import log
                def extrapolate(sizes, seconds, N):
                    p = log(seconds[-1] / seconds[0]) / log(sizes[-1] / sizes[0])
                    return p, seconds[0] * (N / sizes[0]) ** p
            """),
            ("first and the last point",),
        ),
        Mutant(
            "last two points only",
            source("""
                from math import log
                def extrapolate(sizes, seconds, N):
                    p = log(seconds[-1] / seconds[-2]) / log(sizes[-1] / sizes[-2])
                    return p, seconds[-2] * (N / sizes[-2]) ** p
            """),
            ("last two points",),
        ),
        Mutant(
            "forgets exp",
            source("""
                import numpy as np
                def extrapolate(sizes, seconds, N):
                    slope, offset = np.polyfit(np.log(sizes), np.log(seconds), 1)
                    return slope, offset + slope * np.log(N)
            """),
            ("logarithm of the time",),
        ),
        Mutant(
            "mixes log and log10",
            source("""
                import numpy as np
                def extrapolate(sizes, seconds, N):
                    slope, offset = np.polyfit(np.log10(sizes), np.log10(seconds), 1)
                    return slope, np.exp(offset) * N ** slope
            """),
            ("seconds at N",),
        ),
    ),
)


def _two_points(sizes: list[float], seconds: list[float], N: float, first: int) -> tuple[float, float] | None:
    if len(sizes) < 3:
        return None
    p = math.log(seconds[-1] / seconds[first]) / math.log(sizes[-1] / sizes[first])
    return p, seconds[first] * (N / sizes[first]) ** p


def _line(sizes: list[float], seconds: list[float], N: float) -> tuple[float, float]:
    slope, offset = np.polyfit(sizes, seconds, 1)
    return float(slope), float(offset + slope * N)


TASKS = (COUNT, DOT, MATMUL, ALIAS, FASTER, PREDICT_TIME)
