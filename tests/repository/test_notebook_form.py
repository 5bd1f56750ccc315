"""The form notebooks are kept in, and that the course's own notebooks are in it."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import nbformat
from hypothesis import given
from hypothesis import strategies as st

from course_lib import notebook_form
from course_lib.__main__ import main
from course_lib.commands import format_notebooks

ROOT = Path(__file__).resolve().parents[2]
OURS = sorted(notebook_form.find_notebooks([ROOT / "notebooks", ROOT / "solutions"]))
LONGEST_CELL = 25


def cell(kind="code", source="1 + 1", **more):
    extra = {"execution_count": 3, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "metadata": {}, "source": source} | extra | more


def notebook(*cells, **more):
    return json.dumps({"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5} | more)


def formed(*cells, **more):
    return json.loads(notebook_form.canonical(notebook(*cells, **more)))


# -- the course's own --------------------------------------------------------------------------------------


def test_ours_are_canonical_and_their_code_cells_short():
    assert {path.parts[-2] for path in OURS} >= {"notebooks"}
    assert [path.name for path in OURS if not notebook_form.is_canonical(path)] == [], "run 'make format'"
    for path in OURS:
        for each in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            short = each["cell_type"] != "code" or len(each["source"]) <= LONGEST_CELL
            assert short, f"{path.name}: cell {each['id']} is too long to teach"


# -- what the form is --------------------------------------------------------------------------------------


def test_outputs_counts_and_personal_metadata_go():
    output = {"output_type": "stream", "name": "stdout", "text": ["2\n"]}
    kept = {"nbgrader": {"grade": True}, "nine_circles": {"task": "01.matmul"}, "tags": ["raises"]}
    dirty = cell(outputs=[output], metadata=kept | {"scrolled": True, "vscode": {"languageId": "python"}})
    own = {"kernelspec": {"name": "my-env"}, "language_info": {"version": "3.11.7"}, "nine_circles": 1}
    result = formed(dirty, metadata=own)
    assert result["cells"][0]["outputs"] == [] and result["cells"][0]["execution_count"] is None
    assert result["cells"][0]["metadata"] == kept
    assert result["metadata"] == {
        "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
        "nine_circles": 1,
    }


def test_good_ids_stay_and_others_are_made_from_content():
    cells = [cell(id="mine"), cell(id="mine"), cell(source="2"), cell("markdown", "2"), cell(id="a b")]
    ids = [each["id"] for each in formed(*cells)["cells"]]
    assert ids[0] == "mine" and len(set(ids)) == 5
    assert ids == [each["id"] for each in formed(*cells)["cells"]]
    moved = [each["id"] for each in formed(cell(source="new"), *cells)["cells"]]
    assert moved[1:] == ids, "an id must not depend on the place of its cell"
    first = formed(cell())["cells"][0]["id"]
    ids = [each["id"] for each in formed(cell(), cell(), cell(id=first))["cells"]]
    assert len(set(ids)) == 3 and ids[2] == first


def test_trailing_whitespace_goes_and_text_stays():
    picture = {"a.png": {"image/png": "AAAA"}}
    assert formed(cell("markdown", "![](attachment:a.png)", attachments=picture))["cells"][0]["attachments"]
    result = formed(cell(source="a = 1  \r\n\n  b = 'ä × 2'\t\n\n"), cell("markdown", ["# A \n", "b"]))
    assert "".join(result["cells"][0]["source"]) == "a = 1\n\n  b = 'ä × 2'"
    assert result["cells"][1]["source"] == ["# A\n", "b"]
    folds = [
        formed(cell("markdown", text, metadata={"jp-MarkdownHeadingCollapsed": True}))["cells"][0]["metadata"]
        for text in ("## Second evening: more", "## Measure")
    ]
    assert folds == [{"jp-MarkdownHeadingCollapsed": True}, {}]


SOURCES = st.text(alphabet=st.sampled_from("ab \t\n\r\x0c\u2028é"), max_size=20)
CELLS = st.builds(
    lambda kind, source, name: cell(kind, source, **({"id": name} if name else {})),
    st.sampled_from(["code", "markdown", "raw"]),
    SOURCES,
    st.sampled_from([None, "x", "y", "", "not good"]),
)


@given(st.lists(CELLS, max_size=6))
def test_twice_is_the_same_as_once(cells):
    once = notebook_form.canonical(notebook(*cells))
    assert notebook_form.canonical(once) == once
    assert nbformat.writes(nbformat.reads(once, as_version=4)).rstrip("\n") == once.rstrip("\n")


# -- files -------------------------------------------------------------------------------------------------


DAMAGED = (
    ('{"cells": [', "not JSON"),
    ("<<<<<<< HEAD\n{}", "not JSON"),
    ('{"cells": {}}', "no list of cells"),
    ('{"cells": [], "nbformat": 3}', "format 3"),
    *((notebook(cell(kind)), "a cell that is none of code, markdown, raw") for kind in ("poem", None)),
    (notebook(cell(source={"x": 1})), "a cell whose source is not text"),
    (notebook(cell(metadata=[])), "metadata that is not an object"),
    (notebook(cell(source="\ud800")), "broken character"),
    (notebook(cell(metadata={"tags": "one"})), "no whole notebook"),
    ('{"ä": 1}', "not UTF-8"),
)


def test_damaged_gives_a_sentence_and_is_left_alone(tmp_path, capsys):
    path = tmp_path / "broken.ipynb"
    for text, fragment in DAMAGED:
        path.write_bytes(text.encode("latin-1" if "ä" in text else "utf-8"))
        assert main(["format", str(path)]) == 1, text
        said = capsys.readouterr().err.strip()
        assert fragment in said and said.startswith("broken.ipynb") and "\n" not in said, text
        assert os.listdir(tmp_path) == ["broken.ipynb"], text


def test_check_changes_nothing_and_format_does(tmp_path, capsys):
    path = tmp_path / "chapter.ipynb"
    path.write_text(notebook(cell()))
    path.chmod(0o640)
    before = path.read_bytes()
    assert main(["format", "--check", str(tmp_path)]) == 1
    assert path.read_bytes() == before and "would change" in capsys.readouterr().out
    assert main(["format", str(tmp_path)]) == 0
    assert "changed" in capsys.readouterr().out
    assert main(["format", "--check", str(tmp_path)]) == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_generated_exercises_are_not_touched(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(format_notebooks, "PROJECT", tmp_path)
    path = tmp_path / "exercises" / "01" / "01.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(notebook(cell()))
    before = path.read_bytes()
    assert main(["format", str(path)]) == 1
    assert "make exercises" in capsys.readouterr().err and path.read_bytes() == before
    assert main(["format"]) == 0, "the default folders leave exercises/ out"
    assert path.read_bytes() == before
