"""Intake: every layout gives one record per student, and every record the right notebook."""

from __future__ import annotations

import os
import re
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from intake_tools import GOOD, HERE, NOTEBOOK, packed, put, taken

from course_lib.grading.classroom import names
from course_lib.grading.classroom.intake import IntakeError, receive

# --- layouts -----------------------------------------------------------------------------------------------


def test_nbgrader_layout_with_other_assignments(tmp_path):
    put(tmp_path / f"ada/{HERE}/{HERE}.ipynb", b"hers")
    put(tmp_path / f"ada/{HERE}/timestamp.txt", b"2024-01-31 12:00:00.000000 UTC\n")
    put(tmp_path / f"ada/{HERE}/{HERE}-Copy1.ipynb", b"a copy")
    put(tmp_path / "ada/02_compiled_loops/02_compiled_loops.ipynb")
    put(tmp_path / "bob/02_compiled_loops/02_compiled_loops.ipynb")
    put(tmp_path / "bob/02_compiled_loops/more.ipynb")
    ada, bob = receive(tmp_path, HERE)
    assert (ada.student, ada.name, ada.received_at) == (
        "ada",
        f"{HERE}.ipynb",
        "2024-01-31 12:00:00.000000 UTC",
    )
    assert ada.read() == (b"hers", ())
    assert bob.read()[0] is None and "only for other assignments (02_compiled_loops/" in bob.problems[-1]
    other = {one.student: one for one in receive(tmp_path, "02_compiled_loops")}
    assert other["ada"].read() == (*GOOD[:1], ()) and other["bob"].received_at is None


def test_a_folder_or_a_file_each(tmp_path):
    put(tmp_path / "ada/homework.ipynb")
    put(tmp_path / "bob.ipynb")
    put(tmp_path / "cy.ipynb.txt")
    put(tmp_path / "dee.zip", packed(("work/x.ipynb", NOTEBOOK)))
    put(tmp_path / "grades.csv")
    put(tmp_path / ".DS_Store")
    (tmp_path / "eve").mkdir()
    found = taken(tmp_path)
    assert found.pop("eve") == (
        None,
        "Handed in no notebook (no other file either): ask for a file that ends in .ipynb.",
    )
    assert found == {"ada": GOOD, "bob": GOOD, "cy": GOOD, "dee": GOOD}


MOODLE = {
    "Zoë O'Brien_101_assignsubmission_file_/homework.ipynb": "Zoë_OBrien",
    "Doe, Jane_102_assignsubmission_file/sub/homework.ipynb": "Doe_Jane",
    "王 小明_103_assignsubmission_file_Doe, Jane_102_assignsubmission_file_x.ipynb": "王_小明",
    "Ana María_104_assignsubmission_file_/task.zip": "Ana_María",
}


def moodle_members():
    content = {"task.zip": packed(("a/b/x.ipynb", NOTEBOOK))}
    members = [(name, content.get(name.split("/")[-1], NOTEBOOK)) for name in MOODLE]
    typed = "Zoë O'Brien_101_assignsubmission_onlinetext_/onlinetext.html"
    return [*members, (typed, b"hello"), ("Max_105_assignsubmission_onlinetext_onlinetext.html", b"hello")]


def moodle_expected():
    return {**dict.fromkeys(MOODLE.values(), GOOD), "Max": (None, TYPED)}


TYPED = "Handed in text or a web address instead of a file: ask for the notebook."


def test_moodle(tmp_path):
    for name, content in moodle_members():
        put(tmp_path / "folder" / name, content)
    assert taken(tmp_path / "folder") == moodle_expected()
    for around in ("", "course-01-57731/", "download/"):
        junk = [("__MACOSX/._x.ipynb", b"?"), (f"{around}.DS_Store", b"?")]
        members = [(around + name, content) for name, content in moodle_members()]
        assert taken(put(tmp_path / "download.zip", packed(*members, *junk))) == moodle_expected(), around
    for number in (7, 8, 9):  # marking blind: all are kept apart, without alarm
        put(tmp_path / f"blind/Participant_{number}_assignsubmission_file_/x.ipynb")
        put(tmp_path / f"blind/Participant_{number}_assignsubmission_file_/timestamp.txt")  # their own
    assert taken(tmp_path / "blind") == {f"Participant_{number}": GOOD for number in (7, 8, 9)}


def test_canvas(tmp_path):
    put(tmp_path / "doejane_12_100_x.ipynb", b"first")
    put(tmp_path / "doejane_12_103_x-1.ipynb", b"second")
    put(tmp_path / "doejane_12_102_x-2.ipynb", b"third")
    put(tmp_path / "roe_LATE_13_104_Doe_7_assignsubmission_file_x.ipynb")
    put(tmp_path / "poe_14_text.html", b"hello")
    put(tmp_path / "moe_LATE_15_link.html", b"hello")
    put(tmp_path / "anon_a1B2c_LATE_105_x.ipynb")
    found = taken(tmp_path)
    assert (
        found["doejane_12"][0] == b"third" and "x-2.ipynb was taken as the newest" in found["doejane_12"][1]
    )
    assert found["roe_13"] == found["anon_a1B2c"] == (NOTEBOOK, "Handed in late, says Canvas.")
    assert found["poe_14"] == (None, TYPED)
    assert found["moe_15"] == (None, f"Handed in late, says Canvas. {TYPED}")
    assert len(found) == 5


AROUND = [
    (["w/ada/x.ipynb", "w/bob/x.ipynb"], ["ada", "bob"]),
    (["w/ada.ipynb", "w/bob.ipynb"], ["ada", "bob"]),
    (["w/ada 01_python_loops.ipynb", "w/bob 01_python_loops.ipynb"], 2),
    ([f"w/ada/{HERE}/{HERE}.ipynb"], ["ada"]),
    ([f"ada/{HERE}/{HERE}.ipynb"], ["ada"]),
    (["ada/x.ipynb"], ["ada"]),
    ([f"ada/{HERE}.ipynb", "ada/notes.ipynb"], ["ada"]),
    (["w/doe_1_2_x.ipynb"], ["doe_1"]),
    (["ada.ipynb"], ["ada"]),
]


def test_one_folder_around_everything(tmp_path):
    for case, (files, students) in enumerate(AROUND):
        zipped = put(tmp_path / f"class{case}.zip", packed(*((name, NOTEBOOK) for name in files)))
        for name in files:
            put(tmp_path / f"folder{case}" / name)
        for source in (tmp_path / f"folder{case}", zipped):
            found = taken(source)
            assert students in (len(found), list(found)), files
            assert {data for data, _ in found.values()} == {NOTEBOOK}, files
    packed_around_its_folder = put(tmp_path / "class.zip", packed(("class/ada.ipynb", NOTEBOOK)))
    assert taken(packed_around_its_folder) == {"ada": GOOD}


# --- which notebook ----------------------------------------------------------------------------------------


SEVERAL = [
    (["notes.ipynb", "My 01-Python-Loops (final).ipynb"], 1, ""),
    (["a.ipynb", "deep/down/b.ipynb"], 1, "2 notebooks that may be meant"),
    (["x.ipynb", "x-2.ipynb", "x-10.ipynb"], 2, "x-10.ipynb was taken"),
    (["x (3).ipynb", "x (2).ipynb"], 0, "taken as the newest"),
    ([f"{HERE}/work.ipynb", f"{HERE}.ipynb"], 0, ""),
    (["x.ipynb", "all.zip"], 0, "a zip as well, which was not opened: all.zip."),
    (["x.ipynb", ".ipynb_checkpoints/x-checkpoint.ipynb"], 0, ""),
    (["data/x.csv", "X.IPYNB"], 1, ""),
]


def test_the_right_notebook_of_several(tmp_path):
    for case, (files, chosen, told) in enumerate(SEVERAL):
        folder = tmp_path / str(case)
        for age, name in enumerate(files):
            os.utime(put(folder / "ada" / name, name.encode()), (1e9 + age, 1e9 + age))
        put(folder / "bob/x.ipynb")
        data, problems = taken(folder)["ada"]
        assert data == files[chosen].encode(), files
        assert told in problems if told else not problems, files


# --- ids ---------------------------------------------------------------------------------------------------


def test_two_of_one_name_are_kept_apart_and_told(tmp_path):
    put(tmp_path / "ada/x.ipynb", b"folder")
    put(tmp_path / "ada.ipynb", b"file")
    put(tmp_path / "ada-2/x.ipynb", b"another")
    put(tmp_path / "Wei Wang_7_assignsubmission_file_/x.ipynb", b"7")
    put(tmp_path / "Wei Wang_8_assignsubmission_file_/x.ipynb", b"8")
    found = taken(tmp_path)
    assert found["ada-2"] == (b"another", "")
    assert found["Wei_Wang_7"][0] == b"7" and found["Wei_Wang_8"][0] == b"8"
    assert {found["ada"][0], found["ada-3"][0]} == {b"folder", b"file"}
    for one in ("ada", "ada-3", "Wei_Wang_7", "Wei_Wang_8"):
        assert "2 submissions go by the name" in found[one][1] and one in found[one][1]


IDS = {
    "ada@uni.edu": "ada@uni.edu",
    "Zoe\u0308 O’Brien": "Zo\xeb_OBrien",
    "..": "student",
    "=cmd|' /C calc'!A0": "cmd_C_calc_A0",
    "a/b\\c": "a_b_c",
    "con": "student_con",
    "\u202eada\u200b": "ada",
    "王小明": "王小明",
}


def test_ids_stay_recognisable():
    assert {name: names.safe_id(name) for name in IDS} == IDS


def same_file(student: str) -> str:
    """What a file system that knows neither case nor normal forms makes of a name."""
    return unicodedata.normalize("NFD", student.casefold()).casefold()


def is_safe(student: str) -> bool:
    bad = any(unicodedata.category(one)[0] not in "LMN" and one not in "-_.@" for one in student)
    device = unicodedata.normalize("NFKC", student.split(".")[0]).upper() in names.DEVICES
    fits = 0 < len(student) <= 64 and len(student.encode()) <= 160
    plain = (
        student == unicodedata.normalize("NFC", student) and student[0].isalnum() and student[-1] not in ". "
    )
    return fits and plain and not bad and not device


HARD = st.sampled_from(
    ["con", "NUL.", "..", "a" * 300, "王" * 90, "ada", "Ada", "ada-2", "ﬁ", "ß", "ss", "\udce4"]
)
ANY = st.text(st.characters(codec=None, exclude_characters="/\0"), max_size=80) | HARD


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(ANY, st.sampled_from(["", "7", "8", "9" * 70])), max_size=12))
def test_ids_are_always_safe_and_never_shared(people):
    ids = names.student_ids(people)
    assert len(ids) == len(people)
    assert len({same_file(own) for own, _ in ids}) == len(people)
    assert all(is_safe(own) for own, _ in ids), ids
    for own, sharing in ids:
        assert not sharing or own in sharing


@settings(max_examples=60, deadline=None)
@given(st.lists(ANY, unique=True, min_size=1, max_size=8))
@example(
    [". Suharto", ".", ". ", "  ", " ", "...", "ada ", "Ada ", " ada ", "\u202eada", "\u0301", "\u0301\u0301"]
)
def test_no_two_students_of_a_zip_are_ever_merged(tmp_path_factory, students):
    students = [one.encode("utf-8", "replace").decode() + "x" for one in students]
    students = sorted({one for one in students if not re.match(".:", one) and "\\" not in one})
    members = [(f"{student}/x.ipynb", b"%d" % n) for n, student in enumerate(students)]
    source = put(tmp_path_factory.mktemp("class") / "z.zip", packed(("zzz/x.ipynb", b"z"), *members))
    assert sorted(data for data, _ in taken(source).values()) == sorted(
        [b"z", *(b"%d" % n for n in range(len(students)))]
    )


# --- records and sources -----------------------------------------------------------------------------------


def test_a_source_that_is_none(tmp_path):
    put(tmp_path / "class/notes.txt", b"")
    put(tmp_path / "class.zip", packed(("__MACOSX/x.ipynb", b""), ("read.me", b"")))
    (tmp_path / "empty").mkdir()
    cases = {
        "clas": r"clas does not exist \(.* holds class, class.zip, empty.*\): give the folder",
        "class": r"no submissions in .*holds only notes.txt",
        "class.zip": r"no submissions in .*holds only read.me",
        "empty": r"no submissions in .*holds nothing",
        "class/notes.txt": r"notes.txt is not a zip, or one that was cut off: give the folder",
        "x" * 5000: r"cannot be reached|does not exist",
    }
    for source, told in cases.items():
        with pytest.raises(IntakeError, match=told):
            receive(tmp_path / source, HERE)
    assert issubclass(IntakeError, ValueError)
