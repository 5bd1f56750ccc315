"""One schedule, step by step, in words: what each step did, what is shared after it, who holds which lock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from course_lib.measure.table import Shown, Table
from course_lib.simulators.interleavings.shared import Plain, holder_of

if TYPE_CHECKING:
    from course_lib.simulators.interleavings.program import ThreadProgram

MOST_STEPS = 2_000


@dataclass(frozen=True)
class ReplayStep:
    """One atomic step of one thread."""

    thread: int
    line: int  # in `Replay.text`
    code: str  # that line
    does: str  # "reads total[0]: 0", "waits for lock"
    shared: dict[str, Any]  # the shared variables after the step
    held: dict[str, str]  # after the step: lock -> "thread 0", semaphore -> "1 free"
    waits: bool = False  # the thread could not move


@dataclass(frozen=True, repr=False)
class Replay(Shown):
    """A schedule as it happened."""

    threads: tuple[str, ...]  # the name of each thread's function
    steps: tuple[ReplayStep, ...]
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

    def table(self) -> Table:
        """Return the steps, a column for each thread, and what is shared after each step."""
        columns = ("step", *(f"thread {n}" for n in range(len(self.threads))), "shared", "locks")
        rows = []
        for number, step in enumerate(self.steps, start=1):
            cells = ["" for _ in self.threads]
            cells[step.thread] = f"{step.does}  (line {step.line})"
            rows.append((str(number), *cells, in_short(step.shared), in_short(step.held, "")))
        return Table(columns, tuple(rows), notes=(self.sentence,), words=True)


def in_short(values: dict[str, Any], none: str = "–") -> str:
    """Return variables as "total = [1], done = True"."""
    return ", ".join(f"{name} = {value}" for name, value in values.items()) or none


def replay(
    program: ThreadProgram,
    schedule: Sequence[int],
    *,
    complete: bool = True,
    order: Sequence[int] | None = None,
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

    def __init__(self, program: ThreadProgram) -> None:
        self.program = program
        self.heap = program.heap
        self.cells, self.locks = self.heap.cells, self.heap.locks
        self.threads = list(program.start)
        self.steps: list[ReplayStep] = []
        self.fault = ""

    def pending(self, thread: int) -> tuple:
        return self.program.states.pending[self.threads[thread]]

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
        return self.program.step(self.cells, self.locks, thread, self.pending(thread)) is not None

    def move(self, thread: int) -> None:
        """Let the thread do its next step, or note that it cannot."""
        pending = self.pending(thread)
        line = pending[3]
        after = self.program.step(self.cells, self.locks, thread, pending)
        does = self._words(pending, after)
        if after is not None:
            self.cells, self.locks, result = after
            self.threads[thread] = self.program.states.resume(self.threads[thread], result)
        elif pending[0] == "release":
            self.fault = f"Thread {thread} releases {pending[1].path}, which it does not hold."
        shared, held = self.heap.plain(self.cells), self._held()
        self.steps.append(
            ReplayStep(thread, line, self.program.lines[line - 1].strip(), does, shared, held, after is None)
        )
        kind, _, value, line = self.pending(thread)
        if kind == "error" and after is not None:
            self.fault = f"Thread {thread} {value} (line {line})."

    def _words(self, pending: tuple, after: tuple | None) -> str:
        """Return what a step does, given what the program makes of it."""
        kind, target, value, _ = pending
        if kind == "read":
            return f"reads {self.heap.cell_paths[target]}: {self._said(after[2])}"
        if kind == "write":
            return f"writes {self.heap.cell_paths[target]} = {self._said(value)}"
        if kind == "locked":
            return f"asks whether {target.path} is held: {after[2]}"
        if kind == "release":
            return f"releases {target.path}" + ("" if after else " without holding it")
        if after and after[2]:
            return f"acquires {target.path}"
        return ("does not get " if kind == "try" else "waits for ") + target.path

    def _said(self, value: Any) -> str:
        return repr(value) if isinstance(value, Plain) else "a list, dict or lock"

    def _held(self) -> dict[str, str]:
        held = {}
        for lock, state in zip(self.heap.all_locks, self.locks, strict=True):
            if lock.kind == "semaphore":
                held[lock.path] = f"{state} free"
            elif (holder := holder_of(state)) is not None:
                held[lock.path] = f"thread {holder}"
        return held

    def replay(self) -> Replay:
        """Return what has happened so far."""
        alive = [thread for thread in range(len(self.threads)) if not self.has_ended(thread)]
        pending = [self.pending(thread) for thread in range(len(self.threads))]
        ended = all(step[0] == "end" for step in pending)
        if self.fault:
            sentence = self.fault
        elif ended:
            sentence = f"All threads ended: {in_short(self.heap.plain(self.cells))}."
        elif not any(map(self.can_move, alive)):
            sentence = waiting(self.program, self.locks, pending)
        else:
            sentence = f"Not at its end yet: thread {', '.join(map(str, alive))} could go on."
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


def waiting(program: ThreadProgram, locks: tuple, pending: Sequence[tuple]) -> str:
    """Return who waits for whom when nobody can move."""
    waits = {thread: step[1] for thread, step in enumerate(pending) if step[0] == "acquire"}
    if not waits:
        return "No thread can go on."
    parts = []
    for thread, lock in waits.items():
        mine = [one.path for one in program.heap.all_locks if holder_of(locks[one.number]) == thread]
        held = f"holds {' and '.join(mine)} and " if mine else ""
        awaited = _awaited(lock.path, locks[lock.number], thread, pending)
        parts.append(f"thread {thread} {held}waits for {awaited}")
    return f"Deadlock: {'; '.join(parts)}."


def _awaited(path: str, state: Any, thread: int, pending: Sequence[tuple]) -> str:
    """Return the name of a lock, and who has it."""
    holder = holder_of(state)
    if holder is None:
        return f"the semaphore {path}, of which none is free"
    if holder == thread:
        return f"{path}, which it holds itself"
    is_over = pending[holder][0] in ("end", "error")
    return f"{path}, which thread {holder} {'took to its end' if is_over else 'holds'}"
