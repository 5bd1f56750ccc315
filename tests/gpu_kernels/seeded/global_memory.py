"""Faults in the use of global memory: threads, or whole blocks, that use one element without an order."""

from numba import cuda, float32


@cuda.jit
def histogram_without_atomics(x, counts):
    """Two threads that meet in one bin count once."""
    i = cuda.grid(1)
    if i < x.size:
        counts[x[i]] += 1  # HAZARD


@cuda.jit
def blocks_add_to_one_word(x, total):
    """Each block adds its sum to total[0] with a load and a store: right as long as the blocks take turns."""
    if cuda.threadIdx.x == 0:
        value = float32(0)
        for i in range(cuda.blockIdx.x * cuda.blockDim.x, (cuda.blockIdx.x + 1) * cuda.blockDim.x):
            value += x[i]
        total[0] += value  # HAZARD


@cuda.jit
def blocks_write_one_row(x, out):
    """The block's place in the output is forgotten: all blocks write the first elements."""
    out[cuda.threadIdx.x] = x[cuda.grid(1)]  # HAZARD


@cuda.jit
def neighbours_in_place(x):
    """Inside a block a barrier parts reading from writing; at the blocks' edges nothing does."""
    i = cuda.grid(1)
    value = x[i]
    if i > 0 and i < x.size - 1:
        value = x[i - 1] + x[i + 1]  # PARTNER
    cuda.syncthreads()
    x[i] = value  # HAZARD


@cuda.jit
def neighbour_of_another_block(x, doubled, out):
    """The barrier does not hold for the neighbour that another block writes."""
    i = cuda.grid(1)
    doubled[i] = 2 * x[i]  # PARTNER
    cuda.syncthreads()
    if i > 0:
        out[i] = doubled[i] - doubled[i - 1]  # HAZARD


@cuda.jit
def three_point_sum(x, out):
    """Right, unless it is launched with one array for both arguments."""
    i = cuda.grid(1)
    if i > 0 and i < x.size - 1:
        out[i] = x[i - 1] + x[i] + x[i + 1]  # HAZARD


@cuda.jit
def count_read_back(x, count, places):
    """The atomic's own result is thrown away; what is read afterwards may have grown again."""
    i = cuda.grid(1)
    if x[i] > 0:
        cuda.atomic.add(count, 0, 1)  # PARTNER
        places[i] = count[0]  # HAZARD


@cuda.jit
def transpose_by_everybody(x):
    """Both threads of a pair swap it: right when all read before any writes, undone when they take turns."""
    col, row = cuda.grid(2)
    upper = x[row, col]  # PARTNER
    lower = x[col, row]  # PARTNER
    x[row, col] = lower  # HAZARD
    x[col, row] = upper  # PARTNER
