"""Inside the sandbox: one process that runs one answer and ships what comes out.

It is told to load source text, to call it, to call it on operands, to time it, to launch it in the tracer. It
knows no seed, no expected value and no points, and asks the judge what an oracle says. Everything it says may
be a lie of the answer that runs in it; the judge on the other side believes values only after comparing them,
and counts of a launch only because the language KERNEL lets nothing of the answer run.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import os
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from course_lib.grading import sources
from course_lib.grading.launch import Shape
from course_lib.grading.runner import (
    Change,
    Fault,
    InProcess,
    change,
    fault_of,
    frames_in,
    launch_in_tracer,
    quiet,
    warm_up_tracer,
)
from course_lib.grading.sandbox import wire
from course_lib.grading.sandbox.alone import alone

#: What a timed call may return, or lists of: nothing that could put off its work.
NUMBERS = {int, float, complex, bool, *np.sctypeDict.values()} - {np.object_, np.void}


@dataclass
class _Line:
    """The line to the judge: requests come in, replies and questions go out."""

    requests: BinaryIO
    replies: BinaryIO
    token: str | None = None  # the word of the request that is served

    def next(self) -> dict[str, Any]:
        """Return the next request; EOFError if there is none."""
        request = wire.read_frame(self.requests.read, trusted=True)
        self.token = request.pop("token", None)
        return request

    def change(self, matrices: int) -> Change | None:
        """Return the next change of the arguments of a timed call, None behind the last one.

        One by one they wait on the wire: how many follow stands nowhere in this process.
        """
        part = wire.exactly(self.requests.read, wire.PLACE.size * matrices)
        return None if part == wire.END * matrices else [*wire.PLACE.iter_unpack(part)]

    def send(self, reply: dict[str, Any]) -> None:
        """Ship a reply; a value that cannot be shipped is a fault."""
        try:
            self._write(reply)
        except Exception as error:
            self._write({"fault": plain_fault(fault_of(error)), "value": None, "args_after": ()})

    def oracle(self, name: str) -> Callable:
        """Return the function of this name for an answer: each call of it is a question to the judge."""

        def asked(*args: Any, **words: Any) -> Any:
            self._write({"asks": {"args": args, "words": words}})
            said = wire.read_frame(self.requests.read, trusted=True)
            if "value" in said:
                return said["value"]
            kind = getattr(builtins, said["kind"], None)
            raised = isinstance(kind, type) and issubclass(kind, Exception)
            raise (kind if raised else RuntimeError)(said["message"])

        asked.__name__ = asked.__qualname__ = name
        return asked

    def _write(self, reply: dict[str, Any]) -> None:
        view = memoryview(wire.frame({**reply, "token": self.token}))
        while view:
            view = view[self.replies.write(view) :]


@dataclass
class _Answers:
    """The functions that were loaded, and the arguments and results of the timed calls."""

    line: _Line
    functions: list[Callable] = field(default_factory=list)
    args: tuple = ()
    results: list = field(default_factory=list)

    def load(self, text: str, entry: str, oracle: str = "") -> dict[str, Any]:
        """Run the text; its entry is the next function. The helper of the name `oracle` asks the judge."""
        function, fault, file = None, None, sources.filed(text, entry)
        with quiet():
            try:
                (function,) = alone(sources.load, iter([(text, entry, file)]))
                if oracle:
                    function.__globals__[oracle] = self.line.oracle(oracle)
            except BaseException as error:
                *_, line = [None, *(line for _, line in frames_in(error, file))]
                fault = replace(fault_of(error), line=line)
        self.functions.append(function)
        return {"fault": plain_fault(fault)}

    def call(self, which: int, args: tuple) -> dict[str, Any]:
        """Call a function once."""
        outcome = self._run(which).call(args)
        return {
            "value": outcome.value,
            "fault": plain_fault(outcome.fault),
            "args_after": outcome.args_after,
            "owner": outcome.owner,
            "printed": outcome.printed,
        }

    def count(self, which: int, args: tuple, beside_floats: bool) -> dict[str, Any]:
        """Call a function on operands and ship the tape."""
        counted = self._run(which).count(args, beside_floats)
        tape = counted.tape
        columns = {name: np.array(getattr(tape, name), np.int64) for name in ("codes", "left", "right")}
        tape_plain = {**columns, "constants": np.array(tape.constants)}
        fault = plain_fault(counted.fault)
        return {"tape": tape_plain, "result": counted.value, "fault": fault, "alike": counted.alike}

    def warm_up(self, files: dict) -> dict[str, Any]:
        """Make the tracer ready with these files of machine code, or ship those that it makes itself."""
        folder = Path(os.environ["NUMBA_CACHE_DIR"])
        unpack(files, folder)
        warm_up_tracer()
        return {"files": {} if files else packed(folder)}

    def trace(self, which: int, shape: dict, args: tuple, seconds: float) -> dict[str, Any]:
        """Launch a kernel in the tracer; it has so many seconds of the CPU's time."""
        counts, fault = launch_in_tracer(self.functions[which], Shape(**shape), args, seconds)
        return {"counts": counts, "fault": plain_fault(fault), "args_after": args}

    def _run(self, which: int) -> InProcess:
        return _Alone(self.functions[which], longest_s=None)  # the judge outside looks at the CPU's time

    def prepare(self, args: tuple) -> dict[str, Any]:
        """Take the arguments of the timed calls."""
        self.args = args
        return {}

    def held(self) -> dict[str, Any]:
        """Ship the arguments of the timed calls as they are now."""
        return {"args": self.args}

    def time(self, which: int) -> dict[str, Any]:
        """Change the arguments and call, for each change on the wire; keep the results."""
        self.results, fault = [], None  # the memory of earlier ones can be used again
        changes = iter(functools.partial(self.line.change, len(self.args)), None)
        with quiet():
            try:
                self.results = alone(self.functions[which], map(self._changed, changes))
            except BaseException as error:
                fault = fault_of(error)
                for _ in changes:  # the next request stands behind them
                    pass
        is_plain = all(map(plain, self.results))
        return {"calls": len(self.results), "plain": is_plain, "fault": plain_fault(fault)}

    def _changed(self, places: Change) -> tuple:
        change(self.args, places)
        return self.args

    def result(self, number: int) -> dict[str, Any]:
        """Ship a result of the timed calls."""
        return {"value": self.results[number]}


class _Alone(InProcess):
    """Calls the answer with nothing of ours below it on the stack."""

    def _value(self, args: tuple) -> Any:
        return alone(self.function, iter([args]), self._steps)[0]


def plain(value: Any) -> bool:
    """Whether a result is an array of NumPy's own type, a number, or a list of such: it is all there."""
    kind = type(value)
    if kind is np.ndarray:
        return value.dtype.kind in wire.KINDS
    if kind in (list, tuple):
        return NUMBERS.issuperset(map(type, value)) or all(map(plain, value))
    return kind in NUMBERS


def unpack(files: dict[str, np.ndarray], folder: Path) -> None:
    """Write the files into a folder; what is there already stays."""
    for name, content in files.items():
        path = folder / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.tobytes())


def packed(folder: Path) -> dict[str, np.ndarray]:
    """Return the files in a folder."""
    paths = sorted(path for path in folder.rglob("*") if path.suffix in wire.MACHINE_CODE)
    return {path.relative_to(folder).as_posix(): np.frombuffer(path.read_bytes(), np.uint8) for path in paths}


def plain_fault(fault: Fault | None) -> dict[str, Any] | None:
    """Return a fault as plain values."""
    return asdict(fault) if fault else None


def main(limits: dict[str, int]) -> None:
    """Serve requests from standard input until it is closed."""
    set_limits(limits)
    line = _Line(*private_streams())
    answers = _Answers(line)
    while True:
        try:
            request = line.next()
        except EOFError:
            return
        line.send(getattr(answers, request.pop("do"))(**request))


def private_streams() -> tuple[BinaryIO, BinaryIO]:
    """Take standard input and output for the wire, and leave an empty pair in their places."""
    requests, replies = os.fdopen(os.dup(0), "rb", buffering=0), os.fdopen(os.dup(1), "wb", buffering=0)
    nothing = os.open(os.devnull, os.O_RDWR)
    for place in (0, 1, 2):
        os.dup2(nothing, place)
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
    return requests, replies


def set_limits(limits: dict[str, int]) -> None:
    """Limit this process and all it starts; the names are those of the module `resource`."""
    try:
        import resource
    except ImportError:  # Windows has no such limits; there is no sandbox either
        return
    # macOS refuses some; on Linux, where there is a sandbox, every limit must hold
    refusal = (
        contextlib.nullcontext() if sys.platform == "linux" else contextlib.suppress(ValueError, OSError)
    )
    for name, most in limits.items():
        number = getattr(resource, name)
        present = resource.getrlimit(number)[1]
        limit = most if present == resource.RLIM_INFINITY else min(most, present)
        with refusal:
            resource.setrlimit(number, (limit, limit))
