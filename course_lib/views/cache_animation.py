"""Lines entering and leaving a small cache while a loop nest runs: the six orders, and blocked.

What is drawn is what the simulator does (`simulators.cache`), access by access, for the trace of the nest
(`simulators.traces`) as its statement is written: load A, load B, load C, store C.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from course_lib.arguments import refusal, whole
from course_lib.theme import GREY, INK, PAPER
from course_lib.views.live import Live, Player, widgets
from course_lib.views.loop_orders import AXES, COLOURS, ORDERS, PANEL
from course_lib.views.paper import QUIET, Html, box, card, note, plural, side_by_side, svg, tag, write

BLOCKED = "blocked"
NESTS = (*ORDERS, BLOCKED)
ITEMSIZE = 8
LARGEST = 16
SIDE = 20.0  # of an element
GAP = 30.0  # between two matrices
TOP = 66.0
SLOT = 54.0  # a line in the drawing of the cache

Line = tuple[str, int, int]  # matrix, row, number of the line in its row


def cache_walk(
    nest: str = "ikj", n: int = 8, *, block: int = 4, lines: int = 12, line: int = 4, ways: int | None = None
) -> CacheWalker:
    """Return a widget that runs C += A @ B, n x n float64, step by step over a small cache.

    nest: one of the six loop orders, or "blocked" (blocks of `block`, inside a block ikj).
    lines, line: the cache holds so many lines of so many elements; ways: of a set, None: fully associative.
    With the given values three blocks of 4 x 4 just fill the cache.
    """
    _checked(nest, n, block, lines, line, ways)
    return CacheWalker(nest, CacheSetting(n, block, lines, line, ways))


@dataclass(frozen=True)
class CacheSetting:
    """Matrices of n x n elements, blocks, and a cache of `lines` lines of `line` elements."""

    n: int
    block: int
    lines: int
    line: int
    ways: int | None

    @property
    def cache(self) -> str:
        """The cache in words."""
        ways = "fully associative" if self.ways is None else plural(self.ways, "way")
        return f"{self.lines} lines of {self.line} numbers, {ways}"


@dataclass(frozen=True)
class CacheMoment:
    """One step of the innermost loop: where it is, what it touched, and what the cache then holds."""

    index: dict[str, int]  # i, j, k
    touched: dict[str, tuple[Line, bool]]  # matrix -> its line, and whether it was in the cache
    evicted: tuple[Line, ...]
    slots: tuple[Line | None, ...]  # the cache's places, set by set, the line used last first; None: empty
    misses: dict[str, int]  # so far
    hits: dict[str, int]


@functools.lru_cache(maxsize=32)
def moments(nest: str, setting: CacheSetting) -> tuple[CacheMoment, ...]:
    """Return every step of the nest, simulated."""
    from course_lib.simulators import traces
    from course_lib.simulators.cache import Cache, Level

    n, bytes_in_line = setting.n, setting.line * ITEMSIZE
    options = {"itemsize": ITEMSIZE, "in_registers": False}
    trace = (
        traces.blocked(n, n, n, setting.block, **options)
        if nest == BLOCKED
        else traces.loops(nest, n, n, n, **options)
    )
    cache = Cache([Level(setting.lines * bytes_in_line, setting.ways, bytes_in_line)])
    names = {address: name for name, (address, _) in trace.arrays.items()}
    starts = sorted(names, reverse=True)

    def line_at(address: int) -> Line:
        start = next(start for start in starts if start <= address)
        row, column = trace.matrices[names[start]].element(address)
        return names[start], row, column // setting.line

    def padded(lines: list[tuple[int, bool]]) -> list[Line | None]:
        ways = setting.ways or setting.lines
        return [line_at(address) for address, _ in lines] + [None] * (ways - len(lines))

    addresses, found, held = trace.addresses, [], ()
    misses, hits = dict.fromkeys(AXES, 0), dict.fromkeys(AXES, 0)
    for step in range(n**3):
        before, touched, index = held, {}, {}
        for access in range(4 * step, 4 * step + 4):
            cache.run(addresses[access : access + 1])
            line = line_at(int(addresses[access]))
            is_hit = line in held
            held = tuple(slot for lines in cache.contents() for slot in padded(lines))
            name = line[0]
            (hits if is_hit else misses)[name] += 1
            touched.setdefault(name, (line, is_hit))
            index.update(zip(AXES[name], trace.matrices[name].element(int(addresses[access])), strict=True))
        gone = tuple(old for old in before if old and old not in held)
        found.append(CacheMoment(index, touched, gone, held, dict(misses), dict(hits)))
    return tuple(found)


def total_misses(nest: str, setting: CacheSetting) -> int:
    """Return the misses of the whole nest."""
    return sum(moments(nest, setting)[-1].misses.values())


class CacheWalker(Live):
    """The animation: `.nest` is the drop-down, `.player` the slider; `frame(nest, step)` draws one moment."""

    def __init__(self, nest: str, setting: CacheSetting) -> None:
        kit = widgets()
        self.setting = setting
        self.last = setting.n**3 - 1
        self.nest = kit.Dropdown(
            options=NESTS, value=nest, description="loops", tooltip="Keyboard: arrow keys choose a nest"
        )
        jumps = {
            "next miss »": ("Jump to the next step that misses", self._next_miss),
            "next run »": ("Jump to where the innermost loop starts again", self._next_run),
        }
        self.player = Player(
            self.last, lambda step: self.frame(self.nest.value, step), jumps, interval_ms=350, readout=False
        )
        self.nest.observe(lambda _: self.player.restart(self.last), names="value")
        self.widget = kit.VBox([self.nest, self.player.box])

    def frame(self, nest: str, step: int) -> str:
        """Return the picture of one step as SVG."""
        return frame(nest, self.setting, step)

    def static(self) -> Html:
        """Return where each nest stands after the same number of steps, the one that misses least first."""
        step = min(self.setting.n**2 + self.setting.n // 2, self.last)
        totals = {nest: total_misses(nest, self.setting) for nest in NESTS}
        ranking = sorted(NESTS, key=totals.get)
        panels = [frame(nest, self.setting, step, is_small=True) for nest in ranking]
        said = ", ".join(f"{nest} {totals[nest]:,}" for nest in ranking)
        n, block = self.setting.n, self.setting.block
        words = (
            f"Each of the nests after {step + 1} of {n**3:,} steps of C += A @ B with {n} x {n} matrices "
            f"and a cache of {self.setting.cache}; blocked has blocks of {block} x {block}. "
            f"Misses when all steps are done: {said}."
        )
        best, worst = ranking[0], ranking[-1]
        title = f"The same {n**3:,} steps: {best} misses {totals[best]:,} times, {worst} {totals[worst]:,}"
        return Html(card(side_by_side(panels) + note(" ".join([*_LEGEND, words])), words, title=title), words)

    def _next_miss(self, step: int) -> int:
        later = moments(self.nest.value, self.setting)
        return next((s for s in range(step + 1, self.last + 1) if _is_miss(later[s])), self.last)

    def _next_run(self, step: int) -> int:
        all_steps = moments(self.nest.value, self.setting)
        inner = _inner(self.nest.value)
        for later in range(step + 1, self.last + 1):
            if all_steps[later].index[inner] != all_steps[later - 1].index[inner] + 1:
                return later
        return self.last


_LEGEND = (
    "Full colour with a dot: touched now. Double frame: it was not in the cache, a miss.",
    "Light: in the cache. Dashed and crossed out: pushed out just now. B3·1: row 3 of B, line 1 of that row.",
)


def frame(nest: str, setting: CacheSetting, step: int, is_small: bool = False) -> str:
    """Return the matrices, the cache and the counts after a step of the nest, as SVG."""
    moment = moments(nest, setting)[step]
    i, j, k = (moment.index[name] for name in "ijk")
    statement = f"C[{i}, {j}] += A[{i}, {k}] * B[{k}, {j}]"
    name = f"{nest} {setting.block} × {setting.block}" if nest == BLOCKED else nest
    parts = [write(12, 24, name, size=17, bold=True)]
    parts.append(write(12 + 10.5 * len(name) + 14, 24, statement, size=14, mono=True))
    wide = setting.n * SIDE
    for place, matrix in enumerate(AXES):
        parts += _matrix(matrix, 12 + place * (wide + GAP), setting, moment)
    width = 12 + 3 * (wide + GAP)
    bottom = TOP + wide + 26
    parts += _counts(moment, bottom, wide)
    misses, accesses = sum(moment.misses.values()), 4 * (step + 1)
    said = f"step {step + 1:,} of {setting.n**3:,}: {_misses(misses)} in {accesses:,} accesses"
    label = (
        f"{name}, {said}. {statement}. {_touched_in_words(moment)}. "
        f"Pushed out: {', '.join(map(_name, moment.evicted)) or 'nothing'}."
    )
    if is_small:
        total = total_misses(nest, setting)
        parts.append(write(12, bottom + 50, f"{said};", size=14))
        parts.append(write(12, bottom + 70, f"at the end {_misses(total)}", size=14, bold=True))
        return svg(width, bottom + 82, parts, label, widest=PANEL)
    parts.append(write(12, bottom + 50, f"{said}. {_touched_in_words(moment)}", size=13))
    slots, below = _slots(moment, setting, bottom + 84, max(width, 700))
    parts += slots
    for number, sentence in enumerate(_LEGEND):
        parts.append(write(12, below + 22 + 17 * number, sentence, size=12, fill=QUIET))
    return svg(max(width, 724), below + 22 + 17 * len(_LEGEND), parts, label)


def _matrix(name: str, x: float, setting: CacheSetting, moment: CacheMoment) -> list[str]:
    """Draw one matrix: a frame for each line, its elements as ticks."""
    strong, tint, ink = COLOURS[name]
    down, along = AXES[name]
    parts = [write(x, TOP - 10, f"{name}[{down}, {along}]", size=13, fill=ink, bold=True)]
    now, was_hit = moment.touched[name]
    wide = setting.line * SIDE
    for row in range(setting.n):
        for number in range(-(-setting.n // setting.line)):
            line = (name, row, number)
            left, top = x + number * wide, TOP + row * SIDE
            ground = strong if line == now else tint if line in moment.slots else PAPER
            parts.append(box(left, top, wide, SIDE, fill=ground, stroke=GREY, stroke_width=0.8))
            parts += [_tick(left + e * SIDE, top, line == now) for e in range(1, setting.line)]
            if line in moment.evicted:
                parts += _crossed_out(left, top, wide)
    row, number = now[1:]
    if not was_hit:
        parts += _double_frame(x + number * wide, TOP + row * SIDE, wide)
    column = moment.index[along]
    centre = {"cx": x + (column + 0.5) * SIDE, "cy": TOP + (row + 0.5) * SIDE}
    parts.append(tag("circle", **centre, r=SIDE / 4.5, fill=PAPER, stroke=INK, stroke_width=1))
    return parts


def _tick(x: float, y: float, is_dark: bool) -> str:
    colour = PAPER if is_dark else GREY
    return tag("line", x1=x, y1=y + SIDE * 0.72, x2=x, y2=y + SIDE, stroke=colour, stroke_width=0.7)


def _double_frame(x: float, y: float, wide: float) -> list[str]:
    """Dark outside and light inside, so that it shows on every colour."""
    return [
        box(x, y, wide, SIDE, fill="none", stroke=INK, stroke_width=3),
        box(x + 3, y + 3, wide - 6, SIDE - 6, fill="none", stroke=PAPER, stroke_width=1.5),
    ]


def _crossed_out(x: float, y: float, wide: float) -> list[str]:
    line = {"stroke": INK, "stroke_width": 1.3}
    return [
        box(x + 1.5, y + 1.5, wide - 3, SIDE - 3, fill="none", stroke=INK, stroke_width=1.5, dash="4 3"),
        tag("line", x1=x + 3, y1=y + 3, x2=x + wide - 3, y2=y + SIDE - 3, **line),
        tag("line", x1=x + 3, y1=y + SIDE - 3, x2=x + wide - 3, y2=y + 3, **line),
    ]


def _counts(moment: CacheMoment, y: float, wide: float) -> list[str]:
    """Write under each matrix how often it missed and hit so far."""
    parts = []
    for place, name in enumerate(AXES):
        x = 12 + place * (wide + GAP)
        parts.append(write(x, y, _misses(moment.misses[name]), bold=True, fill=COLOURS[name][2]))
        parts.append(write(x, y + 18, plural(moment.hits[name], "hit"), size=12, fill=QUIET))
    return parts


def _slots(moment: CacheMoment, setting: CacheSetting, y: float, width: float) -> tuple[list[str], float]:
    """Draw what the cache holds as a row of slots that wraps; return it with its lower edge."""
    order = "used last first" if setting.ways is None else "set by set, used last first"
    parts = [write(12, y - 8, f"the cache, {order}: {setting.cache}", bold=True)]
    in_a_row = max(1, int((width - 12) // SLOT))
    for number in range(setting.lines):
        x, top = 12 + number % in_a_row * SLOT, y + number // in_a_row * 28
        held = moment.slots[number]
        is_now = held is not None and any(held == line for line, _ in moment.touched.values())
        ground = PAPER if held is None else COLOURS[held[0]][0 if is_now else 1]
        parts.append(box(x, top, SLOT, 24, fill=ground, stroke=GREY, dash=None if held else "3 3"))
        if held:
            ink = PAPER if is_now else INK
            middle = x + SLOT / 2, top + 16
            parts.append(write(*middle, _name(held), size=11.5, anchor="middle", fill=ink, bold=is_now))
    return parts, y + ((setting.lines - 1) // in_a_row + 1) * 28


def _name(line: Line) -> str:
    """Return what a line is called: "B3·1", row 3, second line of the row."""
    return f"{line[0]}{line[1]}·{line[2]}"


def _misses(count: int) -> str:
    return "1 miss" if count == 1 else f"{count:,} misses"


def _touched_in_words(moment: CacheMoment) -> str:
    return ", ".join(f"{name} {'hit' if is_hit else 'miss'}" for name, (_, is_hit) in moment.touched.items())


def _is_miss(moment: CacheMoment) -> bool:
    return not all(is_hit for _, is_hit in moment.touched.values())


def _inner(nest: str) -> str:
    return "j" if nest == BLOCKED else nest[-1]


def _checked(nest: str, n: int, block: int, lines: int, line: int, ways: int | None) -> None:
    if nest not in NESTS:
        raise refusal("nest", nest, f"one of {', '.join(NESTS)}")
    values = {"n": n, "block": block, "lines": lines, "line": line, "ways": lines if ways is None else ways}
    for what, value in values.items():
        whole(what, value)
    if n > LARGEST:
        raise ValueError(f"n is {n}, but at most {LARGEST} can be followed by eye: take a smaller matrix.")
    if line & (line - 1) or n % line:
        raise ValueError(
            f"line is {line}, but a line must hold 1, 2, 4, … elements, and a row of {n} be whole lines."
        )
    if lines % values["ways"]:
        raise ValueError(f"lines is {lines}, but it must be a multiple of the {ways} ways of a set.")
