"""Gradients that travel while others are still computed: backward goes from the last layer to the first.

    apart = planned([0.02] * 6, [4e6] * 6, link=50e6)                # seconds and bytes of each layer
    together = planned([0.02] * 6, [4e6] * 6, link=50e6, bucket=4e6) # a bucket goes as soon as it is full
    hidden(apart, together)                                          # share of the shorter that is hidden

What waits for a wire needs no core. So the all-reduce of a layer's gradient can begin while the layers before
it are computed; what cannot be hidden is the first layer's, whose gradient comes last. Small gradients are
collected into buckets: each all-reduce pays its steps' latency.

Source: Li et al., "PyTorch distributed: experiences on accelerating data parallel training" (2020),
section 3.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from course_lib.arguments import number, whole

if TYPE_CHECKING:
    import torch


class TimeSpan(NamedTuple):
    """What was done, and from when to when in seconds."""

    name: str
    begin: float
    end: float


@dataclass(frozen=True)
class BackwardTimes:
    """When a rank computed and when its gradients were under way, in a backward pass with its all-reduces."""

    computes: tuple[TimeSpan, ...]
    wire: tuple[TimeSpan, ...]

    @property
    def seconds(self) -> float:
        """Until the last of both has ended."""
        return max(one.end for one in (*self.computes, *self.wire))

    @property
    def rows(self) -> dict[str, tuple[TimeSpan, ...]]:
        """Both, as `views.lanes` draws them."""
        return {"computes": self.computes, "wire": self.wire}


def hidden(apart: BackwardTimes, together: BackwardTimes) -> float:
    """Return the share of the shorter of computing and sending that the longer one hides: 0 to 1.

    `apart` says how long each takes alone: everything is sent after everything was computed.
    """
    computing, sending = (sum(one.end - one.begin for one in row) for row in (apart.computes, apart.wire))
    return (apart.seconds - together.seconds) / min(computing, sending)


def planned(
    seconds: Sequence[float],
    nbytes: Sequence[float],
    link: float,
    ranks: int = 2,
    alpha: float = 0.0,
    bucket: float | None = None,
) -> BackwardTimes:
    """Return the times by a model: layers one after the other, buckets one after the other on the wire.

    Args:
        seconds: of each layer's backward, in the order of backward: the last layer first.
        nbytes: of each layer's gradients.
        link: bytes a second that a rank sends; a ring all-reduce of n bytes sends 2 n (P − 1) / P.
        alpha: seconds of each of its 2 (P − 1) steps.
        bucket: an all-reduce begins when so many bytes are there; None: when all are.
    """
    number("link", link, above=0)
    whole("ranks", ranks)
    whole("the number of layers", len(seconds))
    number("alpha", alpha, least=0)
    if bucket is not None:
        number("bucket", bucket, above=0)
    now, free, waiting = 0.0, 0.0, 0.0
    computes, wire, names = [], [], []
    for layer, each, size in zip(range(len(seconds), 0, -1), seconds, nbytes, strict=True):
        number("seconds", each, above=0)
        number("nbytes", size, least=0)
        computes.append(TimeSpan(f"{layer}", now, now + each))
        names.append(layer)
        now, waiting = now + each, waiting + size
        if layer == 1 or (bucket and waiting >= bucket):
            begin = max(now, free)
            free = begin + 2 * (ranks - 1) * (alpha + waiting / ranks / link)
            wire.append(TimeSpan(_called(names), begin, free))
            waiting, names = 0.0, []
    return BackwardTimes(tuple(computes), tuple(wire))


def _called(layers: Sequence[int]) -> str:
    """Return what a bucket of these layers is called, the last layer first: "4", "6 to 3"."""
    return f"{layers[0]}" if len(layers) == 1 else f"{layers[0]} to {layers[-1]}"


def backward(
    model: torch.nn.Sequential, loss: Callable[[], torch.Tensor], bucket: float | None = None
) -> BackwardTimes:
    """Go backward in a rank of `launch.run` and average the gradients of all ranks: by the clock.

    `bucket` as in `planned`: an all-reduce of torch begins when so many bytes of gradients are there, and
    backward goes on; None: one all-reduce after all. The gradients are the ranks' means afterwards.
    """
    import torch
    import torch.distributed as dist

    trained = ([one for one in layer.parameters() if one.requires_grad] for layer in model)
    owned = dict(enumerate(filter(None, trained), 1))  # number of a layer -> its parameters
    whole("the number of layers with parameters", len(owned))
    left = {layer: len(parameters) for layer, parameters in owned.items()}  # gradients that have not come
    computes, wire, works, full, names = [], [], [], [], []

    def now() -> float:
        return time.perf_counter() - start

    def send() -> None:
        grads, began, name = [one.grad for one in full], now(), _called(names)
        flat = torch.cat([one.reshape(-1) for one in grads])
        work = dist.all_reduce(flat, async_op=True)
        at = len(wire)
        wire.append(TimeSpan(name, began, began))
        work.get_future().add_done_callback(lambda _: wire.__setitem__(at, TimeSpan(name, began, now())))
        works.append((work, flat, grads))
        full.clear()
        names.clear()

    def arrived(_, layer: int) -> None:
        left[layer] -= 1
        if left[layer]:
            return
        full.extend(owned[layer])
        names.append(layer)
        computes.append(TimeSpan(f"{layer}", computes[-1].end if computes else 0.0, now()))
        if bucket and sum(one.grad.nbytes for one in full) >= bucket:
            send()

    handles = [
        one.register_post_accumulate_grad_hook(partial(arrived, layer=layer))
        for layer, parameters in owned.items()
        for one in parameters
    ]
    try:
        value = loss()
        dist.barrier()
        start = time.perf_counter()
        value.backward()
    finally:
        for handle in handles:
            handle.remove()
    if short := [layer for layer, count in left.items() if count]:
        raise ValueError(f"Layer {short[0]} got no gradient: all layers with parameters must be in the loss.")
    if full:
        send()
    for work, flat, grads in works:
        work.wait()
        flat /= dist.get_world_size()
        for grad, mean in zip(grads, flat.split([one.numel() for one in grads]), strict=True):
            grad.copy_(mean.view_as(grad))
    return BackwardTimes(tuple(computes), tuple(wire))
