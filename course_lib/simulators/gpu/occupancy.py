"""Theoretical occupancy: how many warps of a kernel fit on one streaming multiprocessor (SM).

    occupancy(None, 1024, (8, 6), registers=37, shared_bytes=8192).table()
    occupancy(kernel, (16, 16), (9, 0))          # a compiled @cuda.jit kernel knows its registers

An SM takes whole blocks, as many as its warps, its list of blocks, its registers and its shared memory
allow; the scarcest decides. Occupancy is the number of warps it then holds, divided by those it could hold.

The rules of allocation are those of NVIDIA's occupancy calculator (`cuda_occupancy.h`, CUDA 12.9 and 13.0;
Nsight Compute, "Occupancy Calculator"); the limits are in `compute_capabilities`. Registers are given to
whole warps, in units of 256. Each of the 4 sub-partitions has a quarter of them and takes whole warps too:
registers allow a multiple of 4 warps per SM (the calculator's "warp allocation granularity"). From compute
capability 8.0 on the system takes 1 KiB of shared memory in every block.

Theoretical means: as if there were enough blocks, each running for ever. The calculation takes the largest
share of the joint L1 cache and shared memory for shared memory, which is what a launch gets when it asks for
it; it knows nothing of thread block clusters, nor of blocks with more than one barrier.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from course_lib.measure.sizes import in_bytes
from course_lib.measure.table import Table, digits
from course_lib.simulators.gpu.compute_capabilities import (
    KIB,
    MOST_ALONG,
    MOST_REGISTERS,
    MOST_THREADS,
    REGISTER_UNIT,
    REGISTERS_PER_SM,
    SUB_PARTITIONS,
    WARP,
    WITHOUT_ASKING,
    Limits,
    limits_of,
)
from course_lib.simulators.gpu.kernel_resources import is_compiled, resources_of
from course_lib.simulators.gpu.whole_numbers import check_whole

RESOURCES = ("warps", "blocks", "registers", "shared memory")
UNITS = {
    "registers": "registers per thread",
    "threads": "threads per block",
    "shared_bytes": "bytes of shared memory per block",
}


@dataclass(frozen=True)
class Curve:
    """Occupancy against one quantity, all others kept: tuples with one entry per value of `x`."""

    over: str  # "registers", "threads" or "shared_bytes"
    unit: str  # of x, for an axis
    x: tuple[int, ...]
    here: int  # the value the kernel has
    warps_per_sm: tuple[int, ...]
    occupancy: tuple[float, ...]
    limited_by: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Occupancy:
    """How a kernel fits on an SM: `threads` per block, `registers` per thread, shared memory per block."""

    limits: Limits
    threads: int
    registers: int
    shared_bytes: int  # static and dynamic, without what the system takes

    @property
    def warps_per_block(self) -> int:
        """Warps of a block; the last one may be partly empty."""
        return _up(self.threads, WARP) // WARP

    @property
    def registers_per_warp(self) -> int:
        """Registers a warp is given: those it uses, rounded up to the unit of allocation."""
        return _up(self.registers * WARP, REGISTER_UNIT)

    @property
    def registers_per_block(self) -> int:
        """Registers a block is given."""
        return self.registers_per_warp * self.warps_per_block

    @property
    def shared_per_block(self) -> int:
        """Bytes of shared memory a block is given, the system's part and rounding included."""
        return _up(self.shared_bytes + self.limits.reserved_bytes, self.limits.shared_unit)

    @property
    def blocks_by(self) -> dict[str, int | None]:
        """How many blocks each resource has room for; None: the kernel needs nothing of it."""
        shared = self.limits.shared_bytes // self.shared_per_block if self.shared_per_block else None
        return {
            "warps": self.limits.warps // self.warps_per_block,
            "blocks": self.limits.blocks,
            "registers": self._blocks_by_registers(),
            "shared memory": shared,
        }

    def _blocks_by_registers(self) -> int:
        per_sub_partition = REGISTERS_PER_SM // SUB_PARTITIONS // self.registers_per_warp
        return SUB_PARTITIONS * per_sub_partition // self.warps_per_block

    @property
    def blocks_per_sm(self) -> int:
        """Blocks resident on an SM; 0 if the kernel cannot be launched like this."""
        return min(count for count in self.blocks_by.values() if count is not None)

    @property
    def warps_per_sm(self) -> int:
        """Warps resident on an SM."""
        return self.blocks_per_sm * self.warps_per_block

    @property
    def occupancy(self) -> float:
        """Resident warps divided by the most an SM can hold: 0 to 1."""
        return self.warps_per_sm / self.limits.warps

    @property
    def limited_by(self) -> tuple[str, ...]:
        """The resources that allow no further block: all that tie, in the order of RESOURCES."""
        return tuple(name for name in RESOURCES if self.blocks_by[name] == self.blocks_per_sm)

    def curve(self, over: str = "registers", values: Iterable[int] | None = None) -> Curve:
        """Return the occupancy against `over` ("registers", "threads", "shared_bytes"), the rest unchanged.

        `values` None: 1 to 255 registers; whole warps up to 1024 threads; every KiB of shared memory that a
        block may have. Where no block can be launched the occupancy is 0. Raises ValueError for another
        `over` or a value beyond the limits.
        """
        if over not in UNITS:
            raise ValueError(f"over is {over!r}, but a curve goes over {' or '.join(map(repr, UNITS))}.")
        x = tuple(_every(over, self.limits) if values is None else values)
        for value in x:
            _CHECKS[over](value, self.limits)
        points = [replace(self, **{over: value}) for value in x]
        return Curve(
            over,
            UNITS[over],
            x,
            getattr(self, over),
            tuple(point.warps_per_sm for point in points),
            tuple(point.occupancy for point in points),
            tuple(point.limited_by for point in points),
        )

    def table(self) -> Table:
        """Return what a block is given, what an SM has, and how many blocks that makes."""
        limits, by = self.limits, self.blocks_by
        rows = (
            ("warps", f"{self.warps_per_block}", f"{limits.warps}", _count(by["warps"])),
            ("blocks", "1", f"{limits.blocks}", _count(by["blocks"])),
            ("registers", f"{self.registers_per_block:,}", f"{REGISTERS_PER_SM:,}", _count(by["registers"])),
            (
                "shared memory",
                in_bytes(self.shared_per_block, digits=4),
                in_bytes(limits.shared_bytes, digits=4),
                _count(by["shared memory"]),
            ),
        )
        caption = (
            f"Occupancy {digits(100 * self.occupancy)} %: {self.warps_per_sm} of {limits.warps} warps in "
            f"{self.blocks_per_sm} block{'s' * (self.blocks_per_sm != 1)} per SM, "
            f"limited by {' and '.join(self.limited_by)}"
        )
        return Table(("", "a block takes", "an SM has", "blocks"), rows, caption, notes=tuple(self._notes()))

    def _notes(self) -> list[str]:
        notes = [
            f"Compute capability {self.limits.name}, {self.threads} threads per block, {self.registers} "
            f"registers per thread ({self.registers_per_warp // WARP} allocated)."
        ]
        if self.limits.reserved_bytes:
            notes.append("The system takes 1 KiB of shared memory in every block.")
        if self.shared_bytes > WITHOUT_ASKING:
            notes.append("Above 48 KiB shared memory must be dynamic, and the kernel must opt in to it.")
        if not self.blocks_per_sm:
            notes.append("A block needs more registers than there are: the launch would fail.")
        return notes

    def __str__(self) -> str:
        return str(self.table())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def occupancy(
    kernel: Any,
    block: int | tuple[int, ...],
    cc: tuple[int, int] | str | float,
    *,
    registers: int | None = None,
    shared_bytes: int = 0,
) -> Occupancy:
    """Return how many blocks and warps of a kernel are resident on an SM of compute capability `cc`.

    kernel: a `@cuda.jit` kernel that has been compiled (it has been launched, or was given a signature); its
    registers and its static shared memory are read from it, and belong to the GPU that it was compiled for.
    None, or a kernel that is not compiled: give `registers`. No driver is asked unless Numba has used it
    already. block: threads per block, or its shape. registers: per thread, 1 to 255; goes before the
    kernel's own. shared_bytes: shared memory per block, in addition to what the kernel is known to declare.
    cc: 7.5, 8.0, 8.6, 8.7, 8.9 or 9.0, as (8, 6) or "8.6".

    A block that fits all limits but needs more registers than an SM has gives occupancy 0: its launch would
    fail. Raises ValueError for numbers beyond the limits, TypeError for something that is no kernel.
    """
    limits = limits_of(cc)
    threads = _threads_of(block)
    static_bytes = 0
    if kernel is not None and (registers is None or is_compiled(kernel)):
        own_registers, static_bytes = resources_of(kernel)
        registers = own_registers if registers is None else registers
    if registers is None:
        raise ValueError("There is no kernel to ask for its registers: give registers=, for example 32.")
    _check_registers(registers, limits)
    check_whole("shared_bytes", shared_bytes, 0)
    _check_shared(shared_bytes + static_bytes, limits)
    return Occupancy(limits, threads, registers, shared_bytes + static_bytes)


# -- checks ------------------------------------------------------------------------------------------------


def _threads_of(block: int | tuple[int, ...]) -> int:
    shape = tuple(block) if isinstance(block, tuple | list) else (block,)
    if not 1 <= len(shape) <= 3:
        raise ValueError(f"block is {block!r}, but it must be a number of threads or a shape of up to three.")
    for along, most in zip(shape, MOST_ALONG, strict=False):
        check_whole("block", along, 1)
        if along > most:
            raise ValueError(f"block is {block!r}, but along x, y, z it has 1024, 1024, 64 threads at most.")
    threads = math.prod(shape)
    if threads > MOST_THREADS:
        raise ValueError(
            f"block is {block!r}, which makes {threads} threads, but a block has {MOST_THREADS} at most."
        )
    return threads


def _check_threads(threads: int, limits: Limits) -> None:
    _threads_of(threads)


def _check_registers(registers: int, limits: Limits) -> None:
    check_whole("registers", registers, 1)
    if registers > MOST_REGISTERS:
        raise ValueError(
            f"registers is {registers}, but a thread has {MOST_REGISTERS} at most: what is beyond is spilled "
            "to memory by the compiler."
        )


def _check_shared(shared_bytes: int, limits: Limits) -> None:
    check_whole("shared_bytes", shared_bytes, 0)
    if shared_bytes > limits.shared_bytes_per_block:
        raise ValueError(
            f"The block needs {shared_bytes:,} bytes of shared memory, but with compute capability "
            f"{limits.name} it may have {limits.shared_bytes_per_block:,} at most: use smaller tiles."
        )


_CHECKS = {"registers": _check_registers, "threads": _check_threads, "shared_bytes": _check_shared}


# -- small arithmetic --------------------------------------------------------------------------------------


def _up(value: int, unit: int) -> int:
    """Return the least multiple of `unit` that is not below `value`."""
    return -(-value // unit) * unit


def _every(over: str, limits: Limits) -> range:
    ranges = {
        "registers": range(1, MOST_REGISTERS + 1),
        "threads": range(WARP, MOST_THREADS + 1, WARP),
        "shared_bytes": range(0, limits.shared_bytes_per_block + 1, KIB),
    }
    return ranges[over]


def _count(blocks: int | None) -> str:
    return "any" if blocks is None else f"{blocks}"
