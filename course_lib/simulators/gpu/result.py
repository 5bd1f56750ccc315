"""What a trace found: accesses and their cost, divergence, hazards, also beside the kernel's own text.

In a terminal the listing is text, in a notebook a table. Lines that cost more than they need are marked with
a sign and in words, not by colour alone.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from course_lib.simulators.gpu.counting import SECTOR_BYTES, WARP
from course_lib.simulators.gpu.tally import AccessRow, Hazard, KernelTally, Recorder
from course_lib.theme import PINK, VIOLET

# -- beside the kernel's own text ----------------------------------------------------------------------------


OFTEN = 0.5  # of the times that warps come to a branch: more could be better
UNEVEN = 2.0  # times the mean: from here on the report speaks of it

_CELL = "padding:.1em .6em;border:0;border-bottom:1px solid #8a849430;vertical-align:top"


@dataclass(frozen=True)
class LineNote:
    """Something to say of a line; `is_bad` marks what could be better, `is_wrong` a hazard."""

    text: str
    is_bad: bool = False
    is_wrong: bool = False


class TraceListing:
    """The listing of a trace."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._warps = {row.line: row for row in trace.divergence}

    def summary(self) -> list[str]:
        """Return what the whole launch did, in sentences."""
        trace, launch = self._trace, self._trace.launch
        shape = f"grid {_by(launch.grid)} of blocks {_by(launch.block)}"
        part = "" if launch.blocks_run == launch.blocks else f"; {launch.blocks_run:,} of them traced"
        said = [f"{launch.kernel}: {shape}, {_many(launch.blocks, 'block')}{part}."]
        asked = sum(row.bytes for row in trace.global_accesses)
        if trace.global_bytes:
            flops = (
                f"; {trace.flops:,} FLOP, {trace.intensity:.3g} for each byte moved" if trace.flops else ""
            )
            moved = f"{_size(trace.global_bytes)} moved in sectors for {_size(asked)} asked for"
            said.append(f"Global memory: {moved}{flops}.")
        shared = trace.shared_accesses
        if shared:
            wavefronts, requests = sum(r.cost for r in shared), sum(r.requests for r in shared)
            said.append(
                f"Shared memory: {_size(trace.shared_bytes)} a block, {_many(wavefronts, 'wavefront')} for "
                f"{_many(requests, 'request')}."
            )
        if trace.imbalance >= UNEVEN:
            shuffles = " to memory and other lanes" if trace.shuffles else " to memory"
            said.append(
                f"Work: the busiest warp makes {_many(trace.busiest_warp, 'request')}{shuffles}, a warp on "
                f"average {trace.busiest_warp / trace.imbalance:.3g}; the launch waits for the busiest."
            )
        count = len(trace.hazards)
        said.append("No hazards." if not count else "1 hazard:" if count == 1 else f"{count} hazards:")
        said += [str(hazard) for hazard in trace.hazards]
        said += [f"Worth a look: {remark}" for remark in trace.remarks]
        return said

    def notes(self, line: int) -> list[LineNote]:
        """Return what is to be said of a line of the kernel."""
        return [*self._accesses(line), *self._flow(line), *self._wrong(line)]

    def _accesses(self, line: int) -> Iterator[LineNote]:
        rows = [row for row in self._trace.rows if row.line == line]
        for row in rows:
            yield _access_note(row)
        for (at, array), rounds in self._trace.atomic_rounds.items():
            if at == line:
                requests = sum(row.requests for row in rows if (row.array, row.kind) == (array, "atomic"))
                each = rounds / requests if requests else 0.0
                yield LineNote(f"{array}: lanes take {_mean(each, 'turn')} for each atomic", each > 1)

    def _flow(self, line: int) -> Iterator[LineNote]:
        row = self._warps.get(line)
        if row and row.divided:
            said = f"{row.divided:,} of {row.decisions:,} times a warp goes both ways"
            yield LineNote(said, row.divided > OFTEN * row.decisions)  # at an edge there is no other way
        if line in self._trace.barriers:
            yield LineNote(f"barrier of {_many(self._trace.barriers[line], 'warp')}")

    def _wrong(self, line: int) -> Iterator[LineNote]:
        for hazard in self._trace.hazards:
            if hazard.line == line:
                times = f", {hazard.times:,} times" if hazard.times > 1 else ""
                yield LineNote(f"{hazard.kind}{times}: {hazard.what}", is_wrong=True)

    def active(self, line: int) -> str:
        """Return how many of a warp's 32 threads a line had on average, '' if it never ran."""
        row = self._warps.get(line)
        return f"{row.active:.3g}" if row and row.warps else ""

    def __str__(self) -> str:
        lines = [*self.summary(), "", f"{'line':>5} {'active':>6}  source"]
        for number, text in self._trace.source.items():
            lines.append(f"{number:>5} {self.active(number):>6}  {text}")
            for note in self.notes(number):
                sign = "!!" if note.is_wrong else " !" if note.is_bad else "  "
                lines.append(f"{'':>11} {sign} {'':{_indent(text)}}{note.text}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        summary = "".join(f"<div>{html.escape(sentence)}</div>" for sentence in self.summary())
        rows = "".join(self._html_row(number, text) for number, text in self._trace.source.items())
        head = "".join(
            f'<th scope="col" style="{_CELL};text-align:{side}">{name}</th>'
            for name, side in (("line", "right"), ("active of 32", "right"), ("source and cost", "left"))
        )
        return (
            f'{summary}<div style="overflow-x:auto"><table style="border-collapse:collapse">'
            f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        )

    def _html_row(self, number: int, text: str) -> str:
        """Return a line of the source; what it costs stands below, so that neither pushes the other away."""
        notes = self.notes(number)
        wrong = any(note.is_wrong for note in notes)
        edge = f"border-left:4px solid {PINK if wrong else 'transparent'}"
        indent = f"padding-left:{_indent(text)}ch;white-space:normal;font-size:92%"
        said = "".join(f'<div style="{indent}">{_html_note(note)}</div>' for note in notes)
        code = f'<code style="white-space:pre;background:none;padding:0">{html.escape(text)}</code>'
        return (
            f'<tr><td style="{_CELL};{edge};text-align:right">{number}</td>'
            f'<td style="{_CELL};text-align:right">{self.active(number)}</td>'
            f'<td style="{_CELL};text-align:left">{code}{said}</td></tr>'
        )


def _html_note(note: LineNote) -> str:
    text = html.escape(note.text)
    if note.is_wrong:
        return f'<b style="color:{PINK}">hazard</b> {text}'
    if note.is_bad:
        return f'<b style="color:{VIOLET}">!</b> {text}'
    return text


def _access_note(row: AccessRow) -> LineNote:
    requests = "1 request" if row.requests == 1 else f"each of {row.requests:,} requests"
    if row.space == "global":
        # the sectors that a request's threads would need if their elements lay side by side
        least = max(1.0, row.bytes / row.requests / SECTOR_BYTES if row.requests else 0.0)
        unit, is_bad, why = "sector", row.per_request > 1.5 * least, f"together they would be {least:.3g}"
    else:
        words = max(1, row.bytes // max(1, row.accesses) // 4)
        unit, is_bad, why = "wavefront", row.per_request > words, "bank conflicts"
    text = f"{row.array} {row.kind}: {_mean(row.per_request, unit)} for {requests}"
    return LineNote(f"{text} ({why})" if is_bad else text, is_bad)


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _mean(mean: float, what: str) -> str:
    return f"{mean:.3g} {what}" if f"{mean:.3g}" == "1" else f"{mean:.3g} {what}s"


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _by(size: tuple[int, int, int]) -> str:
    used = size if size[2] > 1 else size[:2] if size[1] > 1 else size[:1]
    return " x ".join(f"{n:,}" for n in used)


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:,.0f} {unit}" if unit == "B" else f"{count:,.3g} {unit}"
        count /= 1024
    raise AssertionError


# -- what was found ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TracedLaunch:
    """What was launched: blocks_run of blocks were traced."""

    kernel: str
    file: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    blocks_run: int
    blocks: int


class Trace:
    """What one launch did. Every list is in the order of the source."""

    def __init__(
        self,
        launch: TracedLaunch,
        tally: KernelTally,
        source: dict[int, str],
        recorder: Recorder | None = None,
    ) -> None:
        self.launch = launch
        self.source = source
        rows = sorted(tally.rows.values(), key=lambda row: (row.line, row.array, row.kind))
        self.global_accesses = [row for row in rows if row.space == "global"]
        self.shared_accesses = [row for row in rows if row.space == "shared"]
        self.rows = [*self.global_accesses, *self.shared_accesses]
        self.divergence = [tally.lines[line] for line in sorted(tally.lines)]
        for row in self.divergence:
            row.divided, row.decisions = tally.divided[row.line], tally.decisions[row.line]
        self.hazards = _with_times(tally, tally.hazards)
        self.remarks = _with_times(tally, tally.remarks)
        self.barriers = dict(sorted(tally.barrier_lines.items()))
        self.shuffles = dict(sorted(tally.shuffle_lines.items()))
        self.atomic_rounds = dict(tally.atomic_rounds)
        self.steps = recorder.steps if recorder else []
        self.steps_cut = bool(recorder and recorder.is_cut)
        self.recorded = (recorder.block, recorder.warp) if recorder else None  # block counted over the grid
        self.busiest_warp = tally.busiest_warp  # requests, in both memories, and shuffles
        self.flops = tally.flops
        self.shared_bytes = tally.shared_bytes

    @property
    def accesses(self) -> int:
        """Return how many elements all threads together read and wrote, in global and shared memory."""
        return sum(row.accesses for row in self.rows)

    @property
    def requests(self) -> int:
        """Return how many requests all warps together made, in global and shared memory, shuffles included.

        A shuffle takes the place of a load from shared memory, and as long.
        """
        return sum(row.requests for row in self.rows) + sum(self.shuffles.values())

    @property
    def imbalance(self) -> float:
        """Return the requests of the busiest warp over those of a warp on average: 1 if all have the same.

        A launch ends when its last warp does. 0.0 if there was no request.
        """
        warps = self.launch.blocks_run * -(-math.prod(self.launch.block) // WARP)
        return self.busiest_warp * warps / self.requests if self.requests else 0.0

    @property
    def global_bytes(self) -> int:
        """Return the bytes of all sectors that were moved from and to global memory (or its caches)."""
        return sum(row.bytes_moved for row in self.global_accesses)

    @property
    def intensity(self) -> float:
        """Return the arithmetic intensity, FLOP for each byte of global sectors moved; inf if none was."""
        return self.flops / self.global_bytes if self.global_bytes else float("inf")

    def row(self, array: str, kind: str = "load", line: int | None = None) -> AccessRow:
        """Return the only row for an array and a kind of access; KeyError if there is none or several."""
        found = [
            row for row in self.rows if row.array == array and row.kind == kind and line in (None, row.line)
        ]
        if len(found) != 1:
            raise KeyError(f"{len(found)} rows are {kind}s of {array}; name the line as well.")
        return found[0]

    def report(self) -> TraceListing:
        """Return the kernel's text with what each line did beside it."""
        return TraceListing(self)

    def __repr__(self) -> str:
        run = self.launch.blocks_run
        part = "" if run == self.launch.blocks else f" ({run:,} of {self.launch.blocks:,} blocks)"
        found = f"{len(self.hazards)} hazards" if self.hazards else "no hazards"
        return f"<Trace of {self.launch.kernel}{part}: {self.accesses:,} accesses, {found}>"


def _with_times(tally: KernelTally, kept: dict[tuple, Hazard]) -> list[Hazard]:
    found = [replace(hazard, times=tally.times[id(hazard)]) for hazard in kept.values()]
    # races between warps first: what they lack is a barrier, and that ends those within a warp as well
    return sorted(found, key=lambda one: ("of the same warp" in one.what, one.line, one.kind))
