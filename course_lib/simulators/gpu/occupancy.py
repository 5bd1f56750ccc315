"""Theoretical occupancy: how many warps of a kernel fit on one streaming multiprocessor (SM).

    occupancy(None, 1024, (8, 6), registers=37, shared_bytes=8192).table()
    occupancy(kernel, (16, 16), (9, 0))          # a compiled @cuda.jit kernel knows its registers

An SM takes whole blocks, as many as its warps, its list of blocks, its registers and its shared memory
allow; the scarcest decides. Occupancy is the number of warps it then holds, divided by those it could hold.

The rules of allocation are those of NVIDIA's occupancy calculator (`cuda_occupancy.h`, CUDA 12.9 and 13.0;
Nsight Compute, "Occupancy Calculator"). Registers are given to
whole warps, in units of 256. Each of the 4 sub-partitions has a quarter of them and takes whole warps too:
registers allow a multiple of 4 warps per SM (the calculator's "warp allocation granularity"). From compute
capability 8.0 on the system takes 1 KiB of shared memory in every block.

Theoretical means: as if there were enough blocks, each running for ever. The calculation takes the largest
share of the joint L1 cache and shared memory for shared memory, which is what a launch gets when it asks for
it; it knows nothing of thread block clusters, nor of blocks with more than one barrier.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from course_lib.arguments import whole
from course_lib.measure.sizes import in_bytes
from course_lib.measure.table import Shown, Table, digits

# -- what an SM can hold, by compute capability --------------------------------------------------------------


KIB = 1024
WARP = 32  # threads
SUB_PARTITIONS = 4  # of an SM, each with a scheduler and a quarter of the registers
REGISTERS_PER_SM = 65_536  # 32-bit registers; a block may use all of them
MOST_REGISTERS = 255  # per thread
REGISTER_UNIT = 256  # registers are given to a warp in this many at a time
MOST_THREADS = 1024  # per block
MOST_ALONG = (1024, 1024, 64)  # threads of a block along x, y and z
WITHOUT_ASKING = 48 * KIB  # bytes of shared memory that a block may have without an opt-in


@dataclass(frozen=True)
class SmLimits:
    """What an SM of one compute capability can hold at a time; memory in bytes."""

    cc: tuple[int, int]
    blocks: int
    warps: int
    shared_bytes: int  # per SM, the largest share of the joint L1 cache and shared memory
    shared_bytes_per_block: int  # with an opt-in
    shared_unit: int  # shared memory is given to a block in multiples of this
    reserved_bytes: int  # of shared memory, per block, taken by the system

    @property
    def name(self) -> str:
        """The compute capability as it is written: "8.6"."""
        return f"{self.cc[0]}.{self.cc[1]}"


LIMITS = {
    limits.cc: limits
    for limits in (
        SmLimits((7, 5), 16, 32, 64 * KIB, 64 * KIB, 256, 0),
        SmLimits((8, 0), 32, 64, 164 * KIB, 163 * KIB, 128, KIB),
        SmLimits((8, 6), 16, 48, 100 * KIB, 99 * KIB, 128, KIB),
        SmLimits((8, 7), 16, 48, 164 * KIB, 163 * KIB, 128, KIB),
        SmLimits((8, 9), 24, 48, 100 * KIB, 99 * KIB, 128, KIB),
        SmLimits((9, 0), 32, 64, 228 * KIB, 227 * KIB, 128, KIB),
    )
}


def limits_of(cc: tuple[int, int] | str | float) -> SmLimits:
    """Return the limits of a compute capability, given as (8, 6), "8.6" or 8.6.

    Raises ValueError for one that is not in the table.
    """
    written = ".".join(map(str, cc)) if isinstance(cc, tuple | list) else str(cc)
    for limits in LIMITS.values():
        if limits.name == written:
            return limits
    known = ", ".join(limits.name for limits in LIMITS.values())
    raise ValueError(
        f"cc is {cc!r}, but the limits are known for {known}: give one of these, for example (8, 6)."
    )


# -- what a compiled kernel needs ----------------------------------------------------------------------------


def is_compiled(kernel: Callable) -> bool:
    """Return whether Numba has compiled the kernel for a GPU. TypeError if it cannot be a kernel."""
    if not callable(kernel):
        raise TypeError(f"kernel is {kernel!r}, but it must be a @cuda.jit kernel, or None with registers=.")
    # A device function and a kernel of Numba's simulator never have registers of their own to tell.
    is_device_function = getattr(kernel, "targetoptions", {}).get("device", False)
    return bool(getattr(kernel, "overloads", None)) and not is_device_function


def resources_of(kernel: Callable) -> tuple[int, int]:
    """Return (registers per thread, static bytes of shared memory per block) of a compiled kernel.

    Raises ValueError if it is not compiled, or compiled for several signatures that differ in what they need.
    """
    name = getattr(kernel, "__name__", "the kernel")
    if not is_compiled(kernel):
        raise ValueError(
            f"{name} has not been compiled for a GPU, so its registers are not known: give registers=."
        )
    answers = kernel.get_regs_per_thread(), kernel.get_shared_mem_per_block()  # a number, or by signature
    answers = (list(one.values()) if isinstance(one, dict) else [one] for one in answers)
    variants = sorted(set(zip(*answers, strict=True)))
    if len(variants) > 1:
        several = " or ".join(f"{count} registers and {size} bytes" for count, size in variants)
        raise ValueError(
            f"{name} takes {several} of shared memory, depending on its arguments: give None instead of the "
            "kernel, and registers= and shared_bytes= of the variant you mean."
        )
    return variants[0]


# -- occupancy -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Occupancy(Shown):
    """How a kernel fits on an SM: `threads` per block, `registers` per thread, shared memory per block."""

    limits: SmLimits
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
        warps = SUB_PARTITIONS * (REGISTERS_PER_SM // SUB_PARTITIONS // self.registers_per_warp)
        return {
            "warps": self.limits.warps // self.warps_per_block,
            "blocks": self.limits.blocks,
            "registers": warps // self.warps_per_block,
            "shared memory": shared,
        }

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
        """The resources that allow no further block: all that tie."""
        return tuple(name for name, blocks in self.blocks_by.items() if blocks == self.blocks_per_sm)

    def table(self) -> Table:
        """Return what a block is given, what an SM has, and how many blocks that makes."""
        limits = self.limits
        taken = {
            "warps": (f"{self.warps_per_block}", f"{limits.warps}"),
            "blocks": ("1", f"{limits.blocks}"),
            "registers": (f"{self.registers_per_block:,}", f"{REGISTERS_PER_SM:,}"),
            "shared memory": tuple(
                in_bytes(size, digits=4) for size in (self.shared_per_block, limits.shared_bytes)
            ),
        }
        rows = tuple(
            (name, *taken[name], "any" if blocks is None else f"{blocks}")
            for name, blocks in self.blocks_by.items()
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
    whole("registers", registers)
    if registers > MOST_REGISTERS:
        raise ValueError(
            f"registers is {registers}, but a thread has {MOST_REGISTERS} at most: what is beyond is spilled "
            "to memory by the compiler."
        )
    shared_bytes = whole("shared_bytes", shared_bytes, least=0) + static_bytes
    if shared_bytes > limits.shared_bytes_per_block:
        raise ValueError(
            f"The block needs {shared_bytes:,} bytes of shared memory, but with compute capability "
            f"{limits.name} it may have {limits.shared_bytes_per_block:,} at most: use smaller tiles."
        )
    return Occupancy(limits, threads, registers, shared_bytes)


# -- checks ------------------------------------------------------------------------------------------------


def _threads_of(block: int | tuple[int, ...]) -> int:
    shape = tuple(block) if isinstance(block, tuple | list) else (block,)
    if not 1 <= len(shape) <= 3:
        raise ValueError(f"block is {block!r}, but it must be a number of threads or a shape of up to three.")
    for along, most in zip(shape, MOST_ALONG, strict=False):
        whole("block", along)
        if along > most:
            raise ValueError(f"block is {block!r}, but along x, y, z it has 1024, 1024, 64 threads at most.")
    threads = math.prod(shape)
    if threads > MOST_THREADS:
        raise ValueError(
            f"block is {block!r}, which makes {threads} threads, but a block has {MOST_THREADS} at most."
        )
    return threads


def _up(value: int, unit: int) -> int:
    """Return the least multiple of `unit` that is not below `value`."""
    return -(-value // unit) * unit
