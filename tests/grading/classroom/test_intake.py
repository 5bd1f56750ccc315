"""Intake: every layout gives one record per student, and nothing hostile costs anybody else."""

from __future__ import annotations

import errno
import io
import os
import pickle
import re
import socket
import struct
import unicodedata
import warnings
import zipfile
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.grading.classroom import intake, names, places, zips
from course_lib.grading.classroom.intake import MAX_NOTEBOOK_BYTES, IntakeError, receive

HERE = "01_python_loops"
NOTEBOOK = b'{"cells": []}'
LINK, PIPE = 0o120777, 0o010644


def put(path, content=NOTEBOOK):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def packed(*members, method=zipfile.ZIP_DEFLATED) -> bytes:
    """Return a zip of (name, content) or (name, content, mode) in memory."""
    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", method) as archive:
        warnings.simplefilter("ignore")  # a name twice is wanted
        for name, content, *mode in members:
            info = zipfile.ZipInfo(name, (2024, 1, 31, 12, 0, 0))
            info.filename = name  # as given, without what ZipInfo makes of it
            info.compress_type = method
            info.external_attr = (mode[0] if mode else 0o100644) << 16
            archive.writestr(info, content)
    return file.getvalue()


def taken(source, assignment=HERE, **options):
    """Return {student: (data, all problems in one text)}."""
    found = {}
    for one in receive(source, assignment, **options):
        assert one.student not in found
        data, problems = one.read()
        assert all(problem.endswith(".") and "\n" not in problem for problem in problems)
        found[one.student] = (data, " ".join(problems))
    return found


GOOD = (NOTEBOOK, "")


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


@pytest.mark.parametrize("stamp", [b"<script>", b"2024" * 1000, b"\xff\xfe", b""])
def test_a_strange_timestamp_is_left_out(tmp_path, stamp):
    put(tmp_path / f"ada/{HERE}/{HERE}.ipynb")
    put(tmp_path / f"ada/{HERE}/timestamp.txt", stamp)
    (ada,) = receive(tmp_path, HERE)
    assert ada.received_at is None and "timestamp.txt" in ada.problems[0] and ada.read()[0] == NOTEBOOK


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
    "王 小明_103_assignsubmission_file_homework.ipynb": "王_小明",
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


def test_moodle_folder(tmp_path):
    for name, content in moodle_members():
        put(tmp_path / name, content)
    assert taken(tmp_path) == moodle_expected()


@pytest.mark.parametrize("around", ["", "course-01-57731/", "download/"])
def test_moodle_zip(tmp_path, around):
    junk = [("__MACOSX/._x.ipynb", b"?"), (f"{around}.DS_Store", b"?")]
    members = [(around + name, content) for name, content in moodle_members()]
    assert taken(put(tmp_path / "download.zip", packed(*members, *junk))) == moodle_expected()


def test_moodle_marking_blind_keeps_all_apart_without_alarm(tmp_path):
    for number in (7, 8, 9):
        put(tmp_path / f"Participant_{number}_assignsubmission_file_/x.ipynb")
    assert taken(tmp_path) == {f"Participant_{number}": GOOD for number in (7, 8, 9)}


def test_canvas(tmp_path):
    put(tmp_path / "doejane_12_100_x.ipynb", b"first")
    put(tmp_path / "doejane_12_103_x-1.ipynb", b"second")
    put(tmp_path / "doejane_12_102_x-2.ipynb", b"third")
    put(tmp_path / "roe_LATE_13_104_x.ipynb")
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


def test_canvas_zip_of_the_whole_class(tmp_path):
    own = packed(("x.ipynb", b"zipped"))
    members = [("doe_1_2_x.ipynb", NOTEBOOK), ("roe_LATE_3_4_x.zip", own), ("poe_5_6_x.pdf", b"%PDF")]
    found = taken(put(tmp_path / "submissions.zip", packed(*members)))
    assert found["doe_1"] == GOOD
    assert found["roe_3"] == (b"zipped", "Handed in late, says Canvas.")
    assert found["poe_5"][0] is None and "poe_5_6_x.pdf" in found["poe_5"][1]


@pytest.mark.parametrize(
    ("files", "students"),
    [
        (["w/ada/x.ipynb", "w/bob/x.ipynb"], ["ada", "bob"]),
        (["w/ada.ipynb", "w/bob.ipynb"], ["ada", "bob"]),
        (["w/ada 01_python_loops.ipynb", "w/bob 01_python_loops.ipynb"], 2),
        ([f"w/ada/{HERE}/{HERE}.ipynb"], ["ada"]),
        ([f"ada/{HERE}/{HERE}.ipynb"], ["ada"]),
        (["ada/x.ipynb"], ["ada"]),
        ([f"ada/{HERE}.ipynb", "ada/notes.ipynb"], ["ada"]),
        (["w/doe_1_2_x.ipynb"], ["doe_1"]),
        (["ada.ipynb"], ["ada"]),
    ],
)
def test_one_folder_around_everything(tmp_path, files, students):
    zipped = put(tmp_path / "class.zip", packed(*((name, NOTEBOOK) for name in files)))
    for name in files:
        put(tmp_path / "folder" / name)
    for source in (tmp_path / "folder", zipped):
        found = taken(source)
        assert len(found) == students if isinstance(students, int) else list(found) == students
        assert {data for data, _ in found.values()} == {NOTEBOOK}


# --- which notebook ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "chosen", "told"),
    [
        (["notes.ipynb", "My 01-Python-Loops (final).ipynb"], 1, ""),
        (["a.ipynb", "deep/down/b.ipynb"], 1, "2 notebooks that may be meant"),
        (["x.ipynb", "x-2.ipynb", "x-10.ipynb"], 2, "x-10.ipynb was taken"),
        (["x (3).ipynb", "x (2).ipynb"], 0, "taken as the newest"),
        ([f"{HERE}/work.ipynb", f"{HERE}.ipynb"], 0, ""),
        (["x.ipynb", "all.zip"], 0, "a zip as well, which was not opened: all.zip."),
        (["x.ipynb", ".ipynb_checkpoints/x-checkpoint.ipynb"], 0, ""),
        (["data/x.csv", "X.IPYNB"], 1, ""),
    ],
)
def test_the_right_notebook_of_several(tmp_path, files, chosen, told):
    for age, name in enumerate(files):
        os.utime(put(tmp_path / "ada" / name, name.encode()), (1e9 + age, 1e9 + age))
    put(tmp_path / "bob/x.ipynb")
    data, problems = taken(tmp_path)["ada"]
    assert data == files[chosen].encode()
    assert told in problems if told else not problems


def test_further_names_of_the_notebook(tmp_path):
    put(tmp_path / "ada/loops.ipynb", b"this")
    put(tmp_path / "ada/zzz.ipynb", b"that")
    assert taken(tmp_path, names=("loops",)) == {"ada": (b"this", "")}


def test_a_repeated_member_name_is_told_and_the_last_taken(tmp_path):
    source = put(
        tmp_path / "c.zip", packed(("ada/x.ipynb", b"1"), ("ada/x.ipynb", b"2"), ("bob/x.ipynb", b"3"))
    )
    found = taken(source)
    assert (
        found["ada"][0] == b"2" and "x.ipynb, ada" not in found["ada"][1] and "2 notebooks" in found["ada"][1]
    )
    assert found["bob"] == (b"3", "")


# --- links, pipes and what cannot be opened ----------------------------------------------------------------


def link(path, target):
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.symlink_to(target)
    except OSError:
        pytest.skip("this system makes no links")


@pytest.mark.parametrize("target", ["absolute", "../secret.ipynb", "nowhere", "itself.ipynb", "/etc/passwd"])
def test_links_are_told_and_never_followed(tmp_path, target):
    secret = put(tmp_path / "secret.ipynb", b"the solution")
    source = tmp_path / "class"
    put(source / "bob/x.ipynb")
    link(source / "ada/itself.ipynb", secret if target == "absolute" else target)
    link(source / "eve", tmp_path)
    link(source / "flat.ipynb", secret)
    link(source / "zed/folder", tmp_path)
    link(source / "zip/x.zip", secret)
    put(source / "both/x.ipynb")
    link(source / f"both/{HERE}.ipynb", secret)
    found = taken(source)
    assert found.pop("bob") == GOOD
    both = found.pop("both")
    assert both[0] == NOTEBOOK
    for data, problems in [*found.values(), (None, both[1])]:
        assert data is None and "Handed in a link instead of a file" in problems
    assert set(found) == {"ada", "eve", "flat", "zed", "zip"}


@pytest.mark.parametrize("part", ["file", "folder"])
@pytest.mark.parametrize("by_path", [False, True])
def test_a_file_that_becomes_a_link_later_is_not_followed(tmp_path, monkeypatch, part, by_path):
    put(tmp_path / "secret/x.ipynb", b"the solution")
    file = put(tmp_path / "class/ada/sub/x.ipynb")
    (ada,) = receive(tmp_path / "class", HERE)
    assert ada.read() == (NOTEBOOK, ())
    if by_path:  # as on Windows
        monkeypatch.setattr(places.os, "supports_dir_fd", set())
        assert ada.read() == (NOTEBOOK, ())
    file.unlink()
    if part == "folder":
        file.parent.rmdir()
        link(file.parent, tmp_path / "secret")
    else:
        link(file, tmp_path / "secret/x.ipynb")
    data, problems = ada.read()
    assert data is None and len(problems) == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_pipes_and_sockets_do_not_block(tmp_path, monkeypatch):
    put(tmp_path / "bob/x.ipynb")
    (tmp_path / "ada").mkdir()
    os.mkfifo(tmp_path / "ada/x.ipynb")
    os.mkfifo(tmp_path / "pipe.ipynb")
    (tmp_path / "eve").mkdir()
    monkeypatch.chdir(tmp_path / "eve")  # a socket's path must be short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("x.ipynb")
        found = taken(tmp_path)
    assert found.pop("bob") == GOOD
    assert set(found) == {"ada", "eve", "pipe"}
    for data, problems in found.values():
        assert data is None and "a pipe, socket or device instead of a file" in problems


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.timeout(20)
def test_a_file_that_becomes_a_pipe_later_does_not_block(tmp_path):
    file = put(tmp_path / "ada/x.ipynb")
    (ada,) = receive(tmp_path, HERE)
    file.unlink()
    os.mkfifo(file)
    assert ada.read() == (None, ("x.ipynb is not a plain file.",))


def test_what_cannot_be_opened_costs_its_student_only(tmp_path, monkeypatch):
    put(tmp_path / "ada/x.ipynb")
    put(tmp_path / "bob/x.ipynb")
    put(tmp_path / "eve/x.ipynb")
    real_scandir, real_open = os.scandir, places._opened

    def scandir(path):
        if os.path.basename(path) == "ada":
            raise PermissionError(errno.EACCES, "Permission denied")
        return real_scandir(path)

    def opened(root, parts):
        if parts[0] == "bob":
            raise PermissionError(errno.EACCES, "Permission denied")
        return real_open(root, parts)

    monkeypatch.setattr(places.os, "scandir", scandir)
    monkeypatch.setattr(places, "_opened", opened)
    found = taken(tmp_path)
    assert found["ada"][0] is None and "cannot be looked into (Permission denied)" in found["ada"][1]
    assert found["bob"] == (None, "x.ipynb cannot be opened (Permission denied).")
    assert found["eve"] == GOOD


def test_whatever_goes_wrong_while_reading_becomes_a_problem(tmp_path, monkeypatch):
    put(tmp_path / "ada/x.ipynb")
    (ada,) = receive(tmp_path, HERE)
    monkeypatch.setattr(places, "_opened", lambda *_: 1 / 0)
    assert ada.read() == (None, ("x.ipynb cannot be read (ZeroDivisionError).",))


# --- odd files and folders ---------------------------------------------------------------------------------


def test_empty_files_odd_folders_and_deep_trees(tmp_path):
    put(tmp_path / "ada/x.ipynb", b"")
    (tmp_path / "bob/x.ipynb").mkdir(parents=True)
    (tmp_path / "x.ipynb").mkdir()
    put(tmp_path / "deep" / "/".join("d" * 30) / "x.ipynb")
    put(tmp_path / "eve/inner.ipynb/x.ipynb")
    found = taken(tmp_path)
    assert found["ada"] == (None, "x.ipynb is an empty file.")
    assert found["bob"][0] is None and found["x.ipynb"][0] is None
    assert "a folder with the name of a notebook" in found["x.ipynb"][1]
    assert found["deep"][0] is None and "lies too deep" in found["deep"][1]
    assert found["eve"] == GOOD


def test_too_large_a_file(tmp_path):
    with (tmp_path / "ada.ipynb").open("wb") as file:
        file.truncate(MAX_NOTEBOOK_BYTES + 1)
    with (tmp_path / "bob.ipynb").open("wb") as file:
        file.truncate(MAX_NOTEBOOK_BYTES)
    with (tmp_path / "eve.zip").open("wb") as file:
        file.truncate(10**11)  # a hole: takes no space
    found = taken(tmp_path)
    assert found["ada"] == (None, "ada.ipynb is larger than 20 MB.")
    assert len(found["bob"][0]) == MAX_NOTEBOOK_BYTES
    assert found["eve"] == (None, "eve.zip is larger than 50 MB.")


def test_very_many_files(tmp_path, monkeypatch):
    monkeypatch.setattr(intake, "MAX_KEPT", 50)
    monkeypatch.setattr(intake, "MAX_LOOKED_AT", 400)
    for number in range(300):
        put(tmp_path / f"ada/{number}.ipynb")
    put(tmp_path / f"ada/{HERE}.ipynb", b"this")
    for number in range(401):
        put(tmp_path / f"bob/{number}.txt")
    put(tmp_path / "eve/x.ipynb")
    found = taken(tmp_path)
    assert found["ada"] == (b"this", "")  # whatever the order: a fitting name is always kept
    assert "more than 400 files" in found["bob"][1]
    assert found["eve"] == GOOD


def test_names_that_are_not_utf8(tmp_path):
    try:
        for name in (b"bj\xf6rn", b"bj\xe4rn"):
            os.mkdir(os.fsencode(tmp_path) + b"/" + name)
            with open(os.path.join(os.fsencode(tmp_path), name, b"l\xf6sung.ipynb"), "wb") as file:
                file.write(name)
    except (OSError, UnicodeDecodeError):
        pytest.skip("this file system takes proper names only")
    records = receive(tmp_path, HERE)
    assert sorted(one.read()[0] for one in records) == [b"bj\xe4rn", b"bj\xf6rn"]
    for one in records:
        assert one.student.encode() and one.name == "l\N{REPLACEMENT CHARACTER}sung.ipynb"
        assert "2 submissions go by the name" in one.problems[0] and one.problems[0].encode()


def test_a_long_name_is_still_a_notebook(tmp_path):
    put(tmp_path / "ada" / ("x" * 240 + ".ipynb"))
    (ada,) = receive(tmp_path, HERE)
    assert ada.read() == (NOTEBOOK, ()) and len(ada.name) == 200


# --- hostile zips ------------------------------------------------------------------------------------------

SLIPS = [
    "../../eve/x.ipynb",
    "/etc/x.ipynb",
    "C:\\eve\\x.ipynb",
    "..\\..\\eve\\x.ipynb",
    "bob/../eve/x.ipynb",
]


@pytest.mark.parametrize("slip", SLIPS)
def test_zip_slip_of_the_class(tmp_path, slip):
    source = put(
        tmp_path / "in/class.zip", packed(("eve/x.ipynb", b"real"), ("bob/x.ipynb", b"b"), (slip, b"?"))
    )
    found = taken(source)
    assert found["bob"][0] == b"b" and b"real" in {data for data, _ in found.values()}
    (odd,) = [problems for data, problems in found.values() if data == b"?"]
    assert "path that leads out of it:" in odd and len(found) == 3
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["class.zip", "in"]  # nothing is extracted


@pytest.mark.parametrize("slip", SLIPS)
def test_zip_slip_of_a_student(tmp_path, slip):
    put(tmp_path / "ada/x.zip", packed((slip, b"hers")))
    put(tmp_path / "bob/x.zip", packed((slip, b"odd"), ("plain.ipynb", b"plain")))
    found = taken(tmp_path)
    assert found["ada"][0] == b"hers" and found["bob"][0] == b"plain"
    assert all("path that leads out of it:" in problems for _, problems in found.values())


def damaged(data: bytes) -> bytes:
    at = data.index(b"x.ipynb") + 12
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


def locked(data: bytes) -> bytes:
    at = data.index(b"PK\1\2") + 8
    return data[:at] + b"\1" + data[at + 1 :]


def lying(data: bytes, size: int = 5) -> bytes:
    """Claim another size in both headers."""
    at, local = data.index(b"PK\1\2") + 24, 22
    claim = struct.pack("<L", size)
    data = data[:local] + claim + data[local + 4 :]
    return data[:at] + claim + data[at + 4 :]


def bomb() -> bytes:
    """1 GB of zeros: packed in one megabyte, made without holding them."""
    pack = zlib.compressobj(9, zlib.DEFLATED, -15)
    piece = bytes(1 << 20)
    body = b"".join(pack.compress(piece) for _ in range(1024)) + pack.flush()
    head = struct.pack("<5H3L2H", 20, 0, 8, 0, 33, 0, len(body), 13, 7, 0)
    local = b"PK\3\4" + head + b"x.ipynb"
    entry = b"PK\1\2" + struct.pack("<H", 20) + head + struct.pack("<3H2L", 0, 0, 0, 0, 0) + b"x.ipynb"
    end = b"PK\5\6" + struct.pack("<4H2LH", 0, 0, 1, 1, len(entry), len(local) + len(body), 0)
    return local + body + entry + end


PLAIN = packed(("x.ipynb", b"0123456789" * 20), method=zipfile.ZIP_STORED)
HOSTILE = {
    "damaged": (lambda: damaged(PLAIN), "checksum is wrong"),
    "cut off": (lambda: PLAIN[:-30], "is no zip, or one that was cut off"),
    "beginning lost": (lambda: PLAIN[40:], "place is impossible"),
    "locked": (lambda: locked(PLAIN), "locked with a password"),
    "bomb": (bomb, "larger than 20 MB when unpacked"),
    "large": (lambda: packed(("x.ipynb", bytes(MAX_NOTEBOOK_BYTES + 1))), "larger than 20 MB when unpacked"),
    "link": (lambda: packed(("x.ipynb", b"/etc/passwd", LINK)), "a link instead of a file: x.ipynb"),
    "linked folder": (lambda: packed(("d", b"/etc", LINK), ("d/hosts", b"")), "a link instead of a file: d"),
    "pipe": (lambda: packed(("x.ipynb", b"", PIPE)), "a pipe, socket or device"),
    "zip in zip": (lambda: packed(("y.zip", packed(("x.ipynb", NOTEBOOK)))), "a zip in the zip"),
    "empty": (lambda: packed(("x.ipynb", b"")), "x.ipynb in mine.zip is an empty file"),
    "nothing": (lambda: packed(), "no other file either"),
    "no bytes": (lambda: b"", "mine.zip is an empty file"),
    "no zip": (lambda: b"Rar!" * 100, "is no zip"),
    "bzip2": (lambda: packed(("x.ipynb", NOTEBOOK), method=zipfile.ZIP_BZIP2), "unusual method"),
    "folder": (lambda: packed(("x.ipynb/", b"")), "no other file either"),
    "deep": (lambda: packed(("d/" * 5000 + "x.ipynb", b"?")), "lies too deep"),
    "many": (lambda: packed(*((f"{n:0200}", b"") for n in range(9000))), "lists too many files"),
}


@pytest.mark.parametrize("way", ["folder", "zip in the class's zip"])
@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_zips_cost_their_student_only(tmp_path, kind, way):
    make, told = HOSTILE[kind]
    own, good = make(), packed(("x.ipynb", NOTEBOOK))
    if way == "folder":
        put(tmp_path / "class/ada/mine.zip", own)
        source = put(tmp_path / "class/bob/his.zip", good).parents[1]
    else:
        source = put(tmp_path / "class.zip", packed(("ada/mine.zip", own), ("bob/his.zip", good)))
    found = taken(source)
    assert found["bob"] == GOOD
    data, problems = found["ada"]
    assert data is None and re.search(told, problems), problems


@pytest.mark.parametrize("size", [5, 0xFFFFFFFE])
def test_sizes_in_the_header_are_not_believed(tmp_path, size):
    put(tmp_path / "ada/x.zip", lying(packed(("x.ipynb", NOTEBOOK)), size))
    assert taken(tmp_path) == {"ada": GOOD}


def test_hostile_members_of_the_class_cost_their_student_only(tmp_path):
    members = [("ada/x.ipynb", b"/etc/passwd", LINK), ("bob/x.ipynb", NOTEBOOK), ("cy", b"/etc", LINK)]
    members += [("cy/x.ipynb", b"cy"), ("eve/x.ipynb", bytes(MAX_NOTEBOOK_BYTES + 1)), ("deep/" * 30, b"")]
    found = taken(put(tmp_path / "class.zip", packed(*members)))
    assert found["bob"] == GOOD
    assert found["ada"][0] is None and "a link instead of a file" in found["ada"][1]
    assert found["eve"] == (None, "x.ipynb is larger than 20 MB when unpacked.")
    assert "lies too deep" in found["deep"][1]
    assert sorted(str(found[one][0]) for one in ("cy", "cy-2")) == ["None", "b'cy'"]


def test_a_bad_name_in_the_class_zip_costs_nobody(tmp_path):
    data = packed(("bj\xf6rn/x.ipynb", b"1"), ("ada/x.ipynb", b"2")).replace(b"bj\xc3\xb6rn", b"bj\xc3\xc3rn")
    with pytest.raises(UnicodeDecodeError):
        zipfile.ZipFile(io.BytesIO(data))  # why the standard reader will not do
    found = taken(put(tmp_path / "class.zip", data))
    assert found["ada"] == (b"2", "") and {data for data, _ in found.values()} == {b"1", b"2"}


def test_a_large_class_zip_is_read_member_by_member(tmp_path, monkeypatch):
    members = [(f"s{n}/x.ipynb", b"%d" % n) for n in range(70_000)]  # more than the short form can count
    source = put(tmp_path / "class.zip", packed(*members, method=zipfile.ZIP_STORED))
    records = receive(source, HERE)
    assert len(records) == 70_000
    monkeypatch.setattr(zips, "list_members", None)  # reading one lists nothing again
    assert {one.read()[0] for one in records[:20]} == {one.student[1:].encode() for one in records[:20]}


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200), st.data())
def test_any_change_to_a_zip_is_survived(tmp_path_factory, content, data):
    original = packed(("x.ipynb", content), ("d/y.txt", b"abc"))
    broken = bytearray(original)
    for _ in range(data.draw(st.integers(1, 4))):
        broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    folder = tmp_path_factory.mktemp("broken")
    put(folder / "ada.zip", bytes(broken[: data.draw(st.integers(0, len(broken)))] if content else broken))
    ((data_read, problems),) = taken(folder).values()
    assert data_read in (content, None) or "damaged" not in problems
    assert data_read or problems


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


def test_names_that_differ_by_case_or_form_only(tmp_path):
    members = [
        ("Ada/x.ipynb", b"1"),
        ("ada/x.ipynb", b"2"),
        ("Zo\xeb/x.ipynb", b"3"),
        ("Zoe\u0308/x.ipynb", b"4"),
    ]
    found = taken(put(tmp_path / "class.zip", packed(*members)))
    assert len({names.fold(one) for one in found}) == 4
    assert {data for data, _ in found.values()} == {b"1", b"2", b"3", b"4"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ada", "ada"),
        ("Zoe\u0308 O’Brien", "Zo\xeb_OBrien"),
        ("..", "student"),
        ("", "student"),
        (".hidden", "hidden"),
        ("=cmd|' /C calc'!A0", "cmd_C_calc_A0"),
        ("a+b", "a_b"),
        ("a/b\\c", "a_b_c"),
        ("con", "student_con"),
        ("Lpt\N{SUPERSCRIPT ONE}.x", "student_Lpt\N{SUPERSCRIPT ONE}.x"),
        ("ada@uni.edu", "ada@uni.edu"),
        ("\u202eada\u200b", "ada"),
        ("王小明", "王小明"),
    ],
)
def test_ids_stay_recognisable(name, expected):
    assert names.safe_id(name) == expected


def is_safe(student: str) -> bool:
    bad = any(unicodedata.category(one)[0] not in "LMN" and one not in "-_.@" for one in student)
    device = unicodedata.normalize("NFKC", student.split(".")[0]).upper() in names.DEVICES
    fits = 0 < len(student) <= names.MAX_ID and len(student.encode()) <= 160
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
    assert len({names.fold(own) for own, _ in ids}) == len(people)
    assert all(is_safe(own) for own, _ in ids), ids
    for own, sharing in ids:
        assert not sharing or own in sharing


@settings(max_examples=60, deadline=None)
@given(st.lists(ANY.filter(str.strip), unique=True, min_size=1, max_size=8))
def test_no_two_students_of_a_zip_are_ever_merged(tmp_path_factory, students):
    students = [one.encode("utf-8", "replace").decode() + "x" for one in students]
    students = sorted({one for one in students if not re.match(r"[.]|.:", one) and "\\" not in one})
    members = [(f"{student}/x.ipynb", b"%d" % n) for n, student in enumerate(students)]
    source = put(tmp_path_factory.mktemp("class") / "z.zip", packed(("zzz/x.ipynb", b"z"), *members))
    assert sorted(data for data, _ in taken(source).values()) == sorted(
        [b"z", *(b"%d" % n for n in range(len(students)))]
    )


# --- records and sources -----------------------------------------------------------------------------------


def test_records_travel_and_hold_no_contents(tmp_path):
    put(tmp_path / "ada/x.ipynb", b"x" * 1_000_000)
    put(tmp_path / "bob.zip", packed(("x.ipynb", NOTEBOOK)))
    for one in receive(tmp_path, HERE):
        sent = pickle.dumps(one)
        assert len(sent) < 2_000
        assert pickle.loads(sent) == one and pickle.loads(sent).read() == one.read()


def test_the_source_may_be_relative_and_a_link(tmp_path, monkeypatch):
    put(tmp_path / "real/ada/x.ipynb")
    link(tmp_path / "class", "real")
    monkeypatch.chdir(tmp_path)
    (ada,) = receive("class", HERE)
    monkeypatch.chdir(tmp_path / "real")
    assert ada.read() == (NOTEBOOK, ())


def test_a_source_that_is_none(tmp_path):
    put(tmp_path / "class/notes.txt", b"")
    put(tmp_path / "class.zip", packed(("__MACOSX/x.ipynb", b""), ("read.me", b"")))
    (tmp_path / "empty").mkdir()
    cases = {
        "clas": r"clas does not exist \(.* holds class, class.zip, empty.*\): give the folder",
        "class": r"holds only notes.txt, but no submissions",
        "class.zip": r"holds only read.me, but no submissions",
        "empty": r"holds nothing, but no submissions",
        "class/notes.txt": r"notes.txt is not a zip, or one that was cut off: give the folder",
        "x" * 5000: r"cannot be reached|does not exist",
    }
    for source, told in cases.items():
        with pytest.raises(IntakeError, match=told):
            receive(tmp_path / source, HERE)
    assert issubclass(IntakeError, ValueError)


def test_a_source_that_cannot_be_looked_into(tmp_path, monkeypatch):
    def refuse(path):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(places.os, "scandir", refuse)
    with pytest.raises(IntakeError, match="cannot be looked into \\(Permission denied\\): give"):
        receive(tmp_path, HERE)
