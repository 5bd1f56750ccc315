"""A device function for kernels of other files."""

from numba import cuda, int64


@cuda.jit(device=True)
def remember(value, is_first):
    """Keep the value of the first call in shared memory; return what is there."""
    kept = cuda.shared.array(1, int64)
    if is_first:
        kept[0] = value
    return kept[0]
