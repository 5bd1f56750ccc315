"""The CPU summit in numbers: the course's best rungs against both baselines, and against what was aimed at.

Every line is one comparison: the functions take turns in one process, and the ratio is that of the medians.
"NumPy" is NumPy's BLAS as installed, "tuned" OpenBLAS told to use this CPU's instruction set.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass

from course_lib import ladder
from course_lib.ladder import Shape

SQUARES = (256, 512, 1000, 1024, 2048, 3000, 4096)
SKINNY: tuple[Shape, ...] = (
    (4096, 64, 4096),
    (64, 4096, 4096),
    (4096, 4096, 64),
    (257, 1031, 509),
    (250, 512, 2048),  # the last three are products of a Conformer
    (250, 2048, 512),
    (250, 512, 512),
)
NARROWER = "Haswell"  # OpenBLAS's kernels for 256 bits: what a NumPy takes that does not know a newer CPU


@dataclass(frozen=True)
class Goal:
    """What the ratios of one family of lines were aimed at."""

    name: str
    against: str
    median: float | None
    lowest: float | None


@dataclass(frozen=True)
class SummitLine:
    """One measured product: GFLOP/s of each function, and the ratio that counts."""

    goal: Goal
    shape: Shape
    dtype: str
    threads: int
    gflops: dict[str, float]
    ratio: float

    def data(self) -> dict:
        """Return the line as plain values."""
        return asdict(self)


ONE_CORE = Goal("simd, one core, squares", "openblas", 1.0, 0.95)
ALL_CORES = Goal("threads, all cores, squares", "openblas", 1.0, 0.95)
SKINNY_ONE = Goal("simd, one core, skinny", "openblas", None, 0.9)
SKINNY_ALL = Goal("threads, all cores, skinny", "openblas", None, 0.9)
INSTALLED = Goal("simd, one core, against NumPy with narrower kernels", "numpy", 1.6, None)
INSTALLED_256 = Goal("simd, one core, against OpenBLAS with 256-bit kernels", NARROWER, 1.6, None)
UNROLLED = Goal("unrolled, one core, squares to 2048, against NumPy as installed", "numpy", None, 0.9)
UNROLLED_256 = Goal(
    "unrolled, one core, squares to 2048, against OpenBLAS with 256-bit kernels", NARROWER, None, 0.9
)
STRASSEN = Goal("strassen-fused, one core, against simd", "simd", None, 1.08)


def measure(
    squares: Sequence[int] | None, budget_s: float, save: bool, say: Callable[[str], None] = print
) -> list[SummitLine]:
    """Measure every line, saying each as it is known, and the verdicts at the end; return the lines.

    `squares` are the sizes of square products (None: those that were aimed at, and the skinny ones).
    """
    from course_lib.measure import machine

    here = machine.describe()
    say(f"The CPU summit. NumPy: {here.blas} with its {here.blas_architecture} kernels as installed.")
    say(_tuned_in_words())
    say(f"{'':42} {'dtype':8} {'GFLOP/s':>8} {'NumPy':>8} {'tuned':>8} {'ratio':>7}")
    lines = []
    for goal, rungs, shape, dtype, threads in _plan(squares, here.threads):
        comparison = _compare(rungs, shape, dtype, threads, budget_s, save)
        rates = {row.name: row.gflops for row in comparison.rows}
        times = {row.name: row.seconds for row in comparison.rows}
        lines.append(SummitLine(goal, shape, dtype, threads, rates, times[goal.against] / times[rungs[0]]))
        say(_in_words(lines[-1], rungs[0]))
    for sentence in verdicts(lines):
        say(sentence)
    return lines


def _plan(squares: Sequence[int] | None, cores: int) -> Iterable[tuple]:
    """Yield (goal, rungs, shape, dtype, threads) of every line."""
    from course_lib.circles.strassen_fused import SMALLEST
    from course_lib.measure import machine

    tuned = ("openblas",) if not machine.missing("openblas") else ()
    has_narrower = tuned and machine.describe().simd == "AVX-512"
    sizes = [(n, n, n) for n in squares or SQUARES]
    for dtype in ladder.FLOATS:
        for shapes, one, all_cores in ((sizes, ONE_CORE, ALL_CORES), (SKINNY, SKINNY_ONE, SKINNY_ALL)):
            for shape in shapes if tuned and not (squares and shapes is SKINNY) else ():
                yield one, ("simd", "numpy", *tuned), shape, dtype, 1
                if cores > 1:
                    yield all_cores, ("threads", "numpy", *tuned), shape, dtype, cores
        for shape in sizes:
            if machine.blas_is_behind():
                yield INSTALLED, ("simd", "numpy", *tuned), shape, dtype, 1
            elif has_narrower:  # what a NumPy that does not know this CPU would take
                yield INSTALLED_256, ("simd", "numpy", NARROWER), shape, dtype, 1
        for shape in [shape for shape in sizes if shape[0] <= 2048]:
            yield UNROLLED, ("unrolled", "numpy", *tuned), shape, dtype, 1
            if has_narrower:
                yield UNROLLED_256, ("unrolled", "numpy", NARROWER), shape, dtype, 1
    if sizes[-1][0] >= SMALLEST:  # below, strassen-fused is simd itself
        yield STRASSEN, ("strassen-fused", "simd", "numpy", *tuned), sizes[-1], "float32", 1


def _compare(rungs: Sequence[str], shape: Shape, dtype: str, threads: int, budget_s: float, save: bool):
    if NARROWER not in rungs:
        return ladder.climb(rungs, shape=shape, dtype=dtype, threads=threads, budget_s=budget_s, save=save)
    from course_lib.circles import openblas
    from course_lib.measure.timing import compare

    functions = {id: ladder.rung(id).matmul for id in rungs if id != NARROWER}
    functions[NARROWER] = lambda A, B: openblas.matmul(A, B, core=NARROWER)
    return compare(functions, *ladder.operands(shape, dtype), threads=threads, budget_s=budget_s)


def _tuned_in_words() -> str:
    from course_lib.measure import machine

    if sentence := machine.missing("openblas"):
        return f"Tuned: left out. {sentence}"
    from course_lib.circles import openblas

    return f"Tuned: the same OpenBLAS, told to use this CPU's instructions: {openblas.kernels()} kernels."


def _in_words(line: SummitLine, ours: str) -> str:
    M, K, N = line.shape
    what = f"{ours} {M} x {K} x {N}" + (f", {line.threads} threads" if line.threads > 1 else "")
    rates = [line.gflops.get(name) for name in (ours, "numpy", "openblas")]
    shown = " ".join(f"{rate:8.1f}" if rate else f"{'–':>8}" for rate in rates)
    return f"{what:42} {line.dtype:8} {shown} {line.ratio:6.2f}x {line.goal.against}"


def verdicts(lines: Sequence[SummitLine]) -> list[str]:
    """Return a sentence for each goal: what was aimed at, and what was reached."""
    said = []
    for goal in dict.fromkeys(line.goal for line in lines):
        ratios = [line.ratio for line in lines if line.goal == goal]
        median, lowest = statistics.median(ratios), min(ratios)
        wanted, reached = [], True
        if goal.median is not None:
            wanted.append(f"median at least {goal.median:g}")
            reached &= median >= goal.median
        if goal.lowest is not None:
            wanted.append(f"none below {goal.lowest:g}")
            reached &= lowest >= goal.lowest
        got = f"median {median:.3f}, lowest {lowest:.3f} of {len(ratios)}"
        outcome = "reached" if reached else "NOT reached"
        said.append(f"{goal.name}: {got}; aim: {', '.join(wanted)}: {outcome}.")
    return said
