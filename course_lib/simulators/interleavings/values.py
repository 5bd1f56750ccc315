"""Values of the checked threads: small, so that no text can fill the memory or take long over one step.

Each is Python's own (numbers, texts, tuples and ranges, a frozenset for a set), so that what is computed with
them is what Python computes; a list is a tuple of another type, and a longer one takes the place of that
very object wherever the thread has it. What would tell them from Python's lists and sets is refused: other
changes, comparing lists, the order of a set.
"""

from __future__ import annotations

import ast
import operator
from typing import Any

from course_lib.simulators.interleavings.shared import Container, Plain, SharedLock

LARGEST_NUMBER = 1 << 64
LONGEST = 200  # characters of a text, elements of a tuple
LONGEST_RANGE = 10_000
MOST_LEAVES = 400  # things in a tuple, those in tuples in it counted too


class OwnList(tuple):
    """A list of a thread's own: two names are of one list if they are of the same object."""

    def __repr__(self) -> str:
        return repr([*self])


BINARY = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
COMPARED = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}
UNARY = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert}
#: Functions that only compute.
COMPUTE = {
    "abs": abs,
    "int": int,
    "float": float,
    "bool": bool,
    "divmod": lambda one, other: tuple(map(bounded, divmod(one, other))),
    "round": round,
    "range": range,
    "len": len,
    "min": min,
    "max": max,
    "sum": sum,
    "sorted": lambda values, *, reverse=False: OwnList(sorted(values, reverse=reverse)),
    "next": lambda values, default=None: [*values, default][0],
    "set": lambda values=(): frozenset(values),
    "tuple": lambda values=(): tuple(values),
    "list": lambda values=(): OwnList(values),
    "any": any,
    "all": all,
}
#: Those that take the elements of an iterable, one after the other.
GATHERS = frozenset(["min", "max", "sum", "sorted", "set", "next", "tuple", "list", "any", "all"])
COMPARE = GATHERS - {"tuple", "list", "next"}
ORDERLESS = COMPARE - {"sum"}  # the order of a set changes nothing
#: Whether an element is the last that is taken; also by the other arguments of the call.
ENOUGH = {"next": lambda *_: True, "any": bool, "all": operator.not_, "index": operator.eq}


class CannotDo(Exception):
    """What the thread does cannot be done; the message is the end of a sentence."""


def bounded(value: Any) -> Any:
    if isinstance(value, bool | None | Container | SharedLock):
        return value
    if isinstance(value, int) and abs(value) > LARGEST_NUMBER:
        raise CannotDo("computes a number beyond 2**64")
    if value != value:  # in (value,) it is found by its identity, which is Python's business
        raise CannotDo("computes nan, a number that is not equal to itself")
    if isinstance(value, str | tuple) and len(value) > LONGEST:
        raise CannotDo(f"makes a text or a list of more than {LONGEST} parts")
    if isinstance(value, tuple) and _leaves(value) > MOST_LEAVES:
        raise CannotDo(f"makes a tuple that holds more than {MOST_LEAVES} things")
    if isinstance(value, range) and len(value) > LONGEST_RANGE:
        raise CannotDo(f"loops over more than {LONGEST_RANGE} numbers: check a smaller case")
    return value


def _leaves(value: Any) -> int:
    """Count what a tuple holds, tuples in tuples too: an empty one counts as one thing."""
    return 1 + sum(map(_leaves, value)) if isinstance(value, tuple) else 1


def kinds(value: Any, lists: dict[int, int]) -> Any:
    """Return the types of all that a value holds: 1 == 1.0 == True, but Python can tell them apart.

    With each list its number among the `lists` met before: equal ones may be one list or several.
    """
    if isinstance(value, frozenset):  # unordered: numbers of one hash may change places
        return type(value), frozenset((one, kinds(one, lists)) for one in value)
    inside = value if isinstance(value, tuple) else ()
    number = lists.setdefault(id(value), len(lists)) if isinstance(value, OwnList) else None
    return type(value), number, *(kinds(one, lists) for one in inside)


def holds(value: Any, one: Any) -> bool:
    """Whether a value is this very object, or holds it."""
    return value is one or (isinstance(value, tuple) and any(holds(part, one) for part in value))


def plain(value: Any) -> bool:
    """Whether it compares as Python's own does: a number, a text, None, a tuple of such."""
    return all(map(plain, value)) if type(value) is tuple else isinstance(value, Plain)


def of_plain(values: Any) -> bool:
    """Whether values can be compared with each other, of a list or a set too."""
    return (
        all(map(plain, values)) if isinstance(values, tuple | frozenset) else isinstance(values, str | range)
    )


def binary(operation: ast.operator, left: Any, right: Any) -> Any:
    kind = type(left)
    if isinstance(operation, ast.Add) and kind is type(right) and kind in (str, tuple, OwnList):
        return bounded(kind(left + right))
    left, right = number(left), number(right)
    if isinstance(operation, ast.LShift) and not 0 <= right <= 64:
        raise CannotDo(f"shifts by {right}")
    if isinstance(operation, ast.Pow) and (abs(right) > 64 or abs(left) > LARGEST_NUMBER):
        raise CannotDo("computes a power that is too large")
    result = BINARY[type(operation)](left, right)
    if isinstance(result, complex):
        raise CannotDo("computes a complex number")
    return bounded(result)


def number(value: Any) -> Any:
    if not isinstance(value, int | float):
        raise CannotDo(f"computes with {say(value)}, which is no number")
    return value


def storable(value: Any) -> Plain:
    if not isinstance(value, Plain):
        raise CannotDo(f"stores {say(value)} in a shared variable: store numbers, texts, True, False or None")
    return value


def lock_of(value: Any) -> SharedLock:
    if not isinstance(value, SharedLock):
        raise CannotDo(f"uses {say(value)} as a lock, which it is not")
    return value


def truth(value: Any) -> bool:
    return bool(value.cells if isinstance(value, Container) else value)


def say(value: Any) -> str:
    if isinstance(value, Container):
        return "a shared list or dict"
    if isinstance(value, SharedLock):
        return "a lock"
    return repr(value)[:60]
