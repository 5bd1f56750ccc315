"""Training that goes on after a rank was lost: checkpoints from which the rest comes out bit by bit the same.

    kept = Checkpoints(folder, every=10)
    state = kept.latest() or start                     # a dictionary of arrays and numbers
    for step in range(state["step"], steps):
        …
        kept.keep({"step": step + 1, "w": w, …})       # written whole or not at all, by rank 0

Bit by bit needs all that the next step depends on: weights, the optimiser's states, the number of the step,
and what deals out the examples (here: batches follow from the step's number, so no generator has a past).
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np

from course_lib import whole_files
from course_lib.arguments import whole
from course_lib.distributed.wire import Array

State = dict[str, Array | float | int]


class Checkpoints:
    """The last two states in a folder that all ranks see; older ones go."""

    def __init__(self, folder: Path | str, every: int) -> None:
        self.folder, self.every = Path(folder), whole("every", every)

    def keep(self, state: State) -> bool:
        """Write a state whose "step" is a multiple of `every`, and say whether it was."""
        if state["step"] % self.every:
            return False
        content = io.BytesIO()
        np.savez(content, **state)
        whole_files.write(self.folder / f"{state['step']:09}.npz", content.getvalue(), lasting=True)
        for old in sorted(self.folder.glob("*.npz"))[:-2]:
            old.unlink()
        return True

    def latest(self) -> State | None:
        """Return the newest state, None if there is none. Raises ValueError for a file that is none."""
        found = sorted(self.folder.glob("*.npz"))
        if not found:
            return None
        try:
            with np.load(found[-1]) as file:
                return {name: value.item() if value.ndim == 0 else value for name, value in file.items()}
        except (OSError, ValueError, EOFError, zipfile.BadZipFile) as problem:
            raise ValueError(f"{found[-1].name} is no checkpoint ({problem}): delete it.") from None


def batch_of(step: int, examples: int, size: int, seed: int = 0) -> Array:
    """Return the indices of a step's batch, (size,): the same whenever and wherever it is asked for.

    An epoch takes examples // size steps, in a new order of the examples each.
    """
    epoch, place = divmod(step, whole("examples", examples) // whole("size", size, most=examples))
    return np.random.default_rng((seed, epoch)).permutation(examples)[place * size :][:size]
