"""Barriers that not all threads of a block reach, or not the same one."""

from numba import cuda, float32

THREADS = 64


@cuda.jit
def barrier_in_branch(x, sums):
    """A reduction with its barrier inside the `if`: only the threads that add wait for each other."""
    kept = cuda.shared.array(THREADS, dtype=float32)
    tid = cuda.threadIdx.x
    kept[tid] = x[cuda.grid(1)]
    cuda.syncthreads()
    stride = cuda.blockDim.x // 2
    while stride > 0:
        if tid < stride:
            kept[tid] += kept[tid + stride]
            cuda.syncthreads()  # HAZARD
        stride //= 2
    if tid == 0:
        sums[cuda.blockIdx.x] = kept[0]


@cuda.jit
def barrier_in_both_branches(x, out):
    """Two barriers, each for half of the block."""
    kept = cuda.shared.array(THREADS, dtype=float32)
    tid = cuda.threadIdx.x
    if tid < 32:
        kept[tid] = x[tid]
        cuda.syncthreads()  # HAZARD
    else:
        kept[tid] = -x[tid]
        cuda.syncthreads()  # PARTNER
    out[tid] = kept[THREADS - 1 - tid]


@cuda.jit
def loops_of_different_length(x, out):
    """A barrier in a loop that some threads go through more often than others."""
    kept = cuda.shared.array(THREADS, dtype=float32)
    tid = cuda.threadIdx.x
    kept[tid] = 0
    for k in range(1 + tid % 3):
        kept[tid] += x[tid] + k
        cuda.syncthreads()  # HAZARD
    out[tid] = kept[tid]


@cuda.jit
def some_break_off(x, out):
    """Each thread leaves the loop when its own number is large enough; the others wait at the barrier."""
    kept = cuda.shared.array(THREADS, dtype=float32)
    tid = cuda.threadIdx.x
    kept[tid] = x[tid]
    for _ in range(8):
        if kept[tid] > 10:
            break
        kept[tid] *= 2
        cuda.syncthreads()  # HAZARD
    out[tid] = kept[tid]


@cuda.jit(device=True)
def publish(kept, tid, value):
    """Store, then wait for the block: right when all threads call it."""
    kept[tid] = value
    cuda.syncthreads()  # HAZARD


@cuda.jit
def barrier_in_device_function(x, out):
    """The branch is here, the barrier in the function that it calls."""
    kept = cuda.shared.array(THREADS, dtype=float32)
    tid = cuda.threadIdx.x
    kept[tid] = 0
    cuda.syncthreads()
    if x[tid] > 0:
        publish(kept, tid, x[tid])
    out[tid] = kept[tid]
