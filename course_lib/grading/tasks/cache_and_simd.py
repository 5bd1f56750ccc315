"""Tasks of chapter 04: sets, blocks, panels and tiles."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from course_lib.grading.compare import Mismatch, close, close_product, describe, exact
from course_lib.grading.inputs import between, every_pair
from course_lib.grading.language import Language
from course_lib.grading.tape import CountsOperations
from course_lib.grading.task import Case, SpeedRule, Task
from course_lib.grading.tasks import yours
from course_lib.grading.tasks.compiled_loops import (
    LOOPS_ONLY,
    PRODUCT_SLIPS,
    all_inputs,
    case,
    loops,
    matrix,
    pair,
    product,
    sizes,
)

# --- 04.sets: into how many sets of a cache a column falls --------------------------------------------------


def column_sets(
    rows: int,
    row_bytes: int,
    size_bytes: int,
    ways: int,
    line_bytes: int,
    *,
    sets: int | None = None,
    room: int | None = None,
    stride: int | None = None,
    by_lines: bool = True,
) -> tuple[int, int, str]:
    """Return (sets that a column uses, most lines in one of them, "fits" or "conflict").

    The column's elements lie at bytes 0, row_bytes, 2 * row_bytes, …; line n belongs to set n % sets.
    Slips are given by keyword: other `sets`, the `room` in one, a `stride` in lines from row to row, elements
    in place of lines.
    """
    lines = [row * row_bytes // line_bytes if stride is None else row * stride for row in range(rows)]
    crowd = [0] * (sets or size_bytes // line_bytes // ways)
    for line in set(lines) if by_lines else lines:
        crowd[line % len(crowd)] += 1
    most = max(crowd)
    return sum(map(bool, crowd)), most, "fits" if most <= (room or ways) else "conflict"


#: Bytes, ways, bytes of a line. The fourth has an odd number of sets, the fifth one way, the last one set.
CACHES = ((32768, 8, 64), (49152, 12, 64), (65536, 4, 128), (2880, 3, 64), (4096, 1, 32), (1536, 24, 64))


def _columns(rng: np.random.Generator) -> Iterator[Case]:
    cache = CACHES[int(rng.integers(2))]
    yield Case((512, 4096, *cache), "512 rows of 512 float64")
    yield Case((512, 4104, *cache), "512 rows of 513 float64")
    yield Case((512, 4160, *cache), "512 rows of 512 float64 and a line of padding")
    yield Case((100, 8, *cache), "rows of one float64: several share a line")
    # The last row begins in a line and ends in the next one, which holds no element of the column.
    yield Case((91, 24, *cache), "rows of three float64: some lines hold two of them")
    yield Case((28, 7832, *CACHES[3]), "28 lines for 15 sets of 3, and 4 fall into one of them")
    for size, ways, line in CACHES:
        around = size // ways  # from a line to the next one of the same set
        counts = (int(rng.integers(20, 700)), 1, ways, ways + 1, size // line, size // line + 1)
        odd = 2 * int(rng.integers(16, 4800)) + 1  # no whole number of float16, float32 or float64
        lengths = (odd, odd - odd % 8, 8, 24, line, line + 8, around, 3 * around, around + line)
        # Not pairs: all combinations, as only ways + 1 lines in one set show what becomes of one too many.
        for row_bytes, rows in itertools.product(lengths, counts):
            numbers = f"{row_bytes} numbers of one byte" if row_bytes == odd else f"{row_bytes // 8} float64"
            yield Case((rows, row_bytes, size, ways, line), f"{rows} × {numbers}")
    yield Case((10_007, 8, *cache), "10007 rows of one float64")


SETS = Task(
    id="04.sets",
    title="Where does a column lie?",
    points=2,
    difficulty=2,
    cases=_columns,
    reference=column_sets,
    comparison=exact(("sets used", "most lines in one set", "fits or conflict")),
    rules=(Language(("math", "collections", "itertools", "numpy", "numba")),),
    lookalikes={
        "You took every line for a set: a set has room for `ways` lines, so there are fewer sets.": (
            lambda *args: column_sets(*args, sets=args[2] // args[4])
        ),
        "Elements that share a line count once: a set holds lines, not numbers.": {"by_lines": False},
        "That is how many sets the cache has; asked is in how many of them lines of the column lie.": (
            lambda got, *args: (
                got[0] == args[2] // args[3] // args[4] and (*got[1:],) == column_sets(*args)[1:]
            )
        ),
        # Told where it is seen first: on other inputs other slips have the same numbers.
        "The step from row to row need not be a whole number of lines: row r lies in line "
        "r * row_bytes // line_bytes, so multiply first and divide then.": (
            lambda *args: (
                column_sets(*args, stride=args[1] // args[4])
                if args[1] % args[4] == 8 or args[1] % 8
                else None
            )
        ),
        "A set with more lines than ways is a conflict, however much room there is elsewhere.": (
            lambda got, *args: (*got[:2],) == column_sets(*args)[:2] and got[2] == "fits"
        ),
        "`ways` lines still fit into a set: a conflict begins with one more.": (
            lambda *args: column_sets(*args, room=args[3] - 1)
        ),
    },
    hints=(
        "How many sets has the cache, and in which line does row r of the column lie?",
        "sets = size_bytes / (ways * line_bytes). Line number = r * row_bytes // line_bytes, the same for "
        "several rows if these are short. Its set is the line number modulo sets.",
        "lines = {r * row_bytes // line_bytes for r in range(rows)}; count line % sets in a list; the column "
        'fits if the largest count is at most `ways`; return used, largest, "fits" or "conflict".',
    ),
)


# --- 04.index: where the numbers of a product lie, without a multiplication ---------------------------------


def walk(
    M: int, K: int, N: int, a_row: float, b_row: float, c_row: float, order: str = "ikj"
) -> list[list[float]]:
    """Return [place in A, in B, in C] for each step (i, k, j), in this order; rows begin `…_row` apart."""
    found = []
    for place in itertools.product(*(range(dict(i=M, k=K, j=N)[index]) for index in order)):
        at = dict(zip(order, place, strict=True))
        i, k, j = at["i"], at["k"], at["j"]
        found.append([i * a_row + k, k * b_row + j, i * c_row + j])
    return found


def _walks(rng: np.random.Generator) -> Iterator[Case]:
    sides, gaps = (0, 1, 2, between(3, 6)), (0, between(1, 9))
    rows = every_pair(rng, M=sides, K=sides, N=sides, a=gaps, b=gaps, c=(0, between(1, 20)))
    blocks = sorted((tuple(row.values()) for row in rows), key=lambda block: math.prod(block[:3]))
    # On a long one it costs much to add up anew, and by doubling, too, if the first row, where adding to 0 is
    # free, is one of many.
    for side in range(3):
        block = [*sizes(rng, 6, 10), *map(int, rng.integers(9, size=3))]
        block[side] = int(rng.integers(150, 200))
        blocks.append(block)
    for M, K, N, a, b, c in ((2, 2, 2, 3, 1, 4), *blocks):
        rows = [float(max(length, 1)) for length in (K + a, N + b, N + c)]
        yield Case((M, K, N, *rows), f"{M} x {K} x {N}, rows of {', '.join(f'{row:g}' for row in rows)}")


INDEX = Task(
    id="04.index",
    title="No product for a place",
    points=2,
    difficulty=2,
    cases=_walks,
    reference=walk,
    rules=(Language(("math", "numpy", "itertools", "collections")),),
    counts=CountsOperations(
        multiplications=lambda *sizes: 0,
        additions=lambda M, K, N, *rows: 4 * (1 + M * (1 + K)) + 2 * M * K * N,
        whose="that places need which move on",
        at_most=True,
    ),
    lookalikes={
        "In a block whose rows are as long as the block this would be right: the next row begins `b_row` "
        "further on, and `c_row`, and `a_row`.": lambda M, K, N, *rows: walk(M, K, N, K, N, N),
        "The order of the steps is i, k, j: j moves in every step, i only after all of k and j.": {
            "order": "ijk"
        },
        "The rows of B go on from one i to the next: for every i, k begins at 0 again, and so does B.": (
            lambda M, K, N, a, b, c: [
                [at_a, at_b + n // max(K * N, 1) * K * b, at_c]
                for n, (at_a, at_b, at_c) in enumerate(walk(M, K, N, a, b, c))
            ]
        ),
    },
    hints=(
        "Which of the three places change when j grows by one, which when k does, and by how much? Where "
        "does each of them stand when a loop begins anew?",
        "Keep two things for a place that is walked more than once: where it is, and where its row began. "
        "A turn of a loop moves only what depends on its own index.",
        "Behind the loop over j: the place in A moves by one, the beginning of B's row by b_row. And the "
        "place in C goes back to where row i began.",
    ),
)


# --- 04.visits: an order of all (i, k, j) that misses a small cache seldom, judged by the simulator ---------

ITEMSIZE, LINE = 8, 64
SLACK = 1.3  # times the misses of the reference's order


def visits(M: int, K: int, N: int, cache_bytes: int) -> np.ndarray:
    """Return all (i, k, j) of a product, M * K * N rows of three, block by block: int64.

    The blocks are b x b with b the largest multiple of a line of which three fit into the cache.
    """
    per_line = LINE // ITEMSIZE
    b = max(math.isqrt(cache_bytes // (3 * ITEMSIZE)) // per_line * per_line, per_line)
    return in_blocks(M, K, N, b)


def in_blocks(M: int, K: int, N: int, b: int) -> np.ndarray:
    """Return all (i, k, j) in blocks of b x b x b, blocks and steps each with j innermost."""
    whole = np.indices((M, K, N)).reshape(3, -1).T  # in the order i, k, j
    i, k, j = whole.T
    return whole[np.lexsort((j, k, i, j // b, k // b, i // b))]


def misses(order: np.ndarray, M: int, K: int, N: int, cache_bytes: int) -> int:
    """Return the misses of A[i, k], B[k, j], C[i, j] for each row of the order, fully associative, LRU."""
    from course_lib.simulators.cache import Level, simulate
    from course_lib.simulators.placement import place

    where = place(M, K, N, ITEMSIZE)
    i, k, j = np.asarray(order, np.int64).T
    addresses = np.empty((len(i), 3), np.uint64)
    for column, (name, row, col) in enumerate((("A", i, k), ("B", k, j), ("C", i, j))):
        addresses[:, column] = where[name].start + row * where[name].row_stride + col * ITEMSIZE
    return simulate(addresses.reshape(-1), [Level(cache_bytes, None, LINE)]).misses[0]


@dataclass(frozen=True)
class FewMisses:
    """Accepts every order of all triples that misses at most SLACK times as often as the reference."""

    def compare(self, got: Any, want: np.ndarray, args: tuple) -> Mismatch | None:
        """Return None if `got` is such an order for args (M, K, N, cache_bytes), else what is wrong."""
        M, K, N, _ = args
        if type(got) is not np.ndarray or got.shape != want.shape or got.dtype.kind not in "iu":
            said = f"Your function returned {describe(got)}, but {len(want)} rows of three whole numbers"
            end = ": is a `return` missing?" if got is None else ": np.array(list of (i, k, j))."
            end = ", one for each step." if type(got) is np.ndarray else end
            return Mismatch((f"{said} are needed{end}",), form=True)
        if said := _not_all(got, (M, K, N)):
            return Mismatch((said,))
        limit, done = int(SLACK * misses(want, *args)), misses(got, *args)
        if done <= limit:
            return None
        plain = misses(in_blocks(M, K, N, max(M, K, N, 1)), *args)
        return Mismatch(
            (
                f"All triples are there, but the cache misses {done:,} times; {limit:,} is the target "
                f"(the plain order i, k, j: {plain:,}).",
            )
        )


def _not_all(got: np.ndarray, shape: tuple[int, int, int]) -> str | None:
    order = got.astype(np.int64)
    if ((order < 0) | (order >= np.array(shape))).any():
        bad = order[((order < 0) | (order >= np.array(shape))).any(axis=1)][0]
        return f"({bad[0]}, {bad[1]}, {bad[2]}) is no (i, k, j) of this product."
    seen = np.bincount(np.ravel_multi_index(tuple(order.T), shape), minlength=math.prod(shape))
    if (seen != 1).any():
        place = int(np.argmax(seen != 1))
        i, k, j = (int(n) for n in np.unravel_index(place, shape))
        return f"Every triple must come once, but ({i}, {k}, {j}) comes {seen[place]} times."
    return None


def _products(rng: np.random.Generator) -> Iterator[Case]:
    for M, K, N, cache in ((6, 5, 7, 4096), (1, 24, 1, 2048), (3, 1, 9, 2048)):
        yield Case((M, K, N, cache), f"{M} x {K} x {N}: all of it fits")
    yield Case((40, 40, 40, 2048), "squares of 40, 2 KiB of cache")
    # Blocks of 4 and of 8 miss alike: for neither is there anything but a row of each to keep.
    yield Case((24, 40, 48, 512), "24 x 40 x 48, half a KiB of cache: too little for three blocks of 8")
    yield Case((48, 48, 48, 3 * 24 * 24 * 8), "squares of 48, 13.5 KiB of cache")
    yield Case((48, 96, 96, 3 * 24 * 24 * 8), "48 x 96 x 96, 13.5 KiB of cache")
    # From 8192 on blocks of 16 have room for a fourth one as well: no luck for who is careful.
    for fewest in (2048, 8192, 13824):
        # Rows of whole lines: else it is chance in which order of the blocks two of them share a line.
        M, (K, N) = int(rng.integers(37, 60)), (8 * side for side in sizes(rng, 5, 8, 2))
        cache = fewest + LINE * int(rng.integers(40))
        yield Case((M, K, N, cache), f"{M} x {K} x {N}, {cache} bytes of cache")
    yield Case((11, 60, 60, 2048), "few rows of A")
    for thin in range(3):
        sides = [8 * side for side in sizes(rng, 8, 12, 3)]
        sides[thin] = int(rng.integers(2, 4))
        yield Case((*sides, 2048), f"{' x '.join(map(str, sides))}: a side is shorter than any block")
    yield Case((57, 38, 46, 2048), "more rows of A than of B")
    # Blocks of 16 miss 1.33 times as often, the largest power of two that fits, 32, 1.22 times.
    yield Case((48, 96, 96, 3 * 48 * 48 * 8), "48 x 96 x 96, 54 KiB of cache")


def _block(got: np.ndarray, M: int, K: int, N: int) -> int:
    """Return b if the rows are in blocks b x b x b, else 0."""
    ends = np.flatnonzero(np.diff(got[:, 2]) != 1)  # after the first run of j
    b = int(ends[0]) + 1 if len(ends) else N
    return b if b < N and np.array_equal(got, in_blocks(M, K, N, b)) else 0


VISITS = Task(
    id="04.visits",
    title="Hit the target",
    minutes=25,
    cases=_products,
    reference=visits,
    comparison=FewMisses(),
    rules=(Language(("math", "numpy", "numba", "itertools", "collections")),),
    lookalikes={
        "Those rows are (i, j, k): the task wants i, k, j.": (
            lambda got, M, K, N, cache: K != N and not _not_all(got, (M, N, K))
        ),
        "With the plain order i, k, j all of B passes through the cache for every row of A.": (
            lambda got, M, K, N, cache: bool((got == in_blocks(M, K, N, max(M, K, N, 1))).all())
        ),
        "Three blocks of yours do not fit into the cache together: one of A, one of B and one of C.": (
            lambda got, M, K, N, cache: 3 * _block(got, M, K, N) ** 2 * ITEMSIZE > cache
        ),
        "Your blocks fit, but their size is no multiple of the 8 numbers of a line: what else came with "
        "their first and last lines is fetched in vain.": lambda got, M, K, N, cache: (
            _block(got, M, K, N) % (LINE // ITEMSIZE) != 0
        ),
    },
    hints=(
        "In the plain order, how much passes through the cache between two uses of the same number of B?",
        "Cut all three loops into blocks of b, and choose b so that three blocks fit together and a block's "
        "rows are whole lines.",
        "b = max(math.isqrt(cache_bytes // 24) // 8 * 8, 8); six loops: i0, k0, j0 in steps of b, then i, k, "
        "j from there to min(start + b, end); append (i, k, j); return np.array(order).",
    ),
)


# --- 04.pack: a piece of B laid out as the micro-kernel reads it, with zeros behind the edge ----------------


def pack(B: np.ndarray, k0: int, j0: int, depth: int, NR: int) -> np.ndarray:
    """Return rows k0 … k0 + depth - 1, columns j0 … j0 + NR - 1 of B one behind the other; zeros behind B."""
    panel = np.zeros((depth, NR), B.dtype)
    columns = min(NR, B.shape[1] - j0)
    panel[:, :columns] = B[k0 : k0 + depth, j0 : j0 + columns]
    return panel.reshape(-1)


PANELS = ("float64", "float32", "a view, every 2nd row and 3rd column", "a transposed view")


def _panels(rng: np.random.Generator) -> Iterator[Case]:
    B = matrix(rng, 9, 20)
    yield Case((B, 0, 0, 9, 4), "float64, the first panel, 4 columns", guard=True)
    yield Case((B, 3, 8, 5, 4), "float64, from row 3 and column 8 on", guard=True)
    yield Case((B, 2, 16, 7, 8), "float64, 8 columns wanted, 4 left", guard=True)
    rows = every_pair(
        rng,
        form=PANELS,
        special=("", "NaN and inf: they are copied, and what is behind them is 0"),
        NR=(1, 4, between(5, 8), 8, between(9, 70), 16),
        left=(0, 0.5, 1, 2.5),  # times NR, but one column at least
        depth=(0, 1, between(2, 9), between(20, 300)),
        k0=(0, between(1, 6)),
        j0=(0, 16, between(1, 40)),
        unless=lambda row: bool(row["special"]) and not row["depth"],
    )
    for row in sorted(rows, key=lambda row: (row["form"] != PANELS[0]) + bool(row["special"])):
        yield _panel(rng, **row)


def _panel(rng, form: str, special: str, NR: int, left: float, depth: int, k0: int, j0: int) -> Case:
    columns = max(int(left * NR), 1)
    rows = k0 + depth + int(rng.integers(3))
    B = matrix(rng, rows, j0 + columns, dtype="float32" if form == "float32" else "float64")
    if special:
        panel = np.s_[k0 : k0 + depth, j0 : j0 + NR]
        kept = B[panel].copy()
        kept.flat[0], kept.flat[-1] = np.nan, -np.inf
        B[:], B[panel] = np.inf, kept  # no number around it gives a zero, times 0
    if form in PANELS[2:]:
        B = B.repeat(2, 0).repeat(3, 1)[::2, ::3] if form == PANELS[2] else B.copy("F")
    where = f"depth {depth}, from row {k0} and column {j0} on: {NR} columns wanted, {columns} left"
    return Case((B, k0, j0, depth, NR), ", ".join(filter(None, (form, where, special))), guard=True)


def _shifted(B, k0, j0, depth, NR, width):
    """Return a panel whose rows are `width` numbers long, cut or filled with zeros to depth * NR."""
    rows = pack(B, k0, j0, depth, NR).reshape(depth, NR)[:, :width].reshape(-1)
    return np.concatenate([rows, np.zeros(depth * NR - len(rows), B.dtype)])


PACK = Task(
    id="04.pack",
    title="Pack a panel",
    points=2,
    difficulty=2,
    cases=_panels,
    reference=pack,
    rules=LOOPS_ONLY,
    lookalikes={
        "The panel runs down the columns: the NR numbers of one row k must lie side by side.": (
            lambda B, k0, j0, depth, NR: pack(B, k0, j0, depth, NR).reshape(depth, NR).T.reshape(-1)
        ),
        "At the edge your rows are shorter: row k begins at k * NR, however many columns are left.": (
            lambda B, k0, j0, depth, NR: _shifted(B, k0, j0, depth, NR, min(NR, B.shape[1] - j0))
        ),
        "That is the panel from row 0 on: begin at row k0.": {"k0": 0},
        "That is the panel from column 0 on: begin at column j0.": {"j0": 0},
    },
    hints=(
        "Where in the panel does the number of row k and column c (both counted inside the panel) lie?",
        "At k * NR + c. Make depth * NR zeros first; then copy only the columns that B still has.",
        "panel = np.zeros(depth * NR, B.dtype); columns = min(NR, B.shape[1] - j0); "
        "panel[k * NR + c] = B[k0 + k, j0 + c] for c in range(columns).",
    ),
)


# --- 04.shape: the tile to which registers, latency and loads leave most of the peak ------------------------

LENGTHS = (1, 2, 4, 8)  # registers that a row of the tile may have


def best_tile(
    registers: int,
    in_flight: int,
    loads: float,
    beside: Callable[[int], int] = lambda n: n + 1,
    loaded: Callable[[int, int], int] = lambda MR, n: MR + n,
    lengths: tuple[int, ...] = LENGTHS,
) -> tuple[int, int, float]:
    """Return (MR, n, share of the peak) of the best tile; of equal shares the one with fewest loads an FMA.

    A sum can be used `in_flight` slots after its FMA began, and `loads` loads begin in a slot. Slips: other
    registers `beside` the sums, other loads for each k.
    """
    shares = {
        (MR, n): MR * n / max(MR * n, in_flight, loaded(MR, n) / loads)
        for n in lengths
        for MR in range(1, registers + 1)
        if MR * n + beside(n) <= registers
    }
    MR, n = max(shares, key=lambda tile: (shares[tile], -loaded(*tile) / math.prod(tile)))
    return MR, n, shares[MR, n]


def _cores(rng: np.random.Generator) -> Iterator[Case]:
    for core, what in (
        ((30, 8, 1.0), "30 registers: two of 32 are taken"),
        ((16, 8, 1.0), "16 registers"),
        ((32, 8, 1.0), "32 registers"),
        ((16, 16, 1.0), "a long latency"),
        ((16, 16, 0.5), "a long latency, and few loads"),
        ((32, 40, 1.0), "more in flight than there are registers"),
        ((32, 10, 0.25), "a load for four FMAs"),
        ((64, 8, 1.0), "64 registers"),
        ((3, 4, 2.0), "room for one sum"),
        ((96, 120, 1.5), "96 registers: room for many rows"),
        ((42, 39, 1.0), "one number of B in a row: MR + 1 loads for MR FMAs"),
        ((32, 42, 0.75), "71 % of the peak with one register in a row, 67 % with two"),
    ):
        yield Case(core, what)
    for row in every_pair(
        rng,
        registers=(between(5, 9), between(8, 16), 16, between(20, 30), 32, between(40, 64), between(70, 100)),
        # In flight for each register; with many, small shares may differ in the third digit alone.
        wait=tuple(map(_share, (0.2, 0.6, 0.9, 1.3, 8), (0.5, 0.9, 1.2, 2.0, 20))),
        loads=(*map(_share, (0.1, 0.4, 0.8, 1.6), (0.4, 0.8, 1.3, 3.0)), 1.0),
        unless=lambda row: not _is_sure(*_core(**row)),
    ):
        core = _core(**row)
        yield Case(core, f"{core[0]} registers, {core[1]} in flight, {core[2]} loads a slot")


def _share(low: float, high: float) -> Callable[[np.random.Generator], float]:
    return lambda rng: round(round(float(rng.uniform(low, high)), 2) + 0.003, 3)


def _core(registers: int, wait: float, loads: float) -> tuple[int, int, float]:
    return registers, math.ceil(wait * registers), loads


def _is_sure(registers: int, in_flight: int, loads: float) -> bool:
    """Whether no rounding decides which tile is best: another length of rows has 1 % less, or all of it."""
    fit = [n for n in LENGTHS if 2 * n < registers]
    *_, second, best = sorted(best_tile(registers, in_flight, loads, lengths=(n,))[2] for n in fit)
    return second == best == 1 or second < 0.99 * best


SHAPE = Task(
    id="04.shape",
    title="The shape of a tile",
    minutes=25,
    cases=_cores,
    reference=best_tile,
    comparison=close(rtol=1e-9, parts=("MR", "n", "share of the peak")),
    rules=(Language(("math", "numpy", "itertools", "collections")),),
    lookalikes={
        "That takes a register more than there are: beside the sums, the row of the panel needs n of them "
        "and the number of A that is broadcast one, too.": {"beside": lambda n: n},
        "Beside the sums the row of the panel needs n registers: it is used by all rows of the tile.": {
            "beside": lambda n: 1
        },
        "Your sums and what stands beside them need more registers than there are.": (
            lambda got, registers, in_flight, loads: (got[0] + 1) * got[1] >= registers
        ),
        "A row of the tile has 1, 2, 4 or 8 registers; return (MR, n, share), the number of rows first.": (
            lambda got, *core: got[1] not in LENGTHS or (*got[1::-1],) == best_tile(*core)[:2] != (*got[:2],)
        ),
        "And the latency? Each sum has one FMA in a step of k, and the next one waits until it is there.": {
            "in_flight": 1
        },
        "And the loads? For your tile they take longest: do you count them, and how many slots is one, if "
        "`loads` begin in a slot?": {"loads": math.inf},
        "No tile has a share of 0: where none reaches the peak, take the one that comes nearest.": (
            lambda got, *core: got[2] == 0
        ),
        "On average over many steps the loads need not take a whole number of slots: do not round.": (
            lambda got, registers, in_flight, loads: (
                math.isclose(
                    1 / got[2], max(1, max(in_flight, math.ceil(sum(got[:2]) / loads)) / math.prod(got[:2]))
                )
                and math.ceil(sum(got[:2]) / loads) > max(in_flight, math.prod(got[:2]), sum(got[:2]) / loads)
            )
        ),
        "A step takes as long as the longest of the three, not as all of them together.": (
            lambda got, registers, in_flight, loads: math.isclose(
                got[2], 1 / (1 + (in_flight + sum(got[:2]) / loads) / math.prod(got[:2]))
            )
        ),
        "A number of A that is broadcast is loaded as well: MR loads beside the n of the panel's row.": {
            "loaded": lambda MR, n: n
        },
        "Another tile has the same share and loads less for an FMA.": (
            lambda got, registers, in_flight, loads: (
                math.isclose(got[2], best_tile(registers, in_flight, loads)[2])
                and math.prod(got[:2]) >= 0.999 * got[2] * max(in_flight, sum(got[:2]) / loads)
            )
        ),
        "Your tile fits and has that share, but another one has a larger share.": (
            lambda got, registers, in_flight, loads: math.isclose(
                1 / got[2], max(1, max(in_flight, sum(got[:2]) / loads) / math.prod(got[:2]))
            )
        ),
    },
    hints=(
        "How many registers does a tile of MR rows need in all? And how many slots does one step of k take "
        "at least: for its FMAs, for its loads, and until the same sums may be used again?",
        "The sums, a row of the panel and one number of A need registers. A step of k takes as long as the "
        "longest of three: its FMAs, one a slot; all that it loads; and the wait for its own sums.",
        "Each sum is used once in a step, so no step is shorter than in_flight. Loaded are the panel's row "
        "and a number of A for each row of the tile. The share is the FMAs over the length of the step.",
    ),
)


# --- 04.edge: tiles of four rows, and what goes wrong where fewer are left ----------------------------------


def _counted_twice(got, A, B) -> bool:
    want = product(A, B)
    twice = (abs(got - 2 * want) <= 1e-3 * abs(want)).all(axis=1) & want.any(axis=1)
    return bool(twice.any())


REST_IS_ZERO = (
    "Rows that are left over when the tiles of four end are 0: does a loop add up all of their products?"
)


def _rest_is_zero(got: np.ndarray, A: np.ndarray, B: np.ndarray) -> bool:
    rest = np.s_[len(A) // 4 * 4 :]
    with np.errstate(invalid="ignore"):
        right = got.shape == (len(A), B.shape[1]) and np.allclose(
            got[: rest.start], product(A, B)[: rest.start], 1e-3
        )
    return right and len(A) % 4 > 0 and not got[rest].any() and B.shape[1] > 0


def _inputs_of_edge(rng: np.random.Generator) -> Iterator[Case]:
    yield from all_inputs(rng)
    # small enough to be counted, and so wide that work on the first product of each sum is seen to be no tile
    yield case(rng, 13, 10, 9, "tiles of four rows, and a row left over")


EDGE = Task(
    id="04.edge",
    title="The last tile",
    minutes=20,
    entry="repaired",
    cases=_inputs_of_edge,
    reference=product,
    comparison=close_product(),
    rules=LOOPS_ONLY,
    counts=CountsOperations(tile=4, most_numbers=300),
    lookalikes={
        "Some rows are twice what they should be: they lie in two tiles, and both add.": _counted_twice,
        REST_IS_ZERO: _rest_is_zero,
        **PRODUCT_SLIPS,
    },
    hints=(
        "Take M = 6: which rows does the first tile compute, which the second? And M = 3: what is M - 4?",
        "Rows 2 and 3 are in both tiles, and each adds. With fewer than four rows, i is negative: the tile "
        "begins before the matrix, and Python's meaning of -1 even makes that look harmless.",
        "Tiles only in range(0, M - 3, 4), stored with = ; then `for i in range(M // 4 * 4, M)` one row at a "
        "time.",
    ),
)


# --- 04.fast: several rows and several k at once, where B is larger than the second cache -------------------

LARGE = 2**25  # multiply-adds from which on the definition would take seconds


def reference(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return A @ B, summed in float64, in the dtype of A; the large inputs are finite."""
    if A.shape[0] * A.shape[1] * B.shape[1] < LARGE:
        return product(A, B)
    return (A.astype(np.float64) @ B.astype(np.float64)).astype(A.dtype)


def _inputs_of_fast(rng: np.random.Generator) -> Iterator[Case]:
    yield from all_inputs(rng)
    for M, K, N in ((101, 103, 102), (1029, 7, 9), (9, 1031, 11), (7, 307, 1035)):  # above 1024, too
        yield case(rng, M, K, N, "large, and nothing is a multiple of four")
    yield case(rng, 517, 515, 518, "larger still, and nothing is a multiple of four", "float32")
    yield case(rng, 512, 512, 512, "as large, and all of it are whole blocks", "float32")


def _k_left_out(got: np.ndarray, A: np.ndarray, B: np.ndarray) -> bool:
    K, tiles = A.shape[1], np.s_[: len(A) // 4 * 4]
    ends = {K // step * step for step in (2, 4, 8)} - {0, K}
    return len(A) > 3 and any(np.allclose(got[tiles], product(A[tiles, :k], B[:k]), 1e-3) for k in ends)


FAST = Task(
    id="04.fast",
    title="A dozen numbers in flight",
    points=4,
    difficulty=4,
    minutes=30,
    entry="matmul_fast",
    cases=_inputs_of_fast,
    reference=reference,
    comparison=close_product(),
    rules=LOOPS_ONLY,
    speed=SpeedRule(
        baseline=loops("matmul_ikj", "ikj", '(fastmath={"contract", "reassoc"})'),
        make_inputs=lambda rng: pair(rng, 1000, 1000, 1000, "float32"),
        # Four rows by two k are 2.0 to 2.3 times as fast in the code for five processors (run on a Zen 5);
        # by four k it is 1.5 in the code for one and 2.5 for another: that must not cost points.
        thresholds=((1.3, 1 / 3), (1.4, 2 / 3), (1.5, 1.0)),
        points=3,
        fastest=2.4,
        on_the_way="More rows of A for each pass over B, and more k for each store of C, bring the rest.",
    ),
    lookalikes={
        REST_IS_ZERO: _rest_is_zero,
        "In whole tiles the sums have no last products: k that are left over need a loop, too.": _k_left_out,
        **PRODUCT_SLIPS,
    },
    hints=(
        "In the order i, k, j one FMA needs two loads and a store. Which of these could serve several FMAs?",
        "A number of B serves several rows of C; a number of C takes several k before it is stored. Four "
        "rows by two k is 8 FMAs for 6 loads and 4 stores. Take the rows out as slices: c0 = C[i], "
        "b0 = B[k].",
        "for i in range(0, M - 3, 4): for k in range(0, K - 1, 2): 8 numbers of A into locals, then for j: "
        "c0[j] += p0 * b0[j] + p1 * b1[j], and c1, c2, c3 the same; then plain loops for the k and the "
        "rows that are left.",
    ),
)


#: In the order of the chapter.
TASKS = (SETS, INDEX, VISITS, PACK, SHAPE, EDGE, FAST, yours.LEAST_EXPLAINED)
