"""What a GPU kernel's inner loop is compiled to: machine code, what each instruction does, and what it costs.

Needs no GPU. With the packages of `.[cubin]` any kernel is compiled here; without them the course's own rungs
are shown as they were compiled elsewhere (`measure.code_listing`), for anything else there is one sentence.
Kinds are told apart by a word and a sign, and coloured besides. Long runs of FMAs, and of what computes
addresses, are shortened.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from course_lib.measure import code_listing, machine
from course_lib.measure.code_listing import MATRICES, ListedInstruction, Listing
from course_lib.measure.sizes import in_bytes
from course_lib.simulators.gpu.occupancy import occupancy
from course_lib.theme import DEEP_PINK, GREY_TINT, INK, LINE, PAPER, PINK_TINT, QUIET, VIOLET_TINT
from course_lib.views.live import FITS, Live, buttons, widgets
from course_lib.views.paper import (
    MONO,
    Html,
    card,
    escape,
    note,
    plural,
    side_by_side,
    table,
    table_of,
    upper,
)

Capability = tuple[int, int]
FIRST = (9, 0)  # an H100 or H200: what is shown first
OFFERED = ((7, 5), (8, 0), (8, 6), (8, 9), FIRST)  # to choose from, where any can be compiled


def gpu_code(kernel: Any, *args: Any, block: int | tuple[int, ...] | None = None) -> KernelCode | Html:
    """Return a view of the inner loop of a `@cuda.jit` kernel: SASS with each instruction's kind and source.

    args: examples of its arguments (NumPy arrays, numbers) or Numba types; the course's own rungs need none.
    block: threads in a block, or its shape, for the occupancy (the rungs and kernels with launch_bounds know
    theirs).
    Raises TypeError for something that is no kernel, ValueError without arguments where they are needed, and
    CannotCompile with the reason.
    """
    if not callable(getattr(kernel, "py_func", None)):
        raise TypeError(f"kernel is {kernel!r}, but a function with @cuda.jit is needed.")
    shipped = [one for one in code_listing.shipped() if one.fingerprint == code_listing.fingerprint(kernel)]
    threads = _threads(kernel, block, shipped)
    if sentence := machine.missing("cubin"):
        if shipped and (not args or _in_words(args) == MATRICES):
            found = {one.cc: one for one in shipped}
            return KernelCode(kernel, lambda cc: replace(found[cc], threads=threads), list(found))
        return Html(card(f'<div style="max-width:76ch">{escape(sentence)}</div>', sentence), sentence)
    if not args and not shipped:
        raise ValueError(
            f"{kernel.__name__} is compiled for the types of its arguments: give examples, "
            f"gpu_code({kernel.__name__}, A, B, C)."
        )
    compiled = functools.cache(lambda cc: _compiled(kernel, args, cc, threads))
    compiled(FIRST)  # what cannot be compiled is said now
    return KernelCode(kernel, compiled, OFFERED)


class KernelCode(Live):
    """The listing with its choices: `.cc`, `.language` ("SASS" or "PTX"), `.only` a kind, `.whole` runs."""

    def __init__(
        self,
        kernel: Any,
        listing: Callable[[Capability], Listing],
        offered: Sequence[Capability],
    ) -> None:
        self._kernel, self._listing = kernel, listing
        kit = widgets()
        self.language = buttons(
            ["SASS", "PTX"], tooltips=["The machine code", "What the machine code is made from"]
        )
        capabilities = [(f"{major}.{minor}", (major, minor)) for major, minor in offered]
        names = [f"Compute capability {name}" for name, _ in capabilities]
        self.cc = buttons(capabilities, tooltips=names, value=FIRST)
        self.only = buttons(self._kinds())
        look = {"indent": False, "layout": {"width": "150px"}}
        self.whole = kit.Checkbox(value=False, description="every instruction", **look)
        self.picture = kit.HTML(self.frame())
        for control in (self.cc, self.language):
            control.observe(lambda _: self._other(), names="value")
        for control in (self.only, self.whole):
            control.observe(lambda _: self._draw(), names="value")
        row = {"flex_flow": "row wrap", "align_items": "center", "grid_gap": "0 14px"}
        above, below = [self.language, self.cc, self.whole], [self.only]
        self.widget = kit.VBox([kit.HBox(above, layout=row), kit.HBox(below, layout=row), self.picture])

    @property
    def listing(self) -> Listing:
        """What is shown now."""
        return self._listing(self.cc.value)

    def frame(self) -> str:
        """Return the picture of the present choice as HTML."""
        only = self.only.value
        body = drawn(self._kernel, self.listing, self.language.value, only, self.whole.value).body
        return f'<div style="{FITS}">{body}</div>'  # as wide as the cell, not as the code

    def static(self) -> Html:
        """Return SASS with its totals, and PTX behind a heading that opens at a key or a click."""
        listing = self.listing
        shown = drawn(self._kernel, listing, "SASS")
        made_from = _region(_rows(self._kernel, listing.lines("PTX"), "", False), "PTX")
        ptx = (
            '<details style="margin-top:10px"><summary style="cursor:pointer;font-weight:600">'
            f"PTX, from which it is made ({plural(len(listing.ptx), 'instruction')})</summary>"
            f'<div style="margin-top:6px">{made_from}</div></details>'
        )
        text = shown.text + "\n" + "\n".join(f"{line.kind:13} {line.text}" for line in listing.lines("SASS"))
        return Html(shown.body.removesuffix("</div>") + ptx + "</div>" if listing.ptx else shown.body, text)

    def _kinds(self) -> list[tuple[str, str]]:
        kinds = dict.fromkeys(line.kind for line in self.listing.lines(self.language.value))
        return [("all kinds", ""), *((kind, kind) for kind in kinds)]

    def _other(self) -> None:
        """Another code: its kinds are others, too."""
        before, kinds = self.only.value, self._kinds()
        self.only.options = kinds  # takes the first, all
        if before in [value for _, value in kinds]:
            self.only.value = before
        self._draw()

    def _draw(self) -> None:
        self.picture.value = self.frame()


# -- where a listing comes from ----------------------------------------------------------------------------


def _compiled(kernel: Any, args: tuple, cc: Capability, threads: int | None) -> Listing:
    from numba import float32, types

    from course_lib.measure.device_code import compile_kernel

    words = _in_words(args) if args else MATRICES
    code = compile_kernel(kernel, *(args or (types.Array(float32, 2, "C"),) * 3), cc=cc)
    return code_listing.of(code, kernel, words, threads)


def _in_words(args: tuple) -> tuple[str, ...]:
    import numba
    from numba.core.types import Type

    return tuple(str(one if isinstance(one, Type) else numba.typeof(one)) for one in args)


def _threads(kernel: Any, block: int | tuple[int, ...] | None, shipped: list[Listing]) -> int | None:
    """Return the threads of a block, as far as anybody says: the caller, the rung, or launch_bounds."""
    if block is not None:
        return block if isinstance(block, int) else math.prod(block)
    if shipped:
        return shipped[0].threads
    bounds = getattr(kernel, "targetoptions", {}).get("launch_bounds")
    return bounds[0] if isinstance(bounds, tuple | list) else bounds


RUN = 6  # of a kind in a row, from which on they are shortened
LONG = ("FMA", "index")
#: For each kind a sign, the ground it stands on and its ink.
LOOKS = {
    "FMA": ("×+", PINK_TINT, DEEP_PINK),
    "matrix product": ("××", PINK_TINT, DEEP_PINK),
    "arithmetic": ("+", PINK_TINT, INK),
    "shared load": ("←s", VIOLET_TINT, "#5b00a0"),
    "shared store": ("→s", VIOLET_TINT, "#5b00a0"),
    "global load": ("⇐g", "#d8f1ee", "#005c55"),
    "global store": ("⇒g", "#d8f1ee", "#005c55"),
    "atomic": ("⇔g", "#d8f1ee", "#005c55"),
    "local memory": ("!!", "#ffe6cc", "#8a3d00"),
    "barrier": ("▮▮", INK, PAPER),
    "shuffle": ("⇄", GREY_TINT, INK),
    "control": ("↺", PAPER, INK),
    "index": ("·", PAPER, QUIET),
}
SPILL = "local memory"


def drawn(kernel: Any, listing: Listing, language: str, only: str = "", whole: bool = False) -> Html:
    """Return the listing in one language; `only` shows one kind, `whole` every instruction."""
    lines = listing.lines(language)
    said = finding(listing)
    if not lines:
        return Html(card(_figures(listing) + note(listing.origin), said, title=said), said)
    rows = _rows(kernel, lines, only, whole)
    remark = "" if language == "SASS" else note(_ABOUT_PTX)
    body = f'<div style="margin:10px 0 0">{_region(rows, language)}</div>'
    content = _figures(listing) + body + remark + note(listing.origin)
    return Html(card(content, said, title=said), "\n".join([said, *facts(listing), listing.origin]))


_ABOUT_PTX = (
    "PTX has as many registers as it likes (%f1, %rd1). The last compiler, ptxas, gives it those there are, "
    "puts loads early, and may write several turns of a loop out: a turn here can be part of one in SASS, "
    "whose totals stand above."
)


def finding(listing: Listing) -> str:
    """Return the listing in a sentence: how much of the loop computes, and what the rest does."""
    where = f"{listing.kernel} for compute capability {listing.cc[0]}.{listing.cc[1]}"
    if not listing.loop:
        return f"{where} has no loop with FMAs"
    kinds = listing.kinds
    spills = f", {kinds[SPILL]} go to local memory" if kinds[SPILL] else ""
    return (
        f"{where}: {kinds['FMA']} of {len(listing.loop)} instructions a turn are FMAs "
        f"({100 * listing.fma_share:.0f} %){spills}"
    )


def facts(listing: Listing) -> list[str]:
    """Return what a thread and a block take, and the occupancy that leaves, in sentences."""
    spilled = plural(listing.spilled_bytes, "byte") if listing.spilled_bytes else "nothing"
    said = [
        f"{plural(listing.registers, 'register')} a thread, {spilled} spilled, "
        f"{in_bytes(listing.shared_bytes, digits=3) if listing.shared_bytes else 'no'} shared memory a block"
    ]
    if listing.stack_bytes:
        said.append(
            f"{plural(listing.stack_bytes, 'byte')} of local memory a thread: spills, and local arrays whose "
            "index is not a constant"
        )
    if listing.threads is None:
        return [*said, "occupancy: say block=, the threads of a block"]
    taken = {"registers": listing.registers, "shared_bytes": listing.shared_bytes}
    try:
        fits = occupancy(None, listing.threads, listing.cc, **taken)
    except ValueError:  # an architecture whose limits are not in the tables
        return [*said, "occupancy: not known for this compute capability"]
    return [
        *said,
        f"occupancy {100 * fits.occupancy:.0f} %: {plural(fits.blocks_per_sm, 'block')} of "
        f"{listing.threads} threads fit on an SM, {fits.warps_per_sm} of {fits.limits.warps} warps, limited "
        f"by {' and '.join(fits.limited_by)}",
    ]


# -- parts -------------------------------------------------------------------------------------------------


def _figures(listing: Listing) -> str:
    said = "".join(
        f'<div style="max-width:40ch;margin:0 0 6px">{escape(upper(one))}.</div>' for one in facts(listing)
    )
    if listing.tile:
        said = f'<div style="margin:0 0 6px">Tile {escape(listing.tile)}.</div>' + said
    return side_by_side([_totals(listing), f"<div>{said}</div>"]) if listing.loop else said


def _totals(listing: Listing) -> str:
    """Return how many instructions of each kind a turn has, and the part of all that is."""
    all_of_them = len(listing.loop)
    rows = [
        (_badge(kind), f"{count:,}", f"{100 * count / all_of_them:.1f} %")
        for kind, count in listing.kinds.most_common()
    ]
    rows.append(("<b>a turn</b>", f"<b>{all_of_them:,}</b>", ""))
    marked = [place for place, (kind, _) in enumerate(listing.kinds.most_common()) if kind == "FMA"]
    return table(("kind", "instructions", "of the issue slots"), rows, marked=marked)


def _badge(kind: str) -> str:
    sign, ground, ink = LOOKS[kind]
    edge = f"outline:1.5px dashed {ink};" if kind == SPILL else ""
    return (
        f'<span style="background:{ground};color:{ink};{edge}padding:0 5px;border-radius:3px;'
        f'white-space:nowrap"><span aria-hidden="true" style="display:inline-block;width:1.6em;'
        f'font-family:{MONO}">{sign}</span>{kind}</span>'
    )


def _rows(kernel: Any, lines: Sequence[ListedInstruction], only: str, whole: bool) -> list[str]:
    texts, first = inspect.getsourcelines(kernel.py_func)
    # line counted from the decorator: line in the file, its text
    source = {number: (first + number, line.strip()) for number, line in enumerate(texts)}
    chosen = [line for line in lines if only in ("", line.kind)]
    rows, before = [], None
    for group in _groups(chosen, whole or bool(only)):
        if len(group) > 1:
            rows.append(_shortened(group))
            before = None
            continue
        (line,) = group
        rows.append(_row(line, source, line.source == before))
        before = line.source
    return rows


def _groups(lines: Sequence[ListedInstruction], whole: bool) -> Iterator[list[ListedInstruction]]:
    """Yield single lines, and of a long run of a kind the first two and the rest together."""
    for kind, same in groupby(lines, key=lambda line: line.kind):
        run = list(same)
        singles = 2 if kind in LONG and len(run) >= RUN and not whole else len(run)
        yield from ([line] for line in run[:singles])
        if run[singles:]:
            yield run[singles:]


_CELL = "padding:1px 8px 1px 4px;overflow:hidden;text-overflow:ellipsis;white-space:nowrap;text-align:left"


def _row(line: ListedInstruction, source: dict[int, tuple[int, str]], is_repeated: bool) -> str:
    sign, ground, ink = LOOKS[line.kind]
    number, text = source.get(line.source, (None, ""))
    shown = "" if is_repeated or number is None else f"{number}&nbsp; {escape(text)}"
    edge = f";outline:1.5px dashed {ink};outline-offset:-2px" if line.kind == SPILL else ""
    weight = "700" if line.kind in ("FMA", "barrier", SPILL) else "400"
    return (
        f'<tr style="background:{ground};color:{ink}{edge}">'
        f'<td style="{_CELL};background:{ground};color:{ink}"><span aria-hidden="true" '
        f'style="display:inline-block;width:2em">{sign}</span>{line.kind}</td>'
        f'<td style="{_CELL};background:{ground};color:{ink};font-weight:{weight}" '
        f'title="{escape(line.text)}">{escape(line.text)}</td>'
        f'<td style="{_CELL};background:{PAPER};color:{QUIET}" title="{escape(text)}">{shown}</td></tr>'
    )


def _shortened(group: list[ListedInstruction]) -> str:
    kind = group[0].kind
    _, ground, ink = LOOKS[kind]
    said = (
        f"⋮ {plural(len(group), 'more FMA') if kind == 'FMA' else f'{len(group)} more that compute indices'}"
    )
    return (
        f'<tr style="background:{ground};color:{ink}"><td colspan="2" style="{_CELL};background:{ground};'
        f'color:{ink};padding-left:2.4em">{said}</td><td style="background:{PAPER}"></td></tr>'
    )


def _region(rows: list[str], language: str) -> str:
    """Return the rows as a table that the keyboard can scroll: it takes the focus."""
    heads = ("what it does", language, "line of the kernel")
    top = "".join(
        f'<th scope="col" style="{_CELL};position:sticky;top:0;background:{PAPER};color:{INK};'
        f'border-bottom:1px solid {INK}">{head}</th>'
        for head in heads
    )
    columns = '<col style="width:11.5em"><col style="width:24.5em"><col>'
    style = f"table-layout:fixed;width:100%;margin:0;font:12.5px/1.45 {MONO}"
    shown = table_of(top, rows, style, f"<colgroup>{columns}</colgroup>")
    return (
        f'<div role="region" tabindex="0" aria-label="{language} of the inner loop, line by line" '
        f'style="max-height:30em;overflow-y:auto;overflow-x:hidden;border:1px solid {LINE};width:100%;'
        f'min-width:min(56em,80vw)">{shown}</div>'
    )
