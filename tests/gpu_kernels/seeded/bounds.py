"""Indices outside of their array."""

from numba import cuda, float32

TILE = 8
THREADS = 32
RADIUS = 2
ONE_SIDE = THREADS + RADIUS


@cuda.jit
def load_without_guard(x, out):
    """The guard comes after the load."""
    i = cuda.grid(1)
    value = x[i]  # HAZARD
    if i < out.size:
        out[i] = 2 * value


@cuda.jit
def store_without_guard(x, out):
    """The last block has more threads than elements."""
    i = cuda.grid(1)
    out[i] = 2 * x[i % x.size]  # HAZARD


@cuda.jit
def neighbour_past_the_end(x, out):
    """The guard lets the last element ask for the one after it (index -1, before the first, is legal)."""
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i + 1] - x[i - 1]  # HAZARD


@cuda.jit
def indices_swapped(x, out):
    """A transposition that forgets to swap the indices of the output, which is not square."""
    col, row = cuda.grid(2)
    if row < x.shape[0] and col < x.shape[1]:
        out[row, col] = x[row, col]  # HAZARD


@cuda.jit
def rows_run_over(A, B, C):
    """A column past the end of a row: inside the allocation, and wrong all the same (it is the next row)."""
    a = cuda.shared.array((TILE, TILE), dtype=float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    col, row = cuda.grid(2)
    total = float32(0)
    for start in range(0, A.shape[1], TILE):
        a[ty, tx] = A[row, start + tx]  # HAZARD
        cuda.syncthreads()
        for k in range(min(TILE, A.shape[1] - start)):
            total += a[ty, k] * B[start + k, col]
        cuda.syncthreads()
    C[row, col] = total


@cuda.jit
def shared_array_too_small(x, out):
    """Half as many words as threads."""
    kept = cuda.shared.array(THREADS, dtype=float32)
    tid = cuda.threadIdx.x
    kept[tid] = x[tid]  # HAZARD
    cuda.syncthreads()
    out[tid] = kept[cuda.blockDim.x - 1 - tid]  # PARTNER


@cuda.jit
def halo_of_one_side(x, taps, out):
    """Room for the halo of one side only."""
    kept = cuda.shared.array(ONE_SIDE, dtype=float32)
    tid = cuda.threadIdx.x
    first = cuda.blockIdx.x * THREADS - RADIUS
    for k in range(tid, THREADS + 2 * RADIUS, THREADS):
        value = float32(0)
        if first + k >= 0 and first + k < x.size:
            value = x[first + k]
        kept[k] = value  # HAZARD
    cuda.syncthreads()
    total = float32(0)
    for k in range(2 * RADIUS + 1):
        total += taps[k] * kept[tid + k]  # PARTNER
    out[cuda.grid(1)] = total


@cuda.jit
def launched_with_too_few_bytes(x, out):
    """Right, when the launch gives four bytes a thread."""
    kept = cuda.shared.array(0, dtype=float32)
    tid = cuda.threadIdx.x
    kept[tid] = x[tid]  # HAZARD
    cuda.syncthreads()
    out[tid] = kept[cuda.blockDim.x - 1 - tid]  # PARTNER


@cuda.jit
def bin_past_the_last(x, counts):
    """A value that has no bin."""
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(counts, x[i], 1)  # HAZARD


@cuda.jit
def local_array_too_small(x, out):
    """Four places for five elements."""
    kept = cuda.local.array(4, dtype=float32)
    i = cuda.grid(1)
    for j in range(x.shape[1]):
        kept[j] = x[i, j]  # HAZARD
    for j in range(4):
        out[i, j] = kept[3 - j]
