"""Where matrices lie in memory: start, shape and strides. It decides which lines share a set of a cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from course_lib.arguments import whole

PAGE = 4096
START = 1 << 30  # where `place` puts the first matrix


@dataclass(frozen=True)
class Matrix:
    """Element (row, column) lies at byte start + row * row_stride + column * itemsize."""

    start: int
    shape: tuple[int, int]
    row_stride: int  # bytes
    itemsize: int  # bytes of an element

    @property
    def bytes(self) -> int:
        """Bytes from the first element to the end of the last one, padding between the rows included."""
        rows, columns = self.shape
        if not rows or not columns:
            return 0
        return (rows - 1) * self.row_stride + columns * self.itemsize

    def element(self, address: int) -> tuple[int, int]:
        """Return the row and column of the element that holds the byte."""
        row, rest = divmod(address - self.start, self.row_stride)
        return row, rest // self.itemsize


def place(M: int, K: int, N: int, itemsize: int = 8, *, pad: int = 0) -> dict[str, Matrix]:
    """Return A (M, K), B (K, N) and C (M, N), row-major, one behind the other.

    Each starts at a page of its own, as NumPy's large arrays do.
    pad: elements between the end of a row and the start of the next (the leading dimension is columns + pad).
    """
    for what, value in {"M": M, "K": K, "N": N, "pad": pad}.items():
        whole(what, value, least=0)
    whole("itemsize", itemsize)
    found, free = {}, START
    for name, (rows, columns) in {"A": (M, K), "B": (K, N), "C": (M, N)}.items():
        at = -(-free // PAGE) * PAGE
        found[name] = Matrix(at, (rows, columns), (columns + pad) * itemsize or itemsize, itemsize)
        free = at + found[name].bytes
    return found


def spans(matrices: Mapping[str, Matrix]) -> dict[str, tuple[int, int]]:
    """Return (start, bytes) of each matrix."""
    return {name: (matrix.start, matrix.bytes) for name, matrix in matrices.items()}
