"""The states of single threads, numbered: what a thread does after a step is computed once and remembered."""

from __future__ import annotations

from collections import deque
from typing import Any

from course_lib.simulators.interleavings.language import TextScope
from course_lib.simulators.interleavings.running import Pending, Running, Steps
from course_lib.simulators.interleavings.values import CannotDo

MOST_STATES = 100_000
Place = tuple  # the kind of the next step, and of each frame its function, its part of the text and more
MOST_PARKED = 2_000  # threads kept for going on from a state like theirs


class TooMany(Exception):
    """More states than may be remembered."""


class ThreadStates:
    """The states of single threads at their visible steps, as numbers; `pending[state]` is the step.

    A generator cannot be copied, but put into the state of another that stands at the same place. To go on
    from a state, any thread parked at its place will do. Where there is none, one is brought there from the
    nearest place that has one, or from the start. (Running the thread again from its start each time would
    make the search quadratically slower.)
    """

    def __init__(self, scope: TextScope) -> None:
        self.scope = scope
        self.pending: list[Pending] = []
        self._numbers: dict[tuple, int] = {}
        self._after: dict[tuple[int, Any], int] = {}
        self._frames: list[tuple[tuple, ...]] = []  # state -> its frozen frames
        self._places: list[Place] = []  # state -> where it stands
        #: place -> place before -> state there and the result that leads on, or None and the call
        self._ways: dict[Place, dict[Place | None, tuple[int | None, Any]]] = {}
        self._parked: dict[Place, list[tuple[Running, Steps]]] = {}  # place -> threads that stand there
        self._count_parked = 0

    def start(self, name: str, arguments: tuple) -> int:
        """Return the state of a new thread at its first visible step."""
        running = Running(self.scope)
        return self._go_on(
            running, running.call(self.scope.functions[name], arguments), None, (name, arguments)
        )

    def resume(self, state: int, result: Any) -> int:
        """Return the thread's state at its next visible step, given what the present one returned."""
        after = self._after.get((state, result))
        if after is None:
            running, steps = self._standing_in(state)
            after = self._after[state, result] = self._go_on(running, steps, state, result)
        return after

    def _standing_in(self, state: int) -> tuple[Running, Steps]:
        """Return a thread in this state, to go on from it."""
        place, ways = self._nearest_parked(self._places[state])
        if place is None:
            _, (name, arguments) = ways.pop(0)
            running = Running(self.scope)
            steps = running.call(self.scope.functions[name], arguments)
            next(steps)
        else:
            running, steps = self._parked[place].pop()
            self._count_parked -= 1
        for before, result in ways:
            self._put(running, before)
            steps.send(result)
        self._put(running, state)
        return running, steps

    def _nearest_parked(self, wanted: Place) -> tuple[Place | None, list[tuple[int | None, Any]]]:
        """Return a place with a parked thread, None for the start, and the ways from there on."""
        after: dict[Place | None, Place] = {}
        todo = deque([wanted])
        while (place := todo.popleft()) is not None and not self._parked.get(place):
            for before in self._ways[place]:
                if before not in after and before != wanted:
                    after[before] = place
                    todo.append(before)
        found, ways = place, []
        while place != wanted:
            ways.append(self._ways[after[place]][place])
            place = after[place]
        return found, ways

    def _put(self, running: Running, state: int) -> None:
        running.put(self._frames[state], self.pending[state][3])
        running.begin_step()

    def _go_on(self, running: Running, steps: Steps, before: int | None, result: Any) -> int:
        """Run until the next visible step, the end, or an error, and return that state."""
        running.begin_step()
        try:
            pending = steps.send(None if before is None else result)
        except StopIteration as end:
            pending = ("end", None, end.value, running.line)
        except CannotDo as problem:
            pending = ("error", None, str(problem), running.line)
        except RecursionError:  # each part of the text that is open takes some of Python's stack
            pending = ("error", None, "calls functions too deep within expressions", running.line)
        except (ArithmeticError, LookupError, TypeError, ValueError) as problem:
            pending = ("error", None, f"stops with {type(problem).__name__}: {problem}", running.line)
        is_over = pending[0] in ("end", "error")
        frames = () if is_over else tuple(frame.frozen() for frame in running.frames)
        # 1 == 1.0 == True: what compares equal behaves the same, but a learner should read what was computed
        key = (frames, pending, type(pending[2]))
        state = self._numbers.get(key)
        if state is None:
            if len(self.pending) >= MOST_STATES:
                raise TooMany
            state = self._numbers[key] = len(self.pending)
            self.pending.append(pending)
            self._frames.append(frames)
            self._places.append(_place(pending[0], frames))
        if not is_over:
            place_before = None if before is None else self._places[before]
            self._ways.setdefault(self._places[state], {}).setdefault(place_before, (before, result))
            if self._count_parked < MOST_PARKED:
                self._parked.setdefault(self._places[state], []).append((running, steps))
                self._count_parked += 1
        return state


def _place(kind: str, frames: tuple[tuple, ...]) -> Place:
    """Return where a thread stands: threads at one place differ only in their values."""
    return kind, *((function, node, len(stack)) for function, node, stack, _ in frames)
