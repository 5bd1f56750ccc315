"""Tasks of chapter 02: the same loop compiled, its order, and what limits it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.grading.compare import close, close_product, exact
from course_lib.grading.language import LOOPS, Language
from course_lib.grading.tape import CountsOperations
from course_lib.grading.task import Case, Code, SpeedRule, Task, source
from course_lib.measure import roofline

Array = np.ndarray

LOOPS_ONLY = (LOOPS,)


def product(A: Array, B: Array) -> Array:
    """Return A @ B, summed in float64 by the definition, in the dtype of A; NaN and inf as IEEE has them."""
    C = np.zeros((A.shape[0], B.shape[1]))
    with np.errstate(invalid="ignore"):  # 0 * inf is meant
        for k in range(A.shape[1]):
            C += A[:, k, None].astype(np.float64) * B[k].astype(np.float64)
    return C.astype(A.dtype)


def skipping_zeros(A: Array, B: Array) -> Array:
    """Return the product that leaves out the terms in which A is 0: wrong where B is inf or NaN."""
    terms = np.where(A[:, :, None] == 0, 0.0, A[:, :, None] * B[None])  # (M, K, N)
    return terms.sum(axis=1)


def matrix(rng: np.random.Generator, *shape: int, dtype: str = "float64") -> Array:
    """Return random numbers, none of them 0, C order."""
    values = rng.uniform(0.5, 2.0, shape) * rng.choice([-1.0, 1.0], shape)
    return np.ascontiguousarray(values, dtype=dtype)


def pair(rng: np.random.Generator, M: int, K: int, N: int, dtype: str = "float64") -> tuple[Array, Array]:
    """Return A (M, K) and B (K, N)."""
    return matrix(rng, M, K, dtype=dtype), matrix(rng, K, N, dtype=dtype)


def sizes(rng: np.random.Generator, low: int, high: int, count: int = 3) -> tuple[int, ...]:
    """Return different sizes from low to high - 1, in random order."""
    return tuple(int(n) for n in rng.choice(np.arange(low, high), count, replace=False))


def case(rng: np.random.Generator, M: int, K: int, N: int, what: str = "", dtype: str = "float64") -> Case:
    """Return a product of an M x K matrix with a K x N one; `what` is added to its label."""
    label = f"{dtype}, A {M} x {K}, B {K} x {N}{what and ': '}{what}"
    return Case(pair(rng, M, K, N, dtype), label, guard=True)


def shapes(rng: np.random.Generator) -> Iterator[Case]:
    """Yield float64 matrices in C order: square, wide, thin, tall, empty, and two that are larger."""
    low, middle, high = sorted(sizes(rng, 2, 7))
    for shape in ((3, 3, 3), (low, middle, middle + 1), (1, 2 * middle + 1, 1), (high, 1, low)):
        yield case(rng, *shape)
    for M, K, N, what in ((3, 0, 2, "an empty sum is 0"), (0, 3, 2, "no rows"), (2, 3, 0, "no columns")):
        yield case(rng, M, K, N, what)
    for shape in (sizes(rng, 11, 24), sizes(rng, 40, 80)):
        yield case(rng, *shape)


def all_inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield what `shapes` has, then NaN and inf, float32, and views that are not contiguous."""
    yield from shapes(rng)
    yield Case(_not_finite(rng), "float64 with NaN and inf: 0 * inf is NaN, and NaN stays NaN", guard=True)
    yield Case(_zero_meets_inf(rng), "float64, 0 in A meets inf in B and the other way round", guard=True)
    yield case(rng, *sizes(rng, 5, 14), "the result is float32", "float32")
    M, K, N = sizes(rng, 4, 9)
    views = matrix(rng, 2 * M, 3 * K)[::2, ::3], matrix(rng, N, K).T
    yield Case(views, "views: every 2nd row and 3rd column of A, B transposed", guard=True)


def _not_finite(rng: np.random.Generator) -> tuple[Array, Array]:
    A, B = pair(rng, 5, 4, 6)
    A[0, 1], A[2, 2], A[3, 0] = 0.0, np.nan, np.inf
    B[1, 3], B[0, 5], B[3, 4] = np.inf, 0.0, -np.inf
    return A, B


def _zero_meets_inf(rng: np.random.Generator) -> tuple[Array, Array]:
    """Return matrices in which 0 meets inf, from either side, at an even, an odd and the last k of 5."""
    A, B = pair(rng, 6, 5, 6)
    for n, k in enumerate((0, 1, 4)):
        A[n, k], B[k, n] = 0.0, (-1) ** n * np.inf
        A[3 + n, k], B[k, 3 + n] = (-1) ** n * np.inf, 0.0
    return A, B


PRODUCT_SLIPS = {
    "This is B times A: the operands are swapped.": lambda A, B: product(B, A),
    "This is A times the transpose of B: B is indexed [j, k].": lambda A, B: product(A, B.T),
    "The first product of every sum is missing: the sum over k begins at 0.": (
        lambda A, B: product(A[:, 1:], B[1:])
    ),
    "The last product of every sum is missing: the sum over k has K terms.": (
        lambda A, B: product(A[:, :-1], B[:-1])
    ),
    "Only the last product of every sum is there: add (+=) instead of replacing.": (
        lambda A, B: product(A[:, -1:], B[-1:])
    ),
    "Only the first product of every sum is there: does the function return inside a loop?": (
        lambda A, B: product(A[:, :1], B[:1])
    ),
    "After the first row all is 0: does the function return inside a loop?": (
        lambda got, A, B: len(got) > 1 and got[0].any() and not got[1:].any()
    ),
    "Where A has a 0 you skip the product, but 0 * inf and 0 * NaN are NaN: the definition has no "
    "exception.": lambda A, B: skipping_zeros(A, B) if (A == 0).any() else None,
}

#: What the tasks that ask for a product of any two matrices share.
PRODUCT = {
    "cases": all_inputs,
    "reference": product,
    "comparison": close_product(),
    "rules": LOOPS_ONLY,
    "arithmetic": "Rows",
    "lookalikes": PRODUCT_SLIPS,
}


def loops(name: str, order: str, options: str = "") -> Code:
    """Return a product in compiled loops, in an order of i, j and k."""
    first, second, third = (f"for {index} in range({dict(i='M', j='N', k='K')[index]}):" for index in order)
    text = f"""
        import numpy as np
        from numba import njit

        @njit{options}
        def {name}(A, B):
            M, K = A.shape
            N = B.shape[1]
            C = np.zeros((M, N), A.dtype)
            {first}
                {second}
                    {third}
                        C[i, j] += A[i, k] * B[k, j]
            return C
    """
    return Code(source(text), name)


# --- 02.strides: how far the innermost loop jumps in memory, for each loop order ----------------------------


def inner_bytes(order: str, M: int, K: int, N: int, itemsize: int) -> tuple[int, int, int]:
    """Return by how many bytes A, B and C move per step of the innermost loop, all in C order."""
    axes = {"A": ("i", "k", K), "B": ("k", "j", N), "C": ("i", "j", N)}
    inner = order[-1]
    moves = {
        name: columns * itemsize if inner == row else itemsize if inner == col else 0
        for name, (row, col, columns) in axes.items()
    }
    return moves["A"], moves["B"], moves["C"]


def _orders(rng: np.random.Generator) -> Iterator[Case]:
    orders = ("ijk", "ikj", "jki", "jik", "kij", "kji")
    for order, itemsize in zip(orders, rng.permutation((2, 4, 8) * 2), strict=True):
        yield Case((order, *sizes(rng, 2, 4000), int(itemsize)), f"the order {order}")


def _fortran(order: str, M: int, K: int, N: int, itemsize: int) -> tuple[int, int, int]:
    """Return the jumps of column-major matrices: those of the transposed product, B^T A^T, in C order."""
    swapped = order.translate(str.maketrans("ij", "ji"))
    B, A, C = inner_bytes(swapped, N, K, M, itemsize)
    return A, B, C


STRIDES = Task(
    id="02.strides",
    title="How far does each step jump?",
    points=2,
    difficulty=2,
    minutes=10,
    cases=_orders,
    reference=inner_bytes,
    comparison=exact(("A", "B", "C")),
    rules=(Language(("math", "numpy")),),
    lookalikes={
        "Those are numbers, not bytes: each of them takes itemsize bytes.": (
            lambda order, M, K, N, itemsize: inner_bytes(order, M, K, N, 1)
        ),
        "A number need not take 8 bytes: use itemsize.": (
            lambda order, M, K, N, itemsize: inner_bytes(order, M, K, N, 8)
        ),
        "A number need not take 4 bytes: use itemsize.": (
            lambda order, M, K, N, itemsize: inner_bytes(order, M, K, N, 4)
        ),
        "That is the outermost loop. Which letter of the order is the innermost?": (
            lambda order, M, K, N, itemsize: inner_bytes(order[::-1], M, K, N, itemsize)
        ),
        "That would be column-major (Fortran) order. In C order the last index is the contiguous one.": (
            _fortran
        ),
        "A is M x K: its rows have K numbers.": (
            lambda order, M, K, N, itemsize: inner_bytes(order, M, N, N, itemsize)
        ),
        "A step along a column jumps over one row: count the numbers in a row, not the rows.": (
            lambda order, M, K, N, itemsize: inner_bytes(order, K, M, K, itemsize)
        ),
    },
    hints=(
        "C[i, j] of an M x N matrix in C order: at which byte, counted from the start, does it lie?",
        "At itemsize * (i * N + j). If the innermost index is j, that grows by itemsize; if it is i, by a "
        "row; if it is k, not at all. A (M, K) and B (K, N) in the same way.",
        "inner = order[-1]; A: {'i': K, 'k': 1}.get(inner, 0) * itemsize, and so on for B and C.",
    ),
)


# --- 02.order: the loops in the order k, i, j ---------------------------------------------------------------

ORDER = Task(
    id="02.order",
    title="Turn the loops around",
    points=1,
    difficulty=1,
    minutes=10,
    entry="matmul_kij",
    **PRODUCT | {"arithmetic": "Numbers"},
    counts=CountsOperations(order="kij", most_numbers=1000),
    hints=(
        "k and i are given. Which numbers of A, B and C have to do with this pair (k, i)?",
        "A[i, k] is one number; it scales the whole row k of B, and the result is added to row i of C. The "
        "loop that is missing runs along those rows.",
        "for j in range(N): C[i, j] += A[i, k] * B[k, j]",
    ),
)


# --- 02.matmul: a compiled product that is right for every input --------------------------------------------

MATMUL = Task(
    id="02.matmul",
    title="Compile your own matmul",
    points=3,
    difficulty=3,
    minutes=20,
    entry="matmul",
    **PRODUCT,
    hints=(
        "Which shape and which dtype has the result, and what must stand in it before the first += ?",
        "np.zeros((M, N), A.dtype), then three loops. fastmath may fuse and reorder, but it must not promise "
        "that there are no NaN and inf.",
        '@njit(fastmath={"contract", "reassoc"}), then for i, for k, for j: C[i, j] += A[i, k] * B[k, j].',
    ),
)


# --- 02.fast: the same three loops, several times as fast ---------------------------------------------------

FAST = Task(
    id="02.fast",
    title="Let the hardware walk straight",
    points=4,
    difficulty=3,
    minutes=15,
    entry="matmul_fast",
    speed=SpeedRule(
        baseline=loops("matmul_ijk", "ijk"),
        make_inputs=lambda rng: pair(rng, 384, 384, 384, "float32"),
        thresholds=((3.0, 1 / 3), (8.0, 1.0)),
        points=3,
        fastest=30.0,
        on_the_way="j belongs innermost, as a loop of its own: a slice makes a new row each time.",
    ),
    **PRODUCT,
    hints=(
        "The baseline walks down a column of B: how many of the 16 numbers in each fetched cache line "
        "does it use?",
        "Put j innermost: then B and C are walked contiguously and the compiler can use whole vector "
        "registers. Allow it to fuse a product and a sum into one instruction.",
        '@njit(fastmath={"contract", "reassoc"}) and the order i, k, j, with a = A[i, k] taken out of the '
        "inner loop.",
    ),
)


# --- 02.bug: two bugs that compiled code does not report ----------------------------------------------------

BUG = Task(
    id="02.bug",
    title="Right by luck",
    points=2,
    difficulty=3,
    minutes=20,
    entry="repaired",
    **PRODUCT,
    hints=(
        "What stands in C before the first += ? And which k does the last step of the loop use when K is 3?",
        "np.empty gives memory with whatever was in it. A loop in steps of two needs an even number of "
        "steps, or a step of one for the rest.",
        "np.zeros, range(0, K - 1, 2), and after it: if K % 2 == 1, add A[i, K - 1] * B[K - 1, j] for "
        "every j.",
    ),
)


# --- 02.roofline: the speed that memory and arithmetic allow ------------------------------------------------


def attainable(intensity: float, peak_gflops: float, gbps: float) -> tuple[float, str]:
    """Return the GFLOP/s the roofline allows, and what limits: "memory" below the ridge, else "compute"."""
    bounds = intensity, peak_gflops, gbps
    return roofline.attainable(*bounds), roofline.limit(*bounds)


def _kernels(rng: np.random.Generator) -> Iterator[Case]:
    yield Case((0.5, 100.0, 20.0), "a loop that moves more than it computes")
    yield Case((0.083, 100.0, 20.0), "the inner step of ikj with nothing in cache")
    yield Case((64.0, 100.0, 20.0), "a product of large matrices, well blocked")
    yield Case((5.0, 100.0, 20.0), "exactly at the ridge: the peak is reached")
    below_one, above_one = (0.05, 0.9), (1.1, 40)
    for intensities in (below_one, above_one):  # on both sides of the ridge, far from it and close to it
        for peaks in ((1.2, 9), (0.1, 0.8), (1.001, 1.01), (0.99, 0.999)):
            intensity, gbps, peak = (rng.uniform(*span) for span in (intensities, (8, 400), peaks))
            values = (intensity, peak * intensity * gbps, gbps)
            yield Case(tuple(round(float(value), 6) for value in values), "a kernel")


ROOFLINE = Task(
    id="02.roofline",
    title="Is this the end, right?",
    points=2,
    difficulty=2,
    minutes=10,
    cases=_kernels,
    reference=attainable,
    comparison=close(rtol=1e-9, parts=("GFLOP/s", "limit")),
    rules=(Language(("math", "numpy")),),
    lookalikes={
        "Your result exceeds the peak: no kernel computes faster than the machine.": (
            lambda intensity, peak, gbps: (
                (intensity * gbps, attainable(intensity, peak, gbps)[1]) if intensity * gbps > peak else None
            )
        ),
        "You took the higher roof; the lower one limits.": (
            lambda got, intensity, peak, gbps: (
                intensity * gbps != peak and got[0] == max(intensity * gbps, peak)
            )
        ),
        "The bound by memory is intensity * bandwidth: FLOP/byte times GB/s. You divide.": (
            lambda intensity, peak, gbps: (
                min(gbps / intensity, peak),
                "memory" if gbps / intensity < peak else "compute",
            )
        ),
        "You divide the intensity by the bandwidth; FLOP/byte times GB/s is GFLOP/s.": (
            lambda got, intensity, peak, gbps: (
                np.isclose(got[0], min(intensity / gbps, peak)) and intensity / gbps < peak
            )
        ),
        "Only where both bounds meet: the task says compute there.": (
            lambda intensity, peak, gbps: (peak, "memory") if intensity * gbps == peak else None
        ),
        "The words are swapped: left of the ridge memory is what limits.": (
            lambda intensity, peak, gbps: (
                attainable(intensity, peak, gbps)[0],
                "compute" if intensity * gbps < peak else "memory",
            )
        ),
    },
    hints=(
        "A kernel that does `intensity` FLOP for each byte, on a machine that moves `gbps` GB per second: "
        "how many FLOP can it do per second at most, if arithmetic cost nothing?",
        "intensity * gbps is the roof set by memory, peak_gflops the one set by arithmetic. The lower "
        "roof limits.",
        'by_memory = intensity * gbps; return (by_memory, "memory") if by_memory < peak_gflops '
        'else (peak_gflops, "compute").',
    ),
)


#: In the order of the chapter.
TASKS = (STRIDES, ORDER, MATMUL, FAST, BUG, ROOFLINE)
