"""The runner on the safe side: it has an answer run in a sandbox and believes nothing but the values.

Nothing from the sandbox is evaluated here. Each piece of a reply must be of its plain type.
"""

from __future__ import annotations

import functools
import random
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from course_lib.grading.launch import NoCounts, Places, Shape, counts_of
from course_lib.grading.runner import Fault, Outcome, Timing, clone, settled
from course_lib.grading.sandbox.bubblewrap import Sandbox
from course_lib.grading.sandbox.process import AnswerProcess, GraderFault, Stopped, make_ready, start
from course_lib.grading.sandbox.questions import Questions
from course_lib.grading.sandbox.stopwatch import race
from course_lib.grading.tape import Tape
from course_lib.grading.task import Code, Oracle, SpeedRule

LONGEST_TEXT = 400
RESTARTS = 4  # after a killed guarded run the plain run must be able to tell more
RETAKE_S = 20.0  # are left when an answer is timed again
TOLD_BEFORE = 0.9  # of the time of a call: then the tracer stops by itself and says in which line it was


class SandboxedRunner:
    """Runs one answer to one task in a process of its own; a `Runner`. Use it as a context, or call `close`.

    `lines` gives for each line of the code its line in the learner's cell. With an `oracle` the process has a
    number in the place of the first argument, and its questions are answered here. `incidents` are sentences
    for the teacher: what an honest answer does not do. `process_seconds` is how long its processes lived,
    complete once it is closed.
    """

    def __init__(
        self,
        code: Code,
        sandbox: Sandbox,
        lines: tuple[int, ...] = (),
        oracle: Oracle | None = None,
    ) -> None:
        self._codes = [code]
        self._oracle = oracle
        self._sandbox = sandbox
        self._lines, self._places = lines, Places(code.text, lines)
        self._random = random.Random()
        self._process: AnswerProcess | None = None
        self._others: dict[int, SandboxedRunner] = {}
        self._loaded = 0
        self._traces = False
        self._starts = 0
        self._deadline = time.perf_counter() + sandbox.limits.task_s
        self.process_seconds = 0.0
        self.incidents: list[str] = []
        self.timing: Timing | None = None

    # --- what a Runner does ---

    def call(self, args: tuple) -> Outcome:
        """Call the answer."""
        return self._call(0, args)

    def guarded(self, code: Code) -> Callable[[tuple], Outcome]:
        """Return `call` for other source text of the same answer, in the same process."""
        if code not in self._codes[1:]:
            self._codes.append(code)
        return functools.partial(self._call, self._codes.index(code, 1))

    def elsewhere(self, code: Code, place: int) -> Callable[[tuple], Outcome]:
        """Return `call` for other text of the same answer, in another process; each place keeps its own."""
        if place not in self._others:
            self._others[place] = SandboxedRunner(code, self._sandbox, self._lines)
        return self._others[place].call

    def count(self, args: tuple, beside_floats: bool) -> Outcome:
        """Call the answer on operands and return what they wrote down."""
        request = {"do": "count", "which": 0, "args": args, "beside_floats": beside_floats}
        reply, fault = self._ask(request)
        alike = reply.get("alike") is True
        return Outcome(reply.get("result"), fault, tape=_tape(reply.get("tape")), alike=alike)

    def trace(self, shape: Shape, args: tuple) -> Outcome:
        """Launch the answer in the tracer; what it counted is checked piece by piece."""
        self._traces = True
        request = {"do": "trace", "which": 0, "shape": asdict(shape), "args": args}
        reply, fault = self._ask({**request, "seconds": TOLD_BEFORE * self._limits.call_s})
        fault, after = self._after(reply, args, fault)
        if fault is None:
            try:
                return Outcome(counts_of(reply.get("counts")).placed(self._places), None, after)
            except NoCounts:
                fault = self._garbled()
        return Outcome(fault=fault, args_after=args)

    def time(self, speed: SpeedRule, args: tuple) -> Timing:
        """Time the answer from outside, in turns with the baseline in a clean process."""
        self.timing = settled(
            speed,
            lambda: self._race(speed, args),
            lasts=lambda: self._deadline - time.perf_counter() > RETAKE_S,
        )
        return self.timing

    def _race(self, speed: SpeedRule, args: tuple) -> Timing:
        """Time once, the next time in another process.

        The baseline is our code: what goes wrong in its process is no fault of the answer.
        """
        with start(self._sandbox) as baseline:
            try:
                self._load(baseline, speed.baseline)
            except Stopped as problem:
                raise GraderFault(f"the baseline does not run: {problem}") from None
            try:
                self._started()
                timing = race(self._process, baseline, args, speed, self._random, self._limit_s)
                self.close()
                self._starts -= 1
                return timing
            except Stopped as problem:
                if baseline.ended:
                    raise GraderFault(f"the baseline stopped: {problem}") from None
                return Timing(fault=self._stopped(problem))

    def begin_anew(self) -> None:
        """Give the answer all its time and starts again, for other inputs; its process may live on."""
        self._starts, self._deadline = 0, time.perf_counter() + self._limits.task_s
        for other in self._others.values():
            other.begin_anew()

    def close(self) -> None:
        """End the processes."""
        for other in self._others.values():
            other.close()
            self.process_seconds += other.process_seconds
            self.incidents += other.incidents
        self._others.clear()
        if self._process is not None:
            self._process.kill()
            self.process_seconds += self._process.seconds
            self._process = None

    def __enter__(self) -> SandboxedRunner:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    # --- talking to the process ---

    def _call(self, which: int, args: tuple) -> Outcome:
        questions = Questions(self._oracle, args[0]) if self._oracle else None
        shown = (questions.key, *args[1:]) if questions else args
        request = {"do": "call", "which": which, "args": shown}
        reply, fault = self._ask(request, questions and questions.answer, plain=which == 0)
        fault, after = self._after(reply, shown, fault)
        if questions and type(after[0]) is int and after[0] == questions.key:
            after = (args[0], *after[1:])
        owner, printed = reply.get("owner"), reply.get("printed")
        return Outcome(
            reply.get("value"),
            fault,
            after,
            owner if isinstance(owner, int) and 0 <= owner < len(args) else None,
            min(printed, 10**6) if isinstance(printed, int) and printed > 0 else 0,
        )

    def _ask(
        self, request: dict[str, Any], answer: Callable | None = None, plain: bool = True
    ) -> tuple[dict[str, Any], Fault | None]:
        """Return the reply, an empty one if there is none, and the fault in it or instead of it."""
        try:
            self._started()
            reply = self._process.ask(request, self._limits.call_s, self._limit_s(), answer)
        except Stopped as problem:
            return {}, self._stopped(problem)
        return reply, self._fault(reply.get("fault"), plain)

    @property
    def _limits(self):
        return self._sandbox.limits

    def _limit_s(self) -> float:
        return max(0.1, min(3 * self._limits.call_s, self._deadline - time.perf_counter()))

    def _started(self) -> None:
        """See to it that a process runs and has loaded the answer; Stopped if its code does not load."""
        if self._process is None:
            if self._starts > RESTARTS:
                raise Stopped("Stopped", "the process that ran it has ended")
            self._starts += 1
            self._process, self._loaded = start(self._sandbox), 0
            if self._traces:
                self._make_ready(self._process)
        while self._loaded < len(self._codes):
            self._load(self._process, self._codes[self._loaded])
            self._loaded += 1

    def _make_ready(self, process: AnswerProcess) -> None:
        """Have the tracer made ready; the time for it is not the answer's."""
        began = time.perf_counter()
        make_ready(process, apart=not self._sandbox.unsafe)
        self._deadline += time.perf_counter() - began

    def _load(self, process: AnswerProcess, code: Code) -> None:
        oracle = self._oracle.helper if self._oracle else ""
        request = {"do": "load", "text": code.text, "entry": code.entry, "oracle": oracle}
        reply = process.ask(request, self._limits.call_s, self._limit_s())
        fault = self._fault(reply.get("fault"), plain=code is self._codes[0])
        if fault is not None:
            raise _NotLoaded(fault)

    # --- what replies say ---

    def _stopped(self, problem: Stopped) -> Fault:
        """Return the fault for an answer that was stopped; the next call starts a new process."""
        if isinstance(problem, _NotLoaded):
            return problem.fault
        self.close()
        if problem.kind not in ("TimeLimit", "MemoryLimit", "QuestionLimit"):
            self.incidents.append(f"{problem.kind}: {problem}.")
        return Fault((problem.kind,), str(problem))

    def _after(self, reply: dict, args: tuple, fault: Fault | None) -> tuple[Fault | None, tuple]:
        """Return the fault, if only one of form, and the arguments afterwards, which belong to no fault."""
        after = reply.get("args_after")
        if fault is None and (not isinstance(after, tuple) or len(after) != len(args)):
            fault = self._garbled()
        return fault, args if fault else tuple(map(_laid_out, after, args))

    def _garbled(self) -> Fault:
        self.incidents.append("Garbled: its process sent something that is no reply.")
        return Fault(("Garbled",), "what came back from it is no reply")

    def _fault(self, plain_fault: Any, plain: bool = True) -> Fault | None:
        if plain_fault is None:
            return None
        try:
            kinds = tuple(_text(kind)[:60] for kind in plain_fault["kinds"][:20]) or ("Exception",)
            line = plain_fault["line"] if isinstance(plain_fault["line"], int) else None
            built = [(_text(name)[:60], _shape(shape)) for name, shape in plain_fault["built"][:10]]
            fault = Fault(kinds, _text(plain_fault["message"])[:LONGEST_TEXT], line, "", tuple(built))
        except (KeyError, TypeError, ValueError):
            return self._garbled()
        return self._places.fault(fault) if plain else fault


class _NotLoaded(Stopped):
    """The answer's own code failed before its function was there."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.kind, fault.message)
        self.fault = fault


def _laid_out(after: Any, before: Any) -> Any:
    """Return an array with the strides it was shipped with; over the wire come its values alone."""
    plain = isinstance(after, np.ndarray) and isinstance(before, np.ndarray)
    if not plain or (after.shape, after.dtype) != (before.shape, before.dtype):
        return after
    same = clone(before)
    same[...] = after
    return same


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a text was wanted, not {type(value).__name__}")
    return value


def _shape(shape: Any) -> tuple[int, int]:
    rows, columns = (int(n) for n in shape)
    return rows, columns


def _tape(plain: Any) -> Tape:
    """Return the tape in a reply; an empty one if there is none. `replay` checks what is on it."""
    try:
        columns = [_numbers(plain[name], np.int64) for name in ("codes", "left", "right")]
        return Tape(*columns, _numbers(plain["constants"], np.float64))
    except (KeyError, TypeError, ValueError):
        return Tape()


def _numbers(column: Any, dtype: type) -> list:
    if not isinstance(column, np.ndarray) or column.dtype != dtype or column.ndim != 1:
        raise TypeError("a column of numbers was wanted")
    return column.tolist()
