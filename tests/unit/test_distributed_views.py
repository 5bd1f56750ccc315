"""What the pictures of chapter 08 say: whose part is where, and who sends more than must be."""

import pytest

from course_lib import views
from course_lib.distributed.matmul import grid_layout, layered_layout


def test_shards_say_whose_rows_and_columns_are_where():
    shape = (8, 6, 4)
    shown = views.shards(grid_layout(shape, 4), shape, "SUMMA")
    assert shown.text.startswith("SUMMA: 4 ranks. A: rank 0 rows 0 to 3, columns 0 to 2;")
    assert "B: rank 0 rows 0 to 2, columns 0 to 1;" in shown.text
    assert shown.body.count("fill-opacity") == 12
    layered = views.shards(layered_layout(shape, 8), shape)  # the second layer has nothing yet
    assert layered.body.count("fill-opacity") == 12 and "rank 4" not in layered.text
    with pytest.raises(ValueError, match="49 ranks cannot be drawn"):
        views.shards(grid_layout((49,) * 3, 49), (49,) * 3)


def test_bytes_against_ranks_are_told_at_the_largest_number_of_ranks():
    curves = {"row": {4: 0.75, 16: 0.9375}, "summa": {4: 0.5, 16: 0.375}}
    said = views.rank_bytes(curves, {"row": {4: 0.75}}, {4: 0.44, 16: 0.285}).alt
    assert "each of 16 ranks sends: summa 0.375, row 0.938; at least 0.285" in said
    assert "the bound 4: 0.440, 16: 0.285" in said
