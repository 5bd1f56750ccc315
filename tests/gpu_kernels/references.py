"""What kernels must have computed, in NumPy and Python."""

from __future__ import annotations

import math

import numpy as np

lanes = np.arange(32)
cross = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]])


def product(A, B):
    return A.astype(np.float64) @ B.astype(np.float64)


def by_block(x, size, function):
    """Return function of each stretch of `size` elements, joined."""
    return np.concatenate([np.atleast_1d(function(x[i : i + size])) for i in range(0, x.size, size)])


def softmax(x):
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def collatz(n):
    steps = 0
    while n != 1:
        n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
    return steps


def halves_larger(x):
    padded = np.zeros((-(-x.size // 32), 32), np.float32)
    padded.ravel()[: x.size] = x
    return (padded > np.roll(padded, -16, axis=1)).ravel()[: x.size]


def neighbours(x):
    return x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]


def inner(x, values):
    """Return x with other values inside of its edge."""
    x = x.copy()
    x[(slice(1, -1),) * x.ndim] = values
    return x


def smoothed(x, steps):
    for _ in range(steps):
        x = inner(x, three_point(x)[1:-1] / 3)
    return x


def three_point(x):
    return inner(x, x[:-2] + x[1:-1] + x[2:])


def odd_even_rounds(x):
    """Return how many rounds of odd-even transposition change something, and one more."""
    x = x.copy()
    for done in range(x.size):
        before = x.copy()
        for first in (0, 1):
            pairs = x[first : first + (x.size - first) // 2 * 2].reshape(-1, 2)
            pairs.sort(axis=1)
        if (x == before).all():
            return done + 1
    return x.size


def doubled_until_large(x):
    for _ in range(8):
        x = np.where(x > 10, x, 2 * x)
    return x


def black_scholes(S, X, T, R, V):
    """Return call and put prices, with the normal distribution by math.erf instead of a polynomial."""
    normal = np.vectorize(lambda d: 0.5 * (1 + math.erf(d / math.sqrt(2))))
    d1 = (np.log(S / X) + (R + 0.5 * V * V) * T) / (V * np.sqrt(T))
    call = S * normal(d1) - X * np.exp(-R * T) * normal(d1 - V * np.sqrt(T))
    return {"callResult": call, "putResult": call - S + X * np.exp(-R * T)}


def jacobi(A, Anew):
    """A step inside of the edge, and its largest change in each tile of 4 x 4 (0 at the edge)."""
    new = inner(Anew, 0.25 * neighbours(A))
    change = inner(np.zeros_like(A), (new - A)[1:-1, 1:-1])
    return {"Anew": new, "error": change.reshape(2, 4, 2, 4).max(axis=(1, 3))}


def windows(x, rows, cols):
    return np.lib.stride_tricks.sliding_window_view(x, (rows, cols))


def focal(function, data, mask):
    """Return function of the unmasked elements of each window, cut off at the border."""
    padded = np.pad(data, [(n // 2, n // 2) for n in mask.shape], constant_values=np.nan)
    return [[function(w[mask != 0]) for w in row] for row in windows(padded, *mask.shape)]


def forward_variables(acts, denom, alphas, likelihood, xlen, ylen, labels):
    """The recursion of Graves (2012), eq. 16, over t and u instead of over anti-diagonals; blank is 0."""
    logp = acts.reshape(2, 4, 5, 6) + denom.reshape(2, 4, 5)[..., None]
    a, likelihood = alphas.reshape(2, 4, 5).astype(np.float64), likelihood.astype(np.float64)
    for b in range(2):
        T, U = xlen[b], ylen[b] + 1
        for t in range(T):
            for u in range(U):
                ways = [a[b, t - 1, u] + logp[b, t - 1, u, 0]] if t else []
                ways += [a[b, t, u - 1] + logp[b, t, u - 1, labels[b, u - 1]]] if u else []
                a[b, t, u] = np.logaddexp.reduce(ways) if ways else 0
        likelihood[b] = a[b, T - 1, U - 1] + logp[b, T - 1, U - 1, 0]
    return {"alphas": a.ravel(), "llForward": likelihood}


def filled_between(cells, sums):
    """What incl_prefix_sum does: cells from the first particle's to before the last one's."""
    sums, inside = sums.copy(), np.arange(cells[0], cells[-1])
    sums[inside] = np.searchsorted(cells, inside, side="right")
    return sums


def first_above(x, limit, start):
    return next((k for k in range(start, x.size) if x[k] > limit), -1)
