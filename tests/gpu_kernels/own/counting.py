"""Histograms and compactions: atomics in global and shared memory, with and without their old value."""

from numba import cuda, int32

WARP = 32
EVERY_LANE = 0xFFFFFFFF
BINS = 16


@cuda.jit
def global_histogram(x, counts):
    """counts[v] += how often v occurs in x, every count straight into global memory."""
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        cuda.atomic.add(counts, x[i], 1)


@cuda.jit
def shared_histogram(x, counts):
    """As global_histogram, counted in shared memory first: clear, barrier, count, barrier, add up."""
    kept = cuda.shared.array(BINS, dtype=int32)
    tid = cuda.threadIdx.x
    for b in range(tid, BINS, cuda.blockDim.x):
        kept[b] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        cuda.atomic.add(kept, x[i], 1)
    cuda.syncthreads()
    for b in range(tid, BINS, cuda.blockDim.x):
        cuda.atomic.add(counts, b, kept[b])


@cuda.jit
def compact(x, count, out):
    """Append the positive elements to out: the atomic's old value is the place, another for each thread."""
    i = cuda.grid(1)
    if i < x.size and x[i] > 0:
        place = cuda.atomic.add(count, 0, 1)
        out[place] = x[i]


@cuda.jit
def ballot_compact(x, count, out):
    """As compact, with one atomic a warp: a ballot counts the lanes below, a shuffle spreads the place."""
    lane = cuda.threadIdx.x % WARP
    i = cuda.grid(1)
    keep = False
    if i < x.size:
        keep = x[i] > 0
    ballot = cuda.ballot_sync(EVERY_LANE, keep)
    place = 0
    if lane == 0:
        place = cuda.atomic.add(count, 0, cuda.popc(ballot))
    place = cuda.shfl_sync(EVERY_LANE, place, 0)
    if keep:
        out[place + cuda.popc(ballot & ((1 << lane) - 1))] = x[i]


@cuda.jit
def largest_by_atomics(x, largest):
    """largest[0] = maximum of x: a maximum a block first, then one atomic a block."""
    kept = cuda.shared.array(1, dtype=int32)
    tid = cuda.threadIdx.x
    i = cuda.grid(1)
    if tid == 0:
        kept[0] = x[0]
    cuda.syncthreads()
    if i < x.size:
        cuda.atomic.max(kept, 0, x[i])
    cuda.syncthreads()
    if tid == 0:
        cuda.atomic.max(largest, 0, kept[0])
