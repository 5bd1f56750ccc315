"""Task 07.rel_shift: the relative shift of the Conformer's attention, without a loop and without indices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.grading.compare import exact
from course_lib.grading.task import Case, Lookalike, Task
from course_lib.grading.tasks.batched.shared import USUAL_IMPORTS


def rel_shift(scores: np.ndarray) -> np.ndarray:
    """Return (T, T) from scores (T, 2T - 1) whose columns are the positions T - 1 … -(T - 1).

    By its definition: entry (i, j) is the score of query i at the position i - j, column T - 1 - (i - j).
    """
    T = len(scores)
    query, key = np.indices((T, T))
    return scores[query, T - 1 - (query - key)]


def _scores(rng: np.random.Generator) -> Iterator[Case]:
    for T in (2, 3, 1, 4):
        yield Case((_random(rng, T),), f"T = {T}")
    for T in (int(n) for n in rng.choice(np.arange(5, 30), 2, replace=False)):
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
    return rng.uniform(0.5, 2.0, (T, 2 * T - 1)) * rng.choice([-1.0, 1.0], (T, 2 * T - 1))


TASK = Task(
    id="07.rel_shift",
    title="The shift that is a reshape",
    kind="complete",
    points=2,
    difficulty=3,
    minutes=15,
    good_for="reading the strangest line of the Conformer, and checking a trick against its definition",
    entry="rel_shift",
    cases=_scores,
    reference=rel_shift,
    comparison=exact(),
    rules=(USUAL_IMPORTS,),
    lookalikes=(
        Lookalike(
            "Nothing is shifted: these are the first T columns.",
            lambda scores: scores[:, : len(scores)] if len(scores) > 1 else None,
        ),
        Lookalike(
            "Nothing is shifted: these are the last T columns.",
            lambda scores: scores[:, -len(scores) :] if len(scores) > 1 else None,
        ),
        Lookalike(
            "Every row goes the wrong way: row i must begin at column T - 1 - i, later rows further left.",
            lambda scores: _wrong_way(scores) if len(scores) > 1 else None,
        ),
        Lookalike(
            "Query and key are exchanged: the position is i - j, and the columns begin with T - 1.",
            lambda scores: _by_position(scores, -1) if len(scores) > 1 else None,
        ),
        Lookalike(
            "The shift is right; but the first T columns are needed, and these are the last ones.",
            lambda scores: _last_columns(scores) if len(scores) > 1 else None,
        ),
        Lookalike(
            "The shift is off by one: zeros of the padding, or scores of the row before, have come in.",
            lambda scores: _without_drop(scores),
        ),
        Lookalike(
            "The shift is right; cut it to the first T columns, as there are T keys.",
            fits=lambda got, scores: got.shape[1] > len(scores),
        ),
    ),
    hints=(
        "Write T = 3 down: the columns are the positions 2, 1, 0, -1, -2. Which three does query 0 need, "
        "which "
        "three query 1? How far does the second window lie from the first?",
        "One to the left for each row. Padded rows are 2T long; read as rows of 2T - 1, each begins one "
        "place earlier than the one before, if the first T numbers of the padded array are left out.",
        "padded.reshape(2 * T, T)[1:].reshape(T, 2 * T - 1)[:, :T]",
    ),
)


def _by_position(scores: np.ndarray, sign: int) -> np.ndarray:
    T = len(scores)
    query, key = np.indices((T, T))
    return scores[query, T - 1 - sign * (query - key)]


def _wrong_way(scores: np.ndarray) -> np.ndarray:
    """Return windows that begin at column i in row i: they move to the right."""
    T = len(scores)
    query, key = np.indices((T, T))
    return scores[query, query + key]


def _without_drop(scores: np.ndarray) -> np.ndarray:
    """Return the padded rows read as rows of 2T - 1, from the very first number on."""
    T = len(scores)
    padded = np.concatenate([np.zeros((T, 1)), scores], axis=1)
    return padded.ravel()[: T * (2 * T - 1)].reshape(T, 2 * T - 1)[:, :T]


def _last_columns(scores: np.ndarray) -> np.ndarray:
    """Return the last T columns of the shifted rows, where the first T are wanted."""
    T = len(scores)
    padded = np.concatenate([np.zeros((T, 1)), scores], axis=1)
    return padded.reshape(2 * T, T)[1:].reshape(T, 2 * T - 1)[:, T - 1 :]
