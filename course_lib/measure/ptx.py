"""Reading PTX, the assembly language that NVIDIA's compilers make first: its innermost loop.

PTX is no machine code: it has as many registers as it likes, and knows no architecture's instructions.
"""

from __future__ import annotations

import re

from course_lib.measure import sass

_LOC = re.compile(r"^\s*\.loc\s+\d+\s+(\d+)")
_LABEL = re.compile(r"^(\$L\w+):")
_JUMP = re.compile(r"\bbra(?:\.uni)?\s+(\$L\w+)")
_KINDS = {
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


def kind(text: str) -> str:
    """Return what an instruction does, in the words of `measure.sass`."""
    operation = text.split(maxsplit=1)[-1] if text.startswith("@") else text
    return next((words for begin, words in _KINDS.items() if operation.startswith(begin)), sass.OTHER)


def hot_loop(ptx: str) -> list[tuple[int, str]]:
    """Return (source line, instruction) for the innermost loop with the most FMAs; [] if none has any."""
    body: list[tuple[int, str]] = []
    labels: dict[str, int] = {}
    regions: dict[str, tuple[int, int]] = {}
    line = 0
    for row in ptx.splitlines():
        text = " ".join(row.split())
        if label := _LABEL.match(text):
            labels[label[1]] = len(body)
        elif at := _LOC.match(row):
            line = int(at[1])
        elif text and text[0] not in ".{}()/$" and text.endswith(";"):
            jump = _JUMP.search(text)
            body.append((line, text.rstrip(";")))
            if jump and jump[1] in labels:
                regions[jump[1]] = (labels[jump[1]], len(body))
    inner = [
        (first, last)
        for first, last in regions.values()
        if not any((a, b) != (first, last) and first <= a and b <= last for a, b in regions.values())
    ]
    loops = [body[first:last] for first, last in inner]
    most = max(loops, key=_fmas, default=[])
    return most if _fmas(most) else []


def _fmas(loop: list[tuple[int, str]]) -> int:
    return sum(kind(text) == "FMA" for _, text in loop)
