"""The faults of 10.accumulator and 10.scales that are none, each with its reason."""

from __future__ import annotations

from course_lib.grading.mutation.equivalent import Equivalent, changes_from

COMMUTES = "Factors may be exchanged, and so may products that are added at once."
ONE_ELEMENT = "Only the first element is looked at, and the last is the first where there is one."
BEGIN_ANYWHERE = "The search may begin with any number that surely holds."
COUNTING = "The search goes up by one and ends long before 64; whole numbers stay what they are."
ZERO = "One factor of 0 is enough for a product of 0."
EXACT = "The powers of two are exact either way."
SMALL_ENOUGH = "A product of 2^-17 or 2^-19 is as surely cut off as one of 2^-18."
EVEN_POWER = "The sixteenth power of -2 is that of 2."
ANY_SCALES = (
    "Any scales serve that differ widely from row to row and from block to block; more of them "
    "than there are blocks are not used."
)
ANY_LIMIT = "Any limit serves that allows what a right kernel cuts off and less than 6 %."
SAME_SCALES = "A's scales begin with the very rows that are B's."
TEXT = "The result is a text."

ENTRIES: tuple[Equivalent, ...] = (
    Equivalent(
        ("10.accumulator",),
        "unpacking",
        changes_from(
            "a, b = np.array(pairs).T",
            "b, a = np.array(pairs).T",
        ),
        COMMUTES,
    ),
    Equivalent(
        ("10.accumulator",),
        "operands",
        (
            *changes_from(
                "return tensor_core(a[None], b[None], np.zeros((1, 1)), core)[0, 0]",
                "return tensor_core(b[None], a[None], np.zeros((1, 1)), core)[0, 0]",
            ),
            *changes_from(
                "sum_bits = most(lambda k: dot(large, minus, small(k)))",
                "sum_bits = most(lambda k: dot(minus, large, small(k)))",
                "sum_bits = most(lambda k: dot(large, small(k), minus))",
            ),
            *changes_from(
                "terms = most(lambda n: not dot(large, minus, *[zero] * (n - 3), small(34)))",
                "terms = most(lambda n: not dot(minus, large, *[zero] * (n - 3), small(34)))",
                "terms = most(lambda n: not dot(large, *[zero] * (n - 3), minus, small(34)))",
            ),
            *changes_from(
                "return (terms, sum_bits, most(lambda k: dot(large, small(k)) > 2.0 ** 16))",
                "return (terms, sum_bits, most(lambda k: dot(small(k), large) > 2.0 ** 16))",
            ),
        ),
        COMMUTES,
    ),
    Equivalent(
        ("10.accumulator",),
        "index",
        changes_from(
            "return tensor_core(a[None], b[None], np.zeros((1, 1)), core)[0, 0]",
            "return tensor_core(a[None], b[None], np.zeros((1, 1)), core)[0 - 1, 0]",
            "return tensor_core(a[None], b[None], np.zeros((1, 1)), core)[0, 0 - 1]",
        ),
        ONE_ELEMENT,
    ),
    Equivalent(
        ("10.accumulator",),
        "constant",
        changes_from(
            "return tensor_core(a[None], b[None], np.zeros((1, 1)), core)[0, 0]",
            "return tensor_core(a[None], b[None], np.zeros((1, 1)), core)[-1, 0]",
            "return tensor_core(a[None], b[None], np.zeros((1, 1)), core)[0, -1]",
            "return tensor_core(a[None], b[None], np.zeros((2, 1)), core)[0, 0]",
            "return tensor_core(a[None], b[None], np.zeros((1, 2)), core)[0, 0]",
        ),
        ONE_ELEMENT,
    ),
    Equivalent(
        ("10.accumulator",),
        "constant",
        changes_from(
            "n = 1",
            "n = 2",
            "n = 0",
            "n = -1",
        ),
        BEGIN_ANYWHERE,
    ),
    Equivalent(
        ("10.accumulator",),
        "precision",
        changes_from(
            "n += 1",
            "n = abs(n + 1)",
        ),
        BEGIN_ANYWHERE,
    ),
    Equivalent(
        ("10.accumulator",),
        "precision",
        changes_from(
            "n += 1",
            "n += abs(1)",
            "n += int(1)",
        ),
        COUNTING,
    ),
    Equivalent(
        ("10.accumulator",),
        "comparison",
        changes_from(
            "while n < 64 and holds(n + 1):",
            "while n <= 64 and holds(n + 1):",
        ),
        COUNTING,
    ),
    Equivalent(
        ("10.accumulator",),
        "constant",
        changes_from(
            "while n < 64 and holds(n + 1):",
            "while n < 65 and holds(n + 1):",
            "while n < 63 and holds(n + 1):",
        ),
        COUNTING,
    ),
    Equivalent(
        ("10.accumulator",),
        "constant",
        changes_from(
            "large, minus, zero = ((256.0, 256.0), (-256.0, 256.0), (0.0, 0.0))",
            "large, minus, zero = ((256.0, 256.0), (-256.0, 256.0), (1.0, 0.0))",
            "large, minus, zero = ((256.0, 256.0), (-256.0, 256.0), (-1.0, 0.0))",
            "large, minus, zero = ((256.0, 256.0), (-256.0, 256.0), (0.0, 1.0))",
            "large, minus, zero = ((256.0, 256.0), (-256.0, 256.0), (0.0, -1.0))",
        ),
        ZERO,
    ),
    Equivalent(
        ("10.accumulator",),
        "operator",
        changes_from(
            "return (2.0 ** (8 - k // 2), 2.0 ** (8 - k + k // 2))",
            "return (2.0 ** (8 - k // 2), 2.0 ** (8 - k + k / 2))",
        ),
        EXACT,
    ),
    Equivalent(
        ("10.accumulator",),
        "constant",
        changes_from(
            "terms = most(lambda n: not dot(large, minus, *[zero] * (n - 3), small(34)))",
            "terms = most(lambda n: not dot(large, minus, *[zero] * (n - 3), small(33)))",
        ),
        SMALL_ENOUGH,
    ),
    Equivalent(
        ("10.accumulator",),
        "constant",
        changes_from(
            "return (terms, sum_bits, most(lambda k: dot(large, small(k)) > 2.0 ** 16))",
            "return (terms, sum_bits, most(lambda k: dot(large, small(k)) > (-2.0) ** 16))",
        ),
        EVEN_POWER,
    ),
    Equivalent(
        ("10.scales",),
        "operator",
        (
            *changes_from(
                "powers = 2.0 ** np.array([0, 5, -3, 2, -6, 4, -1])",
                "powers = 2.0 * np.array([0, 5, -3, 2, -6, 4, -1])",
            ),
            *changes_from(
                "blocks, groups = ((a.shape[1] + 127) // 128, (len(b) + 127) // 128)",
                "blocks, groups = (a.shape[1] * 127 // 128, (len(b) + 127) // 128)",
                "blocks, groups = ((a.shape[1] + 127) // 128, len(b) * 127 // 128)",
            ),
        ),
        ANY_SCALES,
    ),
    Equivalent(
        ("10.scales",),
        "operands",
        changes_from(
            "powers = 2.0 ** np.array([0, 5, -3, 2, -6, 4, -1])",
            "powers = np.array([0, 5, -3, 2, -6, 4, -1]) ** 2.0",
        ),
        ANY_SCALES,
    ),
    Equivalent(
        ("10.scales",),
        "operand missing",
        (
            *changes_from(
                "powers = 2.0 ** np.array([0, 5, -3, 2, -6, 4, -1])",
                "powers = np.array([0, 5, -3, 2, -6, 4, -1])",
            ),
            *changes_from(
                "blocks, groups = ((a.shape[1] + 127) // 128, (len(b) + 127) // 128)",
                "blocks, groups = (128, (len(b) + 127) // 128)",
                "blocks, groups = ((a.shape[1] + 127) // 128, len(b) + 127)",
                "blocks, groups = ((a.shape[1] + 127) // 128, 128)",
            ),
        ),
        ANY_SCALES,
    ),
    Equivalent(
        ("10.scales",),
        "constant",
        (
            *changes_from(
                "powers = 2.0 ** np.array([0, 5, -3, 2, -6, 4, -1])",
                "powers = 3.0 ** np.array([0, 5, -3, 2, -6, 4, -1])",
                "powers = (-2.0) ** np.array([0, 5, -3, 2, -6, 4, -1])",
                "powers = 2.0 ** np.array([1, 5, -3, 2, -6, 4, -1])",
                "powers = 2.0 ** np.array([-1, 5, -3, 2, -6, 4, -1])",
                "powers = 2.0 ** np.array([0, 6, -3, 2, -6, 4, -1])",
                "powers = 2.0 ** np.array([0, 4, -3, 2, -6, 4, -1])",
                "powers = 2.0 ** np.array([0, -5, -3, 2, -6, 4, -1])",
                "powers = 2.0 ** np.array([0, 5, -3, 3, -6, 4, -1])",
                "powers = 2.0 ** np.array([0, 5, -3, 1, -6, 4, -1])",
                "powers = 2.0 ** np.array([0, 5, -3, -2, -6, 4, -1])",
                "powers = 2.0 ** np.array([0, 5, -3, 2, -6, 5, -1])",
                "powers = 2.0 ** np.array([0, 5, -3, 2, -6, 3, -1])",
                "powers = 2.0 ** np.array([0, 5, -3, 2, -6, -4, -1])",
                "powers = 2.0 ** np.array([0, 5, -4, 2, -6, 4, -1])",
                "powers = 2.0 ** np.array([0, 5, -2, 2, -6, 4, -1])",
                "powers = 2.0 ** np.array([0, 5, --3, 2, -6, 4, -1])",
                "powers = 2.0 ** np.array([0, 5, -3, 2, -7, 4, -1])",
                "powers = 2.0 ** np.array([0, 5, -3, 2, -5, 4, -1])",
                "powers = 2.0 ** np.array([0, 5, -3, 2, --6, 4, -1])",
                "powers = 2.0 ** np.array([0, 5, -3, 2, -6, 4, -2])",
                "powers = 2.0 ** np.array([0, 5, -3, 2, -6, 4, -0])",
                "powers = 2.0 ** np.array([0, 5, -3, 2, -6, 4, --1])",
            ),
            *changes_from(
                "blocks, groups = ((a.shape[1] + 127) // 128, (len(b) + 127) // 128)",
                "blocks, groups = ((a.shape[1] + 127) // 129, (len(b) + 127) // 128)",
                "blocks, groups = ((a.shape[1] + 127) // 127, (len(b) + 127) // 128)",
                "blocks, groups = ((a.shape[1] + 127) // 128, (len(b) + 127) // 129)",
                "blocks, groups = ((a.shape[1] + 127) // 128, (len(b) + 127) // 127)",
                "blocks, groups = ((a.shape[1] + 128) // 128, (len(b) + 127) // 128)",
                "blocks, groups = ((a.shape[1] + 126) // 128, (len(b) + 127) // 128)",
                "blocks, groups = ((a.shape[1] + 127) // 128, (len(b) + 128) // 128)",
                "blocks, groups = ((a.shape[1] + 127) // 128, (len(b) + 126) // 128)",
                "blocks, groups = ((a.shape[-1] + 127) // 128, (len(b) + 127) // 128)",
            ),
        ),
        ANY_SCALES,
    ),
    Equivalent(
        ("10.scales",),
        "name",
        (
            *changes_from(
                "b_scales = np.resize(powers, (groups, blocks))",
                "b_scales = np.resize(a_scales, (groups, blocks))",
                "b_scales = np.resize(powers, (blocks, blocks))",
            ),
            *changes_from(
                "blocks, groups = ((a.shape[1] + 127) // 128, (len(b) + 127) // 128)",
                "blocks, groups = ((b.shape[1] + 127) // 128, (len(b) + 127) // 128)",
            ),
        ),
        ANY_SCALES,
    ),
    Equivalent(
        ("10.scales",),
        "comparison",
        changes_from(
            "fine = abs(d - wanted) <= abs(wanted) / 256 + size / 1024",
            "fine = abs(d - wanted) < abs(wanted) / 256 + size / 1024",
        ),
        ANY_LIMIT,
    ),
    Equivalent(
        ("10.scales",),
        "operands",
        changes_from(
            "fine = abs(d - wanted) <= abs(wanted) / 256 + size / 1024",
            "fine = abs(wanted - d) <= abs(wanted) / 256 + size / 1024",
        ),
        ANY_LIMIT,
    ),
    Equivalent(
        ("10.scales",),
        "operator",
        changes_from(
            "fine = abs(d - wanted) <= abs(wanted) / 256 + size / 1024",
            "fine = abs(d - wanted) <= abs(wanted) // 256 + size / 1024",
            "fine = abs(d - wanted) <= abs(wanted) / 256 + size // 1024",
        ),
        ANY_LIMIT,
    ),
    Equivalent(
        ("10.scales",),
        "constant",
        changes_from(
            "fine = abs(d - wanted) <= abs(wanted) / 256 + size / 1024",
            "fine = abs(d - wanted) <= abs(wanted) / 257 + size / 1024",
            "fine = abs(d - wanted) <= abs(wanted) / 255 + size / 1024",
            "fine = abs(d - wanted) <= abs(wanted) / 256 + size / 1025",
            "fine = abs(d - wanted) <= abs(wanted) / 256 + size / 1023",
        ),
        ANY_LIMIT,
    ),
    Equivalent(
        ("10.scales",),
        "name",
        changes_from(
            "fine = abs(d - wanted) <= abs(wanted) / 256 + size / 1024",
            "fine = abs(d - wanted) <= abs(d) / 256 + size / 1024",
            "fine = abs(d - wanted) <= abs(size) / 256 + size / 1024",
        ),
        ANY_LIMIT,
    ),
    Equivalent(
        ("10.scales",),
        "name",
        (
            *changes_from(
                "d = product(kernel, a, a_scales, b, b_scales)",
                "d = product(kernel, a, a_scales, b, a_scales)",
            ),
            *changes_from(
                "A, B = dequantised(a, a_scales, b, b_scales)",
                "A, B = dequantised(a, a_scales, b, a_scales)",
            ),
        ),
        SAME_SCALES,
    ),
    Equivalent(
        ("10.scales",),
        "result",
        (
            "text",
            "NaN is 0",
        ),
        TEXT,
    ),
)
