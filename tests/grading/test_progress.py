"""What was passed is remembered, and the progress page says it: honestly, and whatever the file holds."""

import re
import sys
import warnings
from xml.etree import ElementTree

import pytest
from tools.html_page import HtmlPage

from course_lib import views
from course_lib.grading import check, hint, record, registry
from course_lib.grading.sources import load
from course_lib.measure.store import Store
from course_lib.views import tasks_done

RIGHT = "def dot(row, col):\n    return sum(a * b for a, b in zip(row, col))\n"
FAULTY = "def dot(row, col):\n    return 0.0\n"


@pytest.fixture(autouse=True)
def two_chapters(monkeypatch):
    """The page of a course of two chapters, however many there are."""
    monkeypatch.setattr(registry, "CHAPTERS", {name: registry.CHAPTERS[name] for name in ("01", "02")})


DAYS = ("2026-05-03T12:00:00+00:00", "2026-05-09T12:00:00+00:00")


@pytest.fixture(autouse=True)
def fresh_session(monkeypatch):
    module = sys.modules["course_lib.grading.check"]
    monkeypatch.setattr(module, "_hints_given", {})
    monkeypatch.setattr(module, "_latest", {})


@pytest.fixture
def file(private_data_folder):
    """The file of the record."""
    return private_data_folder / "tasks.json"


def answer(text: str):
    return load(text, "dot")


def result(state: str, points: float, day: str = DAYS[0], max_points: float = 1.0) -> dict:
    return {"state": state, "points": points, "max_points": max_points, "when": day}


def entry(best=None, latest=None, tries=1, hints=0) -> dict:
    return {"best": best, "latest": latest or best, "tries": tries, "hints": hints, "answer": "ab"}


def save(**entries) -> None:
    Store("tasks").update(lambda values: values.update(entries))


def line_of(page: str, id: str) -> str:
    """Return the line of a task in the page's text, with the remark below it."""
    lines = page.splitlines()
    place = next(n for n, line in enumerate(lines) if f" {id} " in line)
    remark = lines[place + 1] if lines[place + 1].startswith("      ") else ""
    return lines[place] + remark


# --- the record ---


def test_a_check_is_remembered_with_the_best_and_the_latest():
    check("01.dot", answer(RIGHT))
    check("01.dot", answer(FAULTY))
    known, unreadable = record.records()
    assert (known["01.dot"].best.state, known["01.dot"].latest.state) == ("right", "wrong")
    assert (known["01.dot"].best.points, known["01.dot"].latest.points) == (1.0, 0.0)
    assert known["01.dot"].tries == 2
    assert unreadable == 0


def test_the_same_answer_checked_again_is_no_new_try():
    for text in (RIGHT, RIGHT, FAULTY, FAULTY, RIGHT):
        check("01.dot", answer(text))
    check("01.dot", lambda row, col: 0.0)
    check("01.dot", lambda row, col: 0.0)
    assert record.records()[0]["01.dot"].tries == 4


def test_what_is_not_started_leaves_the_record_alone(file):
    stub = answer("def dot(row, col):\n    raise NotImplementedError\n")
    for nothing in (None, ..., stub):
        check("01.dot", nothing)
        assert not file.exists(), nothing
    check("01.dot", answer(RIGHT))
    before = file.read_bytes()
    for nothing in (None, ..., stub):
        check("01.dot", nothing)
        assert file.read_bytes() == before, nothing


def test_no_word_of_the_answer_is_kept(file):
    check("01.dot", answer(RIGHT.replace("return", "secret_name = 1\n    return")))
    assert "secret_name" not in file.read_text() and "zip" not in file.read_text()
    assert len(file.read_bytes()) < 700


def test_hints_are_counted_once_each_and_across_sessions(monkeypatch):
    for _ in range(2):
        hint("01.dot")
    monkeypatch.setattr(sys.modules["course_lib.grading.check"], "_hints_given", {})
    hint("01.dot")
    assert record.records()[0]["01.dot"].hints == 2
    for _ in range(5):
        hint("01.dot")
    assert record.records()[0]["01.dot"].hints == 3


def test_the_earlier_of_equal_results_stays_the_best_and_a_result_of_other_points_gives_way():
    save(**{"01.dot": entry(result("right", 1.0))})
    check("01.dot", answer(RIGHT))
    known = record.records()[0]["01.dot"]
    assert known.best.when == DAYS[0] and known.latest.when > DAYS[0]
    save(**{"01.dot": entry(result("right", 5.0, max_points=5.0))})
    check("01.dot", answer(FAULTY))
    assert record.records()[0]["01.dot"].best.max_points == 1.0


def broken(file, kind: str) -> None:
    if kind == "a folder in its place":
        file.mkdir()
    elif kind == "a file for the folder":
        file.parent.rmdir()
        file.parent.write_text("")
    else:
        file.write_text({"damaged": "{", "newer": '{"format": 99}'}[kind])


@pytest.mark.parametrize("kind", ["damaged", "newer", "a folder in its place", "a file for the folder"])
def test_trouble_with_the_file_reaches_no_check_but_the_page(kind, file, capsys):
    broken(file, kind)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = str(views.progress())
        assert check("01.dot", answer(RIGHT)).passed
        hint("01.dot")
        page = str(views.progress())
    assert capsys.readouterr().err == ""
    assert "No task is tried yet" not in before or kind == "a file for the folder"
    assert "✓ passed" in line_of(page, "01.dot") and "1 hint" in line_of(page, "01.dot")
    assert str(file) in page  # the sentence about the trouble


def test_a_bug_in_the_record_reaches_no_check(monkeypatch):
    def fails(change):
        raise RuntimeError("no such thing")

    check("01.dot", None)
    monkeypatch.setattr(record._store(), "update", fails)
    assert check("01.dot", answer(RIGHT)).passed
    assert "RuntimeError: no such thing" in str(views.progress())


ODD = [
    3,
    {},
    entry(result("right", 9.0)),
    entry(result("right", True)),
    entry(result("right", float("nan"))),
    entry(result("excellent", 1.0)),
    entry(result("right", 1.0, day="yesterday")),
    entry(result("right", 1.0, day=None)),
    entry(result("right", 1.0), tries="many"),
    entry(result("right", 1.0), hints=-1),
    entry(result("right", 1.0) | {"extra": 1}),
    entry(best=None, latest=result("right", 1.0)),
]


def test_an_entry_that_makes_no_sense_counts_as_nothing_and_is_said():
    for odd in ODD:
        save(**{"01.dot": odd})
        page = str(views.progress())
        assert "One entry of the record cannot be read" in page, odd
        assert "0 of 13 passed" in page, odd
        check("01.dot", answer(RIGHT))
        assert "✓ passed" in line_of(str(views.progress()), "01.dot"), odd


# --- the page ---


def test_an_empty_page_says_how_to_begin():
    assert tasks_done.ChapterTasks("00", ()).heading == "00 Start here"
    assert tasks_done.ChapterTasks("C", ()).heading == "C: distributed training"
    page = str(views.progress())
    assert "No task is tried yet. Begin with 01.count" in page
    assert "about 5 minutes, in exercises/01_python_loops/01_python_loops.ipynb" in page
    assert "about 70 minutes left" in page
    assert "01.dot" not in page  # no tables before there is something in them


def test_the_page_tells_what_each_task_gave_and_what_is_next():
    save(
        **{
            "01.count": entry(result("right", 1.0)),
            "01.dot": entry(result("right", 1.0), result("wrong", 0.0, DAYS[1]), tries=3, hints=2),
            "01.alias": entry(result("wrong", 0.0, max_points=2.0)),
            "01.faster": entry(result("partly", 2.0, max_points=3.0), result("partly", 1.0, DAYS[1], 3.0)),
        }
    )
    page = str(views.progress())
    assert "2 of 13 passed, 4 of 30 points" in page
    assert "01 Python loops: 2 of 7 passed, 4 of 14 points, about 60 minutes left" in page
    assert "Next: 01.rows, Only what is there: about 10 minutes." in page
    assert re.search(r"✓ passed .* 1 of 1 .*●○○○○   5 min, 1 try", line_of(page, "01.count"))
    assert line_of(page, "01.count").endswith("passed on 3 May 2026")
    assert "3 tries, 2 hints" in line_of(page, "01.dot")
    assert "passed on 3 May 2026; the latest check on 9 May 2026 found a fault" in line_of(page, "01.dot")
    assert "✗ not right yet" in line_of(page, "01.alias")
    assert "◐ partly" in line_of(page, "01.faster")
    assert "best on 3 May 2026; the latest check on 9 May 2026 gave 1 of 3" in line_of(page, "01.faster")
    assert "○ open" in line_of(page, "01.rows") and "– of 3" in line_of(page, "01.rows")
    assert "02.change" not in page  # an untouched chapter is one line


def test_next_is_in_the_chapter_worked_on_last():
    save(**{"01.count": entry(result("right", 1.0)), "02.bug": entry(result("right", 1.0, DAYS[1]))})
    assert "Next: 02.strides" in str(views.progress())
    assert "Next: 01.dot" in str(views.progress("01"))


def test_even_a_full_page_claims_no_more_than_the_visible_tests():
    for task in registry.tasks("01"):
        save(**{task.id: entry(result("right", task.points, max_points=task.points))})
    page = views.progress("01")
    for text in (str(page), page._repr_html_()):
        assert "all tests" not in text.lower()
        assert "grading may use other inputs" in text
        assert "with the visible inputs" in text
    assert "7 of 7 passed, 14 of 14 points, no task open" in str(page)


def test_tasks_with_other_points_must_be_checked_again():
    save(**{"01.dot": entry(result("right", 2.0, max_points=2.0))})
    page = str(views.progress("01"))
    assert "0 of 7 passed, 0 of 14 points" in page
    assert "↻ check again" in line_of(page, "01.dot")
    assert "2 of 2 points on 3 May 2026; the task is worth 1 now" in line_of(page, "01.dot")


def test_tasks_that_are_gone_are_named_and_count_for_nothing():
    save(**{f"01.old{n}": entry(result("right", 1.0)) for n in range(7)})
    page = str(views.progress())
    assert "0 of 13 passed" in page and "No task is tried yet" in page
    assert "7 tasks that are not in this version of the course: 01.old0, " in page and ", …" in page


@pytest.fixture
def page():
    save(
        **{
            "01.dot": entry(result("right", 1.0)),
            "01.alias": entry(result("wrong", 0.0, max_points=2.0)),
            "<b>01.evil": entry(result("right", 1.0)),
        }
    )
    return views.progress()


def test_the_page_needs_no_colour_no_script_and_no_eyes(page):
    html = page._repr_html_()
    read = HtmlPage(html)
    assert not {"script", "b01", "button", "input"} & {tag for tag, _ in read.tags}
    assert "<b>01.evil" not in html and "&lt;b&gt;01.evil" in html
    scopes = [given.get("scope") for tag, given in read.tags if tag == "th"]
    assert scopes.count("col") == 7 and scopes.count("row") == 7 and None not in scopes
    for tag, given in read.tags:
        if tag in ("td", "th", "tr"):
            assert "background:" in given["style"]
    for said in ("✓", "passed", "✗", "not right yet", "○", "open"):
        assert said in read.text


def test_the_bar_says_in_words_what_it_shows(page):
    drawings = [ElementTree.fromstring(one) for one in re.findall(r"<svg.*?</svg>", page.body, re.DOTALL)]
    assert [drawing.get("role") for drawing in drawings] == ["img", "img"]
    label = drawings[0].get("aria-label")
    assert "1 of 7 passed, 1 of 14 points" in label
    assert "01.dot passed, 1 of 1" in label and "01.count open, – of 1" in label
    signs = [part.text for part in drawings[0] if part.tag.endswith("text")]
    assert signs == ["○", "✓", "○", "✗", "○", "○", "○"]


def test_the_assignment_is_linked_from_where_the_notebook_is(page, monkeypatch, tmp_path):
    from course_lib.views import tasks_done

    monkeypatch.chdir(tasks_done.EXERCISES / "01_python_loops")
    links = [given["href"] for tag, given in HtmlPage(views.progress().body).tags if tag == "a"]
    assert links == ["01_python_loops.ipynb", "../02_compiled_loops/02_compiled_loops.ipynb"]
    monkeypatch.chdir(tmp_path)  # a notebook elsewhere: a link out of its folder would be refused
    elsewhere = views.progress()
    assert "<a " not in elsewhere.body and "exercises/01_python_loops/01_python_loops.ipynb" in elsewhere.body


def luminance(colour: str) -> float:
    """Return the relative luminance of #rrggbb, as WCAG 2 defines it."""
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_every_sign_can_be_read_on_its_ground():
    from course_lib.views.tasks_done import COLOURS, SIGNS

    assert COLOURS.keys() == SIGNS.keys() and len(set(SIGNS.values())) == len(SIGNS)
    for ground, ink, in_table in COLOURS.values():
        for pair in ((ground, ink), ("#ffffff", in_table)):
            dark, light = sorted(map(luminance, pair))
            assert (light + 0.05) / (dark + 0.05) >= 4.5, pair
