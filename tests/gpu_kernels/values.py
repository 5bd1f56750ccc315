"""Kernels whose counts are known: what a tracer must find for them, number by number.

Totals over the whole launch; each is derived in the kernel's docstring (counted/). The rules: a request is
one access of the source by one warp with at least one active lane; sectors and wavefronts are counted over
its active lanes; a store or atomic counts as a load does. `WIDE` holds what a tracer may count otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import gcd

import numpy as np

from gpu_kernels.arguments import floats, normal, of_product, product, whole, with_output, zeros
from gpu_kernels.case import Case, marked_lines
from gpu_kernels.counted import divergence, global_memory, shared_memory


@dataclass(frozen=True)
class Count:
    """What the accesses of one kind to one array add up to, on one line (marked `# COUNT`) of the kernel."""

    array: str
    kind: str
    requests: int
    #: Active lanes, added up over the requests.
    lanes: int
    #: 32-byte sectors, of a global array.
    sectors: int | None = None
    #: Wavefronts, of a shared array.
    wavefronts: int | None = None
    #: How often an atomic's busiest address was taken, added up over the requests.
    rounds: int | None = None
    #: Which of the kernel's marked lines.
    mark: int = 0


@dataclass(frozen=True, kw_only=True)
class Counted(Case):
    """A right kernel with known counts, and with the warps that its branch (marked `# BRANCH`) divides."""

    counts: tuple[Count, ...]
    #: Warps that come to the branch, and warps of which some lanes go one way and some the other.
    branch_warps: int = 0
    divergent_warps: int = 0

    def line_of(self, count: Count) -> int:
        """Return the line of the count in the kernel's file."""
        return marked_lines(self.kernel, "COUNT")[count.mark]

    @property
    def branch_line(self) -> int:
        """The line of the branch."""
        return marked_lines(self.kernel, "BRANCH")[0]


def counted(name: str, kernel, griddim, blockdim) -> Callable[..., Counted]:
    """Return what makes a counted case of this launch from (make_args, reference, counts=...)."""
    return partial(Counted, name, kernel, griddim, blockdim)


def row_case(dtype, sectors: int) -> Counted:
    """128 elements by four warps, `sectors` a request."""
    return counted(f"row of {np.dtype(dtype)}", global_memory.row, 2, 64)(
        with_output(lambda seed: (whole(seed, 128, 0, 100, dtype),), 128, dtype),
        lambda x, out: x,
        counts=tuple(
            Count(array, kind, 4, 128, 4 * sectors) for array, kind in (("x", "load"), ("out", "store"))
        ),
    )


def read_case(name: str, kernel, size, extra: tuple, sectors: int, answer) -> Counted:
    """64 elements of float32 read by two warps in some pattern, `sectors` a request, and written in a row."""
    return counted(name, kernel, 1, 64)(
        lambda seed: (*floats(seed, size), *extra, np.zeros(64, np.float32)),
        lambda x, *rest: {len(rest): answer(x)},
        counts=(Count("x", "load", 2, 64, 2 * sectors), Count("out", "store", 2, 64, 8)),
    )


def matmul_case(name: str, kernel, grid, block, a: int, b: int, c: int) -> Counted:
    """A 32 x 8 by an 8 x 32 matrix; sectors a request of A, B and C."""
    return counted(name, kernel, grid, block)(
        product(32, 8, 32),
        of_product,
        counts=(
            Count("A", "load", 256, 8192, 256 * a),
            Count("B", "load", 256, 8192, 256 * b),
            Count("C", "store", 32, 1024, 32 * c, mark=1),
        ),
    )


def bins_case(bins: int, sectors: int) -> Counted:
    """Three warps count modulo `bins`."""
    return counted(f"atomics on {bins} addresses", global_memory.count_modulo, 3, 32)(
        lambda seed: (bins, np.zeros(bins, np.int32)),
        lambda bins, counts: np.full(bins, 96 // bins),
        counts=(Count("counts", "atomic", 3, 96, 3 * sectors, rounds=3 * 32 // bins),),
    )


def bank_case(stride: int) -> Counted:
    """Two warps read shared memory with a stride."""
    return counted(f"shared memory, stride {stride}", shared_memory.strided, 1, 64)(
        lambda seed: (stride, np.zeros(64, np.float32)),
        lambda stride, out: stride * (np.arange(64) % 32),
        counts=(Count("kept", "load", 2, 64, wavefronts=2 * (gcd(stride, 32) if stride else 1)),),
    )


def tile_case(name: str, kernel, wavefronts: int) -> Counted:
    """32 warps write a tile's rows and read its columns, `wavefronts` for a column."""
    return counted(name, kernel, 1, (32, 32))(
        normal((32, 32), out=(32, 32)),
        lambda x, out: x.T,
        counts=(
            Count("tile", "store", 32, 1024, wavefronts=32),
            Count("tile", "load", 32, 1024, wavefronts=32 * wavefronts, mark=1),
            Count("x", "load", 32, 1024, 128),
            Count("out", "store", 32, 1024, 128, mark=1),
        ),
    )


def short_row_case(name: str, kernel, dtype, wavefronts: int) -> Counted:
    """One warp turns 32 elements round through shared memory."""
    return counted(name, kernel, 1, 32)(
        with_output(lambda seed: (whole(seed, 32, 0, 100, dtype),), 32, dtype),
        lambda x, out: x[::-1],
        counts=(
            Count("kept", "store", 1, 32, wavefronts=wavefronts),
            Count("kept", "load", 1, 32, wavefronts=wavefronts, mark=1),
        ),
    )


GLOBAL = (
    row_case(np.float32, 4),
    row_case(np.float64, 8),
    row_case(np.int16, 2),
    row_case(np.uint8, 1),
    read_case("row from its end", global_memory.reversed_row, 64, (), 4, lambda x: x[::-1]),
    read_case("one element for all", global_memory.one_element, 64, (), 1, lambda x: np.full(64, x[0])),
    read_case("every second element", global_memory.strided, 128, (2,), 8, lambda x: x[::2]),
    read_case("every fourth element", global_memory.strided, 256, (4,), 16, lambda x: x[::4]),
    read_case("every eighth element", global_memory.strided, 512, (8,), 32, lambda x: x[::8]),
    read_case("row shifted by one", global_memory.shifted, 65, (1,), 5, lambda x: x[1:]),
    read_case("row shifted by a sector", global_memory.shifted, 72, (8,), 4, lambda x: x[8:]),
    read_case("column of a wide matrix", global_memory.first_column, (64, 64), (), 32, lambda x: x[:, 0]),
    counted("warps of two rows", global_memory.rows_of_16, (4, 1), (16, 16))(
        normal((16, 64), out=(16, 64)),
        lambda x, out: x,
        counts=(Count("x", "load", 32, 1024, 128), Count("out", "store", 32, 1024, 128)),
    ),
    counted("last warp partly masked", global_memory.guarded, 1, 64)(
        normal(40, out=40),
        lambda x, out: x,
        counts=(Count("x", "load", 2, 40, 5, mark=0), Count("out", "store", 2, 40, 5)),
        branch_warps=2,
        divergent_warps=1,
    ),
    counted("last warp partly filled", global_memory.guarded, 1, 40)(
        normal(40, out=40),
        lambda x, out: x,
        counts=(Count("x", "load", 2, 40, 5), Count("out", "store", 2, 40, 5)),
        branch_warps=2,
        divergent_warps=0,  # the 24 lanes that are not there go neither way
    ),
    matmul_case("matmul, a warp a row of C", global_memory.in_order_matmul, (1, 8), (32, 4), 1, 4, 4),
    matmul_case(
        "matmul, a warp a column of C", global_memory.out_of_order_matmul, (1, 8), (32, 4), 32, 1, 32
    ),
    bins_case(1, 1),
    bins_case(4, 1),
    bins_case(32, 4),
)

SHARED = (
    *(bank_case(stride) for stride in (0, 1, 2, 3, 4, 8, 32, 33)),
    tile_case("transpose of a tile", shared_memory.transpose, 32),
    tile_case("transpose of a padded tile", shared_memory.padded_transpose, 1),
    short_row_case("bytes in shared memory", shared_memory.bytes_in_a_row, np.uint8, 1),
    counted("step of a 16 x 16 tiled matmul", shared_memory.tile_step, 1, (16, 16))(
        product(16, 16, 16),
        of_product,
        counts=(
            Count("a", "store", 8, 256, wavefronts=8),
            Count("b", "store", 8, 256, wavefronts=8, mark=1),
            Count("a", "load", 128, 4096, wavefronts=128, mark=2),
            Count("b", "load", 128, 4096, wavefronts=128, mark=2),
        ),
    ),
)

DIVERGENCE = (
    counted("half of each warp", divergence.by_lane, 2, 64)(
        zeros(128, np.int32),
        lambda out: np.tile(np.repeat([1, 2], 16), 4),
        counts=(Count("out", "store", 4, 64, 8), Count("out", "store", 4, 64, 8, mark=1)),
        branch_warps=4,
        divergent_warps=4,
    ),
    counted("every second warp", divergence.by_warp, 2, 64)(
        zeros(128, np.int32),
        lambda out: np.tile(np.repeat([1, 2], 32), 2),
        counts=(Count("out", "store", 2, 64, 8), Count("out", "store", 2, 64, 8, mark=1)),
        branch_warps=4,
        divergent_warps=0,
    ),
    counted("loops of falling length", divergence.triangle, 1, 64)(
        lambda seed: (whole(seed, 31, 0, 9), np.zeros(64, np.int32)),
        lambda x, out: np.tile(np.concatenate([[0], np.cumsum(x)]), 2),
        counts=(Count("x", "load", 62, 992, 62),),
    ),
)

CASES: tuple[Counted, ...] = GLOBAL + SHARED + DIVERGENCE

#: float64 in shared memory: 256 bytes need 32 banks of 4 bytes twice, so 2 although nothing collides.
WIDE: tuple[Counted, ...] = (
    short_row_case("doubles in shared memory", shared_memory.doubles_in_a_row, np.float64, 2),
)
