"""Task 07.softmax: attention weights of an utterance that is padded in its batch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.grading.compare import close
from course_lib.grading.task import Case, Lookalike, Task
from course_lib.grading.tasks.batched.shared import USUAL_IMPORTS

FILL = -1e4


def weights(scores: np.ndarray, length: int) -> np.ndarray:
    """Return softmax along each row of scores (T, T), of which the first `length` queries and keys are valid.

    As NeMo 1.23 has it (`RelPositionMultiHeadAttention`): what is masked becomes -1e4 before the softmax
    and 0 after it.
    """
    valid = np.arange(len(scores)) < length
    mask = valid[:, None] & valid[None, :]
    filled = np.where(mask, scores, FILL)
    raised = np.exp(filled - filled.max(axis=1, keepdims=True))
    return np.where(mask, raised / raised.sum(axis=1, keepdims=True), 0.0)


def _attention(rng: np.random.Generator) -> Iterator[Case]:
    for T, length, said in (
        (4, 4, "nothing is padded"),
        (5, 3, "two frames are padding"),
        (6, 1, "one frame is valid"),
        (3, 0, "all is padding: all weights are 0"),
        (1, 1, "a single frame"),
    ):
        yield Case((_scores(rng, T, 2.0), length), f"T = {T}, length {length}: {said}")
    for scale in (1.0, 5.0):
        T = int(rng.integers(8, 30))
        length = int(rng.integers(2, T))
        yield Case((_scores(rng, T, scale), length), f"T = {T}, length {length}")
    large = _scores(rng, 6, 2.0) + rng.choice([-900.0, 900.0], (6, 1))
    yield Case((large, 4), "rows of scores near 900 or -900: exp(900) is inf, exp(-900) is 0")
    huge = _scores(rng, 5, 2.0) + rng.choice([12_000.0, 13_000.0], (5, 1))
    yield Case((huge, 4), "rows of scores near 12000 or 13000: too much for exp of any type of number")
    yield Case((_scores(rng, 5, 400.0), 5), "scores up to 400 apart")
    padding = _scores(rng, 7, 1.0)
    padding[:, 5:] = 3000.0
    yield Case((padding, 5), "large numbers in the padding: they must not count")
    yield Case(
        (_scores(rng, 5, 1.0) + FILL, 3), "scores near -1e4: there the filling takes its share of the softmax"
    )


def _scores(rng: np.random.Generator, T: int, scale: float) -> np.ndarray:
    return scale * rng.uniform(-1.0, 1.0, (T, T))


def _along(axis: int, scores: np.ndarray, length: int) -> np.ndarray:
    """Return the softmax along an axis (None: over all) of what is valid, 0 elsewhere."""
    found = np.zeros(scores.shape)
    valid = scores[:length, :length]
    raised = np.exp(valid - valid.max(axis=axis, keepdims=True))
    found[:length, :length] = raised / raised.sum(axis=axis, keepdims=True)
    return found


def _softmax(scores: np.ndarray) -> np.ndarray:
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


def _only_after(scores: np.ndarray, length: int) -> np.ndarray:
    """Return weights that were masked after the softmax alone, so that the padding has taken its share."""
    found = np.zeros(scores.shape)
    found[:length, :length] = _softmax(scores)[:length, :length]
    return found


def _keys_only(scores: np.ndarray, length: int) -> np.ndarray:
    """Return weights for queries that are padding, too."""
    found = np.zeros(scores.shape)
    found[:, :length] = _softmax(scores[:, :length])
    return found


def _both_only(scores: np.ndarray, length: int) -> np.ndarray:
    """Return weights where only the pairs of two padded frames were masked."""
    valid = np.arange(len(scores)) < length
    seen = valid[:, None] | valid[None, :]
    return np.where(seen, _softmax(np.where(seen, scores, FILL)), 0.0)


TASK = Task(
    id="07.softmax",
    title="Nobody listens to padding",
    kind="write",
    points=3,
    difficulty=3,
    minutes=20,
    good_for="a softmax that survives large scores and empty rows, and a mask that changes no valid frame",
    entry="weights",
    cases=_attention,
    reference=weights,
    comparison=close(rtol=1e-9, atol=1e-300),
    rules=(USUAL_IMPORTS,),
    lookalikes=(
        Lookalike(
            "The padding got its share before you set it to 0: mask the scores before the softmax, too.",
            lambda scores, length: _only_after(scores, length) if 0 < length < len(scores) else None,
        ),
        Lookalike(
            "Queries that are padding get weights: the mask is valid query AND valid key.",
            lambda scores, length: _keys_only(scores, length) if 0 < length < len(scores) else None,
        ),
        Lookalike(
            "A pair is masked where its query or its key is padding; yours only where both are.",
            lambda scores, length: _both_only(scores, length) if 0 < length < len(scores) else None,
        ),
        Lookalike(
            "Rows that are padding throughout must be 0 in the end; a softmax of equal numbers is 1 / T.",
            fits=lambda got, scores, length: (
                length < len(scores) and np.allclose(got[length:].sum(axis=1), 1)
            ),
        ),
        Lookalike(
            "That is the softmax along the columns: every query (row) has weights that add up to 1.",
            lambda scores, length: _along(0, scores, length) if length > 1 else None,
        ),
        Lookalike(
            "That is one softmax over the whole matrix: every query (row) has its own.",
            lambda scores, length: _along(None, scores, length) if length > 1 else None,
        ),
        Lookalike(
            "Those are the powers; divide each by the sum of its row.",
            fits=lambda got, scores, length: (
                length > 1
                and not np.allclose(got[:length].sum(1), 1)
                and np.allclose(
                    got[:length, :length] / got[:length, :length].sum(1, keepdims=True),
                    weights(scores, length)[:length, :length],
                )
            ),
        ),
        Lookalike(
            "exp of a large score is inf, from 710 on in float64, and inf / inf is NaN: subtract the largest "
            "score of the row first.",
            fits=lambda got, scores, length: (
                np.isnan(got[:length]).any() and (np.abs(scores[:length, :length]).max() > 700)
            ),
        ),
        Lookalike(
            "A row of nothing but padding became NaN (0 / 0): it must be 0.",
            fits=lambda got, scores, length: (
                np.isnan(got[length:]).any() and not np.isnan(got[:length]).any()
            ),
        ),
        Lookalike(
            "Masked scores are -1e4, not less: where valid scores are as low, the masked ones take their "
            "share.",
            fits=lambda got, scores, length: scores.max() < -9000 and np.allclose(got[:length].sum(1), 1),
        ),
    ),
    hints=(
        "Which frames may a valid query listen to? And what must stand in the row of a query that is "
        "padding?",
        "mask[i, j] is valid query and valid key. Where it is False, the scores become -1e4, then "
        "softmax along "
        "each row (subtract the row's maximum first), then the weights there become 0.",
        "filled = np.where(mask, scores, -1e4); raised = np.exp(filled - filled.max(axis=1, keepdims=True)); "
        "np.where(mask, raised / raised.sum(axis=1, keepdims=True), 0.0)",
    ),
)
