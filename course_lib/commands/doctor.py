"""`python -m course_lib doctor`: is everything ready? A line for each part, with the cure for what is not.

A *problem* keeps a chapter or an assignment from working; a *note* is good to know, no more.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from course_lib.measure import programs

PROJECT = Path(__file__).resolve().parents[2]
DISTRIBUTION = "nine-circles-of-matmul"
INSTALL = 'pip install -c constraints.txt -e ".[lab,dev]"'
TESTED_PYTHONS = ((3, 11), (3, 12), (3, 13))
NBGRADER_EXTENSIONS = (
    "nbgrader.server_extensions.formgrader",
    "nbgrader.server_extensions.validate_assignment",
)
CORE = ("numpy", "numba", "torch", "matplotlib", "jupyterlab", "ipywidgets", "nbgrader")
SAVED = ("ladder", "machine", "guesses")  # the Stores that the course keeps
#: What does not come with pip, and who needs it.
PROGRAMS = {
    "chromium": "only 'make test' needs it",
    "bubblewrap": "only tests and grading a class need it",
    "C++ compiler": "only tests need it, and who runs chapter 10's kernels on the CPU",
    "valgrind": "only 'make test' needs it",
}
ENOUGH_MEMORY_GB = 4
ENOUGH_DISK_GB = 1


@dataclass(frozen=True)
class Line:
    """What one check found."""

    status: str  # "OK", "note" or "problem"
    what: str
    found: str
    cure: str = ""

    def __str__(self) -> str:
        cure = f"\n{'':27}-> {self.cure}" if self.cure else ""
        return f"{self.status:8} {self.what:17} {self.found}{cure}"


#: What a check returns: the status, what was found and, if there is one, the cure.
Finding = tuple[str, str] | tuple[str, str, str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The doctor has no options."""


def run(args: argparse.Namespace) -> int:
    """Print what every check finds; return 0 when there is no problem."""
    lines = []
    stranger = wrong_python()
    for what, check in ({"Python": lambda: stranger} if stranger else CHECKS).items():
        lines.append(_checked(what, check))
        print(lines[-1], flush=True)
    print("\n" + summary(lines))
    return 1 if any(line.status == "problem" for line in lines) else 0


def summary(lines: list[Line]) -> str:
    """Return the last word: ready, or what to mend."""
    problems = [line.what for line in lines if line.status == "problem"]
    notes = sum(line.status == "note" for line in lines)
    tail = f" ({notes} note{'s' if notes > 1 else ''}: the course works all the same)" if notes else ""
    if not problems:
        return f"Everything is ready{tail}."
    return f"{len(problems)} problem{'s' if len(problems) > 1 else ''} to mend: {', '.join(problems)}{tail}."


def wrong_python() -> Finding | None:
    """Return the one thing to say when the course was called with a Python that it is not installed in."""
    at_home = Path(sys.prefix).resolve() == (PROJECT / ".venv").resolve()
    lacking = [name for name in CORE if importlib.util.find_spec(name) is None]
    if at_home or 2 * len(lacking) < len(CORE):  # with most of it there, each check says what it lacks
        return None
    is_system = sys.prefix == sys.base_prefix and not (Path(sys.prefix) / "conda-meta").exists()
    whose = "the system's Python" if is_system else "the Python of another environment"
    program = Path(".venv", *(("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")))
    if (PROJECT / program).exists():
        cure = f"use {program}, or `make`"
    else:
        cure = "`make lab` makes an environment for the course, .venv, and starts there"
    found = f"You run {whose} ({sys.executable}), and the course is not installed in it"
    return "problem", found, cure


def _checked(what: str, check: Callable[[], Finding]) -> Line:
    try:
        status, *found = check()
    except Exception as problem:  # a doctor must get to the end, whatever is broken
        status, found = "problem", (f"{type(problem).__name__}: {problem}", INSTALL)
    return Line(status, what, *found)


# -- the checks --------------------------------------------------------------------------------------------


def _python() -> Finding:
    found = f"{platform.python_version()} ({sys.executable})"
    if sys.version_info[:2] in TESTED_PYTHONS:
        return "OK", found
    if sys.version_info < TESTED_PYTHONS[0]:
        return "problem", found, "install Python 3.11 to 3.13 and run make lab PYTHON=its/path"
    return "note", f"{found}; tested are 3.11 to 3.13"


def _packages() -> Finding:
    from importlib import metadata

    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    try:
        named = [Requirement(text) for text in metadata.requires(DISTRIBUTION) or ()]
    except metadata.PackageNotFoundError:
        return "problem", "the course itself is not installed in this Python", INSTALL
    tested = tested_versions()
    lacking, strange, other = {"": [], "dev": []}, [], []
    for one in named:
        extra = next(
            (e for e in ("", "lab", "dev") if not one.marker or one.marker.evaluate({"extra": e})), None
        )
        if extra is None:  # of another system, or an extra that few want
            continue
        try:
            version = metadata.version(one.name)
        except metadata.PackageNotFoundError:
            lacking["dev" if extra == "dev" else ""].append(one.name)
            continue
        if not one.specifier.contains(version, prereleases=True):
            strange.append(f"{one.name} {version} (needs {one.specifier})")
        elif tested and version.partition("+")[0] != tested.get(canonicalize_name(one.name)):
            other.append(f"{one.name} {version}")
    if needed := [f"{name} missing" for name in lacking[""]] + strange:
        return "problem", "; ".join(needed), INSTALL
    if lacking["dev"]:
        return "note", f"{', '.join(lacking['dev'])} missing: the tests cannot run", INSTALL
    if other:
        return "note", f"not in the tested version: {', '.join(other)}", f"the tested set: {INSTALL}"
    return "OK", "all present in the tested versions"


def tested_versions() -> dict[str, str]:
    """Return constraints.txt as package -> version; empty where the file is not at hand."""
    from packaging.utils import canonicalize_name

    try:
        lines = (PROJECT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    pairs = (line.split("==") for line in lines if "==" in line and not line.startswith("#"))
    return {canonicalize_name(name): version.split(";")[0].strip() for name, version in pairs}


def _compiler() -> Finding:
    import numba

    add = numba.njit(lambda a, b: a + b)
    if add(40, 2) != 42:
        return "problem", f"numba {numba.__version__} computes 40 + 2 = {add(40, 2)}", INSTALL
    return "OK", f"numba {numba.__version__} compiles and runs"


def _pytorch() -> Finding:
    import torch

    return "OK", f"{torch.__version__} starts, {torch.get_num_threads()} threads"


def _blas() -> Finding:
    from course_lib.measure import machine

    if behind := machine.blas_is_behind():
        return "note", behind
    here = machine.describe()
    return "OK", f"{here.blas}, kernels for {here.blas_architecture}"


def _jupyterlab() -> Finding:
    import jupyterlab
    from jupyter_client.kernelspec import KernelSpecManager

    kernel = KernelSpecManager().get_kernel_spec("python3").argv[0]
    # A bare "python" means the Python that runs JupyterLab.
    if os.path.isabs(kernel) and not os.path.samefile(kernel, sys.executable):
        cure = f"{sys.executable} -m ipykernel install --sys-prefix"
        return "problem", f"its kernel 'python3' is another Python: {kernel}", cure
    return "OK", f"{jupyterlab.__version__}, its kernel is this Python"


def _nbgrader() -> Finding:
    import nbgrader
    from jupyter_core.paths import jupyter_config_path
    from jupyter_server.extension.config import ExtensionConfigManager

    manager = ExtensionConfigManager(read_config_path=jupyter_config_path())
    enabled = manager.get_jpserver_extensions()
    if off := [name for name in NBGRADER_EXTENSIONS if not enabled.get(name)]:
        cure = f"jupyter server extension enable --sys-prefix {' '.join(off)}"
        return "problem", f"{nbgrader.__version__}, but JupyterLab does not load all of it", cure
    found = f"{nbgrader.__version__}, enabled in JupyterLab"
    if shutil.which("alembic"):
        return "OK", found
    if shutil.which("alembic", path=str(Path(sys.executable).parent)):
        return "OK", f"{found}; to run it by hand, this environment must be active"
    return "problem", f"{nbgrader.__version__}, but its program alembic is not on the PATH", INSTALL


def _results_folder() -> Finding:
    from course_lib.measure.store import HOME_VARIABLE, data_dir

    folder = data_dir()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"x")
    except OSError as problem:
        found = f"{folder} cannot be written ({problem.strerror}): your ladder is not kept"
        return "problem", found, f"set {HOME_VARIABLE} to a folder you may write"
    return "OK", f"{folder}"


def _saved_results() -> Finding:
    from course_lib import ladder
    from course_lib.measure.store import Store

    stores = [Store(name) for name in SAVED]
    complaints = [f"{store.path.name}: {said}" for store in stores if (said := store.complaint())]
    if complaints:
        cure = f"move it out of {stores[0].path.parent}; what can be measured again then is"
        return "problem", "; ".join(complaints), cure
    if odd := ladder.unreadable():
        entries = "1 entry" if odd == 1 else f"{odd} entries"
        found = f"{stores[0].path}: {entries} cannot be read and count as not measured"
        return "note", found, "measure again: python -m course_lib bench"
    files = ", ".join(store.path.name for store in stores if store.path.exists())
    return "OK", f"{files} can be read" if files else "none yet"


def _gpu() -> Finding:
    from course_lib.measure import machine

    gpu = machine.describe().gpu
    if gpu is None:
        return "note", "none: what needs one runs in a simulator or shows what was recorded on one"
    return "OK", f"{gpu.name}, compute capability {gpu.compute_capability}, driver {gpu.driver}"


def _sound_files() -> Finding:
    try:
        soundfile = importlib.import_module("soundfile")
    except (ImportError, OSError):  # OSError: the package is there, the library libsndfile is not
        return "note", "none is read: soundfile is not installed or broken", INSTALL
    named = ", ".join(name for name in ("FLAC", "OGG", "MP3") if name in soundfile.available_formats())
    return "OK", f"WAV is read; by soundfile {soundfile.__version__} {named} and others as well"


def _program(name: str) -> Finding:
    why = programs.why_missing(name)
    if why is None:
        return "OK", str(programs.find(name))
    return "note", f"{why}: {PROGRAMS[name]}", programs.cure(name)


def _memory_and_disk() -> Finding:
    import psutil

    memory = psutil.virtual_memory().total / 1e9
    disk = shutil.disk_usage(PROJECT).free / 1e9
    found = f"{memory:.1f} GB of memory, {disk:.0f} GB of disk free"
    if memory < ENOUGH_MEMORY_GB:
        return "note", f"{found}: large sizes may not fit; choose smaller ones"
    if disk < ENOUGH_DISK_GB:
        return "note", f"{found}: notebooks may fail to save", "free some disk space"
    return "OK", found


CHECKS: dict[str, Callable[[], Finding]] = {
    "Python": _python,
    "packages": _packages,
    "compiler": _compiler,
    "PyTorch": _pytorch,
    "NumPy's BLAS": _blas,
    "JupyterLab": _jupyterlab,
    "nbgrader": _nbgrader,
    "results folder": _results_folder,
    "saved results": _saved_results,
    "GPU": _gpu,
    "sound files": _sound_files,
    **{name: partial(_program, name) for name in PROGRAMS},
    "memory and disk": _memory_and_disk,
}
