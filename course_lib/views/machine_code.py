"""The machine code of a compiled function's hot loop, with what matters in it marked and said in words."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from course_lib.arguments import one_of
from course_lib.measure.table import Table, digits
from course_lib.theme import DEEP_PINK, PINK_TINT, VIOLET_TINT
from course_lib.views.paper import Html, card, escape, listing, note, plural, side_by_side

if TYPE_CHECKING:
    from course_lib.measure.assembly import Assembly, Loop

VECTOR_REGISTER = re.compile(r"%?\b[xyz]mm\d+\b|\bv\d+\.\d*[bhsd]\b|\b[qz]\d+(?:\.[bhsd])?\b")
FMA = re.compile(r"^v?fn?m(?:add|sub|la|ls)\w*$")
ARITHMETIC = re.compile(r"^v?(?:add|sub|mul|div|fn?m(?:add|sub)(?:132|213|231))([ps])([sd])$")
ARM_ARITHMETIC = re.compile(r"^fn?m(?:la|ls|add|sub|ul)$|^f(?:add|sub|div)$")
ARM_ELEMENT = re.compile(r"\bv\d+\.\d+([sd])\b|\b([sd])\d+\b")
PLACE = re.compile(rf"{VECTOR_REGISTER.pattern}|-?\d*\(%rsp\)")  # where a sum may be
STACK = re.compile(r"[(\[]%?r?sp\b")
#: How an x86 instruction ends tells what it works on: packed (p) or one (s), float32 (s) or float64 (d).
ELEMENT = {"s": ("float32", 32), "d": ("float64", 64)}


def assembly(dispatcher: Any) -> Html:
    """Return the hot inner loop of a compiled Numba function, registers and FMA marked, with a verdict.

    A function without any loop is shown whole.
    """
    from course_lib.measure.assembly import inspect

    name = getattr(dispatcher, "__name__", None) or type(dispatcher).__name__
    code = inspect(dispatcher)
    if not code.loops:
        return _whole(name, _aligned(line for line in code.lines if "func_end" not in line))
    chosen = _hot(code)
    said = verdict(chosen)
    text = f"Hot loop of {name}: {said}"
    body = note(counts(chosen)) + listing([_marked(line) for line in _lines(chosen)]) + _legend()
    return Html(card(body, text, title=said), "\n".join([text, counts(chosen), *_lines(chosen)]))


def _whole(name: str, lines: list[str]) -> Html:
    said = f"{name} has no loop: {plural(sum(':' not in line for line in lines), 'instruction')} in all"
    body = listing([_marked(line) for line in lines]) + _legend()
    return Html(card(body, said, title=said), "\n".join([said, *lines]))


def compare_assembly(dispatchers: Mapping[str, Any]) -> Html:
    """Return the hot inner loops of several compiled functions beside each other, each with its verdict."""
    loops = _hot_loops(dispatchers)
    panels = [
        f'<div style="font-weight:700;margin-bottom:2px">{escape(name)}</div>'
        f'<div style="font-size:13px;margin-bottom:6px;max-width:46ch">{escape(verdict(loop))}</div>'
        + listing([_marked(line) for line in _lines(loop)])
        for name, loop in loops.items()
    ]
    text = "Hot loops. " + "; ".join(f"{name}: {verdict(loop)}" for name, loop in loops.items())
    title = "; ".join(f"{name}: {_width(loop)}" for name, loop in loops.items())
    listed = "\n".join(f"{name}:\n" + "\n".join(_lines(loop)) for name, loop in loops.items())
    return Html(card(side_by_side(panels) + _legend(), text, title=title), f"{text}\n{listed}")


def loop_costs(dispatchers: Mapping[str, Any], only: Sequence[str] = ()) -> Table:
    """Return what a turn of each function's hot loop costs: instructions, loads and FMAs, also per operation.

    `only` names the columns that are wanted; all of them if it is empty.

    Loads include the broadcasts; "loads / FMA" is what a core with two loads and two FMAs a cycle must keep
    below 1. Chains are the sums that do not wait for each other. Spills are counted as loads and stores, too.
    """
    loops = _hot_loops(dispatchers)
    columns = (
        "loop, one turn",
        "vector bits",
        "instructions",
        "FMAs",
        "chains",
        "loads",
        "of these broadcasts",
        "loads / FMA",
        "FLOP / instruction",
        "bytes loaded / FLOP",
        "spills",
    )
    places = [0, *(columns.index(one_of("column", name, columns)) for name in only or columns[1:])]
    rows = [(name, *_costs(loop)) for name, loop in loops.items()]
    head, *body = (tuple(row[place] for place in places) for row in (columns, *rows))
    return Table(head, tuple(body))


def _costs(loop: Loop) -> tuple[str, ...]:
    per_fma = loop.n_loads / loop.n_fma if loop.n_fma else math.nan
    return (
        str(loop.vector_bits or "scalar"),
        *map(str, (loop.n_instructions, loop.n_fma, chains(loop), loop.n_loads, loop.n_broadcasts)),
        digits(per_fma, 2),
        digits(loop.flops_per_instruction),
        digits(loop.bytes_per_flop if loop.flops else math.nan, 2),
        str(spills(loop)),
    )


def counts(loop: Loop) -> str:
    """Return a turn in numbers: what it consists of, and what that is for each operation."""
    parts = (
        (loop.n_fma, "FMA"),
        (loop.n_mul, "multiplication"),
        (loop.n_add, "addition"),
        (loop.n_loads - loop.n_broadcasts, "load"),
        (loop.n_broadcasts, "broadcast"),
        (loop.n_prefetches, "prefetch"),
        (loop.n_stores, "store"),
    )
    said = ", ".join(plural(count, name) for count, name in parts if count)
    turn = f"A turn is {plural(loop.n_instructions, 'instruction')}"
    turn += f" ({said})" if said else ""
    if not loop.flops:
        return f"{turn}."
    return (
        f"{turn} for {loop.flops:,} FLOP: {digits(loop.flops_per_instruction)} FLOP per instruction, "
        f"{digits(loop.bytes_per_flop, 2)} bytes loaded per FLOP."
    )


def verdict(loop: Loop) -> str:
    """Return the loop in words: "512-bit vectors: 16 float32 at once, FMA: yes, spills: none"."""
    spilled = spills(loop)
    fused = "yes" if loop.n_fma else "no"
    said = f"{_width(loop)}, FMA: {fused}, spills: {plural(spilled, 'instruction') if spilled else 'none'}"
    return said + (" (runs only if the stride is one number)" if loop.only_for_stride_one else "")


def spills(loop: Loop) -> int:
    """Return how many instructions of the loop move a floating-point register to or from the stack."""
    return sum(1 for line in _lines(loop) if STACK.search(line) and VECTOR_REGISTER.search(line))


def chains(loop: Loop) -> int:
    """Return how many sums the loop keeps: FMAs of which none waits for one of another sum.

    A sum may wander from register to register, and through places on the stack.
    """
    sums: dict[str, int] = {}  # where each is now
    for turn in range(2):  # in the second one a sum is known by what the first has left
        extended = set()
        for n, line in enumerate(_lines(loop)):
            name, _, operands = line.strip().partition(" ")
            places = [found[0] for found in PLACE.finditer(operands)]
            if not places:
                continue
            is_x86 = "%" in line  # AT&T's order: what is written is named last, by ARM first
            to = places[-1 if is_x86 else 0]
            carried = next((sums[place] for place in places if place in sums), None)
            if FMA.match(name):
                sums[to] = carried if carried is not None else n + turn * len(loop.lines)
                extended.add(sums[to])
            elif "mov" in name and len(places) > 1 and places[0] in sums:
                sums[to] = sums[places[0]]
            elif not (operands.endswith((")", "]")) or name.startswith("st")):  # a store overwrites no sum
                sums.pop(to, None)
    return len(extended)


def _width(loop: Loop) -> str:
    name, bits = _element(loop)
    if not loop.n_vector + loop.n_scalar or name is None:
        return "no floating-point arithmetic"
    if not loop.is_vectorised:
        return f"no vectors: one {name} at a time"
    return f"{loop.vector_bits}-bit vectors: {loop.vector_bits // bits} {name} at once"


def _element(loop: Loop) -> tuple[str | None, int]:
    """Return the type of number the arithmetic works on and its bits; vectors decide before single ones."""
    found: list[tuple[bool, str]] = []
    for line in _lines(loop):
        mnemonic, _, operands = line.strip().partition(" ")
        if match := ARITHMETIC.match(mnemonic):
            found.append((match[1] == "p", match[2]))
        elif ARM_ARITHMETIC.match(mnemonic) and (match := ARM_ELEMENT.search(operands)):
            found.append((match[1] is not None, match[1] or match[2]))
    if not found:
        return None, 0
    return ELEMENT[next((kind for packed, kind in found if packed), found[0][1])]


def _hot(code: Assembly) -> Loop:
    if code.hot is None:
        raise ValueError(
            "The compiled code has no loop that computes with floating-point numbers: "
            "look at dispatcher.inspect_asm()."
        )
    return code.hot


def _hot_loops(dispatchers: Mapping[str, Any]) -> dict[str, Loop]:
    from course_lib.measure.assembly import inspect

    if not isinstance(dispatchers, Mapping) or not dispatchers:
        raise ValueError('dispatchers must name the functions to compare: for example {"ijk": f, "ikj": g}.')
    return {name: _hot(inspect(dispatcher)) for name, dispatcher in dispatchers.items()}


def _lines(loop: Loop) -> list[str]:
    return _aligned(loop.lines)


def _aligned(code: Iterable[str]) -> list[str]:
    lines = []
    for line in code:
        stripped = line.expandtabs(8).strip()
        label = stripped.endswith(":")
        mnemonic, _, operands = stripped.partition(" ")
        lines.append(stripped if label else f"    {mnemonic:<14}{operands.strip()}".rstrip())
    return lines


def _marked(line: str) -> str:
    """Return the line as HTML: vector registers tinted, a fused multiply-add underlined and bold."""
    mnemonic = line.split()[0] if line.split() else ""
    shown = VECTOR_REGISTER.sub(lambda m: f'<span style="{_REGISTER}">{m[0]}</span>', escape(line))
    if STACK.search(line) and VECTOR_REGISTER.search(line):
        shown = f'<span style="{_SPILLED}">{shown}</span>'
    if FMA.match(mnemonic):
        shown = shown.replace(mnemonic, f'<span style="{_FUSED}">{mnemonic}</span>', 1)
    return shown


_REGISTER = f"background:{VIOLET_TINT};color:#5b00a0;font-weight:700"
_FUSED = f"background:{PINK_TINT};color:{DEEP_PINK};font-weight:700;text-decoration:underline"
_SPILLED = "outline:1.5px dashed currentColor;outline-offset:-1px"


def _legend() -> str:
    words = (
        f'<span style="{_REGISTER}">vector register</span>  <span style="{_FUSED}">fused multiply-add</span>'
        f'  <span style="{_SPILLED}"> spill </span>'
    )
    return f'<div style="font-size:12.5px;margin-top:6px;white-space:pre">{words}</div>' + note(
        "On x86 an instruction ending in ps or pd works on all numbers of its registers, one in ss or sd on "
        "one. Spills: vector registers moved to the stack and back, as the loop needs more than there are."
    )
