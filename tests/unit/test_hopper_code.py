"""The FP8 kernels as the chapter shows them: their own text, instructions and control bits."""

import pytest

from course_lib import views
from course_lib.fp8 import jit
from course_lib.measure import machine

NO_COMPILER = machine.missing("nvrtc")
compiles = pytest.mark.skipif(NO_COMPILER is not None, reason=str(NO_COMPILER))
TILE = {"BM": 128, "BN": 128, "STAGES": 5}


def test_a_whole_file_is_its_text():
    shown = views.cuda_source("v1_wgmma")
    assert str(shown) == f"course_lib/fp8/kernels/v1_wgmma.cu, line 1\n{jit.source_of('v1_wgmma').rstrip()}"
    assert (
        "__launch_bounds__" in shown._repr_html_()
        and 'aria-label="CUDA C++ of v1_wgmma.cu"' in shown._repr_html_()
    )


def test_a_part_begins_and_ends_with_the_lines_that_were_named():
    lines = str(views.cuda_source("barrier.cuh", start="void barrier_wait", end='"}\\n"')).splitlines()
    whole = (jit.KERNELS / "barrier.cuh").read_text().splitlines()
    first = whole.index(lines[1])
    assert lines[0] == f"course_lib/fp8/kernels/barrier.cuh, line {first + 1}"
    assert lines[1:] == whole[first : first + len(lines) - 1] and "try_wait" in "".join(lines)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"file": "v7"}, "file is 'v7', but there are probe, v0_naive"),
        ({"file": "v1_wgmma", "start": "goto"}, "v1_wgmma.cu has no line with 'goto' from line 1 on"),
        ({"file": "v1_wgmma", "start": "float d[", "end": "extern"}, "has no line with 'extern' from line"),
    ],
)
def test_what_is_not_there_is_a_sentence(arguments, words):
    with pytest.raises(ValueError) as caught:
        views.cuda_source(**arguments)
    assert words in str(caught.value) and str(caught.value).endswith(".")


@compiles
def test_the_table_counts_what_the_rungs_are_known_by():
    table = views.machine_codes({"v0_naive": {}, "v4_two_level": TILE})
    assert table.columns == ("", "v0", "v4")
    cells = {row[0].partition(" –")[0]: row[1:] for row in table.rows}
    assert cells["QGMMA"] == ("–", "4") and cells["FFMA"][1] == "64" and cells["bytes spilled"] == ("0", "0")
    assert int(cells["UTMALDG"][1]) >= 3 and "not run" in table.caption


@compiles
def test_rungs_with_one_number_keep_their_names():
    assert views.machine_codes({"v1_mma": {}, "v1_wgmma": {"BN": 64}}).columns == ("", "v1_mma", "v1_wgmma")


@compiles
def test_control_bits_are_those_of_the_promotion():
    shown = views.control_bits(jit.build("v4_two_level", **TILE).cubin, rows=8)
    finding, *rows = str(shown).splitlines()
    assert "neighbours alternate" in finding and len(rows) == 8
    assert sum("FFMA" in row for row in rows) == 8 and sum("yields" in row for row in rows) == 4
