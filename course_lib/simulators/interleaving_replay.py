"""One schedule, step by step, in words: what each step did, what is shared after it, who holds which lock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from course_lib.measure.table import Table
from course_lib.simulators.interleaving_state import released, taken

if TYPE_CHECKING:
    from course_lib.simulators.interleaving_program import Program

MOST_STEPS = 2_000


@dataclass(frozen=True)
class Step:
    """One atomic step of one thread."""

    thread: int
    line: int  # in `Replay.text`
    code: str  # that line
    does: str  # "reads total[0]: 0", "waits for lock"
    shared: dict[str, Any]  # the shared variables after the step
    held: dict[str, str]  # after the step: lock -> "thread 0", semaphore -> "1 free"
    waits: bool = False  # the thread could not move


@dataclass(frozen=True)
class Replay:
    """A schedule as it happened."""

    threads: tuple[str, ...]  # the name of each thread's function
    steps: tuple[Step, ...]
    before: dict[str, Any]  # the shared variables at the start
    ended: bool  # whether every thread came to its end
    sentence: str  # how it ended
    text: str = field(repr=False)  # the source that the lines refer to
    cells: tuple = field(repr=False, default=())  # the final values as the checker keeps them

    @property
    def schedule(self) -> tuple[int, ...]:
        """The thread of each step."""
        return tuple(step.thread for step in self.steps)

    @property
    def shared(self) -> dict[str, Any]:
        """The shared variables at the end."""
        return self.steps[-1].shared if self.steps else self.before

    @property
    def switches(self) -> int:
        """How often the schedule goes from one thread to another."""
        return sum(a != b for a, b in zip(self.schedule, self.schedule[1:], strict=False))

    def table(self) -> Table:
        """Return the steps, a column for each thread, and what is shared after each step."""
        columns = ("step", *(f"thread {n}" for n in range(len(self.threads))), "shared", "locks")
        rows = []
        for number, step in enumerate(self.steps, start=1):
            cells = ["" for _ in self.threads]
            cells[step.thread] = f"{step.does}  (line {step.line})"
            rows.append((str(number), *cells, in_short(step.shared), in_short(step.held, "")))
        return Table(columns, tuple(rows), notes=(self.sentence,), words=True)

    def __str__(self) -> str:
        return str(self.table())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def in_short(values: dict[str, Any], none: str = "–") -> str:
    """Return variables as "total = [1], done = True"."""
    return ", ".join(f"{name} = {value}" for name, value in values.items()) or none


def replay(
    program: Program, schedule: Sequence[int], *, complete: bool = True, order: Sequence[int] | None = None
) -> Replay:
    """Run threads in the given schedule; `complete`: then what is left, whole threads in `order`."""
    run = _Run(program)
    for thread in schedule:
        if not run.has_ended(thread) and len(run.steps) < MOST_STEPS:
            run.move(thread)
    if complete:
        run.finish(order or range(len(program.start)))
    return run.replay()


class _Run:
    """A program in the middle of a schedule."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.heap = program.heap
        self.cells, self.locks = self.heap.cells, self.heap.locks
        self.threads = list(program.start)
        self.steps: list[Step] = []
        self.fault = ""

    def pending(self, thread: int) -> tuple:
        return self.program.machine.pending[self.threads[thread]]

    def has_ended(self, thread: int) -> bool:
        return self.pending(thread)[0] in ("end", "error")

    def finish(self, order: Sequence[int]) -> None:
        """Run each thread as far as it goes, again and again while one of them moves."""
        moved = True
        while moved:
            moved = False
            for thread in order:
                while not self.has_ended(thread) and self.can_move(thread) and len(self.steps) < MOST_STEPS:
                    self.move(thread)
                    moved = True

    def can_move(self, thread: int) -> bool:
        kind, target, _, _ = self.pending(thread)
        if kind == "release":
            return released(self.heap.lock_kinds[target], self.locks[target], thread) is not None
        return kind != "acquire" or taken(self.heap.lock_kinds[target], self.locks[target], thread)[0]

    def move(self, thread: int) -> None:
        """Let the thread do its next step, or note that it cannot."""
        kind, target, value, line = self.pending(thread)
        can_move = self.can_move(thread)
        result: Any = None
        if kind == "read":
            result = self.cells[target]
            does = f"reads {self.heap.cell_paths[target]}: {self._said(result)}"
        elif kind == "write":
            self.cells = (*self.cells[:target], value, *self.cells[target + 1 :])
            does = f"writes {self.heap.cell_paths[target]} = {self._said(value)}"
        else:
            does, result = self._use_lock(kind, target, thread, can_move)
        if can_move:
            self.threads[thread] = self.program.machine.resume(self.threads[thread], result)
        shared, held = self.heap.plain(self.cells), self._held()
        self.steps.append(Step(thread, line, self.program.line(line), does, shared, held, not can_move))
        after = self.pending(thread)
        if after[0] == "error" and can_move:
            self.fault = f"Thread {thread} {after[2]} (line {after[3]})."

    def _use_lock(self, kind: str, lock: int, thread: int, can_move: bool) -> tuple[str, Any]:
        path, lock_kind, state = self.heap.lock_paths[lock], self.heap.lock_kinds[lock], self.locks[lock]
        if kind == "locked":
            is_held = state == 0 if lock_kind == "semaphore" else state[0] != -1
            return f"asks whether {path} is held: {is_held}", is_held
        if kind == "release":
            if not can_move:
                self.fault = f"Thread {thread} releases {path}, which it does not hold."
                return f"releases {path} without holding it", None
            self._set(lock, released(lock_kind, state, thread))
            return f"releases {path}", None
        is_free, after = taken(lock_kind, state, thread)
        if is_free:
            self._set(lock, after)
            return f"acquires {path}", True
        return f"{'waits for' if kind == 'acquire' else 'does not get'} {path}", False

    def _set(self, lock: int, state: Any) -> None:
        self.locks = (*self.locks[:lock], state, *self.locks[lock + 1 :])

    def _said(self, value: Any) -> str:
        """Return a value; a reference as the name of what it leads to."""
        plain = value is None or isinstance(value, int | float | str)
        return repr(value) if plain else "a list, dict or lock"

    def _held(self) -> dict[str, str]:
        held = {}
        for path, kind, state in zip(self.heap.lock_paths, self.heap.lock_kinds, self.locks, strict=True):
            if kind == "semaphore":
                held[path] = f"{state} free"
            elif state[0] != -1:
                held[path] = f"thread {state[0]}"
        return held

    def replay(self) -> Replay:
        """Return what has happened so far."""
        pending = [self.pending(thread) for thread in range(len(self.threads))]
        ended = all(one[0] == "end" for one in pending)
        if self.fault:
            sentence = self.fault
        elif ended:
            sentence = f"All threads ended: {in_short(self.heap.plain(self.cells))}."
        elif not any(self.can_move(t) for t, one in enumerate(pending) if one[0] not in ("end", "error")):
            sentence = waiting(self.program, self.locks, pending)
        else:
            alive = [str(thread) for thread, one in enumerate(pending) if one[0] not in ("end", "error")]
            sentence = f"Not at its end yet: thread {', '.join(alive)} could go on."
        return Replay(
            tuple(self.program.names),
            tuple(self.steps),
            self.heap.plain(self.heap.cells),
            ended,
            sentence,
            self.program.text,
            self.cells,
        )


def wants(pending: tuple) -> str:
    """Return what a thread is about to do with a variable: "writes it"."""
    return "writes it" if pending[0] == "write" else "reads it"


def waiting(program: Program, locks: tuple, pending: Sequence[tuple]) -> str:
    """Return who waits for whom when nobody can move."""
    heap = program.heap
    waits = {thread: one[1] for thread, one in enumerate(pending) if one[0] == "acquire"}
    if not waits:
        return "No thread can go on."
    parts = []
    for thread, lock in waits.items():
        holds = [p for p, s in zip(heap.lock_paths, locks, strict=True) if s != -1 and _holder(s) == thread]
        held = f"holds {' and '.join(holds)} and " if holds else ""
        parts.append(f"thread {thread} {held}waits for {_whose(heap, locks, lock, thread, pending)}")
    return f"Deadlock: {'; '.join(parts)}."


def _holder(state: Any) -> int:
    return -2 if isinstance(state, int) else state[0]


def _whose(heap: Any, locks: tuple, lock: int, thread: int, pending: Sequence[tuple]) -> str:
    path, holder = heap.lock_paths[lock], _holder(locks[lock])
    if holder == -2:
        return f"the semaphore {path}, of which none is free"
    if holder == thread:
        return f"{path}, which it holds itself"
    gone = pending[holder][0] in ("end", "error")
    return f"{path}, which thread {holder} {'took to its end' if gone else 'holds'}"
