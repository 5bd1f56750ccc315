"""Names: whose a submission is, told from the name a learning platform gave it, and safe ids for students.

What is assumed of the platforms ("download all submissions"):

- Moodle writes `Full Name_12345_assignsubmission_file_` as a folder, or the same in front of the file's name;
  newer ones leave out the last underscore. Underscores in the name become spaces, so the number is plain to
  see. It differs from assignment to assignment, hence it is no part of the id unless two share a name.
  Marking blind, everybody is called "Participant": then it has to be.
- Canvas writes `doejane_12345_67890_file.ipynb` (name, user, upload), `doejane_LATE_12345_67890_file.ipynb`,
  `doejane_12345_text.html` for typed text, `doejane_12345_link.html` for a web address, and
  `anon_x1Y2z_67890_file.ipynb` marking anonymously. The user's number lasts, hence it is part of the id.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

#: Bounds of an id before a suffix tells two of the same name apart.
MAX_BASE, MAX_BASE_BYTES = 48, 120
DEVICES = {"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$"} | {
    f"{port}{number}" for port in ("COM", "LPT") for number in range(10)
}
_JUNK = re.compile(
    r"__macosx|__pycache__|thumbs\.db|desktop\.ini|\.(ds_store|directory|ipynb_checkpoints|jupyter|nbgrader|git|svn"
    r"|idea|vscode|cache|trash(es)?|fseventsd|spotlight-v100|temporaryitems)",
    re.IGNORECASE,
)
_NOTEBOOK = re.compile(r"\.ipynb(\.txt|\.json)?$", re.IGNORECASE)  # browsers add .txt or .json
_REPEAT = re.compile(r"(?:-(\d{1,4})| ?\((\d{1,4})\))$")
#: What a platform makes of a name: Moodle of a folder or file, Canvas of a file.
_MOODLE = re.compile(
    r"(?P<who>.+?)_(?P<number>\d+)_assignsubmission_(?P<kind>[a-z]+)(?:_(?P<file>.*))?", re.S
)
_CANVAS = [
    re.compile(pattern, re.S)
    for pattern in (
        r"(?P<who>anon_[A-Za-z0-9]{5})(?P<late>_LATE)?_(?P<upload>\d+)_(?P<file>.+)",
        r"(?P<who>.+?)(?P<late>_LATE)?_(?P<number>\d+)_(?P<upload>\d+)_(?P<file>.+)",
        r"(?P<who>.+?)(?P<late>_LATE)?_(?P<number>\d+)_(?P<file>(?P<typed>text|link)\.html)",
    )
]


@dataclass(frozen=True)
class Owner:
    """Whose something at the top of a source is, as far as its name tells."""

    system: str  # "moodle", "canvas", or "" for names that a person gave
    who: str
    number: str = ""
    file: str = ""  # the file's own name, without what the platform put in front
    upload: int = 0  # grows with time
    late: bool = False
    typed: bool = False  # text typed into the platform, not a file


def owner_of(name: str, is_folder: bool) -> Owner:
    """Return the owner that the name of a file or folder tells.

    What stands first counts: what follows is the student's own, and may look like what a platform writes.
    """
    patterns = [_MOODLE] if is_folder else [_MOODLE, *_CANVAS]
    matches = filter(None, (pattern.fullmatch(name) for pattern in patterns))
    if match := min(matches, key=lambda one: len(one["who"]), default=None):
        part = match.groupdict(default="")
        if "kind" in part:
            return Owner("moodle", part["who"], part["number"], part["file"], typed=part["kind"] != "file")
        return Owner(
            "canvas",
            part["who"],
            part.get("number", ""),
            part["file"],
            upload=int(part.get("upload", "0")[:40]),  # Python refuses numbers of thousands of digits
            late=bool(part["late"]),
            typed="typed" in part,
        )
    return Owner("", name if is_folder else stem(name), file="" if is_folder else name)


def is_notebook(name: str) -> bool:
    """Whether a file of this name should be a notebook."""
    return bool(_NOTEBOOK.search(name))


def is_zip_name(name: str) -> bool:
    """Whether a file of this name should be a zip."""
    return name.lower().endswith(".zip")


def is_junk(name: str, beside: Collection[str] | None = None) -> bool:
    """Whether the name is something computers leave behind: hidden files, checkpoints, folders of a Mac.

    `beside` are the names where the students are. There only what is surely junk is: a person's name may
    begin with a dot, and nobody may vanish.
    """
    if beside is None and name.startswith("."):
        return True
    of_a_mac = name.startswith("._") and name[2:] in (beside or ())
    return of_a_mac or bool(_JUNK.fullmatch(name))


def stem(name: str) -> str:
    """Return the name without the ending of a notebook or a zip."""
    return name[:-4] if is_zip_name(name) else _NOTEBOOK.sub("", name)


def repeat_of(name: str) -> tuple[str, int]:
    """Return the stem without the number of a repeated upload, and that number: "x-2.ipynb" -> ("x", 2)."""
    whole = stem(name)
    found = _REPEAT.search(whole)
    return (whole[: found.start()], int(found[1] or found[2])) if found else (whole, 0)


def squash(name: str) -> str:
    """Return the letters and digits of a name only, in small letters, to compare names that people typed."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", name).casefold()))


def shown(name: str, limit: int = 80) -> str:
    """Return a name that may stand in a sentence: no control or direction characters, not too long."""
    clean = "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(one).startswith(("C", "Zl", "Zp")) else one
        for one in name[: 4 * limit]
    )
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"


def some(names: Sequence[str], most: int = 3) -> str:
    """Return the first few names for a sentence."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(shown(name) for name in names[:most]) + more


# --- ids ---------------------------------------------------------------------------------------------------


def safe_id(name: str) -> str:
    """Return a recognisable id: letters, digits, `_ - . @` only, safe as a folder's name everywhere.

    Different names may give the same id; `student_ids` tells them apart.
    """
    text = "".join(_safe(one) for one in unicodedata.normalize("NFC", name[:2000]))
    text = unicodedata.normalize("NFC", re.sub(r"_+", "_", text))
    text = _trimmed(text)
    if not text:
        return "student"
    if len(text) > MAX_BASE or len(text.encode()) > MAX_BASE_BYTES or len(name) > 2000:
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        short = text[:MAX_BASE].encode()[:MAX_BASE_BYTES].decode("utf-8", "ignore")
        text = f"{_trimmed(short[: MAX_BASE - 9])}-{digest}"
    device = unicodedata.normalize("NFKC", text.split(".")[0]).upper() in DEVICES
    return f"student_{text}" if device else text


def _safe(character: str) -> str:
    kind = unicodedata.category(character)
    if kind[0] in "LMN" or character in "-_.@":
        return character
    return "" if kind == "Cf" or character in "'’ʼ`´" else "_"


def _trimmed(text: str) -> str:
    """Return the text from its first letter or digit, without dots and dashes at the end."""
    first = next((n for n, one in enumerate(text) if one.isalnum()), len(text))
    return text[first:].rstrip("-_.@")


def fold(student: str) -> str:
    """Return what two ids share that some file system would take for the same."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", student).casefold())


def free_id(student: str, taken: Collection[str]) -> str:
    """Return the id, or the first of "id-2", "id-3", … that no folded one of `taken` has."""
    own, count = student, 1
    while fold(own) in taken:
        count += 1
        own = f"{student}-{count}"
    return own


def student_ids(people: Sequence[tuple[str, str]]) -> list[tuple[str, tuple[str, ...]]]:
    """Return for each (name, number) an id of its own, and the ids of all that would have got the same one.

    Those who share one get their number as a suffix, or a count; unshared ids depend on nobody else.
    """
    bases = [safe_id(who) for who, _ in people]
    sharing: defaultdict[str, list[int]] = defaultdict(list)
    for index, base in enumerate(bases):
        sharing[fold(base)].append(index)
    taken = set(sharing)
    found: list[tuple[str, tuple[str, ...]]] = [(base, ()) for base in bases]
    for _, group in sorted(sharing.items()):
        if len(group) == 1:
            continue
        group.sort(key=lambda n: (people[n][0] != bases[n], people[n], n))
        ids: dict[int, str] = {}
        for n in group:
            own = safe_id(f"{bases[n]}_{people[n][1]}") if people[n][1] else bases[n]
            if fold(own) in taken and (ids or own != bases[n]):  # the first may keep the name
                own = free_id(bases[n], taken)
            taken.add(fold(own))
            ids[n] = own
        for n, own in ids.items():
            found[n] = (own, tuple(ids.values()))
    return found
