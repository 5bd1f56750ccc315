"""What to do about hardware that fails or is slow: checksums that repair a number, checkpoints, a straggler.

Sources: Huang and Abraham, "Algorithm-based fault tolerance for matrix operations" (1984); Young, "A first
order approximation to the optimum checkpoint interval" (1974); Daly, "A higher order estimate of the optimum
checkpoint interval for restart dumps" (2006).
"""

from __future__ import annotations

import hashlib
import io
import math
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from course_lib import whole_files
from course_lib.arguments import number, whole

Array = np.ndarray

# -- a wrong number -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CheckedProduct:
    """A product after its checksums were compared: C, and the entries (i, j) that were repaired."""

    C: Array
    repaired: tuple[tuple[int, int], ...]


def checksums(A: Array, B: Array) -> tuple[Array, Array]:
    """Return what the columns and the rows of A B must add up to, (N,) and (M,), without computing A B."""
    return A.sum(axis=0) @ B, A @ B.sum(axis=1)  # (K,) @ (K, N), (M, K) @ (K,)


def tolerances(A: Array, B: Array, safety: float = 8.0) -> tuple[Array, Array]:
    """Return how far rounding may take those sums apart: `safety` times the size of their random walk.

    A sum of n roundings of size u |x| walks about sqrt(n) u |x| away; the worst case would be n u |x|.
    """
    (M, K), N = A.shape, B.shape[1]
    u = np.finfo(A.dtype).eps / 2
    size_A, size_B = np.abs(A), np.abs(B)
    columns = safety * u * math.sqrt(K + M) * (size_A.sum(axis=0) @ size_B)
    rows = safety * u * math.sqrt(K + N) * (size_A @ size_B.sum(axis=1))
    return columns, rows


def check_and_repair(A: Array, B: Array, C: Array, safety: float = 8.0) -> CheckedProduct:
    """Compare C with the checksums of A B; where a row and a column disagree, compute that entry anew.

    One wrong entry in a row or column is repaired. Raises ValueError when what is wrong cannot be told: rows
    disagree, but no column does; and for matrices that are not floats. What is smaller than rounding is not
    found.
    """
    if not all(x.dtype.kind == "f" for x in (A, B, C)):
        raise ValueError(
            f"A, B and C are of {A.dtype}, {B.dtype} and {C.dtype}, but the tolerance is for floats."
        )
    of_columns, of_rows = checksums(A, B)
    may_columns, may_rows = tolerances(A, B, safety)
    with np.errstate(over="ignore", invalid="ignore"):
        off_columns = ~(np.abs(C.sum(axis=0) - of_columns) <= may_columns)  # also NaN
        off_rows = ~(np.abs(C.sum(axis=1) - of_rows) <= may_rows)
    wrong = [(int(i), int(j)) for i in np.flatnonzero(off_rows) for j in np.flatnonzero(off_columns)]
    if not wrong and (off_rows.any() or off_columns.any()):
        raise ValueError(
            f"{off_rows.sum()} rows and {off_columns.sum()} columns disagree with their checksums: "
            "that is no single wrong entry; multiply again."
        )
    repaired = C.copy()
    for i, j in wrong:
        repaired[i, j] = A[i] @ B[:, j]
    return CheckedProduct(repaired, tuple(wrong))


def flip(x: Array, at: tuple[int, int], bit: int) -> Array:
    """Return a copy of x (float32 or float64) with one bit of one entry flipped; bit 0 is the last one."""
    whole("bit", bit, least=0, most=8 * x.itemsize - 1)
    flipped = x.copy()
    flipped.view(f"u{x.itemsize}")[at] ^= np.array(1 << bit, f"u{x.itemsize}")
    return flipped


# -- a lost rank --------------------------------------------------------------------------------------------


def multiply_tiles(A: Array, B: Array, tile: int, folder: Path | str) -> Array:
    """Return A B, computed in bands of `tile` rows that are kept in `folder` as they come.

    Who begins again with the same folder computes only what is missing: that is all there is to a checkpoint.
    A file's name says which rows, and what of: what is kept of other matrices is not taken for these.
    """
    whole("tile", tile)
    other, bands = hashlib.blake2b(np.ascontiguousarray(B)), [np.empty((0, B.shape[1]), A.dtype)]
    for begin in range(0, A.shape[0], tile):
        rows, of = np.ascontiguousarray(A[begin : begin + tile]), other.copy()
        of.update(rows)
        path = Path(folder) / f"rows-{begin}-{begin + len(rows)}-{of.hexdigest()[:16]}.npy"
        if not path.exists():
            saved = io.BytesIO()
            np.save(saved, rows @ B)  # (tile, N)
            whole_files.write(path, saved.getvalue())
        bands.append(np.load(path))
    return np.concatenate(bands)


def young_daly_s(checkpoint_s: float, mtbf_s: float) -> float:
    """Return the interval between checkpoints that loses the least time: sqrt(2 checkpoint mtbf), in seconds.

    Each interval pays one checkpoint; each failure loses half an interval. The sum is smallest where both
    are equal. `mtbf_s` is the mean time between failures of all ranks: that of one, divided by their number.
    """
    number("checkpoint_s", checkpoint_s, above=0)
    number("mtbf_s", mtbf_s, above=0)
    return math.sqrt(2 * checkpoint_s * mtbf_s)


def overhead(interval_s: float, checkpoint_s: float, mtbf_s: float, restart_s: float = 0.0) -> float:
    """Return the part of the time that is lost, to first order: checkpoints, redone work, restarts."""
    _check_times(interval_s, checkpoint_s, mtbf_s, restart_s)
    return checkpoint_s / interval_s + (interval_s / 2 + restart_s) / mtbf_s


def simulated_run(
    work_s: float,
    interval_s: float,
    checkpoint_s: float,
    mtbf_s: float,
    restart_s: float = 0.0,
    seed: int = 0,
) -> float:
    """Return how long a run of `work_s` takes when failures come at random (exponentially), in seconds.

    Raises ValueError where it would never end: without a failure an interval goes by once in e^20 times.
    """
    _check_times(interval_s, checkpoint_s, mtbf_s, restart_s)
    if min(interval_s, number("work_s", work_s, least=0)) + checkpoint_s > 20 * mtbf_s:
        raise ValueError(
            f"An interval of {interval_s:g} s never ends where something fails every {mtbf_s:g} s: write "
            "checkpoints sooner."
        )
    rng = np.random.default_rng(seed)
    now = done = 0.0
    failure = rng.exponential(mtbf_s)
    while done < work_s:
        end = now + min(interval_s, work_s - done) + checkpoint_s
        if end <= failure:
            done, now = min(work_s, done + interval_s), end
        else:
            now = failure + restart_s
            failure = now + rng.exponential(mtbf_s)
    return now


def _check_times(interval_s: float, checkpoint_s: float, mtbf_s: float, restart_s: float) -> None:
    number("interval_s", interval_s, above=0)
    number("checkpoint_s", checkpoint_s, least=0)
    number("mtbf_s", mtbf_s, above=0)
    number("restart_s", restart_s, least=0)


# -- a slow rank --------------------------------------------------------------------------------------------


def throttle(speed: float) -> None:
    """Let this process compute only `speed` (at most 1) of the time from now on: a straggler. Not on Windows.

    The kernel calls after each 5 ms on a core; then the process sleeps, in proportion to what it has used.
    """
    number("speed", speed, above=0, most=1)
    used = time.process_time()

    def rest(*_) -> None:
        nonlocal used
        time.sleep(max(0.0, time.process_time() - used) * (1 / speed - 1))  # a second call may have come in
        used = time.process_time()

    signal.signal(signal.SIGPROF, rest)
    signal.setitimer(signal.ITIMER_PROF, 0.005, 0.005)
