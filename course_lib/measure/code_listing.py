"""The inner loop of a compiled GPU kernel, line by line: made from a compilation here, or read from a file.

    code_listing.of(compile_kernel(tiled, A, B, C), tiled, threads=1024)
    code_listing.find(cuda_tiled.tiled, cc=(9, 0))       shipped with the course, None if there is none

Compiling for a GPU takes packages of 550 MB that most learners do not have. So `record --code` writes what
became of every CUDA rung, for some architectures, into files of this package. A file is found by the kernel's
fingerprint, a hash of all text that it is made of: a listing of an older text is never shown.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from course_lib.measure import ptx, sass
from course_lib.measure.device_code import Capability, DeviceCode
from course_lib.measure.kernel_fingerprint import fingerprint
from course_lib.measure.recordings import is_commit

FOLDER = Path(__file__).parent / "listings"
KIND, FORMAT = "code", 1
MATRICES = ("array(float32, 2d, C)",) * 3  # what the rungs are compiled for: A, B and C
VERSIONS = ("numba-cuda", "nvidia-nvvm", "nvidia-nvjitlink", "nvidia-cuda-nvdisasm")
NOT_KNOWN = -1
FIGURES = ("registers", "stack_bytes", "spill_store_bytes", "spill_load_bytes", "shared_bytes")


class MalformedListing(ValueError):
    """A file that is no listing; the message says what is wrong with it."""


@dataclass(frozen=True)
class ListedInstruction:
    """One instruction: its text with the predicate, what it does, and where in the kernel it comes from."""

    text: str
    kind: str  # as `measure.sass` has it
    source: int = NOT_KNOWN  # a line of the kernel, counted from 0: its decorator


@dataclass(frozen=True)
class Listing:
    """A kernel's inner loop and its figures, for one architecture. Figures in bytes are those of a thread,
    shared memory that of a block."""

    kernel: str
    fingerprint: str
    cc: Capability
    arguments: tuple[str, ...]  # types, as Numba writes them
    threads: int | None  # of a block; None: not known
    registers: int
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    shared_bytes: int
    loop: tuple[ListedInstruction, ...]  # SASS; empty if the kernel has no loop with an FMA
    ptx: tuple[ListedInstruction, ...]  # the same loop, as far as it is one there
    versions: Mapping[str, str] = field(default_factory=dict)
    rung: str = ""
    tile: str = ""
    when: str = ""  # ISO 8601, UTC; "" if it was compiled here
    commit: str = ""

    @property
    def kinds(self) -> Counter[str]:
        """How many instructions of each kind a turn of the loop has."""
        return Counter(line.kind for line in self.loop)

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

    def data(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return {
            "kernel": self.kernel,
            "fingerprint": self.fingerprint,
            "cc": list(self.cc),
            "arguments": list(self.arguments),
            "threads": self.threads,
            **{name: getattr(self, name) for name in FIGURES},
            "versions": dict(self.versions),
            "rung": self.rung,
            "tile": self.tile,
            "when": self.when,
            "commit": self.commit,
            "loop": [f"{line.source}\t{line.text}" for line in self.loop],
            "ptx": [f"{line.source}\t{line.text}" for line in self.ptx],
        }


def of(code: DeviceCode, kernel: Callable, arguments: tuple[str, ...], threads: int | None) -> Listing:
    """Return the listing of what `compile_kernel` made of `kernel`; `arguments` are the types, in words."""
    function = getattr(kernel, "py_func", kernel)
    lines, first = inspect.getsourcelines(function)
    file = function.__code__.co_filename

    def place(line: int) -> int:
        return line - first if first <= line < first + len(lines) else NOT_KNOWN

    loop = tuple(
        ListedInstruction(
            f"{one.predicate} {one.text}".strip(),
            one.kind,
            place(one.line) if one.file == file else NOT_KNOWN,
        )
        for one in (code.hot.instructions if code.hot else ())
    )
    return Listing(
        kernel=code.name,
        fingerprint=fingerprint(kernel),
        cc=code.cc,
        arguments=arguments,
        threads=threads,
        **{name: getattr(code, name) for name in FIGURES},
        loop=loop,
        ptx=tuple(
            ListedInstruction(text, ptx.kind(text), place(line)) for line, text in ptx.hot_loop(code.ptx)
        ),
        versions=_versions(),
    )


def find(kernel: Callable, cc: Capability, folder: Path = FOLDER) -> Listing | None:
    """Return the shipped listing of this kernel as it is written now; None if there is none.

    Raises MalformedListing if a file of the folder is no listing.
    """
    wanted = (fingerprint(kernel), tuple(cc))
    return next((one for one in shipped(folder) if (one.fingerprint, one.cc) == wanted), None)


@functools.cache
def shipped(folder: Path = FOLDER) -> tuple[Listing, ...]:
    """Return all listings of a folder, by name of the file and architecture."""
    return tuple(one for path in sorted(folder.glob("*.json")) for one in read(path))


def write(listings: list[Listing], folder: Path = FOLDER) -> Path:
    """Write the listings of one rung into its file, in place of those it had, and return the path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{listings[0].rung}.json"
    content = {"kind": KIND, "format": FORMAT, "listings": [listing.data() for listing in listings]}
    text = json.dumps(content, indent=1) + "\n"
    restore(json.loads(text), path.name)  # nothing is written that could not be read
    path.write_text(text, encoding="utf-8")
    shipped.cache_clear()
    return path


def read(path: Path) -> list[Listing]:
    """Return the listings of a file; raises MalformedListing, or OSError if there is no such file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as problem:
        raise MalformedListing(f"{path.name} is no listing: it is not JSON ({problem}).") from None
    return restore(content, path.name)


def restore(content: Any, name: str = "this") -> list[Listing]:
    """Return the listings that `data` made; raises MalformedListing with what is wrong."""
    try:
        if (content["kind"], content["format"]) != (KIND, FORMAT):
            raise ValueError(f"it does not say 'kind': '{KIND}' and 'format': {FORMAT}")
        return [_restored(one) for one in content["listings"]]
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        what = f"{problem} is missing" if isinstance(problem, KeyError) else str(problem)
        raise MalformedListing(
            f"{name} is no listing: {what}; make it anew with `python -m course_lib record --code`."
        ) from None


def _restored(content: dict[str, Any]) -> Listing:
    for name in (*FIGURES, "threads"):
        if type(content[name]) is not int or content[name] < 0:
            raise ValueError(f"'{name}' is {content[name]!r}, not a whole number")
    if not is_commit(content["commit"]):
        raise ValueError(f"'commit' is {content['commit']!r}, which is no full git commit")
    if not content["loop"] or not content["when"]:
        raise ValueError("'loop' or 'when' is empty")
    return Listing(
        **{name: content[name] for name in ("kernel", "fingerprint", "threads", *FIGURES)},
        cc=tuple(int(part) for part in content["cc"]),
        arguments=tuple(content["arguments"]),
        loop=tuple(_line(one, _sass_kind) for one in content["loop"]),
        ptx=tuple(_line(one, ptx.kind) for one in content["ptx"]),
        versions={name: str(content["versions"][name]) for name in VERSIONS},
        **{name: str(content[name]) for name in ("rung", "tile", "when", "commit")},
    )


def _line(written: str, kind: Callable[[str], str]) -> ListedInstruction:
    source, _, text = written.partition("\t")
    return ListedInstruction(text, kind(text), int(source))


# -- the parts ---------------------------------------------------------------------------------------------


def _sass_kind(text: str) -> str:
    (one,) = sass.parse(f"/*0000*/ {text} ;").instructions
    return one.kind


def _versions() -> dict[str, str]:
    from importlib import metadata

    def version(package: str) -> str:
        try:
            return metadata.version(package)
        except metadata.PackageNotFoundError:
            return "of another origin than pip"

    return {package: version(package) for package in VERSIONS}
