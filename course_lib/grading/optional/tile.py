"""The optional task of a tile: the learner's for three products, beside what a search finds on the GPU."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from course_lib.fp8 import launch, searching
from course_lib.fp8.choice import DENSE, KernelChoice, candidates, expected
from course_lib.fp8.choose import H200
from course_lib.fp8.searching import words
from course_lib.fp8.tiles import Tile
from course_lib.grading.report import NOT_STARTED, PARTLY, RIGHT, WRONG, Report

ID, TITLE = "10.tile", "Your tile against a search"
#: K large, K small, and N that is a multiple of no large tile (shapes of DeepGEMM's tests).
SHAPES = ((4096, 7168, 16384), (4096, 32768, 512), (4096, 2112, 7168))
NEAR = 1.03  # times as long as the fastest of all is as fast: repeated measurements differ by about that


def judged(tile_for: Callable[[int, int, int], Any]) -> Report:
    """Return the report on a function (M, N, K) -> (BM, BN, cluster); raises TypeError for what is none."""
    if not callable(tile_for):
        raise TypeError(f"Your tile is {type(tile_for).__name__}, but it must be a function of M, N, K.")
    try:
        choices = {shape: _choice(tile_for, shape) for shape in SHAPES}
    except NotImplementedError:
        return _report(NOT_STARTED, ["Not started."])
    except _NoTile as problem:
        return _report(WRONG, [str(problem)])
    if sentence := launch.missing_here():
        lines = [_modelled(shape, choice) for shape, choice in choices.items()]
        return _report(PARTLY, lines, f"Nothing was measured: this is what the model expects. {sentence}")
    try:
        found = {shape: searching.here(*shape, more=(choice,)) for shape, choice in choices.items()}
    except searching.FAILURES as problem:
        return _report(WRONG, [str(problem).splitlines()[0]])
    fast = [found[shape][choice] <= NEAR * min(found[shape].values()) for shape, choice in choices.items()]
    lines = [_timed(shape, choice, found[shape]) for shape, choice in choices.items()]
    note = f"As fast as the fastest is what takes at most {NEAR:g} times as long: {sum(fast)} of {len(fast)}."
    return _report(RIGHT if all(fast) else PARTLY, lines, note)


class _NoTile(ValueError):
    """What the learner's function gave is no tile; the message says why."""


def _choice(tile_for: Callable[[int, int, int], Any], shape: tuple[int, int, int]) -> KernelChoice:
    call = f"{getattr(tile_for, '__name__', 'your function')}{shape}"
    try:
        told = tile_for(*shape)
    except NotImplementedError:
        raise
    except Exception as problem:
        raise _NoTile(f"{call} raised {type(problem).__name__}: {problem}.") from problem
    try:
        BM, BN, cluster = (operator.index(size) for size in tuple(told))
    except (TypeError, ValueError) as problem:
        wanted = "three whole numbers are wanted."
        raise _NoTile(f"{call} gave {told!r}, which is no tile (BM, BN, cluster): {wanted}") from problem
    try:
        return KernelChoice(DENSE, Tile(BM, BN, cluster))
    except ValueError as problem:
        raise _NoTile(f"{call} gave {told!r}, which is no tile (BM, BN, cluster): {problem}") from problem


def _timed(shape: tuple[int, int, int], choice: KernelChoice, found: dict[KernelChoice, float]) -> str:
    best = next(iter(found))
    yours, fastest = (f"{words(one)}, {found[one] * 1e6:.0f} us" for one in (choice, best))
    return f"{_sizes(shape)}: yours, {yours}; the fastest of {len(found)}, {fastest}."


def _modelled(shape: tuple[int, int, int], choice: KernelChoice) -> str:
    best = candidates(*shape)[0]
    yours, theirs = (expected(one, *shape) for one in (choice, best))
    return (
        f"{_sizes(shape)}: on an {H200.name} the model expects {yours.seconds * 1e6:.0f} us of yours, "
        f"{words(choice)} (limit: {yours.limit}), and {theirs.seconds * 1e6:.0f} us of its favourite, "
        f"{words(best)}."
    )


def _sizes(shape: tuple[int, int, int]) -> str:
    return " x ".join(map(str, shape))


def _report(state: str, lines: list[str], *notes: str) -> Report:
    return Report(ID, TITLE, 0, 0, state, tuple(lines), notes=notes)
