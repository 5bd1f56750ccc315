"""Tasks of chapter 10 that are solved by experiments on something that is given."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from course_lib.fp8.formats import E4M3
from course_lib.grading.compare import exact
from course_lib.grading.inputs import between, every_pair
from course_lib.grading.language import Language
from course_lib.grading.sources import load
from course_lib.grading.task import Case, Oracle, Task, source
from course_lib.grading.tasks.fp8.shared import MODULES, TENSOR_CORE
from course_lib.simulators.tensor_core import ADA, BLACKWELL, HOPPER, HOPPER_FP16

# --- 10.accumulator: the width of a sum that nobody can see, found by experiment ----------------------------

Core = tuple[int, int, int]


def widths(core: Core) -> Core:
    """Return what the key says: products at once, bits kept in the sum, bits kept in the result."""
    return core


def _cores(rng: np.random.Generator) -> Iterator[Case]:
    for known in (HOPPER, BLACKWELL, ADA, HOPPER_FP16):
        yield Case(((known.terms, known.sum_bits, known.result_bits),), f"a tensor core like {known.name}")
    rows = every_pair(
        rng,
        terms=(4, 8, 16, 32),
        sum_bits=(6, between(7, 13), 13, between(14, 23), 23, between(24, 30), 30),
        less=(0, 1, between(2, 10), between(10, 22), 30),  # bits of the result, of those that there may be
    )
    for row in rows:
        most = min(row["sum_bits"], 23)  # what comes back is float32: no more show
        core = row["terms"], row["sum_bits"], max(most - row["less"], 4)
        yield Case((core,), "a tensor core nobody has built")


def _sum_work(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> int:
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise ValueError(f"tensor_core takes a (M, K) and b (N, K), not {a.shape} and {b.shape}")
    rows = np.broadcast_shapes((len(a), len(b)), c.shape)
    return max(64, math.prod(n + 1 for n in rows)) * (a.shape[1] + 1)  # a sum takes its time for one row, too


ACCUMULATOR = Task(
    id="10.accumulator",
    title="The sum nobody can see",
    difficulty=5,
    minutes=35,
    cases=_cores,
    reference=widths,
    comparison=exact(("products at once", "bits in the sum", "bits in the result")),
    rules=(Language(MODULES, given=TENSOR_CORE),),
    oracle=Oracle("tensor_core", "core", load(TENSOR_CORE, "tensor_core"), _sum_work),
    lookalikes={
        "Both widths are one too many: asked are the bits below the leading one, 13 for Hopper, whose sums "
        "have 14 significant bits.": lambda got, core: tuple(got) == (core[0], core[1] + 1, core[2] + 1),
        "The sum has one bit too many. Are your factors powers of two? (1.5 x 1.5 has its leading one "
        "a place higher than the exponents say.)": lambda got, core: tuple(got[:2]) == (core[0], core[1] + 1),
        "Those are the widths of Hopper, whichever tensor core is asked for.": (
            lambda got, core: tuple(got) == (32, 13, 13) and core[1:] != (13, 13)
        ),
        "The bits in the sum are those of the result here. What is cut before the adding shows only if "
        "the result is small: let two large products cancel each other, and add a small one.": (
            lambda got, core: got[0] == core[0] and got[1] == core[2] < core[1]
        ),
        "The bits in the result are those of the sum here. A result is cut once more, to its own leading "
        "one: add a small product to a large one that stays.": (
            lambda got, core: tuple(got[:2]) == core[:2] and got[2] == core[1] > core[2]
        ),
        "The products at once are too many by one, or too few: count from the large product itself.": (
            lambda got, core: abs(got[0] - core[0]) == 1
        ),
        "The step is not that long. Only a product that comes in a later step than the large ones is not cut "
        "off beside them: one that comes earlier is in the old sum, which is cut, too.": (
            lambda got, core: got[0] > core[0]
        ),
        "The step is longer than that. Is your tiny product small enough to be cut off beside the large "
        "one?": lambda got, core: got[0] < core[0],
    },
    hints=(
        "256 · 256 - 256 · 256 + 2^-18 is 2^-18. When does the tensor core say 0? And what does it say if "
        "the last product comes a step later, when the large ones have cancelled already?",
        "Three experiments. Large, minus large, zeros, and a tiny product at place n: as long as n is in the "
        "first step, it is cut off; the first n that survives is the number of products at once. Large, "
        "minus large, and 2^-k of it, in one step: the last k that survives is the width of the sum. Large "
        "and 2^-k of it: the last k that changes anything is the width of the result.",
        "With n products in one step, dot(large, minus, *[zero] * (n - 3), small(34)) is 0; the largest such "
        "n is `terms`. Then the largest k with dot(large, minus, small(k)) > 0, and the largest k with "
        "dot(large, small(k)) > 2.0 ** 16, where small(k) is a pair whose product is 2.0 ** (16 - k).",
    ),
)


# --- 10.scales: a test of kernels that lets two of the worst faults pass, and one that lets none ------------

Kernel = tuple[int, int, int, int, int, int, int]

#: Handed out: kernels with block scales, right and broken ones, by a key.
KERNELS = source("""
    import numpy as np


    def product(kernel, a, a_scales, b, b_scales):  # -> (M, N) float32, rounded to bf16
        a, a_scales, b, b_scales = (np.asarray(x, float) for x in (a, a_scales, b, b_scales))
        late, a_late, b_late, row_late, first, spoilt, backwards = kernel
        M, N, blocks = len(a), len(b), a_scales.shape[1]
        rows, groups = np.arange(M), np.arange(N) // 128
        wrong_rows = (rows + row_late) % M
        wrong_groups = np.clip((np.arange(N) - late) // 128, 0, len(b_scales) - 1)
        d = np.zeros((M, N))
        for k in range(blocks)[:: -1 if backwards else 1]:
            p, q = a[:, 128 * k : 128 * k + 128], b[:, 128 * k : 128 * k + 128]
            size = np.abs(p) @ np.abs(q).T
            unit = np.ldexp(1.0, np.frexp(size)[1] - 13)  # a tensor core cuts off what is smaller
            on = k >= first  # the fault is there from this block of K on
            sa = a_scales[wrong_rows if on else rows, (k + a_late * on) % blocks]
            sb = b_scales[wrong_groups if on else groups, (k + b_late * on) % blocks]
            d += sa[:, None] * sb * np.trunc(p @ q.T / unit) * unit
        if spoilt >= 0:
            d[spoilt, np.abs(d[spoilt]).argmax()] *= 1.0625
        bits = d.astype(np.float32).view(np.uint32)
        return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32)


    def dequantised(a, a_scales, b, b_scales):  # -> A (M, K), B (N, K)
        A = a * np.repeat(a_scales, 128, axis=1)[:, : a.shape[1]]
        B = b * np.repeat(np.repeat(b_scales, 128, axis=0), 128, axis=1)[: len(b), : b.shape[1]]
        return A, B
""")


_GIVEN_PRODUCT = load(KERNELS, "product")


def judged(kernel: Kernel, a: np.ndarray, b: np.ndarray) -> str:
    """Return "right" or "wrong", as the key says: late columns, blocks and rows, or a spoilt element."""
    *late, _first, spoilt, _backwards = kernel
    return "wrong" if any(late) or spoilt >= 0 else "right"


#: Late columns, blocks and rows, a spoilt row, K backwards: what a kernel has, right or wrong.
FAULTS = (
    ("a kernel that is right", {}),
    ("a kernel that is right and walks K backwards", {"backwards": 1}),
    *((f"B's scales change {late} columns late", {"late": late}) for late in (16, 64)),
    ("B's scales change 16 columns early", {"late": -16}),
    *((f"B's scales change {late} columns late", {"late": late}) for late in (8, 32)),
    ("A's scales of the next block of K", {"a_late": 1}),
    ("A's scales of the block of K before", {"a_late": -1}),
    ("B's scales of the next block of K", {"b_late": 1}),
    ("B's scales of the block of K before", {"b_late": -1}),
    ("both scales of the next block of K", {"a_late": 1, "b_late": 1}),
    ("A's scales of the next row", {"row_late": 1}),
    ("A's scales of the row 8 further", {"row_late": 8}),
    *(("one element is 6 % too large", {"spoilt": row}) for row in (0, 5, -1)),
)
#: A row, the spoilt one if there is one: how many times smaller it is, and what is left of its sums.
#: Of 0.05 a mistake of 6 % is more than a right kernel may be wrong by, and less than twice that.
ODD_ROWS = {
    (1, 1): "",
    (2**14, 1): ", and a small row",  # one limit for all elements sees nothing there
    (1, 0.05): ", and a row whose sums partly cancel",
    (1, 0): ", and a row whose sums cancel",
}
#: K, and the block of it from which the fault is there. Scales that come again after two blocks look the same
#: in the last of three.
WHERE = ((256, 0), (258, -1), (300, 0), (384, -1))


def _kernels(rng: np.random.Generator) -> Iterator[Case]:
    for said, fault in FAULTS[:5]:
        yield from _case(rng, said, **fault)
    # of three blocks: there the published scales of B's first columns are nearly those of the others
    yield from _case(rng, "B's scales change 16 columns late", K=300, first=-1, late=16)
    rows = every_pair(
        rng,
        fault=FAULTS,
        where=WHERE,
        M=(10, between(12, 16)),
        N=(between(60, 128), between(150, 200), 250, between(270, 380)),
        odd=(*ODD_ROWS,),
        unless=lambda row: (
            ("late" in row["fault"][1] and row["N"] <= 128)  # there are no later columns
            or ("spoilt" in row["fault"][1] and not row["odd"][1])  # the limits are larger than that
        ),
    )
    for row in sorted(rows, key=lambda row: (bool(row["where"][1]) + (row["odd"] != (1, 1)), row["N"])):
        (said, fault), (K, first) = row["fault"], row["where"]
        odd = (fault.get("spoilt", row["M"] // 2), *row["odd"])
        yield from _case(rng, said, row["M"], K, first, odd=odd, N=row["N"], **fault)
    for row in (*range(10), -2, -1):  # each: in rows whose scales are large any limit sees it
        yield from _case(rng, "one element is 6 % too large", K=256, spoilt=row)
    # scales that come again look the same so many rows further: of 16 after 2, 4 or 8, of 12 after 3 or 6 …
    for M, further in ((16, 8), (14, 7), (12, 6), (15, 5)):  # seven powers of two were our own solution
        said = f"A's scales of the row {further} further, of {M}"
        yield from _case(rng, said, M=M, K=256, row_late=further)
    yield from _case(rng, "a kernel that is right, 16 rows", M=16, K=256)
    # one scale for all columns: the mean of a row is what an element of it may be, no less
    yield from _case(rng, "one element is 6 % too large", K=256, N=100, spoilt=3, odd=(3, 1, 0.05))
    # one group of columns: scales of which some are 0 may leave nothing of a row
    yield from _case(rng, "one element is 6 % too large", K=256, N=100, spoilt=5)


def _case(
    rng: np.random.Generator,
    said: str,
    M: int = 0,
    K: int = 0,
    first: int = 0,
    spoilt: int | None = None,
    odd: tuple[int, int, float] = (0, 1, 1),
    N: int = 0,
    **late: int,
) -> Iterator[Case]:
    M, N = M or int(rng.integers(10, 16)), N or int(rng.integers(150, 200))
    K = K or int(rng.choice([256, 300, 384]))  # the assignment says two or three blocks
    blocks = -(-K // 128)
    where = ", in the last block of K" if first else ""
    a, b = (100 * rng.standard_normal((rows, K)) for rows in (M, N))
    place, smaller, left = odd
    a[place] /= smaller
    if left < 1:  # a right kernel may be wrong by more than such an element: its limit needs |A| |B|^T
        b = np.abs(np.repeat(b[:, ::2], 2, axis=1))
        a[place] = np.repeat(np.abs(E4M3.round(a[place, ::2])), 2)
        a[place, 1::2] *= left - 1
        a[place, ::128] *= 1 if left else 1.1  # to the next number of e4m3
        if left:  # something in a last block of two numbers, too, whose scales may be the largest of all
            a[place, -2:] = 2.0 ** np.round(np.log2(a[place, -2])) * np.array([1, -15 / 16])
    a, b = (E4M3.round(one).astype(np.float64) for one in (a, b))
    names = ("late", "a_late", "b_late", "row_late")
    row = -1 if spoilt is None else spoilt % M
    kernel = (*(late.get(name, 0) for name in names), first % blocks, row, late.get("backwards", 0))
    yield Case((kernel, a, b), f"{said}{where}{ODD_ROWS[odd[1:]]} (a {M} x {K}, b {N} x {K})")


def _passes(fault: str):
    """Return whether a kernel with this fault was accepted."""
    places = {"late": 0, "a_late": 1, "b_late": 2, "row_late": 3}

    def fits(got: str, kernel: Kernel, a: np.ndarray, b: np.ndarray) -> bool:
        return got == "right" and (kernel[places[fault]] != 0 if fault in places else kernel[5] >= 0)

    return fits


def _product_work(a: np.ndarray, a_scales: np.ndarray, b: np.ndarray, b_scales: np.ndarray) -> int:
    shapes = [one.shape for one in (a, a_scales, b, b_scales)]
    if {*map(len, shapes)} != {2} or a.shape[1] != b.shape[1]:
        raise ValueError(f"product takes a (M, K), b (N, K) and their scales, not {shapes}")
    M, N, blocks = len(a), len(b), a_scales.shape[1]
    if len(a_scales) < M or len(b_scales) < -(-N // 128) or b_scales.shape[1] < blocks:
        raise ValueError(f"product was handed scales that are too few: {shapes}")
    return math.prod(n + 1 for n in (M, N, max(a.shape[1], 128 * blocks)))


def _product(
    kernel: Kernel, a: np.ndarray, a_scales: np.ndarray, b: np.ndarray, b_scales: np.ndarray
) -> np.ndarray:
    """Return what the kernel gives; where the spoilt row is none of a's, nothing is spoilt."""
    *late, spoilt, backwards = kernel
    there = spoilt if spoilt < len(a) and len(b) else -1
    return _GIVEN_PRODUCT((*late, there, backwards), a, a_scales, b, b_scales)


SCALES = Task(
    id="10.scales",
    title="The test that sees nothing",
    points=4,
    difficulty=5,
    minutes=40,
    cases=_kernels,
    reference=judged,
    rules=(Language(MODULES, given=KERNELS),),
    oracle=Oracle("product", "kernel", _product, _product_work),
    lookalikes={
        "Accepted, and yet it takes the wrong scales of B for some columns. Would two neighbouring scales of "
        "your inputs show it if they were exchanged in one block of K? Let them differ by powers of "
        "two.": _passes("late"),
        "Accepted, and yet it takes both scales of another block of K, A's and B's: the products of the two "
        "must differ from block to block.": lambda got, kernel, a, b: got == "right" and all(kernel[1:3]),
        "Accepted, and yet it takes A's scales of another block of K. Your scales must differ from block to "
        "block, for every row.": _passes("a_late"),
        "Accepted, and yet it takes B's scales of another block of K. Your scales must differ from block to "
        "block, for every 128 columns.": _passes("b_late"),
        "Accepted, and yet it takes the scales of other rows of A. Your scales must differ from "
        "row to row.": _passes("row_late"),
        "Accepted, and yet one element is wrong by 6 %. One number for the whole matrix cannot see that, nor "
        "a limit that is the same for large and small rows, nor one far beyond what a right kernel may be "
        "wrong by: look at every element.": _passes("spoilt"),
        "A right kernel is rejected. It rounds to bf16 (allow 2^-8 of the element), and the tensor core cuts "
        "off a little of |A| |B|^T, which is far larger than the element where terms cancel. Allow for "
        "both.": lambda got, kernel, a, b: got == "wrong" and judged(kernel, a, b) == "right",
    },
    hints=(
        "If all scales were equal, which of the faults could any test see? And if one row is 4096 times as "
        "large as another, what do the elements of the small one add to a sum over the whole matrix?",
        "Choose the scales: powers of two that differ from row to row, from block of K to block of K, and "
        "from 128 columns to the next. They need not be random: eleven of them, over and over, will do "
        "for eight blocks of K. (Seven would be the same again in the next row if there are seven blocks.) "
        "Then look at every element by itself: allowed is the rounding to bf16, 2^-8 |wanted|, and what a "
        "tensor core may cut off, 2^-10 of |A| |B|^T.",
        "powers = 2.0 ** np.arange(11); a_scales = np.resize(powers, (M, blocks)), and "
        "b_scales likewise; (abs(d - wanted) <= abs(wanted) / 256 + abs(A) @ abs(B).T / 1024).all()",
    ),
)
