"""The faults of chapter 10 that are none, each with its reason; those of its two experiments stand apart."""

from __future__ import annotations

from course_lib.grading.mutation.equivalent import WHOLE_NUMBERS, Equivalent, changes_from

FIELDS = "Four bits hold no number above 15 and three none above 7, and none holds one below 0."
NAN_SIGN = "The code 127 is NaN, whose sign is not looked at."
SIGN_ALONE = "Copysign gives the number or its opposite and never 0, and only the sign is asked for."
SATURATED = "What is cut at 447 or 449 is rounded to 448."
SAME_EXPONENT = (
    "From 2^-6 to 2^-5 the exponent is -6 either way, and frexp gives two numbers, the last of "
    "which is number 1."
)
AGAIN = "It does the same once more, with the same numbers."
ANY_ORDER = "The larger of two numbers is the same in any order."
LAST_AXIS = "A matrix has two axes, so the last one is axis 1."
SAME_PIECES = "The widths 128, 64 and 32 divided by 15 are 8, 4 and 2 as well."
EMPTY_RUN = "A run of no products adds nothing."
FLOAT32_ANYWAY = "The tensor core gives float32, whatever its sum began with."
SAME_K = "A and B have two axes, and their last ones are equally long."
NOT_TOUCHED = "The tensor core goes as far as a reaches: what b has beyond it is not touched."
FINITE = "The result is float32, and no sum of finite numbers of e4m3 is anything but finite."
STILL_BEST = "The best one is still the best when all are looked at once more."
SAME_END = "The last multiple of 16 is 128 in both."
ONE_ROW = "For up to 64 rows there is one row of tiles, and at least 8 stages fit, with 65 as with 64."
NEVER_COMPARED = "Any number of turns is fewer than infinitely many, so the other two are never compared."
SAME_STAGES = "The eight widths have the same whole number of stages with this little more or less room."

ENTRIES: tuple[Equivalent, ...] = (
    Equivalent(
        ("10.decode",),
        "comparison",
        (
            *changes_from(
                "if exponent == 0:",
                "if exponent <= 0:",
            ),
            *changes_from(
                "if exponent == 15 and fraction == 7:",
                "if exponent >= 15 and fraction == 7:",
                "if exponent == 15 and fraction >= 7:",
            ),
        ),
        FIELDS,
    ),
    Equivalent(
        ("10.decode",),
        "constant",
        changes_from(
            "sign = -1.0 if code >= 128 else 1.0",
            "sign = -1.0 if code >= 127 else 1.0",
        ),
        NAN_SIGN,
    ),
    Equivalent(
        ("10.encode",),
        "comparison",
        changes_from(
            "sign = 128 if math.copysign(1.0, x) < 0 else 0",
            "sign = 128 if math.copysign(1.0, x) <= 0 else 0",
        ),
        SIGN_ALONE,
    ),
    Equivalent(
        ("10.encode",),
        "constant",
        changes_from(
            "sign = 128 if math.copysign(1.0, x) < 0 else 0",
            "sign = 128 if math.copysign(1.0, x) < 1 else 0",
            "sign = 128 if math.copysign(2.0, x) < 0 else 0",
            "sign = 128 if math.copysign(-1.0, x) < 0 else 0",
        ),
        SIGN_ALONE,
    ),
    Equivalent(
        ("10.encode",),
        "constant",
        changes_from(
            "size = min(abs(x), 448.0)",
            "size = min(abs(x), 449.0)",
            "size = min(abs(x), 447.0)",
        ),
        SATURATED,
    ),
    Equivalent(
        ("10.encode",),
        "comparison",
        changes_from(
            "exponent = -6 if size < 2.0 ** (-6) else math.frexp(size)[1] - 1",
            "exponent = -6 if size <= 2.0 ** (-6) else math.frexp(size)[1] - 1",
        ),
        SAME_EXPONENT,
    ),
    Equivalent(
        ("10.encode",),
        "constant",
        changes_from(
            "exponent = -6 if size < 2.0 ** (-6) else math.frexp(size)[1] - 1",
            "exponent = -6 if size < (-2.0) ** (-6) else math.frexp(size)[1] - 1",
            "exponent = -6 if size < 2.0 ** (-6) else math.frexp(size)[-1] - 1",
            "exponent = -6 if size < 2.0 ** (-5) else math.frexp(size)[1] - 1",
        ),
        SAME_EXPONENT,
    ),
    Equivalent(
        (
            "10.encode",
            "10.swizzle",
        ),
        "result",
        (
            "no sign",
            "rounded",
            "whole number",
            "float32",
            "NaN is 0",
        ),
        WHOLE_NUMBERS,
    ),
    Equivalent(
        (
            "10.parity",
            "10.schedule",
        ),
        "result",
        (
            "no sign",
            "rounded",
            "whole numbers",
            "float32",
            "NaN is 0",
        ),
        WHOLE_NUMBERS,
    ),
    Equivalent(
        ("10.quantise",),
        "loop twice",
        changes_from(
            "after scaled[:, 128 * block:128 * block + 128] = part / scales[:, block:block + 1]",
            "for block in range((K + 127) // 128):; part = x[:, 128 * block:128 * block + "
            "128]; amax = np.abs(part).max(axis=1); scales[:, block] = np.maximum(amax, "
            "0.0001) / 448; scaled[:, 128 * block:128 * block + 128] = part / scales[:, "
            "block:block + 1]",
        ),
        AGAIN,
    ),
    Equivalent(
        ("10.quantise",),
        "operands",
        changes_from(
            "scales[:, block] = np.maximum(amax, 0.0001) / 448",
            "scales[:, block] = np.maximum(0.0001, amax) / 448",
        ),
        ANY_ORDER,
    ),
    Equivalent(
        ("10.quantise",),
        "constant",
        changes_from(
            "amax = np.abs(part).max(axis=1)",
            "amax = np.abs(part).max(axis=-1)",
        ),
        LAST_AXIS,
    ),
    Equivalent(
        ("10.swizzle",),
        "constant",
        changes_from(
            "return offset ^ offset // 128 % (width // 16) * 16",
            "return offset ^ offset // 128 % (width // 15) * 16",
        ),
        SAME_PIECES,
    ),
    Equivalent(
        ("10.promotion",),
        "bounds",
        changes_from(
            "for start in range(0, A.shape[1], every):",
            "for start in range(0, A.shape[1] + 1, every):",
        ),
        EMPTY_RUN,
    ),
    Equivalent(
        ("10.promotion",),
        "operand missing",
        changes_from(
            "fresh = np.zeros((len(A), len(B)), np.float32)",
            "fresh = np.zeros((len(A), len(B)))",
        ),
        FLOAT32_ANYWAY,
    ),
    Equivalent(
        ("10.promotion",),
        "constant",
        changes_from(
            "for start in range(0, A.shape[1], every):",
            "for start in range(0, A.shape[-1], every):",
        ),
        SAME_K,
    ),
    Equivalent(
        ("10.promotion",),
        "name",
        changes_from(
            "for start in range(0, A.shape[1], every):",
            "for start in range(0, B.shape[1], every):",
        ),
        SAME_K,
    ),
    Equivalent(
        ("10.promotion",),
        "index",
        changes_from(
            "a, b = (A[:, start:start + every], B[:, start:start + every])",
            "a, b = (A[:, start:start + every], B[:, start:start + every + 1])",
        ),
        NOT_TOUCHED,
    ),
    Equivalent(
        ("10.promotion",),
        "result",
        (
            "float32",
            "through float32",
            "NaN is 0",
            "inf is NaN",
        ),
        FINITE,
    ),
    Equivalent(
        ("10.tiles",),
        "loop twice",
        changes_from(
            "after best = max(best, (-turns, last, BN))",
            "for BN in range(16, 129, 16):; tiles = -(-M // BM) * -(-N // BN); turns = "
            "-(-tiles // sms); last = tiles - (turns - 1) * sms; best = max(best, (-turns, "
            "last, BN))",
        ),
        STILL_BEST,
    ),
    Equivalent(
        ("10.tiles",),
        "bounds",
        changes_from(
            "for BN in range(16, 129, 16):",
            "for BN in range(16, 129 + 1, 16):",
        ),
        SAME_END,
    ),
    Equivalent(
        ("10.tiles",),
        "constant",
        changes_from(
            "for BN in range(16, 129, 16):",
            "for BN in range(16, 130, 16):",
        ),
        SAME_END,
    ),
    Equivalent(
        ("10.tiles",),
        "constant",
        changes_from(
            "BM = 64 if M <= 64 else 128",
            "BM = 65 if M <= 64 else 128",
        ),
        ONE_ROW,
    ),
    Equivalent(
        ("10.tiles",),
        "constant",
        changes_from(
            "best = (-math.inf, 0, 0)",
            "best = (-math.inf, 1, 0)",
            "best = (-math.inf, -1, 0)",
            "best = (-math.inf, 0, 1)",
            "best = (-math.inf, 0, -1)",
        ),
        NEVER_COMPARED,
    ),
    Equivalent(
        ("10.tiles",),
        "constant",
        (
            *changes_from(
                "room = 227 * 1024 - 1024 - 2 * BM * BN",
                "room = 227 * 1024 - 1025 - 2 * BM * BN",
                "room = 227 * 1024 - 1023 - 2 * BM * BN",
                "room = 226 * 1024 - 1024 - 2 * BM * BN",
                "room = 227 * 1025 - 1024 - 2 * BM * BN",
                "room = 227 * 1023 - 1024 - 2 * BM * BN",
            ),
            *changes_from(
                "stage = 128 * (BM + BN) + 4 * BM",
                "stage = 129 * (BM + BN) + 4 * BM",
                "stage = 128 * (BM + BN) + 5 * BM",
                "stage = 128 * (BM + BN) + 3 * BM",
            ),
        ),
        SAME_STAGES,
    ),
)
