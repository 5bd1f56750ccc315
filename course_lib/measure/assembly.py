"""Reading the machine code of a compiled loop: did it become SIMD, did it become FMA?

    code = inspect(matmul_ikj)          a compiled Numba function
    code.hot                            its hottest-looking innermost loop
    code.hot.n_fma, code.hot.vector_bits
    code.hot.flops_per_instruction, code.hot.bytes_per_flop

A loop is found as a jump back to a label; one without another inside is innermost. "Vector" means packed
arithmetic (vfmadd231pd, mulps, fmla v0.4s): compilers use the same registers for single numbers too
(vfmadd231sd), and that is scalar. x86-64 (in AT&T notation, as LLVM writes it) and AArch64 are understood.

A trap: for a loop with a stride that is known only at run time (`B[k, j]` with k innermost) LLVM also writes
a vector version for the case that the stride happens to be one number, with a test before it. No real matrix
takes it. Such a loop gives itself away: the scalar loop that follows it, for the other strides, advances an
address by a register. It is marked `only_for_stride_one` and never called hot.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from course_lib.measure.instructions import addresses, advanced_by_register, read

_LABEL = re.compile(r"^([.\w$@]+):")
#: Numba wraps a function for Python, for C callbacks and for reference counts; none of that is the function.
_WRAPPERS = ("ZN7cpython", "cfunc.", "NRT_", "numba_", ".numba")


@dataclass(frozen=True)
class Loop:
    """An innermost loop. The counts are instructions in one turn of it (which may be unrolled)."""

    lines: tuple[str, ...]
    n_fma: int
    n_mul: int
    n_add: int  # additions and subtractions
    n_loads: int  # instructions that read memory, address arithmetic not counted
    n_stores: int
    n_vector: int  # floating-point instructions on packed numbers
    n_scalar: int  # floating-point instructions on a single number
    vector_bits: int  # widest register in packed arithmetic; 0 when there is none
    is_strided: bool = False  # an address advances by a stride that is known only at run time
    only_for_stride_one: bool = False  # a vector version that runs only if that stride is one number
    n_instructions: int = 0
    n_broadcasts: int = 0  # those of the loads that spread one number over a whole register
    n_prefetches: int = 0  # which are not loads: nothing waits for them
    flops: int = 0  # floating-point operations: an FMA does two for each number in its registers
    loaded_bytes: int = 0  # into floating-point registers

    @property
    def flops_per_instruction(self) -> float:
        """Operations for each instruction of the loop, counting and jumping included."""
        return self.flops / self.n_instructions if self.n_instructions else 0.0

    @property
    def bytes_per_flop(self) -> float:
        """Bytes loaded for each operation; infinite for a loop that only loads."""
        return self.loaded_bytes / self.flops if self.flops else math.inf

    @property
    def is_vectorised(self) -> bool:
        """Whether packed arithmetic does most of the loop's floating-point work."""
        return self.n_vector > self.n_scalar


@dataclass(frozen=True)
class Assembly:
    """The machine code of one compiled version of a function."""

    text: str = field(repr=False)  # everything the compiler wrote
    name: str = ""
    signature: str = ""

    @cached_property
    def loops(self) -> list[Loop]:
        """The innermost loops, in the order of the code."""
        return [loop for body in _functions(self.text) for loop in _innermost_loops(body)]

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """All lines of the function; of several that it became, those of the first."""
        return tuple(next(_functions(self.text), ()))

    @cached_property
    def hot(self) -> Loop | None:
        """The innermost loop with the most packed arithmetic, else the most arithmetic; None without any.

        Loops `only_for_stride_one` do not count.
        """
        computing = [loop for loop in self.loops if loop.n_vector + loop.n_scalar]
        candidates = [loop for loop in computing if not loop.only_for_stride_one]
        return max(candidates, key=lambda loop: (loop.n_vector, loop.n_scalar), default=None)


def inspect(dispatcher: Any) -> Assembly:
    """Return the machine code of a compiled Numba function: of several versions the one compiled last."""
    if not hasattr(dispatcher, "inspect_asm") or not hasattr(dispatcher, "signatures"):
        kind = type(dispatcher).__name__
        raise TypeError(f"inspect needs a function compiled with @njit, but got a {kind}: {dispatcher!r}.")
    if not dispatcher.signatures:
        name = dispatcher.__name__
        raise ValueError(f"{name} is not compiled yet: Numba compiles at the first call, so call it first.")
    signature = dispatcher.signatures[-1]
    return Assembly(_text(dispatcher, signature), dispatcher.__name__, str(signature))


def _text(dispatcher: Any, signature: Any) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Numba keeps no text of code that it loaded from its cache on disk …
        text = dispatcher.inspect_asm(signature)
        if any(True for _ in _functions(text)):
            return text
        # … so that version is compiled once more, the same way
        again = type(dispatcher)(dispatcher.py_func, dispatcher.locals, dict(dispatcher.targetoptions))
        again.compile(signature)
        return again.inspect_asm(signature)


# -- from text to loops ------------------------------------------------------------------------------------


def _functions(text: str) -> Iterator[list[str]]:
    """Yield the lines of each function, leaving out Numba's wrappers."""
    body: list[str] = []
    is_wanted = True
    for line in map(_strip, text.splitlines()):
        label = _LABEL.match(line)
        if label and not _is_local(label[1]):
            if body and is_wanted:
                yield body
            body, is_wanted = [], not label[1].lstrip("_").startswith(_WRAPPERS)
        elif line and (label or not line.startswith(".")):
            body.append(line)
    if body and is_wanted:
        yield body


def _is_local(label: str) -> bool:
    return label.startswith((".L", "L", "$"))


def _strip(line: str) -> str:
    """Remove comments (# on x86, // or ; on ARM) and indentation."""
    return re.split(r"\s*(?:#(?![-\d])|//|;)", line, maxsplit=1)[0].strip()


def _innermost_loops(body: list[str]) -> list[Loop]:
    regions = _loop_regions(body)
    innermost = [own for own in regions if not any(is_inside(other, own) for other in regions)]
    loops = [_loop(body[start : end + 1]) for start, end in innermost]
    parents = [_parent(own, regions) for own in innermost]
    return [
        replace(loop, only_for_stride_one=_is_only_for_stride_one(place, loops, parents))
        for place, loop in enumerate(loops)
    ]


def _loop_regions(body: list[str]) -> list[tuple[int, int]]:
    """Return (first line, line of the last jump back) of every loop, in the order of the code."""
    places = {label[1]: place for place, line in enumerate(body) if (label := _LABEL.match(line))}
    ends: dict[int, int] = {}
    for place, line in enumerate(body):
        start = places.get(read(line).jumps_to, place + 1)
        if start <= place and _reaches(body, start, place, places):
            ends[start] = place
    return sorted(ends.items())


def _reaches(body: list[str], start: int, end: int, places: dict[str, int]) -> bool:
    """Say whether control can flow from line start to line end between them: else the jump only goes back."""
    seen: set[int] = set()
    ahead = [start]
    while ahead:
        place = ahead.pop()
        if place == end:
            return True
        if place in seen or not start <= place < end:
            continue
        seen.add(place)
        instruction = read(body[place])
        ahead += [places[instruction.jumps_to]] if instruction.jumps_to in places else []
        ahead += [] if instruction.is_final else [place + 1]
    return False


def is_inside(inner: tuple[int, int], outer: tuple[int, int]) -> bool:
    """Say whether lines (first, last) of a loop lie in those of another."""
    return inner != outer and outer[0] <= inner[0] and inner[1] <= outer[1]


def _parent(own: tuple[int, int], regions: list[tuple[int, int]]) -> tuple[int, int] | None:
    around = [other for other in regions if is_inside(own, other)]
    return min(around, key=lambda region: region[1] - region[0], default=None)


def _is_only_for_stride_one(place: int, loops: list[Loop], parents: list) -> bool:
    """Say whether a vector loop steps by constants while the scalar loop that takes over from it does not."""
    loop = loops[place]
    if not loop.n_vector or loop.is_strided:
        return False
    for other, parent in zip(loops[place + 1 :], parents[place + 1 :], strict=True):
        if parent == parents[place] and other.n_scalar and not other.n_vector:
            return other.is_strided
    return False


def _loop(lines: list[str]) -> Loop:
    instructions = [read(line) for line in lines]
    kinds = [instruction.kind for instruction in instructions]

    def total(figure: str) -> int:
        return sum(getattr(instruction, figure) for instruction in instructions)

    vector = [instruction for instruction in instructions if instruction.kind and instruction.vector_bits]
    return Loop(
        lines=tuple(lines),
        n_fma=kinds.count("fma"),
        n_mul=kinds.count("mul"),
        n_add=kinds.count("add"),
        n_loads=total("loads"),
        n_stores=total("stores"),
        n_vector=len(vector),
        n_scalar=sum(map(bool, kinds)) - len(vector),
        vector_bits=max((instruction.vector_bits for instruction in vector), default=0),
        is_strided=bool(advanced_by_register(lines) & addresses(lines)),
        n_instructions=sum(not _LABEL.match(line) for line in lines),
        n_broadcasts=total("is_broadcast"),
        n_prefetches=total("is_prefetch"),
        flops=total("flops"),
        loaded_bytes=total("loaded_bytes"),
    )
