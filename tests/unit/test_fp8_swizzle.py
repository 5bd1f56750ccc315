"""Swizzled tiles: every byte once, in the documented order, without conflicts."""

import pytest

from course_lib.fp8.swizzle import WIDTHS, conflicts, d_address, panel_width, stmatrix_addresses, swizzled

TILES = [(rows, columns) for rows in (64, 128, 256) for columns in (16, 48, 64, 96, 112, 128, 144, 160, 192)]


@pytest.mark.parametrize("width", WIDTHS)
def test_every_byte_has_one_place(width):
    size = 8 * width * 4
    places = [swizzled(byte, width) for byte in range(size)]
    assert sorted(places) == list(range(size))
    assert all(place % 16 == byte % 16 for byte, place in enumerate(places))  # pieces of 16 stay together
    assert all(place // width == byte // width for byte, place in enumerate(places))  # nothing leaves its row
    assert places[: min(width, 128)] == list(range(width))  # the first row of a tile lies as it is


def test_the_pattern_is_that_of_the_documents():
    """PTX ISA, figure of the 128-byte mode: in row r the pieces lie as 0..7 XOR r, and row 8 begins anew."""
    for row in range(16):
        assert [swizzled(row * 128 + 16 * piece) // 16 % 8 for piece in range(8)] == [
            p ^ row % 8 for p in range(8)
        ]
    # 64 bytes: a pair of rows shares a line, the pattern changes from line to line and has period four
    assert [swizzled(row * 64, 64) % 64 // 16 for row in range(10)] == [0, 0, 1, 1, 2, 2, 3, 3, 0, 0]
    assert [swizzled(row * 32, 32) % 32 // 16 for row in range(9)] == [0, 0, 0, 0, 1, 1, 1, 1, 0]


def test_a_column_meets_every_bank_once_when_swizzled_and_one_set_of_banks_when_not():
    for piece in range(8):
        assert conflicts([swizzled(row * 128 + 16 * piece) for row in range(8)]) == 1
        assert conflicts([row * 128 + 16 * piece for row in range(8)]) == 8
    assert conflicts([0] * 8) == 1  # one word for all is one request


@pytest.mark.parametrize(("rows", "columns"), TILES)
def test_the_tile_of_d(rows, columns):
    places = {d_address(row, column, rows, columns) for row in range(rows) for column in range(columns)}
    assert places == set(range(0, rows * columns * 2, 2))
    for warp in range(rows // 16):
        for j in range(columns // 16):
            assert conflicts(stmatrix_addresses(warp, j, rows, columns)) == 1  # in narrow panels, too


def test_narrow_panels_would_conflict_if_they_were_not_swizzled():
    """Rows of 32 bytes: four of them fill all banks, so of eight pieces in a column two meet."""
    plain = {width: conflicts([row * width for row in range(8)]) for width in WIDTHS}
    assert plain == {32: 2, 64: 4, 128: 8}


@pytest.mark.parametrize(("rows", "columns"), TILES)
def test_lanes_address_the_rows_of_the_four_matrices_that_stmatrix_stores(rows, columns):
    """PTX ISA, stmatrix: lanes 8 m ... 8 m + 7 address the rows of matrix m.

    Register by register, as wgmma lays its accumulators out, the matrices are rows 0-7 and 8-15 of eight
    columns, then those of the next eight.
    """
    for warp in range(rows // 16):
        for j in range(columns // 16):
            found = stmatrix_addresses(warp, j, rows, columns)
            wanted = [
                d_address(16 * warp + below + row, 16 * j + beyond, rows, columns)
                for beyond in (0, 8)
                for below in (0, 8)
                for row in range(8)
            ]
            assert found == wanted


def test_panels():
    assert [panel_width(columns) for columns in (16, 32, 48, 64, 96, 112, 128, 144, 160, 192)] == [
        *(32, 64, 32, 128, 64, 32, 128, 32, 64, 128)
    ]


def test_what_makes_no_sense_is_refused():
    with pytest.raises(
        ValueError, match="width is 16, but the copy engine swizzles over 32, 64 or 128 bytes"
    ):
        swizzled(0, 16)
    with pytest.raises(ValueError, match="offset is -1"):
        swizzled(-1)
    with pytest.raises(ValueError, match="columns is 24, but a tile has a multiple of 16 columns"):
        panel_width(24)
