"""What the interpreter does for one turn of the innermost loop, instruction by instruction.

The innermost loop is found in the bytecode itself: a jump back to an earlier instruction closes a loop, and
the loop nested deepest is the innermost (a generator expression counts as nested in the code that holds it).
Works for Python 3.11 to 3.13, whose instructions differ in name.
"""

from __future__ import annotations

import dis
import sys
from collections import Counter
from dataclasses import dataclass
from types import CodeType
from typing import Any

from course_lib.views.listing import unwrapped
from course_lib.views.paper import Html, card, escape, note, plural, table

#: How a name begins, what the instruction is for, what it does; the first match counts.
VOCABULARY = (
    ("BINARY_OP", "arithmetic", "looks at both types, computes, makes a new object"),
    ("UNARY_", "arithmetic", "looks at the type, computes, makes a new object"),
    ("COMPARE_OP", "arithmetic", "looks at both types, compares"),
    ("BINARY_SUBSCR", "indexing", "looks an element up"),
    ("BINARY_SLICE", "indexing", "cuts a slice out"),
    ("STORE_SUBSCR", "indexing", "stores an element"),
    ("STORE_SLICE", "indexing", "stores a slice"),
    ("FOR_ITER", "loop", "asks the iterator for the next item, leaves when there is none"),
    ("JUMP_BACKWARD", "loop", "goes back for the next turn"),
    ("JUMP", "loop", "jumps"),
    ("POP_JUMP", "loop", "jumps if the condition says so"),
    ("YIELD", "loop", "hands a value to the code outside and waits"),
    ("RESUME", "loop", "goes on where it waited"),
    ("CALL", "call", "calls a function"),
    ("PRECALL", "call", "prepares a call"),
    ("PUSH_NULL", "call", "prepares a call"),
    ("KW_NAMES", "call", "prepares a call"),
    ("LOAD_FAST_LOAD_FAST", "moving", "puts two local objects on the stack"),
    ("LOAD_FAST", "moving", "puts a local object on the stack"),
    ("LOAD_CONST", "moving", "puts a constant on the stack"),
    ("LOAD_", "moving", "finds an object by its name and puts it on the stack"),
    ("STORE_FAST_STORE_FAST", "moving", "names the two objects on top of the stack"),
    ("STORE_FAST_LOAD_FAST", "moving", "names one object, puts another on the stack"),
    ("STORE_", "moving", "names the object on top of the stack"),
    ("UNPACK_", "moving", "takes the pair apart"),
    ("BUILD_", "moving", "makes a new object of those on the stack"),
    ("COPY", "moving", "puts the same object on the stack again"),
    ("SWAP", "moving", "swaps two objects on the stack"),
    ("POP_TOP", "moving", "drops the object on top of the stack"),
)
KINDS = ("arithmetic", "indexing", "moving", "loop", "call", "other")


@dataclass(frozen=True)
class BytecodeInstruction:
    """One bytecode instruction: its name, its argument in words, what it is for and what it does.

    `warm` is what the interpreter has put in its place after some turns (PEP 659), or the same name.
    """

    offset: int
    name: str
    argument: str
    kind: str
    meaning: str
    warm: str


@dataclass(frozen=True)
class BytecodeLoop:
    """The innermost loop of a function: the instructions of one turn, from its start to the jump back."""

    instructions: tuple[BytecodeInstruction, ...]
    depth: int

    @property
    def counts(self) -> Counter[str]:
        """How many instructions there are of each kind."""
        return Counter(instruction.kind for instruction in self.instructions)


def innermost_loop(function: Any) -> BytecodeLoop | None:
    """Return the innermost loop of a function's bytecode, the first of the deepest ones, or None."""
    loops = _loops(_code(function), 0)
    return max(loops, key=lambda loop: loop.depth, default=None)


def bytecode(function: Any) -> Html:
    """Return the instructions of the innermost loop as a table, counted, and what has replaced them by now.

    Raises ValueError when the function has no bytecode or no loop.
    """
    name = _code(function).co_name
    loop = innermost_loop(function)
    if loop is None:
        raise ValueError(f"{name}() has no loop: dis.dis shows all of its bytecode.")
    shown = loop.instructions
    rows = [
        [
            str(i.offset),
            f'<span style="font-weight:{700 if i.kind == "arithmetic" else 400}">{escape(i.name)}</span>',
            escape(i.argument),
            escape("" if i.warm == i.name else i.warm),
            escape(i.meaning),
        ]
        for i in shown
    ]
    head = ["offset", "instruction", "argument", "after warming up", "what it does"]
    marked = [n for n, i in enumerate(shown) if i.kind == "arithmetic"]
    title, words = _said(name, loop)
    words += f" Python {sys.version_info.major}.{sys.version_info.minor}."
    if any("__" in i.warm for i in shown):
        words += (
            " A__B does two instructions in one turn of the interpreter; the line below is left out then."
        )
    text = f"{title}. {words}"
    body = table(head, rows, left=(1, 2, 3, 4), marked=marked)
    listed = "\n".join(f"{i.offset:>4}  {i.name:<27}{i.argument:<20}{i.warm}" for i in shown)
    return Html(card(body + note(words), text, title=title), f"{text}\n{listed}")


def _said(name: str, loop: BytecodeLoop) -> tuple[str, str]:
    counts, size = loop.counts, len(loop.instructions)
    branches = any(i.name.startswith("POP_JUMP") for i in loop.instructions)  # no turn takes every branch
    most = "at most " if branches else ""
    title = f"{name}(): {most}{plural(size, 'bytecode instruction')} per turn of the innermost loop, "
    title += f"{counts['arithmetic']} of them arithmetic"
    parts = [f"{counts[kind]} {kind}" for kind in KINDS if counts[kind]]
    return title, f"Of the {size} instructions of a turn: {', '.join(parts)}. Tinted: the arithmetic."


def _code(function: Any) -> CodeType:
    written = unwrapped(function)
    code = getattr(written, "__code__", written)
    if not isinstance(code, CodeType):
        raise ValueError(
            f"{function!r} has no bytecode: pass a function written in Python (or a Numba dispatcher of one)."
        )
    return code


def _instructions(code: CodeType) -> list[BytecodeInstruction]:
    found = []
    warm = {raw.offset: raw.opname for raw in dis.get_instructions(code, adaptive=True)}
    for raw in dis.get_instructions(code):
        argument = f"to {raw.argval}" if raw.opcode in dis.hasjrel else raw.argrepr
        known = (entry[1:] for entry in VOCABULARY if raw.opname.startswith(entry[0]))
        kind, meaning = next(known, ("other", "housekeeping"))
        now = warm.get(raw.offset, raw.opname)
        found.append(BytecodeInstruction(raw.offset, raw.opname, argument, kind, meaning, now))
    return found


def _loops(code: CodeType, outside: int) -> list[BytecodeLoop]:
    """Return every loop of the code and of the code nested in it, with how many loops it stands in."""
    instructions = _instructions(code)
    spans = _spans(code)
    loops = []
    for start, end in spans:
        depth = outside + sum(1 for s, e in spans if s <= start and end <= e)
        turn = tuple(i for i in instructions if start <= i.offset <= end)
        loops.append(BytecodeLoop(turn, depth))
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            loops += _loops(inner, outside + _depth_of_use(code, inner, spans))
    return loops


def _depth_of_use(code: CodeType, inner: CodeType, spans: list[tuple[int, int]]) -> int:
    """Return in how many loops the nested code is made into a function, which is where it runs."""
    made = [raw.offset for raw in dis.get_instructions(code) if raw.argval is inner]
    return max((sum(1 for s, e in spans if s <= offset <= e) for offset in made), default=0)


def _spans(code: CodeType) -> list[tuple[int, int]]:
    """Return where each loop begins and ends; spans that overlap without nesting are one loop (`while`)."""
    jumps = [raw for raw in dis.get_instructions(code) if "JUMP_BACKWARD" in raw.opname]
    spans: list[tuple[int, int]] = []
    for start, end in sorted((raw.argval, raw.offset) for raw in jumps):
        crossing = [span for span in spans if span[0] <= start <= span[1] < end]
        spans = [span for span in spans if span not in crossing]
        spans.append((min([start, *(s for s, _ in crossing)]), max([end, *(e for _, e in crossing)])))
    return spans
