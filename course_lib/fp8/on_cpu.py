"""The kernels' own text on a CPU, thread by thread, on a model of Hopper (kernels_on_cpu/hopper.hpp).

    on_cpu.missing()            # None, or the sentence that says why the model cannot run here
    on_cpu.run(plan)            # "" for a run without a problem; D has the result, in the CPU's memory
    on_cpu.run(plan, seed=3)    # the same, with events in another order

What the kernels' headers say in PTX is replaced: TMA, barriers, wgmma, stmatrix. What a kernel itself
says - roles, stages, parities, coordinates, scales, addresses - is compiled as it stands, and started by its
plan. So a ring that deadlocks, a tile that is read before it has come, or a store beyond D is found on any
Linux machine with a C++ compiler. Sums are float32 (the model rounds once for 32 products): whole numbers
and scales that are powers of two give exact results. Nothing is said about speed.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from itertools import count
from pathlib import Path

from course_lib.fp8 import jit, kernels_folder
from course_lib.fp8.formats import E4M3
from course_lib.fp8.plans import Plan, Pointer
from course_lib.fp8.tensor_maps import SIZES, TensorMap

MODEL = Path(__file__).parent / "kernels_on_cpu" / "hopper.hpp"
OPTIONS = ("-O1", "-fPIC", "-std=c++17", "-w", "-fstack-clash-protection")
PLAIN = ("ring.cuh", "scheduler.cuh", "swizzle.cuh")  # headers that are C++ as they stand
OWN_PTX = ("unpack", "copy16", "copies_done", "mma")  # functions of v0_naive and v1_mma
#: Declarations of shared memory, and where the model has it.
SHARED = {
    "__shared__ u64 full[STAGES], empty[STAGES];": (
        "auto &full = now->block->full, &empty = now->block->empty;"
    ),
    "__shared__ u64 full[STAGES];": "auto& full = now->block->full;",
    "__shared__ u64 full;": "u64& full = now->block->full[0];",
    "__shared__ __align__(16) u8 a_tile[BM * ROW], b_tile[BN * ROW];": (
        "u8 *a_tile = now->block->dynamic(), *b_tile = a_tile + BM * ROW;"
    ),
}
STATIC_BYTES = {"v1_mma": 2 * 64 * 144}  # tiles that are not ordered at the launch
DESCRIPTORS = ("constexpr int STEP", "constexpr u64 NEXT_STEP", "u64 descriptor_of")
_ERROR = re.compile(r"^(?P<file>[^\s:]+):(?P<line>\d+):(?:\d+:)? error: (?P<what>.*)$", re.MULTILINE)


class NotCpp(ValueError):
    """A kernel's text that the C++ compiler or the model does not take; the message says why."""


def missing() -> str | None:
    """Return the sentence that says why the model cannot run here; None if it can."""
    if sys.platform != "linux":
        return "The model of Hopper needs Linux: its threads are fibers of the C library."
    if _compiler() is None:
        return "The model of Hopper needs a C++ compiler: install g++ or clang++."
    return None


def run(plan: Plan, seed: int = 0, source: str | None = None) -> str:
    """Run a plan whose tensors are in the CPU's memory; return the first problem, "" for none.

    `seed` gives the order in which threads and copies take their turns, `source` another text of the kernel.
    Raises NotCpp for a text that does not compile, RuntimeError where the model cannot run.
    """
    if sentence := missing():
        raise RuntimeError(sentence)
    maps = [_Map.of(x) for x in plan.arguments if isinstance(x, TensorMap)]
    pointers = [x.address for x in plan.arguments if isinstance(x, Pointer)]
    numbers = [x for x in plan.arguments if isinstance(x, int)]
    room = plan.shared_bytes + STATIC_BYTES.get(plan.kernel, 0)
    launch = _Launch(plan.grid, plan.cluster, plan.threads, room, seed, E4M3.values.ctypes.data)
    return (
        _compiled(as_cpp(plan, source))
        .start(
            launch,
            (_Map * (len(maps) + 1))(*maps),
            (ctypes.c_void_p * (len(pointers) + 1))(*pointers),
            (ctypes.c_int * (len(numbers) + 1))(*numbers),
        )
        .decode()
    )


def products_overlapped(plan: Plan, source: str | None = None) -> bool:
    """Whether in the last run of a plan a product began while one of an earlier group was in flight."""
    return _compiled(as_cpp(plan, source)).products_overlapped()


def as_cpp(plan: Plan, source: str | None = None) -> str:
    """Return the text of a plan's kernel as C++, with a function that runs it; raises NotCpp."""
    source = jit.source_of(plan.kernel) if source is None else source
    text = re.sub(r'#include "(\S+)"\n', lambda m: m[0] if m[1] in PLAIN else "", source)
    text = re.sub(r"extern __shared__ \S+ u8 (\w+)\[\];", r"u8* \1 = now->block->dynamic();", text)
    for declared, there in SHARED.items():
        text = text.replace(declared, there)
    for name in OWN_PTX:
        text = re.sub(rf"^void {name}\(.*?(?:^}}|}}$)", "", text, flags=re.MULTILINE | re.DOTALL)
    for word in ("__shared__", "asm"):
        if re.search(rf"\b{word}\b", text):
            raise NotCpp(f"The model of Hopper does not know `{word}` in this place.")
    width = plan.constants.get("WGMMA_N", plan.constants.get("BN", 128))
    return "\n".join(
        [
            '#include "hopper.hpp"\n#include "swizzle.cuh"',
            *(f"constexpr int {name} = {value};" for name, value in plan.constants.items()),
            f"constexpr int WGMMA_WIDTH = {width};",
            _definition("types.cuh", "constexpr int SCALED"),
            _definition("types.cuh", "int blocks_of"),
            *(_definition("tensor_core.cuh", start) for start in DESCRIPTORS if "tensor_core.cuh" in source),
            _definition("store.cuh", "template <int COUNT>\nvoid store_columns"),
            text,
            'extern "C" const char* start(Launch launch, TensorMap* maps, Address* pointers, int* numbers) {',
            f"  kernel = [=] {{ {plan.kernel}({', '.join(_arguments(plan))}); }};",
            "  return run(launch);",
            "}",
            'extern "C" bool products_overlapped() { return overlapped; }',
        ]
    )


def _arguments(plan: Plan) -> list[str]:
    """Return what the kernel is called with: the next map, pointer or number of those handed over."""
    calls = {TensorMap: "maps[{}]", Pointer: "pointers[{}]", int: "numbers[{}]"}
    numbers = {kind: count() for kind in calls}
    return [calls[kind].format(next(numbers[kind])) for kind in map(type, plan.arguments)]


def _definition(header: str, start: str) -> str:
    """Return what begins with `start` in a header of the kernels: a line, or all up to the closing brace."""
    text = (kernels_folder() / header).read_text(encoding="utf-8")
    rest = text[text.index(start) :]
    line = rest[: rest.index("\n", len(start))]
    return rest[: rest.index("\n}") + 2] if line.endswith("{") else line


class _Map(ctypes.Structure):
    _fields_ = (
        ("address", ctypes.c_void_p),
        ("size", ctypes.c_int),
        ("rank", ctypes.c_int),
        ("swizzle", ctypes.c_int),
        ("dims", ctypes.c_int64 * 3),
        ("strides", ctypes.c_int64 * 3),
        ("box", ctypes.c_int64 * 3),
    )

    @classmethod
    def of(cls, told: TensorMap) -> _Map:
        size, rank = SIZES[told.dtype], len(told.dims)
        strides = (size, *told.strides, *[0] * (3 - rank))
        fill = [1] * (3 - rank)
        return cls(told.address, size, rank, told.swizzle, (*told.dims, *fill), strides, (*told.box, *fill))


class _Launch(ctypes.Structure):
    _fields_ = (
        ("grid", ctypes.c_int * 2),
        ("cluster", ctypes.c_int),
        ("threads", ctypes.c_int),
        ("dynamic_bytes", ctypes.c_int),
        ("seed", ctypes.c_int),
        ("e4m3", ctypes.c_void_p),
    )


# -- compiling ----------------------------------------------------------------------------------------------


def _compiler() -> str | None:
    return shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")


@cache
def _workshop() -> tempfile.TemporaryDirectory:
    """Return a folder for this process, with the model compiled: it is read once for all kernels."""
    folder = tempfile.TemporaryDirectory(prefix="nine-circles-hopper-")
    shutil.copy(MODEL, folder.name)
    order = [_compiler(), *OPTIONS, "-x", "c++-header", MODEL.name]
    subprocess.run(order, cwd=folder.name, check=True, capture_output=True)
    return folder


@cache
def _compiled(text: str) -> ctypes.CDLL:
    folder = Path(_workshop().name)
    name = f"kernel{len(list(folder.glob('*.cpp')))}"
    (folder / f"{name}.cpp").write_text(text, encoding="utf-8")
    order = [_compiler(), *OPTIONS, "-shared", f"-I{kernels_folder()}", f"{name}.cpp", "-o", f"{name}.so"]
    in_english = {**os.environ, "LC_ALL": "C"}  # its messages are looked into
    done = subprocess.run(order, cwd=folder, capture_output=True, text=True, env=in_english)
    if done.returncode:
        error = _ERROR.search(done.stderr)
        where = (
            f" {error['file']}, line {error['line']}: {error['what']}" if error else f" {done.stderr[:300]}"
        )
        raise NotCpp(f"The C++ compiler refuses{where.rstrip('.')}.")
    library = ctypes.CDLL(str(folder / f"{name}.so"))
    library.start.restype, library.products_overlapped.restype = ctypes.c_char_p, ctypes.c_bool
    return library
