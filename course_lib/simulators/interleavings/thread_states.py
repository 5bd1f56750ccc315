"""The states of single threads, numbered: what a thread does after a step is computed once and remembered."""

from __future__ import annotations

from typing import Any

from course_lib.simulators.interleavings.language import TextScope
from course_lib.simulators.interleavings.running import Pending, Running, Steps
from course_lib.simulators.interleavings.values import CannotDo

MOST_STATES = 100_000
MOST_STANDING = 2_000  # threads kept for going on; others are run again from their start


class TooMany(Exception):
    """More states than may be remembered."""


class ThreadStates:
    """The states of single threads at their visible steps, as numbers; `pending[state]` is the step.

    A generator cannot be copied: to go on from a state for a second time, it is reached again from the start
    of the thread, by the results that led there.
    """

    def __init__(self, scope: TextScope) -> None:
        self.scope = scope
        self.pending: list[Pending] = []
        self._numbers: dict[tuple, int] = {}
        self._after: dict[tuple[int, Any], int] = {}
        self._before: list[
            tuple[int | None, Any]
        ] = []  # state -> state before and result, or None and the call
        self._standing: dict[
            int, tuple[Running, Steps]
        ] = {}  # threads that stand in a state, not gone on yet

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
            running, steps = self._standing.pop(state, None) or self._reached_again(state)
            after = self._after[state, result] = self._go_on(running, steps, state, result)
        return after

    def _reached_again(self, state: int) -> tuple[Running, Steps]:
        results = []
        while True:
            before, result = self._before[state]
            if before is None:
                break
            results.append(result)
            state = before
        name, arguments = result
        running = Running(self.scope)
        steps = running.call(self.scope.functions[name], arguments)
        for sent in [None, *reversed(results)]:
            running.begin_step()
            steps.send(sent)
        return running, steps

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
            self._before.append((before, result))
            if not is_over:
                self._standing[state] = running, steps
                if len(self._standing) > MOST_STANDING:
                    del self._standing[next(iter(self._standing))]
        return state
