"""Is a pickle nothing but a table of tensors? Told from its instructions, before any of them is obeyed.

torch.load(weights_only=True) runs no code of a file, but it builds what the file says. A tuple that holds a
tuple twice, that holds a tuple twice, … takes 5 bytes a level and 2^levels steps to hash or to write, and no
signal ends that. So the instructions are followed here first, with sizes in place of objects.
Format: the sources of Python's `pickletools`; what torch.save writes is protocol 2.
"""

from __future__ import annotations

import pickletools
import re
from dataclasses import dataclass
from typing import Any

#: What NeMo's models take: 40 tensors a layer, 150 bytes for each, at most 128 layers.
MOST_BYTES = 2 << 20
#: A tensor is made of a tuple of 6 and, inside it, its shape and its strides: with 5 axes that is 20.
MOST_IN_TUPLE = 100

TABLE = "collections.OrderedDict"
MAKERS = (TABLE, "torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_parameter")
STORAGE = re.compile(r"torch\.[A-Za-z0-9]+Storage")

NUMBERS = ("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "NEWTRUE", "NEWFALSE", "NONE")
FIXED_TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


class ForeignClass(Exception):
    """The pickle names a class or function that no table of tensors needs: `name`, with its modules."""

    def __init__(self, name: str):
        super().__init__(name)
        self.name = name


class NoTable(Exception):
    """The pickle holds something else, or is damaged."""


@dataclass(frozen=True)
class _Thing:
    """What stands for an object: its kind, and how many objects it holds if it is a tuple.

    A kind is "text", "number", "tuple", "table", "storage", "tensor", or a maker's or storage class's name.
    """

    kind: str
    size: int = 1


def check_table(pickle: bytes) -> None:
    """Raise ForeignClass or NoTable unless the pickle makes a dict by text, of tensors or what it may hold.

    Takes time in proportion to the pickle's length, which is bounded.
    """
    if len(pickle) > MOST_BYTES:
        raise NoTable
    machine = _Machine()
    try:
        for code, argument, _ in pickletools.genops(pickle):
            machine.follow(code.name, argument)
    except (ForeignClass, NoTable):
        raise
    except Exception:  # an empty stack, a memo that nobody wrote, text that is none: damage of any kind
        raise NoTable from None


class _Machine:
    """The unpickler's stack, marks and memo, holding _Things."""

    def __init__(self) -> None:
        self.stack: list[_Thing] = []
        self.outer: list[list[_Thing]] = []  # the stacks below each mark
        self.memo: dict[int, _Thing] = {}

    def follow(self, name: str, argument: Any) -> None:
        """Do what the instruction `name` does; raises ForeignClass or NoTable for one that is not wanted."""
        if name in NUMBERS:
            self.stack.append(_Thing("number"))
        elif name == "BINUNICODE":
            self.stack.append(_Thing("text"))
        elif name == "GLOBAL":
            self.stack.append(_known(argument.replace(" ", ".")))
        elif name == "EMPTY_DICT":
            self.stack.append(_Thing("table"))
        elif name in ("BINPUT", "LONG_BINPUT"):
            self.memo[argument] = self.stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            self.stack.append(self.memo[argument])
        elif name == "MARK":
            self.outer.append(self.stack)
            self.stack = []
        elif name in ("TUPLE", *FIXED_TUPLES):
            self._make_tuple(FIXED_TUPLES.get(name))
        elif name in ("SETITEM", "SETITEMS"):
            self._fill_table(2 if name == "SETITEM" else None)
        elif name == "BINPERSID":
            self._pop("tuple")
            self.stack.append(_Thing("storage"))
        elif name == "REDUCE":
            self._pop("tuple")
            maker = self._pop(*MAKERS).kind
            self.stack.append(_Thing("table" if maker == TABLE else "tensor"))
        elif name == "BUILD":  # the attributes of a table, such as _metadata; nothing else may be changed
            self._pop("table")
            self._top("table")
        elif name not in ("PROTO", "STOP"):
            raise NoTable

    def _make_tuple(self, count: int | None) -> None:
        items = self._taken(count)
        size = 1 + sum(item.size for item in items)
        if size > MOST_IN_TUPLE:
            raise NoTable
        self.stack.append(_Thing("tuple", size))

    def _fill_table(self, count: int | None) -> None:
        items = self._taken(count)
        self._top("table")
        if len(items) % 2 or any(key.kind != "text" for key in items[::2]):
            raise NoTable

    def _taken(self, count: int | None) -> list[_Thing]:
        """Take `count` things from the stack, or all down to the last mark."""
        if count is None:
            items, self.stack = self.stack, self.outer.pop()
            return items
        return [self.stack.pop() for _ in range(count)][::-1]

    def _top(self, *kinds: str) -> _Thing:
        if self.stack[-1].kind not in kinds:
            raise NoTable
        return self.stack[-1]

    def _pop(self, *kinds: str) -> _Thing:
        self._top(*kinds)
        return self.stack.pop()


def _known(name: str) -> _Thing:
    if name not in MAKERS and not STORAGE.fullmatch(name):
        raise ForeignClass(name)
    return _Thing(name)
