"""Where a network's time goes: a profile as a table with bars, alone or beside another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from course_lib.arguments import whole
from course_lib.theme import PINK, QUIET, VIOLET
from course_lib.views.operator_lines import bar, field, time_in_words
from course_lib.views.paper import Html, card, escape, note, table

BAR = 110  # pixels of the longest bar
HERE, TALK = "this machine", "the talk"


@dataclass(frozen=True)
class Operator:
    """One operator of a profile; `share` is its part of all self time, from 0 to 1."""

    name: str
    calls: int | None
    self_us: float
    share: float
    per_call_us: float | None
    gflops: float | None


def profile(rows: Sequence[Any], beside: Sequence[Any], top: int = 10) -> Html:
    """Return the `top` operators by self time as a table with bars, with the talk's shares next to them.

    Rows (beside: the talk's) are objects or mappings with name, calls, self_us and, if known, total_us, flops
    and percent (of all self time; without it the rows must be the whole profile).
    """
    whole("top", top)
    mine = operators(rows)
    other = {operator.name: operator for operator in operators(beside)}
    theirs = list(other.values())[:top]
    wanted = {o.name for o in theirs}
    shown = [o for rank, o in enumerate(mine) if rank < top or o.name in wanted]
    missing = [o for o in theirs if o.name not in {m.name for m in mine}]
    longest = max(o.share for o in (*shown, *theirs))
    cells = [_cells(o, other.get(o.name), longest) for o in shown]
    cells += [[escape(o.name), *5 * ["–"], bar(o.share, longest, VIOLET, BAR)] for o in missing]
    rest = [o for o in mine if o not in shown]
    if rest:
        cells.append(
            [
                f'<span style="color:{QUIET}">{len(rest)} more</span>',
                f"{sum(o.calls or 0 for o in rest):,}",
                time_in_words(sum(o.self_us for o in rest)),
                *("–", "–", f"{sum(o.share for o in rest):.1%}", ""),
            ]
        )
    head = ["operator", "calls", "self time", "a call", "GFLOP/s"]
    head += [f"share of self time, {HERE}", f"share, {TALK}"]
    first, there = mine[0], max(other.values(), key=lambda operator: operator.share)
    same = "" if there.name == first.name else f"{there.name} "
    title = f"{first.name} takes {first.share:.0%} of the time on {HERE}, {same}{there.share:.0%} in {TALK}"
    parts = []
    for one in shown:
        theirs = f" ({TALK}: {other[one.name].share:.1%})" if one.name in other else ""
        parts.append(f"{one.name} {one.share:.1%}{theirs}")
    text = f"{title}. Share of self time on {HERE}: {', '.join(parts)}."
    explained = note(
        "Self time is the time in the operator itself, without the operators it calls; “a call” is with them."
        f" A dash in a share: {TALK} or {HERE} does not list that operator; under GFLOP/s: PyTorch counts no"
        " operations for it."
    )
    return Html(card(table(head, cells, left=(0, 5, 6)) + explained, text, title=title), text)


def operators(rows: Sequence[Any]) -> list[Operator]:
    """Return the rows as Operators, most self time first; raises ValueError for rows that are no profile."""
    rows = list(rows)
    if not rows:
        raise ValueError("The profile has no rows: run the network under the profiler first.")
    total = sum(field(row, "self_us") or 0.0 for row in rows)
    return sorted((_operator(row, total) for row in rows), key=lambda operator: -operator.self_us)


def _operator(row: Any, total: float) -> Operator:
    name, self_us = field(row, "name"), field(row, "self_us")
    if name is None or self_us is None:
        raise ValueError(f"A row of the profile is {row!r}, but every row needs a name and self_us.")
    calls, total_us = field(row, "calls"), field(row, "total_us")
    flops, percent = field(row, "flops"), field(row, "percent")
    share = percent / 100 if percent is not None else self_us / total if total else 0.0
    per_call = (total_us if total_us is not None else self_us) / calls if calls else None
    gflops = flops / self_us / 1e3 if flops and self_us else None
    return Operator(name, calls, self_us, share, per_call, gflops)


def _cells(operator: Operator, there: Operator | None, longest: float) -> list[str]:
    return [
        escape(operator.name),
        f"{operator.calls:,}" if operator.calls is not None else "–",
        time_in_words(operator.self_us),
        time_in_words(operator.per_call_us) if operator.per_call_us is not None else "–",
        f"{operator.gflops:.3g}" if operator.gflops else "–",
        bar(operator.share, longest, PINK, BAR),
        bar(there.share, longest, VIOLET, BAR) if there else "–",
    ]
