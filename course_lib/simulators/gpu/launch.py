"""The door of the tracer: launch a kernel on the CPU and record what it does."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from course_lib.arguments import is_whole
from course_lib.measure.progress import Progress
from course_lib.simulators.gpu import numbers
from course_lib.simulators.gpu.arrays import DeviceArray, Storage, global_array, storages
from course_lib.simulators.gpu.counting import WARP
from course_lib.simulators.gpu.lanes import coordinates
from course_lib.simulators.gpu.machine import LaneMachine
from course_lib.simulators.gpu.occupancy import MOST_ALONG, MOST_THREADS
from course_lib.simulators.gpu.result import Trace, TracedLaunch
from course_lib.simulators.gpu.rewrite import LockstepProgram
from course_lib.simulators.gpu.source import NotTraceable
from course_lib.simulators.gpu.tally import KernelTally, Recorder

BATCH_LANES = 16_384  # wide enough that Python's overhead is small, small enough for the L2 cache
LARGEST_GRID = (2**31 - 1, 65535, 65535)

Dimensions = int | Sequence[int]


def trace(
    kernel: Any,
    griddim: Dimensions,
    blockdim: Dimensions,
    *args: Any,
    blocks: int | Sequence[Any] | None = None,
    shared_bytes: int = 0,
    races: bool = True,
    record: tuple[Any, int] | None = None,
    copies: bool = False,
    progress: bool | None = None,
) -> Trace:
    """Run `kernel[griddim, blockdim](*args)` on the CPU; return what its memory accesses would cost.

    The kernel is one for `@cuda.jit`; no GPU and no driver is touched. NumPy arguments are changed in place
    as the kernel would change them. `blocks` chooses the blocks that are run: None for all, a number for that
    many, spread evenly over the grid, or a list of their indices (numbers or (x, y, z)). `shared_bytes` is
    the dynamic shared memory of a block. `races` False leaves out the comparison of accesses between threads.
    `record` names a warp, (block, warp), whose steps are kept one by one in `Trace.steps`. `copies` runs the
    kernel on copies of the arrays, which lie in memory as they do.
    Raises NotTraceable, with the place in the source, for what cannot run in lockstep.
    """
    grid = _dimensions("griddim", griddim, LARGEST_GRID)
    block = _dimensions("blockdim", blockdim, MOST_ALONG)
    threads = math.prod(block)
    if threads > MOST_THREADS:
        raise ValueError(f"blockdim is {block}, {threads} threads, but a block has at most {MOST_THREADS}.")
    if not is_whole(shared_bytes) or shared_bytes < 0:
        raise ValueError(f"shared_bytes is {shared_bytes!r}, but it must be a number of bytes, 0 or more.")
    chosen = _chosen_blocks(blocks, grid)
    try:
        program = LockstepProgram(kernel)
        arguments, memory = _arguments(program, args, copies)
        if races:
            _watch(program, arguments, memory)
        recorder = _recorder(record, grid, threads, chosen)
        tally = KernelTally()
        slots = max(1, BATCH_LANES // (-(-threads // WARP) * WARP))
        with Progress(progress) as bar, np.errstate(all="ignore"):
            for first in range(0, len(chosen), slots):
                bar.update(first / len(chosen), f"{program.source.name}: block {first:,} of {len(chosen):,}")
                where = tally, program.source.file, grid, block, chosen[first : first + slots]
                most, tally.shared_bytes = tally.shared_bytes, 0
                program.start(LaneMachine(*where, recorder=recorder, dynamic_bytes=shared_bytes), arguments)
                tally.shared_bytes = max(most, tally.shared_bytes)
    except NotTraceable as refusal:  # said from here, not from thirty calls further down
        raise NotTraceable(refusal.sentence, refusal.file, refusal.line) from None
    source = program.source
    launch = TracedLaunch(source.name, source.file, grid, block, len(chosen), math.prod(grid))
    lines, first = inspect.getsourcelines(source.function)
    text = {first + number: line.rstrip("\n") for number, line in enumerate(lines)}
    return Trace(launch, tally, text, recorder)


def _recorder(record: Any, grid: tuple, threads: int, chosen: np.ndarray) -> Recorder | None:
    if record is None:
        return None
    try:
        block, warp = record
    except (TypeError, ValueError):
        raise ValueError(f"record is {record!r}, but it must be a pair (block, warp).") from None
    number, warps = _block_number(block, grid), -(-threads // WARP)
    if not is_whole(warp) or not 0 <= warp < warps:
        raise ValueError(f"record names warp {warp!r}, but a block has warps 0 to {warps - 1} here.")
    if number not in chosen:
        raise ValueError(f"record names block {block!r}, which is not among the blocks that are run.")
    return Recorder(number, warp)


def _dimensions(name: str, given: Any, largest: tuple[int, int, int]) -> tuple[int, int, int]:
    sizes = tuple(given) if isinstance(given, Sequence) else (given,)
    limited = zip(sizes, largest, strict=False)
    if not 1 <= len(sizes) <= 3 or not all(is_whole(size) and 1 <= size <= most for size, most in limited):
        raise ValueError(
            f"{name} is {given!r}, but it must be one to three whole numbers from 1 to "
            f"{', '.join(map(str, largest))}."
        )
    return (*(int(size) for size in sizes), 1, 1)[:3]


def _chosen_blocks(blocks: Any, grid: tuple[int, int, int]) -> np.ndarray:
    """Return the numbers of the blocks to run."""
    total = math.prod(grid)
    if blocks is None:
        return np.arange(total)
    if is_whole(blocks):
        if blocks < 1:
            raise ValueError(f"blocks is {blocks}, but at least one block must be run.")
        return np.unique(np.linspace(0, total - 1, min(int(blocks), total)).astype(np.int64))
    chosen = [_block_number(block, grid) for block in blocks]
    if not chosen:
        raise ValueError("blocks is empty, but at least one block must be run.")
    return np.unique(np.array(chosen, np.int64))


def _block_number(block: Any, grid: tuple[int, int, int]) -> int:
    place = (*block, 0, 0)[:3] if isinstance(block, Sequence) else coordinates(int(block), grid)
    if not all(0 <= at < size for at, size in zip(place, grid, strict=True)):
        raise ValueError(f"blocks names {block!r}, which is outside of the grid {grid}.")
    return place[0] + grid[0] * (place[1] + grid[1] * place[2])


def _arguments(program: LockstepProgram, args: tuple, copies: bool) -> tuple[list[Any], list[Storage]]:
    source = program.source
    if len(args) != len(source.parameters):
        wanted = ", ".join(source.parameters)
        raise TypeError(
            f"{source.name} takes {len(source.parameters)} arguments ({wanted}), but {len(args)} were given."
        )
    numbered = [_as_array(value) for value in args]
    memory = storages(_arrays_in(numbered))
    for storage in memory if copies else ():
        storage.memory = storage.memory.copy()
    pairs = zip(source.parameters, numbered, strict=True)
    return [_argument(name, value, memory) for name, value in pairs], memory


def _as_array(value: Any) -> Any:
    """Return what gives its memory to NumPy as an array, anything else as it is; in tuples as well."""
    if isinstance(value, tuple):
        return tuple(map(_as_array, value))
    gives = hasattr(value, "__array_interface__") and not isinstance(value, np.ndarray | np.generic)
    return np.asarray(value) if gives or type(value).__module__.startswith("torch") else value


def _arrays_in(value: Any) -> Iterator[Any]:
    """Yield the arrays of both kinds, NumPy's and the kernel's, that arguments consist of."""
    if isinstance(value, np.ndarray | DeviceArray):
        yield value
    elif isinstance(value, tuple | list):
        for part in value:
            yield from _arrays_in(part)


def _argument(name: str, value: Any, memory: list[Storage]) -> Any:
    if isinstance(value, bool | int | float | complex | np.number | np.bool_):
        return numbers.scalar(value)
    if isinstance(value, tuple):
        return tuple(_argument(f"{name}[{i}]", part, memory) for i, part in enumerate(value))
    if isinstance(value, np.ndarray):
        return global_array(name, value, memory)
    raise TypeError(
        f"{name} is a {type(value).__name__}, but a traced kernel takes NumPy arrays, numbers and tuples."
    )


def _watch(program: LockstepProgram, arguments: list[Any], memory: list[Storage]) -> None:
    """Have the arrays watched for races that the kernel may write; what is only read cannot race."""
    for storage in memory:
        used: set[str] = set()
        for name, argument in zip(program.source.parameters, arguments, strict=True):
            if any(part.storage is storage for part in _arrays_in(argument)):
                used |= program.uses[name]
        if used & {"store", "atomic"}:
            storage.watch(is_loaded="load" in used, has_atomics="atomic" in used)
