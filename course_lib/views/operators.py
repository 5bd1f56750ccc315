"""Where a network's time goes: a profile as a table with bars, alone or beside another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from course_lib.arguments import whole
from course_lib.theme import PINK, QUIET, VIOLET
from course_lib.views.operator_lines import bar, time_in_words
from course_lib.views.paper import Html, card, escape, note, table

if TYPE_CHECKING:
    from course_lib.speech.profiling import OpRow, TalkRow

BAR = 110  # pixels of the longest bar
HERE, TALK = "this machine", "the talk"


def profile(rows: Sequence[OpRow], beside: Sequence[TalkRow], top: int = 10) -> Html:
    """Return the `top` operators by self time as a table with bars, with the talk's shares next to them.

    rows: the whole profile, as `speech.profiling.profile` returns it; beside: the talk's. Raises ValueError
    for rows that are no profile.
    """
    whole("top", top)
    mine, talk = _ranked(rows), _ranked(beside)
    total = sum(row.self_us for row in mine)
    here = {row.name: row.self_us / total for row in mine}
    there = {row.name: row.percent / 100 for row in talk}
    theirs = list(there)[:top]
    shown = [row for rank, row in enumerate(mine) if rank < top or row.name in theirs]
    rest = [row for row in mine if row not in shown]
    longest = max([here[row.name] for row in shown] + [there[name] for name in theirs])
    cells = [_cells(row, here[row.name], there.get(row.name), longest) for row in shown]
    for name in theirs:
        if name not in here:
            cells.append([escape(name), *5 * ["–"], bar(there[name], longest, VIOLET, BAR)])
    if rest:
        cells.append(
            [
                f'<span style="color:{QUIET}">{len(rest)} more</span>',
                f"{sum(row.calls for row in rest):,}",
                time_in_words(sum(row.self_us for row in rest)),
                *("–", "–", f"{sum(here[row.name] for row in rest):.1%}", ""),
            ]
        )
    head = ["operator", "calls", "self time", "a call", "GFLOP/s"]
    head += [f"share of self time, {HERE}", f"share, {TALK}"]
    first, first_there = mine[0].name, max(there, key=there.get)
    same = "" if first_there == first else f"{first_there} "
    title = f"{first} takes {here[first]:.0%} of the time on {HERE}, {same}{there[first_there]:.0%} in {TALK}"
    parts = []
    for row in shown:
        said = f" ({TALK}: {there[row.name]:.1%})" if row.name in there else ""
        parts.append(f"{row.name} {here[row.name]:.1%}{said}")
    text = f"{title}. Share of self time on {HERE}: {', '.join(parts)}."
    explained = note(
        "Self time is the time in the operator itself, without the operators it calls; “a call” is with them."
        f" A dash in a share: {TALK} or {HERE} does not list that operator; under GFLOP/s: PyTorch counts no"
        " operations for it."
    )
    return Html(card(table(head, cells, left=(0, 5, 6)) + explained, text, title=title), text)


def _ranked(rows: Sequence[Any]) -> list[Any]:
    """Return the rows, most self time first."""
    if not rows:
        raise ValueError("The profile has no rows: run the network under the profiler first.")
    for row in rows:
        if getattr(row, "self_us", None) is None:  # the talk's rows of a GPU may lack it
            raise ValueError(f"A row of the profile is {row!r}, but every row needs a name and self_us.")
    return sorted(rows, key=lambda row: -row.self_us)


def _cells(row: OpRow, here: float, there: float | None, longest: float) -> list[str]:
    return [
        escape(row.name),
        f"{row.calls:,}",
        time_in_words(row.self_us),
        time_in_words(row.total_us / row.calls),
        f"{row.flops / row.self_us / 1e3:.3g}" if row.flops and row.self_us else "–",
        bar(here, longest, PINK, BAR),
        "–" if there is None else bar(there, longest, VIOLET, BAR),
    ]
