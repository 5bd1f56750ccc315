"""Tasks of chapter 02: the same loop compiled, its order, and what limits it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from course_lib.grading.compare import close, close_product, exact, same
from course_lib.grading.inputs import Choice, between, every_pair
from course_lib.grading.language import LOOPS, Language
from course_lib.grading.task import Case, Code, SpeedRule, Task, source
from course_lib.grading.tasks import yours
from course_lib.grading.tasks.python_loops import EARLY, SPOILED, sizes, spoiled, stops_early

Array = np.ndarray
Choices = Sequence[Choice]
#: None, one, fewer than a tile, in fours 0 to 3 left over, more than a block of 64 or 128, and whole blocks.
SIDES = (0, 1, 2, 3, between(4, 8), between(8, 24), between(65, 96), between(129, 160), 256)

LOOPS_ONLY = (LOOPS,)


def product(A: Array, B: Array) -> Array:
    """Return A @ B, summed in float64 by the definition, in the dtype of A; NaN and inf as IEEE has them."""
    C = np.zeros((A.shape[0], B.shape[1]))
    with np.errstate(invalid="ignore"):  # 0 * inf is meant
        for k in range(A.shape[1]):
            C += A[:, k, None].astype(np.float64) * B[k].astype(np.float64)
    return C.astype(A.dtype)


def steps_over_zeros(got: Array, A: Array, B: Array) -> bool:
    """Say whether numbers stand where a 0 beside inf or NaN makes the sum NaN, and all else is right."""
    want = product(A, B)
    if got.shape != want.shape or ((A != 0).all() and (B != 0).all()):
        return False
    lost = np.isnan(want) & ~np.isnan(got)
    return bool(lost.any() and (lost | np.isclose(got, want, 1e-3, equal_nan=True)).all())


def matrix(rng: np.random.Generator, *shape: int, dtype: str = "float64") -> Array:
    """Return random numbers, none of them 0, C order."""
    values = rng.uniform(0.5, 2.0, shape) * rng.choice([-1.0, 1.0], shape)
    return np.ascontiguousarray(values, dtype=dtype)


def pair(rng: np.random.Generator, M: int, K: int, N: int, dtype: str = "float64") -> tuple[Array, Array]:
    """Return A (M, K) and B (K, N)."""
    return matrix(rng, M, K, dtype=dtype), matrix(rng, K, N, dtype=dtype)


def case(rng: np.random.Generator, M: int, K: int, N: int, what: str = "", dtype: str = "float64") -> Case:
    """Return a product of an M x K matrix with a K x N one; `what` is added to its label."""
    label = f"{dtype}, A {M} x {K}, B {K} x {N}{what and ': '}{what}"
    return Case(pair(rng, M, K, N, dtype), label, guard=True)


FORMS = ("float64", "float32", "views")  # the views are float64: each form is compiled anew
#: What stands in A and B beside ordinary numbers. 0 * inf and 0 * NaN are NaN.
SPECIAL = (
    "",
    "0 in A meets inf in B",
    "inf in A meets 0 in B",
    "0 in A meets NaN in B",
    "NaN in A meets 0 in B",
    "all of A is 0, with inf and NaN in B",  # so no row and no tile of zeros may be stepped over
    "all of B is 0, with inf and NaN in A",
    "small numbers",
    "large numbers",
)
#: What all numbers are multiplied by: none is small enough to be left out, or so large that it may be inf.
UNITS = {"small numbers": 1e-17, "large numbers": 1e15}  # in float32 products of both are numbers, too
EMPTY = {"M": "no rows", "K": "an empty sum is 0", "N": "no columns"}


def all_inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield two plain products, then every two of M, K, N and FORM, and of these and a SPECIAL number.

    Without special numbers, too: in a small product a NaN hides what else is wrong.
    """
    for shape in ((3, 3, 3), sizes(rng, 2, 7)):
        yield case(rng, *shape)
    sides = {"M": SIDES, "K": SIDES, "N": SIDES, "form": FORMS}
    rows = [
        *every_pair(rng, **sides, special=("",), unless=is_no_view),
        *every_pair(rng, **sides, special=SPECIAL, unless=lambda row: has_no_place(row) or is_no_view(row)),
    ]
    for row in sorted(rows, key=how_hard):
        yield formed(rng, **row)
    for shape in ((2, 3, 1100), (3, 1100, 2), (1100, 2, 3)):  # one side longer than a buffer may be
        yield case(rng, *shape)


def how_hard(row: dict) -> tuple[int, int]:
    """Return what a row is sorted by: a report says the first that is wrong."""
    numbers = (n for n in row.values() if isinstance(n, int))
    return bool(row["special"]) + (row["form"] != FORMS[0]), sum(numbers)


def has_no_place(row: dict) -> bool:
    return bool(row["special"]) and 0 in row.values()


def is_no_view(row: dict) -> bool:
    """Whether NumPy calls one of the views contiguous: Numba would compile once more for its type."""
    return row["form"] == "views" and (0 in row.values() or row["K"] == 1 in (row["M"], row["N"]))


def formed(
    rng: np.random.Generator, M: int, K: int, N: int, form: str = "float64", special: str = ""
) -> Case:
    """Return a product in one of the FORMS, with one of the SPECIAL numbers in it."""
    dtype = "float32" if form == "float32" else "float64"
    A, B = pair(rng, M, K, N, dtype)
    _put(rng, special, A, B)
    if form == "views":
        A, B = _spread(A), _spread(B.T).T
    empty = [said for side, said in EMPTY.items() if dict(M=M, K=K, N=N)[side] == 0]
    views = "views: every 2nd row and 3rd column of A, and of B transposed" if form == "views" else ""
    what = ", ".join(filter(None, (*empty, special, views)))
    return Case((A, B), f"{dtype}, A {M} x {K}, B {K} x {N}{what and ': '}{what}", guard=True)


def _spread(X: Array) -> Array:
    """Return X as every 2nd row and 3rd column of a larger matrix."""
    wide = np.full((2 * len(X), 3 * X.shape[1]), np.nan)
    wide[::2, ::3] = X
    return wide[::2, ::3]


def _put(rng: np.random.Generator, special: str, A: Array, B: Array) -> None:
    """Put the numbers at the first, the last and two other k, for different rows and columns if there are."""
    (M, K), N = A.shape, B.shape[1]
    if not special or special in UNITS:
        A *= UNITS.get(special, 1.0)
        B *= UNITS.get(special, 1.0)
        return
    rows, columns = rng.permutation(M), rng.permutation(N)
    if special.startswith("all"):
        (A if special.startswith("all of A") else B)[:] = 0.0
    for n, k in enumerate(dict.fromkeys((K - 1, 0, *map(int, rng.integers(0, K, 2))))):
        in_a, in_b = (A, (rows[n % M], k)), (B, (k, columns[n % N]))
        zero, other = (in_a, in_b) if special.startswith(("0", "all of A")) else (in_b, in_a)
        odd = np.nan if "NaN" in special and (n % 2 or "inf" not in special) else (-1) ** n * np.inf
        zero[0][zero[1]], other[0][other[1]] = 0.0, odd


PRODUCT_SLIPS = {
    "You have a number where NaN is due. 0 * inf and 0 * NaN are NaN: no product may be left out.": (
        steps_over_zeros
    ),
    SPOILED: lambda got, A, B: spoiled(got, product(A, B), A, B),
    "This is B times A: the operands are swapped.": lambda A, B: product(B, A),
    "This is A times the transpose of B: B is indexed [j, k].": lambda A, B: product(A, B.T),
    "The first product of every sum is missing: the sum over k begins at 0.": (
        lambda A, B: product(A[:, 1:], B[1:]) if len(B) > 1 else None
    ),
    "The last product of every sum is missing: the sum over k has K terms.": (
        lambda A, B: product(A[:, :-1], B[:-1]) if len(B) > 1 else None
    ),
    "Only the last product of every sum is there: add (+=) instead of replacing.": (
        lambda A, B: product(A[:, -1:], B[-1:])
    ),
    "Only the first product of every sum is there: does the function return inside a loop?": (
        lambda A, B: product(A[:, :1], B[:1])
    ),
    "After the first row all is 0: does the function return inside a loop?": (
        lambda got, A, B: (
            A[1:].any() and got[0].any() and not got[1:].any() and np.isfinite(product(A, B)[1:]).all()
        )
    ),
    EARLY: stops_early,
}

#: What the tasks that ask for a product of any two matrices share.
PRODUCT = {
    "cases": all_inputs,
    "reference": product,
    "comparison": close_product(),
    "rules": LOOPS_ONLY,
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
    yield Case(("ijk", *sizes(rng, 100, 4000), 8), "the order ijk")
    orders, same = ("ijk", "ikj", "jki", "jik", "kij", "kji"), int(rng.integers(3, 100))
    sides = between(100, 4000), same, 2, 1
    rows = every_pair(rng, order=orders, M=sides, K=sides, N=sides, itemsize=(1, 2, 4, 8, 16))
    for row in sorted(rows, key=lambda row: sum(row[side] < 100 for side in "MKN")):
        yield Case(tuple(row.values()), f"the order {row['order']}")


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
    minutes=5,
    cases=_orders,
    reference=inner_bytes,
    comparison=exact(("A", "B", "C")),
    rules=(Language(("math", "numpy")),),
    lookalikes={
        "Those are numbers, not bytes: each of them takes itemsize bytes.": {"itemsize": 1},
        "A number need not take 8 bytes: use itemsize.": {"itemsize": 8},
        "A number need not take 4 bytes: use itemsize.": {"itemsize": 4},
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
        "Where the innermost index does not stand in the brackets, nothing moves: 0 bytes.": (
            lambda got, *given: any(got[n] for n, right in enumerate(inner_bytes(*given)) if not right)
        ),
    },
    hints=(
        "C[i, j] of an M x N matrix in C order: at which byte, counted from the start, does it lie?",
        "At itemsize * (i * N + j). If the innermost index is j, that grows by itemsize; if it is i, by a "
        "row; if it is k, not at all. A (M, K) and B (K, N) in the same way.",
        "inner = order[-1]; A: {'i': K, 'k': 1}.get(inner, 0) * itemsize, and so on for B and C.",
    ),
)


# --- 02.matmul: a compiled product that is right for every input --------------------------------------------

MATMUL = Task(
    id="02.matmul",
    title="Compile your own matmul",
    minutes=10,
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
    minutes=5,
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
    minutes=10,
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


# --- 02.change: which change helps a kernel most, by the roofline -------------------------------------------

Change = tuple[str, float, float, float, float]


def best_change(
    flop: float, moved: float, peak: float, gbps: float, changes: list[Change]
) -> tuple[str, float]:
    """Return the change that helps a kernel most, and how many times as fast it is then.

    It does `flop` GFLOP and moves `moved` GB, at most `peak` GFLOP/s and `gbps` GB/s; a change is a name and
    the factors on these four.
    """
    return _best(lambda old, new: _longer(*old) / _longer(*new))(flop, moved, peak, gbps, changes)


def _longer(flop: float, moved: float, peak: float, gbps: float) -> float:
    return max(flop / peak, moved / gbps)


def _best(gain: Callable[[Sequence[float], Sequence[float]], float]) -> Callable:
    """Return the function that takes the change with the largest gain from old numbers to new ones."""

    def best(*kernel):
        *old, changes = kernel
        gains = [(gain(old, np.multiply(old, factors).tolist()), name) for name, *factors in changes]
        return max(gains)[::-1]

    return best


def _slip(gain: Callable[[Sequence[float], Sequence[float]], float]) -> Callable:
    """Return a lookalike with another gain; a name alone, of two that are nearly alike, tells no cause."""
    best = _best(gain)
    return lambda *kernel: None if same(best(*kernel)[1], best_change(*kernel)[1]) else best(*kernel)


def _limit_stays(old: Sequence[float], new: Sequence[float]) -> float:
    work, rate = (1, 3) if old[1] / old[3] > old[0] / old[2] else (0, 2)
    return old[work] / old[rate] / (new[work] / new[rate])


#: What the best change brings: the least and the largest gain.
GAINS = {"helps": (1.05, 9), "does no harm": (1, 1), "is slower": (0.6, 0.95), "is very slow": (0.4, 0.48)}


def _kernels(rng: np.random.Generator) -> Iterator[Case]:
    memory, blocks = ("memory", 1.0, 1.0, 1.0, 2.0), ("blocks", 1.0, 0.75, 1.0, 1.0)
    for kernel, other, what in (
        ((7.0, 1.0, 100.0, 10.0), ("wider", 1.0, 1.0, 2.0, 1.0), "below the ridge, but not far"),
        ((1000.0, 1.0, 100.0, 20.0), ("clock", 1.0, 1.0, 1.1, 1.0), "far above the ridge"),
        ((1000.0, 1.0, 100.0, 20.0), ("strassen", 7 / 8, 1.5, 1.0, 1.0), "a change that spares operations"),
    ):
        yield Case((*kernel, [other, memory, blocks]), what)
    nothing, more = ("clock", 1.0, 1.0, 1.0, 1.0), ("strassen", 7 / 8, 1.5, 1.0, 1.0)
    yield Case((7.0, 1.0, 100.0, 10.0, [nothing, more]), "the best one changes nothing")
    ways = [("clock", 1.0, 0.99, 8.0, 1.0), ("float32", 1.0, 0.98, 6.0, 1.0), ("fused", 0.1, 0.97, 1.0, 1.0)]
    ways.append(("blocks", 3.0, 0.4, 1.0, 1.0))
    yield Case((1.0, 1.0, 100.0, 10.0, ways), "the best one spares bytes by more operations")
    far = [("order", 1.0, 40.0, 1.0, 1.0), ("fused", 50.0, 1.0, 1.0, 1.0)]
    yield Case((7.0, 1.0, 100.0, 10.0, far), "all are slower by far")
    choices = {"times": (0.5, 0.9, 1.0, 1.1, 2.0), "many": (1, 2, 3, 7), "place": (0.0, 0.5, 1.0)}
    # of the work: milliseconds to a few seconds, or years; how much longer the second best takes at least
    choices |= {"work": (1.0, 2.0**50), "behind": (0.01, 1e-6)}
    rows = every_pair(rng, **choices, best=tuple(GAINS))
    for row in sorted(rows, key=lambda row: row["many"]):
        yield _proposed(rng, **row)


def _proposed(
    rng: np.random.Generator, times: float, many: int, place: float, best: str, work: float, behind: float
) -> Case:
    """Return a kernel at so many times the ridge, and changes: the best one first (0) to last (1)."""
    flop, peak, gbps = (round(float(rng.uniform(*span)), 1) for span in ((5, 900), (40, 2000), (8, 400)))
    moved = round(flop / peak * gbps / times, 3)
    if times == 1:  # at the ridge, in each bit
        flop, moved = peak / 8, gbps / 8
    kernel = work * flop, work * moved, peak, gbps
    names = rng.permutation(["blocks", "clock", "float32", "fused", "memory", "order", "strassen"])
    changes: list[Change] = []
    much = best == "helps" and work > 1  # no roof is too high
    low, high, power = (5, 999, 4) if much else (*GAINS[best], 1)
    while len(changes) < many:
        factors = np.where(rng.random(4) < 0.5, 1.0, (rng.uniform(0.5, 2.0, 4) ** power).round(2)).tolist()
        if len(changes) == 1 and behind < 0.01:  # nearly the same
            factors = [*np.multiply(changes[0][1:3], 1 + behind).tolist(), *changes[0][3:]]
        change = str(names[len(changes)]), *factors
        gain = best_change(*kernel, [change])[1]
        if low <= gain <= high:
            # all others help less than the first
            low, high = 0.0, high if changes else gain / (1 + behind / 2)
            changes.append(change)
    changes.insert(round(place * (many - 1)), changes.pop(0))
    return Case((*kernel, changes), f"{times:g} times the intensity of the ridge, the best one {best}")


CHANGE = Task(
    id="02.change",
    title="What would help?",
    minutes=10,
    cases=_kernels,
    reference=best_change,
    comparison=close(rtol=1e-9, parts=("name", "speed-up")),
    rules=(Language(("math", "numpy")),),
    lookalikes={
        "The best change may be slower than none: then the speed-up is below 1.": (
            lambda got, *kernel: got[1] == 1 > best_change(*kernel)[1]
        ),
        "You add the two times. Computing and moving go on at once: the longer one counts.": (
            _slip(lambda old, new: (old[0] / old[2] + old[1] / old[3]) / (new[0] / new[2] + new[1] / new[3]))
        ),
        "What limits at first need not limit afterwards: behind the ridge the other roof is the lower one.": (
            _slip(_limit_stays)
        ),
        "You compare GFLOP/s: what spares operations lowers these, too. Compare how long the kernel takes.": (
            _slip(lambda old, new: new[0] / _longer(*new) / (old[0] / _longer(*old)))
        ),
        "That is the largest factor. How much of it does the kernel feel?": (
            _slip(lambda old, new: max(old[0] / new[0], old[1] / new[1], new[2] / old[2], new[3] / old[3]))
        ),
        "That is the new time over the old one; a speed-up is the old one over the new.": (
            lambda *kernel: (best_change(*kernel)[0], 1 / best_change(*kernel)[1])
        ),
    },
    hints=(
        "How many seconds does the kernel take at least for its arithmetic, how many for what it moves, and "
        "which of the two does the roofline show?",
        "The time is the longer of flop / peak and moved / gbps. Work it out anew for every change, with all "
        "four numbers multiplied by their factors.",
        "before = max(flop / peak, moved / gbps); for name, f, m, p, g in changes: after = max(flop * f / "
        "(peak * p), moved * m / (gbps * g)); keep the name for which before / after is largest.",
    ),
)


#: In the order of the chapter.
TASKS = (STRIDES, MATMUL, FAST, BUG, CHANGE, yours.READING)
