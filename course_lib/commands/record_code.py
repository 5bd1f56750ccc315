"""`python -m course_lib record --code`: what the CUDA rungs become, for those who lack the compiler.

Each rung is compiled with the first tile of its list, for wide rows, and for A100 and H100; its inner loop
goes into `course_lib/measure/listings/`, which `course_lib.measure.code_listing` reads. No GPU is needed.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from course_lib import ladder
from course_lib.measure import code_listing
from course_lib.measure.code_listing import MATRICES, Listing

ARCHITECTURES = ((8, 0), (9, 0))
THREADS = 1024  # of a block, in the rungs without a choice of tiles


@dataclass(frozen=True)
class Subject:
    """A rung's kernel with its first tile."""

    rung: str
    kernel: Any
    tile: str
    threads: int


def subjects() -> Iterator[Subject]:
    """Yield what is recorded: one kernel for each CUDA rung."""
    for entry in ladder.LADDER:
        if not entry.id.startswith("cuda-"):
            continue
        module = entry.module()
        if hasattr(module, "TILES"):
            tile = module.TILES[0]
            yield Subject(entry.id, module.kernel(tile), str(tile), tile.threads)
        else:
            (kernel,) = (value for value in vars(module).values() if _is_kernel(value, module.__name__))
            yield Subject(entry.id, kernel, "", THREADS)


def compiled(subject: Subject, cc: tuple[int, int]) -> Listing:
    """Return the subject's listing, compiled here; raises CannotCompile."""
    from numba import float32, types

    from course_lib.measure.device_code import compile_kernel

    matrix = types.Array(float32, 2, "C")
    code = compile_kernel(subject.kernel, matrix, matrix, matrix, cc=cc)
    made = code_listing.of(code, subject.kernel, MATRICES, subject.threads)
    return replace(made, rung=subject.rung, tile=subject.tile)


def run(folder: Path | None, commit: str) -> int:
    """Compile all and write the files; return the exit code."""
    from course_lib.measure import machine

    if sentence := machine.missing("cubin"):
        print(f"record: {sentence}")
        return 2
    folder = folder or code_listing.FOLDER
    when = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    for subject in subjects():
        listings = [replace(compiled(subject, cc), when=when, commit=commit) for cc in ARCHITECTURES]
        try:
            path = code_listing.write(listings, folder)
        except OSError as problem:
            print(f"record: the file cannot be written to {folder} ({problem.strerror}): see --folder.")
            return 1
        for one in listings:
            print(
                f"{one.rung:16} {one.cc[0]}.{one.cc[1]}  {one.registers:3} registers, "
                f"{one.kinds['FMA']} FMAs in {len(one.loop)} instructions a turn"
            )
        print(f"Written to {path}.")
    return 0


def _is_kernel(value: Any, module: str) -> bool:
    function = getattr(value, "py_func", None)
    is_device_function = getattr(value, "targetoptions", {}).get("device", False)
    return function is not None and function.__module__ == module and not is_device_function
