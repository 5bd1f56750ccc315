"""Sorting networks in a block: barriers in uniform loops, and a loop that all threads leave together."""

from numba import cuda, int32

COUNT = 32


@cuda.jit
def bitonic_sort(x):
    """Sort COUNT elements, a thread an element; the lower of each pair compares and swaps (Batcher 1968)."""
    kept = cuda.shared.array(COUNT, dtype=int32)
    tid = cuda.threadIdx.x
    kept[tid] = x[tid]
    cuda.syncthreads()
    size = 2
    while size <= COUNT:
        distance = size // 2
        while distance > 0:
            other = tid ^ distance
            if other > tid:
                rising = (tid & size) == 0
                if (kept[tid] > kept[other]) == rising:
                    swapped = kept[tid]
                    kept[tid] = kept[other]
                    kept[other] = swapped
            cuda.syncthreads()
            distance //= 2
        size *= 2
    x[tid] = kept[tid]


@cuda.jit(device=True)
def sort_pair(kept, low, changed):
    """Put kept[low] and kept[low + 1] in order, and say so in changed[0] when they were not."""
    if kept[low] > kept[low + 1]:
        swapped = kept[low]
        kept[low] = kept[low + 1]
        kept[low + 1] = swapped
        cuda.atomic.max(changed, 0, 1)


@cuda.jit
def odd_even_sort(x, rounds):
    """Sort COUNT elements with COUNT / 2 threads until a round changes nothing: a break, but everybody's."""
    kept = cuda.shared.array(COUNT, dtype=int32)
    changed = cuda.shared.array(1, dtype=int32)
    tid = cuda.threadIdx.x
    kept[tid] = x[tid]
    kept[tid + COUNT // 2] = x[tid + COUNT // 2]
    for done in range(COUNT):
        if tid == 0:
            changed[0] = 0
        cuda.syncthreads()
        sort_pair(kept, 2 * tid, changed)
        cuda.syncthreads()
        if 2 * tid + 2 < COUNT:
            sort_pair(kept, 2 * tid + 1, changed)
        cuda.syncthreads()
        if changed[0] == 0:
            if tid == 0:
                rounds[0] = done + 1
            break
        cuda.syncthreads()  # everybody has read changed[0] before it is cleared
    x[tid] = kept[tid]
    x[tid + COUNT // 2] = kept[tid + COUNT // 2]


@cuda.jit
def sort_by_vote(x):
    """As odd_even_sort, with the barrier that also says whether any thread swapped."""
    kept = cuda.shared.array(COUNT, dtype=int32)
    tid = cuda.threadIdx.x
    kept[tid] = x[tid]
    kept[tid + COUNT // 2] = x[tid + COUNT // 2]
    cuda.syncthreads()
    while True:
        swaps = 0
        for parity in range(2):
            low = 2 * tid + parity
            if low + 1 < COUNT and kept[low] > kept[low + 1]:
                swapped = kept[low]
                kept[low] = kept[low + 1]
                kept[low + 1] = swapped
                swaps += 1
            if parity == 0:
                cuda.syncthreads()
        if cuda.syncthreads_or(swaps) == 0:
            break
    x[tid] = kept[tid]
    x[tid + COUNT // 2] = kept[tid + COUNT // 2]
