"""Loads, stores and atomics in global memory. A sector is 32 bytes; arrays start at multiples of 256."""

from numba import cuda, float32


@cuda.jit
def row(x, out):
    """32 lanes read neighbours: 32 x itemsize bytes from an aligned address, 32 x itemsize / 32 sectors.

    float32: 4, float64: 8, int16: 2, uint8: 1.
    """
    i = cuda.grid(1)
    out[i] = x[i]  # COUNT


@cuda.jit
def reversed_row(x, out):
    """The order of the lanes does not matter: the same 128 bytes of float32, 4 sectors."""
    i = cuda.grid(1)
    out[i] = x[x.size - 1 - i]  # COUNT


@cuda.jit
def one_element(x, out):
    """All lanes read one address: 1 sector."""
    i = cuda.grid(1)
    out[i] = x[0]  # COUNT


@cuda.jit
def strided(x, stride, out):
    """float32, every stride-th element: 128 x stride bytes, every sector of them until one sector a lane.

    Stride 2: 8 sectors, stride 4: 16, stride 8 and more: 32.
    """
    i = cuda.grid(1)
    out[i] = x[stride * i]  # COUNT


@cuda.jit
def shifted(x, shift, out):
    """float32 from `shift` elements after an aligned address: bytes 4 shift to 4 shift + 127.

    Shift 1: bytes 4 to 131 lie in sectors 0 to 4, so 5. Shift 8: bytes 32 to 159, sectors 1 to 4, so 4.
    """
    i = cuda.grid(1)
    out[i] = x[i + shift]  # COUNT


@cuda.jit
def first_column(x, out):
    """A column of a row-major float32 matrix of 64 columns: lanes 256 bytes apart, 32 sectors."""
    i = cuda.grid(1)
    out[i] = x[i, 0]  # COUNT


@cuda.jit
def rows_of_16(x, out):
    """Blocks of 16 x 16 threads: a warp is two rows of 16 float32, 2 x 64 bytes, 2 x 2 = 4 sectors.

    The matrix has 64 columns: the two rows are apart in memory, and start at multiples of 64 bytes.
    """
    col, row = cuda.grid(2)
    out[row, col] = x[row, col]  # COUNT


@cuda.jit
def guarded(x, out):
    """40 float32 by 64 threads: the first warp 4 sectors; the second has 8 lanes to read 32 bytes, 1 sector.

    The guard divides the second warp and no other.
    """
    i = cuda.grid(1)
    if i < x.size:  # BRANCH
        out[i] = x[i]  # COUNT


@cuda.jit
def in_order_matmul(A, B, C):
    """C = A B, float32, A 32 x 8, B 8 x 32, a warp a row of C: all lanes read one A[row, k] and a row of B.

    32 warps x 8 steps = 256 requests each: A 1 sector, B 4 sectors a request. C: 32 requests of 4 sectors.
    """
    col, row = cuda.grid(2)
    total = float32(0)
    for k in range(A.shape[1]):
        total += A[row, k] * B[k, col]  # COUNT
    C[row, col] = total  # COUNT


@cuda.jit
def out_of_order_matmul(A, B, C):
    """The same, a warp a column of C: the lanes' A[row, k] lie 32 bytes apart, B[k, col] is one element.

    256 requests each: A 32 sectors, B 1 sector a request. C: lanes 128 bytes apart, 32 requests of 32.
    """
    row, col = cuda.grid(2)
    total = float32(0)
    for k in range(A.shape[1]):
        total += A[row, k] * B[k, col]  # COUNT
    C[row, col] = total  # COUNT


@cuda.jit
def count_modulo(bins, counts):
    """int32 atomics: lanes with equal i mod bins meet at one address, 32 / bins of them, one after the other.

    1 bin: 32 rounds, 1 sector; 4 bins: 8 rounds, 1 sector; 32 bins: 1 round, 4 sectors.
    """
    i = cuda.grid(1)
    cuda.atomic.add(counts, i % bins, 1)  # COUNT
