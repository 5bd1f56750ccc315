"""Inputs in which every two special things meet: a special value in each shape, dtype and layout.

Most wrong answers that ever got points were wrong in one branch for one value, and no input had both. Trying
all combinations takes too many calls; trying every pair takes about as many as the two longest lists have
pairs (combinatorial testing: Cohen et al., "The AETG system", IEEE Trans. Software Eng. 23, 1997).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

Choice = Any  # a value, or a function of a generator that draws one

TRIES = 50  # rows drawn at random, of which the one with most new pairs is taken: another one for every seed


def every_pair(
    rng: np.random.Generator,
    unless: Callable[[Mapping[str, Any]], bool] = lambda row: False,
    **choices: Sequence[Choice],
) -> Iterator[dict[str, Any]]:
    """Yield rows, name to one of its choices, until every two choices of two names have stood in one row.

    Rows for which `unless` is true never come, nor are pairs waited for that are found in no other row. A
    choice that is callable stands for `choice(rng)`, drawn anew for each row; `unless` sees what is drawn.
    """
    counts = [len(of) for of in choices.values()]  # of the choices of each name
    missing = set().union(*(_pairs(row) for row in _two_at_a_time(counts)))
    for pair in rng.permutation(sorted(missing)):
        if tuple(pair) not in missing:
            continue
        tries = rng.integers(0, counts, (TRIES, len(counts)))
        tries[:, pair[0]], tries[:, pair[2]] = pair[1], pair[3]
        news = [(_pairs(row) & missing, row) for row in tries.tolist()]
        for new, places in sorted(news, key=lambda one: -len(one[0])):
            drawn = (_drawn(of[at], rng) for of, at in zip(choices.values(), places, strict=True))
            row = dict(zip(choices, drawn, strict=True))
            if not unless(row):
                missing -= new
                yield row
                break


def between(low: int, high: int) -> Callable[[np.random.Generator], int]:
    """Return a choice that is drawn anew for each row: a whole number from low to high - 1."""
    return lambda rng: int(rng.integers(low, high))


def _two_at_a_time(counts: Sequence[int]) -> Iterator[list[int]]:
    """Yield rows of places in which every pair stands somewhere."""
    for (a, many), (b, more) in itertools.combinations_with_replacement(enumerate(counts), 2):
        for at, other in itertools.product(range(many), range(more)):
            row = [0] * len(counts)
            row[a], row[b] = at, other
            yield row


def _pairs(row: Sequence[int]) -> set[tuple[int, int, int, int]]:
    """Return (name, choice, name, choice) for every two places of a row, and each with itself."""
    places = itertools.combinations_with_replacement(enumerate(row), 2)
    return {(a, at, b, other) for (a, at), (b, other) in places}


def _drawn(choice: Choice, rng: np.random.Generator) -> Any:
    return choice(rng) if callable(choice) else choice
