"""Calling an answer so that nothing of ours stands below it on the stack: C alone calls it, on a new thread.

A frame of ours would show the answer what we know of its calls: which one it is, and how many follow.
"""

from __future__ import annotations

import _thread
import contextvars
import sys
from collections.abc import Callable, Iterator
from itertools import chain, compress, repeat, starmap
from typing import Any

_RETURNED = object()


class _Ended:
    """Opens a lock when it is thrown away: whatever way the thread ends that has it."""

    def __init__(self, lock: _thread.LockType) -> None:
        self._lock = lock

    def __del__(self) -> None:
        self._lock.release()


def alone(function: Callable, calls: Iterator[tuple], steps: Callable | None = None) -> list:
    """Return what the function gives for each of the arguments, which are asked for one by one.

    `steps` is for `sys.settrace` of the calls' thread.
    Raises what the function raises. A StopIteration would only end the loop in C: it is missed by its result.
    """
    asked = []  # True for each call

    def noted(args: tuple) -> tuple:
        asked.append(True)
        if steps:
            sys.settrace(steps)
        return args

    results: list[Any] = []
    raised: list[BaseException] = []
    lock = _thread.allocate_lock()
    lock.acquire()
    hook = sys.unraisablehook

    def told(problem: Any) -> None:
        if "in thread started by" in (problem.err_msg or ""):
            raised.append(problem.exc_value)

    sys.unraisablehook = told
    # nothing but C from here to the function: the list takes what the calls give, and then a mark
    given = compress(chain(starmap(function, map(noted, calls)), (_RETURNED,)), repeat(_Ended(lock)))
    try:
        _thread.start_new_thread(contextvars.copy_context().run, (results.extend, given))
        del given
        lock.acquire()
    finally:
        sys.unraisablehook = hook
    if raised:
        raise raised[0]
    if not results or results[-1] is not _RETURNED:
        raise SystemExit("it asked Python to end")  # of which a thread tells no more
    if len(results) <= len(asked):
        raise StopIteration("next found nothing that is left: give it a second argument")
    return results[:-1]
