"""Stencils and convolutions through shared memory with a halo, and steps of a stencil inside a block."""

from numba import cuda, float32

THREADS = 32
RADIUS = 2
WITH_HALO = THREADS + 2 * RADIUS
TILE = 8
FRAMED = TILE + 2


@cuda.jit
def convolve_1d(x, taps, out):
    """out[i] = sum of taps[k] x[i + k - RADIUS], zero outside; elements and halo in shared memory."""
    kept = cuda.shared.array(WITH_HALO, dtype=float32)
    tid = cuda.threadIdx.x
    first = cuda.blockIdx.x * THREADS - RADIUS
    for k in range(tid, WITH_HALO, THREADS):
        kept[k] = 0
        if first + k >= 0 and first + k < x.size:
            kept[k] = x[first + k]
    cuda.syncthreads()
    i = cuda.grid(1)
    if i < out.size:
        total = float32(0)
        for k in range(2 * RADIUS + 1):
            total += taps[k] * kept[tid + k]
        out[i] = total


@cuda.jit
def five_point(x, out):
    """out = mean of each inner element's four neighbours; edge threads fetch the halo as well."""
    kept = cuda.shared.array((FRAMED, FRAMED), dtype=float32)
    tx = cuda.threadIdx.x + 1
    ty = cuda.threadIdx.y + 1
    col, row = cuda.grid(2)
    rows, cols = x.shape
    if row < rows and col < cols:
        kept[ty, tx] = x[row, col]
        if tx == 1 and col > 0:
            kept[ty, 0] = x[row, col - 1]
        if tx == TILE and col + 1 < cols:
            kept[ty, TILE + 1] = x[row, col + 1]
        if ty == 1 and row > 0:
            kept[0, tx] = x[row - 1, col]
        if ty == TILE and row + 1 < rows:
            kept[TILE + 1, tx] = x[row + 1, col]
    cuda.syncthreads()
    if row > 0 and row < rows - 1 and col > 0 and col < cols - 1:
        out[row, col] = 0.25 * (kept[ty - 1, tx] + kept[ty + 1, tx] + kept[ty, tx - 1] + kept[ty, tx + 1])


@cuda.jit
def smooth(x, steps, out):
    """Apply a three-point mean `steps` times to one block's elements; the two buffers change their names."""
    first = cuda.shared.array(THREADS, dtype=float32)
    second = cuda.shared.array(THREADS, dtype=float32)
    tid = cuda.threadIdx.x
    source = first
    target = second
    source[tid] = x[tid]
    cuda.syncthreads()
    for _ in range(steps):
        if tid > 0 and tid < THREADS - 1:
            target[tid] = (source[tid - 1] + source[tid] + source[tid + 1]) / 3
        else:
            target[tid] = source[tid]
        cuda.syncthreads()
        source, target = target, source
    out[tid] = source[tid]


@cuda.jit
def reverse_dynamic(x, out):
    """Reverse each block's elements through shared memory whose size the launch gives."""
    kept = cuda.shared.array(0, dtype=float32)
    tid = cuda.threadIdx.x
    i = cuda.grid(1)
    kept[tid] = x[i]
    cuda.syncthreads()
    out[i] = kept[cuda.blockDim.x - 1 - tid]
