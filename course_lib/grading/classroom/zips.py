"""Zip files that nobody vouches for: members are listed and read, nothing is ever extracted to disk.

The standard library's reader gives up on a whole archive for one bad name, and unpacks some methods without
any bound. Here each member stands on its own, and every read has a limit that does not trust the header.
"""

from __future__ import annotations

import stat
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

STORED, DEFLATED = 0, 8
MAX_COMMENT = 65_535
#: Bytes of table of contents that are read of a whole class's zip, and of a zip inside it.
MAX_TABLE, MAX_INNER_TABLE = 128_000_000, 2_000_000

_END = struct.Struct("<4s4H2LH")
_END_64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR_64 = struct.Struct("<4sLQL")
_ENTRY = struct.Struct("<4s4B4H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_IS_UTF8, _LOCKED = 0x800, 0x2041
_DOS_FOLDER = 0x10
_KINDS = {0: "file", stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}
_INSIDE = "is damaged inside its zip"
EMPTY = "is an empty file"


class Unreadable(ValueError):
    """Something cannot be read. The message is a predicate: "x.zip" + " is damaged"."""


@dataclass(frozen=True)
class Member:
    """One entry of a zip's table of contents; everything in it is a claim by whoever made the zip."""

    name: str
    kind: str  # "file", "folder", "link" or "special"
    method: int
    flags: int
    crc: int
    packed: int  # compressed bytes
    offset: int  # of its local header
    written: int  # DOS date and time: only good for comparing


def list_members(file: BinaryIO, max_table: int = MAX_TABLE) -> list[Member]:
    """Return the members of an open zip in the order of its table; Unreadable if it is no sound zip."""
    start, length, shift = _table(file)
    if length > max_table:
        raise Unreadable("lists too many files for a submission")
    file.seek(start)
    return list(_entries(_exactly(file, length, "is a damaged zip"), shift))


def read_member(file: BinaryIO, member: Member, limit: int) -> bytes:
    """Return the content of one member, at most `limit` bytes; Unreadable with the reason if not."""
    if member.flags & _LOCKED:
        raise Unreadable("is locked with a password")
    if member.method not in (STORED, DEFLATED):
        raise Unreadable(f"is packed by an unusual method (number {member.method})")
    too_large = Unreadable(f"is larger than {limit // 1_000_000} MB when unpacked")
    if member.packed > limit + limit // 100 + 1000:  # packing never makes a file much larger
        raise too_large
    if not 0 <= member.offset < 1 << 62:
        raise Unreadable(f"{_INSIDE} (its place is impossible)")
    file.seek(member.offset)
    head = file.read(_LOCAL.size)
    if len(head) < _LOCAL.size or head[:4] != b"PK\3\4":
        raise Unreadable(f"{_INSIDE} (it is not where the zip says)")
    *_, name_length, extra_length = _LOCAL.unpack(head)
    file.seek(name_length + extra_length, 1)
    content = _exactly(file, member.packed, _INSIDE)
    if member.method == DEFLATED:
        content = _unpacked(content, limit + 1)
    if len(content) > limit:
        raise too_large
    if zlib.crc32(content) != member.crc:
        raise Unreadable(f"{_INSIDE} (the checksum is wrong)")
    if not content:
        raise Unreadable(EMPTY)
    return content


def _exactly(file: BinaryIO, length: int, damaged: str) -> bytes:
    content = file.read(length)
    if len(content) < length:
        raise Unreadable(f"{damaged} (it ends too early)")
    return content


def _unpacked(packed: bytes, most: int) -> bytes:
    """Return the first `most` bytes of what is packed; a bomb is never unpacked any further."""
    unpack = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        content = unpack.decompress(packed, most)
    except zlib.error as problem:
        raise Unreadable(f"{_INSIDE} (it cannot be unpacked)") from problem
    if len(content) < most and not unpack.eof:
        raise Unreadable(f"{_INSIDE} (it ends too early)")
    return content


def _table(file: BinaryIO) -> tuple[int, int, int]:
    """Return where the table of contents starts, its length, and what to add to the offsets in it.

    Offsets are wrong by a constant where something stands in front of the zip (a self-extracting one).
    """
    size = file.seek(0, 2)
    tail_start = max(0, size - MAX_COMMENT - _END.size - _LOCATOR_64.size - _END_64.size)
    file.seek(tail_start)
    tail = file.read()
    at = tail.rfind(b"PK\5\6", 0, max(0, len(tail) - _END.size + 4))
    if at < 0:
        raise Unreadable("is not a zip, or one that was cut off")
    _, disk, table_disk, _, count, length, offset, _ = _END.unpack_from(tail, at)
    end = tail_start + at
    if 0xFFFF in (disk, table_disk, count) or 0xFFFFFFFF in (length, offset):
        before = at - _LOCATOR_64.size - _END_64.size
        if before >= 0 and tail[before : before + 4] == b"PK\6\6":
            *_, length, offset = _END_64.unpack_from(tail, before)
            end = tail_start + before
    start = end - length
    if start < 0:
        raise Unreadable("is a damaged zip (its table of contents is missing)")
    return start, length, start - offset


def _entries(table: bytes, shift: int) -> Iterator[Member]:
    at = 0
    while at < len(table):
        if len(table) - at < _ENTRY.size or table[at : at + 4] != b"PK\1\2":
            raise Unreadable("is a damaged zip (its table of contents makes no sense)")
        fields = _ENTRY.unpack_from(table, at)
        flags, method, time, date, crc, packed, size = fields[5:12]
        name_end = at + _ENTRY.size + fields[12]
        extra_end = name_end + fields[13]
        name = _decoded(table[at + _ENTRY.size : name_end], flags)
        packed, offset = _wide(table[name_end:extra_end], size, packed, fields[18])
        at = extra_end + fields[14]
        is_folder = name.endswith(("/", "\\")) or fields[17] & _DOS_FOLDER
        kind = kind_of(fields[17] >> 16)
        kind = "folder" if is_folder and kind != "link" else kind
        yield Member(name, kind, method, flags, crc, packed, offset + shift, date << 16 | time)


def _decoded(name: bytes, flags: int) -> str:
    """Return the name as text. Without the flag it is UTF-8 from a Mac, or else the old code page."""
    try:
        return name.decode("utf-8", "replace" if flags & _IS_UTF8 else "strict")
    except UnicodeDecodeError:
        return name.decode("cp437")


def _wide(extra: bytes, size: int, packed: int, offset: int) -> tuple[int, int]:
    """Return compressed size and offset, the 64-bit ones where the 32-bit fields say "see there"."""
    values: list[int] = []
    while len(extra) >= 4 and not values:
        tag, length = struct.unpack_from("<2H", extra)
        body, extra = extra[4 : 4 + length], extra[4 + length :]
        if tag == 1:
            values = [value for (value,) in struct.iter_unpack("<Q", body[: len(body) // 8 * 8])]
    _, packed, offset = (
        values.pop(0) if one == 0xFFFFFFFF and values else one for one in (size, packed, offset)
    )
    return packed, offset


def kind_of(mode: int) -> str:
    """Return what a file's mode says: "file" (0 as well, as zips have it), "folder", "link" or "special"."""
    return _KINDS.get(stat.S_IFMT(mode), "special")
