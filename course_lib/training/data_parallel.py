"""Data parallel training: each rank has the whole model and a part of the batch; gradients are averaged.

    mean = average(wire, [dW, db], examples=len(x))     # the same on every rank, as if it had seen them all

Why that is right: the loss of a batch is the mean of its examples' losses, and a derivative of a sum is the
sum of the derivatives. So ranks' gradients are averaged with the number of their examples as weights.

Source: Goyal et al., "Accurate, large minibatch SGD: training ImageNet in 1 hour" (2017), section 2 for the
learning rate, section 3 for what goes wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from course_lib.arguments import number, whole
from course_lib.distributed.collectives import ring_all_reduce
from course_lib.distributed.wire import Array, Wire


def average(wire: Wire, gradients: Sequence[Array], examples: int) -> list[Array]:
    """Return the gradients of the mean over all ranks' examples: the same arrays on every rank.

    `gradients` are those of the mean over this rank's own `examples`, which may be 0. All ranks' have the
    same shapes and dtype. One ring all-reduce of all of them, and of one number more: of n bytes a rank sends
    2 n (P − 1) / P. Raises ValueError where no rank has an example.
    """
    whole("examples", examples, least=0)
    whole("the number of gradients", len(gradients))
    weighted = [
        examples * one.reshape(-1) if examples else np.zeros(one.size, one.dtype) for one in gradients
    ]
    counted = np.array([examples], gradients[0].dtype)
    total = ring_all_reduce(wire, np.concatenate([*weighted, counted]))
    if not total[-1]:
        raise ValueError("No rank has an example: there is nothing to average.")
    return unpacked(total[:-1] / total[-1], gradients)


def unpacked(flat: Array, like: Sequence[Array]) -> list[Array]:
    """Return one long array as arrays of these shapes."""
    edges = np.cumsum([one.size for one in like])[:-1]
    return [part.reshape(one.shape) for part, one in zip(np.split(flat, edges), like, strict=True)]


def scaled_rate(base: float, batch: int, base_batch: int = 32, step: int = 0, warm_up: int = 0) -> float:
    """Return the learning rate of a step with a larger batch: in proportion to it, after `warm_up` steps.

    A step with k times as many examples stands for k small ones, while the weights hardly change in between;
    in the first steps they do, so the rate grows from `base`. Linear scaling and gradual warm-up: Goyal et
    al. (2017), sections 2.1 and 2.2.
    """
    whole("batch", batch)
    whole("step", step, least=0)
    full = number("base", base, above=0) * batch / whole("base_batch", base_batch)
    return full if step >= warm_up else base + (full - base) * step / warm_up


def first_not_finite(wire: Wire, names: Sequence[str], gradients: Sequence[Array]) -> str | None:
    """Return "NAME on rank R" of the first gradient that has a NaN or an infinity, the same on every rank.

    None if all are finite. Asked before the average, which spreads one rank's NaN to all. A number from each
    rank, by a ring: 16 (P − 1) bytes.
    """
    at = next(
        (n for n, (_, one) in enumerate(zip(names, gradients, strict=True)) if not np.isfinite(one).all()),
        len(names),
    )
    ranks = np.zeros(wire.size)
    ranks[wire.rank] = at
    found = ring_all_reduce(wire, ranks)
    worst = int(found.argmin())
    return None if found[worst] == len(names) else f"{names[int(found[worst])]} on rank {worst}"
