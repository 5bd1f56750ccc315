"""How a listing of GPU code is drawn: instructions in a table that scrolls, totals, occupancy, origin.

Kinds are told apart by a word and a sign, and coloured besides. Long runs of FMAs, and of what computes
addresses, are shortened.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from typing import Any

from course_lib.measure.code_listing import Line, Listing
from course_lib.measure.sizes import in_bytes
from course_lib.simulators.gpu.occupancy import Occupancy, occupancy
from course_lib.views.paper import (
    DEEP_PINK,
    GREY_TINT,
    INK,
    LINE,
    MONO,
    PAPER,
    PINK_TINT,
    QUIET,
    VIOLET_TINT,
    Html,
    card,
    escape,
    note,
    plural,
    side_by_side,
    table,
)

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


def still(kernel: Any, listing: Listing) -> Html:
    """Return the SASS of a listing with all that is said of it; its PTX opens at a key or a click."""
    shown = drawn(kernel, listing, "SASS")
    ptx = (
        '<details style="margin-top:10px"><summary style="cursor:pointer;font-weight:600">'
        f"PTX, from which it is made ({plural(len(listing.ptx), 'instruction')})</summary>"
        f'<div style="margin-top:6px">{_region(_rows(kernel, listing.ptx, "", False), "PTX")}</div></details>'
    )
    text = shown.text + "\n" + "\n".join(_plain(listing.loop))
    return Html(shown.body.removesuffix("</div>") + ptx + "</div>" if listing.ptx else shown.body, text)


def drawn(kernel: Any, listing: Listing, language: str, only: str = "", whole: bool = False) -> Html:
    """Return the listing in one language; `only` shows one kind, `whole` every instruction."""
    lines = listing.loop if language == "SASS" else listing.ptx
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
    fits = _occupancy(listing)
    if fits is None:
        return [*said, "occupancy: not known for this compute capability"]
    return [
        *said,
        f"occupancy {100 * fits.occupancy:.0f} %: {plural(fits.blocks_per_sm, 'block')} of "
        f"{listing.threads} threads fit on an SM, {fits.warps_per_sm} of {fits.limits.warps} warps, limited "
        f"by {' and '.join(fits.limited_by)}",
    ]


def _occupancy(listing: Listing) -> Occupancy | None:
    try:
        return occupancy(
            None,
            listing.threads,
            listing.cc,
            registers=listing.registers,
            shared_bytes=listing.shared_bytes,
        )
    except ValueError:  # an architecture whose limits are not in the tables
        return None


# -- parts -------------------------------------------------------------------------------------------------


def _figures(listing: Listing) -> str:
    said = "".join(
        f'<div style="max-width:40ch;margin:0 0 6px">{escape(_upper(one))}.</div>' for one in facts(listing)
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
    marked = [place for place, kind in enumerate(dict(listing.kinds.most_common())) if kind == "FMA"]
    return table(("kind", "instructions", "of the issue slots"), rows, marked=marked)


def _badge(kind: str) -> str:
    sign, ground, ink = LOOKS.get(kind, ("?", PAPER, INK))
    edge = f"outline:1.5px dashed {ink};" if kind == SPILL else ""
    return (
        f'<span style="background:{ground};color:{ink};{edge}padding:0 5px;border-radius:3px;'
        f'white-space:nowrap"><span aria-hidden="true" style="display:inline-block;width:1.6em;'
        f'font-family:{MONO}">{sign}</span>{kind}</span>'
    )


def _rows(kernel: Any, lines: Sequence[Line], only: str, whole: bool) -> list[str]:
    source = _source(kernel)
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


def _groups(lines: Sequence[Line], whole: bool) -> Iterator[list[Line]]:
    """Yield single lines, and of a long run of a kind the first two and the rest together."""
    place = 0
    while place < len(lines):
        end = place
        while end < len(lines) and lines[end].kind == lines[place].kind in LONG:
            end += 1
        run = lines[place:end]
        if whole or len(run) < RUN:
            yield [lines[place]]
            place += 1
        else:
            yield from ([run[0]], [run[1]], list(run[2:]))
            place = end


_CELL = "padding:1px 8px 1px 4px;overflow:hidden;text-overflow:ellipsis;white-space:nowrap;text-align:left"


def _row(line: Line, source: dict[int, tuple[int, str]], is_repeated: bool) -> str:
    sign, ground, ink = LOOKS.get(line.kind, ("?", PAPER, INK))
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


def _shortened(group: list[Line]) -> str:
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
    style = (
        f"border-collapse:collapse;table-layout:fixed;width:100%;margin:0;font:12.5px/1.45 {MONO};"
        f"color:{INK};background:{PAPER}"
    )
    return (
        f'<div role="region" tabindex="0" aria-label="{language} of the inner loop, line by line" '
        f'style="max-height:30em;overflow-y:auto;overflow-x:hidden;border:1px solid {LINE};width:100%;'
        f'min-width:min(56em,80vw)"><table style="{style}"><colgroup>{columns}</colgroup>'
        f"<thead><tr>{top}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _source(kernel: Any) -> dict[int, tuple[int, str]]:
    """Return {line counted from the decorator: (line in the file, its text)}."""
    lines, first = inspect.getsourcelines(getattr(kernel, "py_func", kernel))
    return {number: (first + number, line.strip()) for number, line in enumerate(lines)}


def _plain(lines: Sequence[Line]) -> list[str]:
    return [f"{line.kind:13} {line.text}" for line in lines]


def _upper(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
