"""A parameter server keeps the weights; workers fetch them and bring gradients, in turns or when they come.

    run = asynchronous(gradient, w, seconds=[1.0, 1.0, 10.0], updates=300, rate=0.1)
    run.staleness.mean()                                 # workers − 1, if all are equally fast

The gradients are computed; the clock is a model: worker i takes ``seconds[i]`` for each, and the server and
the wire take none. So an update is *stale* by as many others as came in between.

Sources: Dean et al., "Large scale distributed deep networks" (2012), for the asynchronous server; Li et al.,
"Scaling distributed machine learning with the parameter server" (2014); Chen et al., "Revisiting distributed
synchronous SGD" (2016), for what stragglers cost either way.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from course_lib.arguments import number, whole
from course_lib.distributed.wire import Array

#: (weights, worker, how many it has made before) -> the gradient of its next batch, of the weights' shape.
Gradient = Callable[[Array, int, int], Array]


@dataclass(frozen=True)
class ServerRun:
    """What a server saw: weights after each update, when that was, by whom, and how stale it was."""

    weights: Array  # (updates + 1, ...)
    seconds: Array  # (updates + 1,), by the model
    workers: Array  # (updates,): who brought it; −1: all of them
    staleness: Array  # (updates,): how many updates came between fetching and bringing


def synchronous(
    gradient: Gradient, w: Array, seconds: Sequence[float], updates: int, rate: float
) -> ServerRun:
    """Update with the mean of all workers' gradients: everybody waits for the slowest one."""
    _check(seconds, updates, rate)
    kept = [np.array(w)]
    for step in range(updates):
        mean = sum(gradient(kept[-1], worker, step) for worker in range(len(seconds))) / len(seconds)
        kept.append(kept[-1] - rate * mean)
    return ServerRun(
        np.array(kept), max(seconds) * np.arange(updates + 1), np.full(updates, -1), np.zeros(updates, int)
    )


def asynchronous(
    gradient: Gradient, w: Array, seconds: Sequence[float], updates: int, rate: float
) -> ServerRun:
    """Update with each gradient when it comes: nobody waits, but it belongs to weights of some time ago."""
    _check(seconds, updates, rate)
    kept, times, workers, staleness = [np.array(w)], [0.0], [], []
    fetched, made = [0] * len(seconds), [0] * len(seconds)  # which version each works on; gradients so far
    coming = [(time, worker) for worker, time in enumerate(seconds)]
    heapq.heapify(coming)
    for _ in range(updates):
        time, worker = coming[0]
        brought = gradient(kept[fetched[worker]], worker, made[worker])
        staleness.append(len(kept) - 1 - fetched[worker])
        kept.append(kept[-1] - rate * brought)
        times.append(time)
        workers.append(worker)
        fetched[worker], made[worker] = len(kept) - 1, made[worker] + 1
        heapq.heapreplace(coming, (time + seconds[worker], worker))
    return ServerRun(np.array(kept), np.array(times), np.array(workers), np.array(staleness))


def _check(seconds: Sequence[float], updates: int, rate: float) -> None:
    whole("the number of workers", len(seconds))
    for one in seconds:
        number("seconds", one, above=0)
    whole("updates", updates)
    number("rate", rate, above=0)
