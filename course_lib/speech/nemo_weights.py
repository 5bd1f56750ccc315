"""The weights in a `.nemo` archive, as torch.save wrote them: read without running any code of the file.

torch.load(weights_only=True) runs none, but it builds what the file says. A tuple that holds a tuple twice,
that holds a tuple twice, … takes 5 bytes a level and 2^levels steps to hash or to write, and no signal ends
that. So the pickle's instructions are followed first, with depths in place of objects.
Format: the sources of Python's `pickletools`; what torch.save writes is protocol 2.
"""

from __future__ import annotations

import io
import pickletools
import re
import zipfile

import torch
from torch import Tensor

from course_lib.speech.nemo_config import UNSAFE, ModelFault

WEIGHTS = "model_weights.ckpt"
#: How torch.save's files begin since 1.6; an older one may have a zip appended, and torch sees both.
ZIP = b"PK\x03\x04"
TABLE = "data.pkl"  # torch.save's member with the names; it lies in a folder

#: What NeMo's models take: 40 tensors a layer, 150 bytes for each, at most 128 layers.
MOST_BYTES = 2 << 20
DEEPEST = 100  # a tensor takes 4, and a table one for every 1000 entries
WRITTEN = """
    PROTO STOP GLOBAL MARK BINPUT LONG_BINPUT BINGET LONG_BINGET BINPERSID REDUCE BUILD
    EMPTY_DICT SETITEM SETITEMS EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3
    BINUNICODE BININT BININT1 BININT2 LONG1 BINFLOAT NEWTRUE NEWFALSE NONE
"""
EMPTY_TABLE = "collections.OrderedDict"
MAKERS = (EMPTY_TABLE, "torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_parameter")
STORAGE = re.compile(r"torch\.[A-Za-z0-9]+Storage")

NO_TABLE = f"has a {WEIGHTS} that is no table of tensors by name"
NOT_PLAIN = f"in {WEIGHTS}, which is no plain tensor"


def read_weights(content: bytes) -> dict[str, Tensor]:
    """Return the tensors by name, on the CPU; raises ModelFault for anything but a table of plain tensors."""
    _check_zip(content)
    try:
        # Read by torch itself: what is checked must be what torch.load finds, however odd the zip is.
        _check_pickle(torch._C.PyTorchFileReader(io.BytesIO(content)).get_record(TABLE))
        state = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except ModelFault:
        raise
    except Exception:  # a file made to break it may raise anything
        raise ModelFault(f"has a {WEIGHTS} that holds no tensors (damaged?)") from None
    if not isinstance(state, dict) or not all(isinstance(name, str) for name in dict.keys(state)):
        raise ModelFault(NO_TABLE)
    table = dict(dict.items(state))  # without the attributes that the file may give an OrderedDict
    for name, value in table.items():
        if not isinstance(value, Tensor) or not _is_plain(value):
            raise ModelFault(f"has {name[:80]!r} {NOT_PLAIN}")
    if sum(value.numel() * value.element_size() for value in table.values()) > len(content):
        raise ModelFault(f"has a {WEIGHTS} whose tensors hold more than the file does", UNSAFE)
    return table


def _is_plain(tensor: Tensor) -> bool:
    """Whether a tensor's numbers lie in the CPU's memory one by one."""
    strided = tensor.layout == torch.strided and not tensor.is_nested and not tensor.is_quantized
    return strided and tensor.device.type == "cpu"


def _check_zip(content: bytes) -> None:
    """Raise ModelFault unless this is a zip that keeps its members as they are, as torch.save's does."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, ValueError, OverflowError, NotImplementedError):
        entries = []
    if not content.startswith(ZIP) or not any(entry.filename.endswith("/" + TABLE) for entry in entries):
        raise ModelFault(f"has a {WEIGHTS} that torch.save did not write (damaged?)")
    compressed = any(entry.compress_type != zipfile.ZIP_STORED for entry in entries)
    if compressed or sum(entry.file_size for entry in entries) > len(content):
        raise ModelFault(f"has a {WEIGHTS} that is compressed or unpacks to more than it is", UNSAFE)


def _check_pickle(pickle: bytes) -> None:
    """Raise ModelFault unless it is made of what a table of tensors is, nothing used twice and nothing deep.

    Takes time in proportion to the pickle's length, which is bounded.
    """
    if len(pickle) > MOST_BYTES:
        raise ModelFault(NO_TABLE)
    try:
        fits = _is_harmless(pickle)
    except (IndexError, KeyError, ValueError):  # an empty stack, a memo that nobody wrote, text that is none
        fits = False
    if not fits:
        raise ModelFault(NO_TABLE)


def _is_harmless(pickle: bytes) -> bool:
    """Keep the unpickler's stack, marks and memo: what holds others by its depth, the rest as words."""
    stack: list[str | int] = []
    marks = [0]  # how long the stack was at each
    memo: dict[int, str | int] = {}
    written = frozenset(WRITTEN.split())
    for code, argument, _ in pickletools.genops(pickle):
        name, before = code.name, code.stack_before
        if name not in written:
            return False
        if name in ("BINPUT", "LONG_BINPUT"):
            memo[argument] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            if not isinstance(memo[argument], str):  # what holds others is used once
                return False
            stack.append(memo[argument])
        elif name == "MARK":
            marks.append(len(stack))
        elif name in ("BINUNICODE", "GLOBAL"):
            stack.append(argument if name == "BINUNICODE" else _known(argument.replace(" ", ".")))
        else:
            to_mark = pickletools.markobject in before  # all down to the mark, and what the mark lies on
            place = (
                marks.pop() - before.index(pickletools.markobject) if to_mark else len(stack) - len(before)
            )
            taken, stack[place:] = stack[place:], []
            if place < marks[-1] or (name == "REDUCE" and taken[0] not in MAKERS):
                return False
            if name == "REDUCE" and taken[0] != EMPTY_TABLE:
                stack.append("tensor")  # of which a model may have one under two names
            elif code.stack_after:
                stack.append(1 + max((item for item in taken if isinstance(item, int)), default=0))
                if stack[-1] > DEEPEST:
                    return False
    return True


def _known(name: str) -> str:
    """Return the name of a class or function; raises ModelFault for one that no table of tensors needs."""
    if name in MAKERS or STORAGE.fullmatch(name):
        return name
    if name.startswith("torch."):  # sparse, quantized, meta or nested tensors, and the like
        raise ModelFault(f"has {name[:80]!r} {NOT_PLAIN}")
    raise ModelFault(f"wants to run {name[:80]!r} when {WEIGHTS} is read, which was refused", UNSAFE)


def check_fit(state: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    """Raise ModelFault unless names, shapes and element types are the same and all numbers finite."""
    if missing := [name for name in expected if name not in state]:
        raise ModelFault(f"lacks {_named(missing)} that its configuration calls for")
    if extra := [name for name in state if name not in expected]:
        raise ModelFault(f"has {_named(extra)} that its configuration does not call for")
    for name, tensor in state.items():
        got, wanted = tuple(tensor.shape), tuple(expected[name].shape)
        if got != wanted:
            raise ModelFault(f"has {name} of shape {got}, but its configuration calls for {wanted}")
        if tensor.dtype != expected[name].dtype:
            types = f"as {tensor.dtype}, but {expected[name].dtype} is wanted"
            raise ModelFault(f"has {name} {types}", "convert it in NeMo")
        if not torch.isfinite(tensor).all():
            raise ModelFault(f"has NaN or infinity in {name}")


def _named(names: list[str]) -> str:
    """Return the first three names, and how many more there are."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    plural = "tensors " if len(names) > 1 else "the tensor "
    return plural + ", ".join(repr(name[:80]) for name in names[:3]) + more
