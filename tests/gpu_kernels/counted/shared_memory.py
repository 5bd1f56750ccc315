"""Loads and stores in shared memory: 32 banks, 4 bytes wide; a wavefront serves each bank one word.

So a request needs as many wavefronts as the bank with the most *different* words asked of it
(CUDA C++ Programming Guide, Shared Memory of compute capability 5.x and later).
"""

from numba import cuda, float32, float64, uint8

WORDS = 33 * 32


@cuda.jit
def strided(stride, out):
    """Lane l reads word stride x l, in bank (stride x l) mod 32: gcd(stride, 32) lanes meet in a bank.

    Stride 0: one word for all, 1 wavefront; 1, 3, 33 (odd): 1; 2: 2; 4: 4; 8: 8; 32: 32.
    """
    kept = cuda.shared.array(WORDS, dtype=float32)
    tid = cuda.threadIdx.x
    for k in range(tid, WORDS, cuda.blockDim.x):
        kept[k] = k
    cuda.syncthreads()
    out[tid] = kept[stride * (tid % 32)]  # COUNT


@cuda.jit
def transpose(x, out):
    """A 32 x 32 float32 tile: a row is 32 banks, 1 wavefront; a column is 32 words of one bank, 32."""
    tile = cuda.shared.array((32, 32), dtype=float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    tile[ty, tx] = x[ty, tx]  # COUNT
    cuda.syncthreads()
    out[ty, tx] = tile[tx, ty]  # COUNT


@cuda.jit
def padded_transpose(x, out):
    """A row of the tile is 33 words long: 1 wavefront for rows and for columns.

    Element (l, ty), which lane l reads, lies in bank (33 l + ty) mod 32 = (l + ty) mod 32: all different.
    """
    tile = cuda.shared.array((32, 33), dtype=float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    tile[ty, tx] = x[ty, tx]  # COUNT
    cuda.syncthreads()
    out[ty, tx] = tile[tx, ty]  # COUNT


@cuda.jit
def bytes_in_a_row(x, out):
    """32 neighbouring bytes are 8 words in 8 banks; lanes that want the same word share it: 1 wavefront."""
    kept = cuda.shared.array(32, dtype=uint8)
    tid = cuda.threadIdx.x
    kept[tid] = x[tid]  # COUNT
    cuda.syncthreads()
    out[tid] = kept[31 - tid]  # COUNT


@cuda.jit
def doubles_in_a_row(x, out):
    """32 neighbouring float64 are 64 words, two for each bank: 2 wavefronts, as few as 256 bytes can take."""
    kept = cuda.shared.array(32, dtype=float64)
    tid = cuda.threadIdx.x
    kept[tid] = x[tid]  # COUNT
    cuda.syncthreads()
    out[tid] = kept[31 - tid]  # COUNT


@cuda.jit
def tile_step(x, y, out):
    """A 16 x 16 tiled matmul's inner step; a warp is two rows of the block, ty and ty + 1.

    Stores: 32 neighbouring words, 1 wavefront. a[ty, k]: two words 16 banks apart, each for 16 lanes, 1.
    b[k, tx]: 16 words, each for two lanes, 1. 8 warps: 8 requests for each store, 128 for each load.
    """
    a = cuda.shared.array((16, 16), dtype=float32)
    b = cuda.shared.array((16, 16), dtype=float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    a[ty, tx] = x[ty, tx]  # COUNT
    b[ty, tx] = y[ty, tx]  # COUNT
    cuda.syncthreads()
    total = float32(0)
    for k in range(16):
        total += a[ty, k] * b[k, tx]  # COUNT
    out[ty, tx] = total
