"""Task 10.quantise: a scale for every 128 numbers of a row."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.grading.compare import close
from course_lib.grading.patterns import same
from course_lib.grading.task import Case, Lookalike, Task, source
from course_lib.grading.tasks.fp8.shared import USUAL_IMPORTS

SIDE, LARGEST, SMALLEST_AMAX = 128, 448.0, 1e-4  # as in `fp8.quantise`, which would load torch

SOLUTION = source("""
    def quantise(x):
        M, K = x.shape
        scaled = np.empty((M, K), np.float32)
        scales = np.empty((M, (K + 127) // 128), np.float32)
        for block in range((K + 127) // 128):
            part = x[:, 128 * block : 128 * block + 128]
            amax = np.abs(part).max(axis=1)
            scales[:, block] = np.maximum(amax, 1e-4) / 448
            scaled[:, 128 * block : 128 * block + 128] = part / scales[:, block : block + 1]
        return scaled, scales
""")


def quantise(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return x (M, K) float32 over its scales, still unrounded, and the scales (M, K/128 rounded up)."""
    M, K = x.shape
    blocks = -(-K // SIDE)
    padded = np.zeros((M, blocks * SIDE), np.float32)
    padded[:, :K] = x
    amax = np.abs(padded.reshape(M, blocks, SIDE)).max(axis=2)
    scales = (np.maximum(amax, np.float32(SMALLEST_AMAX)) / np.float32(LARGEST)).astype(np.float32)
    return (x / np.repeat(scales, SIDE, axis=1)[:, :K]).astype(np.float32), scales


def _matrices(rng: np.random.Generator) -> Iterator[Case]:
    for M, K, said in (
        (3, 128, "one block"),
        (2, 256, "two blocks"),
        (5, 300, "the last block has 44 columns"),
        (1, 1, "one number"),
        (4, 129, "the last block has one column"),
        (7, 127, "one block that is not full"),
        (2, 0, "no columns"),
        (int(rng.integers(3, 9)), int(rng.integers(390, 500)), "any size"),
    ):
        yield Case((_matrix(rng, M, K),), f"x {M} x {K}: {said}", guard=True)
    x = _matrix(rng, 4, 384)
    x[1, 128:256] = 0
    yield Case((x,), "x 4 x 384, a block of zeros", guard=True)
    x = _matrix(rng, 4, 260)
    x[2, 128:256] = 1e-6 * rng.standard_normal(128)
    yield Case((x,), "x 4 x 260, a block of very small numbers", guard=True)
    x = -np.abs(_matrix(rng, 3, 200))
    yield Case((x,), "x 3 x 200, all numbers below 0", guard=True)
    x = _matrix(rng, 3, 260)
    x[1, 140] = np.nan
    yield Case((x,), "x 3 x 260, a NaN: it spreads over its block")
    yield Case((_matrix(rng, 5, 300),), "x 5 x 300 again, with other numbers", guard=True)
    yield Case((_matrix(rng, 200, 6).T,), "x 6 x 200, a transposed view")
    yield Case((_matrix(rng, 5, 520)[:, ::2],), "x 5 x 260, every second column of a matrix")


def _matrix(rng: np.random.Generator, M: int, K: int) -> np.ndarray:
    """Return numbers whose size differs from block to block, with signs."""
    sizes = np.exp2(rng.integers(-5, 8, (M, K // SIDE + 1)))
    x = rng.standard_normal((M, K)) * np.repeat(sizes, SIDE, axis=1)[:, :K]
    return x.astype(np.float32)


def _scales(wrong) -> Lookalike:
    """Return what recognises scales that are `wrong(x, right scales)`."""
    words, make = wrong
    return Lookalike(words, fits=lambda got, x: _is_other(got[1], make(x, quantise(x)[1]), quantise(x)[1]))


def _is_other(got: np.ndarray, wrong: np.ndarray, right: np.ndarray) -> bool:
    return same(got, wrong) and not same(wrong, right)


def _of_rows(x: np.ndarray, scales: np.ndarray) -> np.ndarray:
    return np.repeat(np.maximum(np.abs(x).max(axis=1, keepdims=True), 1e-4) / 448, scales.shape[1], axis=1)


def _of_blocks(x: np.ndarray, scales: np.ndarray) -> np.ndarray:
    return np.repeat(scales.max(axis=0, keepdims=True), len(x), axis=0)


def _of_all(x: np.ndarray, scales: np.ndarray) -> np.ndarray:
    return np.full_like(scales, scales.max())


def _signed_max(x: np.ndarray, scales: np.ndarray) -> np.ndarray:
    cut = range(0, x.shape[1], SIDE)
    return np.stack([np.maximum(x[:, k : k + SIDE].max(axis=1), 1e-4) / 448 for k in cut], axis=1)


ONE_FOR_ALL_ROWS = (
    "Every row has a scale of its own in each block: take the largest absolute value along the row only."
)

TASK = Task(
    id="10.quantise",
    title="A scale for every 128",
    kind="write",
    points=2,
    difficulty=3,
    minutes=20,
    good_for="the one line of DeepSeek-V3's recipe that makes e4m3 enough for training",
    entry="quantise",
    cases=_matrices,
    reference=quantise,
    comparison=close(rtol=3e-6, atol=1e-30, parts=("the scaled numbers", "the scales")),
    rules=(USUAL_IMPORTS,),
    lookalikes=(
        _scales(
            (
                "Those scales are too large by 448: the largest number of a block becomes 448, not 1.",
                lambda x, scales: scales * 448,
            )
        ),
        _scales(
            ("Those are the inverse scales: x is about codes times scale.", lambda x, scales: 1 / scales)
        ),
        _scales(("Those are scales of whole rows: each block of 128 columns has its own.", _of_rows)),
        *(_scales((ONE_FOR_ALL_ROWS, wrong)) for wrong in (_of_blocks, _of_all)),
        _scales(
            (
                "The largest absolute value counts, not the largest value: think of a block of negative "
                "numbers.",
                _signed_max,
            )
        ),
        _scales(
            (
                "240 is the end of an IEEE format of this width; e4m3 goes on to 448.",
                lambda x, scales: scales * (448 / 240),
            )
        ),
        Lookalike(
            "A block of zeros (or of very small numbers) has the scale 1e-4 / 448: the largest "
            "absolute value "
            "counts as 1e-4 at least.",
            fits=lambda got, x: _small_blocks_differ(got[1], quantise(x)[1]),
        ),
        Lookalike(
            "The scales are right, but the numbers are multiplied with them: divide.",
            fits=lambda got, x: (
                same(got[1], quantise(x)[1])
                and same(got[0], quantise(x)[0] * np.repeat(got[1], SIDE, axis=1)[:, : x.shape[1]] ** 2)
            ),
        ),
    ),
    hints=(
        "A block's largest absolute value is 3.5, and e4m3 ends at 448. By what do you divide the block so "
        "that nothing overflows and no room is left?",
        "By amax / 448, where amax is at least 1e-4. Go from block to block: x[:, 128 * b : 128 * b + 128] "
        "ends by itself where x ends. There are (K + 127) // 128 blocks, and every row has a scale "
        "of its own "
        "in each.",
        "part = x[:, 128 * b : 128 * b + 128]; scales[:, b] = np.maximum(np.abs(part).max(axis=1), 1e-4) / "
        "448; scaled[:, …] = part / scales[:, b : b + 1].",
    ),
)


def _small_blocks_differ(got: np.ndarray, scales: np.ndarray) -> bool:
    """Whether the wrong scales are those of blocks whose amax is clamped, and they are smaller than that."""
    small = scales <= np.float32(SMALLEST_AMAX / LARGEST) * (1 + 1e-6)
    return bool(
        small.any()
        and (~small).any()
        and same(got[~small], scales[~small])
        and (got[small] < scales[small]).all()
    )
