"""Branches: which warps they divide, and how many lanes are there for the accesses behind them."""

from numba import cuda


@cuda.jit
def by_lane(out):
    """Lanes 0 to 15 one way, 16 to 31 the other: every warp is divided; 16 int32 a store, 2 sectors."""
    i = cuda.grid(1)
    if cuda.threadIdx.x % 32 < 16:  # BRANCH
        out[i] = 1  # COUNT
    else:
        out[i] = 2  # COUNT


@cuda.jit
def by_warp(out):
    """Whole warps go one way or the other: none is divided; 32 int32 a store, 4 sectors."""
    i = cuda.grid(1)
    if cuda.threadIdx.x // 32 % 2 == 0:  # BRANCH
        out[i] = 1  # COUNT
    else:
        out[i] = 2  # COUNT


@cuda.jit
def triangle(x, out):
    """Lane l makes l steps: step k has the 31 - k lanes above k.

    31 requests and 31 + 30 + ... + 1 = 496 lanes a warp. All lanes of a step read one element, 1 sector.
    """
    i = cuda.grid(1)
    total = 0
    for k in range(cuda.threadIdx.x % 32):
        total += x[k]  # COUNT
    out[i] = total
