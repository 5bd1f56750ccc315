"""What one warp does, step by step: the picture that a time slider shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

WARP = 32
MOST_STEPS = 5_000


@dataclass(frozen=True)
class Step:
    """One memory instruction of a warp, or a barrier.

    `kind` is 'load', 'store', 'atomic' or 'barrier'. `places` holds, for each of the 32 lanes, the element
    number counted from the start of the array's memory (of the block's, in shared memory), None for a lane
    that takes no part; times `item_bytes` it is the address. `cost` is sectors in global and wavefronts in
    shared memory. `shape` and `strides` (in elements) are those of the array, which begins at `offset`.
    """

    line: int
    kind: str
    array: str = ""
    space: str = ""
    item_bytes: int = 0
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    offset: int = 0
    places: tuple[int | None, ...] = ()
    cost: int = 0


class Recorder:
    """Keeps the steps of one warp of one block; `is_cut` says that there were more than are kept."""

    def __init__(self, block: int, warp: int) -> None:
        self.block, self.warp = block, warp
        self.steps: list[Step] = []
        self.is_cut = False

    def lanes_of(self, block_number: np.ndarray, block_lanes: int) -> slice | None:
        """Return where the warp's lanes are among these, None if its block is not run here."""
        first = int(np.searchsorted(block_number[::block_lanes], self.block)) * block_lanes
        if first >= len(block_number) or block_number[first] != self.block:
            return None
        return slice(first + self.warp * WARP, first + (self.warp + 1) * WARP)

    def keep(self, step: Step) -> None:
        """Keep a step if there is room."""
        if len(self.steps) < MOST_STEPS:
            self.steps.append(step)
        else:
            self.is_cut = True
