"""Is a pickle nothing but a table of tensors? Told from its instructions, before any of them is obeyed.

torch.load(weights_only=True) runs no code of a file, but it builds what the file says. A tuple that holds a
tuple twice, that holds a tuple twice, … takes 5 bytes a level and 2^levels steps to hash or to write, and no
signal ends that. So the instructions are followed here first, with kinds in place of objects.
Format: the sources of Python's `pickletools`; what torch.save writes is protocol 2.
"""

from __future__ import annotations

import pickletools
import re

#: What NeMo's models take: 40 tensors a layer, 150 bytes for each, at most 128 layers.
MOST_BYTES = 2 << 20
DEEPEST = 2  # a tensor is made of a tuple that holds its shape and its strides

TABLE = "collections.OrderedDict"
MAKERS = (TABLE, "torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_parameter")
STORAGE = re.compile(r"torch\.[A-Za-z0-9]+Storage")

NUMBERS = ("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "NEWTRUE", "NEWFALSE", "NONE")
PLAIN = {"BINUNICODE": "text", "EMPTY_DICT": "table"} | dict.fromkeys(NUMBERS, "number")
TAKES = {
    "EMPTY_TUPLE": 0,
    "TUPLE1": 1,
    "TUPLE2": 2,
    "TUPLE3": 3,
    "SETITEM": 2,
    "TUPLE": None,
    "SETITEMS": None,
}

Kind = str | int  # a word; for a tuple, how deep tuples nest in it


class ForeignClass(Exception):
    """The pickle names a class or function that no table of tensors needs: `name`, with its modules."""

    def __init__(self, name: str):
        super().__init__(name)
        self.name = name


class NoTable(Exception):
    """The pickle holds something else, or is damaged."""


def check_table(pickle: bytes) -> None:
    """Raise ForeignClass or NoTable unless the pickle makes a dict by text, of tensors or what it may hold.

    Takes time in proportion to the pickle's length, which is bounded.
    """
    if len(pickle) > MOST_BYTES:
        raise NoTable
    try:
        _follow(pickle)
    except (ForeignClass, NoTable):
        raise
    except Exception:  # an empty stack, a memo that nobody wrote, text that is none: damage of any kind
        raise NoTable from None


def _follow(pickle: bytes) -> None:
    """Keep the unpickler's stack, marks and memo, of kinds."""
    stack: list[Kind] = []
    outer: list[list[Kind]] = []  # the stacks below each mark
    memo: dict[int, Kind] = {}
    for code, argument, _ in pickletools.genops(pickle):
        name, fits = code.name, True
        if name in PLAIN:
            stack.append(PLAIN[name])
        elif name == "GLOBAL":
            stack.append(_known(argument.replace(" ", ".")))
        elif name == "MARK":
            outer.append(stack)
            stack = []
        elif name in ("BINPUT", "LONG_BINPUT"):
            memo[argument] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[argument])
            fits = stack[-1] != "table" and not isinstance(stack[-1], int)  # what holds others is used once
        elif name in TAKES:
            items, stack = _taken(stack, outer, TAKES[name])
            if name.startswith("SETITEM"):
                texts = all(key == "text" for key in items[::2])
                fits = stack[-1] == "table" and not len(items) % 2 and texts
            else:
                stack.append(1 + max((item for item in items if isinstance(item, int)), default=0))
                fits = stack[-1] <= DEEPEST
        elif name == "BINPERSID":
            fits = stack.pop() == 1
            stack.append("storage")
        elif name == "REDUCE":
            arguments, maker = stack.pop(), stack.pop()
            fits = isinstance(arguments, int) and maker in MAKERS
            stack.append("table" if maker == TABLE else "tensor")
        elif name == "BUILD":  # the attributes of a table, such as _metadata; nothing else may be changed
            fits = stack.pop() == "table" and stack[-1] == "table"
        else:
            fits = name in ("PROTO", "STOP")
        if not fits:
            raise NoTable


def _taken(stack: list[Kind], outer: list[list[Kind]], count: int | None) -> tuple[list[Kind], list[Kind]]:
    """Return the `count` kinds on top, or all down to the last mark, and the stack that is left."""
    if count is None:
        return stack, outer.pop()
    return [stack.pop() for _ in range(count)][::-1], stack


def _known(name: str) -> str:
    if name not in MAKERS and not STORAGE.fullmatch(name):
        raise ForeignClass(name)
    return name
