"""Unequal devices, and what a product costs: shares by speed, and the cheapest cluster that is in time.

rows = shares(1000, speeds=[3.0, 1.0])                 # [slice(0, 750), slice(750, 1000)]
plans((65536,) * 3, [offer], deadline_s=60)[0]         # the cheapest
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from course_lib.arguments import number, whole
from course_lib.distributed.matmul import ALGORITHMS, Shape
from course_lib.distributed.schedules import ITEMSIZE, PRODUCTS
from course_lib.simulators.network import Network, timeline


def shares(length: int, speeds: Sequence[float]) -> list[slice]:
    """Cut a dimension into parts proportional to the speeds of those who compute them.

    The ideal is reached when all end together: length / sum(speeds). Rounding costs the slowest at most one.
    """
    whole("the number of speeds", len(speeds))
    for speed in speeds:
        number("speed", speed, above=0)
    edges = np.rint(whole("length", length, least=0) * np.cumsum([0, *speeds]) / sum(speeds)).astype(int)
    return [slice(int(begin), int(end)) for begin, end in pairwise(edges)]


@dataclass(frozen=True)
class Offer:
    """What can be hired: a rank's speed (FLOP/s), memory (bytes), price (per hour), and a network for P."""

    name: str
    flops: float
    memory: float
    price: float
    network: Callable[[int], Network]
    counts: tuple[int, ...] = (1, 4, 16, 64, 256, 1024)

    def __post_init__(self) -> None:
        for what in ("flops", "memory"):
            number(f"{what} of {self.name}", getattr(self, what), above=0)


@dataclass(frozen=True)
class ClusterPlan:
    """One way to compute a product (or to train): with whom, how, what it takes: seconds, bytes, money."""

    offer: str
    ranks: int
    algorithm: str
    compute_s: float
    network_s: float
    memory: float
    cost: float

    @property
    def seconds(self) -> float:
        """Computing, then the network: nothing is assumed to overlap."""
        return self.compute_s + self.network_s


def plans(shape: Shape, offers: Sequence[Offer], deadline_s: float) -> list[ClusterPlan]:
    """Return the plans that fit into memory and end by the deadline, the cheapest first.

    What is assumed: every rank reaches its offer's speed, computing and sending do not overlap, the matrices
    are there already, time is paid by the second, and nothing fails.
    """
    number("deadline_s", deadline_s, above=0)
    found = []
    for offer in offers:
        for ranks in offer.counts:
            for algorithm in PRODUCTS if ranks > 1 else ("row",):
                if algorithm == "cannon" and math.isqrt(ranks) ** 2 != ranks:
                    continue  # its grid is a square
                plan = _plan(shape, offer, ranks, algorithm)
                if plan.memory <= offer.memory and plan.seconds <= deadline_s:
                    found.append(plan)
    return sorted(found, key=lambda plan: plan.cost)


def _plan(shape: Shape, offer: Offer, ranks: int, algorithm: str) -> ClusterPlan:
    compute_s = 2 * shape[0] * shape[1] * shape[2] / ranks / offer.flops
    network = offer.network(ranks)
    network_s = timeline(network, PRODUCTS[algorithm](shape, ranks)).seconds
    cost = ranks * (compute_s + network_s) / 3600 * offer.price
    memory = ALGORITHMS[algorithm].memory(shape, ranks) * ITEMSIZE
    return ClusterPlan(offer.name, ranks, algorithm, compute_s, network_s, memory, cost)
