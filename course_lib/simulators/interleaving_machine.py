"""A small machine that runs one thread between its visible steps: reads and writes of shared cells, and
locks.

A thread's state at a visible step is a number, so that states of the whole program are short tuples, and
what a thread does after a step is computed once and remembered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from course_lib.simulators.interleaving_language import Code
from course_lib.simulators.interleaving_state import Heap, LockRef, Ref
from course_lib.simulators.interleaving_values import (
    COMPARE,
    COMPUTE,
    LONGEST,
    UNARY,
    Wrong,
    binary,
    bounded,
    lock_of,
    number,
    say,
    storable,
    truth,
)

MOST_LOCAL = 5_000  # instructions without a visible step
MOST_STATES = 100_000  # of single threads
DEEPEST_CALL = 10

Pending = tuple[str, Any, Any, int]  # kind, cell or lock, value, line


class TooMany(Exception):
    """More states than may be remembered."""


@dataclass(frozen=True, slots=True)
class Gathering:
    """A shared list of which some elements have been read."""

    container: Ref
    got: tuple


class Unset:
    """The value of a variable that has none yet."""

    def __repr__(self) -> str:
        return "unset"


UNSET = Unset()


class Machine:
    """Runs threads of one program. `quiet` are the cells that nobody writes: reading one is no step."""

    def __init__(self, codes: Mapping[str, Code], heap: Heap, quiet: frozenset[int]) -> None:
        self._codes = codes
        self._heap = heap
        self._fixed = heap.references()
        self._quiet = {cell: heap.cells[cell] for cell in quiet}
        self._unchanging: dict[int, None] = {}  # quiet cells read since the last visible step, in order
        self.pending: list[Pending] = []
        self._frames: list[tuple] = []
        self._ids: dict[tuple, int] = {}
        self._after: dict[tuple[int, Any], int] = {}

    def start(self, name: str, arguments: tuple) -> int:
        """Return the state of a new thread at its first visible step."""
        code = self._codes[name]
        return self._run([[name, 0, [], self._slots(code, arguments)]])

    def resume(self, state: int, result: Any) -> int:
        """Return the thread's state at its next visible step, given what the present one returned."""
        key = (state, result)
        after = self._after.get(key)
        if after is None:
            frames = [
                [name, place, list(stack), list(slots)] for name, place, stack, slots in self._frames[state]
            ]
            if self.pending[state][0] not in ("write", "release"):
                frames[-1][2].append(result)
            after = self._after[key] = self._run(frames)
        return after

    def _slots(self, code: Code, arguments: tuple) -> list:
        needed, most = len(code.parameters) - len(code.defaults), len(code.parameters)
        if not needed <= len(arguments) <= most:
            raise Wrong(f"{code.name} takes {most} arguments, but got {len(arguments)}")
        given = [*arguments, *code.defaults[len(arguments) - needed :]]
        return [*given, *[UNSET] * (len(code.slots) - len(given))]

    def _intern(self, frames: list, pending: Pending) -> int:
        frozen = tuple((name, place, tuple(stack), tuple(slots)) for name, place, stack, slots in frames)
        # 1 == 1.0 == True: what compares equal behaves the same, but a learner should read what was computed
        key = (frozen, pending, type(pending[2]))
        number = self._ids.get(key)
        if number is None:
            if len(self.pending) >= MOST_STATES:
                raise TooMany
            number = self._ids[key] = len(self.pending)
            self.pending.append(pending)
            self._frames.append(frozen)
        return number

    def _run(self, frames: list) -> int:
        """Run until the next visible step (or the end, or an error) and return that state."""
        line = 0
        self._unchanging.clear()
        try:
            for _ in range(MOST_LOCAL):
                name, place, stack, slots = frames[-1]
                operation, argument, line = self._codes[name].instructions[place]
                frames[-1][1] = place + 1
                pending = _DO[operation](self, frames, stack, slots, argument, line)
                if pending is not None:
                    return self._intern([] if pending[0] == "end" else frames, pending)
            raise Wrong(self._endless())
        except Wrong as problem:
            return self._intern([], ("error", None, str(problem), line))
        except (ArithmeticError, LookupError, TypeError, ValueError) as problem:
            said = f"stops with {type(problem).__name__}: {problem}"
            return self._intern([], ("error", None, said, line))

    def _endless(self) -> str:
        """Return what is wrong with a thread that has not come to a visible step after MOST_LOCAL."""
        if not self._unchanging:
            return "goes round and round without touching anything shared: does the loop end?"
        read = ", ".join(self._heap.cell_paths[cell] for cell in list(self._unchanging)[:3])
        return f"goes round and round and reads only what no thread writes ({read}): does the loop end?"

    # -- what reaches the heap ------------------------------------------------------------------------------

    def _cell(self, container: Ref, key: Any) -> int:
        shared = self._heap.containers[container.object]
        if shared.is_list and isinstance(key, int) and key < 0:
            key += len(shared.cells)
        if isinstance(key, int | str) and key in shared.cells:
            return shared.cells[key]
        what = "a shared list keeps its length" if shared.is_list else "a shared dict keeps its keys"
        raise Wrong(f"asks for {shared.path}[{key!r}], which is not there ({what})")

    def _read(self, stack: list, cell: int, line: int) -> Pending | None:
        if cell in self._quiet:
            self._unchanging.setdefault(cell)
            stack.append(self._quiet[cell])
            return None
        return ("read", cell, None, line)

    # -- instructions: each returns the visible step it has come to, or None --------------------------------

    def _const(self, frames, stack, slots, argument, line):
        stack.append(argument)

    def _checked(self, frames, stack, slots, argument, line):
        stack.append(bounded(argument))

    def _load(self, frames, stack, slots, argument, line):
        if slots[argument] is UNSET:
            name = self._codes[frames[-1][0]].slots[argument]
            raise Wrong(f"uses {name} before it has a value (is `global {name}` missing?)")
        stack.append(slots[argument])

    def _store(self, frames, stack, slots, argument, line):
        slots[argument] = stack.pop()

    def _clear(self, frames, stack, slots, argument, line):
        slots[argument] = UNSET

    def _pop(self, frames, stack, slots, argument, line):
        stack.pop()

    def _dup(self, frames, stack, slots, argument, line):
        stack.append(stack[-1])

    def _dup2(self, frames, stack, slots, argument, line):
        stack.extend(stack[-2:])

    def _rot3(self, frames, stack, slots, argument, line):
        stack.insert(-2, stack.pop())

    def _swap_under(self, frames, stack, slots, argument, line):
        stack.insert(-2, stack[-1])

    def _jump(self, frames, stack, slots, argument, line):
        frames[-1][1] = argument

    def _jump_if_false(self, frames, stack, slots, argument, line):
        if not truth(stack.pop(), self._heap):
            frames[-1][1] = argument

    def _jump_if_false_keep(self, frames, stack, slots, argument, line):
        if truth(stack[-1], self._heap):
            stack.pop()
        else:
            frames[-1][1] = argument

    def _jump_if_true_keep(self, frames, stack, slots, argument, line):
        if truth(stack[-1], self._heap):
            frames[-1][1] = argument
        else:
            stack.pop()

    def _jump_if_false_pop_under(self, frames, stack, slots, argument, line):
        if stack[-1]:
            stack.pop()
        else:
            del stack[-2]
            frames[-1][1] = argument

    def _binary(self, frames, stack, slots, argument, line):
        right, left = stack.pop(), stack.pop()
        stack.append(binary(argument, left, right))

    def _compare(self, frames, stack, slots, argument, line):
        right, left = stack.pop(), stack.pop()
        if argument in ("in", "not in") and isinstance(right, Ref):
            container = self._heap.containers[right.object]
            if container.is_list:
                raise Wrong(f"asks what is in the shared list {container.path}: go through it with a loop")
            right = tuple(container.cells)
        elif isinstance(left, Ref) or isinstance(right, Ref):
            raise Wrong("compares a shared list or dict as a whole: compare its elements")
        stack.append(COMPARE[argument](left, right))

    def _unary(self, frames, stack, slots, argument, line):
        value = stack.pop()
        stack.append(not truth(value, self._heap) if argument == "not" else UNARY[argument](number(value)))

    def _tuple(self, frames, stack, slots, argument, line):
        parts = stack[len(stack) - argument :]
        del stack[len(stack) - argument :]
        stack.append(bounded(tuple(parts)))

    def _unpack(self, frames, stack, slots, argument, line):
        value = stack.pop()
        if not isinstance(value, tuple) or len(value) != argument:
            raise Wrong(f"wants to take {say(value)} apart into {argument} parts")
        stack.extend(reversed(value))

    def _iterate(self, frames, stack, slots, argument, line):
        values = stack.pop()
        if isinstance(values, Ref) and not self._heap.containers[values.object].is_list:
            values = tuple(self._heap.containers[values.object].cells)
        if not isinstance(values, Ref | range | tuple | str):
            raise Wrong(f"loops over {say(values)}, but a range, a tuple or a list is needed")
        stack.append((values, 0))

    def _for(self, frames, stack, slots, argument, line):
        slot, end = argument
        values, at = slots[slot]
        is_shared = isinstance(values, Ref)
        length = len(self._heap.containers[values.object].cells) if is_shared else len(values)
        if at >= length:
            frames[-1][1] = end
            return None
        slots[slot] = (values, at + 1)
        if is_shared:
            return self._read(stack, self._cell(values, at), line)
        stack.append(values[at])
        return None

    def _gather(self, frames, stack, slots, argument, line):
        """Replace a shared list by the tuple of its elements: one visible read each, then again from here."""
        if len(stack) > 1 and isinstance(stack[-2], Gathering):  # the last read brought the top
            brought = stack.pop()
            stack[-1] = Gathering(stack[-1].container, (*stack[-1].got, brought))
        elif isinstance(stack[-1], Ref):
            stack[-1] = Gathering(stack[-1], ())
        else:
            return None
        container, got = stack[-1].container, stack[-1].got
        shared = self._heap.containers[container.object]
        if not shared.is_list or len(got) == len(shared.cells):
            stack[-1] = bounded(got if shared.is_list else tuple(shared.cells))
            return None
        frames[-1][1] -= 1
        return self._read(stack, self._cell(container, len(got)), line)

    def _index(self, frames, stack, slots, argument, line):
        key, value = stack.pop(), stack.pop()
        if isinstance(value, Ref):
            return self._read(stack, self._cell(value, key), line)
        if not isinstance(value, tuple | str | range):
            raise Wrong(f"takes element {say(key)} of {say(value)}, which has none")
        stack.append(value[key])
        return None

    def _store_index(self, frames, stack, slots, argument, line):
        key, container = stack.pop(), stack.pop()
        if not isinstance(container, Ref):
            raise Wrong("changes an element of a list of its own: here only shared lists and dicts change")
        cell = self._cell(container, key)
        if cell in self._fixed:
            raise Wrong(f"overwrites {self._heap.cell_paths[cell]}, which holds a list, dict or lock")
        return ("write", cell, storable(stack.pop()), line)

    def _read_cell(self, frames, stack, slots, argument, line):
        return self._read(stack, argument, line)

    def _write_cell(self, frames, stack, slots, argument, line):
        return ("write", argument, storable(stack.pop()), line)

    def _acquire(self, frames, stack, slots, argument, line):
        return ("try" if argument == "try" else "acquire", lock_of(stack.pop()), None, line)

    def _release(self, frames, stack, slots, argument, line):
        return ("release", lock_of(stack.pop()), None, line)

    def _locked(self, frames, stack, slots, argument, line):
        return ("locked", lock_of(stack.pop()), None, line)

    def _call(self, frames, stack, slots, argument, line):
        name, count = argument
        if len(frames) >= DEEPEST_CALL:
            raise Wrong(f"calls functions from functions more than {DEEPEST_CALL} deep")
        arguments = tuple(stack[len(stack) - count :])
        del stack[len(stack) - count :]
        frames.append([name, 0, [], self._slots(self._codes[name], arguments)])

    def _compute(self, frames, stack, slots, argument, line):
        name, count = argument
        arguments = stack[len(stack) - count :]
        del stack[len(stack) - count :]
        if name == "len" and count == 1 and isinstance(arguments[0], Ref):
            stack.append(len(self._heap.containers[arguments[0].object].cells))
            return
        if any(isinstance(one, Ref | LockRef) for one in arguments):
            raise Wrong(f"hands a shared list, dict or lock to {name}()")
        if any(isinstance(one, range) and len(one) > LONGEST for one in arguments) and name != "len":
            raise Wrong(f"hands a range of more than {LONGEST} numbers to {name}()")
        stack.append(bounded(COMPUTE[name](*arguments)))

    def _discard(self, frames, stack, slots, argument, line):
        del stack[len(stack) - argument :]
        stack.append(None)

    def _assert(self, frames, stack, slots, argument, line):
        if not truth(stack.pop(), self._heap):
            raise Wrong(f"finds that `assert {argument}` does not hold")

    def _return(self, frames, stack, slots, argument, line):
        value = stack.pop()
        frames.pop()
        if not frames:
            return ("end", None, value, line)
        frames[-1][2].append(value)
        return None


_DO = {
    "CONST": Machine._const,
    "CHECKED": Machine._checked,
    "LOAD": Machine._load,
    "STORE": Machine._store,
    "CLEAR": Machine._clear,
    "POP": Machine._pop,
    "DUP": Machine._dup,
    "DUP2": Machine._dup2,
    "ROT3": Machine._rot3,
    "SWAP_UNDER": Machine._swap_under,
    "JUMP": Machine._jump,
    "JUMP_IF_FALSE": Machine._jump_if_false,
    "JUMP_IF_FALSE_KEEP": Machine._jump_if_false_keep,
    "JUMP_IF_TRUE_KEEP": Machine._jump_if_true_keep,
    "JUMP_IF_FALSE_POP_UNDER": Machine._jump_if_false_pop_under,
    "BINARY": Machine._binary,
    "COMPARE": Machine._compare,
    "UNARY": Machine._unary,
    "TUPLE": Machine._tuple,
    "UNPACK": Machine._unpack,
    "ITERATE": Machine._iterate,
    "FOR": Machine._for,
    "GATHER": Machine._gather,
    "INDEX": Machine._index,
    "STORE_INDEX": Machine._store_index,
    "READ_CELL": Machine._read_cell,
    "WRITE_CELL": Machine._write_cell,
    "ACQUIRE": Machine._acquire,
    "RELEASE": Machine._release,
    "LOCKED": Machine._locked,
    "CALL": Machine._call,
    "COMPUTE": Machine._compute,
    "DISCARD": Machine._discard,
    "ASSERT": Machine._assert,
    "RETURN": Machine._return,
}
