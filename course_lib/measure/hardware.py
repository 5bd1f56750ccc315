"""Asking the operating system what this computer is: one small function for each question.

Any file, tool or field may be missing (containers, virtual machines, ARM boards, macOS, Windows). Then the
answer is "unknown", None or an empty tuple; nothing here raises because a machine keeps something to itself.
"""

from __future__ import annotations

import csv
import math
import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

UNKNOWN = "unknown"
#: SIMD instruction sets from narrow to wide: (name, register bits, the CPU features that make it up).
SIMD_LEVELS: tuple[tuple[str, int, frozenset[str]], ...] = (
    ("SSE2", 128, frozenset({"sse2"})),
    ("AVX", 256, frozenset({"avx"})),
    ("AVX2", 256, frozenset({"avx2", "fma"})),
    ("AVX-512", 512, frozenset({"avx512f", "avx512vl"})),
)
ARM_NAMES = ("arm64", "aarch64")
NVIDIA_SMI_TIMEOUT_S = 5.0


@dataclass(frozen=True)
class CacheLevel:
    """One data (or unified) cache as a core sees it."""

    level: int
    size_bytes: int
    line_bytes: int
    ways: int | None  # associativity; None when not known
    shared_by: int | None  # logical CPUs that share it; None when not known


@dataclass(frozen=True)
class Gpu:
    """The NVIDIA GPU a program would get first."""

    name: str
    memory_bytes: int | None
    driver: str
    compute_capability: str  # "9.0"


# -- the processor -----------------------------------------------------------------------------------------


def cpu_name() -> str:
    """Return the CPU's model name."""
    if sys.platform == "darwin":
        return _sysctl("machdep.cpu.brand_string") or _cpuinfo_name()
    for line in text_of(Path("/proc/cpuinfo")).splitlines():
        field, _, value = line.partition(":")
        if field.strip() == "model name" and value.strip():
            return " ".join(value.split())
    return _cpuinfo_name()  # ARM Linux and Windows


def simd() -> tuple[str, int]:
    """Return the widest SIMD instruction set and its register width in bits.

    LLVM is asked, because it also checks that the operating system saves the wide registers, and because it
    is what compiles the course's loops. SVE counts as NEON: the compiled loops of the course use NEON.
    """
    if platform.machine().lower() in ARM_NAMES:
        return "NEON", 128
    present = [(name, bits) for name, bits, needed in SIMD_LEVELS if needed <= cpu_features()]
    return present[-1] if present else ("scalar", 64)


@lru_cache(maxsize=1)
def cpu_features() -> frozenset[str]:
    """Return the CPU's instruction-set extensions by LLVM's names ("avx2", "fma", …)."""
    try:
        import llvmlite.binding as llvm

        return frozenset(name for name, present in llvm.get_host_cpu_features().items() if present)
    except Exception:  # LLVM does not know this CPU: fall back on what every 64-bit x86 has
        is_x86_64 = platform.machine().lower() in ("x86_64", "amd64")
        return frozenset({"sse2"}) if is_x86_64 else frozenset()


def threads(root: Path = Path("/")) -> int:
    """Return how many logical CPUs this process may use (affinity and container quota counted)."""
    count = len(_affinity()) or os.cpu_count() or 1
    quota = _cpu_quota(root)
    return max(1, min(count, math.ceil(quota))) if quota else count


def cores(root: Path = Path("/")) -> int:
    """Return how many physical cores this process may use."""
    usable = threads(root)
    siblings = {
        text_of(root / f"sys/devices/system/cpu/cpu{n}/topology/thread_siblings_list") for n in _affinity()
    }
    if siblings and "" not in siblings:
        return min(usable, len(siblings))
    import psutil

    return min(usable, psutil.cpu_count(logical=False) or usable)


def _affinity() -> set[int]:
    try:
        return os.sched_getaffinity(0)
    except (AttributeError, OSError):  # macOS, Windows
        return set()


# -- containers --------------------------------------------------------------------------------------------


def _cpu_quota(root: Path) -> float | None:
    """Return the CPUs a container may use at once, None without a limit."""
    pairs = [limit.split() for limit in _group_limits(root, "cpu.max") if limit[:1].isdigit()]  # no "max"
    return min((int(quota) / int(period) for quota, period in pairs), default=None)


def memory_bytes() -> int:
    """Return the memory this process may use: the machine's, or the container's limit if that is smaller."""
    import psutil

    limits = [int(limit) for limit in _group_limits(Path("/"), "memory.max") if limit.isdigit()]
    return min([psutil.virtual_memory().total, *limits])


def _group_limits(root: Path, file: str) -> list[str]:
    """Return what this process's control group (v2) and those around it say: each may set a limit."""
    top = root / "sys/fs/cgroup"
    groups = [line[3:] for line in text_of(root / "proc/self/cgroup").splitlines() if line.startswith("0::")]
    inside = top / (groups or ["/"])[0].lstrip("/")
    return [text_of(folder / file) for folder in (inside, *inside.parents) if folder.is_relative_to(top)]


# -- caches ------------------------------------------------------------------------------------------------


def caches(root: Path = Path("/")) -> tuple[CacheLevel, ...]:
    """Return the data caches, nearest first."""
    if sys.platform == "darwin":
        return _caches_of_macos()
    cpu = min(_affinity(), default=0)
    found = [
        _cache(folder) for folder in sorted((root / f"sys/devices/system/cpu/cpu{cpu}/cache").glob("index*"))
    ]
    levels = [cache for cache in found if cache]
    return tuple(sorted(levels, key=lambda cache: cache.level)) or _caches_from_cpuinfo()


def _cache(folder: Path) -> CacheLevel | None:
    level, size = _positive(text_of(folder / "level")), _size(text_of(folder / "size"))
    if text_of(folder / "type") == "Instruction" or not level or not size:
        return None
    return CacheLevel(
        level=level,
        size_bytes=size,
        line_bytes=_positive(text_of(folder / "coherency_line_size")) or 64,
        ways=_positive(text_of(folder / "ways_of_associativity")),
        shared_by=_count_cpus(text_of(folder / "shared_cpu_list")),
    )


def _positive(text: str) -> int | None:
    return int(text) or None if text.isdigit() else None


def _size(text: str) -> int | None:
    factor = {"K": 2**10, "M": 2**20, "G": 2**30}.get(text[-1:], 1)
    number = _positive(text.rstrip("KMG"))
    return number and number * factor


def _count_cpus(text: str) -> int | None:
    """Return how many CPUs a list such as "0-3,8-11" names."""
    count = 0
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        if not (first.isdigit() and (last or first).isdigit()):
            return None
        count += int(last or first) - int(first) + 1
    return count or None


def _caches_of_macos() -> tuple[CacheLevel, ...]:
    line = int(_sysctl("hw.cachelinesize") or 64)
    levels = []
    for level, name in ((1, "l1dcachesize"), (2, "l2cachesize"), (3, "l3cachesize")):
        # perflevel0 are the fast cores of Apple silicon; Intel Macs have only the plain names
        size = _positive(_sysctl(f"hw.perflevel0.{name}") or _sysctl(f"hw.{name}"))
        if size:
            shared = _positive(_sysctl("hw.perflevel0.cpusperl2")) if level == 2 else None
            levels.append(CacheLevel(level, size, line, None, shared))
    return tuple(levels)


def _caches_from_cpuinfo() -> tuple[CacheLevel, ...]:
    """Return what py-cpuinfo knows; its line sizes cannot be trusted, so x86's 64 bytes stand in."""
    sizes = map(_cpuinfo().get, ("l1_data_cache_size", "l2_cache_size", "l3_cache_size"))
    return tuple(
        CacheLevel(level, size, 64, None, None)
        for level, size in enumerate(sizes, 1)
        if isinstance(size, int) and size
    )


# -- libraries and devices ---------------------------------------------------------------------------------


def blas() -> tuple[str, str]:
    """Return NumPy's BLAS ("openblas 0.3.31") and the CPU architecture its kernels were written for."""
    import numpy

    loaded = _loaded_blas()
    if loaded:
        version = ".".join((loaded[0].get("version") or UNKNOWN).split(".")[:3])
        return f"{loaded[0]['internal_api']} {version}", loaded[0].get("architecture") or UNKNOWN
    try:
        built = numpy.show_config(mode="dicts")["Build Dependencies"]["blas"]
        return f"{built.get('name', UNKNOWN)} {built.get('version', '')}".strip(), UNKNOWN
    except (KeyError, TypeError):
        return UNKNOWN, UNKNOWN


def openblas_file() -> Path | None:
    """Return the file of the OpenBLAS in NumPy's own folder, None if there is none."""
    for library in _loaded_blas():
        if library.get("internal_api") == "openblas" and "numpy" in library.get("filepath", ""):
            return Path(library["filepath"])
    return None


def _loaded_blas() -> list[dict]:
    """Return what threadpoolctl says of the BLAS libraries in this process, NumPy's own first."""
    import numpy  # noqa: F401 – loads its BLAS
    from threadpoolctl import threadpool_info

    loaded = [library for library in threadpool_info() if library.get("user_api") == "blas"]
    # other packages bring their own
    return sorted(loaded, key=lambda library: "numpy" not in library.get("filepath", ""))


def gpu() -> Gpu | None:
    """Return the first NVIDIA GPU this process may use, as nvidia-smi tells it; None when there is none."""
    if values := nvidia_smi("name,memory.total,driver_version,compute_cap"):
        name, memory, driver, capability = values
        mebibytes = _positive(memory)
        return Gpu(name, mebibytes and mebibytes * 2**20, driver, capability)
    return None


def nvidia_smi(fields: str) -> list[str]:
    """Return what nvidia-smi says of the first GPU this process may use, a text for each of the `fields`.

    An empty list when there is no GPU, or no such field. nvidia-smi is a process of its own with a time
    limit: asking the driver from here could hang the kernel, and would start a CUDA context that no later
    fork survives.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and visible.strip() in ("", "-1", "NoDevFiles"):
        return []
    first = (visible or "").split(",")[0].strip()
    chosen = ["-i", first] if first.isdigit() or first.startswith("GPU-") else []
    answer = _run(["nvidia-smi", *chosen, f"--query-gpu={fields}", "--format=csv,noheader,nounits"])
    rows = ([value.strip() for value in row] for row in csv.reader(answer.splitlines()))
    return next((row for row in rows if len(row) == fields.count(",") + 1), [])


# -- small helpers -----------------------------------------------------------------------------------------


def text_of(path: Path) -> str:
    """Return what a file of the system says, "" where it says nothing."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _run(command: list[str]) -> str:
    """Return what ``command`` prints, "" when it is missing, fails or takes too long."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=NVIDIA_SMI_TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def _sysctl(name: str) -> str:
    return _run(["sysctl", "-n", name])


@lru_cache(maxsize=1)
def _cpuinfo() -> dict:
    """Ask py-cpuinfo: it takes a second or more, so it is the last resort and asked once."""
    try:
        import cpuinfo

        return cpuinfo.get_cpu_info()
    except Exception:  # py-cpuinfo raises whatever the platform did to it
        return {}


def _cpuinfo_name() -> str:
    return str(_cpuinfo().get("brand_raw") or UNKNOWN)
