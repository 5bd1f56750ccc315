"""Address traces of the course's loop nests: every access to A, B and C, in the order a program makes them.

    trace = traces.loops("ikj", 512, 512, 512)    # or blocked(512, 512, 512, block=64), packed(…), simd(…)
    simulate(trace, levels_of(machine.caches())).table()

The nests compute C += A @ B, A (M, K), B (K, N), C (M, N), all row-major. One access is one number. The
element that the innermost loop does not move stands in a register, as in the machine code of a compiled nest:

    innermost j (ikj, kij)   load A;  for each j:  load B, load C, store C
    innermost i (jki, kji)   load B;  for each i:  load A, load C, store C
    innermost k (ijk, jik)   load C;  for each k:  load A, load B;         store C

(Numba's ijk and jik also store C at every k, because C might overlap A or B. Those accesses all hit.)

`in_registers=False` gives the statement as it is written: for each step load A, load B, load C, store C.
Vector code makes one access for a whole vector: fewer accesses, but to the same lines in the same order. So
compare misses per operation, not per access. Setting C to zero beforehand is not in a trace.

A trace is made piece by piece while it is read, so its length costs no memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from course_lib.arguments import is_whole, refusal, whole
from course_lib.simulators import emit_panels
from course_lib.simulators.placement import PAGE, Matrix, place, spans

ORDERS = ("ijk", "ikj", "jik", "jki", "kij", "kji")
CHUNK = 1 << 17  # accesses made at a time: their 1 MiB stays in the cache between the maker and the reader
LONGEST_STORED = 1 << 28  # accesses; 2.25 GiB with their writes

Chunk = tuple[np.ndarray, np.ndarray]  # addresses (uint64), writes (bool)


@dataclass(frozen=True)
class AddressTrace:
    """The accesses of one program: `len(trace)` of them, read through `chunks()` as often as one likes."""

    name: str
    matrices: Mapping[str, Matrix]
    flops: int  # floating-point operations of the program: 2 M K N for a product
    accesses: int
    _make: Callable[[], Iterator[Chunk]]

    def chunks(self) -> Iterator[Chunk]:
        """Yield (addresses, writes) piece by piece: uint64 byte addresses, and True for each that writes."""
        return self._make()

    @property
    def arrays(self) -> dict[str, tuple[int, int]]:
        """Where each matrix lies: (address of its first byte, bytes)."""
        return spans(self.matrices)

    @property
    def addresses(self) -> np.ndarray:
        """All addresses in one array; raises ValueError for more than 2^28 (then use `chunks`)."""
        return self._stored(0, np.uint64)

    @property
    def writes(self) -> np.ndarray:
        """One bool for each address, True for a write."""
        return self._stored(1, np.bool_)

    def _stored(self, part: int, dtype: type) -> np.ndarray:
        if self.accesses > LONGEST_STORED:
            raise ValueError(
                f"{self.name} makes {self.accesses:,} accesses, too many to store: read them with chunks()."
            )
        pieces = [chunk[part] for chunk in self.chunks()]
        return np.concatenate(pieces) if pieces else np.empty(0, dtype)

    def __len__(self) -> int:
        return self.accesses

    def __repr__(self) -> str:
        return f"Trace of {self.name}: {self.accesses:,} accesses, {self.flops:,} operations"


def loops(
    order: str,
    M: int,
    K: int,
    N: int,
    itemsize: int = 8,
    *,
    matrices: Mapping[str, Matrix] | None = None,
    in_registers: bool = True,
) -> AddressTrace:
    """Return the trace of the three loops nested in `order` ("ikj" runs j innermost).

    matrices: where A, B and C lie; None: `placement.place(M, K, N, itemsize)`.
    in_registers: see the module's text. Raises ValueError for an order that is not one of the six.
    """
    one_block = tuple(max(size, 1) for size in (M, K, N))
    trace = blocked(M, K, N, one_block, itemsize, order=order, matrices=matrices, in_registers=in_registers)
    return replace(trace, name=f"{order}, {_shape(M, K, N)}")


def blocked(
    M: int,
    K: int,
    N: int,
    block: int | tuple[int, int, int],
    itemsize: int = 8,
    *,
    order: str = "ikj",
    matrices: Mapping[str, Matrix] | None = None,
    in_registers: bool = True,
) -> AddressTrace:
    """Return the trace of six loops: over blocks in the order ijk, inside a block in `order`.

    block: rows of A (M), columns of A (K), columns of B (N) of one block, or one number for all three. A
    block at the edge is smaller. With one block it is `loops`.
    """
    if order not in ORDERS:
        raise refusal("order", order, f"one of {', '.join(ORDERS)}")
    sides = _checked_block(block, M, K, N)
    where = _checked_matrices(matrices or place(M, K, N, itemsize), M, K, N)
    register = {"j": "A", "i": "B", "k": "C"}[order[-1]] if in_registers else ""
    from course_lib.simulators.emit import nest, nest_accesses  # with it comes Numba

    name = f"blocked {' x '.join(map(str, sides))}, {_shape(M, K, N)}"
    loops = (M, K, N), sides, order, where, register
    accesses = nest_accesses((M, K, N), sides, order[-1], register)
    return AddressTrace(name, where, 2 * M * K * N, accesses, lambda: nest(*loops, CHUNK))


def packed(
    M: int,
    K: int,
    N: int,
    itemsize: int = 8,
    *,
    MC: int,
    KC: int,
    NC: int,
    MR: int,
    NR: int,
    matrices: Mapping[str, Matrix] | None = None,
) -> AddressTrace:
    """Return the trace of the product as BLIS computes it: panels of A and B packed, tiles of C in registers.

    Five loops around the micro-kernel (Van Zee and van de Geijn, ACM TOMS 41(3), 2015): for each NC columns
    of B, for each KC of K, pack KC x NC of B; for each MC rows, pack MC x KC of A; for each NR columns and MR
    rows the micro-kernel: for each k load NR numbers of packed B and MR of packed A; at the end load and
    store each number of the tile of C. Also here an access is one number, whatever the width of a vector.
    The buffers, "packed A" and "packed B" among the trace's arrays, start at pages of their own behind C.
    """
    tiles = emit_panels.Tiles(MC, KC, NC, MR, NR)
    _check_sizes(tiles)
    where = _checked_matrices(matrices or place(M, K, N, itemsize), M, K, N)
    for name, (panels, width) in {
        "packed A": (-(-min(MC, M) // MR), MR),
        "packed B": (-(-min(NC, N) // NR), NR),
    }.items():
        where[name] = _buffer(where, max(panels * min(KC, K), 1), width, PAGE)
    sizes = (M, K, N)
    return AddressTrace(
        f"packed {MC} x {KC} x {NC}, tile {MR} x {NR}, {_shape(M, K, N)}",
        where,
        2 * M * K * N,
        emit_panels.packed_accesses(sizes, tiles),
        lambda: emit_panels.packed(sizes, tiles, where),
    )


def simd(
    M: int,
    K: int,
    N: int,
    itemsize: int = 8,
    *,
    MR: int,
    NR: int,
    KC: int,
    block_bytes: int,
    matrices: Mapping[str, Matrix] | None = None,
) -> AddressTrace:
    """Return the trace of C = A @ B as the rung `simd` computes it: B packed, A read where it lies.

    Blocks of B up to KC deep, and of so many whole panels that `block_bytes` would hold them KC deep, are
    packed; for each MR rows of A and each panel the micro-kernel: for each k load NR numbers of packed B and
    MR of A; at the end store each number of the tile of C, loaded and added to from the second block of the
    depth on. A tile at the edge is computed in the array "spare". Prefetches are not in the trace.
    """
    tiles = emit_panels.Panels(MR, NR, KC, block_bytes)
    _check_sizes(tiles)
    where = _checked_matrices(matrices or place(M, K, N, itemsize), M, K, N)
    sizes, item = (M, K, N), where["C"].itemsize
    rows = [-(-block.columns // NR) * block.depth for block in emit_panels.blocks(sizes, item, tiles)]
    where["spare"] = _buffer(where, MR, KC + NR, PAGE)
    where["packed B"] = _buffer(where, max(rows, default=1), NR, item)  # right behind it
    return AddressTrace(
        f"simd, panels {KC} x {NR}, tile {MR} x {NR}, {_shape(M, K, N)}",
        where,
        2 * M * K * N,
        emit_panels.simd_accesses(sizes, item, tiles),
        lambda: emit_panels.simd(sizes, tiles, where),
    )


def _buffer(where: Mapping[str, Matrix], rows: int, columns: int, align: int) -> Matrix:
    """Return a place behind everything else."""
    free, item = max(start + size for start, size in spans(where).values()), where["C"].itemsize
    return Matrix(-(-free // align) * align, (rows, columns), columns * item, item)


def _check_sizes(tiles: emit_panels.Tiles | emit_panels.Panels) -> None:
    for what, value in tiles._asdict().items():
        whole(what, value)


def _shape(M: int, K: int, N: int) -> str:
    return f"{M} x {K} x {N}"


def _checked_block(block: int | tuple[int, int, int], M: int, K: int, N: int) -> tuple[int, int, int]:
    sides = tuple(block) if isinstance(block, (tuple, list)) else (block, block, block)
    if len(sides) != 3 or not all(map(is_whole, sides)) or min(sides) < 1:
        raise refusal("block", block, "one whole number of at least 1, or three for M, K and N")
    return tuple(min(int(side), max(size, 1)) for side, size in zip(sides, (M, K, N), strict=True))


def _checked_matrices(matrices: Mapping[str, Matrix], M: int, K: int, N: int) -> dict[str, Matrix]:
    for name, shape in {"A": (M, K), "B": (K, N), "C": (M, N)}.items():
        if name not in matrices:
            raise ValueError(f"matrices has {', '.join(matrices) or 'nothing'}, but {name} is missing.")
        if matrices[name].shape != shape:
            raise ValueError(
                f"{name} is placed as {' x '.join(map(str, matrices[name].shape))}, but the trace needs it "
                f"{shape[0]} x {shape[1]}: place it for M, K, N = {M}, {K}, {N}."
            )
    return {name: matrices[name] for name in "ABC"}
