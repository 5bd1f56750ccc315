"""Files that are written whole or not at all: a reader, or a kill at any moment, meets the old or the new."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from contextlib import suppress
from itertools import count
from pathlib import Path


def write(path: Path, content: str | bytes, lasting: bool = False, private: bool = False) -> None:
    """Write a file, whose rights stay; `lasting` forces it onto the disk: it outlives a power cut, too.

    A file that is `private` can be read by its owner only. Each writer has an unfinished file of its own, new
    and no link; one that is killed leaves it, for `clear`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(8)}.unfinished")
    try:
        with open(unfinished, "xb", opener=_for_its_owner if private else None) as file:
            file.write(content if isinstance(content, bytes) else content.encode("utf-8"))
            if lasting:
                file.flush()
                os.fsync(file.fileno())
        if path.exists() and not private:
            shutil.copymode(path, unfinished)
        _replace(unfinished, path)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise


def _for_its_owner(name: str, flags: int) -> int:
    return os.open(name, flags, 0o600)


def _replace(unfinished: Path, path: Path) -> None:
    """Move the new file over the old one; on Windows a reader may hold the old one open for a moment."""
    for wait_s in (0.01, 0.05, 0.2):
        try:
            return os.replace(unfinished, path)
        except PermissionError:
            time.sleep(wait_s)
    return os.replace(unfinished, path)


def clear(folder: Path, pattern: str) -> None:
    """Remove what killed writers left; only who holds the lock of their files can know that they are dead."""
    for left in folder.glob(pattern):
        with suppress(OSError):
            left.unlink()


def free_name(path: Path, why: str) -> Path:
    """Return the name to set a file aside under, in its folder: "ladder.damaged-20260801-120000.json"."""
    stem = f"{path.stem}.{why}-{time.strftime('%Y%m%d-%H%M%S')}"
    tails = ("" if number == 1 else f"-{number}" for number in count(1))
    return next(name for tail in tails if not (name := path.with_name(stem + tail + path.suffix)).exists())
