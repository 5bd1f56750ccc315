"""The search over all states that the threads of a program can reach together."""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

from course_lib.simulators.interleavings.program import ThreadProgram
from course_lib.simulators.interleavings.replay import waiting, wants
from course_lib.simulators.interleavings.running import Pending
from course_lib.simulators.interleavings.shared import SharedLock, holder_of
from course_lib.simulators.interleavings.thread_states import TooMany


@dataclass(frozen=True)
class JointState:
    """A state that the threads can reach together, as an observer of `explore` is shown it."""

    _program: ThreadProgram
    _cells: tuple
    _locks: tuple
    _threads: tuple[int, ...]
    _kinds: tuple[type, ...]

    @property
    def shared(self) -> dict[str, Any]:
        """The shared variables, as in `Verdict.outcomes`."""
        return self._program.heap.plain(self._cells)

    @property
    def holders(self) -> dict[str, int]:
        """The mutexes that are held, by name ("lock", "locks[0]"), and the thread that holds each."""
        held = zip(self._program.heap.all_locks, map(holder_of, self._locks), strict=True)
        return {lock.path: holder for lock, holder in held if holder is not None}

    @property
    def free(self) -> dict[str, int]:
        """How many more may take each semaphore, by name."""
        counts = zip(self._program.heap.all_locks, self._locks, strict=True)
        return {lock.path: count for lock, count in counts if lock.kind == "semaphore"}

    @property
    def coming(self) -> list[tuple[str, str]]:
        """What each thread does next, such as ("write", "total[0]"), ("acquire", "lock") or ("end", "")."""
        return [self._next(self._program.states.pending[thread]) for thread in self._threads]

    def _next(self, pending: Pending) -> tuple[str, str]:
        kind, target, _, _ = pending
        if isinstance(target, int):
            return kind, self._program.heap.cell_paths[target]
        return kind, target.path if target else ""


class Search:
    """States, how each was first reached, and what was found.

    A state is (cells, locks, thread states, the cells' types). `edges` keeps who follows whom, to count
    schedules at the end.
    """

    def __init__(self, program: ThreadProgram, judge: Callable[[tuple], str | None]) -> None:
        self.program = program
        self.judge = judge
        self.pending = program.states.pending
        self.numbers: dict[tuple, int] = {}
        self.parent: list[tuple[int, int]] = []  # state -> (state before, thread that moved)
        self.edges: dict[int, tuple[int, ...]] = {}
        self.final: dict[tuple, int] = {}  # final cells and their types: 1 == True -> a state
        #: kind -> sentence, state, threads that move then
        self.found: dict[str, tuple[str, int, tuple[int, ...]]] = {}
        self.stopped = ""
        self.seconds = 0.0

    def run(self, max_states: int, time_limit_s: float) -> None:
        """Search until everything is covered or a limit is reached; few switches of threads come first."""
        start = time.perf_counter()
        heap = self.program.heap
        first = (heap.cells, heap.locks, tuple(self.program.start), tuple(map(type, heap.cells)))
        todo = deque([(first, -1, -1)])  # state, number of the state before, thread that moved
        self.numbers[first] = 0
        self.parent.append((-1, -1))
        while todo:
            state, before, mover = todo.popleft()
            number = self.numbers[state]
            if number in self.edges:
                continue
            self.parent[number] = (before, mover)
            try:
                self._expand(state, number, mover, todo)
            except TooMany:
                self.stopped = "its threads have too many states of their own"
                break
            if len(self.numbers) > max_states:
                self.stopped = f"there are more than {max_states:,} states"
                break
            if time.perf_counter() - start > time_limit_s:
                self.stopped = f"it did not end within {time_limit_s:g} s"
                break
        if not self.stopped:
            self._look_for_livelock()
        self.seconds = time.perf_counter() - start

    def _expand(self, state: tuple, number: int, mover: int, todo: deque) -> None:
        cells, locks, threads, kinds_of_cells = state
        pending = [self.pending[thread_state] for thread_state in threads]
        self._look_for_races(pending, number)
        followers = []
        for thread, step in enumerate(pending):
            kind, target, value, line = step
            if kind == "end":
                continue
            if kind == "error":
                self._note("error", f"Thread {thread} {value} (line {line}).", number)
                continue
            after = self.program.step(cells, locks, thread, step)
            if after is None:
                if kind == "release":
                    fault = _release_fault(thread, target, locks[target.number], line)
                    self._note("lock error", fault, number, (thread,))
                continue
            new_cells, new_locks, result = after
            own = self.program.states.resume(threads[thread], result)
            types = kinds_of_cells if new_cells is cells else tuple(map(type, new_cells))
            new = (new_cells, new_locks, (*threads[:thread], own, *threads[thread + 1 :]), types)
            follower = self.numbers.get(new)
            if follower is None:
                follower = self.numbers[new] = len(self.parent)
                self.parent.append((number, thread))
            followers.append(follower)
            if follower not in self.edges:
                (todo.appendleft if thread == mover else todo.append)((new, number, thread))
        self.edges[number] = tuple(followers)
        kinds = {kind for kind, *_ in pending}
        if kinds == {"end"}:
            self._judge_end(cells, locks, kinds_of_cells, number)
        elif not followers and kinds <= {"end", "acquire"}:
            blocked = tuple(thread for thread, step in enumerate(pending) if step[0] == "acquire")
            self._note("deadlock", waiting(self.program, locks, pending), number, blocked)

    def _look_for_races(self, pending: list, number: int) -> None:
        if "race" in self.found:
            return
        for (a, first), (b, second) in itertools.combinations(enumerate(pending), 2):
            kinds = {first[0], second[0]}
            if first[1] == second[1] and kinds <= {"read", "write"} and "write" in kinds:
                path = self.program.heap.cell_paths[first[1]]
                said = (
                    f"Data race on {path}: thread {a} {wants(first)} in line {first[3]} while thread {b} "
                    f"{wants(second)} in line {second[3]}, and no lock keeps them apart."
                )
                order = (b, a) if first[0] == "write" else (a, b)  # the read first: it misses the write
                self._note("race", said, number, order)

    def _judge_end(self, cells: tuple, locks: tuple, types: tuple, number: int) -> None:
        for lock in self.program.heap.all_locks:
            if (holder := holder_of(locks[lock.number])) is not None:
                self._note("lock error", f"Thread {holder} ends and still holds {lock.path}.", number)
        if (cells, types) not in self.final:
            self.final[cells, types] = number
            fault = self.judge(cells)
            if fault:
                when = "In some schedule" if len(self.program.names) > 1 else "In the end"
                self._note("wrong result", f"{when} {fault.rstrip('.')}.", number)

    def _look_for_livelock(self) -> None:
        """Find a state that can move for ever and never end: threads that wait for each other in loops."""
        before: list[list[int]] = [[] for _ in self.parent]
        for number, followers in self.edges.items():
            for follower in followers:
                before[follower].append(number)
        # what stands still is a finding of its own; only what moves for ever is looked for here
        can_end = {number for number, followers in self.edges.items() if not followers}
        todo = list(can_end)
        while todo:
            for number in before[todo.pop()]:
                if number not in can_end:
                    can_end.add(number)
                    todo.append(number)
        endless = next((number for number in range(len(self.parent)) if number not in can_end), None)
        if endless is not None:
            said = (
                "From here on no schedule ends: the threads wait for each other in their loops (a livelock)."
            )
            self._note("deadlock", said, endless)

    def _note(self, kind: str, sentence: str, number: int, then: tuple[int, ...] = ()) -> None:
        self.found.setdefault(kind, (sentence, number, then))

    def path(self, number: int, then: tuple[int, ...] = ()) -> list[int]:
        """Return the threads that move from the start to a state, and then once more those of `then`."""
        movers: list[int] = []
        while self.parent[number][0] != -1:
            number, mover = self.parent[number]
            movers.append(mover)
        return [*reversed(movers), *then]

    def schedules(self) -> int | None:
        """Count the paths from the start to an end; None when there are loops that wait."""
        paths: dict[int, int] = {}  # from each state to an end
        try:
            for number in TopologicalSorter(self.edges).static_order():  # who follows comes first
                paths[number] = sum(paths[follower] for follower in self.edges[number]) or 1
        except CycleError:
            return None
        return paths[0]


def _release_fault(thread: int, lock: SharedLock, state: Any, line: int) -> str:
    holder = holder_of(state)
    held = "nobody holds" if holder is None else f"thread {holder} holds"
    return f"Thread {thread} releases {lock.path} in line {line}, which {held} at that moment."
