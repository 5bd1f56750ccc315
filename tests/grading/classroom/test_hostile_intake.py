"""Intake: whatever one student hands in, it costs that student only, and nothing is followed or extracted."""

from __future__ import annotations

import errno
import io
import os
import re
import socket
import struct
import zipfile
import zlib
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from intake_tools import GOOD, HERE, NOTEBOOK, link, packed, put, taken

from course_lib.grading.classroom import intake, places, zips
from course_lib.grading.classroom.intake import MAX_NOTEBOOK_BYTES, receive

LINK, PIPE = 0o120777, 0o010644

# --- links, pipes, odd files -------------------------------------------------------------------------------


def hole(size: int):
    """Return what makes a file of so many zeros; they take no space."""
    return lambda path: path.touch() or os.truncate(path, size)


#: What lies in a class's folder, how it comes there, what its student gets, and what the teacher is told.
ODD = [
    ("bob/x.ipynb", put, *GOOD),
    ("inner/inner.ipynb/x.ipynb", put, *GOOD),
    ("long/" + "x" * 240 + ".ipynb", put, *GOOD),
    ("to0/itself.ipynb", "../../secret.ipynb", None, "a link instead of a file: itself.ipynb"),
    ("to1/itself.ipynb", "nowhere", None, "a link instead of a file: itself.ipynb"),
    ("to2/itself.ipynb", "itself.ipynb", None, "a link instead of a file: itself.ipynb"),
    ("to3/itself.ipynb", "/etc/passwd", None, "a link instead of a file: itself.ipynb"),
    ("eve", "..", None, "a link instead of a file: eve"),
    ("flat.ipynb", "../secret.ipynb", None, "a link instead of a file: flat.ipynb"),
    ("zed/folder", "../..", None, "a link instead of a file: folder"),
    ("zip/x.zip", "../../secret.ipynb", None, "a link instead of a file: x.zip"),
    ("both/x.ipynb", put, NOTEBOOK, "a link instead of a file: other.ipynb"),
    ("both/other.ipynb", "../../secret.ipynb", NOTEBOOK, "a link instead of a file: other.ipynb"),
    ("pipes/x.ipynb", os.mkfifo, None, "a pipe, socket or device instead of a file"),
    ("pipe.ipynb", os.mkfifo, None, "a pipe, socket or device instead of a file"),
    ("empty/x.ipynb", lambda path: put(path, b""), None, r"^x\.ipynb is an empty file\.$"),
    ("folder/x.ipynb", os.mkdir, None, "no notebook"),
    ("x.ipynb", os.mkdir, None, "a folder with the name of a notebook"),
    ("deep/" + "d/" * 30 + "x.ipynb", put, None, "lies too deep"),
    ("large.ipynb", hole(MAX_NOTEBOOK_BYTES + 1), None, r"^large\.ipynb is larger than 20 MB\.$"),
    ("full.ipynb", hole(MAX_NOTEBOOK_BYTES), bytes(MAX_NOTEBOOK_BYTES), "^$"),
    ("huge.zip", hole(10**11), None, r"^huge\.zip is larger than 50 MB\.$"),
]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_odd_files_cost_their_student_only_and_links_are_never_followed(tmp_path, monkeypatch):
    put(tmp_path / "secret.ipynb", b"the solution")
    source = tmp_path / "class"
    for path, make, *_ in ODD:
        if isinstance(make, str):
            link(source / path, make)
        else:
            (source / path).parent.mkdir(parents=True, exist_ok=True)
            make(source / path)
    (source / "sock").mkdir()
    monkeypatch.chdir(source / "sock")  # a socket's path must be short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("x.ipynb")
        found = taken(source)
    data, problems = found.pop("sock")
    assert data is None and "a pipe, socket or device" in problems
    for path, _, expected, told in ODD:
        student = path.split("/")[0]
        data, problems = found[student if student == "x.ipynb" else student.split(".")[0]]
        assert data == expected and re.search(told, problems), (path, problems)
    assert len(found) == len({path.split("/")[0] for path, *_ in ODD})


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.timeout(20)
@pytest.mark.parametrize("relative", [True, False])  # False: as on Windows
def test_a_file_that_becomes_a_link_or_a_pipe_later_is_not_read(tmp_path, monkeypatch, relative):
    monkeypatch.setattr(places, "_RELATIVE", relative)
    put(tmp_path / "secret/x.ipynb", b"the solution")
    changes = {
        "file": lambda file: link(file, tmp_path / "secret/x.ipynb"),
        "folder": lambda file: file.parent.rmdir() or link(file.parent, tmp_path / "secret"),
        "pipe": os.mkfifo,
    }
    for what, change in changes.items():
        file = put(tmp_path / what / "ada/sub/x.ipynb")
        (ada,) = receive(tmp_path / what, HERE)
        assert ada.read() == (NOTEBOOK, ())
        file.unlink()
        change(file)
        data, (problem,) = ada.read()
        assert data is None and re.match(r"x\.ipynb (is not a plain file|cannot be opened \()", problem), what


def test_a_folder_that_becomes_a_link_while_a_file_is_opened_is_not_followed(tmp_path, monkeypatch):
    put(tmp_path / "secret/x.ipynb", b"the solution")
    real = os.open
    for moment in range(4):
        folder = put(tmp_path / f"{moment}/ada/sub/x.ipynb").parent
        (ada,) = receive(tmp_path / str(moment), HERE)
        opened = []

        def swapping(path, *flags, moment=moment, folder=folder, opened=opened, **more):
            if len(opened) == moment:
                folder.rename(folder.with_name("aside"))
                link(folder, tmp_path / "secret")
            opened.append(path)
            return real(path, *flags, **more)

        with monkeypatch.context() as patch:
            patch.setattr(places.os, "open", swapping)
            assert ada.read()[0] in (NOTEBOOK, None) and folder.is_symlink(), moment


def test_a_junction_of_windows_is_a_link(monkeypatch):
    monkeypatch.setattr(places.stat, "IO_REPARSE_TAG_MOUNT_POINT", 0xA0000003, raising=False)
    for tag, kind in ((0xA0000003, "link"), (0, "folder")):
        found = SimpleNamespace(st_mode=0o040777, st_reparse_tag=tag)
        assert places._kind(SimpleNamespace(stat=lambda found=found, **_: found)) == kind


def test_what_cannot_be_opened_costs_its_student_only(tmp_path, monkeypatch):
    for student in ("ada", "bob", "cy", "eve"):
        put(tmp_path / student / "x.ipynb")
    real_scandir, real_read = os.scandir, places._read_file
    refused = PermissionError(errno.EACCES, "Permission denied")

    def scandir(path):
        if os.path.basename(path) == "ada":
            raise refused
        return real_scandir(path)

    def read(root, parts, limit):
        if parts[0] in ("bob", "cy"):
            raise refused if parts[0] == "bob" else ZeroDivisionError
        return real_read(root, parts, limit)

    monkeypatch.setattr(places.os, "scandir", scandir)
    monkeypatch.setattr(places, "_read_file", read)
    found = taken(tmp_path)
    assert found["ada"][0] is None and "cannot be looked into (Permission denied)" in found["ada"][1]
    assert found["bob"] == (None, "x.ipynb cannot be opened (Permission denied).")
    assert found["cy"] == (None, "x.ipynb cannot be read (ZeroDivisionError).")
    assert found["eve"] == GOOD


def test_very_many_files(tmp_path, monkeypatch):
    monkeypatch.setattr(intake, "MAX_KEPT", 5)
    monkeypatch.setattr(intake, "MAX_LOOKED_AT", 40)
    for number in range(30):
        put(tmp_path / f"ada/{number}.ipynb")
    put(tmp_path / f"ada/{HERE}.ipynb", b"this")
    for number in range(41):
        put(tmp_path / f"bob/{number}.txt")
    for number in range(6):
        put(tmp_path / f"cy/{number}.ipynb")
    put(tmp_path / "eve/x.ipynb")
    found = taken(tmp_path)
    assert "Handed in 5 notebooks" in found["cy"][1]  # no more are remembered
    assert found["ada"] == (b"this", "")  # whatever the order: a fitting name is always kept
    assert "more than 40 files" in found["bob"][1]
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


# --- hostile zips ------------------------------------------------------------------------------------------

SLIPS = [
    "../../eve/x.ipynb",
    "/etc/x.ipynb",
    "C:\\eve\\x.ipynb",
    "..\\..\\eve\\x.ipynb",
    "bob/../eve/x.ipynb",
]


def test_zip_slip(tmp_path):
    """Of the class's own zip and of a student's: nothing is extracted, and the odd path is told."""
    for case, slip in enumerate(SLIPS):
        folder = tmp_path / str(case)
        members = ("eve/x.ipynb", b"real"), ("bob/x.ipynb", b"b"), (slip, b"?")
        found = taken(put(folder / "in/class.zip", packed(*members)))
        assert found["bob"][0] == b"b" and b"real" in {data for data, _ in found.values()}, slip
        (odd,) = [problems for data, problems in found.values() if data == b"?"]
        assert "path that leads out of it:" in odd and len(found) == 3, slip
        assert sorted(path.name for path in folder.rglob("*")) == ["class.zip", "in"]
        put(folder / "each/ada/x.zip", packed((slip, b"hers")))
        put(folder / "each/bob/x.zip", packed((slip, b"odd"), ("plain.ipynb", b"plain")))
        found = taken(folder / "each")
        assert found["ada"][0] == b"hers" and found["bob"][0] == b"plain", slip
        assert all("path that leads out of it:" in problems for _, problems in found.values()), slip


def changed(data: bytes, mark: bytes, offset: int, new: bytes) -> bytes:
    at = data.index(mark) + offset
    return data[:at] + new + data[at + len(new) :]


def lying(size: int) -> bytes:
    """Return a sound zip that claims another size in both headers."""
    claim = struct.pack("<L", size)
    return changed(changed(packed(("x.ipynb", NOTEBOOK)), b"PK\1\2", 24, claim), b"PK\3\4", 22, claim)


def bomb() -> bytes:
    """400 MB of zeros, packed in 400 kB."""
    pack = zlib.compressobj(9, zlib.DEFLATED, -15)
    piece = bytes(1 << 20)
    body = b"".join(pack.compress(piece) for _ in range(400)) + pack.flush()
    head = struct.pack("<5H3L2H", 20, 0, 8, 0, 33, 0, len(body), 13, 7, 0)
    local = b"PK\3\4" + head + b"x.ipynb"
    entry = b"PK\1\2" + struct.pack("<H", 20) + head + struct.pack("<3H2L", 0, 0, 0, 0, 0) + b"x.ipynb"
    end = b"PK\5\6" + struct.pack("<4H2LH", 0, 0, 1, 1, len(entry), len(local) + len(body), 0)
    return local + body + entry + end


def hostile_zips() -> dict[str, tuple[bytes, str | None]]:
    """Return zips with what the teacher is told of each; None if it is sound after all."""
    plain = packed(("x.ipynb", b"0123456789" * 20), method=zipfile.ZIP_STORED)
    return {
        "damaged": (changed(plain, b"x.ipynb", 12, b"?"), "checksum is wrong"),
        "cut off": (plain[:-30], "is no zip, or one that was cut off"),
        "beginning lost": (plain[40:], "place is impossible"),
        "locked": (changed(plain, b"PK\1\2", 8, b"\1"), "locked with a password"),
        "bomb": (bomb(), "larger than 20 MB when unpacked"),
        "large": (packed(("x.ipynb", bytes(MAX_NOTEBOOK_BYTES + 1))), "larger than 20 MB when unpacked"),
        "link": (packed(("x.ipynb", b"/etc/passwd", LINK)), "a link instead of a file: x.ipynb"),
        "linked folder": (packed(("d", b"/etc", LINK), ("d/hosts", b"")), "a link instead of a file: d"),
        "pipe": (packed(("x.ipynb", b"", PIPE)), "a pipe, socket or device"),
        "zip in zip": (packed(("y.zip", packed(("x.ipynb", NOTEBOOK)))), "a zip in the zip"),
        "empty": (packed(("x.ipynb", b"")), "x.ipynb in mine.zip is an empty file"),
        "nothing": (packed(), "no other file either"),
        "no bytes": (b"", "mine.zip is an empty file"),
        "no zip": (b"Rar!" * 100, "is no zip"),
        "bzip2": (packed(("x.ipynb", NOTEBOOK), method=zipfile.ZIP_BZIP2), "unusual method"),
        "folder": (packed(("x.ipynb/", b"")), "no other file either"),
        "deep": (packed(("d/" * 5000 + "x.ipynb", b"?")), "lies too deep"),
        "many": (packed(*((f"{n:0200}", b"") for n in range(9000))), "lists too many files"),
        "lying": (lying(5), None),  # sizes in the header are not believed
        "boasting": (lying(0xFFFFFFFE), None),
    }


def test_hostile_zips_cost_their_student_only(tmp_path):
    hostile = hostile_zips()
    for kind, (own, _) in hostile.items():
        put(tmp_path / "class" / kind / "mine.zip", own)
    zipped = packed(*((f"{kind}/mine.zip", own) for kind, (own, _) in hostile.items()))
    for source in (tmp_path / "class", put(tmp_path / "class.zip", zipped)):
        found = taken(source)
        for kind, (_, told) in hostile.items():
            data, problems = found[kind.replace(" ", "_")]
            assert (data, problems) == GOOD if told is None else data is None, (kind, source)
            assert re.search(told or "", problems), (kind, source, problems)


def test_hostile_members_of_the_class_cost_their_student_only(tmp_path):
    members = [("ada/x.ipynb", b"/etc/passwd", LINK), ("bob/x.ipynb", NOTEBOOK), ("cy", b"/etc", LINK)]
    members += [("cy/x.ipynb", b"cy"), ("eve/x.ipynb", bytes(MAX_NOTEBOOK_BYTES + 1)), ("deep/" * 30, b"")]
    found = taken(put(tmp_path / "class.zip", packed(*members)))
    assert found["bob"] == GOOD
    assert found["ada"][0] is None and "a link instead of a file" in found["ada"][1]
    assert found["eve"] == (None, "x.ipynb is larger than 20 MB when unpacked.")
    assert "lies too deep" in found["deep"][1]
    assert sorted(str(found[one][0]) for one in ("cy", "cy-2")) == ["None", "b'cy'"]


def test_a_path_of_very_many_folders_makes_a_small_tree():
    (member,) = zips.list_members(io.BytesIO(packed(("d/" * 30_000 + "x.ipynb", b"?"))))
    nodes = [places.zip_tree("", [member])]
    for node in nodes:
        nodes += node.inside()
    assert len(nodes) < 20


def test_a_bad_name_in_the_class_zip_costs_nobody(tmp_path):
    data = packed(("bj\xf6rn/x.ipynb", b"1"), ("ada/x.ipynb", b"2")).replace(b"bj\xc3\xb6rn", b"bj\xc3\xc3rn")
    with pytest.raises(UnicodeDecodeError):
        zipfile.ZipFile(io.BytesIO(data))  # why the standard reader will not do
    found = taken(put(tmp_path / "class.zip", data))
    assert found["ada"] == (b"2", "") and {data for data, _ in found.values()} == {b"1", b"2"}


def with_wide_end(data: bytes) -> bytes:
    """Write the end of a zip in the 64-bit form, as for more than 65,535 members."""
    at = data.index(b"PK\5\6")
    count, _, length, offset = struct.unpack_from("<2H2L", data, at + 8)
    wide = b"PK\6\6" + struct.pack("<Q2H2L4Q", 44, 45, 45, 0, 0, count, count, length, offset)
    where = b"PK\6\7" + struct.pack("<LQL", 0, at, 1)
    end = b"PK\5\6" + struct.pack("<4H2LH", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    return data[:at] + wide + where + end


def test_every_form_of_a_sound_zip_is_read(tmp_path, monkeypatch):
    members = [(f"s{n}/x.ipynb", b"%d" % n) for n in range(50)]
    read_once = []
    for end in (bytes, with_wide_end, lambda data: data[:-2] + b"\x03\x00abc"):
        for front in (b"", b"#!/bin/sh self-extracting"):
            source = put(tmp_path / f"class{len(read_once)}.zip", front + end(packed(*members)))
            with zipfile.ZipFile(source) as standard:
                assert len(standard.namelist()) == 50
            read_once.append(receive(source, HERE))
    monkeypatch.setattr(zips, "_table", None)  # the cost of one does not grow with the class
    for records in read_once:
        assert {one.student: one.read() for one in records} == {f"s{n}": (b"%d" % n, ()) for n in range(50)}


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
