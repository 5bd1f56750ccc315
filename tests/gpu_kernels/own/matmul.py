"""Matrix products C = A B of any shapes: tiles in shared memory, two buffers, tiles in registers."""

from numba import cuda, float32

TILE = 8

BLOCK_ROWS, BLOCK_COLS, BLOCK_DEPTH = 16, 16, 4
THREAD_ROWS, THREAD_COLS = 2, 2
THREADS = (BLOCK_ROWS // THREAD_ROWS) * (BLOCK_COLS // THREAD_COLS)


@cuda.jit
def coalesced_matmul(A, B, C):
    """A thread an element of C, neighbours in a row: their loads of B and stores to C lie side by side."""
    col, row = cuda.grid(2)
    if row < C.shape[0] and col < C.shape[1]:
        total = float32(0)
        for k in range(A.shape[1]):
            total += A[row, k] * B[k, col]
        C[row, col] = total


@cuda.jit
def double_buffered_matmul(A, B, C):
    """Tiles in two buffers in turn: one barrier a step is enough, the next step fills the other buffer."""
    a = cuda.shared.array((2, TILE, TILE), dtype=float32)
    b = cuda.shared.array((2, TILE, TILE), dtype=float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    col, row = cuda.grid(2)
    total = float32(0)
    for step in range((A.shape[1] + TILE - 1) // TILE):
        now = step % 2
        a[now, ty, tx] = 0
        b[now, ty, tx] = 0
        if row < A.shape[0] and step * TILE + tx < A.shape[1]:
            a[now, ty, tx] = A[row, step * TILE + tx]
        if step * TILE + ty < B.shape[0] and col < B.shape[1]:
            b[now, ty, tx] = B[step * TILE + ty, col]
        cuda.syncthreads()
        for k in range(TILE):
            total += a[now, ty, k] * b[now, k, tx]
    if row < C.shape[0] and col < C.shape[1]:
        C[row, col] = total


@cuda.jit
def row_tiled_matmul(A, B, C):
    """Each thread computes TILE elements of one column of C (a 1-D register tile in a local array)."""
    a = cuda.shared.array((TILE, TILE), dtype=float32)
    b = cuda.shared.array((TILE, TILE), dtype=float32)
    sums = cuda.local.array(TILE, dtype=float32)
    tid = cuda.threadIdx.x
    first_row = cuda.blockIdx.y * TILE
    first_col = cuda.blockIdx.x * TILE
    for i in range(TILE):
        sums[i] = 0
    for start in range(0, A.shape[1], TILE):
        for i in range(TILE):
            a[i, tid] = 0
            b[i, tid] = 0
            if first_row + i < A.shape[0] and start + tid < A.shape[1]:
                a[i, tid] = A[first_row + i, start + tid]
            if start + i < B.shape[0] and first_col + tid < B.shape[1]:
                b[i, tid] = B[start + i, first_col + tid]
        cuda.syncthreads()
        for k in range(TILE):
            right = b[k, tid]
            for i in range(TILE):
                sums[i] += a[i, k] * right
        cuda.syncthreads()
    for i in range(TILE):
        if first_row + i < C.shape[0] and first_col + tid < C.shape[1]:
            C[first_row + i, first_col + tid] = sums[i]


@cuda.jit
def register_tiled_matmul(A, B, C):
    """A block of 64 threads computes 16 x 16 elements of C, each thread 2 x 2 of them in registers."""
    a_tile = cuda.shared.array((BLOCK_ROWS, BLOCK_DEPTH), dtype=float32)
    b_tile = cuda.shared.array((BLOCK_DEPTH, BLOCK_COLS), dtype=float32)
    sums = cuda.local.array((THREAD_ROWS, THREAD_COLS), dtype=float32)
    left = cuda.local.array(THREAD_ROWS, dtype=float32)
    right = cuda.local.array(THREAD_COLS, dtype=float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    thread = ty * cuda.blockDim.x + tx
    first_row = cuda.blockIdx.y * BLOCK_ROWS
    first_col = cuda.blockIdx.x * BLOCK_COLS
    M, K = A.shape
    N = B.shape[1]
    for i in range(THREAD_ROWS):
        for j in range(THREAD_COLS):
            sums[i, j] = 0
    for start in range(0, K, BLOCK_DEPTH):
        for element in range(thread, BLOCK_ROWS * BLOCK_DEPTH, THREADS):
            i = element // BLOCK_DEPTH
            k = element % BLOCK_DEPTH
            if first_row + i < M and start + k < K:
                a_tile[i, k] = A[first_row + i, start + k]
            else:
                a_tile[i, k] = 0
        for element in range(thread, BLOCK_DEPTH * BLOCK_COLS, THREADS):
            k = element // BLOCK_COLS
            j = element % BLOCK_COLS
            if start + k < K and first_col + j < N:
                b_tile[k, j] = B[start + k, first_col + j]
            else:
                b_tile[k, j] = 0
        cuda.syncthreads()
        for k in range(BLOCK_DEPTH):
            for i in range(THREAD_ROWS):
                left[i] = a_tile[ty * THREAD_ROWS + i, k]
            for j in range(THREAD_COLS):
                right[j] = b_tile[k, tx + j * (BLOCK_COLS // THREAD_COLS)]
            for i in range(THREAD_ROWS):
                for j in range(THREAD_COLS):
                    sums[i, j] += left[i] * right[j]
        cuda.syncthreads()
    for i in range(THREAD_ROWS):
        for j in range(THREAD_COLS):
            row = first_row + ty * THREAD_ROWS + i
            col = first_col + tx + j * (BLOCK_COLS // THREAD_COLS)
            if row < M and col < N:
                C[row, col] = sums[i, j]
