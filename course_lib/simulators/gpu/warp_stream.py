"""What a warp executes, as the scheduler simulation sees it: instructions and registers.

    stream("x = load; y = load; s = fma x y s")

One instruction a line (or between semicolons): an optional register that it writes, its operation, the
registers it reads. A warp runs the stream over and over; a register that is read before it is written holds
what the pass before has left there. So `s` above is an accumulator: each pass waits for the last one's sum.

| operation | what it stands for                       | its reader waits on |
|-----------|------------------------------------------|---------------------|
| `fma`     | arithmetic of fixed latency              | wait                |
| `use`     | the same, its result is of no interest   | –                   |
| `shared`  | a load from shared memory                | short scoreboard    |
| `l2`      | a load from global memory that L2 answers| long scoreboard     |
| `load`    | a load from global memory, from DRAM     | long scoreboard     |
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from course_lib.simulators.gpu.gpu_latencies import Latencies
from course_lib.simulators.gpu.whole_numbers import check_whole

OPERATIONS = ("fma", "use", "shared", "l2", "load")
LOADS = ("shared", "l2", "load")
REQUESTS = ("l2", "load")  # leave the SM: the memory behind it takes one every so many cycles
MOST_INSTRUCTIONS = 256


@dataclass(frozen=True)
class Instruction:
    """One warp instruction: its operation, the registers it reads, the one it writes (None: nothing)."""

    op: str
    reads: tuple[str, ...] = ()
    writes: str | None = None

    def latency(self, latencies: Latencies) -> int:
        """Return the cycles until its result can be read."""
        cycles = {"shared": latencies.shared, "l2": latencies.l2, "load": latencies.dram}
        return cycles.get(self.op, latencies.arithmetic)

    def __str__(self) -> str:
        target = f"{self.writes} = " if self.writes else ""
        return target + " ".join((self.op, *self.reads))


Stream = tuple[Instruction, ...]


def stream(text: str | Iterable[str | Instruction]) -> Stream:
    """Return the instructions that `text` spells; lines and instructions in a list are taken as well.

    What follows a # in a line is a comment. Raises ValueError with the line that cannot be read.
    """
    lines = re.split(r"[;\n]", re.sub(r"#[^\n]*", "", text)) if isinstance(text, str) else text
    instructions = tuple(
        _instruction(line.strip()) if isinstance(line, str) else line
        for line in lines
        if not isinstance(line, str) or line.strip()
    )
    if not 1 <= len(instructions) <= MOST_INSTRUCTIONS:
        raise ValueError(
            f"The stream has {len(instructions)} instructions, but 1 to {MOST_INSTRUCTIONS} are possible."
        )
    for instruction in instructions:
        _checked(instruction)
    return instructions


def independent_loads(loads: int, arithmetic: int = 0, op: str = "load") -> Stream:
    """Return a stream of `loads` loads that do not depend on each other, then their uses, one for each.

    Its pass ends with `arithmetic` dependent FMAs. The more loads before the first use, the more
    instruction-level parallelism: a single warp then has that many requests in flight.
    """
    check_whole("loads", loads, 1, MOST_INSTRUCTIONS)
    check_whole("arithmetic", arithmetic, 0, MOST_INSTRUCTIONS)
    lines = [f"x{i} = {op}" for i in range(loads)]
    lines += [f"use x{i}" for i in range(loads)]
    lines += ["s = fma s"] * arithmetic
    return stream(";".join(lines))


def registers(instructions: Stream) -> tuple[str, ...]:
    """Return the names of all registers, in the order of their first appearance."""
    named = (name for one in instructions for name in (*one.reads, one.writes) if name)
    return tuple(dict.fromkeys(named))


def _instruction(line: str) -> Instruction:
    target, equals, rest = line.rpartition("=")
    words = rest.split()
    if not words or (equals and not target.strip()):
        raise ValueError(f"The instruction {line!r} cannot be read: write it like 's = fma x s' or 'use x'.")
    return Instruction(words[0], tuple(words[1:]), target.strip() or None)


def _checked(instruction: Instruction) -> None:
    op, target = instruction.op, instruction.writes
    if op not in OPERATIONS:
        known = ", ".join(OPERATIONS)
        raise ValueError(f"The instruction '{instruction}' has the operation {op!r}, but there are {known}.")
    names = (*instruction.reads, *([] if target is None else [target]))
    wrong = next((name for name in names if not name.isidentifier()), None)
    if wrong is not None:
        raise ValueError(
            f"The instruction '{instruction}' names {wrong!r}, but a register is a word like x0."
        )
    if op in LOADS and target is None:
        raise ValueError(f"The instruction '{instruction}' loads nothing: say where to, like 'x = {op}'.")
    if op == "use" and target is not None:
        raise ValueError(f"The instruction '{instruction}' has a result, but use has none: write fma.")
