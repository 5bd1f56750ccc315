"""What a line of assembler costs and gives: operations, bytes loaded, broadcasts, prefetches.

`instructions.read` says what kind an instruction is; here stands how much it does. x86-64 and AArch64.
"""

from __future__ import annotations

import re

from course_lib.measure.instructions import read

_X86_ELEMENT = re.compile(r"^v?[a-z0-9]*?(?P<width>p|s)(?P<type>[sdh])$")
_X86_REGISTER = re.compile(r"\b([xyz])mm\d+")
_X86_BROADCAST = re.compile(r"^v?p?broadcast|^v?movddup")
_ARM_REGISTER = re.compile(r"\b([qdsh])\d+\b")
_ARM_VECTOR = re.compile(r"\bv\d+\.(\d*)([bhsd])\b")
_BYTES = {"x": 16, "y": 32, "z": 64, "q": 16, "d": 8, "s": 4, "h": 2, "b": 1}


def flops_of(line: str) -> int:
    """Return the floating-point operations of an instruction: a fused multiply-add does two a lane."""
    instruction = read(line)
    if not instruction.kind:
        return 0
    lanes = instruction.vector_bits // 8 // _element_bytes(line) if instruction.vector_bits else 1
    return lanes * (2 if instruction.kind == "fma" else 1)


def loaded_bytes(line: str) -> int:
    """Return the bytes an instruction brings from memory into floating-point or vector registers."""
    if not read(line).loads:
        return 0
    mnemonic, operands = _split(line)
    if is_broadcast(line):
        return _element_bytes(line)
    if mnemonic.startswith("ld"):  # ARM
        vectors = [int(lanes or 1) * _BYTES[kind] for lanes, kind in _ARM_VECTOR.findall(operands)]
        return sum(vectors) + sum(_BYTES[kind] for kind in _ARM_REGISTER.findall(operands))
    registers = _X86_REGISTER.findall(operands)
    if not registers:
        return 0
    if (found := _X86_ELEMENT.match(mnemonic)) and found["width"] == "s":
        return _BYTES[found["type"]]
    return max(_BYTES[size] for size in registers)


def is_broadcast(line: str) -> bool:
    """Say whether an instruction reads one number from memory into all lanes of a register."""
    mnemonic, operands = _split(line)
    if not read(line).loads:
        return False
    return bool(_X86_BROADCAST.match(mnemonic) or "{1to" in operands or mnemonic == "ld1r")


def is_prefetch(line: str) -> bool:
    """Say whether an instruction only asks for a cache line."""
    return _split(line)[0].startswith(("prefetch", "prfm"))


def is_instruction(line: str) -> bool:
    """Say whether a line is an instruction rather than a label or a directive."""
    mnemonic, _ = _split(line)
    return bool(mnemonic) and not mnemonic.endswith(":") and not mnemonic.startswith(".")


def _element_bytes(line: str) -> int:
    mnemonic, operands = _split(line)
    if found := _ARM_VECTOR.search(operands):
        return _BYTES[found[2]]
    if mnemonic in ("vmovddup", "movddup"):
        return 8
    found = _X86_ELEMENT.match(mnemonic)
    return _BYTES[found["type"]] if found else 4


def _split(line: str) -> tuple[str, str]:
    mnemonic, *operands = line.split(None, 1) or [""]
    return mnemonic.lower(), operands[0] if operands else ""
