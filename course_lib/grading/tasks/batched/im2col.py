"""Task 07.im2col: a convolution in one dimension as a matrix product."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.grading.compare import exact
from course_lib.grading.task import Case, Lookalike, Task
from course_lib.grading.tasks.batched.shared import USUAL_IMPORTS


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
        x = rng.uniform(0.5, 2.0, (C, T)) * rng.choice([-1.0, 1.0], (C, T))
        yield _case(x, kernel, stride, padding, dilation, said)
    for dtype in ("float32", "float64", "float32"):
        C, kernel, stride, padding, dilation = (int(n) for n in rng.choice(np.arange(2, 8), 5, replace=False))
        T = dilation * (kernel - 1) + 1 + int(rng.integers(8, 20))
        x = rng.uniform(0.5, 2.0, (C, T)).astype(dtype)
        yield _case(x, kernel, stride, padding, dilation, "all sizes different")
    for said in ("small", "the same sizes, other numbers"):
        yield _case(rng.uniform(0.5, 2.0, (2, 6)), 3, 2, 1, 1, said)
    x = rng.uniform(0.5, 2.0, (2, 6))
    x[0, 1], x[0, 4], x[1, 2] = np.nan, np.inf, -np.inf
    yield _case(x, 2, 1, 1, 2, "NaN and inf are moved like any number")
    x = rng.uniform(0.5, 2.0, (12, 4)).T
    yield _case(x, 3, 2, 2, 2, "x is a transposed view")


def _case(x: np.ndarray, kernel: int, stride: int, padding: int, dilation: int, said: str) -> Case:
    C, T = x.shape
    words = f"{x.dtype}, {C} channels, {T} frames, kernel {kernel}, stride {stride}, padding {padding}"
    return Case((x, kernel, stride, padding, dilation), f"{words}, dilation {dilation}: {said}")


def _taps_first(x: np.ndarray, kernel: int, *rest: int) -> np.ndarray | None:
    """Return the rows in the order (k, c) in place of (c, k)."""
    right = im2col(x, kernel, *rest)
    return (
        right.reshape(len(x), kernel, -1).swapaxes(0, 1).reshape(right.shape) if len(x) > 1 < kernel else None
    )


def _turned(x: np.ndarray, kernel: int, *rest: int) -> np.ndarray:
    """Return the taps of the kernel from the last to the first."""
    right = im2col(x, kernel, *rest)
    return right.reshape(len(x), kernel, -1)[:, ::-1].reshape(right.shape)


def _moved(x: np.ndarray, kernel: int, stride: int, padding: int, dilation: int) -> np.ndarray:
    """Return what stands in the matrix if all padding is behind the signal."""
    behind = np.concatenate([x, np.zeros((len(x), 2 * padding), x.dtype)], 1)
    return im2col(behind, kernel, stride, 0, dilation)


def _wrapped(x: np.ndarray, kernel: int, stride: int, padding: int, dilation: int) -> np.ndarray | None:
    """Return what stands in the matrix if frames before the first one are counted from the end."""
    T = x.shape[1]
    if not 0 < padding <= T:
        return None
    from_the_end = np.concatenate([x[:, T - padding :], x, np.zeros((len(x), padding), x.dtype)], 1)
    return im2col(from_the_end, kernel, stride, 0, dilation)


TASK = Task(
    id="07.im2col",
    title="A convolution that is a matmul",
    kind="write",
    points=3,
    difficulty=3,
    minutes=20,
    good_for=(
        "turning every Conv1d of the Conformer but the depthwise one into the product you can "
        "already make fast"
    ),
    entry="im2col",
    cases=_signals,
    reference=im2col,
    comparison=exact(),
    rules=(USUAL_IMPORTS,),
    lookalikes=(
        Lookalike(
            "The rows are in the order (tap, channel), but the weight (O, C, kernel) has the taps last: row "
            "c * kernel + k.",
            _taps_first,
        ),
        Lookalike(
            "The kernel is turned round: that is the convolution of mathematics. Conv1d takes tap 0 with the "
            "earliest frame.",
            _turned,
        ),
        Lookalike(
            "The padding is all behind the signal: `padding` zeros stand on each side.",
            lambda x, kernel, stride, padding, dilation: (
                _moved(x, kernel, stride, padding, dilation) if padding else None
            ),
        ),
        Lookalike(
            "x[c, -1] is the last frame in Python: frames before the first one must count as 0.", _wrapped
        ),
        Lookalike(
            "Taps lie `dilation` frames apart; in yours they are neighbours.",
            fits=lambda got, x, kernel, stride, padding, dilation: _same_as(
                got, x, kernel, stride, padding, 1, dilation
            ),
        ),
        Lookalike(
            "From one column to the next it is `stride` frames; in yours it is one.",
            fits=lambda got, x, kernel, stride, padding, dilation: (
                stride > 1 and np.array_equal(got, im2col(x, kernel, 1, padding, dilation)[:, : got.shape[1]])
            ),
        ),
        Lookalike(
            "Stride and dilation are exchanged: stride leads from column to column, dilation from row to "
            "row.",
            fits=lambda got, x, kernel, stride, padding, dilation: (
                stride != dilation and np.array_equal(got, _exchanged(x, kernel, stride, padding, dilation))
            ),
        ),
    ),
    hints=(
        "out[o, t] = sum over c and k of weight[o, c, k] * x[c, ?]. Which frame does tap k of output t read?",
        "Frame t * stride + k * dilation - padding, or 0 if there is none. The pair (c, k) is the summed "
        "index, so it "
        "numbers the rows, c * kernel + k; t numbers the columns, and there are "
        "(T + 2 padding - dilation (kernel - 1) - 1) // stride + 1.",
        "for c, for k, for t: frame = t * stride + k * dilation - padding; if 0 <= frame < T: "
        "columns[c * kernel + k, t] = x[c, frame].",
    ),
)


def _same_as(got: np.ndarray, x: np.ndarray, kernel: int, stride: int, padding: int, one: int, dilation: int):
    """Whether the result is the undilated matrix, cut to the columns of the dilated one."""
    return dilation > 1 < kernel and np.array_equal(
        got, im2col(x, kernel, stride, padding, one)[:, : got.shape[1]]
    )


def _exchanged(x: np.ndarray, kernel: int, stride: int, padding: int, dilation: int) -> np.ndarray:
    """Return the matrix of the right shape, filled as if stride were dilation and dilation stride."""
    C, T = x.shape
    shape = im2col(x, kernel, stride, padding, dilation).shape
    long = np.zeros((C, shape[1] * dilation + kernel * stride + T + 2 * padding), x.dtype)
    long[:, padding : padding + T] = x
    frames = dilation * np.arange(shape[1])[None, :] + stride * np.arange(kernel)[:, None]
    return long[:, frames].reshape(shape)
