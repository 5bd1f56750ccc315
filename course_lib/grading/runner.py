"""Running an answer. The judge knows only the `Runner` protocol; `InProcess` is the one for self-study."""

from __future__ import annotations

import copy
import dis
import functools
import io
import itertools
import linecache
import math
import random
import re
import signal
import statistics
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from types import FrameType, FunctionType, SimpleNamespace
from typing import Any, Protocol

import numpy as np

from course_lib.grading import sources
from course_lib.grading.launch import MOST_ROWS, Places, Shape, counts_of, plain_counts
from course_lib.grading.steps import StepCounter
from course_lib.grading.tape import Tape, lines_of, taped
from course_lib.grading.task import Code, SpeedRule
from course_lib.measure.inputs import changed

LONGEST_CALL_S = 10.0
#: Of the steps with numbers that count, so many may be others with floats: a view is copied, float32 widened.
MOST_LEFT_OUT = 0.25
ANSI = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Fault:
    """An exception in the answer: its type and the types above it, its message, the learner's line.

    `built` are the matrices that the answer had made when an index was out of range: (name, shape) of each.
    """

    kinds: tuple[str, ...]
    message: str
    line: int | None = None
    code: str = ""
    built: tuple[tuple[str, tuple[int, int]], ...] = ()

    @property
    def kind(self) -> str:
        return self.kinds[0]

    def sentence(self) -> str:
        """Return one sentence: what was raised, where, and what it says."""
        place = f" in line {self.line}" if self.line else ""
        code = f", `{self.code}`" if self.code else ""
        said = f": {self.message}" if self.message else ""
        return f"{self.kind}{place}{code}{said}{'' if said.endswith(('.', '?')) else '.'}"


@dataclass(frozen=True)
class Outcome:
    """What one call gave: the value or the fault, the arguments afterwards, whose memory the value is.

    Of a launch in the tracer the value is its LaunchCounts; of a call on operands it is what the result says,
    `tape` what they wrote down, and `alike` whether it did as much with floats.
    """

    value: Any = None
    fault: Fault | None = None
    args_after: tuple = ()
    owner: int | None = None  # place of the argument whose own memory was returned
    printed: int = 0  # lines
    tape: Tape = field(default_factory=Tape)
    alike: bool = False


@dataclass(frozen=True)
class Timing:
    """Times as fast as the baseline: the measured value and the ends of its 95 % interval.

    `checked` are some of the timed calls, each with its arguments and its value, for the judge to compare;
    `samples` the seconds of a call, exchange by exchange: the answer's, the baseline's.
    """

    speedup: float = 0.0
    low: float = 0.0
    high: float = 0.0
    seconds: float = 0.0
    baseline_seconds: float = 0.0
    fault: Fault | None = None
    checked: tuple[tuple[tuple, Any], ...] = ()
    samples: tuple[tuple[float, float], ...] = ()


class Runner(Protocol):
    """Runs one answer, wherever it lives. Arguments and values are numbers, lists, tuples and arrays."""

    def call(self, args: tuple) -> Outcome:
        """Call the answer with these arguments (the runner may use them up)."""

    def guarded(self, code: Code) -> Callable[[tuple], Outcome]:
        """Return what `call` is for other source text: the guarded variant of this answer."""

    def elsewhere(self, code: Code, place: int) -> Callable[[tuple], Outcome]:
        """Return `call` for other source text of this answer, with a process of its own for each place."""

    def count(self, args: tuple, beside_floats: bool) -> Outcome:
        """Call the answer on operands that write down what is done with them; compare its steps if asked."""

    def time(self, speed: SpeedRule, args: tuple) -> Timing:
        """Time the answer side by side with the rule's baseline, on other numbers in every call."""

    def trace(self, shape: Shape, args: tuple) -> Outcome:
        """Launch the answer, a kernel, in the tracer with these arguments (the runner may use them up)."""


class InProcess:
    """Calls the answer, a function or the text of one, in this process: for the learner's own check.

    A call of Python code that takes longer than `longest_s` is stopped (see `time_limit`); None: never.
    `lines` gives for each line of the text its line in the learner's cell.
    """

    def __init__(
        self, answer: Callable | Code, longest_s: float | None = LONGEST_CALL_S, lines: Sequence[int] = ()
    ) -> None:
        self._answer = answer
        self._longest_s = longest_s
        self._lines = lines
        self._steps: StepCounter | None = None
        if isinstance(answer, Code):
            self._file = sources.filed(answer.text, answer.entry)
        else:
            code = getattr(getattr(answer, "py_func", answer), "__code__", None)
            self._file = getattr(code, "co_filename", "")

    @functools.cached_property
    def _places(self) -> Places:
        return Places("".join(linecache.getlines(self._file)), self._lines)

    @functools.cached_property
    def function(self) -> Callable:
        """The answer itself; its text is run when it is called for the first time."""
        if isinstance(self._answer, Code):
            return sources.load(self._answer.text, self._answer.entry, self._file)
        return self._answer

    def call(self, args: tuple) -> Outcome:
        """Call the answer; its output is counted, its warnings are kept off the page, its time is limited."""
        with quiet() as printed:
            try:
                with time_limit(self._longest_s):
                    value = self._value(args)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                return Outcome(fault=self._fault(error, args), args_after=args, printed=printed.lines)
        owner = next((place for place, argument in enumerate(args) if _shares(value, argument)), None)
        return Outcome(value, None, args, owner, printed.lines)

    def _value(self, args: tuple) -> Any:
        before = sys.gettrace()
        sys.settrace(self._steps or before)
        try:
            return self.function(*args)
        finally:
            sys.settrace(before)

    def guarded(self, code: Code) -> Callable[[tuple], Outcome]:
        """Return `call` for the text."""
        return InProcess(code).call

    def elsewhere(self, code: Code, place: int) -> Callable[[tuple], Outcome]:
        """Return `call` for the text: a notebook has no other place."""
        return self.guarded(code)

    def count(self, args: tuple, beside_floats: bool) -> Outcome:
        """Call the answer on operands that write down what is done with them, uncompiled."""
        tape, plain = Tape(), copy.copy(self)
        plain.function = uncompiled(self.function)
        file = plain.function.__code__.co_filename
        plain._steps = counting = StepCounter(file) if beside_floats else None
        outcome = plain.call(taped(args, tape))
        left_out = []
        for floats in _of_each_size(args) if beside_floats else ():
            plain._steps = StepCounter(file)
            plain.call(floats)
            left_out.append(counting.left_out_by(plain._steps))
        alike = max(left_out, default=0) <= MOST_LEFT_OUT
        return Outcome(lines_of(outcome.value), outcome.fault, tape=tape, alike=alike)

    def time(self, speed: SpeedRule, args: tuple) -> Timing:
        """Time the answer through `measure.timing.compare`: one thread, interleaved, equal inputs."""
        return settled(speed, lambda: self._compared(speed, args), MOST_IN_A_NOTEBOOK)

    def _compared(self, speed: SpeedRule, args: tuple) -> Timing:
        from course_lib.measure.timing import compare

        functions = {
            "the baseline": _OtherNumbers(speed.baseline.load(), args),
            "yours": _OtherNumbers(self.function, args),
        }
        with quiet():
            try:
                result = compare(
                    functions,
                    baseline="the baseline",
                    threads=1,
                    budget_s=speed.budget_s,
                    max_error=False,
                    progress=False,
                    haste=False,  # a grade is no quick look
                )
            except KeyboardInterrupt:
                raise
            except Exception as error:
                return Timing(fault=self._fault(error))
        mine, base = result.row("yours"), result.row("the baseline")
        ends = 1 / mine.ratio_high, 1 / mine.ratio_low
        return Timing(1 / mine.ratio, *ends, mine.seconds, base.seconds, checked=(functions["yours"].last(),))

    def trace(self, shape: Shape, args: tuple) -> Outcome:
        """Launch the answer in the tracer; lines are those of the learner's cells."""
        try:
            with quiet():
                kernel = self.function
        except Exception as error:
            return Outcome(None, self._fault(error), args)
        plain, fault = launch_in_tracer(kernel, shape, args, self._longest_s)
        if fault is None:
            return Outcome(counts_of(plain).placed(self._places), None, args)
        return Outcome(None, self._places.fault(fault), args)

    def _fault(self, error: BaseException, args: tuple = ()) -> Fault:
        built = self._built(error, args) if isinstance(error, IndexError) else ()
        fault = replace(fault_of(error), line=self._line(error), built=built)
        return self._places.fault(fault)

    def _line(self, error: BaseException) -> int | None:
        """Return the number of the last line of the learner's own code in the traceback."""
        own = frames_in(error, self._file)
        return own[-1][1] if own else self._line_of_name(error)

    def _line_of_name(self, error: BaseException) -> int | None:
        """Return where compiled code uses the name that Numba does not know; it gives no line itself."""
        unknown = re.search(r"NameError: name '(\w+)' is not defined", str(error))
        code = getattr(getattr(self.__dict__.get("function"), "py_func", None), "__code__", None)
        for step in dis.get_instructions(code) if unknown and code else ():
            if step.argval == unknown[1] and step.positions and step.positions.lineno:
                return step.positions.lineno
        return None

    def _built(self, error: BaseException, args: tuple) -> tuple[tuple[str, tuple[int, int]], ...]:
        """Return name and shape of the matrices in the learner's frames that are not arguments.

        Compiled code keeps no variables, so it is run once more uncompiled, until it fails again.
        """
        inputs = [*args]
        plain = getattr(self.__dict__.get("function"), "py_func", None)
        if not frames_in(error, self._file) and plain is not None:
            try:
                inputs = [*clone(args)]
                plain(*inputs)
            except Exception as again:
                error = again
        found = {}
        for frame, _ in frames_in(error, self._file):
            for name, value in frame.f_locals.items():
                shape = None if any(value is one for one in inputs) else _matrix_shape(value)
                if shape:
                    found[name] = shape
        return tuple(found.items())


def _of_each_size(args: tuple) -> list[tuple]:
    """Return the arguments with arrays of float64, and of float32 if there are any."""
    sizes = (np.float64, np.float32) if any(isinstance(one, np.ndarray) for one in args) else (float,)
    return [tuple(one.astype(size) if isinstance(one, np.ndarray) else one for one in args) for size in sizes]


def uncompiled(function: Callable) -> Callable:
    """Return a function of which neither itself nor what it calls is compiled, with room for operands."""
    names: dict[str, Any] = {}
    for name, one in getattr(function, "py_func", function).__globals__.items():
        plain = getattr(one, "py_func", one)
        own = isinstance(plain, FunctionType) and plain is not one
        names[name] = FunctionType(plain.__code__, names, name, plain.__defaults__) if own else one
        names[name] = roomy() if one is np else names[name]
    return names[function.__name__] if hasattr(function, "py_func") else function


@functools.cache
def roomy() -> SimpleNamespace:
    """Return what NumPy has, but new arrays of floats have room for any number."""

    def with_room(make: Callable) -> Callable:
        def made(*args: Any, **words: Any) -> Any:
            array = make(*args, **words)
            return array.astype(object) if array.dtype.kind == "f" else array

        return made

    makers = (np.zeros, np.empty, np.ones, np.full)
    return SimpleNamespace(**{**vars(np), **{one.__name__: with_room(one) for one in makers}})


def frames_in(error: BaseException, file: str) -> list[tuple[FrameType, int]]:
    """Return the frames of a traceback, each with its line, that belong to a file."""
    frames = traceback.walk_tb(error.__traceback__)
    return [(frame, line) for frame, line in frames if frame.f_code.co_filename == file]


def _matrix_shape(value: Any) -> tuple[int, int] | None:
    """Return the rows and columns of a 2-D array or a list of equally long lists, None for all else."""
    if isinstance(value, np.ndarray) and value.ndim == 2:
        return value.shape
    if isinstance(value, list) and value and all(isinstance(row, list) for row in value):
        lengths = {len(row) for row in value}
        return (len(value), lengths.pop()) if len(lengths) == 1 else None
    return None


#: For each argument the row and the column of one number.
Change = Sequence[tuple[int, int]]


def other_places(args: tuple, rng: random.Random) -> Change:
    """Choose one number of each matrix."""
    rows = [rng.randrange(len(matrix)) for matrix in args]
    return [(row, rng.randrange(len(matrix[row]))) for row, matrix in zip(rows, args, strict=True)]


def change(args: tuple, places: Change) -> None:
    """Change the sign of one number of each matrix, and the order of the rows of all but the first.

    Every row of A then meets other rows of B: no result of an earlier call helps, and the work is too little
    to be seen in the time of a product.
    """
    for number, (matrix, (row, column)) in enumerate(zip(args, places, strict=True)):
        matrix[row][column] = -matrix[row][column]
        if number:
            _reorder(matrix, row, column)


def _reorder(matrix: Any, start: int, step: int) -> None:
    """Put the rows into the order start, start + step, start + 2 * step …; the step meets all of them."""
    rows = len(matrix)
    step = next(n for n in itertools.count(step + 2) if math.gcd(n, rows) == 1)
    if isinstance(matrix, np.ndarray):
        matrix[:] = matrix[(start + step * np.arange(rows)) % rows]
    else:
        matrix[:] = [matrix[(start + step * n) % rows] for n in range(rows)]


class _OtherNumbers:
    """Calls a function on its own copy of the inputs, with other numbers in it every time.

    Baseline and answer get the same ones.
    """

    def __init__(self, function: Callable, args: tuple) -> None:
        self._function = function
        self._args = clone(args)
        self._random = random.Random(len(args))
        self._value: Any = None

    def __call__(self) -> None:
        change(self._args, other_places(self._args, self._random))
        self._value = self._function(*self._args)

    def last(self) -> tuple[tuple, Any]:
        """Return the arguments and the value of the last call."""
        return self._args, self._value


# --- points for speed ---------------------------------------------------------------------------------------

#: Takes of one answer. The same code differs by some per cent between processes, so one take that comes as
#: close as that to a threshold does not decide.
MOST_TAKES, MOST_IN_A_NOTEBOOK, NEARLY = 5, 3, 0.03


def settled(
    speed: SpeedRule,
    take: Callable[[], Timing],
    most: int = MOST_TAKES,
    lasts: Callable[[], bool] = lambda: True,
) -> Timing:
    """Time an answer again until it is clear which thresholds it reaches; the median of all takes counts.

    `lasts` says whether there is time for one more.
    """
    taken = [take()]
    while not taken[-1].fault and len(taken) < most and _is_unclear(speed, taken) and lasts():
        taken.append(take())
    *fine, last = taken
    if last.fault and not (fine and last.fault.kind == "TimeLimit"):  # which may be a busy machine's
        return last
    fine += [] if last.fault else [last]
    numbers = ("speedup", "low", "high", "seconds", "baseline_seconds")
    medians = {name: statistics.median(getattr(one, name) for one in fine) for name in numbers}
    kept = {
        name: tuple(each for one in fine for each in getattr(one, name)) for name in ("checked", "samples")
    }
    return Timing(**medians, **kept)


def _is_unclear(speed: SpeedRule, taken: list[Timing]) -> bool:
    """Whether a threshold lies between the ends of what was measured; a single take tells them roughly."""
    apart = NEARLY if len(taken) == 1 else 0.0
    low, high = min(one.low for one in taken), max(one.high for one in taken)
    return speed.is_between(low * (1 - apart), high * (1 + apart))


class TimeLimit(BaseException):
    """The answer runs too long. Not an Exception, so that the answer's own `except` does not stop it."""


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Stop Python code after `seconds`: on POSIX in the main thread; elsewhere, and in compiled code, not.

    They are seconds of the CPU's time, so that a busy machine is not taken for an endless loop; who waits for
    something has five times as many by the wall's clock.
    """
    if (
        seconds is None
        or not hasattr(signal, "setitimer")
        or threading.current_thread() is not threading.main_thread()
    ):
        yield
        return

    def stop(number: int, frame: Any) -> None:
        waits = number == signal.SIGALRM
        asks = "does it wait for something?" if waits else "does a loop end?"
        raise TimeLimit(f"it did not finish in {5 * seconds if waits else seconds:g} s: {asks}")

    limits = (signal.ITIMER_PROF, signal.SIGPROF, seconds), (signal.ITIMER_REAL, signal.SIGALRM, 5 * seconds)
    before = [(timer, alarm, signal.signal(alarm, stop)) for timer, alarm, _ in limits]
    left = [signal.setitimer(timer, limit) for timer, _, limit in limits]
    try:
        yield
    finally:
        for (timer, alarm, handler), (rest, interval) in zip(before, left, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(alarm, handler if handler is not None else signal.SIG_DFL)
            if rest:
                signal.setitimer(timer, rest, interval)


def clone(value: Any) -> Any:
    """Return a deep copy; an array keeps its strides, and the memory between its elements is NaN.

    `measure.inputs.clone` keeps the place within a page instead, for the speed; here NaN shows a stray read.
    """
    if isinstance(value, np.ndarray) and value.dtype != object:
        return _clone_array(value)
    if isinstance(value, list | tuple):
        return type(value)(clone(item) for item in value)
    return copy.deepcopy(value)


def _clone_array(array: np.ndarray) -> np.ndarray:
    if array.size == 0:
        return np.lib.stride_tricks.as_strided(array.copy(), array.shape, array.strides)
    if array.flags.c_contiguous or array.flags.f_contiguous:
        return array.copy(order="K")
    low, high = np.lib.array_utils.byte_bounds(array)
    memory = np.full(high - low, 0xFF, np.uint8)  # all bits set is a NaN in every float format
    offset = array.__array_interface__["data"][0] - low
    copied = np.ndarray(array.shape, array.dtype, memory, offset, array.strides)
    copied[...] = array
    return copied


def unchanged(before: Any, after: Any) -> bool:
    """Whether two values are the same in type, shape and every entry (NaN equals NaN)."""
    return type(before) is type(after) and not changed(([after],), ([before],))


def _shares(value: Any, argument: Any) -> bool:
    if isinstance(value, np.ndarray) and isinstance(argument, np.ndarray):
        return value.size > 0 and np.shares_memory(value, argument)
    if isinstance(value, list) and isinstance(argument, list):
        mine = [value, *(row for row in value if isinstance(row, list))]
        theirs = {id(argument), *(id(row) for row in argument if isinstance(row, list))}
        return any(id(one) in theirs for one in mine)
    return False


class _LineCounter(io.TextIOBase):
    """Takes everything that is printed and remembers only how many lines it was."""

    def __init__(self) -> None:
        self.lines = 0

    def write(self, text: str) -> int:
        self.lines += text.count("\n")
        return len(text)

    def writable(self) -> bool:
        return True


@contextmanager
def quiet() -> Iterator[_LineCounter]:
    """Keep everything that is printed off the page; only the number of its lines is kept."""
    counter = _LineCounter()
    with (
        redirect_stdout(counter),
        redirect_stderr(_LineCounter()),
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
    ):
        warnings.simplefilter("ignore")
        yield counter


# --- faults in words --------------------------------------------------------------------------------------


def fault_of(error: BaseException) -> Fault:
    """Return an exception as a fault without a place."""
    return Fault(tuple(kind.__name__ for kind in type(error).__mro__[:-1]), _message(error))


def _message(error: BaseException) -> str:
    lines = [ANSI.sub("", line).strip() for line in str(error).splitlines()]
    lines = [line for line in lines if line]
    if type(error).__module__.startswith("numba"):
        return _numba_message(lines)
    said = " ".join(itertools.islice(lines, 1))[:300]
    if said.startswith("No matching definition"):  # compiled for fixed types
        return f"{said}. Remove the types from @njit(...): it then compiles for each input."
    return said


#: What usually is behind a message of Numba's.
NUMBA_ADVICE = {
    r"(zeros|empty|ones)\(u?int\d+, u?int": ". A shape is one tuple: np.zeros((M, N))",
    r"getiter with parameters \(u?int": ". A number cannot be gone through: for i in range(M)",
}


def _numba_message(lines: list[str]) -> str:
    """Pick the cause, the types and the line of code out of Numba's long report."""
    noise = ("Failed in nopython", "During:", "File ", "<source", "This error", "- Resolution", "There are")
    cause = next((line for line in lines if not line.startswith(noise)), "it gives no reason").rstrip(":")
    types = next((" " + line.removeprefix(">>>").strip() for line in lines if line.startswith(">>>")), "")
    own = (n for n, line in enumerate(lines) if line.startswith("File ") and "site-packages" not in line)
    report = lines[next(own, 0) :]  # what Numba's own functions call comes first
    code = report[report.index("^") - 1] if "^" in report else ""  # Numba marks the line below it
    number = re.search(r"line (\d+)", report[0]) if report and report[0].startswith("File ") else None
    at = f" in line {number[1]}" if number else ""
    said = f"{cause}{types}"
    advice = next((words for pattern, words in NUMBA_ADVICE.items() if re.search(pattern, said)), "")
    return f"Numba cannot compile it{at}{f', `{code}`' if code else ''}: {said}"[:400] + advice


# --- launching GPU kernels ----------------------------------------------------------------------------------


def launch_in_tracer(
    kernel: Callable, shape: Shape, args: tuple, longest_s: float | None
) -> tuple[dict[str, Any] | None, Fault | None]:
    """Launch a kernel in the tracer; return what was counted as plain values, or the fault.

    The tracer rewrites the kernel's text; nothing of the answer runs but its imports, its numbers and Numba's
    decorators. The arrays in `args` are changed in place. Lines are those of the kernel's own file.
    """
    from course_lib.simulators.gpu import NotTraceable, trace

    warm_up_tracer()
    with quiet():
        try:
            with time_limit(longest_s):
                traced = trace(kernel, shape.grid, shape.block, *args, progress=False)
        except KeyboardInterrupt:
            raise
        except NotTraceable as error:
            own = not hasattr(kernel, "py_func") or error.file == kernel.py_func.__code__.co_filename
            return None, Fault(
                ("NotTraceable", "Exception"), error.sentence, error.line or None if own else None
            )
        except BaseException as error:
            return None, replace(fault_of(error), line=_line_in_tracer(error))
    if len(traced.source) > MOST_ROWS or len(traced.global_accesses) > MOST_ROWS:
        return None, Fault(("NotTraceable", "Exception"), "the kernel is too long to be judged")
    return plain_counts(traced), None


def _line_in_tracer(error: BaseException) -> int | None:
    """Return the line of the kernel that the tracer was in: its machine is `L` in the rewritten text."""
    for frame, _ in reversed(list(traceback.walk_tb(error.__traceback__))):
        line = getattr(frame.f_globals.get("L"), "line", None)
        if isinstance(line, int):
            return line or None
    return None


@functools.cache
def warm_up_tracer() -> None:
    """Have the tracer compile its own parts, or take them from the disk, so that no answer waits for them.

    It takes some seconds the first time.
    """
    from numba import cuda, float32

    from course_lib.simulators.gpu import trace

    @cuda.jit
    def every_kind_of_access(A, B, H):
        i = cuda.grid(1)
        tile = cuda.shared.array(64, float32)
        tile[cuda.threadIdx.x] = A[i]
        cuda.syncthreads()
        if i % 2 == 0:
            B[i] = tile[31 - cuda.threadIdx.x] + A[0]
        cuda.syncwarp()
        cuda.atomic.add(H, i % 4, 1)
        cuda.atomic.add(A, 0, 1.0)

    values = np.zeros(64, np.float32)
    trace(every_kind_of_access, 2, 32, values, values.copy(), np.zeros(4, np.int32), progress=False)
