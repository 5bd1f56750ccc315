"""`python -m course_lib record --code`: what the CUDA rungs become, for those who lack the compiler.

Each rung is compiled with the first tile of its list, for wide rows, and for A100 and H100; its inner loop
goes into `course_lib/measure/listings/`, which `course_lib.measure.code_listing` reads. No GPU is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from course_lib import ladder
from course_lib.commands import record_order
from course_lib.commands.record_order import RecordOrder
from course_lib.measure import code_listing
from course_lib.measure.code_listing import MATRICES, Listing

ARCHITECTURES = ((8, 0), (9, 0))
THREADS = 1024  # of a block, in the rungs without a choice of tiles


@dataclass(frozen=True)
class CompiledRung:
    """A rung's kernel with its first tile."""

    rung: str
    kernel: Any
    tile: str
    threads: int


def subjects() -> Iterator[CompiledRung]:
    """Yield what is recorded: one kernel for each CUDA rung."""
    for entry in ladder.LADDER:
        if not entry.id.startswith("cuda-"):
            continue
        module = entry.module()
        if hasattr(module, "TILES"):
            tile = module.TILES[0]
            yield CompiledRung(entry.id, module.kernel(tile), str(tile), tile.threads)
        else:
            (kernel,) = (value for value in vars(module).values() if _is_kernel(value, module.__name__))
            yield CompiledRung(entry.id, kernel, "", THREADS)


def compiled(subject: CompiledRung, cc: tuple[int, int]) -> Listing:
    """Return the subject's listing, compiled here; raises CannotCompile."""
    from numba import float32, types

    from course_lib.measure.device_code import compile_kernel

    matrix = types.Array(float32, 2, "C")
    code = compile_kernel(subject.kernel, matrix, matrix, matrix, cc=cc)
    made = code_listing.of(code, subject.kernel, MATRICES, subject.threads)
    return replace(made, rung=subject.rung, tile=subject.tile)


def run(order: RecordOrder) -> int:
    """Compile all and write the files; return the exit code."""
    from course_lib.measure import machine

    record_order.refuse(machine.missing("cubin"))
    when = record_order.now()
    for subject in subjects():
        listings = [replace(compiled(subject, cc), when=when, commit=order.commit) for cc in ARCHITECTURES]
        for listing in listings:
            print(
                f"{listing.rung:16} {listing.cc[0]}.{listing.cc[1]}  {listing.registers:3} registers, "
                f"{listing.kinds['FMA']} FMAs in {len(listing.loop)} instructions a turn"
            )
        record_order.write(code_listing.write, listings, order.folder or code_listing.FOLDER)
    return 0


def _is_kernel(value: Any, module: str) -> bool:
    function = getattr(value, "py_func", None)
    is_device_function = getattr(value, "targetoptions", {}).get("device", False)
    return function is not None and function.__module__ == module and not is_device_function
