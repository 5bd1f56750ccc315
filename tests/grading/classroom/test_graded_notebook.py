"""The graded notebook as pages show it: a student's words are all there, and none of them is alive."""

import copy
import json
from collections import Counter
from pathlib import Path

import pytest
from short_course import make_course

from course_lib.grading.classroom import notebook
from course_lib.grading.classroom.submission import Cell, read
from course_lib.grading.classroom.verdict import UNREADABLE
from course_lib.grading.report import Report

GRADE_IDS = {"01.count": "01-count-points", "01.dot": "01-dot-points"}
ALIVE = ("script", "img", "iframe", "object", "embed", "svg", "a", "link", "style", "form", "meta", "base")
HOSTILE = (
    """<img src=x onerror="alert(1)"> <script>alert(2)</script> <b>HERE</b> [x](javascript:alert(3))""",
    "![HERE](x.png) <https://example.org> <svg onload=alert(4)> <a href='javascript:alert(5)'>x</a>",
    "```\n<script>alert(6)</script>\n```\nHERE ~~~\n<img src=x onerror=alert(7)>\n~~~",
    "`````````` HERE\n``````````\n\n<img src=x onerror=alert(8)>",
    "\n\n    HERE\n\n</code></pre><script>alert(9)</script>",
    "$$ HERE <img src=x onerror=alert(10)> $$ \\begin{x}<script>alert(11)</script>\\end{x}",
    "$\\href{javascript:alert(12)}{HERE}$ and \\\\[ <img src=x onerror=alert(13)> \\\\]",
    "<!-- HERE --><script>alert(14)</script>\x0b\x0c\x85\u2028<img src=x onerror=alert(15)>",
    "HERE\r\n\t```\r<img src=x onerror=alert(16)>\n> ```\n> <iframe src=javascript:alert(17)>",
    "---\nHERE\n...\n{{ 7*7 }}{% raw %}<style>*{display:none}</style><?php x ?><![CDATA[<script>]]>",
)


@pytest.fixture(scope="module")
def release(tmp_path_factory) -> dict:
    """The notebook that was handed out."""
    root = make_course(tmp_path_factory.mktemp("course"))
    return json.loads((root / "solutions" / "short" / "short.ipynb").read_text())


def no_verdict() -> dict:
    return {"tasks": []}


def handed_in(release: dict, texts: tuple[str, ...]) -> tuple[Cell, ...]:
    """Return the cells of a notebook with these texts in cells of every kind, and in place of the answers."""
    submitted = copy.deepcopy(release)
    drop = {"text/html": "<script>alert('output')</script>"}
    shown = [{"output_type": "display_data", "data": drop, "metadata": {}}]
    for number, cell in enumerate(submitted["cells"]):
        if cell["metadata"].get("nbgrader", {}).get("solution"):
            cell |= {"cell_type": ("markdown", "raw")[number % 2], "source": texts[0]}
    for kind in ("markdown", "raw", "code", "heading"):
        for text in texts:
            attached = {"x.png": {"image/svg+xml": "<svg onload=alert('attachment')>"}}
            more = {"attachments": attached, "outputs": shown, "metadata": {"raw_mimetype": "text/html"}}
            submitted["cells"].append({"cell_type": kind, "source": text, "execution_count": 1, **more})
    return read(json.dumps(submitted).encode()).cells


def pages(made: dict) -> list:
    """Return the notebook as Jupyter exports it and as nbgrader's form grader shows it."""
    import bs4
    import nbformat
    import nbgrader.server_extensions.formgrader as form_grader
    from nbconvert.exporters import HTMLExporter

    notebook = nbformat.reads(json.dumps(made), as_version=4)
    about = {"index": 0, "total": 1, "base_url": "", "student": "ada", "notebook_path": "x"}
    templates = [str(Path(form_grader.__file__).parent / "templates")]
    exporters = HTMLExporter(), HTMLExporter(template_name="formgrade", extra_template_basedirs=templates)
    bodies = [exporter.from_notebook_node(notebook, resources=dict(about))[0] for exporter in exporters]
    return [bs4.BeautifulSoup(body, "html.parser") for body in bodies]


def alive(page) -> Counter:
    """Return what a page does by itself: tags that load or run something, handlers, addresses."""
    found = Counter(tag.name for tag in page.find_all(ALIVE))
    for tag in page.find_all(True):
        found.update(f"{tag.name} {name}" for name in tag.attrs if name.startswith("on"))
        found.update(str(tag[name]) for name in ("href", "src", "action", "formaction") if name in tag.attrs)
    return found


def where_formulas_are_looked_for(page) -> str:
    """Return the text in which MathJax would look: not in code, nor where a class forbids it."""
    page = copy.copy(page)
    for tag in page.find_all(["pre", "code", "script", "style", "textarea"]):
        tag.decompose()
    for tag in page.find_all(class_="tex2jax_ignore"):
        tag.decompose()
    return page.get_text()


def test_no_word_of_a_student_is_alive(release):
    """The same page with harmless words loads and runs exactly as much."""
    quiet = notebook.graded(release, handed_in(release, ("HERE",)), no_verdict(), {})
    harmless_pages = pages(quiet)
    for text in HOSTILE:
        made = notebook.graded(release, handed_in(release, (text,)), no_verdict(), {})
        for hostile, harmless in zip(pages(made), harmless_pages, strict=True):
            assert alive(hostile) == alive(harmless), text
            assert hostile.get_text().count("HERE") == harmless.get_text().count("HERE") > 0, text
            assert "alert" not in where_formulas_are_looked_for(hostile), text
    own = [cell for cell in quiet["cells"] if cell["id"].startswith("own-")]
    assert len(own) == 4  # and nothing else that came with them
    assert not any("attachments" in cell or cell.get("outputs") or cell["metadata"] for cell in own)


def test_a_report_with_hostile_words_is_not_alive(release):
    text = HOSTILE[0] + HOSTILE[6] + '"><script>`</div>'

    def told(words: str) -> dict:
        rows = [[words, words, words]]
        mismatch = {"says": [words], "got": words, "want": "float64", "rows": rows, "wrong": 9, "total": 9}
        report = Report("01.count", words, 0.0, 1.0, "wrong", (words, f"`{words}`"), notes=(words,)).to_json()
        report["mismatch"] = {**mismatch, "errors": None, "form": "array"}
        task = {"id": "01.count", "points": 0.0, "feedback": report, "answer": words}
        return notebook.graded(release, (Cell("code", "x"),), {"tasks": [task]}, GRADE_IDS)

    for hostile, harmless in zip(pages(told(text)), pages(told("HERE")), strict=True):
        assert alive(hostile) == alive(harmless)
        assert "alert" not in where_formulas_are_looked_for(hostile)


def test_a_notebook_begins_as_it_was_handed_out_or_says_at_the_top_that_it_is_none(release):
    import nbformat

    given = [cell["id"] for cell in release["cells"]]
    for cell_id in given:  # code counts wherever it stands
        made = notebook.graded(release, (Cell("code", "def dot(): HERE", cell_id),), no_verdict(), {})
        assert "HERE" in json.dumps(made["cells"]), cell_id
    for data in (b"", b"{", b'{"cells": [', b'{"cells": []}', b"\xff\xfe"):
        made = notebook.graded(release, read(data).cells, no_verdict(), {})
        first = made["cells"][0]
        assert first["cell_type"] == "markdown" and UNREADABLE in first["source"], data
        assert [cell["id"] for cell in made["cells"][1:]] == given, data
        nbformat.validate(nbformat.reads(json.dumps(made), as_version=4))
    made = notebook.graded(release, handed_in(release, ("x",)), no_verdict(), {})
    assert made["cells"][0]["id"] == given[0]
    nbformat.validate(nbformat.reads(json.dumps(made), as_version=4))
