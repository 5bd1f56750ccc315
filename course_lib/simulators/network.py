"""Messages on a network, step by step: which link is the busiest, and how long that takes.

    network = racks(16, racks=2, link=1e9, uplink=4e9, alpha=50e-6)
    timeline(network, steps).seconds

The model is the one that is fitted in the chapter: a step takes alpha, and then as long as its busiest link
needs for the bytes that cross it. Steps follow each other; the messages of one step share the links. It knows
neither queues nor packets nor how a switch spreads flows over equal paths.

Source of alpha and beta: Hockney, "The communication challenge for MPP" (1994); that messages of a step
share a link: Thakur, Rabenseifner, Gropp (2005), section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from course_lib.arguments import number, whole

MOST_RANKS = 1 << 14
#: (senders, receivers) -> (which message, which link): a line for each link that a message crosses.
Route = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Network:
    """Ranks, the directed links between them, and the way that a message takes.

    `bandwidth` holds bytes a second for each link, `names` what it is called, `alpha` seconds of a step;
    `group` ranks stand together (in a rack, on an island, in a row of a grid).
    """

    name: str
    ranks: int
    names: tuple[str, ...]
    bandwidth: np.ndarray  # (links,)
    alpha: float
    route: Route
    group: int


@dataclass(frozen=True)
class Step:
    """Messages that are under way together, `times` times one after the other: senders, receivers, bytes."""

    senders: np.ndarray
    receivers: np.ndarray
    nbytes: np.ndarray
    times: int = 1


@dataclass(frozen=True)
class NetworkTimes:
    """How long each step took, all its repetitions together, and the link that held it up."""

    seconds_by_step: tuple[float, ...]
    busiest: tuple[str, ...]

    @property
    def seconds(self) -> float:
        """All steps together."""
        return sum(self.seconds_by_step)


def timeline(network: Network, steps: Iterable[Step], order: Sequence[int] | None = None) -> NetworkTimes:
    """Return the time of each step. `order[rank]` is the place on the network where the rank runs.

    Raises ValueError for an order that is no permutation, and for ranks that the network does not have.
    """
    places = _places(network, order)
    seconds, busiest = [], []
    for step in steps:
        load = _loads(network, step, places)
        waits = load / network.bandwidth
        worst = int(waits.argmax())
        seconds.append(step.times * (network.alpha + float(waits[worst])))
        busiest.append(network.names[worst] if load[worst] else "")
    return NetworkTimes(tuple(seconds), tuple(busiest))


def loads(network: Network, steps: Iterable[Step], order: Sequence[int] | None = None) -> np.ndarray:
    """Return the bytes that cross each link in all steps together, (links,)."""
    places = _places(network, order)
    return sum((step.times * _loads(network, step, places) for step in steps), np.zeros(len(network.names)))


def fitted(network: Network, small: tuple[list[Step], float], large: tuple[list[Step], float]) -> Network:
    """Return the network with the alpha and the speed of links that explain two measured times.

    Each is (steps, seconds), the second of larger messages. All links keep their ratios to each other. Where
    only a negative alpha would do, it is 0 and the larger messages decide. Raises ValueError where no speed
    of links explains the times: larger messages that were not slower.
    """
    free = replace(network, alpha=0.0)
    counts, waits = zip(
        *((sum(step.times for step in steps), timeline(free, steps).seconds) for steps, _ in (small, large)),
        strict=True,
    )
    rest = large[1] * counts[0] - small[1] * counts[1]  # what alpha does not explain
    share = waits[1] * counts[0] - waits[0] * counts[1]
    if rest <= 0 or share <= 0:
        raise ValueError(
            f"{small[1]:g} s and then {large[1]:g} s of larger messages give no speed of a link: measure "
            "again, at sizes that are further apart."
        )
    scale = rest / share
    alpha = (small[1] - scale * waits[0]) / counts[0]
    if alpha < 0:
        alpha, scale = 0.0, large[1] / waits[1]
    return replace(network, alpha=alpha, bandwidth=network.bandwidth / scale)


def steps_of(messages: Iterable[tuple[int, int, int, int]]) -> list[Step]:
    """Return messages (step, sender, receiver, bytes), as a rehearsal lists them, as steps."""
    table = np.array(sorted(messages), dtype=np.int64).reshape(-1, 4)
    return [Step(*table[table[:, 0] == number, 1:].T) for number in np.unique(table[:, 0])]


def _places(network: Network, order: Sequence[int] | None) -> np.ndarray:
    if order is None:
        return np.arange(network.ranks)
    if sorted(order) != list(range(network.ranks)):
        raise ValueError(f"order must name each of the places 0 to {network.ranks - 1} once.")
    return np.asarray(order)


def _loads(network: Network, step: Step, places: np.ndarray) -> np.ndarray:
    ranks = np.concatenate([step.senders, step.receivers])
    if ranks.size and not 0 <= ranks.min() <= ranks.max() < network.ranks:
        odd = ranks.min() if ranks.min() < 0 else ranks.max()
        raise ValueError(f"A message names rank {odd}, but {network.name} has 0 to {network.ranks - 1}.")
    message, link = network.route(places[step.senders], places[step.receivers])
    weights = np.broadcast_to(np.asarray(step.nbytes, float), step.senders.shape)[message]
    return np.bincount(link, weights=weights, minlength=len(network.names))


# -- topologies ---------------------------------------------------------------------------------------------


def star(ranks: int, link: float = 1e9, alpha: float = 50e-6) -> Network:
    """One switch: each rank has a link to it and one from it, of `link` bytes a second."""
    return tree(ranks, [], link, [], alpha, "star")


def racks(
    ranks: int, racks: int = 2, link: float = 1e9, uplink: float | None = None, alpha: float = 50e-6
) -> Network:
    """Racks of equally many ranks; each rack has one uplink (None: half of what its ranks have together)."""
    _check_groups(ranks, whole("racks", racks), "racks")
    size = ranks // racks
    return tree(ranks, [size], link, [size * link / 2 if uplink is None else uplink], alpha, f"{racks} racks")


def fat_tree(
    ranks: int, arity: int = 4, link: float = 1e9, taper: float = 1.0, alpha: float = 50e-6
) -> Network:
    """A tree whose links grow towards the root: a subtree's has the speed of all its ranks' over `taper`."""
    whole("arity", arity, least=2)
    number("taper", taper, least=1)
    sizes = []
    while (size := arity ** (len(sizes) + 1)) < ranks:
        sizes.append(size)
    return tree(ranks, sizes, link, [size * link / taper for size in sizes], alpha, "fat tree")


def tree(
    ranks: int, sizes: Sequence[int], link: float, uplinks: Sequence[float], alpha: float, name: str
) -> Network:
    """Return a tree of switches: groups of `sizes[level]` ranks share an uplink of `uplinks[level]`.

    A message climbs to the smallest group that has both ends, and goes down from there.
    """
    _check(ranks, alpha, link, *uplinks)
    levels = [(1, link), *zip(sizes, uplinks, strict=True)]
    counts = [-(-ranks // size) for size, _ in levels]
    first = np.cumsum([0, *counts])
    total = int(first[-1])
    bandwidth = np.concatenate([np.full(n, speed) for n, (_, speed) in zip(counts, levels, strict=True)])
    what = [
        f"rank {at}" if size == 1 else f"ranks {at * size} to {min(ranks, (at + 1) * size) - 1}"
        for n, (size, _) in zip(counts, levels, strict=True)
        for at in range(n)
    ]

    def route(senders: np.ndarray, receivers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        message, link = [], []
        for level, (size, _) in enumerate(levels):
            up, down = senders // size, receivers // size
            (apart,) = np.nonzero(up != down)
            message += [apart, apart]
            link += [first[level] + up[apart], total + first[level] + down[apart]]
        return np.concatenate(message), np.concatenate(link)

    names = tuple(f"{one}, up" for one in what) + tuple(f"{one}, down" for one in what)
    return Network(
        name, ranks, names, np.concatenate([bandwidth, bandwidth]), alpha, route, sizes[0] if sizes else ranks
    )


def islands(
    ranks: int,
    island: int = 8,
    near: float = 450e9,
    far: float = 50e9,
    alpha: float = 5e-6,
) -> Network:
    """GPUs in islands: links of `near` bytes a second within, and a card of `far` for each GPU.

    The defaults are what NVIDIA states for an H100 in one direction: NVLink 4 (450 GB/s) and InfiniBand NDR
    (400 Gbit/s).
    """
    _check(ranks, alpha, near, far)
    _check_groups(ranks, whole("island", island), "ranks an island")

    def route(senders: np.ndarray, receivers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        every = np.arange(len(senders))
        kind = np.where(senders // island == receivers // island, 0, 2 * ranks)
        return np.concatenate([every, every]), np.concatenate([kind + senders, kind + ranks + receivers])

    names = tuple(
        f"rank {at}, {what} {way}"
        for what in ("NVLink", "InfiniBand")
        for way in ("out", "in")
        for at in range(ranks)
    )
    return Network("islands", ranks, names, np.repeat([near, far], 2 * ranks), alpha, route, island)


def ring(ranks: int, link: float = 1e9, alpha: float = 50e-6) -> Network:
    """Each rank has a link to either neighbour; a message goes the shorter way round."""
    return replace(torus(1, ranks, link, alpha), name="ring")


def torus(rows: int, columns: int, link: float = 1e9, alpha: float = 50e-6) -> Network:
    """A grid that closes on itself: a message first goes along its row, then along the column."""
    ranks = whole("rows", rows) * whole("columns", columns)
    _check(ranks, alpha, link)

    def route(senders: np.ndarray, receivers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        message, link = [np.zeros(0, int)], [np.zeros(0, int)]
        at, to = np.array(np.divmod(senders, columns)), np.array(np.divmod(receivers, columns))
        for axis, length, first_kind in ((1, columns, 0), (0, rows, 2)):
            ahead = (to[axis] - at[axis]) % length
            forward = 2 * ahead <= length  # the shorter way
            hops, kind = np.where(forward, ahead, length - ahead), first_kind + np.where(forward, 0, 1)
            for hop in range(int(hops.max(initial=0))):
                (on,) = np.nonzero(hops > hop)
                message.append(on)
                link.append(kind[on] * ranks + at[0, on] * columns + at[1, on])
                at[axis, on] = (at[axis, on] + np.where(forward[on], 1, -1)) % length
        return np.concatenate(message), np.concatenate(link)

    names = tuple(f"rank {at}, {way}" for way in ("right", "left", "down", "up") for at in range(ranks))
    return Network(
        f"{rows} x {columns} torus", ranks, names, np.full(4 * ranks, float(link)), alpha, route, columns
    )


def _check(ranks: int, alpha: float, *bandwidths: float) -> None:
    whole("ranks", ranks, most=MOST_RANKS)
    number("alpha", alpha, least=0)
    for bandwidth in bandwidths:
        number("bandwidth", bandwidth, above=0)


def _check_groups(ranks: int, by: int, what: str) -> None:
    if whole("ranks", ranks, most=MOST_RANKS) % by:
        raise ValueError(f"{ranks} ranks do not divide by {by} {what}.")
