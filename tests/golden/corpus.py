"""The golden corpus: what the grader of commit c0903a8 gave to known answers, before the house got lighter.

    answers.jsonl.xz  a line for each answer: task, kind, name, text; under two seeds points, state and first
                      line of the report, or in `says` what the task's rules said of a text that is not run
    handed_in.tar.xz  the attacked class of assignment 01 as it was handed in: attackers and three honest
    class.json.xz     its grades under two seeds: each task's points, state, first line, manual look

A grade that changes on purpose is written down in `changed.tsv` with its reason, and nowhere else; of a task
that has left a line there, `*` for all names, says why.
"""

from __future__ import annotations

import csv
import json
import lzma
import tarfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def answers() -> Iterator[dict[str, Any]]:
    """Yield every recorded answer to a task that is still there."""
    left = {task for task, name in changed() if name == "*"}
    with lzma.open(HERE / "answers.jsonl.xz", "rt", encoding="utf-8") as file:
        yield from (one for one in map(json.loads, file) if one["task"] not in left)


def text_of(task: str, name: str) -> str:
    """Return the text of the recorded answer of this name."""
    return next(one["text"] for one in answers() if (one["task"], one["name"]) == (task, name))


def graded_class() -> dict[str, dict[str, Any]]:
    """Return for each seed (words) and student what was given."""
    with lzma.open(HERE / "class.json.xz", "rt", encoding="utf-8") as file:
        return json.load(file)


def hand_in(folder: Path, students: Collection[str] = ()) -> Path:
    """Lay the class's files out below `folder`, links, pipes and odd names too; return where they are.

    Of these students only, if any are named.
    """
    with tarfile.open(HERE / "handed_in.tar.xz") as archive:
        kept = [one for one in archive if not students or f"{one.name}/".split("/")[1] in ("", *students)]
        archive.extractall(folder, kept, filter="fully_trusted")  # our own: the links in it are the attack
    return folder / "handed_in"


def changed() -> dict[tuple[str, str], str]:
    """Return the reason for every grade that changed on purpose, by (task or "class", name)."""
    with (HERE / "changed.tsv").open(encoding="utf-8", newline="") as file:
        return {(row["of"], row["name"]): row["why"] for row in csv.DictReader(file, delimiter="\t")}
