"""What threads share, laid out flat: every plain value is a cell with a number, every lock has a number."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from course_lib.arguments import is_whole

MOST_CELLS = 200
MOST_LOCKS = 20

Plain = int | float | str | None


@dataclass(frozen=True)
class Lock:
    """A mutex to be shared in `explore`: held by one thread at a time, even once by its holder."""


@dataclass(frozen=True)
class RLock:
    """A reentrant mutex to be shared in `explore`: its holder may take it again."""


@dataclass(frozen=True)
class Semaphore:
    """A counting semaphore to be shared in `explore`: `value` threads may hold it at a time."""

    value: int = 1
    most: int = 1000  # who gives back more is at fault: for a BoundedSemaphore what it began with


@dataclass(frozen=True, eq=False)
class Container:
    """A shared list or dict: its path, and the cell of each of its keys."""

    path: str
    is_list: bool
    cells: dict[Any, int] = field(default_factory=dict)

    def __repr__(self) -> str:  # within a tuple that a sentence quotes
        return self.path


@dataclass(frozen=True, eq=False)
class SharedLock:
    """A lock among those that are shared: its place among their states, path, kind and highest count."""

    number: int
    path: str
    kind: str  # "lock", "rlock" or "semaphore"
    most: int  # of a mutex 1

    def __repr__(self) -> str:  # within a tuple that a sentence quotes
        return self.path


class Heap:
    """The shared names of a program and everything they lead to."""

    def __init__(self, shared: Mapping[str, Any]) -> None:
        self.names: dict[str, Any] = {}  # name -> Container, SharedLock, or the number of a cell
        self.cell_paths: list[str] = []
        self.all_locks: list[SharedLock] = []
        self._cells: list[Any] = []
        self._locks: list[Any] = []
        self._seen: dict[int, Any] = {}
        self._alive: list[Any] = []  # an id stays unique as long as its object lives
        for name, value in shared.items():
            if not isinstance(name, str) or not name.isidentifier():
                raise ValueError(f"shared has the name {name!r}, but it must be a variable name.")
            self.names[name] = self._reference(name, value) or self._cell(name, value)
        #: At the start: the value of every cell; of every lock (holder, depth), or the count of a semaphore.
        self.cells, self.locks = tuple(self._cells), tuple(self._locks)

    def _reference(self, path: str, value: Any) -> Container | SharedLock | None:
        """Return what stands for a list, a dict or a lock, None for a plain value."""
        if id(value) in self._seen and isinstance(value, list | dict):
            return self._seen[id(value)]
        lock = _lock_of(value)
        if lock is not None:
            return self._lock(path, value, lock)
        if not isinstance(value, list | dict):
            return None
        self._alive.append(value)
        container = self._seen[id(value)] = Container(path, isinstance(value, list))
        pairs = dict(enumerate(value)) if container.is_list else value
        for key, element in pairs.items():
            if not isinstance(key, int | str):
                raise ValueError(f"{path} has the key {key!r}, but keys here are whole numbers or texts.")
            inner = f"{path}[{key!r}]"
            reference = self._reference(inner, element)
            container.cells[key] = self._cell(inner, element if reference is None else reference)
        return container

    def _lock(self, path: str, value: Any, lock: Lock | RLock | Semaphore) -> SharedLock:
        # Lock() == Lock(), so only real locks (and semaphores named twice) can be one and the same object
        if id(value) in self._seen:
            return self._seen[id(value)]
        if len(self._locks) >= MOST_LOCKS:
            raise ValueError(f"shared has more than {MOST_LOCKS} locks: check a smaller case.")
        self._alive.append(value)
        state, most = (lock.value, lock.most) if isinstance(lock, Semaphore) else ((-1, 0), 1)
        made = SharedLock(len(self._locks), path, type(lock).__name__.lower(), most)
        self._locks.append(state)
        self.all_locks.append(made)
        self._seen[id(value)] = made
        return made

    def _cell(self, path: str, value: Any) -> int:
        if not isinstance(value, Plain | Container | SharedLock):
            kind = type(value).__name__
            raise ValueError(
                f"{path} is a {kind}, but shared variables are numbers, texts, True, False, None, locks, "
                "and lists and dicts of them."
            )
        if len(self._cells) >= MOST_CELLS:
            raise ValueError(f"shared holds more than {MOST_CELLS} values: check a smaller case.")
        self._cells.append(value)
        self.cell_paths.append(path)
        return len(self._cells) - 1

    def references(self) -> set[int]:
        """Return the cells that hold a list, dict or lock: these stay what they are."""
        return {cell for cell, value in enumerate(self._cells) if not isinstance(value, Plain)}

    def reachable(self, name: str) -> set[int]:
        """Return the cells that a shared name leads to, through containers in containers."""
        found: set[int] = set()
        todo = [self.names[name]]
        while todo:
            one = todo.pop()
            if isinstance(one, Container):
                new = {*one.cells.values()} - found
                found |= new
                todo += [self._cells[cell] for cell in new]
        return found

    def plain(self, cells: tuple) -> dict[str, Any]:
        """Return the shared variables as plain Python values, locks left out."""
        return {
            name: self._plain(cells, cells[value] if isinstance(value, int) else value, 0)
            for name, value in self.names.items()
            if not self._is_lock(value)
        }

    def _is_lock(self, value: Any) -> bool:
        """Whether a reference leads to locks only."""
        if not isinstance(value, Container):
            return isinstance(value, SharedLock)
        inside = [self._cells[cell] for cell in value.cells.values()]
        return bool(inside) and all(isinstance(one, SharedLock) for one in inside)

    def _plain(self, cells: tuple, value: Any, depth: int) -> Any:
        if not isinstance(value, Container) or depth > 20:
            return value if isinstance(value, Plain) else None
        values = {
            key: self._plain(cells, cells[cell], depth + 1)
            for key, cell in value.cells.items()
            if not isinstance(cells[cell], SharedLock)
        }
        return list(values.values()) if value.is_list else values


def _lock_of(value: Any) -> Lock | RLock | Semaphore | None:
    """Return the model of a lock, given as such or as a real one of `threading`; None for anything else."""
    if isinstance(value, Lock | RLock):
        return value
    if isinstance(value, Semaphore | threading.Semaphore):
        count = value.value if isinstance(value, Semaphore) else value._value
        if not is_whole(count) or count < 0:
            raise ValueError(f"A semaphore begins at {count!r}, but it must be a whole number of at least 0.")
        most = value.most if isinstance(value, Semaphore) else getattr(value, "_initial_value", 1000)
        return Semaphore(count, most)
    if isinstance(value, type(threading.Lock())):
        return Lock()
    return RLock() if isinstance(value, type(threading.RLock())) else None


def taken(lock: SharedLock, state: Any, thread: int) -> Any:
    """Return a lock's state after the thread takes it, None if it must wait."""
    if lock.kind == "semaphore":
        return state - 1 if state > 0 else None
    holder, depth = state
    if lock.kind == "rlock" and holder == thread:
        return (thread, depth + 1)
    return (thread, 1) if holder == -1 else None


def released(lock: SharedLock, state: Any, thread: int) -> Any:
    """Return a lock's state after the thread releases it, None if it must not."""
    if lock.kind == "semaphore":
        return state + 1 if state < lock.most else None
    holder, depth = state
    if holder != thread:
        return None
    return (thread, depth - 1) if depth > 1 else (-1, 0)


def holder_of(state: Any) -> int | None:
    """Return the thread that holds a mutex; None if nobody does, and for a semaphore."""
    return None if isinstance(state, int) or state[0] == -1 else state[0]
