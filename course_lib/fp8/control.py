"""What nvdisasm does not print: the control bits of machine code, in which the compiler plans every wait.

    code = controls(binary.cubin)                          # every instruction's Control, in order
    interleaving(code)                                     # how the FFMAs alternate between yield and reuse

An instruction of Volta and later GPUs is 16 bytes, and the upper eight carry orders to the scheduler: how
many cycles to stall, whether the warp may yield to another, which barriers to set and to wait for, and which
operands to keep for the next instruction (reuse). The layout is not documented by NVIDIA; it was found by
Jia, Maggioni, Staiger & Scarpazza 2018 ("Dissecting the NVIDIA Volta GPU architecture via microbenchmarking",
arXiv:1804.06826).

DeepGEMM once patched these bits: among the FFMAs of the promotion, every second one was made to yield instead
of keeping its operands, so that the other warpgroup's tensor-core work could start in between. Compilers from
CUDA 12.9 on do the same by themselves - which one can see here, without a GPU.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

INSTRUCTION = 16
OPCODE = 0xFFF
FFMA = 0x223  # fused multiply-add of three registers
STALL, YIELD, REUSE = (41, 4), (45, 1), (58, 4)  # in the upper 64 bits: the first bit and how many


@dataclass(frozen=True)
class Control:
    """Orders of one instruction. `keeps` is the yield bit: 0 lets another warp come next."""

    address: int
    opcode: int
    stall: int
    keeps: bool
    reuse: int


@dataclass(frozen=True)
class Interleaving:
    """How the FFMAs of a kernel stand to each other."""

    count: int
    yielding: int  # those whose yield bit is 0
    reusing: int  # those that keep an operand
    neighbours: int  # pairs of FFMAs, one directly behind the other
    alternating: int  # pairs of which one yields and the other does not

    def __str__(self) -> str:
        if not self.count:
            return "no FFMA"
        return (
            f"{self.count} FFMAs: {self.yielding / self.count:.0%} yield, "
            f"{self.reusing / self.count:.0%} reuse an operand; "
            f"{self.alternating} of {self.neighbours} neighbours alternate"
        )


def controls(cubin: bytes) -> list[Control]:
    """Return the control bits of every instruction of a cubin's kernels."""
    orders = []
    for start, size in _kernels(cubin):
        for i, (low, high) in enumerate(struct.iter_unpack("<QQ", cubin[start : start + size])):
            stall, keeps, reuse = (high >> first & (1 << bits) - 1 for first, bits in (STALL, YIELD, REUSE))
            orders.append(Control(INSTRUCTION * i, low & OPCODE, stall, bool(keeps), reuse))
    return orders


def interleaving(code: Sequence[Control]) -> Interleaving:
    """Return how the FFMAs among the instructions alternate."""
    fused = [order for order in code if order.opcode == FFMA]
    pairs = [(a, b) for a, b in itertools.pairwise(code) if a.opcode == b.opcode == FFMA]
    return Interleaving(
        len(fused),
        sum(not order.keeps for order in fused),
        sum(bool(order.reuse) for order in fused),
        len(pairs),
        sum(a.keeps != b.keeps for a, b in pairs),
    )


def without_yields(cubin: bytes) -> bytes:
    """Return the cubin with the yield bit of every FFMA set back to "keeps": what older compilers made.

    Reuse flags stay as they are, so no instruction waits for an operand that was not kept. For measuring what
    the interleaving is worth.
    """
    changed = bytearray(cubin)
    for start, size in _kernels(cubin):
        for place in range(start, start + size, INSTRUCTION):
            low, high = struct.unpack_from("<QQ", changed, place)
            if low & OPCODE == FFMA:
                struct.pack_into("<Q", changed, place + 8, high | 1 << YIELD[0])
    return bytes(changed)


def _kernels(cubin: bytes) -> Iterator[tuple[int, int]]:
    """Yield first byte and size of every section with a kernel's code."""
    if cubin[:5] != b"\x7fELF\x02":
        raise ValueError(f"a cubin is an ELF file of 64 bits, and this begins with {cubin[:5]!r}.")
    (table,) = struct.unpack_from("<Q", cubin, 40)
    entry, count, names = struct.unpack_from("<HHH", cubin, 58)
    heads = [struct.unpack_from("<IIQQQQ", cubin, table + entry * i) for i in range(count)]
    text = heads[names][4]  # where the names of the sections begin
    for name, _, _, _, start, size in heads:
        if cubin.startswith(b".text.", text + name):
            yield start, size
