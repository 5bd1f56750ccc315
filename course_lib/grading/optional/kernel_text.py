"""The kernel v3_warp_specialised with two holes: the producer's loop, and the consumers'."""

from __future__ import annotations

from course_lib.fp8 import jit

KERNEL = "v3_warp_specialised"
HEAD = "for (int block = 0; block < blocks; ++block) {\n"
NAMES = ("fetch", "multiply")


def holes(source: str) -> list[tuple[int, int]]:
    """Return where the two loops begin and end in the kernel's text: the lines' indentation tells."""
    found, at = [], 0
    for _ in NAMES:
        begin = source.index(HEAD, at)
        indent = source[source.rindex("\n", 0, begin) + 1 : begin]
        close = f"\n{indent}}}\n"
        at = source.index(close, begin) + len(close)
        found.append((begin - len(indent), at))
    return found


def with_loops(fetch: str, multiply: str) -> str:
    """Return the kernel's text with other loops; compilers count the lines of each from 1, under its name."""
    source = jit.source_of(KERNEL)
    for name, text, (begin, end) in reversed([*zip(NAMES, (fetch, multiply), holes(source), strict=True)]):
        after = source[:end].count("\n") + 1
        first = len(text) - len(text.lstrip("\n")) + 1  # empty lines before the loop count
        part = f'#line {first} "{name}"\n{text.strip(chr(10))}\n#line {after} "{KERNEL}.cu"\n'
        source = source[:begin] + part + source[end:]
    return source
