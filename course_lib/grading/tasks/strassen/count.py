"""Task 03.count: how many operations Strassen's algorithm does, exactly, with a cutoff and for odd sizes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.grading.compare import exact
from course_lib.grading.rules import OnlyImports
from course_lib.grading.task import Case, Lookalike, Mutant, Task, source

SOLUTION = source("""
    def operations(n, cutoff):
        if n <= cutoff:
            return n**3, n**2 * (n - 1)
        half = n // 2
        multiplications, additions = operations(half, cutoff)
        multiplications, additions = 7 * multiplications, 7 * additions + 18 * half**2
        if n % 2 == 1:
            even = n - 1
            multiplications += even**2 + even * n + n**2
            additions += even**2 + even * (n - 1) + n * (n - 1)
        return multiplications, additions
""")


def operations(n: int, cutoff: int, sums: int = 18, products: int = 7, peel: bool = True) -> tuple[int, int]:
    """Return (multiplications, additions) of an n x n product; the classical one from `cutoff` down.

    `sums` block sums and `products` block products a level; an odd last row and column is peeled off.
    """
    if n <= cutoff:
        return n**3, n**2 * (n - 1)
    half, even = n // 2, n // 2 * 2
    multiplications, additions = operations(half, cutoff, sums, products, peel)
    multiplications, additions = products * multiplications, products * additions + sums * half**2
    if peel and even < n:
        multiplications += even**2 + even * n + n**2
        additions += even**2 + even * (n - 1) + n * (n - 1)
    return multiplications, additions


def _sizes(rng: np.random.Generator) -> Iterator[Case]:
    for n, cutoff in ((1, 1), (2, 1), (4, 1), (4, 2), (8, 8), (8, 1), (64, 16)):
        yield Case((n, cutoff), f"n = {n}, cutoff {cutoff}")
    for n, cutoff in ((3, 1), (7, 1), (13, 3), (100, 20)):
        yield Case((n, cutoff), f"n = {n}, cutoff {cutoff}: odd sizes are peeled")
    for _ in range(4):
        n, cutoff = int(rng.integers(200, 3000)), int(rng.integers(1, 64))
        yield Case((n, cutoff), f"n = {n}, cutoff {cutoff}")
    power, least = 2 ** int(rng.integers(8, 12)), 2 ** int(rng.integers(3, 7))
    yield Case((power, least), f"n = {power}, cutoff {least}")


def _uneven(n: int, cutoff: int) -> bool:
    return operations(n, cutoff) != operations(n, cutoff, peel=False)


TASK = Task(
    id="03.count",
    title="Count before you multiply",
    kind="predict",
    points=2,
    difficulty=2,
    minutes=15,
    good_for="knowing what fewer multiplications cost in additions, for every size and cutoff",
    entry="operations",
    cases=_sizes,
    reference=operations,
    comparison=exact(("multiplications", "additions")),
    rules=(OnlyImports(("math",)),),
    lookalikes=(
        Lookalike(
            "The two numbers are swapped: multiplications come first.",
            lambda n, cutoff: operations(n, cutoff)[::-1] if n > 1 else None,
        ),
        Lookalike(
            "You count 15 sums a level; that is Winograd's variant, which comes later. Strassen's has 18.",
            lambda n, cutoff: operations(n, cutoff, sums=15) if n > cutoff else None,
        ),
        Lookalike(
            "The 18 sums of blocks of every level are missing: half * half additions each.",
            lambda n, cutoff: operations(n, cutoff, sums=0) if n > cutoff else None,
        ),
        Lookalike(
            "The sums are sums of blocks: they have half * half numbers each, not n * n.",
            lambda n, cutoff: operations(n, cutoff, sums=72) if n > cutoff else None,
        ),
        Lookalike(
            "That is the definition with eight block products; Strassen's has seven.",
            fits=lambda got, n, cutoff: n > cutoff and got[0] == operations(n, cutoff, products=8)[0],
        ),
        Lookalike(
            "At n = cutoff the definition takes over already: the recursion goes on only above it.",
            lambda n, cutoff: operations(n, cutoff - 1) if n > 1 else None,
        ),
        Lookalike(
            "What is peeled off at an odd size is missing: the outer product for the block, the last column "
            "and the last row of C.",
            lambda n, cutoff: operations(n, cutoff, peel=False) if _uneven(n, cutoff) else None,
        ),
        Lookalike(
            "A sum of n products takes n - 1 additions: the first one has nothing to be added to.",
            fits=lambda got, n, cutoff: (
                got[0] == operations(n, cutoff)[0] and n <= cutoff and got[1] == n**3 and n > 1
            ),
        ),
    ),
    hints=(
        "What does one level do for n = 4 and cutoff 2? How many products of which blocks, how many sums of "
        "how many numbers?",
        "With half = n // 2: seven times what a product of size half costs, and 18 * half**2 additions. For "
        "n <= cutoff it is n**3 and n**2 * (n - 1). An odd n adds three classical pieces, with even = n - 1.",
        "Peeled: even**2 + even * n + n**2 multiplications and "
        "even**2 + even * (n - 1) + n * (n - 1) additions. Call operations(half, cutoff) for the rest.",
    ),
    mutants=(
        Mutant(
            "the definition",
            source("""
                def operations(n, cutoff):
                    return n**3, n**2 * (n - 1)
            """),
            ("expected is",),
        ),
        Mutant("eight products", SOLUTION.replace("= 7 * m", "= 8 * m"), ("eight block products",)),
        Mutant("fifteen sums", SOLUTION.replace("18", "15"), ("Winograd",)),
        Mutant("no sums", SOLUTION.replace(" + 18 * half**2", ""), ("18 sums", "missing")),
        Mutant("sums of whole matrices", SOLUTION.replace("18 * half**2", "18 * n**2"), ("half * half",)),
        Mutant("no peeling", SOLUTION.replace("n % 2 == 1", "False"), ("peeled off",)),
        Mutant("cutoff one late", SOLUTION.replace("n <= cutoff", "n < cutoff or n == 1"), ("above it",)),
        Mutant(
            "one addition too many",
            SOLUTION.replace("n**2 * (n - 1)", "n**3"),
            ("additions", "expected is"),
        ),
        Mutant(
            "one level only",
            SOLUTION.replace("= operations(half, cutoff)", "= half**3, half**2 * (half - 1)"),
            ("expected is",),
        ),
        Mutant(
            "7 to the power of the levels",
            source("""
                import math
                def operations(n, cutoff):
                    levels = 0
                    while n > cutoff:
                        n, levels = n // 2, levels + 1
                    return 7**levels * n**3, 6 * 7**levels * n**2
            """),
            ("expected is",),
        ),
        Mutant(
            "forgets to return",
            SOLUTION.replace("        return multiplications, additions\n", "").replace(
                "    return multiplications, additions\n", ""
            ),
            ("is a `return` missing?",),
        ),
    ),
)
