"""Kernel search: the model's favourites, timed on this GPU; the fastest is kept for products of its kind.

    best(4096, 7168, 2048, gpu)           # what was kept, or else the model's favourite; needs no GPU
    search(4096, 7168, 2048, gpu, start, timer, check)      # seconds of the candidates; `searching` calls it

On a machine with a Hopper GPU `python -m course_lib search 4096 7168 2048` searches.

A kind is a GPU, N, K and a class of M. What is kept belongs to the text of the kernels and the compiler: when
one of them changes, the search is as if it had never been.

Not yet run on a GPU: how the times are taken.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cache
from typing import Any

from course_lib.fp8 import jit
from course_lib.fp8.choice import Choice, candidates
from course_lib.fp8.choose import Hopper
from course_lib.fp8.tiles import Tile
from course_lib.measure.store import Store

TRIED = 8  # of about sixty candidates; compiling one takes half a second
STEPS = ((128, 16), (512, 64))  # M up to 128 in steps of 16, as tokens come, up to 512 in rows of tiles
_known: dict[str, Choice | None] = {}  # what is kept on disk, asked for once

Timer = Callable[[Mapping[Choice, Callable[[], None]]], Mapping[Choice, float]]


def best(M: int, N: int, K: int, gpu: Hopper) -> Choice:
    """Return the choice for D (M, N): what `search` found fastest for its kind, or the model's favourite."""
    key = _key(M, N, K, gpu)
    if key not in _known:
        _known[key] = _restored(_store().read().get(key))
    return _known[key] or candidates(M, N, K, gpu)[0]


def search(
    M: int,
    N: int,
    K: int,
    gpu: Hopper,
    start: Callable[[Choice], None],
    timer: Timer,
    check: Callable[[Choice], None],
    tried: int = TRIED,
    more: tuple[Choice, ...] = (),
) -> dict[Choice, float]:
    """Time the `tried` first candidates and `more`, keep the fastest, and return all seconds, fastest first.

    `start(choice)` computes the product once, `timer` takes functions and returns seconds for each, `check`
    raises for a result that is wrong: a wrong kernel must never be kept.
    """
    chosen = dict.fromkeys((*candidates(M, N, K, gpu)[:tried], *more))  # each once
    for choice in chosen:
        start(choice)
        check(choice)
    taken = timer({choice: lambda choice=choice: start(choice) for choice in chosen})
    ranked = dict(sorted(taken.items(), key=lambda pair: pair[1]))
    fastest, key = next(iter(ranked)), _key(M, N, K, gpu)
    entry = {"kernel": fastest.kernel, "tile": asdict(fastest.tile), "seconds": ranked[fastest]}
    _store().update(lambda values: values.update({key: entry}))
    _known[key] = fastest
    return ranked


def class_of(M: int) -> int:
    """Return the largest M of the class: multiples of 16 up to 128, of 64 up to 512, then powers of two."""
    step = next((step for most, step in STEPS if most >= M), None)
    return -(-M // step) * step if step else 1 << (M - 1).bit_length()


def _key(M: int, N: int, K: int, gpu: Hopper) -> str:
    return f"{gpu.name}, {gpu.sms} SMs|{class_of(M)}x{N}x{K}|{_text()}"


@cache
def _text() -> str:
    """Return what an answer depends on besides GPU and sizes: the kernels' text and the compiler."""
    texts = "".join(path.read_text(encoding="utf-8") for path in sorted(jit.KERNELS.iterdir()))
    return f"{jit.compiler()}|{hashlib.sha256(texts.encode()).hexdigest()[:12]}"


def _restored(saved: Any) -> Choice | None:
    """Return what was kept, None if it makes no sense any more."""
    try:
        return Choice(saved["kernel"], Tile(**saved["tile"]))
    except (TypeError, KeyError, ValueError):
        return None


def _store() -> Store:
    return Store("fp8-tiles")
