"""The FP8 kernels' own text, what it is compiled to, and how the compiler plans every wait, without a GPU."""

from __future__ import annotations

from collections import Counter

from course_lib.fp8 import control, jit
from course_lib.measure import device_code, sass
from course_lib.measure.table import Table
from course_lib.views.listing import numbered
from course_lib.views.paper import Html, card, note, table

#: What a rung is recognised by in machine code, and what that does (CUDA Binary Utilities, instruction set).
MARKS = {
    "HMMA": "mma.sync, in 16-bit",
    "QGMMA": "wgmma on e4m3",
    "UTMALDG": "TMA, in",
    "UTMASTG": "TMA, out",
    "SYNCS": "mbarrier",
    "USETMAXREG": "registers change hands",
    "UCGABAR_ARV": "cluster meets",
    "FFMA": "float32 FMA",
    "STSM": "stmatrix",
    "STG": "plain store",
}


def cuda_source(file: str, start: str = "", end: str = "") -> Html:
    """Return the text of a kernel ("v4_two_level") or header ("barrier.cuh"), or the part of it.

    The part begins with the first line that has `start` in it and ends with the next one that has `end`.
    Raises ValueError for a file or words that are not there.
    """
    path = jit.KERNELS / (file if file.endswith(".cuh") else f"{file}.cu")
    if not path.is_file():
        known = ", ".join([*jit.names(), *sorted(one.name for one in jit.KERNELS.glob("*.cuh"))])
        raise ValueError(f"file is {file!r}, but there are {known}.")
    lines = path.read_text(encoding="utf-8").splitlines()
    first = _line_with(lines, start, 0, path.name) if start else 0
    last = _line_with(lines, end, first, path.name) if end else len(lines) - 1
    text = "\n".join(lines[first : last + 1])
    where = f"course_lib/fp8/kernels/{path.name}, line {first + 1}"
    return numbered(text, first + 1, where, f"CUDA C++ of {path.name}", "cuda")


def _line_with(lines: list[str], words: str, after: int, name: str) -> int:
    for number, line in enumerate(lines[after:], start=after):
        if words in line:
            return number
    raise ValueError(
        f"{name} has no line with {words!r} from line {after + 1} on: look at the whole file first."
    )


def machine_codes(kernels: dict[str, dict[str, int]]) -> Table:
    """Compile kernels here, each with its constants, and return what their machine code is made of.

    Raises fp8.jit.CannotBuild where there is no compiler.
    """
    columns = []
    for name, constants in kernels.items():
        binary = jit.build(name, **constants)
        counts = Counter(one.name for one in sass.parse(device_code.disassembled(binary.cubin)).instructions)
        marks = (str(counts[mark] or "–") for mark in MARKS)
        columns.append((name, str(binary.registers), str(binary.spilled_bytes), *marks))
    heads = ("registers a thread", "bytes spilled", *(f"{mark} – {what}" for mark, what in MARKS.items()))
    names, *lines = zip(*columns, strict=True)
    rungs = [name.partition("_")[0] for name in names]
    short = [name if rungs.count(one) > 1 else one for one, name in zip(rungs, names, strict=True)]
    return Table(
        columns=("", *short),
        rows=tuple((head, *line) for head, line in zip(heads, lines, strict=True)),
        caption=f"Compiled here for {jit.ARCHITECTURE} by {jit.compiler()}, not run: instructions",
    )


def control_bits(cubin: bytes, rows: int = 16) -> Html:
    """Return the densest stretch of FFMAs of a kernel with the orders that each carries for the scheduler."""
    code = control.controls(cubin)
    texts = {one.address: one.text for one in sass.parse(device_code.disassembled(cubin)).instructions}
    starts = range(max(len(code) - rows + 1, 1))
    first = max(starts, key=lambda i: sum(one.opcode == control.FFMA for one in code[i : i + rows]))
    cells = [
        (
            f"{one.address:04x}",
            texts.get(one.address, "?"),
            str(one.stall),
            "" if one.keeps else "yields",
            f"{one.reuse:04b}" if one.reuse else "",
        )
        for one in code[first : first + rows]
    ]
    said = str(control.interleaving(code))
    body = table(("address", "instruction", "stall", "yield", "reuse"), cells, left=(0, 1))
    body += note("stall: cycles until the next; yields: another warp may come next; reuse: operands kept.")
    picture = card(body, f"Control bits of {rows} instructions. {said}", title=said)
    return Html(picture, "\n".join([said, *("  ".join(row) for row in cells)]))
