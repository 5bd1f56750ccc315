"""Faults in the use of shared memory: a barrier too few, a word that nobody wrote."""

import math

from numba import cuda, float32, int32

TILE = 8
TWO_TILES = 2 * TILE
THREADS = 64
WITH_HALO = THREADS + 2
WARP = 32
BINS = 16


@cuda.jit
def matmul_without_first_barrier(A, B, C):
    """Nobody waits until the tiles are filled."""
    a = cuda.shared.array((TILE, TILE), dtype=float32)
    b = cuda.shared.array((TILE, TILE), dtype=float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    col, row = cuda.grid(2)
    total = float32(0)
    for start in range(0, A.shape[1], TILE):
        a[ty, tx] = A[row, start + tx]  # PARTNER
        b[ty, tx] = B[start + ty, col]  # PARTNER
        for k in range(TILE):
            total += a[ty, k] * b[k, tx]  # HAZARD
        cuda.syncthreads()
    C[row, col] = total


@cuda.jit
def matmul_without_second_barrier(A, B, C):
    """The next tiles are written while others still read the last ones."""
    a = cuda.shared.array((TILE, TILE), dtype=float32)
    b = cuda.shared.array((TILE, TILE), dtype=float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    col, row = cuda.grid(2)
    total = float32(0)
    for start in range(0, A.shape[1], TILE):
        a[ty, tx] = A[row, start + tx]  # HAZARD
        b[ty, tx] = B[start + ty, col]  # PARTNER
        cuda.syncthreads()
        for k in range(TILE):
            total += a[ty, k] * b[k, tx]  # PARTNER
    C[row, col] = total


@cuda.jit
def half_a_tile(A, B, C):
    """64 elements of each tile are fetched where 128 are used: a loop over the rest is missing."""
    a = cuda.shared.array((TILE, TWO_TILES), dtype=float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    col, row = cuda.grid(2)
    total = float32(0)
    for start in range(0, A.shape[1], TWO_TILES):
        a[ty, tx] = A[row, start + tx]
        cuda.syncthreads()
        for k in range(TWO_TILES):
            total += a[ty, k] * B[start + k, col]  # HAZARD
        cuda.syncthreads()
    C[row, col] = total


@cuda.jit
def neighbours_without_barrier(x, out):
    """The neighbours' elements are read before one knows that they are there."""
    kept = cuda.shared.array(WITH_HALO, dtype=float32)
    tid = cuda.threadIdx.x
    kept[tid + 1] = x[tid]  # PARTNER
    if tid == 0:
        kept[0] = 0  # PARTNER
        kept[THREADS + 1] = 0  # PARTNER
    out[tid] = kept[tid] + kept[tid + 2]  # HAZARD


@cuda.jit
def halo_by_one_thread(x, out):
    """The halo is filled after the barrier, by another thread than the one that reads its right end."""
    kept = cuda.shared.array(WITH_HALO, dtype=float32)
    tid = cuda.threadIdx.x
    kept[tid + 1] = x[tid]
    cuda.syncthreads()
    if tid == 0:
        kept[0] = x[THREADS - 1]
        kept[THREADS + 1] = x[0]  # PARTNER
    out[tid] = kept[tid] + kept[tid + 2]  # HAZARD


@cuda.jit
def halo_too_late(x, out):
    """The halo is filled after it has been read."""
    kept = cuda.shared.array(WITH_HALO, dtype=float32)
    tid = cuda.threadIdx.x
    kept[tid + 1] = x[tid]
    cuda.syncthreads()
    out[tid] = kept[tid] + kept[tid + 2]  # HAZARD
    cuda.syncthreads()
    if tid == 0:
        kept[0] = x[THREADS - 1]
        kept[THREADS + 1] = x[0]


@cuda.jit
def sums_without_zeros(x, sums):
    """Threads past the end leave their word as it was, and it is added up all the same."""
    kept = cuda.shared.array(THREADS, dtype=float32)
    tid = cuda.threadIdx.x
    i = cuda.grid(1)
    if i < x.size:
        kept[tid] = x[i]
    cuda.syncthreads()
    stride = cuda.blockDim.x // 2
    while stride > 0:
        if tid < stride:
            kept[tid] += kept[tid + stride]  # HAZARD
        cuda.syncthreads()
        stride //= 2
    if tid == 0:
        sums[cuda.blockIdx.x] = kept[0]


@cuda.jit
def sums_without_barrier(x, sums):
    """The barrier of the reduction's loop is missing."""
    kept = cuda.shared.array(THREADS, dtype=float32)
    tid = cuda.threadIdx.x
    kept[tid] = x[cuda.grid(1)]
    cuda.syncthreads()
    stride = cuda.blockDim.x // 2
    while stride > 0:
        if tid < stride:
            kept[tid] += kept[tid + stride]  # HAZARD
        stride //= 2
    if tid == 0:
        sums[cuda.blockIdx.x] = kept[0]


@cuda.jit
def sums_without_syncwarp(x, sums):
    """A warp's last steps rely on its lanes going together, which they need not since Volta."""
    kept = cuda.shared.array(THREADS, dtype=float32)
    tid = cuda.threadIdx.x
    kept[tid] = x[cuda.grid(1)]
    cuda.syncthreads()
    if tid < WARP:
        stride = WARP
        while stride > 0:
            if tid < stride:
                kept[tid] += kept[tid + stride]  # HAZARD
            stride //= 2
    if tid == 0:
        sums[cuda.blockIdx.x] = kept[0]


@cuda.jit
def syncwarp_of_too_few(x, sums):
    """The mask names the readers, not the lanes that wrote what they read."""
    kept = cuda.shared.array(WARP, dtype=float32)
    lane = cuda.threadIdx.x
    kept[lane] = x[lane]  # PARTNER
    if lane < 16:
        cuda.syncwarp(0xFFFF)
        sums[lane] = kept[lane] + kept[lane + 16]  # HAZARD


@cuda.jit
def scan_in_place(x, out):
    """One buffer and one barrier a step: a word is read by one thread while another adds to it."""
    kept = cuda.shared.array(THREADS, dtype=int32)
    tid = cuda.threadIdx.x
    kept[tid] = x[tid]
    cuda.syncthreads()
    distance = 1
    while distance < THREADS:
        if tid >= distance:
            kept[tid] += kept[tid - distance]  # HAZARD
        cuda.syncthreads()
        distance *= 2
    out[tid] = kept[tid]


@cuda.jit
def transpose_over_itself(x):
    """The tile is written in the statement that reads it, by other threads."""
    tile = cuda.shared.array((TILE, TILE), dtype=float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    tile[ty, tx] = x[ty, tx]
    cuda.syncthreads()
    tile[ty, tx] = tile[tx, ty]  # HAZARD
    cuda.syncthreads()
    x[ty, tx] = tile[ty, tx]


@cuda.jit
def softmax_buffer_used_again(x, out):
    """The buffer of the maximum is written again while others have not read the maximum yet."""
    kept = cuda.shared.array(THREADS, dtype=float32)
    row = cuda.blockIdx.x
    tid = cuda.threadIdx.x
    kept[tid] = x[row, tid]
    cuda.syncthreads()
    stride = THREADS // 2
    while stride > 0:
        if tid < stride:
            kept[tid] = max(kept[tid], kept[tid + stride])
        cuda.syncthreads()
        stride //= 2
    largest = kept[0]  # PARTNER
    kept[tid] = math.exp(x[row, tid] - largest)  # HAZARD
    cuda.syncthreads()
    stride = THREADS // 2
    while stride > 0:
        if tid < stride:
            kept[tid] += kept[tid + stride]
        cuda.syncthreads()
        stride //= 2
    out[row, tid] = math.exp(x[row, tid] - largest) / kept[0]


@cuda.jit
def pivot_without_barrier(x, out):
    """One thread fetches what all use, and nobody waits for it."""
    pivot = cuda.shared.array(1, dtype=float32)
    tid = cuda.threadIdx.x
    if tid == 0:
        pivot[0] = x[0]  # PARTNER
    out[tid] = x[tid] - pivot[0]  # HAZARD


@cuda.jit
def shared_histogram_without_atomics(x, counts):
    """Two threads that meet in one bin count once."""
    kept = cuda.shared.array(BINS, dtype=int32)
    tid = cuda.threadIdx.x
    if tid < BINS:
        kept[tid] = 0
    cuda.syncthreads()
    kept[x[tid]] += 1  # HAZARD
    cuda.syncthreads()
    if tid < BINS:
        counts[tid] = kept[tid]


@cuda.jit
def counting_before_all_is_clear(x, counts):
    """The barrier between clearing and counting is missing: an atomic is no protection from a plain store."""
    kept = cuda.shared.array(BINS, dtype=int32)
    tid = cuda.threadIdx.x
    if tid < BINS:
        kept[tid] = 0  # PARTNER
    cuda.atomic.add(kept, x[tid], 1)  # HAZARD
    cuda.syncthreads()
    if tid < BINS:
        counts[tid] = kept[tid]


@cuda.jit
def reading_before_all_is_counted(x, counts):
    """The barrier between counting and reading is missing."""
    kept = cuda.shared.array(BINS, dtype=int32)
    tid = cuda.threadIdx.x
    if tid < BINS:
        kept[tid] = 0
    cuda.syncthreads()
    cuda.atomic.add(kept, x[tid], 1)  # PARTNER
    if tid < BINS:
        counts[tid] = kept[tid]  # HAZARD


@cuda.jit
def column_sums_without_atomics(x, sums):
    """All rows of the block add to one row of sums, each with a load and a store."""
    kept = cuda.shared.array(TILE, dtype=float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    if ty == 0:
        kept[tx] = 0
    cuda.syncthreads()
    kept[tx] += x[ty, tx]  # HAZARD
    cuda.syncthreads()
    if ty == 0:
        sums[tx] = kept[tx]
