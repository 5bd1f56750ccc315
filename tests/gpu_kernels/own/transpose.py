"""Transpositions: straight, through a shared tile without and with padding, and in place."""

from numba import cuda, float32

TILE = 8
PADDED = TILE + 1  # a shape is a constant for Numba only under a name of its own
ROWS_AT_ONCE = 4


@cuda.jit
def naive_transpose(x, out):
    """out = x^T: rows are read side by side, columns written far apart."""
    col, row = cuda.grid(2)
    if row < x.shape[0] and col < x.shape[1]:
        out[col, row] = x[row, col]


@cuda.jit
def tiled_transpose(x, out):
    """out = x^T through a square tile: reads and writes side by side, the tile's columns in few banks."""
    tile = cuda.shared.array((TILE, TILE), dtype=float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    row = cuda.blockIdx.y * TILE + ty
    col = cuda.blockIdx.x * TILE + tx
    if row < x.shape[0] and col < x.shape[1]:
        tile[ty, tx] = x[row, col]
    cuda.syncthreads()
    row = cuda.blockIdx.x * TILE + ty
    col = cuda.blockIdx.y * TILE + tx
    if row < out.shape[0] and col < out.shape[1]:
        out[row, col] = tile[tx, ty]


@cuda.jit
def padded_transpose(x, out):
    """As tiled_transpose with a padded tile, and each thread moves several elements of a column."""
    tile = cuda.shared.array((TILE, PADDED), dtype=float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    col = cuda.blockIdx.x * TILE + tx
    for k in range(0, TILE, ROWS_AT_ONCE):
        row = cuda.blockIdx.y * TILE + ty + k
        if row < x.shape[0] and col < x.shape[1]:
            tile[ty + k, tx] = x[row, col]
    cuda.syncthreads()
    col = cuda.blockIdx.y * TILE + tx
    for k in range(0, TILE, ROWS_AT_ONCE):
        row = cuda.blockIdx.x * TILE + ty + k
        if row < out.shape[0] and col < out.shape[1]:
            out[row, col] = tile[tx, ty + k]


@cuda.jit
def transpose_in_place(x):
    """x = x^T for a square x: the threads above the diagonal swap their pair, the others leave early."""
    col, row = cuda.grid(2)
    if row >= col or col >= x.shape[1]:
        return
    upper = x[row, col]
    x[row, col] = x[col, row]
    x[col, row] = upper


@cuda.jit
def transpose_tile_in_place(x):
    """x = x^T for one tile: every element is held in a register over the barrier."""
    tile = cuda.shared.array((TILE, TILE), dtype=float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    tile[ty, tx] = x[ty, tx]
    cuda.syncthreads()
    held = tile[tx, ty]
    cuda.syncthreads()
    tile[ty, tx] = held
    cuda.syncthreads()
    x[ty, tx] = tile[ty, tx]
