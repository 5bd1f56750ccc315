"""Which of the learner's results the ladder shows, and between which of them it forms ratios.

A ratio is formed between sound results of one shape and one dtype, and between no others.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from course_lib import ladder
from course_lib.ladder import Result, Rung, Shape

BASELINE = "numpy"
#: They stand last, and no rung is said to have climbed past itself.
BASELINES = (BASELINE, "openblas", "torch")


@dataclass(frozen=True)
class Standing:
    """The rungs that have a place, baselines last, and what was measured of each, by shape, in one dtype."""

    rungs: tuple[Rung, ...]
    results: Mapping[str, Mapping[Shape, Result]]
    dtype: str | None

    @property
    def shape(self) -> Shape | None:
        """The shape at which rungs are compared: the ladder's SIZE if two have it, else the commonest.

        Of equally common ones the largest: small matrices lie in the caches, where no rung meets its limit.
        """
        found = Counter(shape for shapes in self.results.values() for shape in shapes)
        if found[(ladder.SIZE,) * 3] >= 2:
            return (ladder.SIZE,) * 3
        return max(found, key=lambda shape: (found[shape], math.prod(shape)), default=None)

    @property
    def drawn(self) -> dict[str, Result]:
        """Each rung's result at that shape; of a rung without one, the largest as in `ratio`."""
        return {id: shapes[_best(shapes, self.shape)] for id, shapes in self.results.items()}

    def compared(self, shape: Shape | None = None) -> dict[str, Result]:
        """Return the sound results at one shape (None: that of the ladder), in ladder order."""
        there = {rung.id: self.results.get(rung.id, {}).get(shape or self.shape) for rung in self.rungs}
        return {id: one for id, one in there.items() if one and not one.rough}

    def ratio(self, id: str, other: str) -> tuple[float, Shape] | None:
        """Return how many times as fast one rung is as another, and at which shape.

        Where the rung is drawn, else at the largest of the ladder's sizes that both have, else at the largest
        shape; None without one at which both are known and sound.
        """
        own, theirs = self.results.get(id, {}), self.results.get(other, {})
        both = [shape for shape in own if shape in theirs and not own[shape].rough | theirs[shape].rough]
        if not both:
            return None
        shape = _best(both, tuple(self.drawn[id].shape))
        return theirs[shape].seconds / own[shape].seconds, shape


def _best(shapes: Iterable[Shape], first: Shape | None) -> Shape:
    """Return this shape if it is there, else the largest of the ladder's sizes, else the largest of all."""
    sizes = [(n,) * 3 for n in (ladder.SMALL, ladder.SIZE, ladder.LARGE)]
    return max(shapes, key=lambda one: (one == first, one in sizes, math.prod(one)))


def standing(results: Iterable[Result] | None, dtype: str | None) -> Standing:
    """Return what the ladder shows of `results` (None: the learner's own).

    `dtype` None: the one most rungs were measured in. Of several results of a rung those on the fewest
    threads count, so that all stand on equal terms where they can. Rungs without a result have a place, too,
    unless they cannot have one: in this dtype, or on this computer. A rung for several cores that was
    measured only on one thread has none: its speed there says nothing. Nor does what was measured at a size
    that the rung leaves to another one.
    """
    known = {rung.id: rung for rung in ladder.LADDER}
    given = ladder.results() if results is None else results
    found = [r for r in given if r.rung in known and min(r.shape) >= known[r.rung].smallest]
    chosen = dtype or _commonest_dtype(found)
    alone = {r.rung for r in found if r.dtype == chosen and r.threads == 1 and known[r.rung].parallel}
    kept = by_rung(r for r in found if r.dtype == chosen and (r.rung not in alone or r.threads > 1))
    possible = [rung for rung in ladder.LADDER if rung.id not in alone and rung.missing() is None]
    able = {rung.id for rung in possible if chosen in rung.dtypes} or {rung.id for rung in possible}
    rungs = [rung for rung in ladder.LADDER if rung.id in kept or rung.id in able]
    rungs.sort(key=lambda rung: rung.id in BASELINES)
    return Standing(tuple(rungs), kept, chosen)


def by_rung(results: Iterable[Result]) -> dict[str, dict[Shape, Result]]:
    """Return each rung's results on its fewest threads by shape; of equals the sound, then the fastest."""
    found: dict[str, dict[Shape, Result]] = defaultdict(dict)
    ranked = sorted(results, key=lambda one: (-one.threads, not one.rough, one.gflops))
    fewest = {one.rung: one.threads for one in ranked}
    for one in ranked:
        if one.threads == fewest[one.rung]:
            found[one.rung][tuple(one.shape)] = one
    return dict(found)


def shape_in_words(shape: Sequence[int]) -> str:
    """Return a shape as labels say it: "1,000³", or "64×4096×64"."""
    return f"{shape[0]:,}³" if len(set(shape)) == 1 else "×".join(map(str, shape))


def _commonest_dtype(results: Sequence[Result]) -> str | None:
    """Return the dtype in which most rungs were measured; of equals the wider one."""
    rungs = Counter(dtype for dtype, _ in {(result.dtype, result.rung) for result in results})
    return max(rungs, key=lambda dtype: (rungs[dtype], dtype), default=None)
