"""The ladder: every way to multiply that the course has, by name, and the learner's own results on it.

    ladder.rung("compiled-ikj").matmul(A, B)        one rung
    ladder.climb(["python-lists", "numpy"], 128)    measure some, fairly, and remember the result
    ladder.results()                                what was measured so far

A rung's code is imported when it is first called. Adding a rung is one file in `circles/` and one entry here.
"""

from __future__ import annotations

import datetime
import difflib
import functools
import importlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

from course_lib.arguments import is_whole
from course_lib.measure.recording_files import Count, NotNegative, Positive, validated
from course_lib.measure.store import opened

if TYPE_CHECKING:
    from course_lib.circles.front_door import Matmul
    from course_lib.measure.recordings import Recording
    from course_lib.measure.speeds import Speeds
    from course_lib.measure.timing import Comparison

FLOATS = ("float32", "float64")
Shape = tuple[int, int, int]  # M, K, N
#: The N of N x N x N at which rungs are compared. A row of SIZE numbers is 125 or 62.5 cache lines, of SMALL
#: 25 or 12.5: a column falls into all sets of a cache, where one of 1024 would fall into a single one. The
#: loops of Python are measured at SMALL alone; at SIZE a product would take them minutes. Strassen's rungs
#: are measured at LARGE, where their blocks are of SIZE; smaller products they leave to another rung.
SMALL, SIZE, LARGE = 200, 1000, 2000


@dataclass(frozen=True)
class Rung:
    """One way to multiply: `matmul(A, B)` for A (M, K), B (K, N) of one of `dtypes`.

    `bottleneck` says what limits it (the label on the ladder plot), `requires` what the computer must have
    (names that `measure.machine.missing` knows); `module` is where its code can be read. A `parallel` rung is
    about several cores: on one thread it is another rung with more to do. Below `smallest` the rung leaves a
    product to another one, and what is measured there is that one's speed.
    """

    id: str
    circle: int
    title: str
    matmul: Matmul
    dtypes: tuple[str, ...]
    bottleneck: str
    requires: tuple[str, ...] = ()
    module_name: str = ""
    parallel: bool = False
    smallest: int = 1

    @property
    def size(self) -> int:
        """The largest of the ladder's sizes at which the rung is measured: LARGE only if it needs that."""
        return SMALL if self.circle == 1 else SIZE if self.smallest <= SIZE else LARGE

    def missing(self) -> str | None:
        """Return the sentence that says why the rung cannot run here, or None if it can."""
        return _missing(self.requires)

    def module(self) -> ModuleType:
        """Return the module that holds the rung's code, to be read."""
        return importlib.import_module(self.module_name)


@dataclass(frozen=True)
class Result:
    """One measured point: the median time of one rung for one shape, dtype, thread count and machine."""

    rung: str
    shape: tuple[Count, Count, Count]  # M, K, N
    dtype: str
    threads: Count
    seconds: Positive
    spread_s: NotNegative
    gflops: Positive
    max_error: float | None  # max|C - exact| / max|exact| over sampled entries
    when: str  # ISO 8601, UTC
    machine: str
    blas: str = ""  # NumPy's BLAS and the kernels it chose, for example "openblas 0.3.31 SkylakeX"
    rough: bool = False  # measured in haste, on held cores, or with a scatter as on them


def _missing(requires: Sequence[str]) -> str | None:
    from course_lib.measure import machine

    return next((sentence for need in requires if (sentence := machine.missing(need))), None)


def make_rung(
    id: str,
    circle: int,
    title: str,
    bottleneck: str,
    code: str = "",
    dtypes: tuple[str, ...] = FLOATS,
    requires: tuple[str, ...] = (),
    parallel: bool = False,
    gpu: bool = False,
    batched: bool = False,
    smallest: int = 1,
    **options: Any,
) -> Rung:
    """Make a rung of circles/<code>.py; `options` are arguments of its matmul, `batched`: 3-D operands.

    `code` is the id with underscores if it is not given.
    """
    module_name = f"course_lib.circles.{code or id.replace('-', '_')}"

    def load() -> Matmul:
        return functools.partial(importlib.import_module(module_name).matmul, **options)

    @functools.cache  # the front door imports NumPy: only when a product is wanted
    def guarded() -> Matmul:
        from course_lib.circles.front_door import through_the_door

        return through_the_door(load, id, dtypes, lambda: _missing(requires), gpu, batched)

    def matmul(A, B):
        return guarded()(A, B)

    matmul.on_gpu = gpu
    shapes = "A (batch, M, K), B (batch, K, N)" if batched else "A (M, K), B (K, N)"
    matmul.__doc__ = f"Return A @ B by the rung '{id}': {shapes}, both {' or both '.join(dtypes)}."
    return Rung(id, circle, title, matmul, dtypes, bottleneck, requires, module_name, parallel, smallest)


_compiled_rung = functools.partial(make_rung, requires=("numba",))
_gpu_rung = functools.partial(make_rung, dtypes=("float32",), requires=("cuda",), gpu=True)

LADDER: tuple[Rung, ...] = (
    make_rung(
        "python-ndarray", 1, "Python loops indexing NumPy arrays", "a new scalar object per element read"
    ),
    make_rung("python-lists", 1, "Python loops over lists", "interpreter: bytecode and boxed floats"),
    _compiled_rung(
        "compiled-ijk",
        2,
        "Compiled loops, k innermost",
        "one sum: each addition waits for the last",
        "compiled",
        order="ijk",
    ),
    _compiled_rung(
        "compiled-ikj",
        2,
        "Compiled loops, j innermost",
        "C and B move through the caches every k",
        "compiled",
        order="ikj",
    ),
    _compiled_rung(
        "strassen",
        3,
        "Strassen with explicit temporaries",
        "additions: memory traffic that 1/8 fewer products do not pay for",
        smallest=1025,
    ),
    _compiled_rung("blocked", 4, "Loops cut into cache blocks", "three loads and stores for one FMA"),
    _compiled_rung("unrolled", 4, "Blocks, 4 rows x 8 k unrolled", "C is loaded and stored every 8 steps"),
    _compiled_rung("simd", 4, "Packed panels, vector micro-kernel", "the FMA units of one core"),
    _compiled_rung(
        "strassen-fused",
        3,
        "Strassen folded into packing and tiles",
        "the FMA units of one core, for 1/8 fewer products",
        smallest=2000,
    ),
    _compiled_rung("threads", 5, "The same on every core", "the FMA units of all cores", parallel=True),
    _gpu_rung(
        "cuda-naive",
        6,
        "GPU: a thread for each element of C",
        "32 sectors of memory for the 32 numbers of A that a warp reads",
    ),
    _gpu_rung(
        "cuda-coalesced",
        6,
        "GPU: neighbouring threads read neighbours",
        "two loads from memory or L1 for one FMA",
    ),
    _gpu_rung("cuda-tiled", 6, "GPU: tiles in shared memory", "two numbers from shared memory for one FMA"),
    _gpu_rung(
        "cuda-1d", 6, "GPU: a thread computes a piece of a column", "9 numbers from shared memory for 8 FMAs"
    ),
    _gpu_rung(
        "cuda-2d", 6, "GPU: a thread computes a tile in registers", "bank conflicts, and loads of 4 bytes"
    ),
    _gpu_rung(
        "cuda-vectorised", 6, "GPU: loads of 16 bytes", "bank conflicts, and waiting for the next tile"
    ),
    _gpu_rung("cuda-warptiled", 6, "GPU: warp tiles, two buffers", "the FMA units of the GPU"),
    make_rung("numpy", 0, "NumPy as installed (its BLAS)", "the baseline", "numpy_baseline"),
    make_rung(
        "openblas",
        0,
        "OpenBLAS told to use this CPU's instructions",
        "the second baseline",
        requires=("openblas",),
    ),
    _gpu_rung("torch", 0, "torch on the GPU (cuBLAS, TF32 off)", "the GPU's baseline", "cuda_torch"),
)


def rung(id: str) -> Rung:
    """Return the rung of that id; raises KeyError with the nearest names if there is none."""
    return find_rung(id, LADDER, "rung", " on the ladder")


def find_rung(id: str, rungs: Sequence[Rung], noun: str, where: str) -> Rung:
    """Return the one of `rungs` with that id; raises KeyError in the words of the registry they come from."""
    for entry in rungs:
        if entry.id == id:
            return entry
    names = [entry.id for entry in rungs]
    near = difflib.get_close_matches(str(id), names, n=2) or names
    raise KeyError(f"There is no {noun} {id!r}{where}: did you mean {' or '.join(near)}?")


def operands(shape: Shape, dtype: str = "float64", seed: int = 0):
    """Return random A (M, K) and B (K, N) for shape (M, K, N): normal entries, so errors can be seen."""
    import numpy as np

    M, K, N = shape
    rng = np.random.default_rng(seed)
    return rng.standard_normal((M, K)).astype(dtype), rng.standard_normal((K, N)).astype(dtype)


def climb(
    ids: Sequence[str],
    size: int | None = None,
    *,
    shape: Shape | None = None,
    dtype: str = "float64",
    threads: int = 1,
    budget_s: float = 4.0,
    baseline: str | None = None,
    save: bool = True,
) -> Comparison:
    """Measure rungs fairly on one random product and add the results to the learner's ladder.

    `size` N stands for the shape (N, N, N). `baseline` is "numpy" when it is among `ids`, else the first.
    Returns the Comparison; raises KeyError for an unknown rung, ValueError for a shape, dtype or list of ids
    that makes no sense, and otherwise as `measure.timing.compare` does.
    """
    from course_lib.measure.timing import compare

    rungs = _rungs(ids)
    shape = _shape(size, shape)
    for entry in rungs:
        if dtype not in entry.dtypes:
            raise ValueError(f"dtype is {dtype!r}, but '{entry.id}' multiplies {' or '.join(entry.dtypes)}.")
    A, B = operands(shape, dtype)
    if baseline is None:
        baseline = "numpy" if "numpy" in ids else ids[0]
    functions = {entry.id: entry.matmul for entry in rungs}
    comparison = compare(functions, A, B, baseline=baseline, threads=threads, budget_s=budget_s)
    if save:
        record(comparison, {entry.id: error_of(entry, A, B) for entry in rungs})
    return comparison


def climb_sizes(
    ids: Sequence[str],
    *,
    dtype: str = "float64",
    threads: int = 1,
    budget_s: float = 1.0,
    baseline: str | None = None,
) -> Comparison:
    """Measure rungs at the sizes of the ladder, so that each can be compared with every other.

    At SMALL and SIZE, the loops of Python (circle 1) at SMALL alone; where one of them needs LARGE, those of
    compiled code there, too. Arguments and exceptions are those of `climb`; `budget_s` is for each size.
    Returns what was found at the largest.
    """
    rungs = _rungs(ids)
    found = None
    for size in (SMALL, SIZE, LARGE)[: 3 if any(entry.size == LARGE for entry in rungs) else 2]:
        able = [
            entry.id for entry in rungs if entry.smallest <= size and (entry.circle != 1 or size == SMALL)
        ]
        if able:
            base = baseline if baseline in able else None
            found = climb(able, size, dtype=dtype, threads=threads, budget_s=budget_s, baseline=base)
    return found


def speeds(
    ids: Sequence[str],
    sizes: Sequence[int] = (),
    *,
    rows: int | None = None,
    dtype: str = "float64",
    threads: int = 1,
    longest_s: float = 0.1,
) -> Speeds:
    """Measure rungs against n, roughly: (rows, n, n) for each of `sizes`, with `rows` None (n, n, n).

    No sizes: powers of two from 64 to 2048 and their neighbours. From where a call would take over
    `longest_s` a rung is left out. Nothing of it goes to the learner's ladder. On several threads each rung
    is measured alone: the threads of another would have to come to rest first. Raises as `climb` does.
    """
    import numpy as np

    from course_lib.measure import machine
    from course_lib.measure.progress import Progress
    from course_lib.measure.speeds import SIZES, Speeds
    from course_lib.measure.timing import compare

    rungs = _rungs(ids)
    sizes = sorted(sizes or SIZES)
    found: dict[str, dict[int, float]] = {entry.id: {} for entry in rungs}
    pace: dict[str, float] = {}  # seconds for each multiply-add, at the fastest
    rough = False
    groups = [rungs] if threads == 1 else [[entry] for entry in rungs]
    with Progress(None) as bar:
        for done, (group, n) in enumerate((group, n) for group in groups for n in sizes):
            bar.update(done / len(groups) / len(sizes), f"n = {n}")
            shape = (rows or n, n, n)
            able = {e.id: e.matmul for e in group if pace.get(e.id, 0) * math.prod(shape) < longest_s}
            if able:
                A, B = operands(shape, dtype)
                budget = {"budget_s": 0.1, "min_rounds": 3, "max_error": False, "progress": False}
                measured = compare(able, A, B, threads=threads, **budget)
                rough = rough or measured.held or bool(measured.conditions.hasty)
                for row in measured.rows:
                    found[row.name][n] = row.gflops
                    pace[row.name] = min(row.seconds / math.prod(shape), pace.get(row.name, math.inf))
    item = np.dtype(dtype).itemsize
    filled = {f"L{cache.level}": (cache.size_bytes / item) ** 0.5 for cache in machine.caches()}
    known = machine.known_peaks()
    peak = known.gflops(dtype, threads) if known else None
    return Speeds(found, rows, dtype, threads, filled, peak, rough)


def error_of(entry: Rung, A, B) -> float:
    """Return the rung's relative error against exact entries of A @ B (see measure.accuracy)."""
    from course_lib.measure.accuracy import relative_error

    return relative_error(entry.matmul(A, B), A, B)


def record(comparison: Comparison, errors: dict[str, float | None] | None = None) -> list[Result]:
    """Add the rows of a comparison that are rungs to the learner's results, the newest replacing the old.

    `errors` gives each rung's error; rows that name no rung are left out. A rough result (see
    `Comparison.rough`) replaces none but rough ones. Returns what was found.
    """
    from course_lib.measure import machine

    (M, K), (_, N) = comparison.shapes
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    here = machine.describe()
    results = [
        Result(
            rung=row.name,
            shape=(M, K, N),
            dtype=comparison.dtype,
            threads=comparison.threads,
            seconds=row.seconds,
            spread_s=row.spread_s,
            gflops=row.gflops,
            max_error=(errors or {}).get(row.name),
            when=now,
            machine=machine.key(),
            blas=f"{here.blas} {here.blas_architecture}",
            rough=row.name in comparison.rough,
        )
        for row in comparison.rows
    ]
    return _added(results)


def record_gpu(recording: Recording) -> list[Result]:
    """Add what `course_lib.commands.record.measured` found on this machine's GPU to the learner's results.

    There the operands lay in the GPU's memory. Rows of other rungs are left out. Returns what was added.
    """
    from course_lib.measure import machine

    return _added(
        [
            Result(
                rung=row.rung,
                shape=row.shape,
                dtype="float32",
                threads=1,
                seconds=row.seconds,
                spread_s=row.spread_s,
                gflops=1e3 * row.tflops,
                max_error=row.error,
                when=recording.when,
                machine=machine.key(),
            )
            for row in recording.rows
        ]
    )


def _added(results: list[Result]) -> list[Result]:
    """Write those of rungs to the learner's file, each in place of an older one of its kind; return them.

    A sound result is not replaced by a rough one.
    """
    known = {entry.id for entry in LADDER}
    results = [result for result in results if result.rung in known]

    def change(values: dict[str, Any]) -> None:
        for one in results:
            known = _restore(values.get(_key(one)))
            if known is None or known.rough or not one.rough:
                values[_key(one)] = asdict(one)

    opened("ladder").update(change)
    return results


def results() -> list[Result]:
    """Return the learner's results of this machine, in ladder order."""
    from course_lib.measure import machine

    found = [result for saved in opened("ladder").read().values() if (result := _restore(saved))]
    order = {entry.id: position for position, entry in enumerate(LADDER)}
    here = machine.key()
    kept = [r for r in found if r.rung in order and r.machine == here]
    return sorted(kept, key=lambda r: (order[r.rung], r.dtype, r.threads, r.shape))


def unreadable() -> int:
    """Return how many saved entries this version cannot read; they stay in the file."""
    return sum(_restore(saved) is None for saved in opened("ladder").read().values())


def forget() -> int:
    """Delete the learner's results on this machine; return how many there were."""
    from course_lib.measure import machine

    gone: list[str] = []
    here = machine.key()

    def change(values: dict[str, Any]) -> None:
        gone.extend(key for key, saved in values.items() if (one := _restore(saved)) and one.machine == here)
        for key in gone:
            del values[key]

    opened("ladder").update(change)
    return len(gone)


def _rungs(ids: Sequence[str]) -> list[Rung]:
    if isinstance(ids, str) or not ids:
        raise ValueError(
            f"ids is {ids!r}, but a list of rungs is needed, for example ['compiled-ikj', 'numpy']."
        )
    return [rung(id) for id in ids]


def _shape(size: int | None, shape: Shape | None) -> Shape:
    if (size is None) == (shape is None):
        raise ValueError("Give either a size N or a shape (M, K, N), for example climb(ids, 256).")
    given = (size, size, size) if shape is None else shape
    wanted = tuple(given) if isinstance(given, Iterable) else ()
    if len(wanted) != 3 or not all(is_whole(n) and n > 0 for n in wanted):
        raise ValueError(f"The shape is {given}, but it must be three positive whole numbers (M, K, N).")
    return tuple(int(n) for n in wanted)


def _key(result: Result) -> str:
    M, K, N = result.shape
    kernels = f"|{result.blas}" if result.rung == "numpy" else ""  # as installed or tuned: two baselines
    return f"{result.machine}|{result.rung}|{M}x{K}x{N}|{result.dtype}|{result.threads}{kernels}"


def _restore(saved: Any) -> Result | None:
    """Return the saved Result, or None for an entry this version cannot read (it stays in the file)."""
    try:
        return validated(Result, saved)
    except ValueError:
        return None
