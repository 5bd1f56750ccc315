"""What TMA is told about a matrix: a tensor map's arguments, checked before the driver sees them.

    map_a = of_operand(address, rows=M, K=K, box_rows=128)
    map_a.dims, map_a.strides, map_a.box                       # innermost first, as the driver wants them

The driver answers a wrong argument with a number (CUDA_ERROR_INVALID_VALUE) and no reason, so the rules stand
here as sentences. They are those of `cuTensorMapEncodeTiled` (CUDA Driver API, "Tensor Map Object
Management") and of PTX for swizzled tiles. What lies outside of the matrix is read as zeros, with its bytes
counted, and never written.
"""

from __future__ import annotations

from dataclasses import dataclass

from course_lib.fp8 import BLOCK

UINT8, FLOAT32, BFLOAT16 = 0, 7, 9  # CUtensorMapDataType
SIZES = {UINT8: 1, FLOAT32: 4, BFLOAT16: 2}
SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}  # width in bytes -> CUtensorMapSwizzle
PROMOTION_256 = 3  # CUtensorMapL2promotion: a miss fetches 256 bytes
ALIGNMENT = 16
MOST_DIMS, MOST_STRIDE = 2**32, 2**40


@dataclass(frozen=True)
class TensorMap:
    """A matrix (or several) in global memory and the box of it that one order copies; innermost dimension
    first.

    `strides` are bytes from one element of a dimension to the next, without the innermost, whose elements are
    side by side. `swizzle` is the width in bytes over which the box's rows are swizzled in shared memory, 0
    for not at all. Raises ValueError for an address or size that the driver would refuse.
    """

    name: str
    dtype: int
    address: int
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int = 0

    def __post_init__(self) -> None:
        what = f"the tensor map of {self.name}"
        if self.address % ALIGNMENT:
            raise ValueError(
                f"{what} begins at address {self.address:#x}, but it must be a multiple of {ALIGNMENT}."
            )
        if not all(0 < dim <= MOST_DIMS for dim in self.dims):
            raise ValueError(f"{what} has dims {self.dims}, but each must be 1 to 2^32.")
        for stride in self.strides:
            if stride % ALIGNMENT or not 0 < stride < MOST_STRIDE:
                raise ValueError(
                    f"{what} has a stride of {stride} bytes, but it must be a multiple of 16 below 2^40."
                )


def of_operand(
    name: str, address: int, rows: int, K: int, box_rows: int, groups: int | None = None
) -> TensorMap:
    """Return the map of e4m3 (rows, K), or (groups, rows, K): boxes of `box_rows` x 128, swizzled."""
    return _matrices(name, UINT8, address, (K, rows), groups, (BLOCK, box_rows), BLOCK)


def of_scales(name: str, address: int, padded_rows: int, blocks: int, box_rows: int) -> TensorMap:
    """Return the map of A's scales, float32, M-major: `blocks` columns of `padded_rows`."""
    return _matrices(name, FLOAT32, address, (padded_rows, blocks), None, (box_rows, 1), 0)


def of_result(
    name: str, address: int, rows: int, N: int, box_rows: int, width: int, groups: int | None = None
) -> TensorMap:
    """Return the map of D, bf16 (rows, N), or (groups, rows, N): boxes are panels of `width` bytes."""
    return _matrices(name, BFLOAT16, address, (N, rows), groups, (width // 2, box_rows), width)


def _matrices(
    name: str,
    dtype: int,
    address: int,
    dims: tuple[int, int],
    groups: int | None,
    box: tuple[int, int],
    swizzle: int,
) -> TensorMap:
    row_bytes = dims[0] * SIZES[dtype]
    if groups is None:
        return TensorMap(name, dtype, address, dims, (row_bytes,), box, swizzle)
    strides = (row_bytes, row_bytes * dims[1])
    return TensorMap(name, dtype, address, (*dims, groups), strides, (*box, 1), swizzle)
