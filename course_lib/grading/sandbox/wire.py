"""The wire into and out of the sandbox: plain values as frames of bytes.

A frame is eight bytes of length, a JSON tree, and the raw memory of its arrays. Whoever reads one gets
numbers, texts, lists, tuples and plain arrays, or WireError: nothing is unpickled, imported or evaluated, and
no size is believed before it is checked. What cannot be a plain value arrives as an object of a class with
its type's name and nothing else.
"""

from __future__ import annotations

import ctypes
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from course_lib.grading.tape import TapeLine

#: Bytes of a frame: its tree (a byte of JSON can become a hundred in memory) and its arrays.
MOST_TREE, MOST_MEMORY = 4 * 2**20, 64 * 2**20
MOST_LISTED = 8 * 2**20  # bytes of a list of floats: each takes four times as much as a Python number
DEEPEST = 60  # values in each other: JSON would take more than Python's stack
MACHINE_CODE = (".nbi", ".nbc")  # what Numba's files of it end with: the index, the code
KINDS = "biufc"  # bool, int, unsigned, float, complex
#: Row and column at which an argument is changed for a timed call; an end stands behind the last call's.
PLACE, END = struct.Struct("<II"), b"\xff" * 8
_LENGTHS = struct.Struct("<II")  # of the JSON tree, of the memory behind it


class WireError(ValueError):
    """What came over the wire is not a frame."""


class Foreign:
    """Stands for a value that is not plain; its class has the name of the value's type."""


# --- writing ------------------------------------------------------------------------------------------------


def frame(value: Any, keep_strides: bool = False) -> bytes:
    """Return `value` as a frame; with `keep_strides` its arrays arrive with the same layout in memory.

    WireError if it is too large or too deep.
    """
    memory = bytearray()  # of its arrays, one behind the other
    tree = json.dumps(_tree(value, memory, keep_strides, 0)).encode()
    if len(tree) > MOST_TREE or len(memory) > MOST_MEMORY:
        raise WireError(f"a value of {(len(tree) + len(memory)) / 2**20:.0f} MB is too large to be shipped")
    return b"".join([_LENGTHS.pack(len(tree), len(memory)), tree, memory])


def _place(part: bytes, memory: bytearray) -> list[int]:
    """Put an array's bytes behind the others; return where they are."""
    memory.extend(part)
    return [len(memory) - len(part), len(part)]


def _tree(value: Any, memory: bytearray, strides: bool, depth: int) -> Any:
    """Return JSON for a value: plain as it is where JSON has it, else a list that begins with its kind."""
    if depth > DEEPEST:
        raise WireError(f"a value is nested more than {DEEPEST} deep")
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.generic | np.ndarray) and value.dtype.kind in KINDS:
        if isinstance(value, np.generic):
            return ["scalar", value.dtype.str, _place(value.tobytes(), memory)]
        return _strided_tree(value, memory) if strides else _array_tree(value, memory)
    if isinstance(value, int):
        return ["int", hex(value)] if abs(value) >= 2**53 else int(value)
    if isinstance(value, float):  # JSON's NaN has no sign
        return float(value) if value == value else ["nan", _place(np.float64(value).tobytes(), memory)]
    if isinstance(value, complex):
        return ["complex", value.real, value.imag]
    if value is ...:
        return ["..."]
    if isinstance(value, TapeLine):
        return ["line", value.number]
    if isinstance(value, dict):
        return ["dict", {str(name): _tree(one, memory, strides, depth + 1) for name, one in value.items()}]
    if isinstance(value, list | tuple):
        return _sequence_tree(value, memory, strides, depth)
    return ["foreign", type(value).__name__]


def _sequence_tree(value: list | tuple, memory: bytearray, strides: bool, depth: int) -> list:
    kind = "tuple" if isinstance(value, tuple) else "list"
    if len(value) > 8 and all(type(one) is float for one in value):  # most of what chapter 1 ships
        return [f"{kind} of floats", _place(np.array(value).tobytes(), memory)]
    return [kind, [_tree(one, memory, strides, depth + 1) for one in value]]


def _array_tree(value: np.ndarray, memory: bytearray) -> list:
    plain = np.ascontiguousarray(value)
    return ["array", plain.dtype.str, list(value.shape), _place(plain.tobytes(), memory)]


def _strided_tree(value: np.ndarray, memory: bytearray) -> list:
    """Ship the memory from the first byte to the last, with what lies between the elements."""
    block, offset = b"", 0
    if value.size:
        low, high = np.lib.array_utils.byte_bounds(value)
        block, offset = ctypes.string_at(low, high - low), value.ctypes.data - low
    return ["strided", value.dtype.str, [*value.shape], [*value.strides], offset, _place(block, memory)]


# --- reading ------------------------------------------------------------------------------------------------


def read_frame(read: Callable[[int], bytes], trusted: bool = False) -> Any:
    """Return the next value; `read(n)` gives n bytes, fewer only at the end (then EOFError).

    Only a trusted frame may choose the layout of its arrays: with strides of 0 eight bytes are a terabyte.
    """
    tree_size, memory_size = _LENGTHS.unpack(exactly(read, _LENGTHS.size))
    if tree_size > MOST_TREE or memory_size > MOST_MEMORY:
        raise WireError(f"a frame of {(tree_size + memory_size) / 2**20:.0f} MB is too large")
    text, memory = exactly(read, tree_size), _UntakenMemory(exactly(read, memory_size))
    try:
        return _value(json.loads(text), memory, 0, trusted)
    except WireError:
        raise
    except (ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError) as problem:
        raise WireError(f"a frame cannot be read ({type(problem).__name__})") from None


@dataclass
class _UntakenMemory:
    """The memory of a frame that no array has taken yet: each byte can be taken once, in order."""

    memory: bytes
    taken: int = 0

    def take(self, place: list[int]) -> bytes:
        start, size = (_size(n) for n in place)
        if start != self.taken or start + size > len(self.memory):
            raise WireError("a frame's arrays do not lie one behind the other")
        self.taken += size
        return self.memory[start : start + size]


def exactly(read: Callable[[int], bytes], size: int) -> bytes:
    """Return so many bytes; EOFError if there are fewer."""
    parts = []
    while size:
        part = read(min(size, 2**20))
        if not part:
            raise EOFError("the wire was closed")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _value(tree: Any, memory: _UntakenMemory, depth: int, trusted: bool) -> Any:
    if depth > DEEPEST + 1:
        raise WireError("a frame is nested too deep")
    if tree is None or isinstance(tree, bool | str | int | float):
        return tree
    if not isinstance(tree, list) or not tree:
        raise WireError("a frame has something in it that is no value")
    kind, *rest = tree
    if kind in ("list", "tuple"):
        items = [_value(one, memory, depth + 1, trusted) for one in rest[0]]
        return tuple(items) if kind == "tuple" else items
    if kind == "dict":
        return {str(name): _value(one, memory, depth + 1, trusted) for name, one in rest[0].items()}
    if kind not in _READERS or (kind == "strided" and not trusted):
        raise WireError("a frame has a value of unknown kind")
    return _READERS[kind](memory, *rest)


def _read_floats(memory: _UntakenMemory, place: list[int]) -> list[float]:
    part = memory.take(place)
    if len(part) > MOST_LISTED:
        raise WireError("a frame has a list that is too long")
    return np.frombuffer(part, dtype=np.float64).tolist()


def _read_array(memory: _UntakenMemory, dtype: str, shape: list[int], place: list[int]) -> np.ndarray:
    part = memory.take(place)
    array = np.frombuffer(part, dtype=_dtype(dtype)) if part else np.empty(0, _dtype(dtype))
    return array.reshape([_size(n) for n in shape]).copy()


def _read_strided(
    memory: _UntakenMemory, dtype: str, shape: list, strides: list, offset: int, place: list
) -> Any:
    """Read what the judge has shipped; NumPy checks that every element lies within the memory."""
    if 0 in shape:
        return np.empty([_size(n) for n in shape], _dtype(dtype))
    block = np.frombuffer(memory.take(place), np.uint8).copy()
    return np.ndarray(shape, _dtype(dtype), block, offset, strides)


def _read_foreign(memory: _UntakenMemory, name: str) -> Foreign:
    """Return an object of a class with this name, and nothing of what the name stood for."""
    plain = "".join(one for one in str(name)[:60] if one.isalnum() or one in "_. ") or "unknown"
    return type(plain, (Foreign,), {})()


def _size(number: Any) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise WireError("a frame has a size that is none")
    return number


def _dtype(name: Any) -> np.dtype:
    dtype = np.dtype(name) if isinstance(name, str) and len(name) < 8 else None
    if dtype is None or dtype.kind not in KINDS:
        raise WireError("a frame has an array of a kind that is not shipped")
    return dtype


_READERS: dict[str, Callable] = {
    "int": lambda memory, digits: int(digits[:100_000], 16),
    "complex": lambda memory, real, imag: complex(real, imag),
    "...": lambda memory: ...,
    "line": lambda memory, number: TapeLine(_size(number)),
    "nan": lambda memory, place: float(np.frombuffer(memory.take(place), np.float64, 1)[0]),
    "list of floats": _read_floats,
    "tuple of floats": lambda memory, place: tuple(_read_floats(memory, place)),
    "scalar": lambda memory, dtype, place: np.frombuffer(memory.take(place), _dtype(dtype), 1)[0],
    "array": _read_array,
    "strided": _read_strided,
    "foreign": _read_foreign,
}
