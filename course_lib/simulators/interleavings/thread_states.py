"""The states of single threads, numbered: what a thread does after a step is computed once and remembered."""

from __future__ import annotations

from typing import Any

from course_lib.simulators.interleavings.language import TextScope
from course_lib.simulators.interleavings.running import Pending, Running, Steps
from course_lib.simulators.interleavings.values import CannotDo, kinds

MOST_STATES = 100_000
Place = tuple  # the kind of the next step, and of each frame its function, its part of the text and more
MOST_PARKED = 2_000  # threads kept for going on from a state like theirs


class TooMany(Exception):
    """More states than may be remembered."""


class ThreadStates:
    """The states of single threads at their visible steps, as numbers; `pending[state]` is the step.

    A generator cannot be copied, but put into the state of another that stands at the same place. To go on
    from a state, any thread parked at its place will do. Where there is none, one is brought there from a
    state before that has one, or from the start. (To run the thread again from its start each time would make
    the search quadratically slower.)
    """

    def __init__(self, scope: TextScope) -> None:
        self.scope = scope
        self.pending: list[Pending] = []
        self._numbers: dict[tuple, int] = {}
        self._after: dict[tuple[int, Any, type], int] = {}
        self._frames: list[tuple[tuple, ...]] = []  # state -> its frozen frames
        self._places: list[Place] = []  # state -> where it stands
        self._came: list[tuple[int | None, Any]] = []  # state -> the one before and its result, or the call
        self._parked: dict[Place, list[tuple[Running, Steps]]] = {}  # place -> threads that stand there
        self._count_parked = 0

    def start(self, name: str, arguments: tuple) -> int:
        """Return the state of a new thread at its first visible step."""
        return self._go_on(*self._new(name, arguments), None, (name, arguments))

    def resume(self, state: int, result: Any) -> int:
        """Return the thread's state at its next visible step, given what the present one returned."""
        key = state, result, type(result)
        after = self._after.get(key)
        if after is None:
            running, steps = self._standing_in(state)
            after = self._after[key] = self._go_on(running, steps, state, result)
        return after

    def _standing_in(self, state: int) -> tuple[Running, Steps]:
        """Return a thread in this state, to go on from it."""
        results, at = [], state
        while not (parked := self._parked.get(self._places[at])) and self._came[at][0] is not None:
            at, result = self._came[at]
            results.append(result)
        if parked:
            self._count_parked -= 1
            running, steps = parked.pop()
            running.put(self._frames[at], self.pending[at][3])
        else:
            running, steps = self._new(*self._came[at][1])
            next(steps)
        for result in reversed(results):
            running.begin_step()
            steps.send(result)
        running.put(self._frames[state], self.pending[state][3])
        return running, steps

    def _new(self, name: str, arguments: tuple) -> tuple[Running, Steps]:
        running = Running(self.scope)
        return running, running.call(self.scope.functions[name], arguments)

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
        key = (frames, pending, kinds((frames, pending[2]), {}))
        state = self._numbers.get(key)
        if state is None:
            if len(self.pending) >= MOST_STATES:
                raise TooMany
            state = self._numbers[key] = len(self.pending)
            self.pending.append(pending)
            self._frames.append(frames)
            self._places.append(_place(pending[0], frames))
            self._came.append((before, result))
        if not is_over and self._count_parked < MOST_PARKED:
            self._parked.setdefault(self._places[state], []).append((running, steps))
            self._count_parked += 1
        return state


def _place(kind: str, frames: tuple[tuple, ...]) -> Place:
    """Return where a thread stands: threads at one place differ only in their values."""
    return kind, *((function, node, len(stack)) for function, node, stack, _ in frames)
