"""Kernels in which a thread works for itself: grid-stride loops, odd indices, divergence, local arrays."""

from numba import cuda, float32, uint8

SHORTEST_SORT = 8
BYTES = 48


@cuda.jit
def saxpy(a, x, y):
    """y = a x + y, each thread taking every gridsize-th element (a grid-stride loop)."""
    for i in range(cuda.grid(1), y.size, cuda.gridsize(1)):
        y[i] = a * x[i] + y[i]


@cuda.jit
def periodic_difference(x, out):
    """out[i] = x[i] - x[i - 1]; for i = 0 the index -1 is Python's: the last element."""
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i] - x[i - 1]


@cuda.jit
def circular_convolution(x, taps, out):
    """out[i] = sum of taps[k] x[(i - k) mod n]: the remainder of a negative number is Python's, not C's."""
    i = cuda.grid(1)
    n = x.size
    if i >= n:
        return
    total = float32(0)
    for k in range(taps.size):
        total += taps[k] * x[(i - k) % n]
    out[i] = total


@cuda.jit
def collatz_steps(x, steps):
    """Count the steps to 1 of each x: a while loop and branches that differ from lane to lane."""
    i = cuda.grid(1)
    if i < x.size:
        value = x[i]
        count = 0
        while value != 1:
            if value % 2 == 0:  # noqa: SIM108 - a branch is what is wanted here
                value = value // 2
            else:
                value = 3 * value + 1
            count += 1
        steps[i] = count


@cuda.jit
def first_larger(x, limit, out):
    """out[i] = the first column of row i that exceeds limit, or -1: lanes leave the loop one by one."""
    i = cuda.grid(1)
    if i < x.shape[0]:
        found = -1
        for j in range(x.shape[1]):
            if x[i, j] != x[i, j]:
                continue
            if x[i, j] > limit:
                found = j
                break
        out[i] = found


@cuda.jit
def sort_each_row(x, out):
    """Sort rows of 8 by insertion in a local array, a thread a row."""
    row = cuda.grid(1)
    if row < x.shape[0]:
        kept = cuda.local.array(SHORTEST_SORT, float32)
        for j in range(SHORTEST_SORT):
            value = x[row, j]
            k = j
            while k > 0 and kept[k - 1] > value:
                kept[k] = kept[k - 1]
                k -= 1
            kept[k] = value
        for j in range(SHORTEST_SORT):
            out[row, j] = kept[j]


@cuda.jit
def reorder_axes(x, out):
    """out[k, i, j] = x[i, j, k] on a 3-D grid of 3-D blocks."""
    k, j, i = cuda.grid(3)
    if i < x.shape[0] and j < x.shape[1] and k < x.shape[2]:
        out[k, i, j] = x[i, j, k]


@cuda.jit
def polynomial(x, coefficients, out):
    """out[i] = value of the polynomial at x[i] by Horner's rule, a fused multiply-add a step."""
    i = cuda.grid(1)
    if i < x.size:
        value = coefficients[0]
        for k in range(1, coefficients.size):
            value = cuda.fma(value, x[i], coefficients[k])
        out[i] = value


@cuda.jit
def reverse_bytes_of_block(x, out):
    """Reverse bytes block by block: neighbours write different bytes of one 32-bit word, which is no race."""
    kept = cuda.shared.array(BYTES, dtype=uint8)
    tid = cuda.threadIdx.x
    i = cuda.grid(1)
    kept[tid] = x[i]
    cuda.syncthreads()
    out[i] = kept[BYTES - 1 - tid]


@cuda.jit
def flags_of_halves(x, out):
    """Blocks that have nothing to do leave before the barrier: all their threads, so it stays whole."""
    kept = cuda.shared.array(32, dtype=float32)
    tid = cuda.threadIdx.x
    i = cuda.grid(1)
    if cuda.blockIdx.x * cuda.blockDim.x >= x.size:
        return
    if i < x.size:
        kept[tid] = x[i]
    else:
        kept[tid] = 0
    cuda.syncthreads()
    if i < x.size:
        out[i] = 1 if kept[tid] > kept[(tid + 16) % 32] else 0
