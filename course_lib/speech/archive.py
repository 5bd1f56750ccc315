"""The members of a `.nemo` archive, read into memory: nothing is unpacked, linked, or larger than expected.

A .nemo file is a tar archive, sometimes gzipped. It comes from somewhere, so whatever it says of itself is
checked: how much there is and where it wants to lie. Nothing is ever written to disk.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from pathlib import Path
from typing import BinaryIO

CONFIG, WEIGHTS = "model_config.yaml", "model_weights.ckpt"
WORDS = ("tokenizer.vocab", "vocab.txt")  # the end of their names: NeMo puts a hash before
MOST_MEMBERS = 64
MOST_BYTES = {CONFIG: 1 << 20, WEIGHTS: 4 << 30}
MOST_BYTES_OF_ANOTHER = 64 << 20
#: Weights hardly shrink: a file that grows tenfold is no model. The allowance is for zeros that pad a tar.
MOST_GROWTH, GROWTH_ALLOWANCE = 10, 1 << 20

FETCH_AGAIN = "fetch it again"
UNSAFE = "do not use it"
GZIP = b"\x1f\x8b"


class UnreadableModel(ValueError):
    """A model file that cannot be used; the message is one sentence: which file, what is wrong."""


class Fault(Exception):
    """What is wrong with a model file, as the rest of a sentence that begins with its name."""


def members(path: Path) -> dict[str, bytes]:
    """Return the configuration, the weights and the lists of words, by name without `./` and hash.

    Raises Fault, also when configuration or weights are missing.
    """
    try:
        with path.open("rb") as file:
            found = _read_all(_Metered.of(file, path.stat().st_size))
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile):
        raise Fault(f"is no tar archive or is cut short: {FETCH_AGAIN}") from None
    except OSError as problem:
        raise Fault(f"cannot be read ({problem.strerror or problem}): name a .nemo file of yours") from None
    except (ValueError, OverflowError, RecursionError):  # what tarfile raises for numbers that make no sense
        raise Fault(f"has a table of contents that makes no sense: {FETCH_AGAIN}") from None
    for name in (CONFIG, WEIGHTS):
        if name not in found:
            there = ", ".join(sorted(found)) or "nothing"
            raise Fault(f"has no {name} (found: {there}; was it cut short?): {FETCH_AGAIN}")
    return found


class _Metered(io.RawIOBase):
    """A stream that refuses to give more than so many bytes: no archive unpacks without end."""

    def __init__(self, stream: BinaryIO, most: int):
        self.stream, self.left = stream, most

    @classmethod
    def of(cls, file: BinaryIO, size: int) -> _Metered:
        """Return the tar stream of a file of `size` bytes, unzipped where it is zipped."""
        zipped = file.read(2) == GZIP
        file.seek(0)
        most = size * (MOST_GROWTH if zipped else 1) + GROWTH_ALLOWANCE
        return cls(gzip.GzipFile(fileobj=file) if zipped else file, most)

    def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes; raises Fault beyond the limit."""
        asked = self.left + 1 if size < 0 else min(size, self.left + 1)
        content = self.stream.read(asked)
        self.left -= len(content)
        if self.left < 0:
            raise Fault(f"unpacks to more than {MOST_GROWTH} times its size, as no model does: {UNSAFE}")
        return content


def _read_all(stream: _Metered) -> dict[str, bytes]:
    """Return the wanted members' contents; every member is checked, the others are passed by."""
    found: dict[str, bytes] = {}
    seen = set()
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            name = _checked_name(member)
            if not member.isdir() and name in seen:
                raise Fault(f"has two members named {name!r}: {UNSAFE}")
            seen.add(name)
            if len(seen) > MOST_MEMBERS:
                raise Fault(f"has more than {MOST_MEMBERS} members, as no model has: {UNSAFE}")
            key = next((word for word in (CONFIG, WEIGHTS) if name == word), None) or next(
                (word for word in WORDS if name.endswith(word)), None
            )
            if member.isreg() and key in found:  # under two names: which one counts is not for chance to say
                raise Fault(f"has two members whose names end in {key!r}: {UNSAFE}")
            if member.isreg() and key:
                found[key] = _content(archive, member)
    return found


def _checked_name(member: tarfile.TarInfo) -> str:
    """Return the member's name without `./`, or raise Fault if it is not a plain file or folder inside."""
    parts = [part for part in member.name.split("/") if part not in ("", ".")]
    if member.name.startswith("/") or ".." in parts or "\\" in member.name or "\0" in member.name:
        raise Fault(f"has a member that would lie outside ({member.name[:80]!r}): {UNSAFE}")
    if not (member.isdir() or member.isreg()) or member.issparse():
        raise Fault(f"has a member that is no plain file ({member.name[:80]!r}): {UNSAFE}")
    name = "/".join(parts)
    most = MOST_BYTES.get(name, MOST_BYTES_OF_ANOTHER)
    if not 0 <= member.size <= most:
        raise Fault(
            f"has a member {name[:80]!r} of {member.size} bytes, but at most {most} are expected: {UNSAFE}"
        )
    return name


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    content = file.read() if file else b""
    if len(content) != member.size:
        raise Fault(f"is cut short in {member.name!r} ({len(content)} of {member.size} bytes): {FETCH_AGAIN}")
    return content
