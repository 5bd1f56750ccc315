"""Tasks of chapter 07 on layouts: strides, batches, convolution as a product, relative positions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np

from course_lib.grading.compare import Values, exact, product_tolerance
from course_lib.grading.inputs import between, every_pair
from course_lib.grading.language import Language
from course_lib.grading.task import Case, Task
from course_lib.grading.tasks.compiled_loops import (
    FORMS,
    LOOPS_ONLY,
    SPECIAL,
    formed,
    has_no_place,
    how_hard,
    matrix,
    product,
    sizes,
    steps_over_zeros,
)

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


ONE, TWO, FEW, MORE = (1, 2), (2, 3), (3, 6), (6, 9)  # spans that a size is drawn from
#: (B, H), (M, N), and the strides: of utterances and heads, and of rows and columns.
UTTERANCES_AND_HEADS = (FEW, MORE), (MORE, FEW), (TWO, FEW), (FEW, TWO), (ONE, FEW), (FEW, ONE)
ROWS_AND_COLUMNS = (FEW, MORE), (MORE, FEW), (TWO, FEW), (FEW, TWO), ((4, 5), (4, 5))
STEPS = {
    "one matrix behind the other": lambda B, H, M, N: (H * M * N, M * N),
    "a gap behind each matrix": lambda B, H, M, N: (H * (M * N + 4), M * N + 4),
    "the heads of a projection (T, B, H * D)": lambda B, H, M, N: (H * N, N),
    "each matrix begins one number further": lambda B, H, M, N: (H, 1),
    "one matrix for all": lambda B, H, M, N: (0, 0),
    "matrices from the last to the first": lambda B, H, M, N: (-H * M * N, -M * N),
    "the heads of a projection (B, T, H * D)": lambda B, H, M, N: (M * H * N, N),
    "a gap between utterances": lambda B, H, M, N: (H * M * N + 4, M * N),
    "all utterances of a head lie together": lambda B, H, M, N: (M * N, B * M * N),
    "a head further is an utterance further": lambda B, H, M, N: (M * N, M * N),
    "one matrix for each head, the same for all utterances": lambda B, H, M, N: (0, M * N),
    "one matrix for each utterance, the same for all heads": lambda B, H, M, N: (M * N, 0),
    "utterances from the last to the first": lambda B, H, M, N: (-H * M * N, M * N),
    "heads from the last to the first": lambda B, H, M, N: (H * M * N, -M * N),
}
INSIDE = {
    "rows as they are made": lambda M, N, pad: (N, 1),
    "padded rows": lambda M, N, pad: (N + pad, 1),
    "rows that overlap by one number": lambda M, N, pad: (N - 1, 1),
    "rows that begin one number further": lambda M, N, pad: (1, 1),
    "one row for the whole matrix": lambda M, N, pad: (0, 1),
    "rows from the last to the first": lambda M, N, pad: (-N, 1),
    "each row from its end": lambda M, N, pad: (N, -1),
    "one number for each row": lambda M, N, pad: (N, 0),
    "every second column": lambda M, N, pad: (2 * N, 2),
}


def _views(rng: np.random.Generator) -> Iterator[Case]:
    B, H, M, N = sizes(rng, 2, 9, count=4)
    strides = H * M * N, M * N, N, 1
    yield Case(((B, H, M, N), strides), "a tensor as it is made")
    yield Case(((B, H, N, M), (*strides[:2], 1, N)), "the same, each matrix transposed")
    yield Case(((B, 1, M, N), strides), "the first head of each utterance")
    heads = (1, H, M, N), (M * H * N, N, H * N, 1)
    yield Case(heads, "the heads of one utterance in a projection (B, T, H * D)")
    as_made, *others = INSIDE
    for steps, batch in itertools.product(STEPS, UTTERANCES_AND_HEADS):  # in others it would be a copy anyway
        for each in ((FEW, MORE), (MORE, FEW)):  # rows as far apart as they are long, more or fewer of them
            yield from _view(rng, steps, as_made, batch, each)
    rows = every_pair(
        rng, steps=tuple(STEPS), inside=others, batch=UTTERANCES_AND_HEADS, each=ROWS_AND_COLUMNS
    )
    for row in sorted(rows, key=lambda row: list(STEPS).index(row["steps"])):
        yield from _view(rng, **row)


def _view(rng: np.random.Generator, steps: str, inside: str, batch: tuple, each: tuple) -> Iterator[Case]:
    """Yield the view, and the one in which each matrix is transposed."""
    B, H, M, N, pad = (int(rng.integers(*span)) for span in (*batch, *each, (1, 30)))
    (b, h), (row, column) = STEPS[steps](B, H, M, N), INSIDE[inside](M, N, pad)
    yield Case(((B, H, M, N), (b, h, row, column)), f"{steps}; {inside}")
    yield Case(((B, H, N, M), (b, h, column, row)), f"{steps}; {inside}, each matrix transposed")


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
        "With one utterance, or one head, there is only one step, whatever the other stride says.": (
            lambda got, shape, strides: (
                got[0] == "copy" != layout(shape, strides)[0] and strides[0] != shape[1] * strides[1]
            )
        ),
        "This one needs no copy: rows or columns (there is a flag) are contiguous and at least as far apart "
        "as they are long, and one step, which may be 0 or negative, leads from each matrix to the next.": (
            lambda got, *view: got[0] == "copy" != layout(*view)[0]
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
                got[:2] == layout(shape, strides)[:2]
                and got[2] in strides[:2]
                and got != layout(shape, strides)
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
    for all_sizes in ((3, 3, 3, 3), (int(rng.integers(33, 40)), *sizes(rng, 3, 9, count=3))):
        yield _batch(rng, *all_sizes)
    rows = every_pair(
        rng,
        batch=(1, 0, 2, between(3, 7)),
        # behind a block of 32, 64 or 128 the sums go on
        **dict.fromkeys("MKN", (0, 1, 2, between(3, 8), between(8, 24), between(33, 140))),
        form=FORMS,
        special=SPECIAL,
        unless=lambda row: has_no_place(row) or _is_no_view(row),
    )
    for row in sorted(rows, key=how_hard):
        yield _batch(rng, **row)


def _is_no_view(row: dict) -> bool:
    """Whether NumPy calls one of the views contiguous: Numba would compile once more for its type."""
    return row["form"] == "views" and (row["K"] == 1 or 0 in (row["M"], row["N"]))


def _batch(
    rng: np.random.Generator, batch: int, M: int, K: int, N: int, form: str = "", special: str = ""
) -> Case:
    """Return a batch of products in one of the FORMS, each with the special number at places of its own."""
    dtype = "float32" if form == "float32" else "float64"
    cases = [formed(rng, M, K, N, dtype, special) for _ in range(max(batch, 1))]
    A, B = (np.stack(of)[:batch] for of in zip(*(case.args for case in cases), strict=True))
    label = f"batch {batch}: {cases[0].label}"
    if form == "views":
        q, k = (np.repeat(of, 2, axis=2) for of in (A.transpose(1, 0, 2), B.transpose(2, 0, 1)))
        A, B = q[:, :, ::2].transpose(1, 0, 2), k[:, :, ::2].transpose(1, 2, 0)
        label += ", views: heads of q, and of k transposed, of each every 2nd number"
    return Case((A, B), label, guard=True)


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
        "You have a number where NaN is due. 0 * inf and 0 * NaN are NaN: no product may be left out.": (
            lambda got, A, B: any(map(steps_over_zeros, got, A, B))
        ),
        "The first product of every sum is missing: the sum over k begins at 0.": (
            lambda A, B: bmm(A[:, :, 1:], B[:, 1:]) if A.shape[2] > 1 else None
        ),
        "Only the last product of every sum is there: add (+=) instead of replacing.": (
            lambda A, B: bmm(A[:, :, -1:], B[:, -1:])
        ),
        "This is right to six digits or so, and float64 has sixteen: is a number of float32 on the way?": (
            lambda got, A, B: (
                got.itemsize == 8 and np.allclose(got, want := bmm(A, B), 1e-6, 1e-6 * np.abs(want).max())
            )
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


#: How many frames there are: `reach` is what one column reads beyond the padding, `more` columns follow it.
FRAMES = {
    "no frame is left over": lambda reach, stride, more: reach + more * stride,
    "frames are left over": lambda reach, stride, more: reach + more * stride + stride - 1,
    "one column": lambda reach, stride, more: reach,
    "one column, and frames are left over": lambda reach, stride, more: reach + stride - 1,
    "a single frame": lambda reach, stride, more: 1,
    "two frames": lambda reach, stride, more: 2,
}
LAYOUTS = ("", "a transposed view", "every second frame of a longer signal")
MOVED = ("", "NaN and inf are moved like any number", "zeros and equal numbers")


def _signals(rng: np.random.Generator) -> Iterator[Case]:
    for C, T, *how, dtype, said in (
        (1, 6, 3, 1, 0, 1, "float64", "one channel, nothing special"),
        (2, 5, 3, 1, 1, 1, "float64", "padded so that T stays"),
        (2, 8, 3, 2, 1, 1, "float64", "stride 2, the last frame of the padding is left over"),
        (2, 9, 3, 2, 0, 1, "float64", "stride 2, no padding"),
        (3, 10, 2, 1, 0, 3, "float32", "dilation 3"),
    ):
        yield _folded(matrix(rng, C, T, dtype=dtype), *how, said)
    rows = every_pair(
        rng,
        C=(1, 2, between(3, 6)),
        kernel=(1, 2, 3, between(4, 7)),
        stride=(1, 2, 3, between(4, 7)),
        padding=(0, 1, 2, between(3, 8)),
        dilation=(1, 2, 3, between(4, 6)),
        frames=tuple(FRAMES),
        more=(between(1, 12),),
        dtype=("float64", "float32"),
        layout=LAYOUTS,
        moved=MOVED,
        unless=lambda row: not _has_a_column(row),
    )
    for row in sorted(rows, key=lambda row: bool(row["layout"]) + bool(row["moved"])):
        yield _signal(rng, row)
    long = moved(rng, (1, 300), "float32", "", MOVED[1])
    yield _folded(long, 2, 7, 1, 2, f"more frames than 8 bits count; {MOVED[1]}")


def _frames(row: dict) -> tuple[int, int]:
    """Return the frames of the signal, and how many of them a column reads beyond the padding."""
    reach = row["dilation"] * (row["kernel"] - 1) + 1 - 2 * row["padding"]
    return FRAMES[row["frames"]](reach, row["stride"], row["more"]), reach


def _has_a_column(row: dict) -> bool:
    T, reach = _frames(row)
    return max(1, reach) <= T and not ("are left" in row["frames"] and row["stride"] == 1)


def _signal(rng: np.random.Generator, row: dict) -> Case:
    x = moved(rng, (row["C"], _frames(row)[0]), row["dtype"], row["layout"], row["moved"])
    said = "; ".join(filter(None, (row["frames"], row["moved"], row["layout"] and f"x is {row['layout']}")))
    return _folded(x, row["kernel"], row["stride"], row["padding"], row["dilation"], said)


def moved(rng: np.random.Generator, shape: tuple[int, int], dtype: str, layout: str, what: str) -> np.ndarray:
    """Return numbers for a task that only moves them, in one of the LAYOUTS and with what MOVED says."""
    x = matrix(rng, *shape, dtype=dtype)
    if what:
        odd = rng.choice((np.nan, np.inf, -np.inf) if "NaN" in what else (0.0, -0.0, 1.0), shape)
        there = rng.random(shape) < 0.5
        there[:, [0, -1]] = True  # beside the padding
        x[there] = odd[there]
    if "transposed" in layout:
        return np.ascontiguousarray(x.T).T
    return np.repeat(x, 2, axis=1)[:, ::2] if layout else x


def _folded(x: np.ndarray, kernel: int, stride: int, padding: int, dilation: int, said: str) -> Case:
    C, T = x.shape
    of_x = f"{x.dtype}, {C} channel{'s' * (C > 1)}, {T} frame{'s' * (T > 1)}"
    words = f"{of_x}, kernel {kernel}, stride {stride}, padding {padding}"
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


def _outside_only(got: np.ndarray, x: np.ndarray, *how: int) -> bool:
    inside = im2col(np.ones_like(x), *how) == 1
    return bool(not inside.all() and np.array_equal(got[inside], im2col(x, *how)[inside], equal_nan=True))


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
        "The first frame of x, number 0, is nowhere.": (
            lambda x, *how: im2col(np.where(np.arange(x.shape[1]) > 0, x, 0), *how)
        ),
        "The last frame of x, number T - 1, is nowhere.": (
            lambda x, *how: im2col(np.where(np.arange(x.shape[1]) < x.shape[1] - 1, x, 0), *how)
        ),
        "Only places whose frame is outside of x are wrong: 0 must stand there, whatever x holds (and 0 "
        "times NaN is NaN).": _outside_only,
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
        yield Case((matrix(rng, T, 2 * T - 1),), f"T = {T}")
    sides = (1, 2, 3, 4, 5, between(6, 31), between(31, 45))
    rows = every_pair(rng, T=sides, dtype=("float64", "float32"), layout=LAYOUTS, moved=MOVED)
    for row in sorted(rows, key=lambda row: (bool(row["layout"]) + bool(row["moved"]), row["T"])):
        T = row["T"]
        scores = moved(rng, (T, 2 * T - 1), row["dtype"], row["layout"], row["moved"])
        layout = row["layout"].replace("frame of a longer signal", "column of a larger array")
        said = "; ".join(filter(None, (row["moved"], layout)))
        yield Case((scores,), f"T = {T}, {row['dtype']}{said and ': '}{said}")


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
        "Every row begins one column too far left.": {"column": lambda T, query, key: T - 2 - (query - key)},
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
