"""Tile shapes of the GPU rungs, and how the fastest of a few is found: by timing them on the learner's GPU.

Which tile is best depends on the GPU and on the size: large tiles use each number more often, small ones
give more blocks, and a small matrix has too few blocks to fill the GPU. So a rung has a short list of
shapes; for each class of sizes all of them are timed once and the answer is kept with the learner's other
results.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from course_lib.measure.store import Store

if TYPE_CHECKING:
    from course_lib.circles.cuda_launch import DeviceArray

SMALLEST, LARGEST = 64, 8192  # classes of sizes are powers of two between these
WARP = 32
MOST_THREADS = 1024  # in a block, on every NVIDIA GPU


@dataclass(frozen=True)
class CudaTile:
    """What a block and a thread compute: BM x BN and TM x TN elements of C, in steps of BK along k.

    `blocks` that should fit on a multiprocessor at once: the compiler limits the registers accordingly.
    Raises ValueError for a shape whose parts do not divide each other.
    """

    BM: int
    BN: int
    BK: int
    TM: int = 1
    TN: int = 1
    blocks: int = 1

    def __post_init__(self) -> None:
        whole = self.BM % self.TM == 0 and self.BN % self.TN == 0
        fetches = (self.BM * self.BK, self.BK * self.BN)
        if not whole or any(size % self.threads for size in fetches):
            raise ValueError(f"{self} does not divide evenly: choose powers of two with TM <= BM, TN <= BN.")
        if self.threads % WARP or self.threads > MOST_THREADS:
            raise ValueError(
                f"{self} has {self.threads} threads, but a block has up to {MOST_THREADS} in whole warps of "
                f"{WARP}: change TM or TN."
            )

    @property
    def threads(self) -> int:
        """Threads in a block."""
        return self.BM * self.BN // (self.TM * self.TN)

    def __str__(self) -> str:
        return f"{self.BM}x{self.BN}x{self.BK}, {self.TM}x{self.TN} a thread"


Start = Callable[..., None]  # start(A, B, C, tile)
_known: dict[str, CudaTile] = {}


def fastest(
    rung: str, tiles: Sequence[CudaTile], start: Start, A: DeviceArray, B: DeviceArray, C: DeviceArray
) -> CudaTile:
    """Return the tile of `tiles` with which `start` was fastest for matrices of about this size on this GPU.

    The first time for a class of sizes all are tried, on these operands (C is written); after that the answer
    comes from memory or from the learner's files. Raises RuntimeError if none of them runs.
    """
    (M, K), N = A.shape, B.shape[1]
    key = _key(rung, tiles, (M, K, N), start)
    if key not in _known:
        store = Store("cuda-tiles")
        saved = _restore(store.read().get(key), tiles)
        if saved is None:
            times = _times(rung, tiles, start, A, B, C)
            saved = min(times, key=times.__getitem__)
            entry = {"tile": asdict(saved), "seconds": {str(tile): times[tile] for tile in times}}
            store.update(lambda values: values.update({key: entry}))
        _known[key] = saved
    return _known[key]


def size_class(shape: tuple[int, int, int]) -> tuple[int, ...]:
    """Return M, K, N rounded up to powers of two between SMALLEST and LARGEST."""
    return tuple(min(max(SMALLEST, 2 ** math.ceil(math.log2(size))), LARGEST) for size in shape)


def _key(rung: str, tiles: Sequence[CudaTile], shape: tuple[int, int, int], start: Start) -> str:
    import torch

    M, K, N = size_class(shape)
    return f"{torch.cuda.get_device_name()}|{rung}|{M}x{K}x{N}|{_compiler_and_text(tuple(tiles), start)}"


@functools.cache  # asked at every launch, which takes a few microseconds in all
def _compiler_and_text(tiles: tuple[CudaTile, ...], start: Start) -> str:
    """Return what the answer depends on besides GPU and size: compiler, tiles, and the rung's own file."""
    import numba.cuda

    compiler = getattr(numba.cuda, "__version__", numba.__version__)
    text = repr(tiles) + inspect.getsource(inspect.getmodule(start) or start)
    return f"numba-cuda {compiler}|{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _restore(saved: Any, tiles: Sequence[CudaTile]) -> CudaTile | None:
    """Return the saved tile if it is still one of the list."""
    try:
        tile = CudaTile(**saved["tile"])
    except (TypeError, KeyError, ValueError):
        return None
    return tile if tile in tiles else None


def _times(
    rung: str, tiles: Sequence[CudaTile], start: Start, A: DeviceArray, B: DeviceArray, C: DeviceArray
) -> dict[CudaTile, float]:
    """Return the seconds that one product takes with each tile that this GPU can run."""
    from course_lib.circles.cuda_launch import DoesNotFit
    from course_lib.measure.gpu_timing import samples
    from course_lib.measure.progress import Progress

    able: dict[str, CudaTile] = {}
    with Progress(None) as bar:
        for place, tile in enumerate(tiles):
            bar.update(place / len(tiles), f"{rung}: compiling {tile}")
            with contextlib.suppress(DoesNotFit):  # more registers than this GPU has for a block
                start(A, B, C, tile)
                able[str(tile)] = tile
    if not able:
        raise RuntimeError(
            f"None of the {len(tiles)} tile shapes of '{rung}' fits on this GPU: give it a smaller CudaTile."
        )
    functions = {name: (lambda tile=tile: start(A, B, C, tile)) for name, tile in able.items()}
    return {able[name]: min(taken.seconds) for name, taken in samples(functions, rounds=3).items()}
