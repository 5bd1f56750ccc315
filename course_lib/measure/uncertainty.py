"""How certain a ratio of two medians is."""

from __future__ import annotations

import numpy as np

RESAMPLES = 1000
FEWEST_RESAMPLES = 200
MOST_DRAWS = 200_000  # so that the check costs milliseconds however many samples there are


def ratio_interval(times: np.ndarray, reference: np.ndarray) -> tuple[float, float]:
    """Return the 95 % interval of median(times) / median(reference), by bootstrap.

    Samples of the same round are drawn together: what disturbed a whole round then cancels in the ratio.
    """
    if min(len(times), len(reference)) < 2:
        ratio = float(np.median(times) / np.median(reference))
        return ratio, ratio
    random = np.random.default_rng(0)
    resamples = max(FEWEST_RESAMPLES, min(RESAMPLES, MOST_DRAWS // len(times)))
    drawn = random.integers(len(times), size=(resamples, len(times)))
    drawn_reference = drawn
    if len(times) != len(reference):
        drawn_reference = random.integers(len(reference), size=(resamples, len(reference)))
    ratios = np.median(times[drawn], axis=1) / np.median(reference[drawn_reference], axis=1)
    low, high = np.percentile(ratios, (2.5, 97.5))
    return float(low), float(high)
