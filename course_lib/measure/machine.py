"""What this computer is, and what it can do at best.

    machine.describe()         CPU, SIMD width, caches, memory, BLAS, GPU
    machine.peaks()            GFLOP/s and GB/s at best: measured once, then remembered
    machine.missing("cuda")    why something the course can use is not here, or None

This is the one place where optional hardware and software are looked for; everything else asks here.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from course_lib.measure import cuda_software, hardware
from course_lib.measure.hardware import CacheLevel, Gpu
from course_lib.measure.hardware import openblas_file as openblas_file
from course_lib.measure.peaks import Peaks, higher, restore
from course_lib.measure.peaks import measure as _measure_peaks
from course_lib.measure.progress import Progress
from course_lib.measure.sizes import in_bytes
from course_lib.measure.store import opened
from course_lib.measure.table import Facts, digits

#: The instruction set each OpenBLAS kernel family is written for, and the family for each instruction set.
_OPENBLAS_SIMD = {
    family: simd
    for simd, families in {
        "SSE2": "Prescott Core2 Penryn Dunnington Nehalem Atom Athlon Opteron Opteron_SSE3 Barcelona Bobcat "
        "Katmai Coppermine Northwood Banias",
        "AVX": "Sandybridge Bulldozer Piledriver Steamroller Excavator",
        "AVX2": "Haswell Zen",
        "AVX-512": "SkylakeX Cooperlake SapphireRapids",
    }.items()
    for family in families.split()
}
#: What to type for the packages that compile and run GPU kernels.
INSTALL_CUDA = cuda_software.INSTALL
_OPENBLAS_CHOICE = {"AVX": "Sandybridge", "AVX2": "Haswell", "AVX-512": "SkylakeX"}


@dataclass(frozen=True)
class Machine:
    """What this computer is. Text that could not be found out is "unknown", a number None."""

    cpu: str
    cores: int  # physical cores this process may use
    threads: int  # logical CPUs this process may use
    simd: str  # widest SIMD instruction set: "AVX-512", "AVX2", "AVX", "SSE2", "NEON" or "scalar"
    simd_bits: int
    caches: tuple[CacheLevel, ...]  # data caches, nearest first; empty when not known
    memory_bytes: int
    blas: str  # NumPy's, "openblas 0.3.31"
    blas_architecture: str  # "SkylakeX"
    gpu: Gpu | None
    system: str
    python: str


@lru_cache(maxsize=1)
def describe() -> Machine:
    """Return what this computer is; asked once per process, in well under a second."""
    simd, simd_bits = hardware.simd()
    blas, blas_architecture = hardware.blas()
    return Machine(
        cpu=hardware.cpu_name(),
        cores=hardware.cores(),
        threads=hardware.threads(),
        simd=simd,
        simd_bits=simd_bits,
        caches=hardware.caches(),
        memory_bytes=hardware.memory_bytes(),
        blas=blas,
        blas_architecture=blas_architecture,
        gpu=hardware.gpu(),
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        python=platform.python_version(),
    )


def caches() -> tuple[CacheLevel, ...]:
    """Return the data caches, nearest first; empty when the system does not tell."""
    return describe().caches


def gpu() -> Gpu | None:
    """Return the first NVIDIA GPU, None when there is none."""
    return describe().gpu


def key() -> str:
    """Return the name under which results measured on this machine are kept."""
    here = describe()
    return f"{here.cpu} / {here.threads} thread{'s' if here.threads > 1 else ''}"


def blas_is_behind() -> str | None:
    """Return a sentence when NumPy's OpenBLAS uses narrower instructions than the CPU has, else None."""
    here = describe()
    names = [name for name, _, _ in hardware.SIMD_LEVELS]
    used = _OPENBLAS_SIMD.get(here.blas_architecture)
    if not here.blas.startswith("openblas") or used is None or here.simd not in names:
        return None
    if names.index(used) >= names.index(here.simd):
        return None
    return (
        f"NumPy's OpenBLAS runs its {here.blas_architecture} kernels ({used}) although this CPU has "
        f"{here.simd}: to see the difference, set the environment variable "
        f"OPENBLAS_CORETYPE={_OPENBLAS_CHOICE[here.simd]} before Python starts, and measure again."
    )


def openblas_choice() -> str | None:
    """Return OpenBLAS's name for the kernels of this CPU's widest SIMD instructions; None: its own choice."""
    return _OPENBLAS_CHOICE.get(describe().simd)


# -- what may be missing -----------------------------------------------------------------------------------


def missing(need: str) -> str | None:
    """Return one sentence that says why ``need`` is not met here, None when it is met."""
    if need not in _NEEDS:
        raise ValueError(f"{need!r} is no known requirement; known are {', '.join(sorted(_NEEDS))}.")
    return _NEEDS[need]()


def _missing_package(package: str) -> str | None:
    if cuda_software.is_installed(package.replace("-", "_")):
        return None
    return f"This needs the Python package {package}: install it with `pip install {package}`."


def _missing_openblas() -> str | None:
    if openblas_file():
        return None
    return f"This needs a NumPy that brings OpenBLAS (as PyPI's wheels do), and here it is {describe().blas}."


def _missing_ranks() -> str | None:
    """Say why no processes can be started that talk through torch.distributed."""
    if sys.platform == "win32":
        return "This needs processes that are forked, which Windows cannot: use WSL."
    if lacking := _missing_package("torch") or _missing_package("cloudpickle"):
        return lacking
    import torch.distributed

    if not torch.distributed.is_available():
        return "This needs torch.distributed, and this torch was built without it: install PyPI's."
    return None


_NEEDS: dict[str, Callable[[], str | None]] = {
    "cubin": cuda_software.why_no_cubin,
    "cuda": lambda: cuda_software.why_no_cuda(gpu()),
    "numba": lambda: _missing_package("numba"),
    "numba-cuda": lambda: _missing_package("numba-cuda"),
    "nvrtc": cuda_software.why_no_nvrtc,
    "openblas": _missing_openblas,
    "ranks": _missing_ranks,
    "torch": lambda: _missing_package("torch"),
    "torch-cuda": lambda: cuda_software.why_no_torch_cuda(gpu()),
}


# -- peaks -------------------------------------------------------------------------------------------------

_repeated: set[tuple[Path, str]] = set()  # disturbed ones that this process has measured once more


def peaks(refresh: bool = False) -> Peaks:
    """Return what this machine can do at best; measured the first time (seconds), then remembered.

    What other programs disturbed is measured again at the next request, once per process; ``refresh``
    measures again in any case.
    """
    known = None if refresh else known_peaks()
    place = (opened("machine").path, key())
    if known and (not known.is_disturbed or place in _repeated or missing("numba")):
        return known
    if known:
        _repeated.add(place)
    if sentence := missing("numba"):
        raise RuntimeError(sentence)
    here = describe()
    with Progress(None, patience_s=0) as bar:
        bar.update(0.0, "what this machine can do at best")
        measured = _measure_peaks(here.simd, here.simd_bits, here.threads, here.caches, here.memory_bytes)
    if known and known.threads == measured.threads:
        measured = higher(known, measured)
    opened("machine").update(lambda values: values.update({key(): measured.data()}))
    return measured


def known_peaks() -> Peaks | None:
    """Return what was measured of this machine before, None if nothing was."""
    return restore(opened("machine").read().get(key()))


# -- the card ----------------------------------------------------------------------------------------------


_BYTES_COUNTED = (
    "STREAM counts 24 bytes per element of the triad; most CPUs move 32, because they read a line before "
    "they write it (write-allocate). A kernel that only reads can exceed this bandwidth by up to a third."
)


def card(measure: bool = False) -> Facts:
    """Return what this machine is and can do; the peaks are on it once measured (``measure`` does so now)."""
    here = describe()
    limits = peaks() if measure else known_peaks()
    facts = [
        ("CPU", f"{here.cpu}: {_cores_in_words(here)}, {here.simd} ({here.simd_bits}-bit registers)"),
        ("caches", ", ".join(_cache_in_words(cache) for cache in here.caches) or hardware.UNKNOWN),
        ("memory", in_bytes(here.memory_bytes, digits=4)),
        ("NumPy's BLAS", _blas_in_words(here)),
        ("GPU", _gpu_in_words(here.gpu)),
        ("system", f"{here.system}, Python {here.python}"),
        *(
            _peaks_in_words(limits)
            if limits
            else [("at best", "not measured yet: machine.card(measure=True)")]
        ),
    ]
    return Facts("This machine", tuple(facts))


def _cores_in_words(here: Machine) -> str:
    cores = f"{here.cores} core{'s' if here.cores > 1 else ''}"
    return cores if here.threads == here.cores else f"{cores} ({here.threads} hardware threads)"


def _cache_in_words(cache: CacheLevel) -> str:
    shared = f", shared by {cache.shared_by} CPUs" if cache.shared_by and cache.shared_by > 1 else ""
    ways = f", {cache.ways} ways" if cache.ways else ""
    size = in_bytes(cache.size_bytes, digits=4)
    return f"L{cache.level} {size} ({cache.line_bytes}-byte lines{ways}{shared})"


def _blas_in_words(here: Machine) -> str:
    kernels = "" if here.blas_architecture == hardware.UNKNOWN else f", {here.blas_architecture} kernels"
    behind = blas_is_behind()
    return f"{here.blas}{kernels}" + (f". {behind}" if behind else "")


def _gpu_in_words(found: Gpu | None) -> str:
    if not found:
        return "none found"
    memory = f", {in_bytes(found.memory_bytes, digits=4)}" if found.memory_bytes else ""
    return f"{found.name}{memory}, compute capability {found.compute_capability}, driver {found.driver}"


def _peaks_in_words(limits: Peaks) -> list[tuple[str, str]]:
    def pair(values: dict[str, float], unit: str) -> str:
        together = f", {digits(values['all'])} {unit} on all {limits.threads}" if limits.threads > 1 else ""
        return f"{digits(values['one'])} {unit} on one core{together}"

    return [
        *((f"peak {dtype}", pair(values, "GFLOP/s")) for dtype, values in limits.flops.items()),
        *(
            (f"peak {dtype} with 256-bit vectors", pair(values, "GFLOP/s"))
            for dtype, values in (limits.flops_256 or {}).items()
        ),
        (
            "clock",
            f"{digits(limits.ghz)} GHz under vectors: {limits.per_cycle('float32')} float32 FLOP a cycle",
        ),
        (
            "reads of one core",
            ", ".join(f"{name} {digits(gbps)} GB/s" for name, gbps in limits.reads.items()),
        ),
        ("memory bandwidth", pair(limits.bandwidth, "GB/s") + " (STREAM triad: 2 arrays read, 1 written)"),
        ("measured", f"{limits.when[:10]}, best of short repeats; again with machine.peaks(refresh=True)"),
        ("note", _BYTES_COUNTED),
        *(("note", note) for note in limits.notes),
    ]
