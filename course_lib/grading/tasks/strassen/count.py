"""Task 03.count: how many operations Strassen's algorithm does, exactly, with a cutoff and for odd sizes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from course_lib.grading.compare import Mismatch, exact
from course_lib.grading.rules import OnlyImports
from course_lib.grading.task import Case, Lookalike, Task, source

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
    half = n // 2
    multiplications, additions = operations(half, cutoff, sums, products, peel)
    multiplications, additions = products * multiplications, products * additions + sums * half**2
    rest = _peeled(n) if peel and n % 2 else (0, 0)
    return multiplications + rest[0], additions + rest[1]


def _peeled(n: int) -> tuple[int, int]:
    """Return what the outer product, the last column and the last row of an odd n take."""
    even = n - 1
    return even**2 + even * n + n**2, even**2 + even * (n - 1) + n * (n - 1)


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


def _sizes(rng: np.random.Generator) -> Iterator[Case]:
    for n, cutoff in ((1, 1), (2, 1), (4, 1), (4, 2), (8, 8), (8, 1), (64, 16)):
        yield Case((n, cutoff), f"n = {n}, cutoff {cutoff}")
    for n, cutoff in ((3, 1), (7, 1), (13, 3), (100, 20)):
        yield Case((n, cutoff), f"n = {n}, cutoff {cutoff}: odd sizes are peeled")
    for n in (3, 9, 2 * int(rng.integers(5, 40)) + 1):
        yield Case((n, n - 1), f"n = {n}, cutoff {n - 1}: odd, and just above the cutoff")
    for _ in range(4):
        n, cutoff = int(rng.integers(200, 3000)), int(rng.integers(1, 64))
        yield Case((n, cutoff), f"n = {n}, cutoff {cutoff}")
    power, least = 2 ** int(rng.integers(8, 12)), 2 ** int(rng.integers(3, 7))
    yield Case((power, least), f"n = {power}, cutoff {least}")


def _stops_at_even(n: int, cutoff: int) -> tuple[int, int]:
    """Return the counts if the cutoff is asked once more for the even part n - 1 of an odd n."""
    if n <= cutoff:
        return n**3, n**2 * (n - 1)
    if n % 2:
        parts = _stops_at_even(n - 1, cutoff), _peeled(n)
        return parts[0][0] + parts[1][0], parts[0][1] + parts[1][1]
    multiplications, additions = _stops_at_even(n // 2, cutoff)
    return 7 * multiplications, 7 * additions + 18 * (n // 2) ** 2


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
    comparison=WholeNumbers(),
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
            "An odd n just above the cutoff still does one level, on m = n - 1, even if m is not above the "
            "cutoff itself: only n is compared with it.",
            lambda n, cutoff: (
                _stops_at_even(n, cutoff) if _stops_at_even(n, cutoff) != operations(n, cutoff) else None
            ),
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
)
