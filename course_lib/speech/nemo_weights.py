"""The tensors in a `.nemo` archive: read from what torch.save wrote, without running any code of it."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import torch
from torch import Tensor

from course_lib.speech import pickle_check
from course_lib.speech.archive import FETCH_AGAIN, UNSAFE, WEIGHTS, Fault

TABLE = "data.pkl"  # torch.save's member with the names; it lies in a folder
#: How its files begin since 1.6; an older one may have a zip appended, and torch sees both.
ZIP = b"PK\x03\x04"


def read_tensors(content: bytes) -> dict[str, Tensor]:
    """Return tensors by name, on the CPU; raises Fault for anything else."""
    _check_zip(content)
    try:
        # Read by torch itself: what is checked must be what torch.load finds, however odd the zip is.
        pickle_check.check_table(torch._C.PyTorchFileReader(io.BytesIO(content)).get_record(TABLE))
        state = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        return _checked(state, len(content))
    except Fault:
        raise
    except pickle_check.ForeignClass as found:
        raise _foreign(found.name) from None
    except pickle_check.NoTable:
        raise Fault(f"has a {WEIGHTS} that is no table of tensors by name: {FETCH_AGAIN}") from None
    except Exception:  # a file made to break it may raise anything
        raise Fault(f"has a {WEIGHTS} that holds no tensors (damaged?): {FETCH_AGAIN}") from None


def _checked(state: Any, most: int) -> dict[str, Tensor]:
    """Return the table as a plain dict, or raise Fault unless it holds tensors of at most `most` bytes.

    torch makes an OrderedDict with whatever attributes the file gives it, `items` and `_metadata` among them:
    only its content is taken.
    """
    if not isinstance(state, dict) or not dict.__len__(state):
        raise Fault(f"has a {WEIGHTS} that is no table of tensors by name: {FETCH_AGAIN}")
    table = dict(dict.items(state))
    for name, value in table.items():
        if not isinstance(value, Tensor) or value.layout != torch.strided or value.device.type != "cpu":
            raise Fault(f"has {name[:80]!r} in {WEIGHTS}, which is no plain tensor: {FETCH_AGAIN}")
    if sum(value.numel() * value.element_size() for value in table.values()) > most:
        raise Fault(f"has a {WEIGHTS} whose tensors hold more than the file does: {UNSAFE}")
    return table


def _foreign(name: str) -> Fault:
    """Return what to say of a class or function that a table of tensors has no need of."""
    if name.startswith("torch."):  # sparse, quantized or nested tensors, and the like
        return Fault(f"has {name[:80]!r} in {WEIGHTS}, which is no plain tensor: {FETCH_AGAIN}")
    return Fault(f"wants to run {name[:80]!r} when {WEIGHTS} is read, which was refused: {UNSAFE}")


def _check_zip(content: bytes) -> None:
    """Raise Fault unless this is a zip that keeps its members as they are, as torch.save does since 1.6."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, ValueError, OverflowError, NotImplementedError):
        entries = []
    if not content.startswith(ZIP) or not any(one.filename.endswith("/" + TABLE) for one in entries):
        raise Fault(f"has a {WEIGHTS} that torch.save did not write (damaged?): {FETCH_AGAIN}")
    if any(one.compress_type != zipfile.ZIP_STORED for one in entries) or sum(
        one.file_size for one in entries
    ) > len(content):
        raise Fault(f"has a {WEIGHTS} that is compressed or unpacks to more than it is: {UNSAFE}")
