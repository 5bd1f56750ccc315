"""A model in stages, one on each rank, and a batch in micro-batches: who does what in which order.

    order = one_forward_one_backward(stages=4, micro=8)  # order[stage] = [("F", 0), ("F", 1), …, ("B", 7)]
    times = timeline(order)                              # when each begins; ValueError where all would wait
    times.bubble                                         # share of the time that stages do nothing

Every stage idles while the first micro-batch comes to it, and while the last derivative goes back. With m
micro-batches on p stages (p − 1) / (m + p − 1) of the time is lost, in either order; what 1F1B saves is
memory: a stage keeps the activations of at most p micro-batches, not of all m.

Sources: Huang et al., "GPipe" (2019); Narayanan et al., "PipeDream" (2019), and "Efficient large-scale
language model training on GPU clusters using Megatron-LM" (2021), section 2.2, for 1F1B with a flush.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from course_lib.arguments import whole
from course_lib.distributed.wire import Array, Wire
from course_lib.training.overlap import TimeSpan

Task = tuple[str, int]  # "F" or "B", and which micro-batch
Order = list[list[Task]]  # for each stage what it does, one after the other
SECONDS = {"F": 1.0, "B": 2.0}  # of a task in a timeline


def gpipe(stages: int, micro: int) -> Order:
    """Return the order in which all micro-batches go forward, and then all backward."""
    _check(stages, micro)
    return [[("F", m) for m in range(micro)] + [("B", m) for m in range(micro)] for _ in range(stages)]


def one_forward_one_backward(stages: int, micro: int) -> Order:
    """Return the order in which a stage, as soon as it can, goes backward once for each time forward."""
    _check(stages, micro)
    orders = []
    for stage in range(stages):
        ahead = min(stages - 1 - stage, micro)  # of these the derivative is still on its way
        tasks = [("F", m) for m in range(ahead)]
        for m in range(micro):
            tasks += [("F", m + ahead)] * (m + ahead < micro) + [("B", m)]
        orders.append(tasks)
    return orders


@dataclass(frozen=True)
class PipelineTimes:
    """When each stage does what: its tasks in their order as bars, F0 or B3, as `views.lanes` draws them."""

    rows: dict[str, list[TimeSpan]]

    @property
    def seconds(self) -> float:
        """Until the last stage has ended."""
        return max(bars[-1].end for bars in self.rows.values())

    @property
    def bubble(self) -> float:
        """Share of all stages' time in which they do nothing."""
        busy = sum(bar.end - bar.begin for bars in self.rows.values() for bar in bars)
        return 1 - busy / (len(self.rows) * self.seconds)


def timeline(order: Order) -> PipelineTimes:
    """Return when each task begins and ends; a stage starts its next one as soon as what it needs is there.

    Forward needs the stage before and takes 1 s; backward needs the stage behind and the own forward and
    takes 2 s: two products for one. Sending takes no time. Raises ValueError where stages wait for each
    other, or do anything not exactly once.
    """
    whole("the number of stages", len(order))
    _check_complete(order)
    ended: dict[tuple[int, str, int], float] = {}
    rows: list[list[TimeSpan]] = [[] for _ in order]
    while any(len(bars) < len(tasks) for bars, tasks in zip(rows, order, strict=True)):
        before = len(ended)
        for stage, (bars, tasks) in enumerate(zip(rows, order, strict=True)):
            for kind, m in tasks[len(bars) :]:
                needs = _needs(stage, kind, m, len(order))
                if any(one not in ended for one in needs):
                    break
                begin = max([ended[one] for one in needs] + [bar.end for bar in bars[-1:]], default=0.0)
                bars.append(TimeSpan(f"{kind}{m}", begin, begin + SECONDS[kind]))
                ended[stage, kind, m] = bars[-1].end
        if len(ended) == before:
            raise ValueError(f"Nobody can go on: {_waiting(order, rows, ended)}.")
    return PipelineTimes({f"stage {stage}": bars for stage, bars in enumerate(rows)})


def most_kept(order: Order) -> list[int]:
    """Return for each stage of how many micro-batches it keeps the activations at most."""
    return [int(np.cumsum([1 if kind == "F" else -1 for kind, _ in tasks]).max(initial=0)) for tasks in order]


def train_step(
    wire: Wire,
    tasks: Sequence[Task],
    stage: Callable[[Any], Any],
    inputs: Sequence[Array],
    loss: Callable[[Any, int], Any],
    like: tuple[tuple[int, ...], tuple[int, ...]],
) -> list[float]:
    """Play this rank's part of a step: its parameters' ``.grad`` hold the sum over all micro-batches.

    Args:
        tasks: this rank's row of an order.
        stage: this rank's part of the model, from tensor to tensor.
        inputs: the micro-batches, of which the first rank takes its inputs.
        loss: (output, micro-batch) -> a number; the last rank's.
        like: shapes of what comes in from the rank before, and goes out to the one behind.

    Returns the losses, on the last rank. Sends do not wait: in 1F1B two neighbours send at the same time.
    """
    import torch

    first, last = wire.rank == 0, wire.rank == wire.size - 1
    kept, sends, losses = {}, [], []
    for kind, m in tasks:
        if kind == "F":
            x = inputs[m] if first else wire.receive(np.empty(like[0], np.float32), wire.rank - 1)
            x = torch.from_numpy(x).requires_grad_(not first)
            y = loss(stage(x), m) if last else stage(x)
            kept[m] = x, y
            if last:
                losses.append(float(y.detach()))
            else:
                sends.append(wire.start_send(y.detach().numpy(), wire.rank + 1))
            continue
        x, y = kept.pop(m)
        y.backward(
            None if last else torch.from_numpy(wire.receive(np.empty(like[1], np.float32), wire.rank + 1))
        )
        if not first:
            sends.append(wire.start_send(x.grad.numpy(), wire.rank - 1))
    for sent in sends:
        sent()
    return losses


def _needs(stage: int, kind: str, m: int, stages: int) -> list[tuple[int, str, int]]:
    """Return what has to have ended before this task."""
    if kind == "F":
        return [(stage - 1, "F", m)] if stage else []
    return [(stage, "F", m), *([(stage + 1, "B", m)] if stage < stages - 1 else [])]


def _waiting(order: Order, rows: list[list[TimeSpan]], ended: dict) -> str:
    """Say for each stage that is not through what it waits for."""
    said = []
    for stage, (bars, tasks) in enumerate(zip(rows, order, strict=True)):
        if len(bars) < len(tasks):
            kind, m = tasks[len(bars)]
            of, needed, n = next(one for one in _needs(stage, kind, m, len(order)) if one not in ended)
            said.append(f"stage {stage} at {kind}{m} waits for {needed}{n} of stage {of}")
    return "; ".join(said)


def _check_complete(order: Order) -> None:
    micro = len(order[0]) // 2
    wanted = sorted((kind, m) for kind in "BF" for m in range(micro))
    for stage, tasks in enumerate(order):
        if sorted(tasks) != wanted:
            raise ValueError(
                f"Stage {stage} has {len(tasks)} tasks, but must have F and B once of each of {micro} "
                "micro-batches."
            )


def _check(stages: int, micro: int) -> None:
    whole("stages", stages, most=1024)
    whole("micro", micro, most=4096)
