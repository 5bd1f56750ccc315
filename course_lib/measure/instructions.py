"""What a line of assembler does and costs: arithmetic, loads, jumps. x86-64 (AT&T) and AArch64."""

from __future__ import annotations

import re
from dataclasses import dataclass

_X86_ARITHMETIC = re.compile(
    r"^v?(?P<kind>fmaddsub|fmsubadd|fnmadd|fnmsub|fmadd|fmsub|addsub|hadd|mul|add|sub|div|sqrt|max|min)"
    r"(?:132|213|231)?(?P<width>p|s)(?P<type>[sdh])$"
)
_X86_JUMP = re.compile(r"^j[a-z]+$")
_X86_REGISTER = re.compile(r"\b([xyz])mm\d+")
_X86_ONLY_READ = ("cmp", "test", "bt", "vucomis", "ucomis", "vcomis", "comis", "vtest", "vptest")
_X86_NO_MEMORY = ("lea", "nop", "prefetch", "call", "jmp", "push", "pop")
_ARM_ARITHMETIC = re.compile(
    r"^(?P<kind>fmla|fmls|fmadd|fmsub|fnmadd|fnmsub|fmulx|fmul|fnmul|fadd|faddp|fsub|fdiv|fsqrt|fmax|fmin)"
    r"(?P<lanes>\.\d+[bhsd])?$"
)
_ARM_LANES = re.compile(r"\.(\d+)([bhsd])\b")
_ARM_LANE = re.compile(r"v\d+\.")
_ARM_JUMP = re.compile(r"^(b|b\.?[a-z]{2}|cbn?z|tbn?z)$")
_ALWAYS_JUMP = ("jmp", "jmpq", "b")
_RETURN = ("ret", "ud2", "br")
_X86_ELEMENT = re.compile(r"^v?[a-z0-9]*?(?P<width>p|s)(?P<type>[sdh])$")
_X86_BROADCAST = re.compile(r"^v?p?broadcast|^v?movddup")
_ARM_REGISTER = re.compile(r"\b([qdsh])\d+\b")
_ARM_VECTOR = re.compile(r"\bv\d+\.(\d*)([bhsd])\b")
_BYTES = {"x": 16, "y": 32, "z": 64, "q": 16, "d": 8, "s": 4, "h": 2, "b": 1}


@dataclass(frozen=True)
class DecodedInstruction:
    """What one instruction is and costs, as far as a loop's arithmetic and memory traffic go."""

    kind: str = ""  # "fma", "mul", "add", "other" (division, root, …) or "" for no floating-point arithmetic
    vector_bits: int = 0  # register width of packed arithmetic, 0 when scalar
    loads: bool = False
    stores: bool = False
    jumps_to: str = ""
    is_final: bool = False  # the next line does not follow: a return or a jump without a condition
    flops: int = 0  # floating-point operations: a fused multiply-add does two a lane
    loaded_bytes: int = 0  # from memory into floating-point or vector registers
    is_broadcast: bool = False  # one number from memory into all lanes of a register
    is_prefetch: bool = False  # asks for a cache line, no more


def read(line: str) -> DecodedInstruction:
    """Return what a line of assembler does."""
    mnemonic, operands = _split(line)
    if mnemonic in ("lock", "rep", "bnd", "notrack"):  # a prefix
        return read(operands.strip())
    if not mnemonic or mnemonic.endswith(":"):
        return DecodedInstruction()
    parts = _operands(operands)
    if _X86_JUMP.match(mnemonic) or _ARM_JUMP.match(mnemonic):
        return DecodedInstruction(jumps_to=parts[-1] if parts else "", is_final=mnemonic in _ALWAYS_JUMP)
    if mnemonic.startswith(_RETURN):
        return DecodedInstruction(is_final=True)
    if mnemonic.startswith(("prefetch", "prfm")):
        return DecodedInstruction(is_prefetch=True)
    kind, bits, stores = "", 0, False
    if arithmetic := _X86_ARITHMETIC.match(mnemonic):
        kind, loads = _kind(arithmetic["kind"]), any(map(_is_memory, parts))
        if arithmetic["width"] == "p":
            bits = max((8 * _BYTES[size] for size in _X86_REGISTER.findall(operands)), default=0)
    elif arithmetic := _ARM_ARITHMETIC.match(mnemonic):
        kind, loads = _kind(arithmetic["kind"]), False
        if lanes := _ARM_LANES.search(arithmetic["lanes"] or operands):
            # a whole vector names its lanes (v0.4s); one lane of it is v0.s[1], a single number s0 or d0
            bits = 8 * int(lanes[1]) * _BYTES[lanes[2]]
    else:
        loads, stores = _memory(mnemonic, parts)
    is_broadcast = loads and bool(_X86_BROADCAST.match(mnemonic) or "{1to" in operands or mnemonic == "ld1r")
    element = _element_bytes(mnemonic, operands)
    flops = (bits // 8 // element if bits else 1) * (2 if kind == "fma" else 1) if kind else 0
    loaded = _loaded_bytes(mnemonic, operands) if loads and not is_broadcast else element * is_broadcast
    return DecodedInstruction(
        kind, bits, loads, stores, flops=flops, loaded_bytes=loaded, is_broadcast=is_broadcast
    )


def _loaded_bytes(mnemonic: str, operands: str) -> int:
    if mnemonic.startswith("ld"):  # ARM
        vectors = [int(lanes or 1) * _BYTES[kind] for lanes, kind in _ARM_VECTOR.findall(operands)]
        return sum(vectors) + sum(_BYTES[kind] for kind in _ARM_REGISTER.findall(operands))
    registers = _X86_REGISTER.findall(operands)
    if registers and (found := _X86_ELEMENT.match(mnemonic)) and found["width"] == "s":
        return _BYTES[found["type"]]
    return max((_BYTES[size] for size in registers), default=0)


def _element_bytes(mnemonic: str, operands: str) -> int:
    if found := _ARM_VECTOR.search(operands):
        return _BYTES[found[2]]
    if mnemonic in ("vmovddup", "movddup"):
        return 8
    found = _X86_ELEMENT.match(mnemonic)
    return _BYTES[found["type"]] if found else 4


def _split(line: str) -> tuple[str, str]:
    """Return the mnemonic and its operands."""
    mnemonic, *operands = line.split(None, 1)
    return mnemonic.lower(), operands[0] if operands else ""


def _kind(name: str) -> str:
    """Sort the names that the two patterns of arithmetic know."""
    if name in ("mul", "fmul", "fmulx", "fnmul"):
        return "mul"
    if name in ("add", "sub", "addsub", "hadd", "fadd", "faddp", "fsub"):
        return "add"
    if name in ("div", "sqrt", "max", "min", "fdiv", "fsqrt", "fmax", "fmin"):
        return "other"
    return "fma"


def _operands(text: str) -> list[str]:
    """Split at the commas outside brackets: "(%rax,%rcx,8), %ymm1" has two operands."""
    return [part.strip() for part in re.split(r",(?![^(\[{]*[)\]}])", text) if part.strip()]


def _is_memory(operand: str) -> bool:
    return "(%" in operand or "(,%" in operand or ("[" in operand and not _ARM_LANE.match(operand))


def _memory(mnemonic: str, parts: list[str]) -> tuple[bool, bool]:
    """Say whether an instruction other than arithmetic reads and writes memory."""
    if re.match(r"ld[a-z0-9]*$", mnemonic) and any("[" in part for part in parts):
        return True, False
    if re.match(r"st[a-z0-9]*$", mnemonic) and any("[" in part for part in parts):
        return False, True
    in_memory = [_is_memory(part) for part in parts]
    if not any(in_memory) or mnemonic.startswith(_X86_NO_MEMORY):
        return False, False
    if not in_memory[-1] or mnemonic.startswith(_X86_ONLY_READ):
        return True, False
    is_plain_move = mnemonic.startswith(("mov", "vmov", "vextract", "vscatter", "vpscatter", "set", "vpmov"))
    return not is_plain_move, True


# -- addresses that move -----------------------------------------------------------------------------------

_REGISTER = re.compile(r"%?\b(?P<name>r[a-z0-9]+|e[a-z]{2}|x\d+)\b")


def addresses(lines: list[str]) -> set[str]:
    """Return the registers that the lines use to address memory."""
    operands = [operand for line in lines for operand in _operands(_split(line)[1]) if _is_memory(operand)]
    inside = [re.search(r"[(\[](.*?)[)\]]", operand) for operand in operands if not operand.startswith("$")]
    return {match["name"] for part in inside if part for match in _REGISTER.finditer(part[1])}


def advanced_by_register(lines: list[str]) -> set[str]:
    """Return the registers to which the lines add something that is no constant."""
    found = set()
    for line in lines:
        mnemonic, operands = _split(line)
        parts = _operands(operands)
        if mnemonic in ("add", "addq", "sub", "subq") and len(parts) >= 2:
            # AT&T names the register that changes last, ARM first
            is_att = any("%" in part for part in parts)
            changed, added = (parts[-1], parts[0]) if is_att else (parts[0], parts[-1])
            if re.match(r"\$|#|-?\d", added) is None and not _is_memory(changed):
                found.add(changed.lstrip("%"))
        after = re.search(r"\[(x\d+)\],\s*x\d+", operands)  # ARM: ldr d0, [x8], x9
        if after:
            found.add(after[1])
    return found
