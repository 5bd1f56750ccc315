"""The pages of a class: hostile text stays text, students see nothing secret, the numbers are true."""

from __future__ import annotations

import copy
import csv
import json
import os
import random
import re
import time
from itertools import pairwise
from urllib.parse import unquote

import pytest
from pace import slowness
from tools.html_page import HtmlPage
from verdict_maker import ASSIGNMENT, RUN, classroom, verdict, with_text

from course_lib import whole_files
from course_lib.grading.classroom.pages.charts import bins, finding
from course_lib.grading.classroom.pages.publish import publish, write_csv
from course_lib.grading.classroom.pages.render import feedback_page, shown_source, summary_page, teacher_page
from course_lib.grading.classroom.pages.tally import ClassTally
from course_lib.grading.classroom.pages.text import cut, visible

HOSTILE = [
    "<script>alert(1)</script>",
    "</pre></style></title></script><img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)" x="',
    "' onfocus='alert(1)' autofocus='",
    "<!-- -->]]><![CDATA[ &lt;b&gt; &#60;i&#62;",
    "{{ 7 * 7 }}{% raw %}{# gone #}",
    "left\u202eright\u2066inner\u2069\u200f",
    "nul\x00 bell\x07 escape\x1b[2J delete\x7f next\x85",
    "surrogate \ud800 and \udfff",
    "line\nline\r\nline\rline\u2028line\u2029line\ttab\x0b\x0c",
    "x" * 300_000,
    "\n" * 50_000 + "end",
    "tower " + "a" + "\u0301" * 500,
    "../../etc/passwd",
    "javascript:alert(1)",
    "https://example.org/?a=<b>",
    '=HYPERLINK("http://x")',
    "`code` and `half",
    "%s {0} {x!r} $(rm) \\n",
    "\ufeff\ufffe\U000e0001\U0010ffff",
    "",
]


def summary(people, run=RUN) -> str:
    return summary_page(ClassTally(people), run)


PAGES = {
    "feedback": feedback_page,
    "teacher": teacher_page,
    "summary": lambda one: summary([one, {**one, "student": one["student"] + "2"}]),
    "run": lambda one: summary([], {**RUN, **dict.fromkeys(("assignment", "machine"), one["student"])}),
}


@pytest.fixture(scope="module")
def people() -> list[dict]:
    return classroom(60)


# --- hostile text -------------------------------------------------------------------------------------------

UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def test_hostile_text_stays_text(people):
    quiet = [HtmlPage(page) for page in (summary(people), summary([]), *map(feedback_page, people))]
    tags = {tag for page in quiet for tag, _ in page.tags} | {"ul", "br"}
    assert not tags & {"script", "img", "iframe", "object", "embed", "link", "form", "input", "base"}
    for text in HOSTILE:
        for kind, make in PAGES.items():
            page, case = make(with_text(text)), (kind, ascii(text[:24]))
            page.encode("utf-8")
            assert len(page) < 1_000_000, case
            read = HtmlPage(page)
            assert {tag for tag, _ in read.tags} <= tags, case
            names = {name for _, given in read.tags for name in given}
            assert not [name for name in names if name.startswith("on") or "src" in name], case
            assert all(link.startswith("./") for link in read.values("href")), case
            assert not UNSEEN.search(page), case


def test_no_page_asks_for_anything():
    for kind, make in PAGES.items():
        page = make(verdict(pick=lambda choices: choices[-1]))
        asked = re.search(r"https?:|//|\bsrc\s*=|<link|@import|url\((?!#)|<script|<iframe", page)
        assert not asked, (kind, asked)
        assert "default-src 'none'; style-src 'unsafe-inline'; img-src data:" in page
        assert page.index("Content-Security-Policy") < page.index("<title>")
        assert '<html lang="en">' in page and '<meta charset="utf-8">' in page


def test_what_cannot_be_seen_is_labelled_and_a_cut_says_how_much_is_missing():
    assert visible("a\u202eb\x00\x1b\ud800") == "a⟨U+202E⟩b␀␛⟨U+D800⟩"
    assert visible("a" + "\u0301" * 5) == "a\u0301\u0301\u0301⟨U+0301⟩⟨U+0301⟩"
    for name in ("José", "Zoë Müller", "дмитрий", "玛丽", "دانا", "O'Brien", "नीति", "Nguyễn Thị"):
        assert visible(name) == name
    assert cut("abcdef", 4) == "abcd … (2 more characters)" and cut("abcd", 4) == "abcd"


ENDLESS = {
    "lines": "x = 1\n" * 200_000,
    "one line": "x" * 1_000_000,
    "f-strings": "f'{" * 330_000,
    "quotes": "'\"" * 500_000,
    "brackets": "[" * 1_000_000,
    "backslashes": "\\" * 1_000_000,
    "blanks": " " * 1_000_000 + "x",
    "digits": "1_" * 500_000,
}


def test_an_endless_answer_is_cut_with_a_sentence_and_a_short_one_is_shown_whole():
    one = verdict()
    for kind, source in ENDLESS.items():
        one["tasks"][0]["answer"] = source
        start = time.perf_counter()
        page = feedback_page(one)
        seconds = time.perf_counter() - start
        assert seconds < 3 or seconds < 3 * slowness(), kind
        assert "Cut here: this is the beginning" in page and len(page) < 400_000, kind
    assert "<span" not in shown_source("match" + " " * 300)["lines"][0][1]  # colours would take for ever
    one["tasks"][0].update(answer="def operations(M, K, N):\n\n    return 'a<b'\n", lines=[7, 0, 9])
    page = feedback_page(one)
    code = page[page.index('<pre class="code">') : page.index("</pre>")]
    assert HtmlPage(code + "</pre>").text == "def operations(M, K, N):\n\n    return 'a<b'\n"
    assert HtmlPage(code + "</pre>").values("data-line") == ["7", "", "9"]
    assert "Cut here" not in page


# --- the student's page -------------------------------------------------------------------------------------


def test_feedback_shows_nothing_of_the_teachers_but_that_a_person_will_look():
    one = verdict(pick=lambda choices: choices[-1], manual=["SECRET whole"])
    for task in one["tasks"]:
        task.update(why="SECRET why", manual=["SECRET task"])
        task["teacher"] = {**task["teacher"], "lines": ["SECRET line"], "notes": ["SECRET input"]}
    page, shown = feedback_page(one), teacher_page(one)
    assert "SECRET" not in page and "A person will look" in page
    assert "A person will look" in feedback_page({**one, "manual": []})
    assert "A person will look" not in feedback_page(verdict())
    assert all(f"SECRET {word}" in shown for word in ("whole", "why", "task", "line", "input"))
    assert "Kernel 1.2 s, wall 1.4 s." in shown


def test_feedback_has_points_reports_the_file_and_what_to_do_next():
    text = HtmlPage(feedback_page(verdict("ada", lambda choices: choices[2 if len(choices) > 2 else 0]))).text
    assert "Feedback: 01_python_loops · ada" in text
    assert "3 of 14 points" in text  # only the speed task is right
    assert "✗" in text and "0 of 3 points" in text
    assert "expected" in text  # a table of wrong values
    assert "ada.ipynb" in text and "12 345 bytes" in text and "ab" * 32 in text
    page = feedback_page(verdict(pick=lambda choices: choices[-1]))
    steps = re.findall(r"<li>(.*?)</li>", page)
    missing = [float(re.search(r"([\d.]+) more point", step)[1]) for step in steps]
    assert missing == sorted(missing, reverse=True) and len(missing) >= 5
    assert "look for an input that the check does not try" in page
    assert "Every task is right" in feedback_page(verdict())


# --- the teacher's page about the class ---------------------------------------------------------------------


def test_who_needs_a_look_comes_first(people):
    assert "manual look</h2>" not in summary(people)
    changed = copy.deepcopy(people)
    changed[0]["manual"] = ["the file is truncated"]
    changed[4]["tasks"][1]["manual"] = ["killed twice"]
    text = HtmlPage(summary(changed)).text
    assert text.index("2 students need a manual look") < text.index("Submissions graded")
    assert re.search(r"student000\s*all of it\s*the file is truncated", text)
    assert re.search(r"student004\s*01\.dot\s*killed twice", text)


def test_grades_made_without_a_sandbox_say_so_and_nobody_is_invented(people):
    assert "without a sandbox" not in summary(people)
    assert "without a sandbox" in summary(people, {**RUN, "sandbox": False})
    assert "without a sandbox" in summary(people, {"assignment": ASSIGNMENT})
    text = HtmlPage(summary([])).text
    assert "No submission has been graded yet." in text and "Mean" not in text and "0 %" not in text


def test_the_counts_are_those_of_the_class(people):
    tally, page = ClassTally(people), summary(people)
    text = re.sub(r"\s*\n\s*", "", HtmlPage(page).text)
    assert f"Submissions graded{len(people)}" in text
    for task in tally.hardest_first:
        given = [one for each in people for one in each["tasks"] if one["id"] == task.id]
        counts = [sum(one["state"] == state for one in given) for state in ("right", "partly", "wrong")]
        share = sum(one["points"] for one in given) / sum(one["max_points"] for one in given)
        assert f"{task.title}{100 * share:.0f}\xa0%{''.join(map(str, counts))}" in text, task.id
    shares = [task.share for task in tally.hardest_first]
    assert shares == sorted(shares) and f"Hardest is {tally.hardest_first[0].id}" in text
    labels = [label for label in HtmlPage(page).values("aria-label") if len(label) > 60]
    assert any("Histogram" in label and "median" in label for label in labels)
    assert any("Stacked bars" in label and "not started" in label for label in labels)


def test_equal_mistakes_are_counted_once_each_by_name(people):
    one = ClassTally(people).mistakes[0][0]
    names = [
        each["student"]
        for each in people
        for task in each["tasks"]
        if (task["id"], task["why"]) == (one.task, one.why)
    ]
    assert one.students == names and len(names) > 1
    page = summary(people)
    part = page[page.index("Common wrong answers") :]
    assert re.search(rf"<h3>{len(names)} × ", part) and part.index(names[0]) < part.index("<details>")
    assert "Not started" not in part[: part.index("All students")]


def test_students_all_of_whose_answers_are_the_same_are_named_together_and_need_no_look(people):
    assert not ClassTally(people).alike
    changed = copy.deepcopy(people)
    for who, word in ((0, "same"), (3, "same"), (4, "other")):
        for task in changed[who]["tasks"]:
            task.update(answer=word * 200, state="right")
    tally, page = ClassTally(changed), summary(changed)
    assert tally.alike == [["student000", "student003"]] and tally.looks == ClassTally(people).looks
    part = page[page.index("letter for letter") : page.index("All students</h2>")]
    assert "student000" in part and "student003" in part and "student004" not in part


def test_every_total_is_in_its_bin_and_the_finding_holds():
    chance = random.Random(1)
    for _ in range(300):
        most = chance.choice([0.5, 1, 3, 7, 12, 20, 100, 1000])
        totals = sorted(most * chance.choice([0, 1, chance.random()]) for _ in range(chance.randint(1, 30)))
        width, counts = bins(totals, most)
        assert len(counts) <= 14 and width * len(counts) >= most
        below = [
            sum(total + 1e-9 * width < place * width for total in totals) for place in range(len(counts))
        ]
        assert counts == [after - before for before, after in pairwise([*below, len(totals)])]
        middle = totals[len(totals) // 2]
        assert sum(total >= middle for total in totals) * 2 >= len(totals)
        assert "students" in finding(totals, most, middle) or len(totals) == 1


# --- csv ----------------------------------------------------------------------------------------------------


def read_back(path) -> list[dict]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_csv_reads_back(tmp_path, people):
    people = [*people, verdict("Zoë", manual=["a", "b"])]
    people[-1]["tasks"][2]["manual"] = ["c"]
    write_csv(ClassTally(people), tmp_path / "grades.csv")
    assert (tmp_path / "grades.csv").read_bytes().startswith(b"\xef\xbb\xbf")
    rows = read_back(tmp_path / "grades.csv")
    for row, one in zip(rows, people, strict=True):  # by name
        points = {task["id"]: (str(round(task["points"], 3)), task["state"]) for task in one["tasks"]}
        assert row["student"] == one["student"] and row["max_points"] == "14"
        assert float(row["points"]) == sum(task["points"] for task in one["tasks"])
        assert {id: (row[id], row[f"{id} state"]) for id in points} == {
            id: (points.removesuffix(".0"), state) for id, (points, state) in points.items()
        }
    assert rows[-1]["manual"] == "a; b; 01.rows: c" and rows[-1]["received"] == "Zoë.ipynb"


FORMULAS = (
    "=1+1",
    "+1",
    "-1",
    "@A1",
    "\t=1",
    "\r=1",
    "\n=1",
    " =1",
    "＝1",
    "'=1",
    '"=1',
    "x;=1",
    "x\t=1",
    'x",=1',
)


def test_csv_holds_no_formula(tmp_path):
    for text in (*FORMULAS, *HOSTILE):
        write_csv(ClassTally([with_text(text)]), tmp_path / "grades.csv")
        (row,) = read_back(tmp_path / "grades.csv")
        free = [row["student"], row["manual"], row["received"], *row]
        assert not [cell for cell in free if re.match(r"[\s\"]*[=+\-@＝\t\r]", cell)], ascii(text[:24])
        assert not [cell for cell in free if re.search(r"[;,\t\"]\s*[=+\-@]", cell) or "\n" in cell]


# --- files --------------------------------------------------------------------------------------------------


def save(people: list[dict], folder) -> list:
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{number}.json" for number in range(len(people))]
    for path, one in zip(paths, people, strict=True):
        path.write_text(json.dumps(one))
    return paths


def tree(folder) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_publish_writes_every_page_in_its_place_and_every_link_leads_to_one(tmp_path, people):
    people = [*people[:5], verdict("Zoë #1 & co%41", manual=["odd"])]
    paths = save(people, tmp_path / "verdicts")
    done = publish(iter(paths), tmp_path / "out", RUN)
    written = tree(tmp_path / "out")
    for one in people:
        name = one["student"]
        assert f"feedback/{name}/{ASSIGNMENT}/{ASSIGNMENT}.html" in written
        assert f"teacher/{ASSIGNMENT}/{name}.html" in written
    assert len(written) == 2 * len(people) + 2
    assert (done.students, done.looks) == (len(people), 1)
    assert len(read_back(done.grades)) == len(people)
    assert done.summary.read_text(encoding="utf-8").count("<h1>") == 1
    links = 0
    for path in (tmp_path / "out").rglob("*.html"):
        for link in HtmlPage(path.read_text(encoding="utf-8")).values("href"):
            assert (path.parent / unquote(link)).is_file(), link
            links += 1
    assert links >= 2 * len(people)
    publish(reversed(paths), tmp_path / "out", RUN)
    assert tree(tmp_path / "out") == written


BAD_NAMES = [
    "",
    ".",
    "..",
    "...",
    "a/b",
    "a\\b",
    "/etc",
    "a\x00b",
    "a\u202eb",
    "x" * 300,
    "C:x",
    "a.",
    "\ud800",
    7,
]
UNFIT = [
    ([{"format": 2}], "format 2"),
    ([{"assignment": "02"}], "is about '02'"),
    ([{}, {}], "two verdicts on 'ada'"),
    *(([{"student": name}], "student's id") for name in BAD_NAMES),
]


def test_what_cannot_be_published_is_refused_with_a_sentence(tmp_path):
    broken = tmp_path / "broken.json"
    broken.write_text('{"format": 1, "stu')
    with pytest.raises(ValueError, match="cannot be read"):
        publish([broken], tmp_path / "out", RUN)
    for changes, said in UNFIT:
        paths = save([{**verdict(), **change} for change in changes], tmp_path / "verdicts")
        with pytest.raises(ValueError, match=said):
            publish(paths, tmp_path / "out", RUN)
    for name in BAD_NAMES:
        with pytest.raises(ValueError, match="assignment's name"):
            publish([], tmp_path / "out", {**RUN, "assignment": name})
    assert not [path for path in (tmp_path / "out").rglob("*.html") if "ada" not in str(path)]


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    whole_files.write(path, "old")

    def fail(*_):
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", fail)
        with pytest.raises(OSError, match="full"):
            whole_files.write(path, "new")
    assert tree(tmp_path) == {"page.html": b"old"}

    def meanwhile(*names):
        patch.undo()
        whole_files.write(path, "of another writer")
        os.replace(*names)

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", meanwhile)
        whole_files.write(path, "new")
    assert tree(tmp_path) == {"page.html": b"new"}
