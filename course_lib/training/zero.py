"""ZeRO: what every rank of data parallel training keeps twice over is cut into shards.

    step = ShardedAdam(wire, parameters)
    step(gradients)                                    # reduce-scatter, Adam on a P-th, all-gather
    kept(1e9, ranks=64, stage=3)                       # bytes of parameters, gradients and states on a rank

Stage 1 shards the optimiser's states, stage 2 the gradients, too, stage 3 the parameters. An all-reduce is a
reduce-scatter and an all-gather; between the two a rank needs to update only its own P-th. So stages 1 and 2
send no byte more than the all-reduce did; stage 3 gathers the parameters once more for each pass: 1.5 times.

Source: Rajbhandari, Rasley, Ruwase, He, "ZeRO: memory optimizations toward training trillion parameter
models" (2020), sections 5 and 7; Kingma and Ba, "Adam" (2015), algorithm 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from course_lib.arguments import number, whole
from course_lib.distributed.collectives import cut, ring_all_gather, ring_reduce_scatter
from course_lib.distributed.wire import Array, Wire
from course_lib.training.data_parallel import unpacked


@dataclass(frozen=True)
class RankMemory:
    """Bytes that a rank keeps at the end of backward; activations are not among them."""

    parameters: float
    gradients: float
    states: float

    @property
    def total(self) -> float:
        """All three."""
        return self.parameters + self.gradients + self.states


def kept(parameters: float, ranks: int, stage: int, mixed: bool = False) -> RankMemory:
    """Return the bytes of a rank for a model of so many parameters, trained with Adam.

    In float32 4 bytes for a parameter, 4 for its gradient, 8 for Adam's two means. `mixed`: 2 and 2 in half
    precision, and 12 for states, a float32 copy of the parameter among them.
    """
    number("parameters", parameters, above=0)
    whole("ranks", ranks)
    whole("stage", stage, least=0, most=3)
    each = (2, 2, 12) if mixed else (4, 4, 8)
    shards = (stage >= 3, stage >= 2, stage >= 1)
    return RankMemory(
        *(parameters * of / (ranks if cut_ else 1) for of, cut_ in zip(each, shards, strict=True))
    )


class ShardedAdam:
    """Adam in which a rank has the states of its own P-th of all parameters (stage 2, by hand)."""

    def __init__(self, wire: Wire, parameters: Sequence[Array], rate: float = 1e-3) -> None:
        self.wire, self.parameters, self.rate = wire, list(parameters), rate
        mine = cut(self._flat(self.parameters), wire.size)[wire.rank]
        self.mean, self.square, self.steps = np.zeros_like(mine), np.zeros_like(mine), 0

    def __call__(self, gradients: Sequence[Array]) -> None:
        """Update the parameters, in place, by the mean of all ranks' gradients."""
        wire = self.wire
        mine = ring_reduce_scatter(wire, cut(self._flat(gradients), wire.size)) / wire.size
        self.steps += 1
        self.mean += 0.1 * (mine - self.mean)
        self.square += 0.001 * (mine**2 - self.square)
        blocks = cut(self._flat(self.parameters), wire.size)
        ahead = self.mean / (1 - 0.9**self.steps)
        blocks[wire.rank] = blocks[wire.rank] - self.rate * ahead / (
            np.sqrt(self.square / (1 - 0.999**self.steps)) + 1e-8
        )
        for old, new in zip(
            self.parameters,
            unpacked(np.concatenate(ring_all_gather(wire, blocks)), self.parameters),
            strict=True,
        ):
            old[...] = new

    @staticmethod
    def _flat(arrays: Sequence[Array]) -> Array:
        return np.concatenate([one.reshape(-1) for one in arrays])


def measured(stage: int, width: int = 256, layers: int = 4) -> RankMemory:
    """Return the bytes that torch keeps on this rank after a step, for `launch.run`: DDP or FSDP2.

    Stage 0 is DDP, stage 3 FSDP2 (`fully_shard`), both with Adam in float32. Torch shards the states alone
    (1) by whole parameters, and keeps no gradients sharded beside whole parameters (2): ValueError.
    """
    import torch
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import DTensor, init_device_mesh

    if stage not in (0, 3):
        raise ValueError(f"stage is {stage}, but what torch keeps is stage 0 (DDP) or 3 (FSDP2).")
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Linear(width, width) for _ in range(layers)))
    play: torch.nn.Module = model
    if stage:
        mesh = init_device_mesh("cpu", (torch.distributed.get_world_size(),))
        for layer in model:
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
    else:
        play = torch.nn.parallel.DistributedDataParallel(
            model, gradient_as_bucket_view=True
        )  # no second copy
    adam = torch.optim.Adam(model.parameters())
    play(torch.randn(8, width)).square().mean().backward()
    adam.step()

    def own(tensors) -> int:
        return sum((one.to_local() if isinstance(one, DTensor) else one).nbytes for one in tensors)

    states = [one for each in adam.state.values() for one in each.values() if one.numel() > 1]
    return RankMemory(own(model.parameters()), own(one.grad for one in model.parameters()), own(states))
