"""Where a network's time goes: a profile as a table with bars, alone or beside another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from course_lib.arguments import whole
from course_lib.theme import PINK, VIOLET
from course_lib.views.paper import LINE, PAPER, QUIET, Html, card, escape, note, table

BAR = 110  # pixels of the longest bar


@dataclass(frozen=True)
class Operator:
    """One operator of a profile; `share` is its part of all self time, from 0 to 1."""

    name: str
    calls: int | None
    self_us: float
    share: float
    per_call_us: float | None
    gflops: float | None


def profile(
    rows: Sequence[Any],
    beside: Sequence[Any] | None = None,
    top: int = 10,
    names: tuple[str, str] = ("this machine", "the talk"),
) -> Html:
    """Return the `top` operators by self time as a table with bars, with the shares of `beside` next to them.

    Rows are objects or mappings with name, calls, self_us and, if known, total_us, flops and percent (of all
    self time; without it the rows must be the whole profile). `names` says what the two profiles are.
    """
    whole("top", top)
    mine = operators(rows)
    other = {operator.name: operator for operator in operators(beside)} if beside is not None else None
    theirs = list((other or {}).values())[:top]
    wanted = {o.name for o in theirs}
    shown = [o for rank, o in enumerate(mine) if rank < top or o.name in wanted]
    missing = [o for o in theirs if o.name not in {m.name for m in mine}]
    longest = max(o.share for o in (*shown, *theirs))
    cells = [_cells(o, other, longest) for o in shown]
    cells += [_only_there(o, longest) for o in missing]
    rest = [o for o in mine if o not in shown]
    if rest:
        cells.append(_rest(rest, other is not None))
    head = ["operator", "calls", "self time", "a call", "GFLOP/s", f"share of self time, {escape(names[0])}"]
    if other is not None:
        head.append(f"share, {escape(names[1])}")
    title = _finding(mine, other, names)
    text = title + ". " + _said(shown, other, names)
    explained = note(
        "Self time is the time in the operator itself, without the operators it calls; “a call” is with them."
        + (f" A dash: {names[1]} or {names[0]} does not list that operator." if other is not None else "")
    )
    left = (0, 5, 6)
    return Html(card(table(head, cells, left=left) + explained, text, title=title), text)


def operators(rows: Sequence[Any]) -> list[Operator]:
    """Return the rows as Operators, most self time first; raises ValueError for rows that are no profile."""
    rows = list(rows)
    if not rows:
        raise ValueError("The profile has no rows: run the network under the profiler first.")
    total = sum(_field(row, "self_us") or 0.0 for row in rows)
    return sorted((_operator(row, total) for row in rows), key=lambda operator: -operator.self_us)


def _operator(row: Any, total: float) -> Operator:
    name, self_us = _field(row, "name"), _field(row, "self_us")
    if name is None or self_us is None:
        raise ValueError(f"A row of the profile is {row!r}, but every row needs a name and self_us.")
    calls, total_us = _field(row, "calls"), _field(row, "total_us")
    flops, percent = _field(row, "flops"), _field(row, "percent")
    share = percent / 100 if percent is not None else self_us / total if total else 0.0
    per_call = (total_us if total_us is not None else self_us) / calls if calls else None
    gflops = flops / self_us / 1e3 if flops and self_us else None
    return Operator(name, calls, self_us, share, per_call, gflops)


def _field(row: Any, name: str) -> Any:
    return row.get(name) if isinstance(row, Mapping) else getattr(row, name, None)


def _cells(operator: Operator, other: Mapping[str, Operator] | None, longest: float) -> list[str]:
    cells = [
        escape(operator.name),
        f"{operator.calls:,}" if operator.calls is not None else "–",
        _time(operator.self_us),
        _time(operator.per_call_us) if operator.per_call_us is not None else "–",
        f"{operator.gflops:.3g}" if operator.gflops else "–",
        _bar(operator.share, longest, PINK),
    ]
    if other is not None:
        there = other.get(operator.name)
        cells.append(_bar(there.share, longest, VIOLET) if there else "–")
    return cells


def _only_there(operator: Operator, longest: float) -> list[str]:
    return [escape(operator.name), "–", "–", "–", "–", "–", _bar(operator.share, longest, VIOLET)]


def _rest(rest: Sequence[Operator], two: bool) -> list[str]:
    share = f"{sum(o.share for o in rest):.1%}"
    quiet = f'<span style="color:{QUIET}">{len(rest)} more</span>'
    cells = [
        quiet,
        f"{sum(o.calls or 0 for o in rest):,}",
        _time(sum(o.self_us for o in rest)),
        "–",
        "–",
        share,
    ]
    return [*cells, ""] if two else cells


def _bar(share: float, longest: float, colour: str) -> str:
    """Return a bar with its percentage; the two colours stand in columns of their own, with headings."""
    width = round(BAR * share / longest) if longest else 0
    style = f"display:inline-block;width:{width}px;height:12px;background:{colour};vertical-align:-1px"
    bar = f'<span style="{style}"></span>'
    ground = (
        f"display:inline-block;width:{BAR}px;background:{PAPER};border-left:1px solid {LINE};line-height:1"
    )
    return f'<span style="white-space:nowrap"><span style="{ground}">{bar}</span> {share:.1%}</span>'


def _time(microseconds: float) -> str:
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= size:
            return f"{microseconds / size:.3g} {unit}"
    return f"{microseconds:.3g} µs"


def _finding(mine: Sequence[Operator], other: Mapping[str, Operator] | None, names: tuple[str, str]) -> str:
    first = mine[0]
    finding = f"{first.name} takes {first.share:.0%} of the time on {names[0]}"
    if other is None:
        return finding
    there = max(other.values(), key=lambda operator: operator.share)
    same = "" if there.name == first.name else f"{there.name} "
    return f"{finding}, {same}{there.share:.0%} in {names[1]}"


def _said(shown: Sequence[Operator], other: Mapping[str, Operator] | None, names: tuple[str, str]) -> str:
    parts = []
    for operator in shown:
        part = f"{operator.name} {operator.share:.1%}"
        if other is not None and operator.name in other:
            part += f" ({names[1]}: {other[operator.name].share:.1%})"
        parts.append(part)
    return f"Share of self time on {names[0]}: {', '.join(parts)}."
