"""Tasks of chapter 07 on layouts: strides, batches, convolution as a product, relative positions."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from course_lib.grading.compare import Values, exact, product_tolerance
from course_lib.grading.language import Language
from course_lib.grading.task import Case, Task
from course_lib.grading.tasks.compiled_loops import LOOPS_ONLY, matrix, product, sizes

#: What the assignment's setup cell imports, and what Python has for counting. No PyTorch, nor this course.
USUAL_IMPORTS = Language(("numpy", "numba", "math", "collections", "itertools"))


# --- 07.strides: which views of a tensor one strided batched call takes as they are -------------------------

COPY = ("copy", 0, 0)


def layout(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[str, int, int]:
    """Return how one strided batched call can take an operand (B, H, M, N), with strides in elements.

    As BLAS has it: rows or columns contiguous, the leading dimension at least as long as one of them, and one
    step from each of the B * H matrices to the next (`cublas<t>gemmStridedBatched`, cuBLAS documentation).
    """
    (B, H, M, N), (b, h, row, column) = shape, strides
    if B > 1 and H > 1 and b != H * h:
        return COPY
    step = b if H == 1 else h
    if column == 1 and row >= N:
        return "plain", row, step
    if row == 1 and column >= M:
        return "transposed", column, step
    return COPY


def _views(rng: np.random.Generator) -> Iterator[Case]:
    """Yield views, most of them once more with each matrix transposed: then both labels stand beside them."""
    B, H, M, N = sizes(rng, 2, 9, count=4)
    yield from _view(
        (B, H, M, N), (H * M * N, M * N, N, 1), "a tensor as it is made", "the same, each matrix transposed"
    )
    yield from _view(
        (B, 1, M, N),
        (H * M * N, M * N, N, 1),
        "the first head of each utterance",
        "the first head of each, transposed",
    )
    yield from _view(
        (B, 1, M, N), (M * N, B * M * N, N, 1), "the first head where all utterances of a head lie together"
    )
    one, apart = (1, H, M, N), (2 * H * M * N, 2 * M * N, 2 * N, 2)  # as promised, never B = H = 1
    yield from _view(one, apart, "every second column of the heads of one utterance")
    yield from _view(
        (B, H, N, M),
        (H * M * N, M * N, M, 1),
        "a tensor as it is made, M and N exchanged",
        "the same, each matrix transposed",
    )
    yield from _view(
        (B, H, M, N), (H * M * N, M * N, N, 0), "one number for each row", "one number for each column"
    )
    for few in ((2, H, M, N), (B, 2, M, N)):
        width = few[1] * N
        yield from _view(few, (M * width, N, width, 1), f"the heads of a projection, {few[0]} x {few[1]}")
    T, D, width = M, N, H * N
    heads = "the heads of a projection"
    yield from _view(
        (B, H, T, D), (T * width, D, width, 1), f"{heads} (B, T, H * D)", f"{heads}, each transposed"
    )
    for many in (3 * width, 5 * width):
        labels = (f"the heads of one utterance, {more}in rows of {many}" for more in ("", "transposed, "))
        yield from _view((1, H, T, D), (T * many, D, many, 1), *labels)
    yield from _view(
        (B, H, T, D), (width, D, B * width, 1), f"{heads} that is (T, B, H * D)", "the same, each transposed"
    )
    yield from _view((1, H, M, N), (H * M * N, 0, N, 1), "one utterance, one matrix for all of its heads")
    yield from _view((B, 1, M, N), (0, M * N, N, 1), "the first head of one utterance for all utterances")
    for back, what in (((1, H, M, N), "heads"), ((B, 1, M, N), "utterances")):
        strides = (-M * N, -M * N, N, 1)
        yield from _view(back, strides, f"{what} alone, from the last to the first", "the same, transposed")
    for strides, *labels in (
        ((H, 1, N, 1), "matrices that begin one number further each time"),
        ((0, 0, N, 1), "one matrix for all of them"),
        ((H * N, N, 0, 1), "one row for each matrix", "one column for each matrix"),
        ((M * N, M * N, N, 1), "the heads of an utterance, and one further for the next"),
        ((0, M * N, N, 1), "one matrix for each head, the same for all utterances"),
        ((M * N, 0, N, 1), "one matrix for each utterance, the same for all heads"),
        ((2 * H * M * N, 2 * M * N, 2 * N, 1), "every second row"),
        (
            (2 * H * M * N, 2 * M * N, 2 * N, 2),
            "every second column",
            "every second column, each matrix transposed",
        ),
        ((H * (M + N), M + N, 1, 1), "sliding windows, one number further each time"),
        ((H * M * N, M * N, N - 1, 1), "rows that overlap by one number"),
        ((H * M * N, M * N, 1, M - 1), "columns that overlap by one number"),
        ((H * M * N, M * N, -N, 1), "rows from the last to the first", "columns from the last to the first"),
        ((H * M * N + 4, M * N, N, 1), "a gap between utterances"),
        ((H * M * N, M * N, N, -1), "each row from its end", "each column from its end"),
        ((-H * M * N, -M * N, N, 1), "matrices from the last to the first", "the same, each transposed"),
        (
            (-H * M * N, M * N, N, 1),
            "utterances from the last to the first, each with its heads in order",
            "the same, each matrix transposed",
        ),
        ((H * M * N, -M * N, N, 1), "heads from the last to the first"),
    ):
        yield from _view((B, H, M, N), strides, *labels)
    for (rows, columns), row in (((3, 7), 5), ((7, 3), 2)):
        view = (B, H, rows, columns), (H * rows * columns, rows * columns, row, 1)
        yield from _view(*view, "rows that overlap by more", "columns that overlap by more")
    for pad in sizes(rng, 1, 30, count=2):
        row = N + pad
        label = f"rows padded by {pad}"
        yield from _view((B, H, M, N), (H * M * row, M * row, row, 1), label, f"{label}, transposed")


def _view(shape: tuple, strides: tuple, label: str, turned: str = "") -> Iterator[Case]:
    """Yield the view; and, with a label for it, the one in which each matrix is transposed."""
    yield Case((shape, strides), label)
    if turned:
        (B, H, M, N), (b, h, row, column) = shape, strides
        yield Case(((B, H, N, M), (b, h, column, row)), turned)


STRIDES = Task(
    id="07.strides",
    title="With or without a copy",
    points=2,
    cases=_views,
    reference=layout,
    comparison=exact(("the word", "the leading dimension", "the step")),
    rules=(USUAL_IMPORTS,),
    lookalikes={
        "Here the matrices do not lie at equal distances: from the last head of one utterance to the "
        "first of the next it is another step, and one call knows one step only.": (
            lambda got, shape, strides: (
                got[0] != "copy" and min(shape[:2]) > 1 and strides[0] != shape[1] * strides[1]
            )
        ),
        "The rows (or columns) overlap or run backwards: the leading dimension must be at least the "
        "length of what is contiguous.": (
            lambda got, shape, strides: got[0] != "copy" and _too_short(shape, strides)
        ),
        "A transposed matrix needs no copy: the call has a flag for it.": (
            lambda got, *view: got[0] == "copy" and layout(*view)[0] == "transposed"
        ),
        "With one utterance, or one head, there is only one step, whatever the other stride says.": (
            lambda got, shape, strides: 1 in shape[:2] and got[0] == "copy" and layout(shape, strides) != COPY
        ),
        "Neither rows nor columns are contiguous here: no flag helps.": (
            lambda got, shape, strides: got[0] != "copy" and 1 not in strides[2:]
        ),
        "Plain and transposed are swapped: plain is the matrix whose rows are contiguous.": (
            lambda got, *view: {got[0], layout(*view)[0]} == {"plain", "transposed"}
        ),
        "The leading dimension is a stride, the distance between two rows; that is the length of one.": (
            lambda got, shape, strides: (
                got[0] == layout(shape, strides)[0] != "copy"
                and got[1] != layout(shape, strides)[1]
                and got[1] in shape[2:]
            )
        ),
        "The leading dimension of a transposed matrix is the distance between two columns.": (
            lambda got, *view: got[:2] == ("transposed", 1) != layout(*view)[:2] == ("transposed", view[1][3])
        ),
        "The leading dimension and the step are exchanged: the leading dimension comes first.": (
            lambda got, *view: (got[0], got[2], got[1]) == layout(*view) and got[1] != got[2]
        ),
        "The step leads from one matrix to the next one: that is the stride of the heads, and of the "
        "utterances only where each has one head.": (
            lambda got, shape, strides: (
                got[:2] == layout(shape, strides)[:2] and got[2] == strides[0] != strides[1]
            )
        ),
    },
    hints=(
        "What does one call get? A pointer, a flag, one leading dimension, one step. Where is matrix (b, h), "
        "and where does a step of the same length each time lead?",
        "Matrix n = b * H + h lies at n * step for all n only if the stride of b is H times the stride of h, "
        "or if B or H is 1. In each matrix one of the two strides must be 1, the other at least as long as "
        "what is contiguous.",
        'if B > 1 and H > 1 and b != H * h: "copy". step = b if H == 1 else h. Plain: column == 1 and '
        "row >= N, leading dimension row. Transposed: row == 1 and column >= M, leading dimension column.",
    ),
)


def _too_short(shape: tuple, strides: tuple) -> bool:
    (M, N), (row, column) = shape[2:], strides[2:]
    return (column == 1 and row < N) or (row == 1 and column < M)


# --- 07.bmm: a batched product in compiled loops ------------------------------------------------------------


def bmm(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return the products of A (batch, M, K) and B (batch, K, N), one for one, in the dtype of A."""
    C = np.zeros((len(A), A.shape[1], B.shape[2]), A.dtype)
    for n in range(len(A)):
        C[n] = product(A[n], B[n])
    return C


def _tolerance(want: np.ndarray, args: tuple) -> np.ndarray:
    A, B = args
    allowed = np.zeros(want.shape)
    for n in range(len(A)):
        allowed[n] = product_tolerance(want.dtype, A[n], B[n])
    return allowed


def _batches(rng: np.random.Generator) -> Iterator[Case]:
    batch, M, K, N = sizes(rng, 3, 9, count=4)
    for b, m, k, n, said in (
        (3, 3, 3, 3, "three products of squares"),
        (batch, M, K, N, "all four sizes different"),
        (1, N, M, K, "a batch of one"),
        (0, M, K, N, "a batch of none"),
        (batch, M, 0, N, "an empty sum is 0"),
        (batch, 0, K, N, "no rows"),
        (batch, M, K, 0, "no columns"),
        (K, 1, 2 * N + 1, 1, "dot products"),
    ):
        pair = matrix(rng, b, m, k), matrix(rng, b, k, n)
        yield Case(pair, f"float64, A {b} x {m} x {k}, B {b} x {k} x {n}: {said}", guard=True)
    pair = matrix(rng, batch, M, K, dtype="float32"), matrix(rng, batch, K, N, dtype="float32")
    yield Case(pair, "float32: the result is float32", guard=True)
    q, k = matrix(rng, M, batch, K), matrix(rng, N, batch, K)  # (T, heads, D), as a projection leaves them
    yield Case(
        (q.transpose(1, 0, 2), k.transpose(1, 2, 0)), "views: heads of q, and of k transposed", guard=True
    )
    A, B = matrix(rng, 3, 4, 5), matrix(rng, 3, 5, 4)
    for n in range(3):
        A[n, 1, 2 * n], B[n, 2 * n, 1] = 0.0, np.inf
        A[n, 2, 4 - 2 * n], B[n, 4 - 2 * n, 3] = -np.inf, 0.0
    A[1, 3, 3] = np.nan
    yield Case((A, B), "0 meets inf, from either side, and a NaN: 0 * inf is NaN", guard=True)


BMM = Task(
    id="07.bmm",
    title="Many small products, one call",
    difficulty=2,
    cases=_batches,
    reference=bmm,
    comparison=Values(_tolerance),
    rules=LOOPS_ONLY,
    lookalikes={
        "Every product in the batch is the first one: index A and B with the number in the batch.": (
            lambda A, B: np.repeat(bmm(A[:1], B[:1]), len(A), 0)
        ),
        "A goes on through the batch, but B is always the first one: B is indexed [b, k, j].": (
            lambda A, B: bmm(A, np.repeat(B[:1], len(B), 0))
        ),
        "B goes on through the batch, but A is always the first one: A is indexed [b, i, k].": (
            lambda A, B: bmm(np.repeat(A[:1], len(A), 0), B)
        ),
        "Only the first product of the batch is there: does the function return inside the loop?": (
            lambda got, A, B: len(got) > 2 and got[0].any() and not got[1:].any()
        ),
        "The last product of the batch is missing: the outermost loop has `batch` passes.": (
            lambda got, A, B: len(got) > 1 and got[:-1].any() and not got[-1].any()
        ),
        "The sums go on from one product to the next: nothing is shared between them.": (
            lambda A, B: np.cumsum(bmm(A, B), 0)
        ),
        "This is B times A: the operands are swapped.": lambda A, B: bmm(B, A),
        "This is A times the transpose of B: B is indexed [b, k, j].": (
            lambda A, B: bmm(A, B.transpose(0, 2, 1))
        ),
        "The first product of every sum is missing: the sum over k begins at 0.": (
            lambda A, B: bmm(A[:, :, 1:], B[:, 1:])
        ),
        "Only the last product of every sum is there: add (+=) instead of replacing.": (
            lambda A, B: bmm(A[:, :, -1:], B[:, -1:])
        ),
    },
    hints=(
        "You have written the product of two matrices in assignment 2. Which of the three arrays get one "
        "index more?",
        "All three, and it is the same one: C[b] is A[b] times B[b]. One loop around the others; every "
        "element of C begins with 0, in the dtype of A.",
        "C = np.zeros((batch, M, N), A.dtype); for b, for i, for k, for j: "
        "C[b, i, j] += A[b, i, k] * B[b, k, j].",
    ),
)


# --- 07.im2col: a convolution in one dimension as a matrix product ------------------------------------------


def im2col(x: np.ndarray, kernel: int, stride: int, padding: int, dilation: int) -> np.ndarray:
    """Return the matrix (C * kernel, T_out) whose product with weight.reshape(O, C * kernel) is Conv1d.

    x is (C, T). Row c * kernel + k, column t holds x[c, t * stride + k * dilation - padding], 0 outside.
    """
    C, T = x.shape
    T_out = (T + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    padded = np.zeros((C, T + 2 * padding), x.dtype)
    padded[:, padding : padding + T] = x
    frames = stride * np.arange(T_out)[None, :] + dilation * np.arange(kernel)[:, None]  # (kernel, T_out)
    return padded[:, frames].reshape(C * kernel, T_out)


def _signals(rng: np.random.Generator) -> Iterator[Case]:
    for C, T, kernel, stride, padding, dilation, said in (
        (1, 6, 3, 1, 0, 1, "one channel, nothing special"),
        (2, 5, 3, 1, 1, 1, "padded so that T stays"),
        (2, 8, 3, 2, 1, 1, "stride 2, the last frame of the padding is left over"),
        (2, 9, 3, 2, 0, 1, "stride 2, no padding"),
        (3, 10, 2, 1, 0, 3, "dilation 3"),
        (3, 7, 1, 1, 0, 1, "kernel 1: pointwise"),
        (2, 7, 1, 3, 0, 2, "kernel 1, stride 3"),
        (2, 3, 5, 1, 2, 1, "the kernel is longer than the signal"),
        (3, 4, 4, 3, 0, 1, "one column only"),
        (2, 1, 3, 2, 1, 1, "a single frame"),
        (2, 2, 2, 3, 4, 2, "more padding than signal: whole columns of 0"),
    ):
        yield _folded(matrix(rng, C, T), kernel, stride, padding, dilation, said)
    for dtype in ("float32", "float64", "float32"):
        C, kernel, stride, padding, dilation = sizes(rng, 2, 8, count=5)
        T = dilation * (kernel - 1) + 1 + int(rng.integers(8, 20))
        x = rng.uniform(0.5, 2.0, (C, T)).astype(dtype)
        yield _folded(x, kernel, stride, padding, dilation, "all sizes different")
    for said in ("small", "the same sizes, other numbers"):
        yield _folded(rng.uniform(0.5, 2.0, (2, 6)), 3, 2, 1, 1, said)
    x = rng.uniform(0.5, 2.0, (2, 6))
    x[0, 1], x[0, 4], x[1, 2], x[:, [0, -1]] = np.nan, np.inf, -np.inf, np.inf
    yield _folded(x, 2, 1, 1, 2, "NaN and inf, also beside the padding, are moved like any number")
    x = rng.uniform(0.5, 2.0, (12, 4)).T
    yield _folded(x, 3, 2, 2, 2, "x is a transposed view")
    x = rng.uniform(0.5, 2.0, (3, 18))[:, ::2]
    yield _folded(x, 3, 2, 1, 2, "x is every second frame of a longer signal")
    # Who copies x only where there is something to pad works on these two themselves.
    x = rng.uniform(0.5, 2.0, (9, 3)).astype(np.float32).T
    yield _folded(x, 3, 2, 0, 1, "x is a transposed view, and nothing is padded")
    x = rng.uniform(0.5, 2.0, (2, 20))[:, ::2]
    yield _folded(x, 2, 1, 0, 3, "x is every second frame of a longer signal, and nothing is padded")


def _folded(x: np.ndarray, kernel: int, stride: int, padding: int, dilation: int, said: str) -> Case:
    C, T = x.shape
    words = f"{x.dtype}, {C} channels, {T} frames, kernel {kernel}, stride {stride}, padding {padding}"
    return Case((x, kernel, stride, padding, dilation), f"{words}, dilation {dilation}: {said}")


def _taps_first(x: np.ndarray, kernel: int, *rest: int) -> np.ndarray | None:
    right = im2col(x, kernel, *rest)
    return right.reshape(len(x), kernel, -1).swapaxes(0, 1).reshape(right.shape)


def _turned(x: np.ndarray, kernel: int, *rest: int) -> np.ndarray:
    right = im2col(x, kernel, *rest)
    return right.reshape(len(x), kernel, -1)[:, ::-1].reshape(right.shape)


def _moved(x: np.ndarray, kernel: int, stride: int, padding: int, dilation: int) -> np.ndarray:
    behind = np.concatenate([x, np.zeros((len(x), 2 * padding), x.dtype)], 1)
    return im2col(behind, kernel, stride, 0, dilation)


def _wrapped(x: np.ndarray, kernel: int, stride: int, padding: int, dilation: int) -> np.ndarray | None:
    T = x.shape[1]
    if not 0 < padding <= T:
        return None
    from_the_end = np.concatenate([x[:, T - padding :], x, np.zeros((len(x), padding), x.dtype)], 1)
    return im2col(from_the_end, kernel, stride, 0, dilation)


IM2COL = Task(
    id="07.im2col",
    title="A convolution that is a matmul",
    minutes=20,
    cases=_signals,
    reference=im2col,
    rules=(USUAL_IMPORTS,),
    lookalikes={
        "The rows are in the order (tap, channel), but the weight (O, C, kernel) has the taps last: row "
        "c * kernel + k.": _taps_first,
        "The kernel is turned round: that is the convolution of mathematics. Conv1d takes tap 0 with the "
        "earliest frame.": _turned,
        "The padding is all behind the signal: `padding` zeros stand on each side.": _moved,
        "x[c, -1] is the last frame in Python: frames before the first one must count as 0.": _wrapped,
        "Taps lie `dilation` frames apart; in yours they are neighbours.": (
            lambda got, x, kernel, stride, padding, dilation: (
                dilation > 1 < kernel
                and np.array_equal(got, im2col(x, kernel, stride, padding, 1)[:, : got.shape[1]])
            )
        ),
        "From one column to the next it is `stride` frames; in yours it is one.": (
            lambda got, x, kernel, stride, padding, dilation: (
                stride > 1 and np.array_equal(got, im2col(x, kernel, 1, padding, dilation)[:, : got.shape[1]])
            )
        ),
        "Stride and dilation are exchanged: stride leads from column to column, dilation from row to row.": (
            lambda got, x, kernel, stride, padding, dilation: (
                stride != dilation and np.array_equal(got, _exchanged(x, kernel, stride, padding, dilation))
            )
        ),
    },
    hints=(
        "out[o, t] = sum over c and k of weight[o, c, k] * x[c, ?]. Which frame does tap k of output t read?",
        "Frame t * stride + k * dilation - padding, or 0 if there is none. The pair (c, k) is the summed "
        "index, so it numbers the rows, c * kernel + k; t numbers the columns, and there are (T + 2 padding "
        "- dilation (kernel - 1) - 1) // stride + 1.",
        "for c, for k, for t: frame = t * stride + k * dilation - padding; if 0 <= frame < T: "
        "columns[c * kernel + k, t] = x[c, frame].",
    ),
)


def _exchanged(x: np.ndarray, kernel: int, stride: int, padding: int, dilation: int) -> np.ndarray:
    """Return the matrix of the right shape, filled as if stride were dilation and dilation stride."""
    C, T = x.shape
    shape = im2col(x, kernel, stride, padding, dilation).shape
    long = np.zeros((C, shape[1] * dilation + kernel * stride + T + 2 * padding), x.dtype)
    long[:, padding : padding + T] = x
    frames = dilation * np.arange(shape[1])[None, :] + stride * np.arange(kernel)[:, None]
    return long[:, frames].reshape(shape)


# --- 07.rel_shift: the relative shift of the Conformer's attention, without a loop and without indices ------


def rel_shift(
    scores: np.ndarray, column: Callable = lambda T, query, key: T - 1 - (query - key)
) -> np.ndarray:
    """Return (T, T) from scores (T, 2T - 1) whose columns are the positions T - 1 … -(T - 1).

    By its definition: entry (i, j) is the score of query i at the position i - j, column T - 1 - (i - j).
    """
    query, key = np.indices((len(scores), len(scores)))
    return scores[query, column(len(scores), query, key)]


def _scores(rng: np.random.Generator) -> Iterator[Case]:
    for T in (2, 3, 1, 4):
        yield Case((_random(rng, T),), f"T = {T}")
    for T in sizes(rng, 5, 30, count=2):
        yield Case((_random(rng, T),), f"T = {T}")
    yield Case((_random(rng, 4),), "T = 4, other numbers")
    odd = _random(rng, 4)
    odd[:, 3], odd[1, 2], odd[2, 4] = np.nan, np.inf, -np.inf
    yield Case((odd,), "T = 4, NaN and inf are moved like any number")
    yield Case((_random(rng, 5).astype(np.float32),), "T = 5, float32")
    T = 6
    wide = rng.uniform(0.5, 2.0, (T, 4 * T))[:, 1 : 4 * T - 1 : 2][:, : 2 * T - 1]
    yield Case((wide,), "T = 6, every second column of a larger array")


def _random(rng: np.random.Generator, T: int) -> np.ndarray:
    return matrix(rng, T, 2 * T - 1)


def _shifted(scores: np.ndarray, drop: int, first: int) -> np.ndarray:
    """Return T columns from `first` on of the padded rows read as rows of 2T - 1, from number `drop` on."""
    T = len(scores)
    padded = np.concatenate([np.zeros((T, 1)), scores], axis=1)
    return padded.ravel()[drop:][: T * (2 * T - 1)].reshape(T, 2 * T - 1)[:, first : first + T]


REL_SHIFT = Task(
    id="07.rel_shift",
    title="The shift that is a reshape",
    points=2,
    cases=_scores,
    reference=rel_shift,
    rules=(USUAL_IMPORTS,),
    lookalikes={
        "Nothing is shifted: these are the first T columns.": lambda scores: scores[:, : len(scores)],
        "Nothing is shifted: these are the last T columns.": lambda scores: scores[:, -len(scores) :],
        "Every row goes the wrong way: row i must begin at column T - 1 - i, later rows further left.": {
            "column": lambda T, query, key: query + key
        },
        "Query and key are exchanged: the position is i - j, and the columns begin with T - 1.": {
            "column": lambda T, query, key: T - 1 + query - key
        },
        "The shift is right; but the first T columns are needed, and these are the last ones.": (
            lambda scores: _shifted(scores, len(scores), len(scores) - 1)
        ),
        "The shift is off by one: zeros of the padding, or scores of the row before, have come in.": (
            lambda scores: _shifted(scores, 0, 0)
        ),
        "The shift is right; cut it to the first T columns, as there are T keys.": (
            lambda got, scores: got.shape[1] > len(scores)
        ),
    },
    hints=(
        "Write T = 3 down: the columns are the positions 2, 1, 0, -1, -2. Which three does query 0 need, "
        "which three query 1? How far does the second window lie from the first?",
        "One to the left for each row. Padded rows are 2T long; read as rows of 2T - 1, each begins one "
        "place earlier than the one before, if the first T numbers of the padded array are left out.",
        "padded.reshape(2 * T, T)[1:].reshape(T, 2 * T - 1)[:, :T]",
    ),
)
