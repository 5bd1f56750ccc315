"""The ring of stages and its barriers, step by step: who waits for which phase, and what is missing for it.

What is shown is a run of the model (`simulators.ring`) in a random order of steps. Leave out a part of the
protocol and the run shown is one that goes wrong.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, replace
from itertools import pairwise

from course_lib.arguments import whole
from course_lib.simulators.ring import (
    ActorState,
    BarrierState,
    Ring,
    RingMoment,
    RingRun,
    StageState,
    run,
    trace,
)
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
from course_lib.views.live import Steps, widgets
from course_lib.views.paper import Html, Sheet, card, escape, note, plural, table

MOST_STAGES = 6
SEEDS = 400  # orders of steps that are tried until one goes wrong
MOST_TURNS = 16  # rows of the still twin
WIDE, HIGH, GAP, LEFT = 182.0, 122.0, 8.0, 84.0  # of a stage's box
ROW = 27.0  # of an actor


@dataclass(frozen=True)
class Variant:
    """What is left out of the protocol, how many blocks it takes to see it, and what then goes wrong."""

    leaves_out: tuple[str, ...] = ()
    blocks: int = 1
    problem: str = ""

    def ring(self, base: Ring) -> Ring:
        """Return the ring with that left out."""
        return replace(base, blocks=self.blocks, **dict.fromkeys(self.leaves_out, False))


WHOLE = "nothing"
VARIANTS = {
    WHOLE: Variant(),
    "the flip of the parity (wrong data)": Variant(("flips",), 1, "wanted"),
    "the flip of the parity (deadlock)": Variant(("flips",), 1, "Everybody waits"),
    "reports to the other block": Variant(("remote_reports",), 2, "written while a warp read"),
    "the meeting at the end": Variant(("meets_at_the_end",), 2, "had ended"),
}
LEGEND = (
    "A phase ends when nothing is missing for it: arrivals of threads, and copies (their bytes). To wait for "
    "a parity is to wait until the phase of that parity is over. A fresh barrier is in phase 0, so a wait "
    "for parity 1 passes at once. Strips: the block of K that somebody is at, and what comes next. Thick "
    "frame: changed by this step. Dashed: ordered, or must wait."
)


def ring(stages: int = 4) -> RingSteps:
    """Return a widget that steps through a ring of 1 to 6 stages: a producer, and two warps that multiply.

    Seven blocks of K go through it, in a random order of steps that is always the same. Raises ValueError
    for another number of stages.
    """
    return RingSteps(Ring(whole("stages", stages, most=MOST_STAGES), 1, (7,), 2))


class RingSteps(Steps):
    """The step-through: `.variant` chooses what is left out."""

    def __init__(self, base: Ring) -> None:
        self.base = base
        self.variant = widgets().Dropdown(
            options=list(VARIANTS),
            value=WHOLE,
            description="leave out",
            tooltip="Keyboard: arrow keys choose what is left out",
            layout={"width": "min(420px, 95%)"},
        )
        jumps = {
            "next phase »": (
                "Go to the next step that ends a phase",
                self.next_where(lambda step: step in turns(self.trace)),
            ),
            "end »": ("Go to the last step", lambda _: self.last),
        }
        super().__init__(jumps, self.variant, interval_ms=900)

    @property
    def last(self) -> int:
        """The last step of the run that is shown."""
        return len(self.trace.moments) - 1

    @property
    def trace(self) -> RingRun:
        """The run that is shown."""
        return found(self.variant.value, self.base)

    def frame(self, step: int) -> str:
        """Return the picture of a step as SVG."""
        return frame(self.trace, step)

    def static(self) -> Html:
        """Return a step at which much is under way, the steps that end a phase, and what goes wrong."""
        whole = found(WHOLE, self.base)
        failures = {name: found(name, self.base).outcome for name in VARIANTS if name != WHOLE}
        rows = [[escape(name), escape(outcome)] for name, outcome in failures.items()]
        said = (
            f"{plural(self.base.visits, 'block')} of K go through {plural(self.base.stages, 'stage')} in "
            f"{whole.outcome.steps} steps"
        )
        ended = " ".join(f"Step {step}: {whole.moments[step].did}." for step in turns(whole)[:MOST_TURNS])
        words = f"{said}. {ended} " + " ".join(
            f"Left out: {name}. {outcome}" for name, outcome in failures.items()
        )
        wrong = table(["left out", "an order of steps in which it goes wrong"], rows, left=(0, 1))
        body = frame(whole, _busiest(whole)) + _scrolling(_turns_table(whole)) + _scrolling(wrong)
        return Html(card(body + note(LEGEND), words, title=said), words)


@functools.lru_cache(maxsize=32)
def found(variant: str, base: Ring) -> RingRun:
    """Return the run that shows a variant: of seed 0, or of the next one that goes wrong as it should.

    Where none of many does (few stages cannot show everything), the first that goes wrong in any way, or the
    first.
    """
    chosen = VARIANTS[variant]
    shown = chosen.ring(base)
    if not chosen.problem:
        return trace(shown, 0)
    wrong = []
    for seed in range(SEEDS):
        problem = run(shown, seed).problem
        if problem and chosen.problem in problem:
            return trace(shown, seed)
        wrong += [seed] if problem else []
    return trace(shown, wrong[0] if wrong else 0)


def turns(shown: RingRun) -> list[int]:
    """Return the steps at which a phase ended."""

    def phases(moment: RingMoment) -> list[int]:
        every = [one for block in moment.stages for one in block]
        return [barrier.phase for one in every for barrier in (one.full, one.empty)]

    pairs = pairwise(shown.moments)
    return [step for step, (old, new) in enumerate(pairs, start=1) if phases(old) != phases(new)]


# -- one step ----------------------------------------------------------------------------------------------


def frame(shown: RingRun, step: int) -> str:
    """Return the picture of a step: stages with their barriers, and below each those who are at it."""
    on = Sheet()
    moment = shown.moments[step]
    before = shown.moments[max(step - 1, 0)]
    width = LEFT + shown.ring.stages * (WIDE + GAP) + 4
    width = max(width, 640.0)
    on.write(10, 18, _left_out(shown.ring), size=12.5, fill=QUIET)
    y = 28.0
    for block, stages in enumerate(moment.stages):
        name = f"block {block}" if shown.ring.blocks > 1 else "stages"
        on.write(10, y + 18, name, bold=True)
        for number, stage in enumerate(stages):
            x = LEFT + number * (WIDE + GAP)
            _stage(on, x, y, number, stage, is_new=stage != before.stages[block][number])
        y += HIGH + 4
        for actor in (one for one in moment.actors if one.block == block):
            _actor(on, y, actor, is_new=actor not in before.actors)
            y += ROW
        y += 14
    on_their_way = _copies(moment, shown.ring)
    on.write(10, y + 8, f"on their way: {on_their_way}", fill=QUIET)
    on.write(10, y + 32, sentence(shown, step), size=15, bold=True)
    if problem := _goes_wrong(shown, step):
        on.write(10, y + 54, problem, fill=DEEP_PINK, bold=True)
    return on.svg(width, y + 66, label(shown, step))


def _left_out(ring: Ring) -> str:
    """Say which parts of the protocol are left out."""
    parts = {
        "the flip of the parity": ring.flips,
        "reports to the other block": ring.remote_reports,
        "the meeting at the end": ring.meets_at_the_end,
    }
    return f"Left out: {', '.join(name for name, is_in in parts.items() if not is_in) or 'nothing'}."


def sentence(shown: RingRun, step: int) -> str:
    """Say what has been done in a step."""
    if step == 0:
        return "Before the first step"
    ending = " – everybody is done" if shown.outcome.problem is None else ""
    last = len(shown.moments) - 1
    return f"Step {step} of {last}: {shown.moments[step].did}{ending if step == last else ''}"


def label(shown: RingRun, step: int) -> str:
    """Return a step in words: what was done, the stages, and who waits for what."""
    moment = shown.moments[step]
    of_block = [f"of block {block} " if shown.ring.blocks > 1 else "" for block in range(shown.ring.blocks)]
    stages = "; ".join(
        f"stage {number} {of_block[block]}is {state(stage)}"
        for block, row in enumerate(moment.stages)
        for number, stage in enumerate(row)
    )
    actors = "; ".join(f"{one.name} {of_block[one.block]}– {_doing(one)}" for one in moment.actors)
    words = f"{sentence(shown, step)}. {_left_out(shown.ring)} {stages}. {actors}. {_goes_wrong(shown, step)}"
    return words.rstrip()


def _goes_wrong(shown: RingRun, step: int) -> str:
    is_last = step == len(shown.moments) - 1
    return f"It goes wrong. {shown.outcome.problem}" if is_last and shown.outcome.problem else ""


def state(stage: StageState) -> str:
    """Say how a stage stands: empty, ordered, full or being read, and of which block of K."""
    held = {visit for visit in stage.held if visit is not None}
    every = ", ".join("–" if visit is None else str(visit) for visit in stage.held)
    name = f"block {held.pop()}" if len(held) == 1 and None not in stage.held else f"blocks {every}"
    if stage.readers:
        return f"read by {plural(stage.readers, 'warp')}: {name}"
    if stage.full.phase > stage.empty.phase:
        return f"full: {name}"
    return "ordered" if stage.full.arrivals == 0 else "empty"


def _stage(on: Sheet, x: float, y: float, number: int, stage: StageState, is_new: bool) -> None:
    said = state(stage)
    is_full = stage.full.phase > stage.empty.phase
    fill = VIOLET_TINT if stage.readers else PINK_TINT if is_full else GREY_TINT
    dash = "5 3" if said == "ordered" else None
    stroke, thick = (INK, 2.5) if is_new else (LINE if not (is_full or dash) else QUIET, 1)
    on.box(x, y, WIDE, HIGH, fill=fill, stroke=stroke, stroke_width=thick, dash=dash, radius=5)
    on.write(x + 10, y + 19, f"stage {number}", bold=True)
    on.write(x + 10, y + 37, said, size=12.5)
    for line, (name, barrier) in enumerate((("full", stage.full), ("empty", stage.empty))):
        top = y + 58 + 38 * line
        on.write(x + 10, top, f"{name}: phase {barrier.phase}, parity {barrier.parity}", size=12)
        on.write(x + 10, top + 16, _missing(barrier), size=11.5, fill=QUIET)


def _missing(barrier: BarrierState) -> str:
    """Say what a barrier's phase still needs."""
    needs = []
    if barrier.arrivals:
        needs.append(plural(barrier.arrivals, "arrival"))
    if barrier.copies > 0:
        needs.append(plural(barrier.copies, "copy"))
    early = f"; {-barrier.copies} came early" if barrier.copies < 0 else ""
    return f"needs {', '.join(needs) or 'nothing'}{early}"


def _actor(on: Sheet, y: float, actor: ActorState, is_new: bool) -> None:
    """Draw where somebody is: a strip in the column of the stage."""
    is_producer = actor.name == "producer"
    colour, tint = (PINK, PINK_TINT) if is_producer else (VIOLET, VIOLET_TINT)
    on.write(10, y + 17, actor.name, size=12.5, bold=True)
    at_home = actor.has_ended or actor.waits_for == "the others"
    x = LEFT + (0 if at_home else actor.stage) * (WIDE + GAP)
    ground, dash = (tint, None) if actor.is_able and not actor.has_ended else (PAPER, "4 3")
    if actor.has_ended:
        on.write(x + 8, y + 17, "has ended", size=12, fill=QUIET)
        return
    edge, thick = (INK, 2.5) if is_new else (colour, 1)
    on.box(x, y + 2, WIDE, ROW - 4, fill=ground, stroke=edge, stroke_width=thick, dash=dash, radius=4)
    on.write(x + 8, y + 18, _doing(actor).removeprefix("block "), size=11.5)


def _doing(actor: ActorState) -> str:
    if actor.has_ended:
        return "has ended"
    if actor.waits_for == "the others":
        return "is done, waits for others"
    if not actor.waits_for:
        return f"block {actor.visit}: busy"
    verb = "may pass" if actor.is_able else "waits for"
    return f"block {actor.visit}: {verb} {actor.waits_for}, parity {actor.parity}"


def _copies(moment: RingMoment, shown: Ring) -> str:
    if not moment.copies:
        return "nothing"
    names = [
        ("B" if part == shown.blocks else "A")
        + f" of block {visit}"
        + (f" to block {block}" if shown.blocks > 1 else "")
        for block, _, part, visit in moment.copies
    ]
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


# -- the still twin ----------------------------------------------------------------------------------------


def _busiest(shown: RingRun) -> int:
    """Return the step at which the stages differ most in how they stand, while nobody is done."""

    def kinds(step: int) -> tuple[bool, int, int]:
        moment = shown.moments[step]
        said = {state(stage).split()[0] for row in moment.stages for stage in row}
        at_work = all(actor.visit < shown.ring.visits for actor in moment.actors)
        return at_work, len(said), step

    return max(range(len(shown.moments)), key=kinds)


def _turns_table(shown: RingRun) -> str:
    head = ["step", "what ends a phase", *(f"stage {number}" for number in range(shown.ring.stages))]
    rows = [
        [str(step), escape(shown.moments[step].did)]
        + [re.sub("read by .*: ", "read: ", escape(state(stage))) for stage in shown.moments[step].stages[0]]
        for step in turns(shown)[:MOST_TURNS]
    ]
    return table(head, rows, left=tuple(range(1, len(head))))


def _scrolling(content: str) -> str:
    return f'<div style="overflow-x:auto;margin-top:10px">{content}</div>'
