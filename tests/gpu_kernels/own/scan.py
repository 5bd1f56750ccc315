"""Prefix sums of a block: Hillis and Steele with two buffers and with two barriers, Blelloch, shuffles."""

from numba import cuda, int32

WARP = 32
EVERY_LANE = 0xFFFFFFFF
THREADS = 64
ELEMENTS = 2 * THREADS
WARPS = THREADS // WARP


@cuda.jit
def double_buffered_scan(x, out):
    """Inclusive sums after Hillis & Steele (1986): read one buffer, write the other, one barrier a step."""
    kept = cuda.shared.array((2, THREADS), dtype=int32)
    tid = cuda.threadIdx.x
    i = cuda.grid(1)
    now = 0
    kept[now, tid] = x[i] if i < x.size else 0
    cuda.syncthreads()
    distance = 1
    while distance < THREADS:
        if tid >= distance:
            kept[1 - now, tid] = kept[now, tid] + kept[now, tid - distance]
        else:
            kept[1 - now, tid] = kept[now, tid]
        now = 1 - now
        cuda.syncthreads()
        distance *= 2
    if i < x.size:
        out[i] = kept[now, tid]


@cuda.jit
def two_barrier_scan(x, out):
    """Inclusive sums in one buffer: all have read before one writes, all have written before one reads."""
    kept = cuda.shared.array(THREADS, dtype=int32)
    tid = cuda.threadIdx.x
    i = cuda.grid(1)
    kept[tid] = x[i] if i < x.size else 0
    cuda.syncthreads()
    distance = 1
    while distance < THREADS:
        carried = 0
        if tid >= distance:
            carried = kept[tid - distance]
        cuda.syncthreads()
        kept[tid] += carried
        cuda.syncthreads()
        distance *= 2
    if i < x.size:
        out[i] = kept[tid]


@cuda.jit
def work_efficient_scan(x, out):
    """Exclusive sums of 2 THREADS elements a block after Blelloch (1990): up the tree, then down."""
    kept = cuda.shared.array(ELEMENTS, dtype=int32)
    tid = cuda.threadIdx.x
    first = cuda.blockIdx.x * ELEMENTS
    for k in range(tid, ELEMENTS, THREADS):
        kept[k] = 0
        if first + k < x.size:
            kept[k] = x[first + k]
    offset = 1
    pairs = THREADS
    while pairs > 0:
        cuda.syncthreads()
        if tid < pairs:
            kept[offset * (2 * tid + 2) - 1] += kept[offset * (2 * tid + 1) - 1]
        offset *= 2
        pairs //= 2
    if tid == 0:
        kept[ELEMENTS - 1] = 0
    pairs = 1
    while pairs <= THREADS:
        offset //= 2
        cuda.syncthreads()
        if tid < pairs:
            left = offset * (2 * tid + 1) - 1
            right = offset * (2 * tid + 2) - 1
            moved = kept[left]
            kept[left] = kept[right]
            kept[right] += moved
        pairs *= 2
    cuda.syncthreads()
    for k in range(tid, ELEMENTS, THREADS):
        if first + k < x.size:
            out[first + k] = kept[k]


@cuda.jit(device=True)
def warp_scan(value, lane):
    """Return the sum of the values of this lane and the lanes below it."""
    distance = 1
    while distance < WARP:
        below = cuda.shfl_up_sync(EVERY_LANE, value, distance)
        if lane >= distance:
            value += below
        distance *= 2
    return value


@cuda.jit
def shuffled_scan(x, out):
    """Inclusive sums: each warp by shuffles, then the warps' totals by the first warp, then both added."""
    totals = cuda.shared.array(WARPS, dtype=int32)
    tid = cuda.threadIdx.x
    lane = tid % WARP
    warp = tid // WARP
    i = cuda.grid(1)
    value = int32(0)
    if i < x.size:
        value = x[i]
    value = warp_scan(value, lane)
    if lane == WARP - 1:
        totals[warp] = value
    cuda.syncthreads()
    if warp == 0:
        total = int32(0)
        if lane < WARPS:
            total = totals[lane]
        total = warp_scan(total, lane)
        if lane < WARPS:
            totals[lane] = total
    cuda.syncthreads()
    if warp > 0:
        value += totals[warp - 1]
    if i < x.size:
        out[i] = value
