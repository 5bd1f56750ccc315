"""Tasks of chapter 03: Strassen's seven products – counted, completed, written, repaired and priced."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from course_lib.grading.compare import Mismatch, Values, close, exact, same
from course_lib.grading.inputs import between, every_pair
from course_lib.grading.language import Language
from course_lib.grading.sources import load
from course_lib.grading.tape import CountsOperations
from course_lib.grading.task import Case, Task, source
from course_lib.grading.tasks import compiled_loops, yours
from course_lib.grading.tasks.compiled_loops import FORMS, case, matrix, product

Array = np.ndarray

ONLY_NUMPY = (Language(("numpy", "math")),)
DIGITS = 64.0  # numbers of few digits are multiples of 1 / DIGITS


def few_digits(rng: np.random.Generator, M: int, K: int, N: int) -> tuple[Array, Array]:
    """Return float32 matrices whose product is not rounded, in no order and from no sums of blocks."""
    return tuple((rng.integers(-64, 65, shape) / DIGITS).astype(np.float32) for shape in ((M, K), (K, N)))


def close_by_norm(levels: Callable[..., int] = lambda *_: 1) -> Values:
    """Return the comparison for a product by so many levels of seven products, `levels(A, B, …)`.

    The allowed error of every entry is of the form of Higham 2002, §23.2.2, with the factor of Winograd's
    variant, 18^levels (n^2 + 6 n) eps max|A| max|B|, where n terms of a sum are left below the last level.
    There is none in terms of the entry's own row and column. Numbers of few digits allow none at all.
    """

    def allowed(want: Array, args: tuple) -> float:
        A, B = args[:2]
        if want.dtype == np.float32 and not any((X * DIGITS % 1).any() for X in (A, B)):
            return 0.0
        deep = levels(*args)
        n = -(-A.shape[1] // 2**deep)
        largest = float(np.abs(A).max(initial=0.0)) * float(np.abs(B).max(initial=0.0))
        return 18.0**deep * (n**2 + 6 * n) * float(np.finfo(want.dtype).eps) * largest

    return Values(allowed)


def seven(A: Array, B: Array) -> int:
    """Return the multiplications of one level of seven products."""
    return 7 * (A.shape[0] // 2) * (A.shape[1] // 2) * (B.shape[1] // 2)


def formed(rng: np.random.Generator, M: int, K: int, N: int, form: str) -> Case:
    """Return operands in one of the FORMS; those in float32 have few digits."""
    one = compiled_loops.formed(rng, M, K, N, form)
    return one if form != "float32" else replace(one, args=few_digits(rng, M, K, N))


def simple(row: Mapping) -> tuple[int, int]:
    """Return what rows are sorted by: a report says the first that is wrong."""
    return FORMS.index(row["form"]), row["M"] * row["K"] * row["N"]


def even_shapes(rng: np.random.Generator) -> Iterator[Case]:
    """Yield operands that can be halved in every direction: square ones, then every two sizes and forms."""
    for sides in ((2, 2, 2), (4, 4, 4), (2, 6, 4)):
        yield case(rng, *sides)
    sides = 2, 4, lambda rng: 4 * int(rng.integers(1, 4)) + 2, 8  # halves of 3, 5 or 7 are odd
    rows = every_pair(rng, M=sides, K=sides, N=sides, form=FORMS)
    for row in sorted(rows, key=simple):
        yield formed(rng, **row)
    yield from (formed(rng, *thin, "float64") for thin in long_and_thin(34))
    yield from by_columns(formed(rng, 4, 6, 8, "float64"))


def by_columns(one: Case) -> Iterator[Case]:
    """Yield the case with A by columns in memory (order="A" and "K" ask for that), and with B so."""
    A, B, *rest = one.args
    yield replace(one, args=(np.asfortranarray(A), B, *rest), label=f"{one.label}, A by columns in memory")
    yield replace(one, args=(A, np.asfortranarray(B), *rest), label=f"{one.label}, B by columns in memory")


def long_and_thin(length: int) -> tuple[tuple[int, int, int], ...]:
    """Return shapes in which each of M, K, N once is long and the others 2: so few products cost little."""
    return (length, 2, 2), (2, length, 2), (2, 2, length)


def quarters(X: Array) -> tuple[Array, Array, Array, Array]:
    """Return the blocks 11, 12, 21, 22 of X."""
    rows, columns = X.shape[0] // 2, X.shape[1] // 2
    return X[:rows, :columns], X[:rows, columns:], X[rows:, :columns], X[rows:, columns:]


def with_blocks_swapped(A: Array, B: Array) -> Array:
    """Return the product with its blocks 12 and 21 exchanged, where they have one shape (else unchanged)."""
    C = product(A, B)
    C11, C12, C21, C22 = quarters(C)
    return np.block([[C11, C21], [C12, C22]]) if C12.shape == C21.shape else C


def _wrong_blocks(got: Array, A: Array, B: Array) -> list[bool]:
    pairs = zip(quarters(np.asarray(got, np.float64)), quarters(product(A, B)), strict=True)
    return [not np.allclose(mine, right, rtol=1e-3, atol=1e-3) for mine, right in pairs]


def _only_block(place: int) -> Callable[..., bool]:
    wanted = [block == place for block in range(4)]
    return lambda got, A, B: _wrong_blocks(got, A, B) == wanted


BLOCK_SLIPS = {
    "This is B times A: the operands are swapped.": lambda A, B: product(B, A),
    "The blocks C12 and C21 have changed places.": (
        lambda A, B: with_blocks_swapped(A, B) if A.shape == B.shape else None
    ),
    **{
        f"Only the block C{name} is wrong: which products go into it, with which signs?": _only_block(place)
        for place, name in enumerate(("11", "12", "21", "22"))
    },
    "All four blocks are wrong: look for a slip in a sum that several products or blocks share.": (
        lambda got, A, B: all(_wrong_blocks(got, A, B))
    ),
}


# --- 03.count: how many operations Strassen's algorithm does, exactly, with a cutoff and for odd sizes ------


def operations(
    n: int, cutoff: int, *, sums: int = 18, products: int = 7, peel: bool = True, again: bool = False
) -> tuple[int, int]:
    """Return (multiplications, additions) of an n x n product; the classical one from `cutoff` down.

    `sums` block sums and `products` block products a level; an odd last row and column is peeled off. If
    `again`, the cutoff is asked once more for the even part n - 1 of an odd n, which is a slip.
    """
    if n <= cutoff:
        return n**3, n**2 * (n - 1)
    half, even, rest = n // 2, n - 1, (0, 0)
    if peel and n % 2:  # the outer product, the last column and the last row
        rest = even**2 + even * n + n**2, even**2 + even * (n - 1) + n * (n - 1)
    options = {"sums": sums, "products": products, "peel": peel, "again": again}
    if again and n % 2:
        multiplications, additions = operations(n - 1, cutoff, **options)
    else:
        multiplications, additions = (products * one for one in operations(half, cutoff, **options))
        additions += sums * half**2
    return multiplications + rest[0], additions + rest[1]


PARTS = ("multiplications", "additions")


@dataclass(frozen=True)
class WholeNumbers:
    """Accepts the right pair of counts if both are whole numbers: floats are exact only up to 2**53."""

    def compare(self, got: Any, want: tuple[int, int], args: tuple) -> Mismatch | None:
        """Return None if `got` is the pair `want` of integers, else what is wrong."""
        found = exact(PARTS).compare(got, want, args)
        if found:
            return found
        for name, number in zip(PARTS, got, strict=True):
            if isinstance(number, float | np.floating):
                said = f"{name}: {number!r} is right, but a float, and those are exact only up to 2**53."
                return Mismatch((f"{said} Use // instead of /, and whole numbers throughout.",), form=True)
        return None


ODD = ("", "all", "the first", "the last")  # of the levels have an odd size


def _sizes(rng: np.random.Generator) -> Iterator[Case]:
    for n, cutoff in ((1, 1), (2, 1), (4, 1), (4, 2), (8, 8), (8, 1), (64, 16)):
        yield Case((n, cutoff), f"n = {n}, cutoff {cutoff}")
    for n in (3, 9, 2 * int(rng.integers(5, 40)) + 1):
        yield Case((n, n - 1), f"n = {n}, cutoff {n - 1}: odd, and just above the cutoff")
    rows = every_pair(
        rng,
        cutoff=(1, 2, between(3, 16), 16, between(17, 64)),
        levels=(0, 1, 2, between(3, 8), between(12, 15)),
        odd=ODD,
        end=("least", "any", "cutoff"),
        unless=lambda row: bool(row["odd"]) and row["levels"] == 0,
    )
    for n, row in sorted(((_size(rng, **row), row) for row in rows), key=lambda one: one[0]):
        said = ": odd at {odd} of {levels} levels".format(**row) if row["odd"] else ""
        yield Case((n, row["cutoff"]), f"n = {n}, cutoff {row['cutoff']}{said}")
    n, cutoff = int(rng.integers(30_000_000, 60_000_000)), int(rng.integers(300, 2000))
    yield Case((n, cutoff), f"n = {n}, cutoff {cutoff}: counts beyond 2**63")
    yield Case((300_001, 300_001), "n = 300001, the cutoff too: counts beyond 2**53")


def _size(rng: np.random.Generator, cutoff: int, levels: int, odd: str, end: str) -> int:
    """Return a size that takes so many levels, to end with the least size that can be, any, or the cutoff."""
    is_odd = {"": [], "all": [*range(levels)], "the first": [levels - 1], "the last": [0]}[odd]
    least = (cutoff + 2 - (0 in is_odd)) // 2 if levels else 1
    n = {"least": least, "cutoff": cutoff}.get(end) or int(rng.integers(least, cutoff + 1))
    for level in range(levels):  # the last one first
        n = 2 * n + (level in is_odd)
    return n


COUNT = Task(
    id="03.count",
    title="Count before you multiply",
    points=2,
    difficulty=2,
    cases=_sizes,
    reference=operations,
    comparison=WholeNumbers(),
    rules=(Language(("math", "numpy")),),
    lookalikes={
        "The two numbers are swapped: multiplications come first.": (
            lambda n, cutoff: operations(n, cutoff)[::-1] if n > 1 else None
        ),
        "You count 15 sums a level; that is Winograd's variant, which comes later. Strassen's has 18.": {
            "sums": 15
        },
        "The 18 sums of blocks of every level are missing: half * half additions each.": {"sums": 0},
        "The sums are sums of blocks: they have half * half numbers each, not n * n.": {"sums": 72},
        "An odd n just above the cutoff still does one level, on m = n - 1, even if m is not above the "
        "cutoff itself: only n is compared with it.": {"again": True},
        "An odd n is peeled here, not padded to the next even size.": (
            lambda n, cutoff: operations(n + 1, cutoff) if n > cutoff and n % 2 else None
        ),
        "That is the definition with eight block products; Strassen's has seven.": (
            lambda got, n, cutoff: n > cutoff and got[0] == operations(n, cutoff, products=8)[0]
        ),
        "At n = cutoff the definition takes over already: the recursion goes on only above it.": (
            lambda n, cutoff: operations(n, cutoff - 1) if n > 1 else None
        ),
        "What is peeled off at an odd size is missing: the outer product for the block, the last column "
        "and the last row of C.": {"peel": False},
        "The last element of C is missing: it belongs to the last row, which is a row times all of B.": (
            lambda got, n, cutoff: n % 2 == 1 and got[0] == operations(n, cutoff)[0] - n and n // 2 <= cutoff
        ),
        "A sum of n products takes n - 1 additions: the first one has nothing to be added to.": (
            lambda got, n, cutoff: got[0] == operations(n, cutoff)[0] and n <= cutoff and got[1] == n**3
        ),
        "Only the last digits are wrong: a float is exact only up to 2**53, and int() of it brings nothing "
        "back. Use // instead of /, and whole numbers throughout.": (
            lambda got, n, cutoff: np.allclose(
                np.array(got, float), np.array(operations(n, cutoff), float), rtol=1e-13, atol=0
            )
        ),
        "The multiplications are right, the additions of this odd size not: the 18 sums have (n // 2)**2 "
        "numbers each, the outer product is added to every element of the even part, and an element of the "
        "last row or column is a sum of n products.": (
            lambda got, n, cutoff: got[0] == operations(n, cutoff)[0] and n > cutoff and n % 2 == 1
        ),
    },
    hints=(
        "What does one level do for n = 4 and cutoff 2? How many products of which blocks, how many sums of "
        "how many numbers?",
        "With half = n // 2: seven times what a product of size half costs, and 18 * half**2 additions. For "
        "n <= cutoff it is n**3 and n**2 * (n - 1). An odd n adds three classical pieces, with even = n - 1.",
        "Peeled: even**2 + even * n + n**2 multiplications and "
        "even**2 + even * (n - 1) + n * (n - 1) additions. Call operations(half, cutoff) for the rest.",
    ),
)


# --- 03.lost: of seven products one is lost; what the other six leave over says which one -------------------

Row = list[int]
Table = list[Row]

#: Strassen's tables (as in `circles.strassen`, which would load the compiler).
LEFT = ((1, 0, 0, 1), (0, 0, 1, 1), (1, 0, 0, 0), (0, 0, 0, 1), (1, 1, 0, 0), (-1, 0, 1, 0), (0, 1, 0, -1))
RIGHT = ((1, 0, 0, 1), (1, 0, 0, 0), (0, 1, 0, -1), (-1, 0, 1, 0), (0, 0, 0, 1), (1, 1, 0, 0), (0, 0, 1, 1))
INTO = ((1, 0, 0, 1), (0, 0, 1, -1), (0, 1, 0, 1), (1, 0, 1, 0), (-1, 1, 0, 0), (0, 0, 0, 1), (1, 0, 0, 0))
STRASSEN_TABLES = LEFT, RIGHT, INTO

GIVEN = source("""
    import numpy as np

    def left_over(left, right, into):
        # rest[a, b, c]: is block a of A times block b of B still missing in block c of C?
        one = np.eye(2, dtype=int)
        # a_ik times b_kj belongs to c_ij
        product = np.einsum("im,kl,jn->ikljmn", one, one, one).reshape(4, 4, 4)
        return product - np.einsum("pa,pb,pc->abc", left, right, into)
""")
left_over = load(GIVEN, "left_over")


def lost_product(left: Table, right: Table, into: Table) -> tuple[Row, Row, Row]:
    """Return the rows of the seventh product; the first sign of its left and of its right row is +."""
    rest = left_over(left, right, into)
    a, b, c = np.argwhere(rest)[0]
    sign = rest[a, b, c]
    return (rest[:, b, c] * sign).tolist(), (rest[a, :, c] * sign).tolist(), rest[a, b, :].tolist()


def _disguised(rng: np.random.Generator, tables: Sequence) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return another set of seven products: rows and columns of A, B and C renamed and their signs changed.

    With X, Y, Z signed permutations, (X A Y^-1)(Y B Z^-1) = X A B Z^-1, so the products stay seven.
    """
    X, Y, Z = (rng.permutation(np.eye(2, dtype=int)) * rng.choice([-1, 1], (2, 1)) for _ in range(3))
    renamed = np.kron(X, Y), np.kron(Y, Z), np.kron(X, Z)  # inverse = transpose for these
    return tuple(np.array(table) @ change for table, change in zip(tables, renamed, strict=True))


#: Winograd's form (1971) of seven products: rows for A, for B and for C, each as 11, 12, 21, 22.
WINOGRAD_TABLES = (
    ((1, 0, 0, 0), (0, 1, 0, 0), (1, 1, -1, -1), (0, 0, 0, 1), (0, 0, 1, 1), (-1, 0, 1, 1), (1, 0, -1, 0)),
    ((1, 0, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1), (1, -1, -1, 1), (-1, 1, 0, 0), (1, -1, 0, 1), (0, -1, 0, 1)),
    ((1, 1, 1, 1), (1, 0, 0, 0), (0, 1, 0, 0), (0, 0, -1, 0), (0, 1, 0, 1), (0, 1, 1, 1), (0, 0, 1, 1)),
)


def _tables(rng: np.random.Generator) -> Iterator[Case]:
    for lost in (5, 0, 4):  # the fifth goes into C with both signs
        yield _without(STRASSEN_TABLES, lost, f"the chapter's products without M{lost + 1}")
    turned = np.array((1, -1, 1, -1))  # B12, B22, C12 and C22 with the other sign: right as well
    mirrored = LEFT, np.array(RIGHT) * turned, np.array(INTO) * turned
    yield _without(mirrored, 5, "the same with the signs of B12, B22, C12, C22 turned round, without M6")
    sets = {"the chapter's": STRASSEN_TABLES, "Winograd's": WINOGRAD_TABLES}
    for (whose, tables), lost, sign in itertools.product(sets.items(), range(7), (1, -1)):
        if (whose, lost, sign) != ("Winograd's", 1, -1):  # one block times one block: always a plus
            others = _beginning_with(rng, sign, tables, lost)
            yield _without(others, 6, f"{whose} products with other names and signs, one of them lost")


def _beginning_with(rng: np.random.Generator, sign: int, tables: Sequence, lost: int) -> Sequence:
    """Return other products in any order, the lost one last; what it leaves over begins with this sign."""
    while True:
        others = _disguised(rng, tables)
        rest = np.einsum("a,b,c->abc", *(table[lost] for table in others))
        if rest[rest != 0][0] == sign:
            order = [*rng.permutation([number for number in range(7) if number != lost]), lost]
            return [table[order] for table in others]


def _without(tables: Sequence, lost: int, label: str) -> Case:
    return Case(tuple(np.delete(table, lost, axis=0).tolist() for table in tables), label)


def _up_to_signs(got: tuple, *tables: Table) -> bool:
    pairs = zip(got, lost_product(*tables), strict=True)
    return all(np.array_equal(np.abs(mine), np.abs(row)) for mine, row in pairs)


LOST = Task(
    id="03.lost",
    title="The lost product",
    points=2,
    cases=_tables,
    reference=lost_product,
    comparison=exact(("row for A", "row for B", "row for C")),
    rules=(Language(("numpy", "math")),),
    lookalikes={
        "The product is right, but not its signs: make the first number that is not 0 in the row for A "
        "and in the row for B positive, and let the row for C carry the sign.": lambda got, *tables: (
            _up_to_signs(got, *tables) and np.array_equal(np.einsum("a,b,c->abc", *got), left_over(*tables))
        ),
        "The rows for A and B have changed places.": (
            lambda left, right, into: (lambda l, r, c: (r, l, c))(*lost_product(left, right, into))
        ),
        "All is right but for signs: the product of your three rows must be what is left over, with its "
        "signs.": _up_to_signs,
        "Sums over two axes of `rest` mix what belongs to the other rows: hold two places fixed and let "
        "one run.": (
            lambda got, left, right, into: (
                np.sign(got).tolist()
                == [np.sign(left_over(left, right, into).sum(at)).tolist() for at in ((1, 2), (0, 2), (0, 1))]
            )
        ),
        "That is one of the six products that are there.": (
            lambda got, left, right, into: any(
                list(map(list, got)) == [l, r, c] for l, r, c in zip(left, right, into, strict=True)
            )
        ),
    },
    hints=(
        "rest[a, b, c] = left[a] * right[b] * into[c] for the one product that is lost. If you hold b and c "
        "fixed and let a run, what do you see?",
        "Take any place (a, b, c) where rest is not 0 (np.argwhere(rest)[0] is the first one). rest[:, b, c] "
        "is the left row, rest[a, :, c] the right one and rest[a, b, :] the one for C, each up to a sign.",
        "At the first place that is not 0, with sign = rest[a, b, c]: return "
        "(sign * rest[:, b, c]).tolist(), (sign * rest[a, :, c]).tolist(), rest[a, b, :].tolist().",
    ),
)


# --- 03.level: one level of Strassen, on blocks, with seven products ----------------------------------------

LEVEL = Task(
    id="03.level",
    title="Seven products",
    difficulty=2,
    entry="strassen_level",
    cases=even_shapes,
    reference=product,
    comparison=close_by_norm(),
    rules=ONLY_NUMPY,
    counts=CountsOperations(multiplications=seven, whose="of Strassen's level"),
    lookalikes=BLOCK_SLIPS,
    hints=(
        "Which blocks of A and of B go into the first product, and into which blocks of C does it go?",
        "Cut A into A[:m, :k], A[:m, k:], A[m:, :k], A[m:, k:] with m, k half its size, B likewise; write "
        "down the seven products from the picture in the chapter, then the four sums, and join them with "
        "np.block.",
        "M1 = (A11 + A22) @ (B11 + B22), M2 = (A21 + A22) @ B11, … ; C12 = M3 + M5, C21 = M2 + M4, "
        "C11 = M1 + M4 - M5 + M7, C22 = M1 - M2 + M3 + M6; return np.block([[C11, C12], [C21, C22]]).",
    ),
)


# --- 03.winograd: seven products with fifteen sums, because several sums have a part in common --------------


def additions(A: np.ndarray, B: np.ndarray) -> int:
    """Return the additions: those inside seven products, and 4 + 4 + 7 sums of blocks."""
    m, k, n = A.shape[0] // 2, A.shape[1] // 2, B.shape[1] // 2
    return 7 * m * n * (k - 1) + 4 * m * k + 4 * k * n + 7 * m * n


WINOGRAD = Task(
    id="03.winograd",
    title="Fifteen sums are enough",
    entry="winograd_level",
    cases=even_shapes,
    reference=product,
    comparison=close_by_norm(),
    rules=ONLY_NUMPY,
    counts=CountsOperations(seven, additions, "that are enough"),
    lookalikes=BLOCK_SLIPS,
    hints=(
        "Which sums does the chapter's list of Winograd's variant use twice? Where could you keep them?",
        "Four sums of blocks of A: two of them are built on earlier ones (S2 = S1 - A11, and S4 on S2), two "
        "are not. Four of B likewise, then seven products. After them P1 + P6 stands in three of the four "
        "blocks of C: add it up once.",
        "U = P1 + P6; V = U + P7; W = U + P5; then C11 = P1 + P2, C12 = W + P3, C21 = V - P4, C22 = V + P5.",
    ),
)


# --- 03.any: the recursion for every shape, by peeling or by padding ----------------------------------------


def peeled(M: int, K: int, N: int, cutoff: int) -> int:
    """Return the multiplications when odd rows and columns are peeled off at every level."""
    if min(M, K, N) <= cutoff:
        return M * K * N
    m, k, n = M // 2 * 2, K // 2 * 2, N // 2 * 2
    rest = (K - k) * m * n + (N - n) * m * K + (M - m) * K * N
    return 7 * peeled(m // 2, k // 2, n // 2, cutoff) + rest


def padded(M: int, K: int, N: int, cutoff: int) -> int:
    """Return the multiplications when odd sizes are made even at every level."""
    if min(M, K, N) <= cutoff:
        return M * K * N
    return 7 * padded(-(-M // 2), -(-K // 2), -(-N // 2), cutoff)


def levels_of(A: Array, B: Array, cutoff: int) -> int:
    """Return the levels until the smallest size, padded if it is odd, is the cutoff or less."""
    return max(math.ceil(math.log2(max(min(*A.shape, B.shape[1]), 1) / cutoff)), 0)


def padded_once(M: int, K: int, N: int, cutoff: int) -> int:
    """Return the multiplications when the sizes are padded once, so that they can be halved to the end."""
    levels = levels_of(np.empty((M, K)), np.empty((K, N)), cutoff)
    sizes = [-(-size // 2**levels) for size in (M, K, N)]
    return 7**levels * math.prod(sizes)


@dataclass(frozen=True)
class SevenAtEveryLevel(CountsOperations):
    """The answer multiplies no more than the most wasteful of the three known ways to treat odd sizes.

    Where no size is odd the three are one, and fewer are too few; a padded zero is not multiplied.
    """

    def judge(self, args: tuple, multiplications: int, additions: int) -> str | None:
        """Return a sentence if it does more multiplications, or fewer than any of the ways can."""
        A, B, cutoff = args
        shape = (*A.shape, B.shape[1], cutoff)
        ways = [way(*shape) for way in (peeled, padded, padded_once)]
        if multiplications > max(ways):
            pads = ", and pad each size no further than it must be (to even ones, not to a power of two)"
            return (
                f"Your answer did {multiplications} multiplications on this input, but {max(ways)} are "
                "enough with seven products at every level: does each of them go on until the smallest size "
                f"is the cutoff or less{pads if min(ways) < max(ways) else ''}?"
            )
        if multiplications < min(ways) == max(ways):
            return (
                f"Your answer did {multiplications} multiplications on this input, fewer than the "
                f"{min(ways)} of the recursion: does it stop as soon as the smallest size is at the cutoff?"
            )
        return None


def _shapes(rng: np.random.Generator) -> Iterator[Case]:
    plain, ends = ((2, 2, 2, 1), (3, 3, 3, 1), (8, 8, 8, 2)), ((7, 5, 3, 4), (3, 7, 5, 4), (5, 3, 7, 4))
    for shape in (*plain, *ends, (8, 9, 8, 7), (9, 8, 8, 7), (8, 8, 9, 7)):
        # In `ends` each size once stops the recursion alone; at a cutoff of 7 even a padded 9 saves products.
        yield _case(rng, *shape)
    sides = 0, 1, 2, 3, 4, 6, lambda rng: 2 * int(rng.integers(2, 5)) + 1  # the halves of 6 are odd
    rows = every_pair(rng, M=sides, K=sides, N=sides, cutoff=(1, 2, 3, between(4, 7)), form=FORMS)
    for row in sorted(rows, key=lambda row: (0 in (row["M"], row["K"], row["N"]), *simple(row))):
        yield _case(rng, **row)
    for cutoff, form in enumerate(FORMS, 1):  # some levels deep, where pairs have a 1 or a 2 in most shapes
        yield _case(rng, *rng.choice((7, 11, 13, 17, 19), 3, replace=False).tolist(), cutoff, form)
    for even in ((4, 8, 12), (16, 16, 16)):  # even down to the cutoff 1, so that all ways are one
        yield _case(rng, *even, 1)
    yield from (_case(rng, *thin, 1) for thin in long_and_thin(34))
    yield _case(rng, 24, 32, 40, 5)  # three levels of another depth in each size
    yield _case(rng, *rng.permutation((41, 43, 47)).tolist(), 12)  # even the most wasteful way saves products
    yield from by_columns(_case(rng, 5, 6, 7, 2))


def _case(rng: np.random.Generator, M: int, K: int, N: int, cutoff: int, form: str = "float64") -> Case:
    one = formed(rng, M, K, N, form)
    return replace(one, args=(*one.args, cutoff), label=f"cutoff {cutoff}, {one.label}")


def reference(A: np.ndarray, B: np.ndarray, cutoff: int) -> np.ndarray:
    """Return A @ B; the cutoff changes only how."""
    return product(A, B)


def _without_the_last_k(got: np.ndarray, A: np.ndarray, B: np.ndarray, cutoff: int) -> bool:
    if A.shape[1] % 2 == 0 or A.shape[1] == 1:
        return False
    even = np.s_[: len(A) // 2 * 2, : B.shape[1] // 2 * 2]
    return np.allclose(got[even], product(A[:, :-1], B[:-1])[even], rtol=1e-3) and got[even].size > 0


ANY_SHAPE = Task(
    id="03.any",
    title="Any shape",
    difficulty=4,
    minutes=25,
    entry="strassen",
    cases=_shapes,
    reference=reference,
    comparison=close_by_norm(levels_of),
    rules=ONLY_NUMPY,
    counts=SevenAtEveryLevel(),
    lookalikes={
        "This is B times A: the operands are swapped.": lambda A, B, cutoff: product(B, A),
        "The last step of k is missing: with an odd K its last column of A and last row of B belong to "
        "every entry of C.": _without_the_last_k,
        "The last element of C is 0: it belongs to the last row and to the last column.": (
            lambda got, A, B, cutoff: got[-1, -1] == 0 and got[-1].any() and got[:, -1].any()
        ),
        "The last row of C is 0: with an odd M it has to be computed too.": (
            lambda got, A, B, cutoff: len(A) % 2 == 1 and not np.any(got[-1]) and np.any(got)
        ),
        "The last column of C is 0: with an odd N it has to be computed too.": (
            lambda got, A, B, cutoff: (
                B.shape[1] % 2 == 1 and not np.any(got[: len(A) // 2 * 2, -1]) and np.any(got)
            )
        ),
    },
    hints=(
        "What is left of a 7 x 5 matrix when you have cut out four blocks of 3 x 2? And what of C is not yet "
        "right when those have been multiplied?",
        "Peel: the last step of k adds an outer product to the whole even part; the last column of C is A "
        "times the last column of B; the last row of C is the last row of A times B. Or pad every odd size "
        "with a row or column of zeros and cut the result back.",
        "Padding is shorter: A = np.pad(A, ((0, M % 2), (0, K % 2))), B likewise; one level with recursive "
        "calls strassen(A11 + A22, B11 + B22, cutoff), …; return C[:M, :N].copy().",
    ),
)


# --- 03.bug: two signs in a table that one kind of test can never show --------------------------------------

#: Wrong in the second line: the signs of A21 and of B12.
BROKEN = source("""
    import numpy as np

    # One line for each product: the signs of the blocks 11, 12, 21, 22 of A, of B, and of C.
    PRODUCTS = [
        ((1, -1, 0, 0), (0, 1, 0, 0), (1, 1, 0, 0)),
        ((1, 0, -1, 0), (1, 1, 0, 0), (1, 0, 0, 0)),
        ((0, 1, 1, 0), (0, 1, 1, 0), (1, 0, 0, 1)),
        ((0, 1, 0, 1), (0, 0, -1, 1), (0, 0, 0, 1)),
        ((0, 0, 1, 0), (1, 0, 1, 0), (-1, 0, 1, 0)),
        ((0, 1, 0, 0), (0, 1, 0, 1), (0, 1, 0, -1)),
        ((0, 0, -1, 1), (0, 0, 1, 0), (0, 0, 1, 1)),
    ]


    def blocks(X):
        return [block for rows in np.split(X, 2) for block in np.split(rows, 2, axis=1)]


    def add_up(signs, parts):
        total = 0
        for sign, part in zip(signs, parts):
            total = total + part if sign > 0 else total - part if sign else total
        return total


    def broken(A, B):
        products = [add_up(a, blocks(A)) @ add_up(b, blocks(B)) for a, b, _ in PRODUCTS]
        C11, C12, C21, C22 = [add_up(c, products) for c in zip(*[c for _, _, c in PRODUCTS])]
        return np.block([[C11, C12], [C21, C22]])
""")
_BROKEN = BROKEN.replace("broken", "repaired")


def _inputs(rng: np.random.Generator) -> Iterator[Case]:
    X = matrix(rng, 2, 2)
    yield Case((X, X.T.copy()), "a 2 x 2 matrix times its own transpose, which is what was tested")
    yield from even_shapes(rng)


def _gives(text: str) -> Callable[[Array, Array], Array]:
    """Return the function of an answer with these tables, computing in float64."""
    function = load(text, "repaired")
    return lambda A, B: function(A.astype(np.float64), B.astype(np.float64))


def of_the_table(A: Array, B: Array) -> list[int]:
    """Return the seven products of the mended table, for matrices of 2 x 2 whole numbers; else none."""
    if (A.shape, B.shape) != ((2, 2), (2, 2)):
        return []
    table = load(_BROKEN, "repaired").__globals__["PRODUCTS"]
    mended = ((1, 0, 1, 0), (1, -1, 0, 0))
    pairs = [mended if number == 1 else line[:2] for number, line in enumerate(table)]
    return [int(A.ravel() @ left) * int(B.ravel() @ right) for left, right in pairs]


#: With one of the two signs mended.
HALF_MENDED = (
    _gives(_BROKEN.replace("((1, 0, -1, 0),", "((1, 0, 1, 0),")),
    _gives(_BROKEN.replace("(1, 1, 0, 0), (1, 0, 0, 0))", "(1, -1, 0, 0), (1, 0, 0, 0))")),
)

BUG = Task(
    id="03.bug",
    title="A test that proves nothing",
    points=2,
    entry="repaired",
    cases=_inputs,
    reference=product,
    comparison=close_by_norm(),
    rules=ONLY_NUMPY,
    counts=CountsOperations(seven, whose="of the mended table", products=of_the_table),
    lookalikes={
        "Nearly right: do you compute in fewer digits than A and B have?": (
            lambda got, A, B: np.allclose(got, product(A, B), rtol=1e-5, atol=1e-6)
        ),
        "That is what `broken` gives: wrong as soon as B is not the transpose of A.": _gives(_BROKEN),
        "One sign is mended, a second one is still wrong, in the same line of the table.": (
            lambda got, A, B: any(np.allclose(got, gives(A, B), rtol=1e-3) for gives in HALF_MENDED)
        ),
        **BLOCK_SLIPS,
    },
    hints=(
        "Which entries of A and B stand in the result, and in which block of C is the wrong one? Try it "
        "with matrices that hold a single 1.",
        "Form the tensor of the table, np.einsum('pa,pb,pc->abc', *zip(*PRODUCTS)), and compare "
        "it with that of the product. It differs in C11 alone, so look at the products that go there.",
        "The second product: it must be (A11 + A21) (B11 - B12), and the tables say (A11 - A21) (B11 + B12).",
    ),
)


# --- 03.crossover: from GFLOP/s and GB/s to the size from which one level pays ------------------------------


def crossover(gflops: float, gbps: float, itemsize: int, sums: int) -> float:
    """Return N for which the saved 2 N^3 / 8 operations take as long as the sums of blocks.

    A sum reads two blocks of (N / 2)^2 numbers and writes one, at `gbps`; products run at `gflops`.
    """
    return 3 * sums * itemsize * gflops / gbps


def _machines(rng: np.random.Generator) -> Iterator[Case]:
    # Of 10 bytes: a fixed size, 1, 2, 4 or 8, is no factor that another slip brings as well.
    yield Case((100.0, 20.0, 10, 18), "100 GFLOP/s, 20 GB/s, numbers of 80 bits, Strassen's 18 sums")
    yield Case((100.0, 20.0, 2, 18), "the same machine, float16")
    yield Case((100.0, 20.0, 8, 15), "the same machine, float64, Winograd's 15 sums")
    yield Case((1.0, 20.0, 8, 18), "a slow product: Strassen's own time")
    spans = (1, 20), (20, 500), (2e4, 1e6), (2e3, 8e3)  # the last two: a GPU, and its memory
    slow, fast, gpu, hbm = (lambda rng, span=span: round(float(rng.uniform(*span)), 3) for span in spans)
    # No 27 sums: of these, a fixed 18 is two thirds, as two blocks of three are.
    numbers = {"itemsize": (1, 2, 4, 8, 16), "sums": (15, 18, between(1, 15), between(28, 50))}
    rates = {"gflops": (slow, fast, 100.0, gpu), "gbps": (slow, fast, 20.0, hbm)}
    rows = every_pair(rng, **rates, **numbers)
    for gflops, gbps, itemsize, sums in (row.values() for row in rows):
        said = f"{gflops} GFLOP/s, {gbps} GB/s, numbers of {8 * itemsize} bits, {sums} sums"
        yield Case((gflops, gbps, itemsize, sums), said)


def _times(factor: float):
    return lambda *args: crossover(*args) * factor


CROSSOVER = Task(
    id="03.crossover",
    title="From which size on?",
    points=2,
    difficulty=2,
    minutes=10,
    cases=_machines,
    reference=crossover,
    comparison=close(rtol=1e-9),
    rules=(Language(("math", "numpy")),),
    lookalikes={
        "The numbers have itemsize bytes each.": (
            lambda got, gflops, gbps, itemsize, sums: (
                itemsize == 10
                and any(same(got, crossover(gflops, gbps, size, sums)) for size in (1, 2, 4, 8))
            )
        ),
        "N can be below 1, too: asked is where both times are equal.": (
            lambda got, *args: got == 1 > crossover(*args)
        ),
        "The arithmetic of the sums counts nothing, only what they move.": (
            lambda gflops, gbps, itemsize, sums: crossover(gflops, gbps, itemsize, sums) + sums
        ),
        "A block has (N / 2)^2 numbers, a quarter of the matrix: you count whole matrices.": _times(4),
        "A sum moves three blocks: it reads two and writes one. You count two.": _times(2 / 3),
        "A sum moves three blocks: it reads two and writes one. You count one.": _times(1 / 3),
        "Half of what is saved is missing: a block product has as many additions as multiplications, "
        "2 (N / 2)^3 operations.": _times(2),
        "You count all the operations of the product as saved. Of eight block products only one is.": _times(
            1 / 8
        ),
        "You divide by 4 once too often: a block of a sum and the saved product are quarters alike.": (
            _times(1 / 4)
        ),
        "Do not round: asked is where both times are equal, and that need not be a whole number.": (
            lambda got, *args: got == int(got) and 0 < abs(got - crossover(*args)) < 1
        ),
        "The number of sums is an argument: Winograd's variant has fewer.": {"sums": 18},
        "The rates are swapped: the faster the products are, the less there is to save.": (
            lambda gflops, gbps, itemsize, sums: crossover(gbps, gflops, itemsize, sums)
        ),
    },
    hints=(
        "How many operations does one level save at size N? How many bytes does one sum of blocks move?",
        "Saved: one block product, 2 (N / 2)^3 = N^3 / 4 operations, at gflops. Paid: sums * 3 blocks of "
        "(N / 2)^2 numbers, at gbps. Set the two times equal.",
        "N^3 / 4 / gflops = sums * 3 * itemsize * N^2 / 4 / gbps. Solve for N.",
    ),
)


#: In the order of the chapter.
TASKS = (COUNT, LOST, LEVEL, WINOGRAD, ANY_SHAPE, BUG, CROSSOVER, yours.PAYS_FROM)
