"""What the compiler makes of a kernel, on a computer with or without a GPU: PTX, SASS, registers, spills.

    code = compile_kernel(tiled, A, B, C, cc=(9, 0))      a kernel and example arguments, for an H100
    code.registers, code.spill_store_bytes, code.shared_bytes
    code.hot.instructions                                 its inner loop, instructions with their source lines

The way is the one Numba takes before a launch: Numba's typed code becomes LLVM IR, NVVM turns that into PTX
(or an equal form for link-time optimisation), nvJitLink into machine code for one architecture. Only the
last step, the launch, needs a driver. Needs the packages of `.[cubin]`; `machine.missing("cubin")` says so.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from course_lib.measure import machine, sass
from course_lib.measure.sass import Sass, SassLoop

Capability = tuple[int, int]

_SHARED = re.compile(r"\.shared\s+\.align\s+\d+\s+\.b8\s+\S+\[(\d+)\]")
_LOG = {
    "registers": re.compile(r"Used (\d+) registers"),
    "stack_bytes": re.compile(r"(\d+) bytes stack frame"),
    "spill_store_bytes": re.compile(r"(\d+) bytes spill stores"),
    "spill_load_bytes": re.compile(r"(\d+) bytes spill loads"),
}
_one_at_a_time = threading.Lock()


class CannotCompile(RuntimeError):
    """The kernel cannot be compiled here, or not for this architecture; the message says why."""


class _LinkerRefuses(Exception):
    """What nvJitLink says in its log."""


@dataclass(frozen=True)
class DeviceCode:
    """A kernel compiled for one architecture. Registers, stack and spills are those of one thread."""

    name: str
    cc: Capability  # compute capability, (9, 0)
    ptx: str
    sass_text: str  # what nvdisasm printed
    registers: int
    stack_bytes: int  # of local memory, for local arrays that are not in registers
    spill_store_bytes: int
    spill_load_bytes: int
    shared_bytes: int  # declared in the kernel, of one block

    @cached_property
    def sass(self) -> Sass:
        """The machine code, read."""
        return sass.parse(self.sass_text)

    @property
    def hot(self) -> SassLoop | None:
        """The innermost loop with the most FMAs; None if there is none."""
        return self.sass.hot


def compile_kernel(kernel: Callable, *arguments: Any, cc: Capability = (9, 0)) -> DeviceCode:
    """Return what `kernel` (decorated with `@cuda.jit`, or a plain function) becomes for these arguments.

    `arguments` are examples (NumPy arrays, numbers) or Numba types; `cc` is the compute capability of the GPU
    meant: (8, 0) an A100, (9, 0) an H100 or H200. Raises CannotCompile with the reason.
    """
    if sentence := machine.missing("cubin"):
        raise CannotCompile(sentence)
    options = getattr(kernel, "targetoptions", {})
    function = getattr(kernel, "py_func", kernel)
    with _one_at_a_time, _pretended_device(cc):
        code, is_lto = _intermediate(function, _types(arguments), options, cc)
    flags = [f"-arch=sm_{cc[0]}{cc[1]}", "-lineinfo", "-Xptxas=-v"]
    if options.get("max_registers"):
        flags.append(f"-maxrregcount={options['max_registers']}")
    try:
        if is_lto:
            flags.append("-lto")
            ptx = _linked(code, [*flags, "-ptx"], "ptx")[0].decode().strip("\0")
        else:
            ptx = code.decode()
        cubin, log = _linked(code, flags, "cubin")
    except _LinkerRefuses as problem:
        name = function.__name__
        why = re.sub(r"'_Z\w+'", name, str(problem))  # the linker knows the kernel by a long name
        raise CannotCompile(f"{name} cannot be compiled for {_in_words(cc)}: {why}.") from problem
    text = disassembled(cubin)
    return DeviceCode(function.__name__, cc, ptx, text, shared_bytes=_shared(ptx), **numbers_in(log))


def _intermediate(
    function: Callable, types: tuple, options: dict[str, Any], cc: Capability
) -> tuple[bytes, bool]:
    """Return the kernel as PTX or as code for link-time optimisation, and which of the two it is."""
    from numba import cuda
    from numba.core.errors import NumbaError
    from numba.cuda.cudadrv.error import CCSupportError, NvvmSupportError

    is_lto = bool(options.get("lto"))
    kept = {name: options[name] for name in ("fastmath", "launch_bounds") if options.get(name)}
    if options.get("opt") is False:
        kept["opt"] = False
    try:
        code, _ = cuda.compile(
            function,
            types,
            device=False,
            abi="numba",
            cc=cc,
            lineinfo=True,
            output="ltoir" if is_lto else "ptx",
            **kept,
        )
    except CCSupportError as problem:
        raise CannotCompile(
            f"{function.__name__} cannot be compiled for {_in_words(cc)}: {problem}."
        ) from problem
    except NvvmSupportError:
        raise CannotCompile(
            f"NVVM, the compiler behind Numba, cannot be loaded: install it with {machine.INSTALL_CUDA}."
        ) from None
    except NumbaError as problem:
        why = next(line.strip() for line in str(problem).splitlines() if line.strip())
        raise CannotCompile(f"Numba cannot compile {function.__name__}: {why.rstrip('.:')}.") from problem
    return code if isinstance(code, bytes) else code.encode(), is_lto


@contextlib.contextmanager
def _pretended_device(cc: Capability) -> Iterator[None]:
    """Let Numba compile device functions for `cc`; it would ask the current GPU, which may not be there."""
    from numba.cuda import dispatcher

    device = SimpleNamespace(compute_capability=cc)
    with mock.patch.object(dispatcher, "get_current_device", lambda: device):
        yield


def _linked(code: bytes, flags: list[str], wanted: str) -> tuple[bytes, str]:
    """Return what nvJitLink makes of the code ("cubin" or "ptx"), and its log."""
    from cuda.bindings import nvjitlink

    kind = nvjitlink.InputType.LTOIR if "-lto" in flags else nvjitlink.InputType.PTX
    linker = nvjitlink.create(len(flags), flags)
    try:
        nvjitlink.add_data(linker, kind, code, len(code), "kernel")
        nvjitlink.complete(linker)
        result = _text(linker, f"linked_{wanted}")
        return result, _text(linker, "info_log").decode(errors="replace")
    except nvjitlink.nvJitLinkError as problem:
        said = _text(linker, "error_log").decode(errors="replace").strip("\0").strip()
        raise _LinkerRefuses((said or str(problem)).splitlines()[0]) from problem
    finally:
        nvjitlink.destroy(linker)


def _text(linker: int, what: str) -> bytes:
    from cuda.bindings import nvjitlink

    content = bytearray(getattr(nvjitlink, f"get_{what}_size")(linker))
    getattr(nvjitlink, f"get_{what}")(linker, content)
    return bytes(content)


def disassembled(cubin: bytes) -> str:
    """Return nvdisasm's text of machine code; raises CannotCompile if it cannot read it."""
    from cuda import pathfinder

    program = pathfinder.find_nvidia_binary_utility("nvdisasm")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.cubin"  # nvdisasm reads files only
        file.write_bytes(cubin)
        done = subprocess.run([program, "-c", "-g", str(file)], capture_output=True, text=True)
    if done.returncode:
        raise CannotCompile(f"nvdisasm cannot read the machine code: {done.stderr.strip()}")
    return done.stdout


def numbers_in(log: str) -> dict[str, int]:
    """Return registers, stack_bytes, spill_store_bytes and spill_load_bytes from ptxas's log of one kernel.

    What the log does not mention is 0; raises CannotCompile where it does not even name the registers.
    """
    found = {name: pattern.search(log) for name, pattern in _LOG.items()}
    if not found["registers"]:
        raise CannotCompile(f"The compiler's log names no registers: {log.strip()[:200]!r}.")
    return {name: int(match[1]) if match else 0 for name, match in found.items()}


def _types(arguments: tuple) -> tuple:
    import numba
    from numba.core.types import Type

    return tuple(argument if isinstance(argument, Type) else numba.typeof(argument) for argument in arguments)


def _in_words(cc: Capability) -> str:
    return f"compute capability {cc[0]}.{cc[1]}"


def _shared(ptx: str) -> int:
    return sum(map(int, _SHARED.findall(ptx)))
