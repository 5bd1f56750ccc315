"""Intake: what a teacher downloaded, as one record per student.

`receive` takes a folder or a zip from Moodle, Canvas or nbgrader, or one that a person arranged:

    DIR/<student>/<assignment>/<assignment>.ipynb   nbgrader, with timestamp.txt beside it
    DIR/<student>/*.ipynb                           a folder each
    DIR/<student>.ipynb                             a file each
    DIR/Full Name_12345_assignsubmission_file_/…    Moodle (see names.py), as a folder or flat
    DIR/doejane_12345_67890_x.ipynb                 Canvas (see names.py)

In place of a notebook there may be a zip with the notebook in it, and one folder may stand around everything.
Nothing is followed, run or extracted; whatever one student hands in costs that student only.
"""

from __future__ import annotations

import io
import re
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from course_lib.grading.classroom import names
from course_lib.grading.classroom.names import Owner, shown, some
from course_lib.grading.classroom.places import DEEPEST, FilePlace, Node, folder_tree, open_zip, zip_tree
from course_lib.grading.classroom.zips import (
    MAX_INNER_TABLE,
    Unreadable,
    is_zip,
    list_members,
    read_member,
)

MAX_NOTEBOOK_BYTES = 20_000_000
MAX_ZIP_BYTES = 50_000_000  # of a student's own zip
MAX_LOOKED_AT = 200_000  # entries of one student
MAX_KEPT = 2_000  # notebooks of one student that are weighed against each other
MAX_TIMESTAMP_BYTES = 200
MAX_TOLD = 8  # problems of one kind that are told one by one
#: Folders of nbgrader's for other assignments begin like this one's: 02_compiled_loops, A_derivative.
_ASSIGNMENT = re.compile(r"(\d+|[A-Z])_")
_TIMESTAMP = re.compile(r"[0-9][0-9A-Za-z :.,+\-_/]{5,80}")


class IntakeError(ValueError):
    """The source cannot be taken in at all; the message says why and what to do."""


@dataclass(frozen=True)
class Received:
    """What one student handed in. Small until it is read, and good for sending to another process.

    student: a safe id, for a folder and for nbgrader; no two records of a source share one
    name: the original name of the file, cleaned for showing; "" if there is no usable one
    problems: sentences for the teacher: what needs a manual look, and why. `read` may add to them
    received_at: the text of nbgrader's timestamp.txt
    """

    student: str
    name: str
    problems: tuple[str, ...]
    received_at: str | None = None
    _where: FilePlace | None = None
    _wanted: tuple[str, ...] = ()
    _own_zip: bool = False

    def read(self) -> tuple[bytes | None, tuple[str, ...]]:
        """Return the notebook's bytes, or None if there is none usable, and all problems. Never raises."""
        if self._where is None:
            return None, self.problems
        try:
            data, more = self._content(self._where)
        except Unreadable as problem:
            return None, (*self.problems, f"{self.name} {problem}.")
        except Exception as problem:  # whatever a hostile file provokes must cost only its student
            reason = f"{self.name} cannot be read ({type(problem).__name__})."
            return None, (*self.problems, reason)
        if data == b"":
            data, more = None, [*more, f"{self.name} is an empty file."]
        return data, (*self.problems, *more)

    def _content(self, where: FilePlace) -> tuple[bytes | None, list[str]]:
        if self._own_zip:
            return _from_own_zip(where.read(MAX_ZIP_BYTES), self.name, self._wanted)
        return where.read(MAX_NOTEBOOK_BYTES), []


def receive(source: Path, assignment: str, names: tuple[str, ...] = ()) -> list[Received]:
    """Return one record per student found in `source`, a folder or a zip, in the order of their ids.

    `names` are further names that the assignment's notebook may go by. Only names are looked at here;
    contents are read by `Received.read`. Raises IntakeError if `source` is missing, of another kind, or
    holds no submissions.
    """
    source = Path(source)
    tree = _tree(source)
    wanted = (assignment, *names)
    try:
        groups = _groups(_students(tree, wanted, source.stem))
    except Unreadable as problem:
        raise IntakeError(f"{source} {problem}: give a folder or zip that you can read.") from problem
    if not groups:
        raise IntakeError(_nothing_in(source, tree))
    return _records(groups, wanted)


# --- the source as a whole ---------------------------------------------------------------------------------


def _tree(source: Path) -> Node:
    how = "give the folder with the submissions, or the zip as downloaded from the learning platform"
    try:
        exists = source.exists()
    except OSError as problem:  # a folder above it is locked, or the name is too long
        raise IntakeError(f"{source} cannot be reached ({problem.strerror}): {how}.") from problem
    if not exists:
        raise IntakeError(f"{source} does not exist ({_beside(source)}): {how}.")
    if source.is_dir():
        return folder_tree(source)
    if not source.is_file():
        raise IntakeError(f"{source} is neither a folder nor a file: {how}.")
    try:
        return open_zip(source)
    except Unreadable as problem:
        raise IntakeError(f"{source} {problem}: {how}.") from problem


def _beside(source: Path) -> str:
    try:
        found = sorted(one.name for one in source.parent.iterdir() if not names.is_junk(one.name))
    except OSError:
        return f"{source.parent} cannot be looked into either"
    return f"{source.parent} holds {some(found) or 'nothing'}"


def _nothing_in(source: Path, tree: Node) -> str:
    found = sorted(one.name for one in tree.inside() if not names.is_junk(one.name))
    holds = f"only {some(found)}" if found else "nothing"
    return (
        f"There are no submissions in {source} (it holds {holds}): give a folder or zip with a folder, a "
        "notebook or a zip for each student."
    )


def _students(tree: Node, wanted: tuple[str, ...], title: str) -> list[Node]:
    """Return what lies where the students are: at the top, or inside the one folder around everything."""
    top = [one for one in tree.inside() if not names.is_junk(one.name)]
    plain = [one for one in top if not one.outside]
    if len(plain) == 1 and plain[0].kind == "folder" and not _is_of_platform(plain[0]):
        try:
            inner = [one for one in plain[0].inside() if not names.is_junk(one.name)]
        except Unreadable:
            return top
        if _is_class(inner, wanted, same_title=plain[0].name == title):
            return [*inner, *(one for one in top if one.outside)]
    return top


def _is_of_platform(node: Node) -> bool:
    return bool(names.owner_of(node.name, node.kind == "folder").system)


def _is_class(nodes: list[Node], wanted: tuple[str, ...], same_title: bool) -> bool:
    """Whether these are the submissions of a class, rather than the files of one student."""
    if any(_is_of_platform(one) for one in nodes):
        return True
    if any(_is_exactly(one.name, wanted) for one in nodes):
        return False
    students = [one for one in nodes if _may_be_student(one)]
    if len(students) != 1:
        return bool(students)
    return same_title or _holds_assignment(students[0], wanted)  # a zip is often packed around its folder


def _holds_assignment(node: Node, wanted: tuple[str, ...]) -> bool:
    """Whether this is a student's folder as nbgrader lays it out."""
    try:
        return node.kind == "folder" and any(_is_exactly(one.name, wanted) for one in node.inside())
    except Unreadable:
        return False


def _is_exactly(name: str, wanted: tuple[str, ...]) -> bool:
    """Whether a file or folder is named like the assignment, apart from the number of a repeated upload."""
    return names.squash(names.repeat_of(name)[0]) in map(names.squash, wanted)


def _is_for(name: str, wanted: tuple[str, ...]) -> bool:
    """Whether a file's or folder's name contains the assignment's."""
    squashed = names.squash(names.stem(name))
    return any(names.squash(one) in squashed for one in wanted)


def _may_be_student(node: Node) -> bool:
    """Whether something at the top is a submission, and not for example a teacher's list of grades."""
    if node.kind == "file":
        return names.is_notebook(node.name) or names.is_zip_name(node.name) or _is_of_platform(node)
    return True


# --- whose is what -----------------------------------------------------------------------------------------


@dataclass
class _Group:
    """What belongs to one student at the top of the source."""

    owner: Owner
    nodes: list[tuple[Node, Owner]] = field(default_factory=list)


def _groups(nodes: list[Node]) -> list[_Group]:
    """Return who handed in what. Only what surely belongs together is put together."""
    groups: dict[tuple[str, ...], _Group] = {}
    for node in filter(_may_be_student, nodes):
        owner = names.owner_of(node.name, node.kind == "folder" or not _has_ending(node.name))
        kind = "" if owner.system else node.kind
        key = (owner.system, owner.who, owner.number, kind, node.outside)
        groups.setdefault(key, _Group(owner)).nodes.append((node, owner))
    return list(groups.values())


def _has_ending(name: str) -> bool:
    return names.is_notebook(name) or names.is_zip_name(name) or bool(names.owner_of(name, False).system)


def _records(groups: list[_Group], wanted: tuple[str, ...]) -> list[Received]:
    people = _people([one.owner for one in groups])
    records = []
    for group, (student, sharing) in zip(groups, names.student_ids(people), strict=True):
        record = _record(student, group, wanted)
        if sharing:
            told = f"{len(sharing)} submissions go by the name {shown(group.owner.who)}"
            told += f" and were kept apart ({some(sharing, 5)}): see which is whose."
            record = replace(record, problems=(told, *record.problems))
        records.append(record)
    return sorted(records, key=lambda one: (names.fold(one.student), one.student))


def _people(owners: list[Owner]) -> list[tuple[str, str]]:
    """Return (name, number that tells people of that name apart) for each."""
    moodle = [one.who for one in owners if one.system == "moodle"]
    blind = len(moodle) > 2 and len(set(moodle)) == 1
    return [
        (f"{one.who}_{one.number}", "")
        if one.number and (one.system == "canvas" or (one.system == "moodle" and blind))
        else (one.who, one.number)
        for one in owners
    ]


# --- what one student handed in ----------------------------------------------------------------------------


@dataclass
class _Found:
    """A notebook or zip that may be the submission."""

    name: str
    folders: tuple[str, ...]
    place: FilePlace
    upload: int = 0
    outside: str = ""

    @property
    def path(self) -> str:
        return "/".join((*self.folders, self.name))


@dataclass
class _Handed:
    """Everything that matters of what one student handed in."""

    notebooks: list[_Found] = field(default_factory=list)
    zips: list[_Found] = field(default_factory=list)
    stamps: dict[tuple[str, ...], FilePlace] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)  # files of other kinds
    elsewhere: list[_Found] = field(default_factory=list)  # notebooks of other assignments
    deep: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)  # paths that lead out of the zip
    problems: list[str] = field(default_factory=list)
    odd: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def told(self) -> list[str]:
        """Return the problems; links, pipes and bad paths summed up."""
        summed = [f"Handed in {what} instead of a file: {some(paths)}." for what, paths in self.odd.items()]
        if self.outside:
            summed.append(f"The zip holds a path that leads out of it: {some(self.outside)}.")
        return [*summed, *self.problems[:MAX_TOLD]]


def _record(student: str, group: _Group, wanted: tuple[str, ...]) -> Received:
    handed = _gathered(group.nodes, wanted)
    if not group.owner.system:
        _set_other_assignments_aside(handed, wanted)
    problems = handed.told()
    if any(owner.late for _, owner in group.nodes):
        problems.append("Handed in late, says Canvas.")
    chosen, more = _chosen(handed, wanted)
    problems += more
    if chosen is None:
        return Received(student, "", (*problems, _no_notebook(handed, group, wanted)))
    received_at, more = _stamp(handed.stamps.get(chosen.folders))
    name = shown(_name_as_downloaded(chosen, group), 200)
    own_zip = not names.is_notebook(chosen.name)
    return Received(student, name, (*problems, *more), received_at, chosen.place, wanted, own_zip)


def _name_as_downloaded(chosen: _Found, group: _Group) -> str:
    """Return the file's name with the platform's folder before it: it has the number the platform knows."""
    folders = [node.name for node, owner in group.nodes if owner.system and node.kind == "folder"]
    return f"{folders[0]}/{chosen.name}" if folders else chosen.name


def _gathered(nodes: list[tuple[Node, Owner]], wanted: tuple[str, ...]) -> _Handed:
    """Look through all of a student's folders, breadth first and bounded."""
    handed = _Handed()
    queue: deque[tuple[Node, tuple[str, ...]]] = deque()
    for node, owner in nodes:
        if owner.typed:
            handed.others.append(shown(node.name))
        elif node.kind == "folder":
            queue.append((node, ()))
        else:
            _sort_in(handed, node, (), owner, wanted)
    looked_at = 0
    while queue:
        folder, folders = queue.popleft()
        for node in _entries(folder, folders, handed):
            looked_at += 1
            if looked_at > MAX_LOOKED_AT:
                handed.problems.append(f"Handed in more than {MAX_LOOKED_AT} files: not all were looked at.")
                return handed
            if node.kind != "folder":
                _sort_in(handed, node, folders, None, wanted)
            elif len(folders) < DEEPEST:
                queue.append((node, (*folders, node.name)))
            else:
                handed.deep.append(_path(folders, node))
    return handed


def _entries(folder: Node, folders: tuple[str, ...], handed: _Handed) -> Iterator[Node]:
    try:
        for node in folder.inside():
            if not names.is_junk(node.name):
                yield node
    except Unreadable as problem:
        handed.problems.append(f"{shown('/'.join(folders)) or 'The submission folder'} {problem}.")


def _path(folders: tuple[str, ...], node: Node) -> str:
    return shown("/".join((*folders, node.name)))


def _sort_in(
    handed: _Handed, node: Node, folders: tuple[str, ...], owner: Owner | None, wanted: tuple[str, ...]
) -> None:
    name = owner.file if owner and owner.file else node.name
    if node.outside:
        handed.outside.append(node.outside + node.name)
    if node.kind == "link":
        handed.odd["a link"].append(_path(folders, node))
    elif node.kind == "special":
        handed.odd["a pipe, socket or device"].append(_path(folders, node))
    elif name == "timestamp.txt":
        handed.stamps[folders] = node.place
    elif names.is_notebook(name) or names.is_zip_name(name):
        kept = handed.notebooks if names.is_notebook(name) else handed.zips
        if len(kept) < MAX_KEPT or _is_for(name, wanted):
            kept.append(_Found(name, folders, node.place, owner.upload if owner else 0, node.outside))
    elif len(handed.others) < MAX_TOLD:
        handed.others.append(_path(folders, node))


def _no_notebook(handed: _Handed, group: _Group, wanted: tuple[str, ...]) -> str:
    if all(owner.typed for _, owner in group.nodes):
        return "Handed in text or a web address instead of a file: ask for the notebook."
    if handed.elsewhere:
        paths = [one.path for one in handed.elsewhere]
        return f"Handed in nothing for {wanted[0]}, only for other assignments ({some(paths)})."
    if any(names.is_notebook(node.name) and node.kind == "folder" for node, _ in group.nodes):
        return "Handed in a folder with the name of a notebook, and no notebook in it."
    return f"Handed in no notebook ({_instead(handed)}): ask for a file that ends in .ipynb."


def _instead(handed: _Handed) -> str:
    if handed.deep:
        return f"{some(handed.deep)} lies too deep to be looked into"
    return f"only {some(handed.others)}" if handed.others else "no other file either"


# --- which notebook ----------------------------------------------------------------------------------------


def _chosen(handed: _Handed, wanted: tuple[str, ...]) -> tuple[_Found | None, list[str]]:
    """Return the notebook to grade, or the zip that should hold it, and what the teacher must know."""
    notebook, problems = _pick(handed.notebooks, wanted, "notebooks")
    if notebook is None:
        return _pick(handed.zips, wanted, "zips")
    if handed.zips:
        paths = some([one.path for one in handed.zips])
        problems.append(f"Handed in a zip as well, which was not opened: {paths}.")
    return notebook, problems


def _pick(found: list[_Found], wanted: tuple[str, ...], what: str) -> tuple[_Found | None, list[str]]:
    """Return one of `found` and problems: the one named like the assignment, the only one, the newest."""
    here = {names.squash(one) for one in wanted}
    pool = [one for one in found if one.folders and names.squash(one.folders[0]) in here] or found
    pool = [one for one in pool if _is_for(one.name, wanted)] or pool
    pool = [one for one in pool if not one.outside] or pool
    exact = [one for one in pool if one.folders[:1] and names.stem(one.name) == wanted[0] == one.folders[0]]
    if len(exact) == 1:  # nbgrader's own place: what lies beside it are the student's copies
        return exact[0], []
    if len(pool) < 2:
        return (pool[0] if pool else None), []
    same_stem = len({names.repeat_of(one.name)[0] for one in pool}) == 1
    newest = max(enumerate(pool), key=lambda one: _age(one[1], same_stem, one[0]))[1]
    paths = some([one.path for one in pool])
    told = f"Handed in {len(pool)} {what} that may be meant ({paths}): {shown(newest.path)} was taken as the "
    return newest, [told + "newest."]


def _age(one: _Found, same_stem: bool, position: int) -> tuple:
    """Return what grows with time: the number of a repeated upload, if all are repeats of one file."""
    repeat = names.repeat_of(one.name)[1]
    written = one.place.written()
    clocks = (repeat, one.upload, written) if same_stem else (one.upload, written, repeat)
    return (*clocks, one.name, position)


def _set_other_assignments_aside(handed: _Handed, wanted: tuple[str, ...]) -> None:
    """Take out what lies in nbgrader's folders of other assignments."""
    here = {names.squash(one) for one in wanted}
    folders = {
        one.folders[0]
        for one in handed.notebooks
        if one.folders == (names.stem(one.name),) and _ASSIGNMENT.match(one.folders[0])
    }
    folders = {one for one in folders if names.squash(one) not in here}
    for kept in (handed.notebooks, handed.zips):
        handed.elsewhere += [one for one in kept if one.folders and one.folders[0] in folders]
        kept[:] = [one for one in kept if not (one.folders and one.folders[0] in folders)]


def _stamp(place: FilePlace | None) -> tuple[str | None, list[str]]:
    if place is None:
        return None, []
    try:
        text = place.read(MAX_TIMESTAMP_BYTES).decode("ascii").strip()
    except (Unreadable, UnicodeDecodeError):
        text = ""
    if _TIMESTAMP.fullmatch(text):
        return text, []
    return None, ["timestamp.txt beside the notebook holds no date: see when it was handed in."]


# --- a student's own zip -----------------------------------------------------------------------------------


def _from_own_zip(data: bytes, name: str, wanted: tuple[str, ...]) -> tuple[bytes | None, list[str]]:
    """Return the notebook inside a student's zip, and problems. Zips inside it stay shut."""
    file = io.BytesIO(data)
    if not data:
        return None, [f"{name} is an empty file."]
    if not is_zip(file):
        return None, [f"{name} is no zip, or one that was cut off."]
    tree = zip_tree(name, list_members(file, MAX_INNER_TABLE))
    handed = _gathered([(tree, Owner("", ""))], wanted)
    chosen, problems = _pick(handed.notebooks, wanted, "notebooks")
    problems = [*handed.told(), *problems]
    if chosen is None or chosen.place.member is None:
        zips = some([one.path for one in handed.zips])
        found = f"a zip in the zip ({zips})" if zips else _instead(handed)
        return None, [*problems, f"{name} holds no notebook ({found}): ask for a file that ends in .ipynb."]
    try:
        content = read_member(file, chosen.place.member, MAX_NOTEBOOK_BYTES)
    except Unreadable as problem:
        return None, [*problems, f"{shown(chosen.path)} in {name} {problem}."]
    if not content:
        return None, [*problems, f"{shown(chosen.path)} in {name} is an empty file."]
    return content, problems
