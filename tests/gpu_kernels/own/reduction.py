"""Sums: over a block in shared memory, over a warp by shuffles, over the grid by atomics; softmax of rows."""

import math

from numba import cuda, float32, int32

WARP = 32
EVERY_LANE = 0xFFFFFFFF
MOST_THREADS = 128
MOST_WARPS = MOST_THREADS // WARP


@cuda.jit
def block_sums(x, sums):
    """sums[block] = sum of the block's elements; neighbouring threads stay busy, the stride halves."""
    kept = cuda.shared.array(MOST_THREADS, dtype=float32)
    tid = cuda.threadIdx.x
    i = cuda.grid(1)
    kept[tid] = x[i] if i < x.size else 0
    cuda.syncthreads()
    stride = cuda.blockDim.x // 2
    while stride > 0:
        if tid < stride:
            kept[tid] += kept[tid + stride]
        cuda.syncthreads()
        stride //= 2
    if tid == 0:
        sums[cuda.blockIdx.x] = kept[0]


@cuda.jit
def warp_synchronous_sums(x, sums):
    """As block_sums, but the last 64 elements belong to one warp, which needs only its own barrier."""
    kept = cuda.shared.array(MOST_THREADS, dtype=float32)
    tid = cuda.threadIdx.x
    i = cuda.grid(1)
    kept[tid] = x[i] if i < x.size else 0
    cuda.syncthreads()
    stride = cuda.blockDim.x // 2
    while stride > WARP:
        if tid < stride:
            kept[tid] += kept[tid + stride]
        cuda.syncthreads()
        stride //= 2
    if tid < WARP:
        while stride > 0:
            if tid < stride:
                kept[tid] += kept[tid + stride]
            cuda.syncwarp()
            stride //= 2
    if tid == 0:
        sums[cuda.blockIdx.x] = kept[0]


@cuda.jit(device=True)
def warp_sum(value):
    """Return, in lane 0, the sum of the warp's values."""
    distance = WARP // 2
    while distance > 0:
        value += cuda.shfl_down_sync(EVERY_LANE, value, distance)
        distance //= 2
    return value


@cuda.jit
def shuffled_sum(x, total):
    """total[0] += sum of x: shuffles in a warp, shared memory between warps, an atomic between blocks."""
    of_warp = cuda.shared.array(MOST_WARPS, dtype=float32)
    tid = cuda.threadIdx.x
    value = float32(0)
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        value += x[i]
    value = warp_sum(value)
    if tid % WARP == 0:
        of_warp[tid // WARP] = value
    cuda.syncthreads()
    if tid < WARP:
        value = float32(0)
        if tid < cuda.blockDim.x // WARP:
            value = of_warp[tid]
        value = warp_sum(value)
        if tid == 0:
            cuda.atomic.add(total, 0, value)


@cuda.jit
def butterfly_row_means(x, out):
    """out[row, :] = x[row, :] - mean of the row of 32: after the xor shuffles every lane has the sum."""
    lane = cuda.threadIdx.x
    row = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
    value = x[row, lane]
    total = value
    distance = 1
    while distance < WARP:
        total += cuda.shfl_xor_sync(EVERY_LANE, total, distance)
        distance *= 2
    out[row, lane] = value - total / WARP


@cuda.jit
def softmax_rows(x, out):
    """out[row, :] = softmax of x[row, :], a block a row; the buffer is used twice, with a barrier between."""
    kept = cuda.shared.array(MOST_THREADS, dtype=float32)
    row = cuda.blockIdx.x
    tid = cuda.threadIdx.x
    threads = cuda.blockDim.x
    largest = float32(-math.inf)
    for j in range(tid, x.shape[1], threads):
        largest = max(largest, x[row, j])
    kept[tid] = largest
    cuda.syncthreads()
    stride = threads // 2
    while stride > 0:
        if tid < stride:
            kept[tid] = max(kept[tid], kept[tid + stride])
        cuda.syncthreads()
        stride //= 2
    largest = kept[0]
    cuda.syncthreads()  # everybody has read kept[0] before it is written again
    total = float32(0)
    for j in range(tid, x.shape[1], threads):
        total += math.exp(x[row, j] - largest)
    kept[tid] = total
    cuda.syncthreads()
    stride = threads // 2
    while stride > 0:
        if tid < stride:
            kept[tid] += kept[tid + stride]
        cuda.syncthreads()
        stride //= 2
    for j in range(tid, x.shape[1], threads):
        out[row, j] = math.exp(x[row, j] - largest) / kept[0]


@cuda.jit
def sum_by_last_block(x, partial, tickets, total):
    """Each block leaves its sum and draws a ticket; who draws the last one adds up all sums.

    The method of NVIDIA's threadFenceReduction sample. The fence and the atomic order the blocks' stores
    before the last block's loads, which a detector that knows only barriers must take for a race.
    """
    kept = cuda.shared.array(MOST_THREADS, dtype=float32)
    is_last = cuda.shared.array(1, dtype=int32)
    tid = cuda.threadIdx.x
    i = cuda.grid(1)
    kept[tid] = x[i] if i < x.size else 0
    cuda.syncthreads()
    stride = cuda.blockDim.x // 2
    while stride > 0:
        if tid < stride:
            kept[tid] += kept[tid + stride]
        cuda.syncthreads()
        stride //= 2
    if tid == 0:
        partial[cuda.blockIdx.x] = kept[0]
        cuda.threadfence()
        ticket = cuda.atomic.add(tickets, 0, 1)
        is_last[0] = 1 if ticket == cuda.gridDim.x - 1 else 0
    cuda.syncthreads()
    if is_last[0] == 1 and tid == 0:
        everything = float32(0)
        for block in range(cuda.gridDim.x):
            everything += partial[block]
        total[0] = everything
