"""Kernels as text, each with its launch, its arguments and what must hold afterwards: `read("own.txt")`.

    == name of the case                 (of a fault: its kind, a colon, and its name)
    kernel(x, out)[3, 40]               parameters, grid and block
    args: floats(50), zeros(50)         made anew from a seed by the functions of `arguments`
    want: 2 * x                         what the last argument must be, or dict(x=…); by `references`
    more: shared_bytes=200              fields of `Case`
    count: x load: 4 requests, 128 lanes, 16 sectors      (of lines that end in `# COUNT`)
    branch: 2 warps, 1 divided                            (of the line that ends in `# BRANCH`)
    i = cuda.grid(1)                    the kernel; a case without one has that of the case before

`== device name(a, b)` begins a function that the kernels below it may call. `# HAZARD` ends the line at
fault, `# PARTNER` what it collides with.
"""

from __future__ import annotations

import itertools
import linecache
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba import cuda

from gpu_kernels import references

SEED = 6
#: The ways in which a kernel can be at fault.
KINDS = ("race", "uninitialised", "out-of-bounds", "divergent-barrier")
LISTS = ("count", "finds", "remarks", "says")
TYPES = ("uint8", "int16", "int32", "uint32", "int64", "float32", "float64")
#: What the text of a kernel may name.
NAMES = {"cuda": cuda, "math": math, **{name: getattr(numba, name) for name in TYPES}}
_numbers = itertools.count()


def function(head: str, body: str, decorator: str = "@cuda.jit") -> str:
    """Return the text of a function."""
    return f"{decorator}\ndef {head}:\n" + "".join(f"    {line}\n" for line in body.splitlines())


def made(text: str, **names: Any) -> Any:
    """Return the function `kernel` of a text; `names` are its global names."""
    file = f"<kernel {next(_numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space = {"cuda": cuda, **names}
    exec(compile(text, file, "exec"), space)  # the tests' own text
    return space["kernel"]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A kernel with its launch, its arguments and its result."""

    name: str
    kernel: Any
    parameters: list[str]
    griddim: int | tuple[int, ...]
    blockdim: int | tuple[int, ...]
    args: str
    want: str
    marks: dict[str, set[int]]  # the lines that end in a mark
    shared_bytes: int = 0
    tolerance: float = 1e-5  # relative and absolute: what float32 sums of some dozen agree to
    canonical: Callable = np.asarray  # np.sort where the order is nobody's promise
    disputed: bool = False
    in_simulator: bool = True  # Numba's own has no warps, and copies every argument by itself
    #: of a fault
    kind: str = ""
    may_also: tuple[str, ...] = ()  # other kinds that follow from it
    wrong_in_lockstep: bool = False  # whether the result shows it although threads go statement by statement
    #: (array, kind, {"requests": …}), totals over the launch
    counts: list[tuple[str, str, dict[str, int]]]
    finds: list[dict[str, Any]]  # hazards: fields that they must have
    remarks: list[dict[str, Any]]
    says: list[str]  # parts of the report
    branch: tuple[int, ...]  # warps that come to it, warps that it divides

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return math.prod(self.blockdim) if isinstance(self.blockdim, tuple) else self.blockdim

    def make_args(self, seed: int) -> tuple:
        return eval(f"({self.args},)", arguments(seed))

    def check(self, args: tuple, seed: int = SEED) -> None:
        """Assert that `args`, made by make_args(seed) and then launched, hold the wanted result."""
        if not self.want:
            return
        fresh, given = (dict(zip(self.parameters, self.make_args(seed), strict=True)) for _ in range(2))
        with np.errstate(all="ignore"):
            wanted = eval(self.want, {"np": np, **vars(references), **given})
        wanted = wanted if isinstance(wanted, dict) else {self.parameters[-1]: wanted}
        for (name, before), got in zip(fresh.items(), args, strict=True):
            if isinstance(before, np.ndarray):
                tolerance = self.tolerance if before.dtype.kind in "fc" else 0
                np.testing.assert_allclose(
                    self.canonical(got) if name in wanted else got,
                    self.canonical(wanted[name]) if name in wanted else before,
                    rtol=tolerance,
                    atol=tolerance,
                    err_msg=f"{self.name}, argument {name}",
                )


def arguments(seed: int) -> dict[str, Any]:
    """Return what arguments are made of."""
    rng = np.random.default_rng(seed)

    def floats(shape, dtype=np.float32):
        return rng.standard_normal(shape).astype(dtype)

    def ints(shape, low, high, dtype=np.int32):
        return rng.integers(low, high, shape).astype(dtype)

    def full(shape, value, dtype=np.float32):
        return np.full(shape, value, dtype)

    def zeros(shape, dtype=np.float32):
        return np.zeros(shape, dtype)

    def operands(M, K, N, dtype=np.float32):
        return floats((M, K), dtype), floats((K, N), dtype), np.full((M, N), np.nan, dtype)

    makers = {one.__name__: one for one in (floats, ints, full, zeros, operands)}
    return {"np": np, "rng": rng, **vars(references), **makers, **{name: getattr(np, name) for name in TYPES}}


def read(file: str) -> list[Case]:
    """Return the cases that a file of this folder holds."""
    cases: list[Case] = []
    devices: dict[str, str] = {}
    before: dict[str, Any] = {}
    for section in (Path(__file__).parent / file).read_text(encoding="utf-8").split("\n== ")[1:]:
        title, *lines = (line for line in section.splitlines() if line and not line.startswith("# "))
        if title.startswith("device "):
            head = title.removeprefix("device ")
            devices[head.partition("(")[0]] = function(head, "\n".join(lines), "@cuda.jit(device=True)")
            continue
        matches = [
            re.fullmatch(
                r"(kernel|args|want|more|count|finds|remarks|says|branch)(?:: |(?=\(.*\)\[))(.*)", line
            )
            for line in lines
        ]
        given = {match[1]: match[2] for match in matches if match}
        if "kernel" in given:
            parameters, launch = re.fullmatch(r"\((.*)\)\[(.*)\]", given["kernel"]).groups()
            before |= {
                "parameters": parameters.split(", "),
                **dict(zip(("griddim", "blockdim"), eval(launch), strict=True)),
            }
        if body := "\n".join(line for line, match in zip(lines, matches, strict=True) if not match):
            before |= _kernel(f"kernel({parameters})", body, devices)
        lists = {name: [match[2] for match in matches if match and match[1] == name] for name in LISTS}
        kind, _, name = title.rpartition(": ") if title.startswith(KINDS) else ("", "", title)
        case = {**before, "name": name, "kind": kind, "args": given["args"], "want": given.get("want", "")}
        case |= eval(f"dict({given.get('more', '')})", {"np": np})
        case |= {"says": lists["says"], "counts": list(map(_count, lists["count"]))}
        case |= {name: list(map(_finding, lists[name])) for name in ("finds", "remarks")}
        case["branch"] = tuple(map(int, re.findall(r"\d+", given.get("branch", ""))))
        cases.append(Case(**case))
    return cases


def _kernel(head: str, body: str, devices: dict[str, str]) -> dict[str, Any]:
    """Return the kernel with the functions that it calls above it, and its marked lines."""
    text = function(head, body)
    for name in reversed(devices):
        if re.search(rf"\b{name}\b", text):
            text = devices[name] + text
    lines = list(enumerate(text.splitlines(), 1))
    marks = {
        mark: {number for number, line in lines if line.endswith(f"# {mark}")}
        for mark in ("HAZARD", "PARTNER", "COUNT", "BRANCH")
    }
    return {"kernel": made(text, **NAMES), "marks": marks}


def _count(text: str) -> tuple[str, str, dict[str, int]]:
    array, kind, numbers = re.fullmatch(r"(\w+) (\w+): (.*)", text).groups()
    return array, kind, {what: int(number) for number, what in re.findall(r"(\d+) (\w+)", numbers)}


def _finding(text: str) -> dict[str, Any]:
    kind, array, times, thread = re.fullmatch(
        r"([\w-]+)(?: of (\w+))?(?:, (\d+) times)?(?:, thread (\d+))?", text
    ).groups()
    found = {"kind": kind, "array": array, "times": times and int(times)}
    found["threads"] = thread and (int(thread), 0, 0)
    return {name: value for name, value in found.items() if value is not None}
