"""Broadcast, all-gather, reduce-scatter and all-reduce, out of sends and receives.

Every function is called by all ranks of a wire and returns what the collective leaves on its own rank. n is
the number of bytes of the whole array, P the number of ranks. Each says how many steps follow each other, and
how many bytes the busiest rank sends.

Sources: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH" (2005),
for trees, recursive doubling and halving; Patarasu and Yuan, "Bandwidth optimal all-reduce algorithms for
clusters of workstations" (2009), for the ring.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from course_lib.arguments import whole
from course_lib.distributed.wire import Array, Wire

# -- rings: each rank talks to its two neighbours -----------------------------------------------------------


def ring_all_gather(wire: Wire, blocks: list[Array]) -> list[Array]:
    """Give every rank all P blocks; `blocks[rank]` is this rank's, the others say shape and dtype.

    P − 1 steps; each rank sends all blocks but its right neighbour's: n (P − 1) / P bytes.
    """
    left, right = (wire.rank - 1) % wire.size, (wire.rank + 1) % wire.size
    blocks = list(blocks)
    for step in range(wire.size - 1):
        out, into = (wire.rank - step) % wire.size, (wire.rank - step - 1) % wire.size
        blocks[into] = wire.exchange(blocks[out], to=right, source=left, like=blocks[into])
    return blocks


def ring_reduce_scatter(wire: Wire, blocks: list[Array]) -> Array:
    """Return the sum over all ranks of `blocks[rank]`. P − 1 steps, n (P − 1) / P bytes."""
    left, right = (wire.rank - 1) % wire.size, (wire.rank + 1) % wire.size
    total = blocks[(wire.rank - 1) % wire.size]
    for step in range(wire.size - 1):
        mine = blocks[(wire.rank - step - 2) % wire.size]  # where this sum has come to
        total = mine + wire.exchange(total, to=right, source=left, like=mine)
    return total


def ring_all_reduce(wire: Wire, x: Array) -> Array:
    """Return the sum of all ranks' x: a reduce-scatter, then an all-gather.

    2 (P − 1) steps; 2 n (P − 1) / P bytes, which no algorithm beats.
    """
    blocks = cut(x, wire.size)
    blocks[wire.rank] = ring_reduce_scatter(wire, blocks)
    return joined(ring_all_gather(wire, blocks), x)


def ring_broadcast(wire: Wire, x: Array, root: int = 0) -> Array:
    """Return the root's x, in P blocks that follow each other along the ring. 2 P − 2 steps, n bytes."""
    place = _from_root(wire, root)  # the root is 0; the last does not pass on
    left, right = (wire.rank - 1) % wire.size, (wire.rank + 1) % wire.size
    blocks = cut(x, wire.size)
    if place > 0:
        blocks[0] = wire.receive(blocks[0], source=left)
    for before, now in zip(range(wire.size - 1), range(1, wire.size), strict=True):
        if place == 0:
            wire.send(blocks[before], to=right)
        elif place == wire.size - 1:
            blocks[now] = wire.receive(blocks[now], source=left)
        else:
            blocks[now] = wire.exchange(blocks[before], to=right, source=left, like=blocks[now])
    if place < wire.size - 1:
        wire.send(blocks[-1], to=right)
    return joined(blocks, x)


# -- trees: who has it tells one more in every step ---------------------------------------------------------


def tree_broadcast(wire: Wire, x: Array, root: int = 0) -> Array:
    """Return the root's x by a binomial tree. log2 P steps, rounded up; the root sends n log2 P bytes."""
    place = _from_root(wire, root)
    distance = 1
    while distance < wire.size:
        if place < distance and place + distance < wire.size:
            wire.send(x, to=(wire.rank + distance) % wire.size)
        elif distance <= place < 2 * distance:
            x = wire.receive(x, source=(wire.rank - distance) % wire.size)
        distance *= 2
    return x


def tree_reduce(wire: Wire, x: Array, root: int = 0) -> Array:
    """Return the sum of all ranks' x on the root; elsewhere what it had summed. The broadcast backwards."""
    place = _from_root(wire, root)
    distance = 1 << (wire.size - 1).bit_length()
    while distance := distance // 2:
        if place < distance and place + distance < wire.size:
            x = x + wire.receive(x, source=(wire.rank + distance) % wire.size)
        elif distance <= place < 2 * distance:
            wire.send(x, to=(wire.rank - distance) % wire.size)
    return x


def tree_all_reduce(wire: Wire, x: Array) -> Array:
    """Return the sum of all ranks' x: to the root and back. 2 log2 P steps; the root sends n log2 P bytes."""
    return tree_broadcast(wire, tree_reduce(wire, x))


# -- recursive doubling and halving: the partner is one bit away ---------------------------------------------


def doubling_all_reduce(wire: Wire, x: Array) -> Array:
    """Return the sum of all ranks' x. log2 P steps, n log2 P bytes: for short x.

    Where P is no power of two, the ranks beyond it give theirs to a partner and get the sum from it.
    """
    core = 1 << (wire.size.bit_length() - 1)
    beyond = wire.size - core
    if wire.rank >= core:
        wire.send(x, to=wire.rank - core)
        return wire.receive(x, source=wire.rank - core)
    if wire.rank < beyond:
        x = x + wire.receive(x, source=wire.rank + core)
    distance = 1
    while distance < core:
        x = x + wire.exchange(x, to=wire.rank ^ distance, source=wire.rank ^ distance)
        distance *= 2
    if wire.rank < beyond:
        wire.send(x, to=wire.rank + core)
    return x


def doubling_all_gather(wire: Wire, blocks: list[Array]) -> list[Array]:
    """Give every rank all P blocks, P a power of two. log2 P steps, n (P − 1) / P bytes."""
    _check_power(wire.size)
    blocks = list(blocks)
    distance = 1
    while distance < wire.size:
        partner, have = wire.rank ^ distance, wire.rank // distance * distance
        for mine in range(have, have + distance):
            theirs = mine ^ distance
            blocks[theirs] = wire.exchange(blocks[mine], partner, partner, like=blocks[theirs])
        distance *= 2
    return blocks


def halving_reduce_scatter(wire: Wire, blocks: list[Array]) -> Array:
    """Return the sum of all ranks' `blocks[rank]`, P a power of two. log2 P steps, n (P − 1) / P bytes."""
    _check_power(wire.size)
    blocks = list(blocks)
    distance = wire.size // 2
    while distance:
        partner, keep = wire.rank ^ distance, wire.rank // distance * distance
        for mine in range(keep, keep + distance):
            received = wire.exchange(blocks[mine ^ distance], partner, partner, like=blocks[mine])
            blocks[mine] = blocks[mine] + received
        distance //= 2
    return blocks[wire.rank]


# -- hierarchy: within a rack first, since between racks is what is scarce -----------------------------------


def hierarchical_all_reduce(wire: Wire, x: Array, racks: Sequence[Sequence[int]]) -> Array:
    """Return the sum of all ranks' x where `racks` lists the ranks that are near to each other.

    Each rack reduces and scatters among its own; ranks of one place in their racks all-reduce their block;
    then each rack gathers. Between racks a rank sends 2 n / R (G − 1) / G bytes: R ranks a rack, G racks.
    """
    sizes = [len(members) for members in racks]
    if len({*sizes}) > 1 or sorted(rank for members in racks for rank in members) != list(range(wire.size)):
        raise ValueError(
            f"Racks have {sizes} ranks, but must have equally many, and each of 0 to {wire.size - 1} once."
        )
    near = wire.among(next(members for members in racks if wire.rank in members))
    far = wire.among([members[near.rank] for members in racks])
    blocks = cut(x, near.size)
    blocks[near.rank] = ring_all_reduce(far, ring_reduce_scatter(near, blocks))
    return joined(ring_all_gather(near, blocks), x)


# -- what all of them need ----------------------------------------------------------------------------------


def cut(x: Array, parts: int) -> list[Array]:
    """Return x as `parts` blocks of one dimension that differ by one element at most."""
    return list(np.array_split(x.reshape(-1), parts))


def joined(blocks: Sequence[Array], like: Array) -> Array:
    """Return blocks as one array of the shape of `like`."""
    return np.concatenate(blocks).reshape(like.shape)


def _from_root(wire: Wire, root: int) -> int:
    """Return how many places after the root this rank is."""
    return (wire.rank - whole("root", root, least=0, most=wire.size - 1)) % wire.size


def _check_power(size: int) -> None:
    if size & (size - 1):
        raise ValueError(
            f"There are {size} ranks, but partners one bit away need a power of two: take the ring."
        )


ALL_REDUCES: dict[str, Callable[..., Array]] = {
    "ring": ring_all_reduce,
    "tree": tree_all_reduce,
    "doubling": doubling_all_reduce,
}
