"""Places: a folder or a zip as one kind of tree, and reading a file of it without being led astray.

Nothing is followed: links, pipes, sockets and devices are told by name only and never opened.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from course_lib.grading.classroom.zips import EMPTY, Member, Unreadable, kind_of, list_members, read_member

DEEPEST = 8  # folders in each other that are looked into
MOST_PARTS = DEEPEST + 3  # of a path in a zip: a folder around everything and a student's are in front
#: A link is not opened, and a pipe must not make us wait.
_OPEN = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))
_RELATIVE = os.open in os.supports_dir_fd  # Windows opens nothing relative to an open folder


@dataclass
class Node:
    """One entry of the tree: a "file", "folder", "link" or "special". A zip's tree is known as a whole."""

    name: str
    kind: str
    root: str  # the folder or zip
    parts: tuple[str, ...] = ()  # where it is below a folder
    member: Member | None = None  # what it is in a zip
    outside: str = ""  # the folder its name in a zip gives, if that points out of the zip
    below: dict[tuple[str, str], list[Node]] | None = None  # of a zip's tree

    def inside(self) -> Iterator[Node]:
        """Yield what a folder holds; Unreadable if it cannot be looked into."""
        if self.below is not None:
            yield from chain.from_iterable(self.below.values())
            return
        try:
            with os.scandir(os.path.join(self.root, *self.parts)) as entries:
                for entry in entries:
                    yield Node(entry.name, _kind(entry), self.root, (*self.parts, entry.name))
        except OSError as problem:
            raise Unreadable(f"cannot be looked into ({problem.strerror or problem})") from problem

    def read(self, limit: int) -> bytes:
        """Return the content, at most `limit` bytes; Unreadable with the reason if that cannot be."""
        try:
            if self.member is None:
                return _read_file(self.root, self.parts, limit)
            with open(self.root, "rb") as file:
                return read_member(file, self.member, limit)
        except OSError as problem:
            raise Unreadable(f"cannot be opened ({problem.strerror or problem})") from problem

    def written(self) -> float:
        """Return when the file was written: good for comparing two of the same source only."""
        if self.member is not None:
            return self.member.written
        try:
            return os.lstat(os.path.join(self.root, *self.parts)).st_mtime
        except OSError:
            return 0.0


def folder_tree(source: Path) -> Node:
    """Return the tree of a folder; what is in it is looked up when asked for."""
    return Node(source.name, "folder", os.path.realpath(source))


def zip_tree(root: str, members: list[Member]) -> Node:
    """Return the tree of a zip. A member whose path points outside gets a branch of its own."""
    top = Node("", "folder", root, below={})
    for member in members:
        parts, outside = _split(member.name)
        kinds = ["folder"] * (len(parts) - 1) + [member.kind]
        path = [*zip(parts, kinds, strict=False)][:MOST_PARTS]  # a folder too deep to be looked into ends it
        node = top
        for depth, (part, kind) in enumerate(path):
            out = outside if depth in (0, len(path) - 1) else ""
            same = node.below.setdefault((part, f"{kind} {out}"), [])
            if kind != "folder" or not same:
                same.append(Node(part, kind, root, member=member, outside=out, below={}))
            node = same[-1]
    return top


def open_zip(path: Path) -> Node:
    """Return the tree of a zip on disk; Unreadable if it is none, or damaged."""
    try:
        with path.open("rb") as file:
            return zip_tree(os.path.realpath(path), list_members(file))
    except OSError as problem:
        raise Unreadable(f"cannot be opened ({problem.strerror or problem})") from problem


def _split(path: str) -> tuple[list[str], str]:
    """Return the parts of a member's path, and its folder as written if it points out of the zip, else ""."""
    path = path.replace("\\", "/")
    pieces = path.split("/")
    drive = len(pieces[0]) >= 2 and pieces[0][1] == ":"
    outside = path.startswith("/") or drive or ".." in pieces
    if drive:
        pieces[0] = pieces[0][2:]
    parts = [one for one in pieces if one not in ("", ".", "..")]
    return parts, (path.rpartition("/")[0] or path) + "/" if outside else ""


def _kind(entry: os.DirEntry) -> str:
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError:  # reading it will tell why
        return "file"
    tag = getattr(found, "st_reparse_tag", 0)  # of Windows' other kind of link to a folder
    is_junction = tag == getattr(stat, "IO_REPARSE_TAG_MOUNT_POINT", -1)
    return "link" if is_junction else kind_of(found.st_mode)


def _read_file(root: str, parts: tuple[str, ...], limit: int) -> bytes:
    with os.fdopen(_opened(root, parts), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise Unreadable("is not a plain file")
        content = file.read(limit + 1)
    if len(content) > limit:
        raise Unreadable(f"is larger than {limit // 1_000_000} MB")
    if not content:
        raise Unreadable(EMPTY)
    return content


def _opened(root: str, parts: tuple[str, ...]) -> int:
    """Return a descriptor of root/parts; no part may have become a link, nor become one meanwhile."""
    if not _RELATIVE:
        path = os.path.join(root, *parts)
        if os.path.realpath(path) != path:
            raise Unreadable("is not a plain file in plain folders")
        return os.open(path, _OPEN)
    inner = os.open(root, _OPEN)
    for part in parts:
        folder = inner
        try:
            inner = os.open(part, _OPEN, dir_fd=folder)
        finally:
            os.close(folder)
    return inner
