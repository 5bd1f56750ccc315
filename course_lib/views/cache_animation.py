"""Lines entering and leaving a small cache while a loop nest runs: the six orders, and blocked.

What is drawn is what the simulator does (`simulators.cache`), access by access, for the trace of the nest
(`simulators.traces`) as its statement is written: load A, load B, load C, store C.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from course_lib.arguments import one_of
from course_lib.theme import GREY, INK, PAPER, QUIET
from course_lib.views.live import Steps, widgets
from course_lib.views.loop_orders import AXES, COLOURS, ORDERS, PANEL
from course_lib.views.paper import Html, Sheet, card, note, plural, side_by_side

BLOCKED = "blocked"
NESTS = (*ORDERS, BLOCKED)
N, BLOCK, ITEMSIZE = 8, 4, 8  # matrices of N x N elements, blocks
LINES, LINE = 12, 4  # the cache: so many lines of so many elements
CACHE = f"{LINES} lines of {LINE} numbers, fully associative"
SIDE = 20.0  # of an element
GAP = 30.0  # between two matrices
TOP = 66.0
SLOT = 54.0  # a line in the drawing of the cache

Line = tuple[str, int, int]  # matrix, row, number of the line in its row


def cache_walk(nest: str = "ikj") -> CacheWalker:
    """Return a widget that runs C += A @ B, 8 x 8 float64, step by step over a small cache.

    nest: one of the six loop orders, or "blocked" (blocks of 4 x 4, inside a block ikj). The cache holds 12
    lines of 4 elements anywhere: three blocks just fill it.
    """
    return CacheWalker(one_of("nest", nest, NESTS))


@dataclass(frozen=True)
class CacheMoment:
    """One step of the innermost loop: where it is, what it touched, and what the cache then holds."""

    index: dict[str, int]  # i, j, k
    touched: dict[str, tuple[Line, bool]]  # matrix -> its line, and whether it was in the cache
    evicted: tuple[Line, ...]
    held: tuple[Line, ...]  # by the cache, the line used last first
    misses: dict[str, int]  # so far
    hits: dict[str, int]


@functools.cache
def moments(nest: str) -> tuple[CacheMoment, ...]:
    """Return every step of the nest, simulated."""
    from course_lib.simulators import traces
    from course_lib.simulators.cache import Cache, Level

    options = {"itemsize": ITEMSIZE, "in_registers": False}
    if nest == BLOCKED:
        trace = traces.blocked(N, N, N, BLOCK, **options)
    else:
        trace = traces.loops(nest, N, N, N, **options)
    cache = Cache([Level(LINES * LINE * ITEMSIZE, None, LINE * ITEMSIZE)])
    names = {address: name for name, (address, _) in trace.arrays.items()}
    starts = sorted(names, reverse=True)

    def line_at(address: int) -> Line:
        start = next(start for start in starts if start <= address)
        row, column = trace.matrices[names[start]].element(address)
        return names[start], row, column // LINE

    addresses, found, held = trace.addresses, [], ()
    misses, hits = dict.fromkeys(AXES, 0), dict.fromkeys(AXES, 0)
    for step in range(N**3):
        before, touched, index = held, {}, {}
        for access in range(4 * step, 4 * step + 4):
            cache.run(addresses[access : access + 1])
            line = line_at(int(addresses[access]))
            is_hit = line in held
            (lines,) = cache.contents()
            held = tuple(line_at(first) for first, _ in lines)
            name = line[0]
            (hits if is_hit else misses)[name] += 1
            touched.setdefault(name, (line, is_hit))
            index.update(zip(AXES[name], trace.matrices[name].element(int(addresses[access])), strict=True))
        gone = tuple(old for old in before if old not in held)
        found.append(CacheMoment(index, touched, gone, held, dict(misses), dict(hits)))
    return tuple(found)


def total_misses(nest: str) -> int:
    """Return the misses of the whole nest."""
    return sum(moments(nest)[-1].misses.values())


class CacheWalker(Steps):
    """The animation: `.nest` is the drop-down."""

    def __init__(self, nest: str) -> None:
        self.last = N**3 - 1
        self.nest = widgets().Dropdown(
            options=NESTS, value=nest, description="loops", tooltip="Keyboard: arrow keys choose a nest"
        )
        jumps = {
            "next miss »": ("Jump to the next step that misses", self.next_where(self._misses)),
            "next run »": ("Jump to where the innermost loop starts again", self.next_where(self._begins)),
        }
        super().__init__(jumps, self.nest, interval_ms=350, readout=False)

    def frame(self, step: int) -> str:
        """Return the picture of one step of the chosen nest as SVG."""
        return frame(self.nest.value, step)

    def static(self) -> Html:
        """Return where each nest stands after the same number of steps, the one that misses least first."""
        step = min(N**2 + N // 2, self.last)
        totals = {nest: total_misses(nest) for nest in NESTS}
        ranking = sorted(NESTS, key=totals.get)
        panels = [frame(nest, step, is_small=True) for nest in ranking]
        said = ", ".join(f"{nest} {totals[nest]:,}" for nest in ranking)
        words = (
            f"Each of the nests after {step + 1} of {N**3:,} steps of C += A @ B with {N} x {N} matrices "
            f"and a cache of {CACHE}; blocked has blocks of {BLOCK} x {BLOCK}. "
            f"Misses when all steps are done: {said}."
        )
        best, worst = ranking[0], ranking[-1]
        title = f"The same {N**3:,} steps: {best} misses {totals[best]:,} times, {worst} {totals[worst]:,}"
        return Html(card(side_by_side(panels) + note(" ".join([*_LEGEND, words])), words, title=title), words)

    def _misses(self, step: int) -> bool:
        touched = moments(self.nest.value)[step].touched
        return not all(is_hit for _, is_hit in touched.values())

    def _begins(self, step: int) -> bool:
        inner = "j" if self.nest.value == BLOCKED else self.nest.value[-1]
        before, now = moments(self.nest.value)[step - 1 : step + 1]
        return now.index[inner] != before.index[inner] + 1


_LEGEND = (
    "Full colour with a dot: touched now. Double frame: it was not in the cache, a miss.",
    "Light: in the cache. Dashed and crossed out: pushed out just now. B3·1: row 3 of B, line 1 of that row.",
)


def frame(nest: str, step: int, is_small: bool = False) -> str:
    """Return the matrices, the cache and the counts after a step of the nest, as SVG."""
    on = Sheet()
    moment = moments(nest)[step]
    i, j, k = (moment.index[name] for name in "ijk")
    statement = f"C[{i}, {j}] += A[{i}, {k}] * B[{k}, {j}]"
    name = f"{nest} {BLOCK} × {BLOCK}" if nest == BLOCKED else nest
    on.write(12, 24, name, size=17, bold=True)
    on.write(12 + 10.5 * len(name) + 14, 24, statement, size=14, mono=True)
    wide = N * SIDE
    width = 12 + 3 * (wide + GAP)
    bottom = TOP + wide + 26
    for place, matrix in enumerate(AXES):  # under each matrix how often it missed and hit so far
        x = 12 + place * (wide + GAP)
        _matrix(on, matrix, x, moment)
        on.write(x, bottom, plural(moment.misses[matrix], "miss"), bold=True, fill=COLOURS[matrix][2])
        on.write(x, bottom + 18, plural(moment.hits[matrix], "hit"), size=12, fill=QUIET)
    misses, accesses = sum(moment.misses.values()), 4 * (step + 1)
    said = f"step {step + 1:,} of {N**3:,}: {plural(misses, 'miss')} in {accesses:,} accesses"
    label = (
        f"{name}, {said}. {statement}. {_touched_in_words(moment)}. "
        f"Pushed out: {', '.join(map(_name, moment.evicted)) or 'nothing'}."
    )
    if is_small:
        total = total_misses(nest)
        on.write(12, bottom + 50, f"{said};", size=14)
        on.write(12, bottom + 70, f"at the end {plural(total, 'miss')}", size=14, bold=True)
        return on.svg(width, bottom + 82, label, widest=PANEL)
    on.write(12, bottom + 50, f"{said}. {_touched_in_words(moment)}", size=13)
    below = _slots(on, moment, bottom + 84, max(width, 700))
    for number, sentence in enumerate(_LEGEND):
        on.write(12, below + 22 + 17 * number, sentence, size=12, fill=QUIET)
    return on.svg(max(width, 724), below + 22 + 17 * len(_LEGEND), label)


def _matrix(on: Sheet, name: str, x: float, moment: CacheMoment) -> None:
    """Draw one matrix: a frame for each line, its elements as ticks."""
    strong, tint, dark = COLOURS[name]
    down, along = AXES[name]
    on.write(x, TOP - 10, f"{name}[{down}, {along}]", size=13, fill=dark, bold=True)
    now, was_hit = moment.touched[name]
    wide = LINE * SIDE
    for row in range(N):
        for number in range(N // LINE):
            line = (name, row, number)
            left, top = x + number * wide, TOP + row * SIDE
            ground = strong if line == now else tint if line in moment.held else PAPER
            on.box(left, top, wide, SIDE, fill=ground, stroke=GREY, stroke_width=0.8)
            for x_tick in (left + e * SIDE for e in range(1, LINE)):
                ink = PAPER if line == now else GREY
                on.line(x_tick, top + SIDE * 0.72, x_tick, top + SIDE, stroke=ink, width=0.7)
            if line in moment.evicted:
                _crossed_out(on, left, top, wide)
    row, number = now[1:]
    if not was_hit:
        _double_frame(on, x + number * wide, TOP + row * SIDE, wide)
    column = moment.index[along]
    centre = {"cx": x + (column + 0.5) * SIDE, "cy": TOP + (row + 0.5) * SIDE}
    on.tag("circle", **centre, r=SIDE / 4.5, fill=PAPER, stroke=INK, stroke_width=1)


def _double_frame(on: Sheet, x: float, y: float, wide: float) -> None:
    """Dark outside and light inside, so that it shows on every colour."""
    on.box(x, y, wide, SIDE, fill="none", stroke=INK, stroke_width=3)
    on.box(x + 3, y + 3, wide - 6, SIDE - 6, fill="none", stroke=PAPER, stroke_width=1.5)


def _crossed_out(on: Sheet, x: float, y: float, wide: float) -> None:
    on.box(x + 1.5, y + 1.5, wide - 3, SIDE - 3, fill="none", stroke=INK, stroke_width=1.5, dash="4 3")
    on.line(x + 3, y + 3, x + wide - 3, y + SIDE - 3, width=1.3)
    on.line(x + 3, y + SIDE - 3, x + wide - 3, y + 3, width=1.3)


def _slots(on: Sheet, moment: CacheMoment, y: float, width: float) -> float:
    """Draw what the cache holds as a row of slots that wraps; return its lower edge."""
    on.write(12, y - 8, f"the cache, used last first: {CACHE}", bold=True)
    in_a_row = int((width - 12) // SLOT)
    now = [line for line, _ in moment.touched.values()]
    for number in range(LINES):
        area = 12 + number % in_a_row * SLOT, y + number // in_a_row * 28, SLOT, 24
        if number < len(moment.held):
            line = moment.held[number]
            strong, tint, _ = COLOURS[line[0]]
            look = {"ink": PAPER, "bold": True, "fill": strong} if line in now else {"fill": tint}
            on.cell(area, 16, _name(line), size=11.5, stroke=GREY, **look)
        else:
            on.box(*area, stroke=GREY, dash="3 3")
    return y + ((LINES - 1) // in_a_row + 1) * 28


def _name(line: Line) -> str:
    """Return what a line is called: "B3·1", row 3, second line of the row."""
    return f"{line[0]}{line[1]}·{line[2]}"


def _touched_in_words(moment: CacheMoment) -> str:
    return ", ".join(f"{name} {'hit' if is_hit else 'miss'}" for name, (_, is_hit) in moment.touched.items())
