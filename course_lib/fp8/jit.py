"""From CUDA C++ text in this package to machine code for Hopper, in a fraction of a second and without a GPU.

    binary = build("v0_naive")                            # compiles, or takes what was compiled before
    binary = build("v2_tma_ring", BM=128, BN=128, STAGES=5)
    binary.registers, binary.spilled_bytes, binary.cubin

The kernels include no header but our own, which are handed to the compiler as text: so NVRTC, NVIDIA's
compiler in a library, is all that is needed - no toolkit, no nvcc, no driver - and it reads a few hundred
lines instead of CUTLASS. `sm_90a` is Hopper with what only Hopper has: plain `sm_90` knows neither wgmma nor
setmaxnreg.

A build is kept on disk under a key of its text, options and compiler. A file is written beside its place and
moved there in one step, so processes may share the folder, and it carries a checksum, so a damaged one is
made anew. What would make a kernel slow without a word is an error here: registers that spill to memory, and
waits that the compiler had to put between tensor-core instructions (its messages C75xx).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import time
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from course_lib import whole_files
from course_lib.arguments import is_whole
from course_lib.fp8 import kernels_folder, wgmma
from course_lib.measure import device_code, machine, store

KERNELS = kernels_folder()
ARCHITECTURE = "sm_90a"
OPTIONS = (
    f"--gpu-architecture={ARCHITECTURE}",
    "--std=c++17",
    "-default-device",  # functions without a mark are for the GPU: there is no other side here
    "--ptxas-options=-v",  # registers and spills, in the log
    "--ptxas-options=--warn-on-spills",
    "-lineinfo",
)
FOLDER_VARIABLE = "NINE_CIRCLES_KERNELS"
#: What the messages about tensor-core instructions mean, by number (ptxas names the rest by itself).
SLOW = {
    "C7505": "it was compiled for debugging, so wgmma waits after every instruction",
    "C7508": "setmaxnreg is ignored, because the registers at the kernel's start are not known: give it "
    "__launch_bounds__(threads, 1)",
    "C7510": "wgmma instructions run one by one, because an accumulator is touched while they are in flight",
    "C7511": "wgmma instructions run one by one, because the registers do not suffice, or an accumulator is "
    "touched while they are in flight",
    "C7515": "wgmma instructions run one by one, because a function is called between them",
    "C7517": "the compiler had to wait itself, because an accumulator is read too early: wait_group first",
    "C7519": "the compiler had to put a fence before wgmma itself: fence after the accumulators are written",
}

_ERROR = re.compile(
    r"^(?P<file>[\w./]+)\((?P<line>\d+)\): (?:catastrophic )?error:? (?P<what>.*)$", re.MULTILINE
)
_UNFINISHED = re.compile(r"^At end of source: error:? (?P<what>.*)$", re.MULTILINE)
_PTXAS = re.compile(r"^(?:ptxas )?(?:fatal|error)\s*:?\s*(?P<what>.*)$", re.MULTILINE)
_SLOW = re.compile(r"\((?P<number>C75\d\d)\)(?P<what>.*)")


class CannotBuild(RuntimeError):
    """There is no compiler here, or it refuses the kernel; the message says why."""


@dataclass(frozen=True)
class Binary:
    """A kernel in machine code. Registers, stack and spills are those of one thread."""

    name: str
    constants: dict[str, int]
    compiler: str
    seconds: float  # what compiling took, when it was compiled
    registers: int
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    cubin: bytes

    @property
    def spilled_bytes(self) -> int:
        """Bytes that go to memory and come back for want of registers."""
        return self.spill_store_bytes + self.spill_load_bytes


def build(name: str, *, source: str | None = None, keep: bool = True, **constants: int) -> Binary:
    """Return a kernel of this package in machine code, with its constants ("BM", "STAGES") set.

    `source` is a text in the place of the kernel's own. Taken from the disk if it was built before (`keep`
    False: neither looked up nor kept). Raises CannotBuild without a compiler, for an error, a spill or an
    injected wait, and ValueError for a name or constant that makes no sense.
    """
    if name not in names():
        raise ValueError(f"name is {name!r}, but the kernels are {', '.join(names())}.")
    for constant, value in constants.items():
        if not is_whole(value) or not constant.isupper():
            raise ValueError(
                f"{constant}={value!r} is no constant: names are upper case, values whole numbers."
            )
    source = source_of(name) if source is None else source
    headers = headers_of(constants)
    if not keep:
        return _compiled(name, source, headers, constants)
    key = _key(name, source, headers, constants)
    binary = _kept(key)
    if binary is None:
        binary = _compiled(name, source, headers, constants)
        _keep(key, binary)
    return binary


def names() -> list[str]:
    """Return the names of the kernels, rung by rung."""
    return sorted(path.stem for path in KERNELS.glob("*.cu"))


def source_of(name: str) -> str:
    """Return the text of a kernel."""
    return (KERNELS / f"{name}.cu").read_text(encoding="utf-8")


def headers_of(constants: dict[str, int]) -> dict[str, str]:
    """Return our headers by name; wgmma's is written for the one width that the kernel uses."""
    headers = {path.name: path.read_text(encoding="utf-8") for path in sorted(KERNELS.glob("*.cuh"))}
    return headers | {"wgmma.cuh": wgmma.header(constants.get("WGMMA_N", constants.get("BN", 128)))}


# -- compiling ----------------------------------------------------------------------------------------------


def compiler() -> str:
    """Return the compiler's name and version; raises CannotBuild where there is none."""
    major, minor = compiler_version()
    return f"NVRTC {major}.{minor}"


@cache
def compiler_version() -> tuple[int, int]:
    """Return the compiler's version, which is its CUDA's; raises CannotBuild where there is none."""
    missing = machine.missing("nvrtc")
    if missing:
        raise CannotBuild(missing)
    from cuda.bindings import nvrtc

    status, major, minor = nvrtc.nvrtcVersion()
    if int(status):
        raise CannotBuild(f"NVRTC does not start: {status.name}.")
    return major, minor


def _compiled(name: str, source: str, headers: dict[str, str], constants: dict[str, int]) -> Binary:
    made_by = compiler()
    options = [*OPTIONS, *(f"-D{constant}={value}" for constant, value in sorted(constants.items()))]
    from cuda.bindings import nvrtc

    texts = [text.encode() for text in headers.values()]
    includes = [header.encode() for header in headers]
    start = time.perf_counter()
    file = f"{name}.cu"
    status, program = nvrtc.nvrtcCreateProgram(source.encode(), file.encode(), len(texts), texts, includes)
    if int(status):
        raise CannotBuild(f"NVRTC does not take {file}: {status.name}.")
    try:
        cubin, log = _run(program, options)
    finally:
        nvrtc.nvrtcDestroyProgram(program)
    seconds = time.perf_counter() - start
    return Binary(name, constants, made_by, seconds, **_numbers(name, constants, log), cubin=cubin)


def _run(program: object, options: list[str]) -> tuple[bytes, str]:
    """Compile; return the machine code and the log."""
    from cuda.bindings import nvrtc

    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
    log = _bytes(program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
    if int(status):
        raise CannotBuild(_complaint(log) or f"NVRTC refuses the kernel: {status.name}.")
    return _bytes(program, "CUBIN"), log


def _bytes(program: object, what: str) -> bytes:
    from cuda.bindings import nvrtc

    _, size = getattr(nvrtc, f"nvrtcGet{what}Size")(program)
    content = b"\0" * size
    getattr(nvrtc, f"nvrtcGet{what}")(program, content)
    return content


def _complaint(log: str) -> str | None:
    """Return the first error of a log as a sentence."""
    if error := _ERROR.search(log):
        who = f"compiler refuses {Path(error['file']).name}, line {error['line']}"
    elif error := _UNFINISHED.search(log):
        who = "compiler refuses the end of the text"
    elif error := _PTXAS.search(log):
        who = "assembler refuses the kernel"
    else:
        return None
    return f"The {who}: {error['what'].strip().rstrip('.')}."


def _numbers(name: str, constants: dict[str, int], log: str) -> dict[str, int]:
    """Return registers, stack and spills; raises CannotBuild for what makes a kernel slow without a word."""
    told = ", ".join(f"{key}={value}" for key, value in constants.items())
    what = f"{name} ({told})" if told else name
    if slow := _SLOW.search(log):
        meaning = SLOW.get(slow["number"], slow["what"].strip(" .:"))
        raise CannotBuild(f"{what} would be slow: {meaning} ({slow['number']}).")
    try:
        numbers = device_code.numbers_in(log)
    except device_code.CannotCompile as problem:
        raise CannotBuild(f"{what}: {problem}") from problem
    if spilled := numbers["spill_store_bytes"] + numbers["spill_load_bytes"]:
        raise CannotBuild(
            f"{what} spills {spilled} bytes to memory: its tile needs more registers than there are."
        )
    return numbers


# -- what was built before ----------------------------------------------------------------------------------


def folder() -> Path:
    """Return where builds are kept: $NINE_CIRCLES_KERNELS, or "kernels" beside the learner's files."""
    chosen = os.environ.get(FOLDER_VARIABLE)
    return Path(chosen).expanduser() if chosen else store.data_dir() / "kernels"


def _key(name: str, source: str, headers: dict[str, str], constants: dict[str, int]) -> str:
    parts = (name, source, headers, sorted(constants.items()), OPTIONS, compiler())
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _kept(key: str) -> Binary | None:
    """Return a build of before; None if there is none, or one that is damaged."""
    try:
        checksum, rest = (folder() / key).read_bytes().split(b"\n", 1)
        facts, cubin = rest.split(b"\n", 1)
        return Binary(**json.loads(facts), cubin=cubin) if checksum == _checksum(rest) else None
    except (OSError, ValueError, TypeError):  # there is none, it is cut short, or of another version
        return None


def _keep(key: str, binary: Binary) -> None:
    """Keep a build for the next time; where nothing can be written, the next time compiles again."""
    facts = asdict(binary)
    cubin = facts.pop("cubin")
    content = json.dumps(facts).encode() + b"\n" + cubin
    with contextlib.suppress(OSError):  # another process sees all of it or nothing
        whole_files.write(folder() / key, _checksum(content) + b"\n" + content)


def _checksum(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()
