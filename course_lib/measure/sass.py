"""Reading SASS, the machine code of NVIDIA's GPUs, as nvdisasm prints it, and the loops of PTX.

    code = parse(text)
    code.loops               its innermost loops, in the order of the code
    code.hot                 the one with the most fused multiply-adds
    code.hot.kinds["FMA"]    instructions of a kind in one turn of it

A loop is found as a branch back to a label; one without another inside is innermost. The text is that of
`nvdisasm -c -g`: addresses in /*0a50*/, labels .L_x_1:, and a comment with file and line before a change.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from course_lib.measure.assembly import is_inside

_LABEL = re.compile(r"^\s*(\.L_x?_?\w+):")
_LINE = re.compile(r'^\s*//## File "(?P<file>[^"]+)", line (?P<line>\d+)')
_INSTRUCTION = re.compile(r"^\s*/\*(?P<address>[0-9a-f]{4,})\*/\s+(?P<text>.*?)\s*;")
_PREDICATE = re.compile(r"^@!?U?P\w+\s+")
_TARGET = re.compile(r"\bBRA\b.*`\((\.L\w+)\)|\bbra(?:\.uni)? (\$L\w+)")
_REMARK = re.compile(r"\s*\(\*.*\*\)$")  # (*"SpillRefill"*), what a newer nvdisasm adds
_COPY = re.compile(r"^HFMA2\S* R\d+, -RZ, RZ, ")  # 0 * 0 + a constant: how the compiler loads some constants
_PTX_LINE = re.compile(r"^\s*\.loc\s+\d+\s+(\d+)")
_PTX_LABEL = re.compile(r"^(\$L\w+):")

#: What an operation does, by the first part of its name (CUDA Binary Utilities, "Hopper Instruction Set").
KINDS = {
    **dict.fromkeys(("LDG", "LD", "LDGSTS"), "global load"),  # LDGSTS: straight into shared memory
    **dict.fromkeys(("STG", "ST"), "global store"),
    **dict.fromkeys(("LDS", "LDSM"), "shared load"),
    "STS": "shared store",
    **dict.fromkeys(("LDL", "STL"), "local memory"),  # a spill, or a local array that is not in registers
    **dict.fromkeys(("ATOM", "ATOMG", "ATOMS", "RED", "REDG"), "atomic"),
    **dict.fromkeys(("FFMA", "FFMA2", "DFMA", "HFMA2"), "FMA"),
    **dict.fromkeys(("FADD", "FMUL", "DADD", "DMUL", "HADD2", "HMUL2", "MUFU", "FMNMX"), "arithmetic"),
    **dict.fromkeys(("HMMA", "IMMA", "DMMA", "HGMMA", "QGMMA", "IGMMA"), "matrix product"),  # tensor cores
    **dict.fromkeys(("BAR", "SYNCS"), "barrier"),
    "SHFL": "shuffle",
    **dict.fromkeys(("BRA", "EXIT", "BSSY", "BSYNC", "WARPSYNC", "CALL", "RET", "BRX"), "control"),
}
OTHER = "index"  # integers: addresses, counters, comparisons, copies


def kind_of(text: str) -> str:
    """Return what an instruction of SASS does: one of KINDS' values, or OTHER."""
    text = _PREDICATE.sub("", text)
    return OTHER if _COPY.match(text) else KINDS.get(re.split(r"[.\s]", text, maxsplit=1)[0], OTHER)


@dataclass(frozen=True)
class SassInstruction:
    """One instruction: its text without the predicate, and where in the kernel's source it comes from."""

    address: int
    text: str
    kind: str  # what it does, in words: one of KINDS' values, or OTHER
    predicate: str = ""
    file: str = ""
    line: int = 0  # 0: not known

    @property
    def name(self) -> str:
        """The operation without its modifiers, "LDG"."""
        return re.split(r"[.\s]", self.text, maxsplit=1)[0]


@dataclass(frozen=True)
class SassLoop:
    """An innermost loop: one turn of it (which the compiler may have unrolled)."""

    instructions: tuple[SassInstruction, ...]

    @property
    def kinds(self) -> Counter[str]:
        """How many instructions of each kind a turn has."""
        return Counter(instruction.kind for instruction in self.instructions)


@dataclass(frozen=True)
class Sass:
    """The instructions of a kernel, and the labels before them."""

    instructions: tuple[SassInstruction, ...]
    labels: dict[str, int]  # label -> place of the instruction that follows it

    @cached_property
    def loops(self) -> tuple[SassLoop, ...]:
        """The innermost loops, in the order of the code."""
        ends: dict[int, int] = {}
        for place, instruction in enumerate(self.instructions):
            target = _TARGET.search(instruction.text)
            label = target and (target[1] or target[2])
            if self.labels.get(label, place + 1) <= place:
                ends[self.labels[label]] = place  # of several jumps back, the last
        return tuple(
            SassLoop(self.instructions[first : last + 1])
            for first, last in sorted(ends.items())
            if last > first and not any(is_inside(other, (first, last)) for other in ends.items())
        )

    @cached_property
    def hot(self) -> SassLoop | None:
        """The innermost loop with the most FMAs (of equals the longest); None if none has any."""
        computing = [loop for loop in self.loops if loop.kinds["FMA"]]
        return max(computing, key=lambda loop: (loop.kinds["FMA"], len(loop.instructions)), default=None)


def parse(text: str) -> Sass:
    """Return the instructions of what nvdisasm printed for one kernel."""
    instructions: list[SassInstruction] = []
    labels: dict[str, int] = {}
    file, line = "", 0
    for row in text.splitlines():
        if label := _LABEL.match(row):
            labels[label[1]] = len(instructions)
        elif origin := _LINE.match(row):
            file, line = origin["file"], int(origin["line"])
        elif found := _INSTRUCTION.match(row):
            predicate = _PREDICATE.match(found["text"])
            rest = _REMARK.sub("", found["text"][predicate.end() :] if predicate else found["text"])
            before = predicate[0].strip() if predicate else ""
            address = int(found["address"], 16)
            instructions.append(SassInstruction(address, rest, kind_of(rest), before, file, line))
    return Sass(tuple(instructions), labels)


# -- PTX, which NVIDIA's compilers make first: no machine code, it has as many registers as it likes -------

#: What a PTX instruction does, by its beginning, in the words of KINDS.
PTX_KINDS = {
    "ld.global": "global load",
    "st.global": "global store",
    "ld.shared": "shared load",
    "st.shared": "shared store",
    "ld.local": "local memory",
    "st.local": "local memory",
    "fma.": "FMA",
    "bar.": "barrier",
    "barrier.": "barrier",
    "bra": "control",
    "atom.": "atomic",
    "red.": "atomic",
    "shfl.": "shuffle",
}


def ptx_kind(text: str) -> str:
    """Return what a PTX instruction does, in the words of KINDS."""
    operation = text.split(maxsplit=1)[-1] if text.startswith("@") else text
    return next((words for begin, words in PTX_KINDS.items() if operation.startswith(begin)), OTHER)


def parse_ptx(ptx: str) -> Sass:
    """Return the instructions of a kernel's PTX as if it were machine code."""
    body: list[SassInstruction] = []
    labels: dict[str, int] = {}
    line = 0
    for row in ptx.splitlines():
        text = " ".join(row.split())
        if label := _PTX_LABEL.match(text):
            labels[label[1]] = len(body)
        elif at := _PTX_LINE.match(row):
            line = int(at[1])
        elif text and text[0] not in ".{}()/$" and text.endswith(";"):
            text = text.rstrip(";")
            body.append(SassInstruction(0, text, ptx_kind(text), line=line))
    return Sass(tuple(body), labels)
