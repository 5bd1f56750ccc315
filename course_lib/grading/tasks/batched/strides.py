"""Task 07.strides: which views of a tensor one strided batched call takes as they are."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.grading.compare import exact
from course_lib.grading.task import Case, Lookalike, Task
from course_lib.grading.tasks.batched.shared import USUAL_IMPORTS

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
    B, H, M, N = (int(n) for n in rng.choice(np.arange(2, 9), 4, replace=False))
    whole = (B, H, M, N), (H * M * N, M * N, N, 1)
    yield _case(whole, "a tensor as it is made")
    yield _case(_turned(whole), "the same, each matrix transposed")
    yield _case(((B, 1, M, N), (H * M * N, M * N, N, 1)), "the first head of each utterance")
    yield _case(_turned(((B, 1, M, N), (H * M * N, M * N, N, 1))), "the first head of each, transposed")
    other = (B, H, N, M), (H * M * N, M * N, M, 1)
    yield _case(other, "a tensor as it is made, M and N exchanged")
    yield _case(_turned(other), "the same, each matrix transposed")
    broadcast = (B, H, M, N), (H * M * N, M * N, N, 0)
    yield _case(broadcast, "one number for each row")
    yield _case(_turned(broadcast), "one number for each column")
    for few in ((2, H, M, N), (B, 2, M, N)):
        width = few[1] * N
        yield _case((few, (M * width, N, width, 1)), f"the heads of a projection, {few[0]} x {few[1]}")
    T, D, width = M, N, H * N
    heads = (B, H, T, D), (T * width, D, width, 1)
    yield _case(heads, "the heads of a projection (B, T, H * D)")
    yield _case(_turned(heads), "the heads of a projection, each transposed")
    for many in (3 * width, 5 * width):
        one = (1, H, T, D), (T * many, D, many, 1)
        yield _case(one, f"the heads of one utterance, in rows of {many}")
        yield _case(_turned(one), f"the heads of one utterance, transposed, in rows of {many}")
    yield _case(((B, H, T, D), (width, D, B * width, 1)), "the heads of a projection that is (T, B, H * D)")
    yield _case(_turned(((B, H, T, D), (width, D, B * width, 1))), "the same, each transposed")
    yield _case(((B, H, M, N), (0, 0, N, 1)), "one matrix for all of them")
    yield _case(((B, H, M, N), (0, M * N, N, 1)), "one matrix for each head, the same for all utterances")
    yield _case(((B, H, M, N), (M * N, 0, N, 1)), "one matrix for each utterance, the same for all heads")
    yield _case(((B, H, M, N), (2 * H * M * N, 2 * M * N, 2 * N, 1)), "every second row")
    yield _case(((B, H, M, N), (2 * H * M * N, 2 * M * N, 2 * N, 2)), "every second column")
    second = (B, H, M, N), (2 * H * M * N, 2 * M * N, 2 * N, 2)
    yield _case(_turned(second), "every second column, each matrix transposed")
    yield _case(((B, H, M, N), (H * (M + N), M + N, 1, 1)), "sliding windows, one number further each time")
    yield _case(((B, H, M, N), (H * M * N, M * N, N - 1, 1)), "rows that overlap by one number")
    yield _case(((B, H, M, N), (H * M * N, M * N, 1, M - 1)), "columns that overlap by one number")
    yield _case(((B, H, M, N), (H * M * N, M * N, -N, 1)), "rows from the last to the first")
    yield _case(((B, H, M, N), (H * M * N + 4, M * N, N, 1)), "a gap between utterances")
    yield _case(((B, H, M, N), (-H * M * N, -M * N, N, 1)), "matrices from the last to the first")
    back = (B, H, M, N), (-H * M * N, M * N, N, 1)
    yield _case(back, "utterances from the last to the first, each with its heads in order")
    yield _case(_turned(back), "the same, each matrix transposed")
    yield _case(((B, H, M, N), (H * M * N, -M * N, N, 1)), "heads from the last to the first")
    for pad in (int(n) for n in rng.choice(np.arange(1, 30), 2, replace=False)):
        row = N + pad
        padded = (B, H, M, N), (H * M * row, M * row, row, 1)
        yield _case(padded, f"rows padded by {pad}")
        yield _case(_turned(padded), f"rows padded by {pad}, transposed")


def _case(view: tuple, label: str) -> Case:
    return Case(view, label)


def _turned(view: tuple) -> tuple:
    """Return the view with each matrix transposed: sizes and strides change places."""
    (B, H, M, N), (b, h, row, column) = view
    return (B, H, N, M), (b, h, column, row)


TASK = Task(
    id="07.strides",
    title="With or without a copy",
    kind="predict",
    points=2,
    difficulty=3,
    minutes=15,
    good_for="knowing which `transpose` is free and which one becomes a copy_ in the profile",
    entry="layout",
    cases=_views,
    reference=layout,
    comparison=exact(("the word", "the leading dimension", "the step")),
    rules=(USUAL_IMPORTS,),
    lookalikes=(
        Lookalike(
            "Here the matrices do not lie at equal distances: from the last head of one utterance to the "
            "first of the next it is another step, and one call knows one step only.",
            fits=lambda got, shape, strides: got[0] != "copy" and _two_steps(shape, strides),
        ),
        Lookalike(
            "The rows (or columns) overlap or run backwards: the leading dimension must be at least the "
            "length of what is contiguous.",
            fits=lambda got, shape, strides: got[0] != "copy" and _too_short(shape, strides),
        ),
        Lookalike(
            "A transposed matrix needs no copy: the call has a flag for it.",
            fits=lambda got, *view: got[0] == "copy" and layout(*view)[0] == "transposed",
        ),
        Lookalike(
            "With one utterance, or one head, there is only one step, whatever the other stride says.",
            fits=lambda got, shape, strides: (
                1 in shape[:2] and got[0] == "copy" and layout(shape, strides) != COPY
            ),
        ),
        Lookalike(
            "Neither rows nor columns are contiguous here: no flag helps.",
            fits=lambda got, shape, strides: got[0] != "copy" and 1 not in strides[2:],
        ),
        Lookalike(
            "Plain and transposed are swapped: plain is the matrix whose rows are contiguous.",
            fits=lambda got, *view: {got[0], layout(*view)[0]} == {"plain", "transposed"},
        ),
        Lookalike(
            "The leading dimension is a stride, the distance between two rows; that is the length of one.",
            fits=lambda got, shape, strides: (
                got[0] == layout(shape, strides)[0] != "copy"
                and got[1] != layout(shape, strides)[1]
                and got[1] in shape[2:]
            ),
        ),
        Lookalike(
            "The leading dimension of a transposed matrix is the distance between two columns.",
            fits=lambda got, *view: (
                got[:2] == ("transposed", 1) != layout(*view)[:2] == ("transposed", view[1][3])
            ),
        ),
        Lookalike(
            "The leading dimension and the step are exchanged: the leading dimension comes first.",
            fits=lambda got, *view: (got[0], got[2], got[1]) == layout(*view) and got[1] != got[2],
        ),
        Lookalike(
            "The step leads from one matrix to the next one: that is the stride of the heads, and of the "
            "utterances only where each has one head.",
            fits=lambda got, shape, strides: (
                got[:2] == layout(shape, strides)[:2] and got[2] == strides[0] != strides[1]
            ),
        ),
    ),
    hints=(
        "What does one call get? A pointer, a flag, one leading dimension, one step. Where is matrix (b, h), "
        "and where does a step of the same length each time lead?",
        "Matrix n = b * H + h lies at n * step for all n only if the stride of b is H times the stride "
        "of h, or if "
        "B or H is 1. In each matrix one of the two strides must be 1, the other at least as long as what "
        "is contiguous.",
        'if B > 1 and H > 1 and b != H * h: "copy". step = b if H == 1 else h. Plain: column == 1 and '
        "row >= N, leading dimension row. Transposed: row == 1 and column >= M, leading dimension column.",
    ),
)


def _two_steps(shape: tuple, strides: tuple) -> bool:
    return min(shape[:2]) > 1 and strides[0] != shape[1] * strides[1]


def _too_short(shape: tuple, strides: tuple) -> bool:
    (M, N), (row, column) = shape[2:], strides[2:]
    return (column == 1 and row < N) or (row == 1 and column < M)
