"""Packed panels and a register-tiled vector micro-kernel: the fourth circle's best, on one core.

Adds to `unrolled`: the numbers are first laid out in the order in which they will be used (packing), and a
tile of C stays in vector registers for `KC` steps. The structure is that of GotoBLAS and BLIS (Goto and van
de Geijn, "Anatomy of high-performance matrix multiplication", ACM TOMS 34(3), 2008; Van Zee and van de Geijn,
"BLIS", ACM TOMS 41(3), 2015): five loops around a micro-kernel.

    5  columns of B and C in blocks of NC              packed block of B, KC x NC:  half of the L2 cache
    4    depth in blocks of KC                         (pack the block of B into panels of NR columns)
    3      rows of A and C in bands                    one band here; circle 5 gives every core its own
    2        slivers of MR rows of A                   sliver of A, MR x KC:        the L2 cache as well
    1          panels of NR columns of B               tile of C, MR x NR:          registers
    0            micro-kernel: KC rank-1 updates of the tile

                  NR                      The tile is MR = 6 rows of one `Row` each: 4 registers where the CPU
              +--------+                  has 32 of them (AVX-512, NEON), 2 where it has 16 (AVX2, SSE2). For
              | panel  | KC               each k a row of the panel is loaded once and used 6 times, a number
              +--------+                  of A is broadcast once and used NR times: 24 FMAs for 10 loads.
       KC
    +------+  +--------+                  BLIS also packs A. Here the rows of A are read along k, which is how
    |sliver|  | tile   | MR = 6           they lie in memory. Panels stream through L1, and so do slivers
    +------+  +--------+                  where a panel fills it: both are asked for ahead (prefetch).
"""

from __future__ import annotations

import os
import threading

import numpy as np

from course_lib.circles.front_door import Array
from course_lib.circles.memory import aligned, operands
from course_lib.circles.vectors import add, broadcast, fma, lanes, load, prefetch, prefetch_row, store, zero
from course_lib.measure import hardware
from course_lib.measure.jit import compiled, inlined

#: Vector bits of the tile. The variable is for experiments with narrow tiles; their code is not kept on disk.
FORCED_BITS = os.environ.get("COURSE_LIB_SIMD_BITS") or None
if FORCED_BITS not in (None, "128", "256", "512"):
    raise ValueError(f"COURSE_LIB_SIMD_BITS is {FORCED_BITS!r}, not 128, 256 or 512: set one of them.")
BITS = int(FORCED_BITS or max(128, hardware.simd()[1]))
REGISTERS = 32 if BITS == 512 or hardware.simd()[0] == "NEON" else 16
L2_BYTES = next((cache.size_bytes for cache in hardware.caches() if cache.level == 2), 2**19)

MR = 6
ROW_BYTES = (4 if REGISTERS == 32 else 2) * BITS // 8  # NR = ROW_BYTES / itemsize
KC = 512 if L2_BYTES >= 2**20 else 256
BLOCK_BYTES = min(max(L2_BYTES // 2, KC * ROW_BYTES), 2**22)  # KC x NC numbers of B
ROWS_AHEAD = 16  # of a panel that are asked for before they are needed

kernel = compiled(cache=not FORCED_BITS)


@inlined
def add_products(tile, depth, A, a, lda, B, b, ahead):
    """Return the MR rows of a tile plus the sliver A[a] times the panel B[b]: `depth` rank-1 updates.

    A sliver is MR rows of `depth` numbers with row stride lda, a panel `depth` rows of NR. A[ahead:] will be
    needed next. Both arrays are flat.
    """
    width = lanes(B, ROW_BYTES)  # NR
    c0, c1, c2, c3, c4, c5 = tile
    for k in range(depth):
        prefetch(A, ahead + k)
        prefetch_row(B, b + (k + ROWS_AHEAD) * width, ROW_BYTES)  # from L2, or from the next panel
        row = load(B, b + k * width, ROW_BYTES)
        c0 = fma(broadcast(A, a + k, row), row, c0)
        c1 = fma(broadcast(A, a + lda + k, row), row, c1)
        c2 = fma(broadcast(A, a + 2 * lda + k, row), row, c2)
        c3 = fma(broadcast(A, a + 3 * lda + k, row), row, c3)
        c4 = fma(broadcast(A, a + 4 * lda + k, row), row, c4)
        c5 = fma(broadcast(A, a + 5 * lda + k, row), row, c5)
    return c0, c1, c2, c3, c4, c5


@inlined
def empty_tile(B):
    """Return MR rows of zeros."""
    nothing = zero(B, ROW_BYTES)
    return nothing, nothing, nothing, nothing, nothing, nothing


@kernel
def micro_kernel(depth, A, a, lda, B, b, C, c, ldc, accumulate, ahead):
    """Set (or add to) C[c], an MR x NR tile with row stride ldc, the sliver A[a] times the panel B[b]."""
    c0, c1, c2, c3, c4, c5 = add_products(empty_tile(B), depth, A, a, lda, B, b, ahead)
    if accumulate:
        c0 = add(load(C, c, ROW_BYTES), c0)
        c1 = add(load(C, c + ldc, ROW_BYTES), c1)
        c2 = add(load(C, c + 2 * ldc, ROW_BYTES), c2)
        c3 = add(load(C, c + 3 * ldc, ROW_BYTES), c3)
        c4 = add(load(C, c + 4 * ldc, ROW_BYTES), c4)
        c5 = add(load(C, c + 5 * ldc, ROW_BYTES), c5)
    store(C, c, c0)
    store(C, c + ldc, c1)
    store(C, c + 2 * ldc, c2)
    store(C, c + 3 * ldc, c3)
    store(C, c + 4 * ldc, c4)
    store(C, c + 5 * ldc, c5)


@kernel
def edge_tile(rows, columns, depth, A, a, lda, B, b, C, c, ldc, accumulate, spare):
    """Do the micro-kernel's work where fewer than MR rows or NR columns are left: in spare memory.

    A vector written past the end of C would destroy what lies there. `spare` holds MR * (KC + NR) numbers.
    The missing rows are zeros: whatever else lay there could be denormal, and arithmetic on those is many
    times slower.
    """
    width = lanes(B, ROW_BYTES)
    tile = MR * KC  # where the tile begins in the spare memory
    if rows < MR:
        spare[rows * KC : tile] = 0
        for i in range(rows):
            spare[i * KC : i * KC + depth] = A[a + i * lda : a + i * lda + depth]
        micro_kernel(depth, spare, 0, KC, B, b, spare, tile, width, False, 0)
    else:
        micro_kernel(depth, A, a, lda, B, b, spare, tile, width, False, a)
    for i in range(rows):
        ours, theirs = spare[tile + i * width :][:columns], C[c + i * ldc :][:columns]
        for j in range(columns):
            theirs[j] = ours[j] + theirs[j] if accumulate else ours[j]


@kernel
def pack(B, b, ldb, depth, columns, block):
    """Copy B[b], depth x columns with row stride ldb, into panels of depth x NR, the last filled with zeros.

    Each row of B is read from end to end and dealt out to the panels: pages of memory are changed less often
    than if the panels were filled one after the other.
    """
    width = lanes(B, ROW_BYTES)
    whole = columns // width * width
    for k in range(depth):
        for j in range(0, whole, width):
            store(block, j * depth + k * width, load(B, b + k * ldb + j, ROW_BYTES))
    if whole < columns:
        last, rest = block[whole * depth :], columns - whole
        last[: depth * width] = 0
        for k in range(depth):
            last[k * width : k * width + rest] = B[b + k * ldb + whole : b + k * ldb + columns]


@kernel
def multiply_band(A, a, lda, rows, depth, block, C, c, ldc, columns, accumulate, spare):
    """Set (or add to) C[c], rows x columns, the band A[a], rows x depth, times a packed block of panels."""
    width = lanes(A, ROW_BYTES)
    for i in range(0, rows, MR):  # loop 2: slivers
        left = min(MR, rows - i)
        for j in range(0, columns, width):  # loop 1: panels
            sliver, tile, panel = a + i * lda, c + i * ldc + j, j * depth
            if left == MR and columns - j >= width:
                row = min(MR, j // width)  # while this tile is computed, one row of the next sliver comes in
                ahead = sliver + (MR + row) * lda
                micro_kernel(depth, A, sliver, lda, block, panel, C, tile, ldc, accumulate, ahead)
            else:
                right = min(width, columns - j)
                edge_tile(left, right, depth, A, sliver, lda, block, panel, C, tile, ldc, accumulate, spare)


@kernel
def multiply(A, B, C, M, K, N, memory):
    """Set C (M, N) to A (M, K) times B (K, N), all flat; `memory` as from `working_memory`."""
    width = lanes(A, ROW_BYTES)
    spare, block = memory[: MR * (KC + width)], memory[MR * (KC + width) :]
    depths = -(-K // KC)  # blocks of equal size: a last one of a few rows would cost as much as a full one
    panels = -(-N // width)
    blocks = -(-panels * width * KC * A.itemsize // BLOCK_BYTES)
    for n in range(blocks):  # loop 5: columns
        j = panels * n // blocks * width
        columns = min(panels * (n + 1) // blocks * width, N) - j
        for d in range(depths):  # loop 4: depth
            k = K * d // depths
            depth = K * (d + 1) // depths - k
            pack(B, k * N + j, N, depth, columns, block)
            multiply_band(A, k, K, M, depth, block, C, j, N, columns, d > 0, spare)  # loop 3: one band


_own = threading.local()
WORKING_BYTES = MR * (8 * KC + ROW_BYTES) + BLOCK_BYTES + KC * ROW_BYTES


def working_memory(dtype: np.dtype) -> Array:
    """Return this thread's memory for spare tiles and a block (fresh pages would cost more than packing)."""
    if not hasattr(_own, "memory"):
        _own.memory = aligned(WORKING_BYTES, np.dtype(np.uint8))
    return _own.memory.view(dtype)


def matmul(A: Array, B: Array) -> Array:
    """Return A @ B (M, N) for A (M, K), B (K, N), both float32 or both float64; on one core."""
    A, B = operands(A, B)
    (M, K), N = A.shape, B.shape[1]
    if not (M and K and N):
        return np.zeros((M, N), A.dtype)
    C = np.empty((M, N), A.dtype)
    multiply(A.reshape(-1), B.reshape(-1), C.reshape(-1), M, K, N, working_memory(A.dtype))
    return C
