"""The inner loop of a compiled GPU kernel, line by line: made from a compilation here, or read from a file.

    code_listing.of(compile_kernel(tiled, A, B, C), tiled, threads=1024)
    code_listing.find(cuda_tiled.tiled, cc=(9, 0))       shipped with the course, None if there is none

Compiling for a GPU takes packages of 550 MB that most learners do not have. So `record --code` writes what
became of every CUDA rung, for some architectures, into files of this package. A file is found by the kernel's
fingerprint, a hash of all text that it is made of: a listing of an older text is never shown.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import re
import types
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from course_lib.measure import sass
from course_lib.measure.device_code import Capability, DeviceCode
from course_lib.measure.recording_files import (
    Checked,
    Commit,
    Moment,
    RecordingFiles,
    Text,
    Versions,
    installed,
    naming,
)
from course_lib.measure.sass import SassLoop

FOLDER = Path(__file__).parent / "listings"
MATRICES = ("array(float32, 2d, C)",) * 3  # what the rungs are compiled for: A, B and C
VERSIONS = ("numba-cuda", "nvidia-nvvm", "nvidia-nvjitlink", "nvidia-cuda-nvdisasm")
NOT_KNOWN = -1  # of an instruction: its line in the kernel
FIGURES = ("registers", "stack_bytes", "spill_store_bytes", "spill_load_bytes", "shared_bytes")
Figure = Annotated[int, Checked(lambda value: value >= 0, "a whole number of at least 0")]
ListedLine = Annotated[
    str, Checked(re.compile(r"-?\d+\t\S.*").fullmatch, "a number of a line, a tab, an instruction")
]
#: A file must say it; what is compiled here may not know it.
Known = Annotated[int | None, Checked(lambda value: value and value > 0, "a whole number above 0")]


@dataclass(frozen=True)
class ListedInstruction:
    """One instruction: its text with the predicate, what it does, and where in the kernel it comes from."""

    text: str
    kind: str  # as `measure.sass` has it
    source: int  # a line of the kernel, counted from 0: its decorator


@dataclass(frozen=True, kw_only=True)
class Listing:
    """A kernel's inner loop and its figures, for one architecture. Figures in bytes are those of a thread,
    shared memory that of a block."""

    kernel: Text
    fingerprint: Text
    cc: Capability
    arguments: tuple[str, ...]  # types, as Numba writes them
    threads: Known  # of a block; None: not known
    registers: Figure
    stack_bytes: Figure
    spill_store_bytes: Figure
    spill_load_bytes: Figure
    shared_bytes: Figure
    versions: Annotated[Versions, naming(VERSIONS)]
    # "" if it was compiled here:
    rung: str
    tile: str
    when: Moment  # ISO 8601, UTC
    commit: Commit
    # SASS; empty if the kernel has no loop with an FMA
    loop: Annotated[tuple[ListedLine, ...], Checked(len, "one instruction or more")]
    ptx: tuple[ListedLine, ...]  # the same loop, as far as it is one there

    def lines(self, language: str) -> tuple[ListedInstruction, ...]:
        """Return the loop's instructions in "SASS" or in "PTX"."""
        written, kind = (self.loop, sass.kind_of) if language == "SASS" else (self.ptx, sass.ptx_kind)
        parts = [line.partition("\t") for line in written]
        return tuple(ListedInstruction(text, kind(text), int(source)) for source, _, text in parts)

    @property
    def kinds(self) -> Counter[str]:
        """How many instructions of each kind a turn of the loop has."""
        return Counter(line.kind for line in self.lines("SASS"))

    @property
    def fma_share(self) -> float:
        """Fused multiply-adds among the instructions of a turn: their part of the issue slots."""
        return self.kinds["FMA"] / len(self.loop) if self.loop else 0.0

    @property
    def spilled_bytes(self) -> int:
        """Bytes a thread moves to and from local memory because it has too few registers."""
        return self.spill_store_bytes + self.spill_load_bytes

    @property
    def origin(self) -> str:
        """Where it was compiled and with what, in a sentence."""
        packages = f"numba-cuda {self.versions['numba-cuda']} and NVVM {self.versions['nvidia-nvvm']}"
        return (
            f"Compiled on {self.when[:10]} with {packages}, not here."
            if self.when
            else f"Compiled here with {packages}."
        )


@dataclass(frozen=True)
class ListingFile:
    """What a file holds: a rung's listings."""

    listings: tuple[Listing, ...]


FILES = RecordingFiles("code", ListingFile, FOLDER, indent=1)


def of(code: DeviceCode, kernel: Callable, arguments: tuple[str, ...], threads: int | None) -> Listing:
    """Return the listing of what `compile_kernel` made of `kernel`; `arguments` are the types, in words."""
    function = getattr(kernel, "py_func", kernel)
    lines, first = inspect.getsourcelines(function)
    files = ("", function.__code__.co_filename)  # PTX names none

    def written(hot: SassLoop | None) -> tuple[str, ...]:
        found = []
        for one in hot.instructions if hot else ():
            is_here = one.file in files and first <= one.line < first + len(lines)
            found.append(
                f"{one.line - first if is_here else NOT_KNOWN}\t{f'{one.predicate} {one.text}'.strip()}"
            )
        return tuple(found)

    return Listing(
        kernel=code.name,
        fingerprint=fingerprint(kernel),
        cc=code.cc,
        arguments=arguments,
        threads=threads,
        **{name: getattr(code, name) for name in FIGURES},
        loop=written(code.hot),
        ptx=written(sass.parse_ptx(code.ptx).hot),
        versions=installed(*VERSIONS),
        **dict.fromkeys(("rung", "tile", "when", "commit"), ""),
    )


def find(kernel: Callable, cc: Capability, folder: Path = FOLDER) -> Listing | None:
    """Return the shipped listing of this kernel as it is written now; None if there is none.

    Raises MalformedRecording if a file of the folder is none.
    """
    wanted = (fingerprint(kernel), tuple(cc))
    return next((one for one in shipped(folder) if (one.fingerprint, one.cc) == wanted), None)


@functools.cache
def shipped(folder: Path = FOLDER) -> tuple[Listing, ...]:
    """Return all listings of a folder, by name of the file and architecture."""
    return tuple(one for path in sorted(folder.glob("*.json")) for one in FILES.read(path).listings)


def write(listings: list[Listing], folder: Path = FOLDER) -> Path:
    """Write the listings of one rung into its file, in place of those it had, and return the path."""
    path = folder / f"{listings[0].rung}.json"
    FILES.write_to(path, ListingFile(tuple(listings)))
    shipped.cache_clear()
    return path


# -- which kernel it is --------------------------------------------------------------------------------------


def fingerprint(kernel: Callable) -> str:
    """Return a hash of what a kernel is made of: its text, that of functions it calls, their constants."""
    said = [repr(_options(kernel))]
    said += sorted(_texts(getattr(kernel, "py_func", kernel), set()))
    return hashlib.sha256("\n".join(said).encode()).hexdigest()[:16]


def _options(kernel: Callable) -> list[tuple[str, Any]]:
    """Return what the decorator says that changes the code; no matter which version of Numba wrote it."""
    options = getattr(kernel, "targetoptions", {})
    return [(name, options[name]) for name in ("fastmath", "launch_bounds") if options.get(name)]


def _texts(function: types.FunctionType, seen: set[Any]) -> Iterator[str]:
    """Yield the text of a function, of those it calls on the GPU, and every constant that they name."""
    if function in seen:
        return
    seen.add(function)
    yield inspect.getsource(function)
    if getattr(function, "runs_as_written", False):  # what stands in for it on the GPU is in the same file
        yield inspect.getsource(inspect.getmodule(function))
    names = inspect.getclosurevars(function)
    for name, value in {**names.globals, **names.nonlocals}.items():
        called = getattr(value, "py_func", value)
        if isinstance(called, types.FunctionType):
            yield from _texts(called, seen)
        elif isinstance(value, int | float | str | tuple):
            yield f"{name} = {value!r}"
