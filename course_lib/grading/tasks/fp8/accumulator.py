"""Task 10.accumulator: the width of a sum that nobody can see, found by experiment."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.grading.compare import exact
from course_lib.grading.rules_given import GivenAsItIs, OnlyHandedTo
from course_lib.grading.task import Case, Lookalike, Task, source
from course_lib.grading.tasks.fp8.shared import TENSOR_CORE, USUAL_IMPORTS
from course_lib.simulators.tensor_core import ADA, BLACKWELL, HOPPER, HOPPER_FP16

Core = tuple[int, int, int]

SOLUTION = source("""
    def widths(core):
        large, minus, zero = (256.0, 256.0), (-256.0, 256.0), (0.0, 0.0)

        def small(k):  # its product is 2^(16 - k)
            return 2.0 ** (8 - k // 2), 2.0 ** (8 - k + k // 2)

        def dot(*pairs):
            a, b = np.array(pairs).T
            return tensor_core(a[None], b[None], np.zeros((1, 1)), core)[0, 0]

        def most(holds):
            n = 1
            while n < 64 and holds(n + 1):
                n += 1
            return n

        terms = most(lambda n: not dot(large, minus, *[zero] * (n - 3), small(34)))
        sum_bits = most(lambda k: dot(large, minus, small(k)))
        return terms, sum_bits, most(lambda k: dot(large, small(k)) > 2.0**16)
""")


def widths(core: Core) -> Core:
    """Return what the key says: products at once, bits kept in the sum, bits kept in the result."""
    return core


def _cores(rng: np.random.Generator) -> Iterator[Case]:
    for known in (HOPPER, BLACKWELL, ADA, HOPPER_FP16):
        yield Case(((known.terms, known.sum_bits, known.result_bits),), f"a tensor core like {known.name}")
    yield Case(((16, 6, 5),), "a tensor core with few bits")
    for _ in range(8):
        sum_bits = int(rng.integers(6, 28))
        result_bits = int(rng.integers(4, min(sum_bits, 23) + 1))
        yield Case(
            ((int(rng.choice([4, 8, 16, 32])), sum_bits, result_bits),), "a tensor core nobody has built"
        )


TASK = Task(
    id="10.accumulator",
    title="The sum nobody can see",
    kind="open",
    points=3,
    difficulty=5,
    minutes=35,
    good_for="finding out what a data sheet does not say; DeepSeek found Hopper's 14 bits in this way",
    entry="widths",
    cases=_cores,
    reference=widths,
    comparison=exact(("products at once", "bits in the sum", "bits in the result")),
    rules=(USUAL_IMPORTS, GivenAsItIs(TENSOR_CORE), OnlyHandedTo("core", "tensor_core")),
    lookalikes=(
        Lookalike(
            "You count the leading one: asked are the bits below it, 13 for Hopper, whose sums have 14 "
            "significant bits.",
            fits=lambda got, core: tuple(got) == (core[0], core[1] + 1, core[2] + 1),
        ),
        Lookalike(
            "1.5 x 1.5 has its leading one a place higher than the exponents of its factors say: probe with "
            "powers of two.",
            fits=lambda got, core: tuple(got[:2]) == (core[0], core[1] + 1),
        ),
        Lookalike(
            "Those are the widths of Hopper, whichever tensor core is asked for.",
            fits=lambda got, core: tuple(got) == (32, 13, 13) and core[1:] != (13, 13),
        ),
        Lookalike(
            "The bits in the sum are those of the result here. What is cut before the adding shows only if "
            "the result is small: let two large products cancel each other, and add a small one.",
            fits=lambda got, core: got[0] == core[0] and got[1] == core[2] < core[1],
        ),
        Lookalike(
            "The bits in the result are those of the sum here. A result is cut once more, to its "
            "own leading "
            "one: add a small product to a large one that stays.",
            fits=lambda got, core: tuple(got[:2]) == core[:2] and got[2] == core[1] > core[2],
        ),
        Lookalike(
            "The products at once are too many by one, or too few: count from the large product itself.",
            fits=lambda got, core: abs(got[0] - core[0]) == 1,
        ),
        Lookalike(
            "The step is not that long: products that are added at once share one unit, and later "
            "ones do not.",
            fits=lambda got, core: got[0] > core[0],
        ),
        Lookalike(
            "The step is longer than that. Is your tiny product small enough to be cut off beside the large "
            "one?",
            fits=lambda got, core: got[0] < core[0],
        ),
    ),
    hints=(
        "256 · 256 - 256 · 256 + 2^-18 is 2^-18. When does the tensor core say 0? And what does it "
        "say if the "
        "last product comes a step later, when the large ones have cancelled already?",
        "Three experiments. Large, minus large, zeros, and a tiny product at place n: as long as n "
        "is in the "
        "first step, it is cut off; the first n that survives is the number of products at once. Large, "
        "minus large, and 2^-k of it, in one step: the last k that survives is the width of the sum. Large "
        "and 2^-k of it: the last k that changes anything is the width of the result.",
        "With n products in one step, dot(large, minus, *[zero] * (n - 3), small(34)) is 0; the "
        "largest such n "
        "is `terms`. Then the largest k with dot(large, minus, small(k)) > 0, and the largest k with "
        "dot(large, small(k)) > 2.0 ** 16, where small(k) is a pair whose product is 2.0 ** (16 - k).",
    ),
)
