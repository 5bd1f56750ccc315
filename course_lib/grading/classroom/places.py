"""Places: a folder or a zip as one kind of tree, and reading a file of it without being led astray.

Nothing is followed: links, pipes, sockets and devices are told by name only and never opened.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from course_lib.grading.classroom.zips import Member, Unreadable, list_members, read_member

DEEPEST = 8  # folders in each other that are looked into
MOST_PARTS = DEEPEST + 3  # of a path in a zip: a folder around everything and a student's are in front
_OPEN = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)  # a pipe must not make us wait
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_NOCTTY", 0)
)


@dataclass(frozen=True)
class FilePlace:
    """Where a file is: below a folder, or a member of a zip. Small, and good for sending elsewhere."""

    root: str
    parts: tuple[str, ...] = ()
    member: Member | None = None

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


@dataclass
class Node:
    """One entry of the tree: a "file", "folder", "link" or "special"."""

    name: str
    kind: str
    place: FilePlace
    outside: str = ""  # the folder its name in a zip gives, if that points out of the zip

    def inside(self) -> Iterator[Node]:
        """Yield what a folder holds; Unreadable if it cannot be looked into."""
        try:
            with os.scandir(os.path.join(self.place.root, *self.place.parts)) as entries:
                for entry in entries:
                    place = FilePlace(self.place.root, (*self.place.parts, entry.name))
                    yield Node(entry.name, _kind(entry), place)
        except OSError as problem:
            raise Unreadable(f"cannot be looked into ({problem.strerror or problem})") from problem


@dataclass
class ZipNode(Node):
    """An entry of a zip's tree, which is known as a whole."""

    below: dict[tuple[str, str], list[Node]] = field(default_factory=dict)

    def inside(self) -> Iterator[Node]:
        for same in self.below.values():
            yield from same


def folder_tree(source: Path) -> Node:
    """Return the tree of a folder; what is in it is looked up when asked for."""
    return Node(source.name, "folder", FilePlace(os.path.realpath(source)))


def zip_tree(root: str, members: list[Member]) -> ZipNode:
    """Return the tree of a zip. A member whose path points outside gets a branch of its own."""
    top = ZipNode("", "folder", FilePlace(root))
    for member in members:
        parts, outside = _split(member.name)
        if not parts:
            continue
        kind = member.kind
        if len(parts) > MOST_PARTS:  # a folder too deep to be looked into stands for it
            parts, kind = parts[:MOST_PARTS], "folder"
        node = top
        for depth, part in enumerate(parts[:-1]):
            node = _folder(node, part, FilePlace(root), outside if depth == 0 else "")
        if kind == "folder":
            _folder(node, parts[-1], FilePlace(root), outside)
        else:
            leaf = ZipNode(parts[-1], kind, FilePlace(root, (), member), outside)
            node.below.setdefault((parts[-1], f"{kind} {outside}"), []).append(leaf)
    return top


def open_zip(path: Path) -> ZipNode:
    """Return the tree of a zip on disk; Unreadable if it is none, or damaged."""
    try:
        with path.open("rb") as file:
            return zip_tree(os.path.realpath(path), list_members(file))
    except OSError as problem:
        raise Unreadable(f"cannot be opened ({problem.strerror or problem})") from problem


def _folder(node: ZipNode, name: str, place: FilePlace, outside: str) -> ZipNode:
    same = node.below.setdefault((name, f"folder {outside}"), [])
    if not same:
        same.append(ZipNode(name, "folder", place, outside))
    return same[0]


def _split(path: str) -> tuple[list[str], str]:
    """Return the parts of a member's path, and its folder as written if it points out of the zip, else ""."""
    path = path.replace("\\", "/")
    pieces = path.split("/")
    drive = len(pieces[0]) >= 2 and pieces[0][1] == ":"
    outside = path.startswith("/") or drive or ".." in pieces
    if drive:
        pieces[0] = pieces[0][2:]
    parts = [one for one in pieces if one.strip() not in ("", ".", "..")]
    return parts, (path.rpartition("/")[0] or path) + "/" if outside else ""


def _kind(entry: os.DirEntry) -> str:
    try:
        if entry.is_symlink() or (os.name == "nt" and _is_junction(entry)):
            return "link"
        if entry.is_dir(follow_symlinks=False):
            return "folder"
        return "file" if entry.is_file(follow_symlinks=False) else "special"
    except OSError:  # reading it will tell why
        return "file"


def _is_junction(entry: os.DirEntry) -> bool:
    """Whether this is Windows' other kind of link to a folder."""
    tag = getattr(entry.stat(follow_symlinks=False), "st_reparse_tag", 0)
    return tag == getattr(stat, "IO_REPARSE_TAG_MOUNT_POINT", -1)


def _read_file(root: str, parts: tuple[str, ...], limit: int) -> bytes:
    with os.fdopen(_opened(root, parts), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise Unreadable("is not a plain file")
        content = file.read(limit + 1)
    if len(content) > limit:
        raise Unreadable(f"is larger than {limit // 1_000_000} MB")
    return content


def _opened(root: str, parts: tuple[str, ...]) -> int:
    """Return a descriptor of root/parts, opened so that no part below root is a link."""
    if os.open not in os.supports_dir_fd:
        return _opened_by_path(root, parts)
    folder = os.open(root, _OPEN)
    try:
        for part in parts[:-1]:
            inner = os.open(part, _OPEN | os.O_DIRECTORY, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(parts[-1], _OPEN, dir_fd=folder)
    finally:
        os.close(folder)


def _opened_by_path(root: str, parts: tuple[str, ...]) -> int:
    """The same for Windows: look at every part, then open."""
    for end in range(1, len(parts) + 1):
        found = os.lstat(os.path.join(root, *parts[:end]))
        tag = getattr(found, "st_reparse_tag", 0)
        expected = stat.S_ISREG if end == len(parts) else stat.S_ISDIR
        if not expected(found.st_mode) or tag == getattr(stat, "IO_REPARSE_TAG_MOUNT_POINT", -1):
            raise Unreadable("is not a plain file in plain folders")
    return os.open(os.path.join(root, *parts), _OPEN)
