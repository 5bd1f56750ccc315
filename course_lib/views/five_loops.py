"""The five loops around the micro-kernel, drawn: which piece of A, B and C is in hand, and where it lives.

The sizes are those of `circles.simd` on this machine, so the picture and the rung cannot drift apart. The
drawing is a scheme (real blocks have more panels); the numbers beside it are the real ones. After the
pictures of Van Zee and van de Geijn, "BLIS", ACM TOMS 41(3), 2015.
"""

from __future__ import annotations

from dataclasses import dataclass

from course_lib.theme import (
    DEEP_PINK,
    GREY_TINT,
    INK,
    LINE,
    PAPER,
    PINK,
    PINK_TINT,
    QUIET,
    VIOLET,
    VIOLET_TINT,
)
from course_lib.views.live import Steps
from course_lib.views.paper import SANS, Area, Html, Sheet, card, in_bytes, plural, side_by_side

STEPS = ("whole", "loop 5", "loop 4", "loop 3", "loop 2", "loop 1", "micro-kernel")
A_AT, B_AT, C_AT = (14.0, 190.0), (164.0, 28.0), (164.0, 190.0)
DEEP, WIDE, TALL = 120.0, 200.0, 144.0  # of K, N and M in the picture
BLOCKS_K, BLOCKS_N, PANELS, SLIVERS = 3, 2, 4, 6  # how many pieces the scheme cuts them into
PICTURE = (384.0, 352.0)
MEMORY = (430.0, 352.0)


@dataclass(frozen=True)
class Sizes:
    """The tile sizes of the rung for one dtype, and the memories they were chosen for (bytes; 0: unknown)."""

    dtype: str
    itemsize: int
    MR: int
    NR: int
    KC: int
    NC: int
    bits: int  # of a vector register
    registers: int
    l1_bytes: int
    l2_bytes: int
    ahead: int  # rows of a panel that are asked for ahead of time

    @property
    def tile_registers(self) -> int:
        """Vector registers that the tile of C takes."""
        return self.MR * self.row_registers

    @property
    def row_registers(self) -> int:
        """Vector registers that one row of a panel takes."""
        return self.NR * self.itemsize * 8 // self.bits


def sizes(dtype: str = "float32") -> Sizes:
    """Return the sizes that `circles.simd` uses on this machine for float32 or float64."""
    from course_lib.circles import simd
    from course_lib.measure import hardware

    if dtype not in ("float32", "float64"):
        raise ValueError(f"dtype is {dtype!r}, but the simd rung multiplies float32 or float64.")
    itemsize = 4 if dtype == "float32" else 8
    known = {cache.level: cache.size_bytes for cache in hardware.caches()}
    NR = simd.ROW_BYTES // itemsize
    NC = max(simd.BLOCK_BYTES // (simd.KC * itemsize) // NR, 1) * NR
    of_caches = known.get(1, 0), known.get(2, 0)
    tile = simd.MR, NR, simd.KC, NC, simd.BITS, simd.REGISTERS
    return Sizes(dtype, itemsize, *tile, *of_caches, simd.ROWS_AHEAD)


def kernel_loops(dtype: str = "float32") -> KernelLoops:
    """Return a widget that goes from the whole product down to the micro-kernel, one loop a step."""
    return KernelLoops(sizes(dtype))


class KernelLoops(Steps):
    """The walk from loop 5 to the micro-kernel: `frame(step)` draws a step."""

    def __init__(self, own: Sizes) -> None:
        self.sizes, self.last = own, len(STEPS) - 1
        super().__init__(interval_ms=2500)

    def frame(self, step: int) -> str:
        """Return the picture of one step: the matrices, the memories, and what the loop does."""
        head = f'<div style="font-weight:700;margin-bottom:4px">{title(step, self.sizes)}</div>'
        pictures = side_by_side([matrices(step, self.sizes), memories(step, self.sizes)], gap=16)
        style = f"background:{PAPER};color:{INK};padding:8px;font-family:{SANS}"
        return f'<div style="{style}">{head}{pictures}</div>'

    def static(self) -> Html:
        """Return a sheet with the matrices at every loop, and the memories when all are full."""
        titles = [title(step, self.sizes) for step in range(1, len(STEPS))]
        head = '<div style="font-size:12.5px;font-weight:700;min-height:3.9em">'
        panels = [
            f'<div style="width:{PICTURE[0] * 0.69:.0f}px;flex:none">{head}{said}</div>'
            f"{matrices(step, self.sizes)}</div>"
            for step, said in enumerate(titles, start=1)
        ]
        words = " ".join(f"{said}." for said in titles)
        words += " " + " ".join(f"{name}: {held}." for name, held, _ in _tiers(self.sizes))
        body = side_by_side([*panels, memories(self.last, self.sizes)], gap=18)
        return Html(card(body, words, title="Five loops, and every piece lives where it fits"), words)


def title(step: int, own: Sizes) -> str:
    """Return what a step does, in one sentence."""
    MR, NR, KC, NC = own.MR, own.NR, own.KC, own.NC
    return (
        "C = A times B, all three in memory",
        f"Loop 5: B and C in blocks of up to {NC:,} columns (NC)",
        f"Loop 4: depth in blocks of up to {KC} (KC); the block of B is packed into panels, for the L2 cache",
        "Loop 3: rows in bands; one core takes a single band, and the threads of circle 5 one each",
        f"Loop 2: slivers of {MR} rows of A (MR), {KC} deep, read again for each panel: L2 cache",
        f"Loop 1: panels of {NR} columns of B (NR); the tile of C, {MR} x {NR}, moves into registers",
        f"Micro-kernel: for each of the {KC} k a row of the panel meets {MR} numbers of A",
    )[step]


# -- the matrices ------------------------------------------------------------------------------------------


def matrices(step: int, own: Sizes) -> str:
    """Return the drawing of A, B and C with the pieces of a step marked, from the largest to the smallest."""
    on = Sheet()
    on.box(*A_AT, DEEP, TALL, fill=GREY_TINT)
    on.box(*B_AT, WIDE, DEEP, fill=GREY_TINT)
    on.box(*C_AT, WIDE, TALL, fill=GREY_TINT)
    for at in range(1, step + 1):
        _pieces(on, at, is_now=at == step)
    _names(on)
    label = f"{title(step, own)}. The pieces of A, B and C in hand are marked."
    return on.svg(*PICTURE, label)


def _pieces(on: Sheet, step: int, is_now: bool) -> None:
    """Draw the marked areas of one step; what an outer loop holds stays as a pale ground."""
    deep, block = DEEP / BLOCKS_K, WIDE / BLOCKS_N
    panel, sliver = block / PANELS, TALL / SLIVERS
    (ax, ay), (bx, by), (cx, cy) = A_AT, B_AT, C_AT
    k, i, j = ax + deep, ay + 2 * sliver, cx + 2 * panel  # the second block, third sliver, third panel
    areas: dict[str, tuple[Area, ...]] = {
        "loop 5": ((bx, by, block, DEEP), (cx, cy, block, TALL)),
        "loop 4": ((k, ay, deep, TALL), (bx, by + deep, block, deep), (cx, cy, block, TALL)),
        "loop 3": ((k, ay, deep, TALL), (bx, by + deep, block, deep), (cx, cy, block, TALL)),
        "loop 2": ((k, i, deep, sliver), (bx, by + deep, block, deep), (cx, i, block, sliver)),
        "loop 1": ((k, i, deep, sliver), (j, by + deep, panel, deep), (j, i, panel, sliver)),
        "micro-kernel": (
            (k + 0.4 * deep, i, 6, sliver),
            (j, by + 1.4 * deep, panel, 6),
            (j, i, panel, sliver),
        ),
    }
    for x, y, width, height in areas[STEPS[step]]:
        in_c = x >= cx and y >= cy
        if is_now:
            fill, stroke = (PINK, DEEP_PINK) if in_c else (VIOLET, "#5b00a0")
            on.box(x, y, width, height, fill=fill, stroke=stroke, stroke_width=1.5)
        else:
            tint = PINK_TINT if in_c else VIOLET_TINT
            on.box(x, y, width, height, fill=tint, stroke=QUIET, dash="4 2")
    if is_now and STEPS[step] in ("loop 4", "loop 3", "loop 2"):
        for n in range(1, PANELS):
            on.box(bx + n * panel - 0.5, by + deep, 1, deep, fill=PAPER, stroke=None)


def _names(on: Sheet) -> None:
    (ax, ay), (bx, by), (cx, cy) = A_AT, B_AT, C_AT
    on.write(ax, ay - 6, "A  (M x K)", bold=True)
    on.write(bx, by - 8, "B  (K x N)", bold=True)
    on.write(cx, cy - 6, "C  (M x N)", bold=True)
    on.write(14, 40, "violet: read", fill="#5b00a0")
    on.write(14, 58, "pink: computed", fill=DEEP_PINK)
    on.write(14, 76, "dashed: held by", fill=QUIET)
    on.write(14, 92, "a loop further out", fill=QUIET)


# -- the memories ------------------------------------------------------------------------------------------


def memories(step: int, own: Sizes) -> str:
    """Return the drawing of registers, caches and memory with what they hold from a step on."""
    on = Sheet()
    height, y = 78.0, 10.0
    for name, held, since in _tiers(own):
        is_full, is_now = step >= since, step == since or (since == 5 < step)
        fill = PINK_TINT if is_now else (VIOLET_TINT if is_full else GREY_TINT)
        on.box(4, y, MEMORY[0] - 8, height, fill=fill, stroke=DEEP_PINK if is_now else LINE, radius=4)
        on.write(14, y + 20, name, bold=True)
        for n, line in enumerate(held.split("; ") if is_full else ["–"]):
            on.write(14, y + 37 + 16 * n, line, size=12.5)
        y += height + 8
    label = ". ".join(
        f"{name}: {held if step >= since else 'nothing yet'}" for name, held, since in _tiers(own)
    )
    return on.svg(*MEMORY, label)


def _tiers(own: Sizes) -> tuple[tuple[str, str, int], ...]:
    """Return (memory, what it holds, from which step on), nearest first."""
    sliver, block = own.MR * own.KC * own.itemsize, own.KC * own.NC * own.itemsize
    registers = own.tile_registers + own.row_registers + 1
    panels = plural(own.NC // own.NR, "panel")
    return (
        (
            f"registers: {own.registers} of {own.bits} bits",
            f"tile of C, {own.MR} x {own.NR} {own.dtype}: {own.tile_registers} registers for {own.KC} k; "
            f"row of the panel {own.row_registers}, number of A 1: {registers} in use",
            5,
        ),
        (
            f"L1 cache{_of(own.l1_bytes)}",
            f"in passing: for each k a row of the panel and {own.MR} numbers of A; "
            f"the panel is asked for {own.ahead} rows ahead: {in_bytes(own.ahead * own.NR * own.itemsize)}",
            6,
        ),
        (
            f"L2 cache{_of(own.l2_bytes)}",
            f"packed block of B, {own.KC} x {own.NC:,}: {in_bytes(block)}; used for every sliver of A; "
            f"sliver of A, {own.MR} x {own.KC}: {in_bytes(sliver)}, used for {panels}",
            2,
        ),
        ("memory and further caches", "A, B and C; each number of C comes and goes K / KC times", 0),
    )


def _of(size: int) -> str:
    return f": {in_bytes(size)}" if size else ""
