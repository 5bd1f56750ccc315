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

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from intake_tools import GOOD, HERE, NOTEBOOK, link, packed, put, taken

from course_lib.grading.classroom import intake, places, zips
from course_lib.grading.classroom.intake import MAX_NOTEBOOK_BYTES, receive

LINK, PIPE = 0o120777, 0o010644

# --- links, pipes and what cannot be opened ----------------------------------------------------------------


def test_links_are_told_and_never_followed(tmp_path):
    secret = put(tmp_path / "secret.ipynb", b"the solution")
    for case, target in enumerate((secret, "../secret.ipynb", "nowhere", "itself.ipynb", "/etc/passwd")):
        source = tmp_path / f"class{case}"
        put(source / "bob/x.ipynb")
        link(source / "ada/itself.ipynb", target)
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
            assert data is None and "Handed in a link instead of a file" in problems, target
        assert set(found) == {"ada", "eve", "flat", "zed", "zip"}


def test_a_file_that_becomes_a_link_later_is_not_followed(tmp_path, monkeypatch):
    put(tmp_path / "secret/x.ipynb", b"the solution")
    for by_path in (False, True):
        if by_path:  # as on Windows
            monkeypatch.setattr(places.os, "supports_dir_fd", set())
        for part in ("file", "folder"):
            source = tmp_path / f"{part} {by_path}"
            file = put(source / "ada/sub/x.ipynb")
            (ada,) = receive(source, HERE)
            assert ada.read() == (NOTEBOOK, ())
            file.unlink()
            if part == "folder":
                file.parent.rmdir()
                link(file.parent, tmp_path / "secret")
            else:
                link(file, tmp_path / "secret/x.ipynb")
            data, problems = ada.read()
            assert data is None and len(problems) == 1, (part, by_path)


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
    for number in range(60):
        put(tmp_path / f"cy/{number}.ipynb")
    put(tmp_path / "eve/x.ipynb")
    found = taken(tmp_path)
    assert "Handed in 50 notebooks" in found["cy"][1]  # no more are remembered
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
    """400 MB of zeros, packed in 400 kB."""
    pack = zlib.compressobj(9, zlib.DEFLATED, -15)
    piece = bytes(1 << 20)
    body = b"".join(pack.compress(piece) for _ in range(400)) + pack.flush()
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


def test_hostile_zips_cost_their_student_only(tmp_path):
    good = packed(("x.ipynb", NOTEBOOK))
    for case, (kind, (make, told)) in enumerate(HOSTILE.items()):
        own = make()
        put(tmp_path / f"class{case}/ada/mine.zip", own)
        folder = put(tmp_path / f"class{case}/bob/his.zip", good).parents[1]
        zipped = put(tmp_path / f"class{case}.zip", packed(("ada/mine.zip", own), ("bob/his.zip", good)))
        for source in (folder, zipped):
            found = taken(source)
            assert found["bob"] == GOOD, (kind, source)
            data, problems = found["ada"]
            assert data is None and re.search(told, problems), (kind, source, problems)


def test_sizes_in_the_header_are_not_believed(tmp_path):
    for size in (5, 0xFFFFFFFE):
        put(tmp_path / "ada/x.zip", lying(packed(("x.ipynb", NOTEBOOK)), size))
        assert taken(tmp_path) == {"ada": GOOD}, size


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
