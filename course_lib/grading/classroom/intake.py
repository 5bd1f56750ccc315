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
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from course_lib.grading.classroom import names
from course_lib.grading.classroom.names import Owner, shown, some, squash
from course_lib.grading.classroom.places import DEEPEST, Node, folder_tree, open_zip, zip_tree
from course_lib.grading.classroom.zips import MAX_INNER_TABLE, Unreadable, list_members, read_member

MAX_NOTEBOOK_BYTES = 20_000_000
MAX_ZIP_BYTES = 50_000_000  # of a student's own zip
MAX_LOOKED_AT = 200_000  # entries of one student
MAX_KEPT = 2_000  # notebooks of one student that are weighed against each other
MAX_TIMESTAMP_BYTES = 200
MAX_TOLD = 8  # problems of one kind that are told one by one
#: Folders of nbgrader's for other assignments begin like this one's: 02_compiled_loops, A_derivative.
_ASSIGNMENT = re.compile(r"(\d+|[A-Z])_")
_TIMESTAMP = re.compile(r"[0-9][0-9A-Za-z :.,+\-_/]{5,80}")
_ODD = {"link": "a link", "special": "a pipe, socket or device"}
NOBODYS = Owner("", "")  # of what lies within: its name tells no more
_ASK = "ask for a file that ends in .ipynb."


class IntakeError(ValueError):
    """The source cannot be taken in at all; the message says why and what to do."""


@dataclass(frozen=True)
class Received:
    """What one student handed in. Small until it is read.

    student: a safe id, for a folder and for nbgrader; no two records of a source share one
    name: the original name of the file, cleaned for showing; "" if there is no usable one
    problems: sentences for the teacher: what needs a manual look, and why. `read` may add to them
    received_at: the text of nbgrader's timestamp.txt
    """

    student: str
    name: str
    problems: tuple[str, ...]
    received_at: str | None = None
    _assignment: str = ""
    _file: Node | None = None

    def read(self) -> tuple[bytes | None, tuple[str, ...]]:
        """Return the notebook's bytes, or None if there is none usable, and all problems. Never raises."""
        if self._file is None:
            return None, self.problems
        try:
            if names.is_notebook(self._file.name):
                return self._file.read(MAX_NOTEBOOK_BYTES), self.problems
            data, more = self._from_zip(self._file.read(MAX_ZIP_BYTES))
        except Unreadable as problem:
            data, more = None, [f"{self.name} {problem}."]
        except Exception as problem:  # whatever a hostile file provokes must cost only its student
            data, more = None, [f"{self.name} cannot be read ({type(problem).__name__})."]
        return data, (*self.problems, *more)

    def _from_zip(self, data: bytes) -> tuple[bytes | None, list[str]]:
        """Return the notebook inside a student's zip, and problems. Zips inside it stay shut."""
        if b"PK\5\6" not in data:
            raise Unreadable("is no zip, or one that was cut off")
        file = io.BytesIO(data)
        top = zip_tree(self.name, list_members(file, MAX_INNER_TABLE))
        handed = _Handed([(top, NOBODYS)], self._assignment)
        chosen, problems = handed.pick(handed.notebooks, "notebooks")
        problems = [*handed.told(), *problems]
        if chosen is None:
            instead = f"a zip in the zip ({_paths(handed.zips)})" if handed.zips else handed.instead()
            return None, [*problems, f"{self.name} holds no notebook ({instead}): {_ASK}"]
        try:
            return read_member(file, chosen.node.member, MAX_NOTEBOOK_BYTES), problems
        except Unreadable as problem:
            return None, [*problems, f"{shown(chosen.path)} in {self.name} {problem}."]


def receive(source: Path, assignment: str) -> list[Received]:
    """Return one record per student found in `source`, a folder or a zip, in the order of their ids.

    Only names are looked at here; contents are read by `Received.read`. Raises IntakeError if `source` is
    missing, of another kind, or holds no submissions.
    """
    source = Path(source)
    tree = _tree(source)
    try:
        groups = _groups(_students(tree, assignment, source.stem))
    except Unreadable as problem:
        raise IntakeError(f"{source} {problem}: give a folder or zip that you can read.") from problem
    if not groups:
        listed = _listed(tree.inside())
        holds = f"only {listed}" if listed else "nothing"
        raise IntakeError(
            f"There are no submissions in {source} (it holds {holds}): give a folder or zip with a folder, a "
            "notebook or a zip for each student."
        )
    records = []
    for group, (student, sharing) in zip(groups, names.student_ids(_people(groups)), strict=True):
        record = _record(student, group, assignment)
        if sharing:
            told = f"{len(sharing)} submissions go by the name {shown(group[0][1].who)}"
            told += f" and were kept apart ({some(sharing, 5)}): see which is whose."
            record = replace(record, problems=(told, *record.problems))
        records.append(record)
    return sorted(records, key=lambda one: (names.fold(one.student), one.student))


# --- the source as a whole ---------------------------------------------------------------------------------


def _tree(source: Path) -> Node:
    try:
        if source.is_dir():
            return folder_tree(source)
        if source.is_file():
            return open_zip(source)
        is_there = source.exists()
        told = "is neither a folder nor a file" if is_there else f"does not exist ({_beside(source)})"
    except OSError as problem:  # a folder above it is locked, or the name is too long
        told = f"cannot be reached ({problem.strerror})"
    except Unreadable as problem:
        told = str(problem)
    raise IntakeError(
        f"{source} {told}: give the folder with the submissions, or the zip as downloaded from the learning "
        "platform."
    )


def _beside(source: Path) -> str:
    try:
        return f"{source.parent} holds {_listed(source.parent.iterdir()) or 'nothing'}"
    except OSError:
        return f"{source.parent} cannot be looked into either"


def _listed(entries: Iterable[Node | Path]) -> str:
    return some(sorted(one.name for one in entries if not names.is_junk(one.name)))


def _students(tree: Node, assignment: str, title: str) -> list[Node]:
    """Return what lies where the students are: at the top, or inside the one folder around everything."""
    top = _inside(tree)
    plain = [one for one in top if not one.outside]
    if len(plain) == 1 and plain[0].kind == "folder" and not _owner(plain[0]).system:
        with suppress(Unreadable):
            inner = _inside(plain[0])
            if _is_class(inner, assignment, same_title=plain[0].name == title):
                return [*inner, *(one for one in top if one.outside)]
    return top


def _inside(folder: Node) -> list[Node]:
    found = [*folder.inside()]
    beside = {one.name for one in found}
    return [one for one in found if not names.is_junk(one.name, beside)]


def _owner(node: Node) -> Owner:
    return names.owner_of(node.name, node.kind == "folder")


def _is_class(nodes: list[Node], assignment: str, same_title: bool) -> bool:
    """Whether these are the submissions of a class, rather than the files of one student."""
    if any(_owner(one).system for one in nodes):
        return True
    if any(_is_exactly(one.name, assignment) for one in nodes):
        return False
    students = [one for one in nodes if _may_be_student(one)]
    if len(students) != 1:
        return bool(students)
    return same_title or _holds_assignment(students[0], assignment)  # a zip is often packed around its folder


def _holds_assignment(node: Node, assignment: str) -> bool:
    """Whether this is a student's folder as nbgrader lays it out."""
    with suppress(Unreadable):
        return node.kind == "folder" and any(_is_exactly(one.name, assignment) for one in node.inside())
    return False


def _is_exactly(name: str, assignment: str) -> bool:
    """Whether a file or folder is named like the assignment, apart from the number of a repeated upload."""
    return squash(names.repeat_of(name)[0]) == squash(assignment)


def _may_be_student(node: Node) -> bool:
    """Whether something at the top is a submission, and not for example a teacher's list of grades."""
    is_submission = names.is_notebook(node.name) or names.is_zip_name(node.name) or _owner(node).system
    return node.kind != "file" or bool(is_submission)


# --- whose is what -----------------------------------------------------------------------------------------

#: What belongs to one student at the top of the source.
_Group = list[tuple[Node, Owner]]


def _groups(nodes: list[Node]) -> list[_Group]:
    """Return who handed in what. Only what surely belongs together is put together."""
    groups: defaultdict[tuple[str, ...], _Group] = defaultdict(list)
    for node in filter(_may_be_student, nodes):
        owner = _owner(node)
        kind = "" if owner.system else node.kind
        groups[owner.system, owner.who, owner.number, kind, node.outside].append((node, owner))
    return list(groups.values())


def _people(groups: list[_Group]) -> list[tuple[str, str]]:
    """Return (name, number that tells people of that name apart) for each."""
    owners = [group[0][1] for group in groups]
    moodle = [one.who for one in owners if one.system == "moodle"]
    blind = len(moodle) > 2 and len(set(moodle)) == 1
    numbered = ("canvas", "moodle") if blind else ("canvas",)
    return [
        (f"{one.who}_{one.number}", "") if one.number and one.system in numbered else (one.who, one.number)
        for one in owners
    ]


def _record(student: str, group: _Group, assignment: str) -> Received:
    handed = _Handed(group, assignment)
    if not group[0][1].system:
        handed.set_other_assignments_aside()
    problems = handed.told()
    if any(owner.late for _, owner in group):
        problems.append("Handed in late, says Canvas.")
    chosen, more = handed.pick(handed.notebooks, "notebooks")
    if chosen is None:
        chosen, more = handed.pick(handed.zips, "zips")
    elif handed.zips:
        more.append(f"Handed in a zip as well, which was not opened: {_paths(handed.zips)}.")
    problems += more
    if chosen is None:
        return Received(student, "", (*problems, _no_notebook(handed, group)))
    by_nbgrader = not group[0][1].system and chosen.folders == (assignment,)  # else it is the student's own
    received_at, more = _stamp(handed.stamps.get(chosen.folders) if by_nbgrader else None)
    # the platform's folder has the number that the platform knows
    folders = [node.name for node, owner in group if owner.system and node.kind == "folder"]
    name = shown("/".join([*folders[:1], chosen.name]), 200)
    return Received(student, name, (*problems, *more), received_at, assignment, chosen.node)


def _no_notebook(handed: _Handed, group: _Group) -> str:
    if all(owner.typed for _, owner in group):
        return "Handed in text or a web address instead of a file: ask for the notebook."
    if handed.elsewhere:
        paths = _paths(handed.elsewhere)
        return f"Handed in nothing for {handed.assignment}, only for other assignments ({paths})."
    if any(names.is_notebook(node.name) and node.kind == "folder" for node, _ in group):
        return "Handed in a folder with the name of a notebook, and no notebook in it."
    return f"Handed in no notebook ({handed.instead()}): {_ASK}"


def _stamp(node: Node | None) -> tuple[str | None, list[str]]:
    if node is None:
        return None, []
    with suppress(Unreadable, UnicodeDecodeError):
        text = node.read(MAX_TIMESTAMP_BYTES).decode("ascii").strip()
        if _TIMESTAMP.fullmatch(text):
            return text, []
    return None, ["timestamp.txt beside the notebook holds no date: see when it was handed in."]


# --- what one student handed in ----------------------------------------------------------------------------


@dataclass
class _Found:
    """A notebook or zip that may be the submission."""

    node: Node
    name: str
    folders: tuple[str, ...]
    upload: int

    @property
    def path(self) -> str:
        return "/".join((*self.folders, self.name))


def _paths(found: list[_Found]) -> str:
    return some([one.path for one in found])


class _Handed:
    """Everything that matters of what one student handed in: all folders, breadth first and bounded."""

    def __init__(self, nodes: _Group, assignment: str) -> None:
        self.assignment = assignment
        self.notebooks: list[_Found] = []
        self.zips: list[_Found] = []
        self.elsewhere: list[_Found] = []  # notebooks of other assignments
        self.stamps: dict[tuple[str, ...], Node] = {}
        self._others: list[str] = []  # files of other kinds
        self._deep: list[str] = []
        self._problems: list[str] = []
        self._odd: defaultdict[str, list[str]] = defaultdict(list)
        self._outside: list[str] = []  # paths that lead out of the zip
        folders: deque[tuple[Node, tuple[str, ...]]] = deque()
        for node, owner in nodes:
            if owner.typed:
                self._others.append(shown(node.name))
            elif node.kind == "folder":
                folders.append((node, ()))
            else:
                self._sort_in(node, (), owner)
        self._look_through(folders)

    def _look_through(self, queue: deque[tuple[Node, tuple[str, ...]]]) -> None:
        looked_at = 0
        while queue:
            folder, folders = queue.popleft()
            try:
                for node in folder.inside():
                    if names.is_junk(node.name):
                        continue
                    looked_at += 1
                    if looked_at > MAX_LOOKED_AT:
                        told = f"Handed in more than {MAX_LOOKED_AT} files: not all were looked at."
                        self._problems.append(told)
                        return
                    path = (*folders, node.name)
                    if node.kind != "folder":
                        self._sort_in(node, folders)
                    elif len(folders) < DEEPEST:
                        queue.append((node, path))
                    else:
                        self._deep.append(shown("/".join(path)))
            except Unreadable as problem:
                where = shown("/".join(folders)) or "The submission folder"
                self._problems.append(f"{where} {problem}.")

    def _sort_in(self, node: Node, folders: tuple[str, ...], owner: Owner = NOBODYS) -> None:
        name = owner.file or node.name
        path = shown("/".join((*folders, node.name)))
        if node.outside:
            self._outside.append(node.outside + node.name)
        if node.kind in _ODD:
            self._odd[_ODD[node.kind]].append(path)
        elif name == "timestamp.txt":
            self.stamps[folders] = node
        elif names.is_notebook(name) or names.is_zip_name(name):
            kept = self.notebooks if names.is_notebook(name) else self.zips
            if len(kept) < MAX_KEPT or self._is_fitting(name):
                kept.append(_Found(node, name, folders, owner.upload))
        elif len(self._others) < MAX_TOLD:
            self._others.append(path)

    def _is_fitting(self, name: str) -> bool:
        return squash(self.assignment) in squash(names.stem(name))

    def set_other_assignments_aside(self) -> None:
        """Take out what lies in nbgrader's folders of other assignments."""
        folders = {
            one.folders[0]
            for one in self.notebooks
            if one.folders == (names.stem(one.name),) and _ASSIGNMENT.match(one.folders[0])
        }
        others = {(one,) for one in folders if squash(one) != squash(self.assignment)}
        for kept in (self.notebooks, self.zips):
            self.elsewhere += [one for one in kept if one.folders[:1] in others]
            kept[:] = [one for one in kept if one.folders[:1] not in others]

    def told(self) -> list[str]:
        """Return the problems; links, pipes and bad paths summed up."""
        summed = [f"Handed in {what} instead of a file: {some(paths)}." for what, paths in self._odd.items()]
        if self._outside:
            summed.append(f"The zip holds a path that leads out of it: {some(self._outside)}.")
        return [*summed, *self._problems[:MAX_TOLD]]

    def instead(self) -> str:
        """Return what there is where no notebook is."""
        if self._deep:
            return f"{some(self._deep)} lies too deep to be looked into"
        return f"only {some(self._others)}" if self._others else "no other file either"

    def pick(self, found: list[_Found], what: str) -> tuple[_Found | None, list[str]]:
        """Return one of `found` and problems: the one named like the assignment, the only one, the newest."""
        in_place = [one for one in found if one.folders and squash(one.folders[0]) == squash(self.assignment)]
        pool = in_place or found
        pool = [one for one in pool if self._is_fitting(one.name)] or pool
        pool = [one for one in pool if not one.node.outside] or pool
        exact = [one for one in pool if one.folders[:1] == (self.assignment,) == (names.stem(one.name),)]
        if len(exact) == 1:  # nbgrader's own place: what lies beside it are the student's copies
            return exact[0], []
        if len(pool) < 2:
            return (pool[0] if pool else None), []
        same_stem = len({names.repeat_of(one.name)[0] for one in pool}) == 1
        newest = max(enumerate(pool), key=lambda one: _age(one[1], same_stem, one[0]))[1]
        told = f"Handed in {len(pool)} {what} that may be meant ({_paths(pool)}): "
        return newest, [f"{told}{shown(newest.path)} was taken as the newest."]


def _age(one: _Found, same_stem: bool, position: int) -> tuple:
    """Return what grows with time: the number of a repeated upload, if all are repeats of one file."""
    repeat = names.repeat_of(one.name)[1]
    written = one.node.written()
    clocks = (repeat, one.upload, written) if same_stem else (one.upload, written, repeat)
    return (*clocks, one.name, position)
