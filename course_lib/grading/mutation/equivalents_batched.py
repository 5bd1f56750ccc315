"""The faults of chapter 07 that are none, each with its reason."""

from __future__ import annotations

from course_lib.grading.mutation.equivalent import Equivalent

AGAIN = "It does the same once more, with the same numbers, and what was found stays as it is."
PADDED = "padded = np.concatenate([{}, scores], axis=1)"
COLUMN = "np.zeros((T, 1), scores.dtype)"
SHIFTED = "shifted = padded.reshape({}, T)[1:].reshape(T, {})[:, :T]"
RAISED = "raised = np.exp(filled - filled.max(axis={}, keepdims=True))"
DIVIDED = "return np.where(mask, raised / raised.sum(axis={}, keepdims=True), 0.0)"
LAST_AXIS = "A matrix has two axes, so the last one is axis 1."
MOVED = "columns[c * kernel + k, t] = x[c, frame]"
FRAME = "frame = t * stride + k * dilation - padding; if 0 <= frame < T:; " + MOVED
BEST = "best = max(best, (self_us - least, name, self_us / time))"
FOUND = "worst, found = (self_us / calls / usual[name], name)"
GREW = "if name in usual and self_us / calls / usual[name] {} worst:"
TAKEN = "best = (batch, batch / seconds)"
GOOD = "if in_time and keeps_up and (batch {} best[0]):"

ENTRIES: tuple[Equivalent, ...] = (
    Equivalent(
        ("07.strides",),
        "comparison",
        ("step = b if H == 1 else h -> step = b if H <= 1 else h",),
        "There is at least one head.",
    ),
    Equivalent(
        ("07.bmm",),
        "name",
        ("C = np.zeros((batch, M, N), A.dtype) -> C = np.zeros((batch, M, N), B.dtype)",),
        "A and B have the same dtype.",
    ),
    Equivalent(
        ("07.im2col",),
        "loop twice",
        (
            f"after {MOVED} -> for c in range(C):; for k in range(kernel):; for t in range(T_out):; {FRAME}",
            f"after {MOVED} -> for k in range(kernel):; for t in range(T_out):; {FRAME}",
            f"after {MOVED} -> for t in range(T_out):; {FRAME}",
        ),
        AGAIN,
    ),
    Equivalent(
        ("07.im2col",),
        "bounds",
        ("for c in range(C): -> for c in range(0 - 1, C):",),
        "Channel -1 is the last one, and its rows are the last ones: they are written twice.",
    ),
    Equivalent(
        ("07.im2col",),
        "accumulate",
        (f"{MOVED} -> columns[c * kernel + k, t] += x[c, frame]",),
        "Every element is written once, and there was 0 before.",
    ),
    Equivalent(
        ("07.rel_shift",),
        "constant",
        (f"{PADDED.format(COLUMN)} -> padded = np.concatenate([{COLUMN}, scores], axis=-1)",),
        LAST_AXIS,
    ),
    Equivalent(
        ("07.rel_shift",),
        "function",
        (
            f"{PADDED.format(COLUMN)} -> {PADDED.format(COLUMN.replace('zeros', 'empty'))}",
            f"{PADDED.format(COLUMN)} -> {PADDED.format(COLUMN.replace('zeros', 'ones'))}",
        ),
        "No number of the padding comes into the first T columns.",
    ),
    Equivalent(
        ("07.rel_shift",),
        "dtype",
        (
            f"{PADDED.format(COLUMN)} -> {PADDED.format(COLUMN.replace('scores.dtype', 'np.float32'))}",
            f"{PADDED.format(COLUMN)} -> {PADDED.format(COLUMN.replace('scores.dtype', 'np.float16'))}",
        ),
        "Joined with wider numbers, the column becomes as wide as they are.",
    ),
    Equivalent(
        ("07.rel_shift",),
        "constant",
        (
            f"{SHIFTED.format('2 * T', '2 * T - 1')} -> {SHIFTED.format('2 * T', '-2 * T - 1')}",
            f"{SHIFTED.format('2 * T', '2 * T - 1')} -> {SHIFTED.format('-2 * T', '2 * T - 1')}",
        ),
        "NumPy works out a negative length from the others.",
    ),
    Equivalent(
        ("07.rel_shift",),
        "operands",
        (f"{SHIFTED.format('2 * T', '2 * T - 1')} -> {SHIFTED.format('2 * T', '1 - 2 * T')}",),
        "NumPy works out a negative length from the others.",
    ),
    Equivalent(
        ("07.softmax",),
        "name",
        ("filled = np.where(mask, scores, -10000.0) -> filled = np.where(valid, scores, -10000.0)",),
        "It masks the keys alone; the rows of masked queries differ, and all of them becomes 0 in the end.",
    ),
    Equivalent(
        ("07.softmax",),
        "constant",
        (
            f"{RAISED.format(1)} -> {RAISED.format(-1)}",
            f"{DIVIDED.format(1)} -> {DIVIDED.format(-1)}",
        ),
        LAST_AXIS,
    ),
    Equivalent(
        ("07.softmax",),
        "result",
        ("float64", "no sign", "NaN is 0", "inf is NaN"),
        "The weights are float64 from 0 to 1.",
    ),
    Equivalent(
        ("07.profile",),
        "loop twice",
        (
            f"after {BEST} -> for name, _calls, self_us, _total, flops, moved in rows:; "
            f"least = max(flops / (gflops * 1000), moved / (gbytes * 1000)); {BEST}",
        ),
        AGAIN,
    ),
    Equivalent(
        ("07.profile",),
        "constant",
        ("best = (0.0, '', 0.0) -> best = (-1.0, '', 0.0)",),
        "There is an op with something to gain, so it is never the first entry that is returned.",
    ),
    Equivalent(
        ("07.profile",),
        "constant",
        (
            "best = (0.0, '', 0.0) -> best = (0.0, '', 1.0)",
            "best = (0.0, '', 0.0) -> best = (0.0, '', -1.0)",
        ),
        "There is an op with something to gain, so the share that stands first is replaced.",
    ),
    Equivalent(
        ("07.slow",),
        "loop twice",
        (f"after {FOUND} -> for name, calls, self_us, _total in after:; {GREW.format('>')}; {FOUND}",),
        AGAIN,
    ),
    Equivalent(
        ("07.slow",),
        "constant",
        ("worst, found = (0.0, '') -> worst, found = (-1.0, '')",),
        "A ratio of two times is above 0, so the first op is above either number.",
    ),
    Equivalent(
        ("07.slow",),
        "comparison",
        (f"{GREW.format('>')} -> {GREW.format('>=')}",),
        "No two ops have grown by the same factor.",
    ),
    Equivalent(("07.slow",), "result", ("text", "NaN is 0"), "The result is a text."),
    Equivalent(
        ("07.batch",),
        "loop twice",
        (
            f"after {TAKEN} -> for batch, seconds in measured:; waited = (batch - 1) / rate; "
            f"in_time = waited + seconds <= target; keeps_up = batch / seconds >= rate; "
            f"{GOOD.format('>')}; {TAKEN}",
        ),
        AGAIN,
    ),
    Equivalent(
        ("07.batch",),
        "comparison",
        (f"{GOOD.format('>')} -> {GOOD.format('>=')}",),
        "Every batch is measured once.",
    ),
)
