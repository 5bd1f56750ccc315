"""Fewer bytes for a gradient: half precision, the largest entries, a product of two thin matrices.

Each is a function ``(wire, gradient, error) -> (mean, error)``: the mean over ranks of what was sent, and
what this rank did not send, to be added to its next gradient. That *error feedback* is why sparse or low-rank
gradients can train at all: what is small today is sent when it has added up.

Sources: Aji and Heafield, "Sparse communication for distributed gradient descent" (2017), for top-k; Stich,
Cordonnier, Jaggi, "Sparsified SGD with memory" (2018), for the feedback; Vogels, Karimireddy, Jaggi,
"PowerSGD: practical low-rank gradient compression for distributed optimization" (2019), algorithm 1.
"""

from __future__ import annotations

import numpy as np

from course_lib.arguments import number, whole
from course_lib.distributed.collectives import ring_all_gather, ring_all_reduce
from course_lib.distributed.wire import Array, Wire

Averaged = tuple[Array, Array]


def exact(wire: Wire, gradient: Array, error: Array) -> Averaged:
    """Send all of it: 2 n (P − 1) / P bytes, and no error."""
    return ring_all_reduce(wire, gradient + error) / wire.size, np.zeros_like(gradient)


def half(wire: Wire, gradient: Array, error: Array) -> Averaged:
    """Send float16: half the bytes of float32. Raises ValueError for what float16 cannot hold."""
    wanted = gradient + error
    with np.errstate(over="ignore"):
        sent = (wanted / wire.size).astype(np.float16)  # divided first: a sum of P could overflow
    if not np.isfinite(sent).all():
        raise ValueError(
            f"The largest gradient is {np.abs(wanted).max():.3g}, which float16 cannot hold: scale the loss."
        )
    return ring_all_reduce(wire, sent).astype(gradient.dtype), wanted - sent.astype(
        gradient.dtype
    ) * wire.size


def top_k(wire: Wire, gradient: Array, error: Array, share: float = 0.01) -> Averaged:
    """Send the largest share of the entries, each with its place in the flattened gradient.

    Every rank gathers all pairs: it sends 8 (P − 1) bytes for each kept entry, more with every rank.
    """
    kept = max(1, round(number("share", share, above=0, most=1) * gradient.size))
    wanted = (gradient + error).reshape(-1)
    places = np.argpartition(np.abs(wanted), -kept)[-kept:]
    mine = np.stack([places.astype(np.int32), wanted[places].astype(np.float32).view(np.int32)])  # (2, kept)
    mean = np.zeros_like(wanted)
    for places_of, bits in ring_all_gather(wire, [mine] * wire.size):
        mean[places_of] += np.ascontiguousarray(bits).view(np.float32) / wire.size
    left = wanted.copy()
    left[places] -= wanted[places].astype(np.float32)
    return mean.reshape(gradient.shape), left.reshape(gradient.shape)


def power_sgd(wire: Wire, gradient: Array, error: Array, rank: int = 1, seed: int = 0) -> Averaged:
    """Send two thin matrices whose product is near to the gradient (m, n): rank (m + n) numbers, not m n.

    One step of a power iteration from a random start that all ranks share: give each step a `seed` of its
    own, or what the start does not see is never sent. What is no matrix is sent whole.
    """
    if gradient.ndim < 2:
        return exact(wire, gradient, error)
    wanted = (gradient + error).reshape(len(gradient), -1)  # (m, n)
    rank = min(whole("rank", rank), *wanted.shape)
    start = np.random.default_rng(seed).standard_normal((wanted.shape[1], rank)).astype(wanted.dtype)
    P = ring_all_reduce(wire, wanted @ start) / wire.size  # (m, rank)
    P, _ = np.linalg.qr(P)
    Q = ring_all_reduce(wire, wanted.T @ P) / wire.size  # (n, rank)
    mean = P @ Q.T
    return mean.reshape(gradient.shape), (wanted - mean).reshape(gradient.shape)
