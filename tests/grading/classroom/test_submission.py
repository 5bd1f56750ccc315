"""Reading notebooks: sound ones in every encoding and format, and broken or hostile ones without a fall."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.grading.classroom.submission import read

ANSWER = "def f(x):\n    return x + 1"


def notebook(*cells, **more) -> dict:
    return {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5, **more}


def code_cell(source=ANSWER, **more) -> dict:
    return {"cell_type": "code", "metadata": {}, "outputs": [], "source": source, **more}


def as_bytes(value, encoding: str = "utf-8") -> bytes:
    return json.dumps(value, ensure_ascii=False).encode(encoding)


# --- sound notebooks ----------------------------------------------------------------------------------------


def test_every_encoding_of_json_is_read():
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"):
        found = read(as_bytes(notebook(code_cell("é = 1  # ×")), encoding))
        assert (found.cells[0].text, found.problems) == ("é = 1  # ×", ()), encoding


def test_kinds_ids_grade_cells_and_line_ends():
    grader = {"nbgrader": {"grade": True, "grade_id": "01-points", "solution": False}}
    by_hand = {"nbgrader": {"grade": True, "grade_id": "essay", "solution": True}}
    text = {"cell_type": "markdown", "source": ["a = 1\r\n", "b = 2\r", "c = 3"], "metadata": {}}
    cells = read(
        as_bytes(notebook(text, code_cell(id="abc", metadata=grader), code_cell(metadata=by_hand)))
    ).cells
    assert [cell.kind for cell in cells] == ["markdown", "code", "code"]
    assert cells[0].text == "a = 1\nb = 2\nc = 3"
    assert (cells[1].id, cells[1].grade_id, cells[1].is_grade) == ("abc", "01-points", True)
    assert (cells[2].grade_id, cells[2].is_grade) == ("essay", False)


def test_format_3_is_read():
    cells = [{"cell_type": "code", "input": ["x = 1"]}, {"cell_type": "heading", "source": "T"}]
    found = read(as_bytes({"nbformat": 3, "worksheets": [{"cells": cells}]}))
    assert [(cell.kind, cell.text) for cell in found.cells] == [("code", "x = 1"), ("markdown", "T")]


# --- broken and hostile bytes -------------------------------------------------------------------------------

UNREADABLE = {
    "empty": (b"", "empty"),
    "blank": (b" \n\0", "empty"),
    "truncated": (as_bytes(notebook(code_cell()))[:-30], "not JSON"),
    "a program": (b"print('hello')", "not JSON"),
    "binary": (bytes(range(256)) * 10, "not JSON"),
    "deep": (b"[" * 200_000, "cannot be read as JSON"),
    "wide": (b"[" + b"[]," * 1_100_000, "million"),
    "a list": (b"[1, 2]", "not an object"),
    "a number": (b"17", "not an object"),
    "no cells": (b'{"cells": 3}', "no list of cells"),
    "sheets of nonsense": (b'{"worksheets": [1, {"cells": 2}], "cells": {}}', ""),
}


def test_what_cannot_be_read_is_said_in_a_sentence():
    for kind, (data, says) in UNREADABLE.items():
        found = read(data)
        assert found.cells == (), kind
        assert not says or (says in found.problems[-1] and found.problems[-1].endswith(".")), kind


def test_bad_bytes_and_lone_surrogates_are_replaced_and_told():
    found = read(as_bytes(notebook(code_cell("x = 'é'")), "latin-1"))
    assert found.cells[0].text == "x = '\ufffd'"
    assert "replaced" in found.problems[0]
    data = b'{"cells": [{"cell_type": "code", "id": "\\ud800", "source": "x = \'\\udfff\'"}]}'
    found = read(data)
    (found.cells[0].text + found.cells[0].id).encode()
    assert "replaced" in found.problems[0]


def test_odd_cells_are_left_out_and_named():
    odd = (3, None, {"cell_type": ["code"]}, code_cell(source=7), code_cell(metadata=[1], id=5))
    found = read(as_bytes(notebook(*odd)))
    assert [(cell.text, cell.id) for cell in found.cells] == [("", None), (ANSWER, None)]
    assert len(found.problems) == 3
    assert found.problems[0] == "Cell 1 is a int, not an object: it was left out (and so 1 more time)."


def test_raw_line_ends_and_numbers_with_a_million_digits_do_no_harm():
    data = (
        b'{"nbformat": ' + b"9" * 1_000_000 + b', "cells": [{"cell_type": "code", "source": "a = 1\nb = 2"}]}'
    )
    assert read(data).cells[0].text == "a = 1\nb = 2"


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just("code"),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["cells", "worksheets", "cell_type", "source", "input", "metadata", "nbgrader", "grade", "id"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=150, deadline=None)
@given(ODD | st.lists(ODD).map(lambda cells: {"cells": cells}))
def test_no_json_makes_it_fall(value):
    for cell in read(json.dumps(value).encode()).cells:
        assert isinstance(cell.text, str)
        assert cell.kind in ("code", "markdown", "raw")
        cell.text.encode()


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=60))
def test_no_bytes_make_it_fall(data):
    read(data)
    read(b'{"cells": [' + data)
