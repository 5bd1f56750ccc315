"""The instructor's secret seed: the inputs that grades are given on follow from it.

It lives in the class's folder, which git ignores and no sandbox shows. Whoever knows it can make the inputs,
and nothing else: the declarations are public.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from pathlib import Path

from filelock import FileLock

from course_lib import whole_files

FILE = "secret_seed"
#: Set this to grade with a certain seed: on a cluster, or to repeat a run.
VARIABLE = "NINE_CIRCLES_SEED"


class SeedError(ValueError):
    """The seed cannot be used; the message says why and what to do."""


def seed(folder: Path) -> int:
    """Return the class's secret seed; on first use it is made and written to `folder`/secret_seed."""
    given = os.environ.get(VARIABLE)
    if given:
        return from_text(given, f"the environment variable {VARIABLE}")
    path = folder / FILE
    if not os.path.lexists(path):  # a link to what is not there now is no seed to be replaced
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / f".{FILE}.lock"):  # of two graders that start at once, one's seed stays
            if not os.path.lexists(path):
                whole_files.write(path, secrets.token_hex(16) + "\n", lasting=True, private=True)
    try:
        path.chmod(0o600)
        return from_text(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as problem:
        raise SeedError(
            f"The secret seed in {path} cannot be read ({problem}): restore or delete it."
        ) from None


def from_text(text: str, where: str) -> int:
    """Return the seed that a text stands for: any words with enough of a secret in them."""
    words = text.strip()
    if len(words) < 8:
        raise SeedError(
            f"The secret seed in {where} is {len(words)} characters long, and 8 or more are needed: write "
            "more, or delete it for a new one."
        )
    return int.from_bytes(hashlib.sha256(words.encode()).digest()[:16], "big")
