"""`python -m course_lib doctor`: is everything ready? A line for each part, with the cure for what is not.

A *problem* keeps a chapter or an assignment from working; a *note* is good to know, no more.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from course_lib.measure import programs

PROJECT = Path(__file__).resolve().parents[2]
DISTRIBUTION = "nine-circles-of-matmul"
INSTALL = 'pip install -c constraints.txt -e ".[lab,dev]"'
INSTALLED_EXTRAS = ("", "lab", "dev")  # of the others, each is wanted by few
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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options to ``parser``."""
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")


def run(args: argparse.Namespace) -> int:
    """Print what every check finds; return 0 when there is no problem."""
    lines = []
    stranger = wrong_python()
    for check in (lambda: stranger,) if stranger else CHECKS:
        lines.append(_checked(check))
        if not args.json:
            print(lines[-1], flush=True)
    if args.json:
        print(json.dumps([asdict(line) for line in lines], indent=1))
    else:
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


def wrong_python() -> Line | None:
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
    return Line("problem", "Python", found, cure)


def _checked(check: Callable[[], Line]) -> Line:
    try:
        return check()
    except Exception as problem:  # a doctor must get to the end, whatever is broken
        what = getattr(check, "__name__", "a program").strip("_").replace("_", " ")
        return Line("problem", what, f"{type(problem).__name__}: {problem}", INSTALL)


# -- the checks --------------------------------------------------------------------------------------------


def _python() -> Line:
    found = f"{platform.python_version()} ({sys.executable})"
    if sys.version_info[:2] in TESTED_PYTHONS:
        return Line("OK", "Python", found)
    if sys.version_info < TESTED_PYTHONS[0]:
        return Line(
            "problem", "Python", found, "install Python 3.11 to 3.13 and run make lab PYTHON=its/path"
        )
    return Line("note", "Python", f"{found}; tested are 3.11 to 3.13")


def _packages() -> Line:
    from importlib import metadata

    from packaging.requirements import Requirement

    try:
        named = [Requirement(text) for text in metadata.requires(DISTRIBUTION) or ()]
    except metadata.PackageNotFoundError:
        return Line("problem", "packages", "the course itself is not installed in this Python", INSTALL)
    wanted = [one for one in named if any(_is_for(one, extra) for extra in INSTALLED_EXTRAS)]
    lacking, strange, other = [], [], []
    tested = tested_versions()
    for requirement in wanted:
        try:
            version = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            lacking.append(requirement)
            continue
        if not requirement.specifier.contains(version, prereleases=True):
            strange.append(f"{requirement.name} {version} (needs {requirement.specifier})")
        elif tested and version.partition("+")[0] != tested.get(_plain(requirement.name)):
            other.append(f"{requirement.name} {version}")
    return _about_packages(len(wanted), lacking, strange, other)


def _is_for(requirement: Any, extra: str) -> bool:
    return not requirement.marker or requirement.marker.evaluate({"extra": extra})


def _about_packages(count: int, lacking: list, strange: list[str], other: list[str]) -> Line:
    needed = [one.name for one in lacking if _is_for(one, "") or _is_for(one, "lab")]
    if needed or strange:
        words = [f"{', '.join(needed)} missing"] if needed else []
        return Line("problem", "packages", "; ".join(words + strange), INSTALL)
    if lacking:
        names = ", ".join(req.name for req in lacking)
        return Line("note", "packages", f"{names} missing: the tests cannot run", INSTALL)
    if other:
        found = f"all {count} present, not in the tested version: {', '.join(other)}"
        return Line("note", "packages", found, f"the tested set: {INSTALL}")
    return Line("OK", "packages", f"all {count} present in the tested versions")


def tested_versions() -> dict[str, str]:
    """Return constraints.txt as package -> version; empty where the file is not at hand."""
    try:
        lines = (PROJECT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    pairs = (line.split("==") for line in lines if "==" in line and not line.startswith("#"))
    return {_plain(name): version.split(";")[0].strip() for name, version in pairs}


def _plain(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def _compiler() -> Line:
    import numba

    add = numba.njit(lambda a, b: a + b)
    if add(40, 2) != 42:
        return Line(
            "problem", "compiler", f"numba {numba.__version__} computes 40 + 2 = {add(40, 2)}", INSTALL
        )
    return Line("OK", "compiler", f"numba {numba.__version__} compiles and runs")


def _PyTorch() -> Line:
    import torch

    return Line("OK", "PyTorch", f"{torch.__version__} starts, {torch.get_num_threads()} threads")


def _BLAS() -> Line:
    from course_lib.measure import machine

    here = machine.describe()
    behind = machine.blas_is_behind()
    if behind:
        return Line("note", "NumPy's BLAS", behind)
    return Line("OK", "NumPy's BLAS", f"{here.blas}, kernels for {here.blas_architecture}")


def _JupyterLab() -> Line:
    import jupyterlab
    from jupyter_client.kernelspec import KernelSpecManager

    kernel = KernelSpecManager().get_kernel_spec("python3").argv[0]
    # A bare "python" means the Python that runs JupyterLab.
    if os.path.isabs(kernel) and not os.path.samefile(kernel, sys.executable):
        cure = f"{sys.executable} -m ipykernel install --sys-prefix"
        return Line("problem", "JupyterLab", f"its kernel 'python3' is another Python: {kernel}", cure)
    return Line("OK", "JupyterLab", f"{jupyterlab.__version__}, its kernel is this Python")


def _nbgrader() -> Line:
    import nbgrader
    from jupyter_core.paths import jupyter_config_path
    from jupyter_server.extension.config import ExtensionConfigManager

    manager = ExtensionConfigManager(read_config_path=jupyter_config_path())
    found = f"{nbgrader.__version__}"
    enabled = manager.get_jpserver_extensions()
    off = [name for name in NBGRADER_EXTENSIONS if not enabled.get(name)]
    if off:
        cure = f"jupyter server extension enable --sys-prefix {' '.join(off)}"
        return Line("problem", "nbgrader", f"{found}, but JupyterLab does not load all of it", cure)
    folder = Path(sys.executable).parent
    if shutil.which("alembic"):
        return Line("OK", "nbgrader", f"{found}, enabled in JupyterLab")
    if shutil.which("alembic", path=str(folder)):
        found += ", enabled in JupyterLab; to run it by hand, this environment must be active"
        return Line("OK", "nbgrader", found)
    return Line("problem", "nbgrader", f"{found}, but its program alembic is not on the PATH", INSTALL)


def _results_folder() -> Line:
    from course_lib.measure.store import HOME_VARIABLE, data_dir

    folder = data_dir()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"x")
    except OSError as problem:
        found = f"{folder} cannot be written ({problem.strerror}): your ladder is not kept"
        return Line("problem", "results folder", found, f"set {HOME_VARIABLE} to a folder you may write")
    return Line("OK", "results folder", f"{folder}")


def _saved_results() -> Line:
    from course_lib import ladder
    from course_lib.measure.store import Store

    stores = [Store(name) for name in SAVED]
    complaints = [f"{store.path.name}: {said}" for store in stores if (said := store.complaint())]
    if complaints:
        cure = f"move it out of {stores[0].path.parent}; what can be measured again then is"
        return Line("problem", "saved results", "; ".join(complaints), cure)
    odd = ladder.unreadable()
    if odd:
        entries = "1 entry" if odd == 1 else f"{odd} entries"
        found = f"{stores[0].path}: {entries} cannot be read and count as not measured"
        return Line("note", "saved results", found, "measure again: python -m course_lib bench")
    files = ", ".join(store.path.name for store in stores if store.path.exists())
    return Line("OK", "saved results", f"{files} can be read" if files else "none yet")


def _GPU() -> Line:
    from course_lib.measure import machine

    gpu = machine.describe().gpu
    if gpu is None:
        found = "none: what needs one runs in a simulator or shows what was recorded on one"
        return Line("note", "GPU", found)
    return Line("OK", "GPU", f"{gpu.name}, compute capability {gpu.compute_capability}, driver {gpu.driver}")


def _sound_files() -> Line:
    try:
        soundfile = importlib.import_module("soundfile")
    except (ImportError, OSError):  # OSError: the package is there, the library libsndfile is not
        return Line("note", "sound files", "none is read: soundfile is not installed or broken", INSTALL)
    formats = soundfile.available_formats()
    named = ", ".join(name for name in ("FLAC", "OGG", "MP3") if name in formats)
    found = f"WAV is read; by soundfile {soundfile.__version__} {named} and others as well"
    return Line("OK", "sound files", found)


def _program(name: str) -> Line:
    why = programs.why_missing(name)
    if why is None:
        return Line("OK", name, str(programs.find(name)))
    return Line("note", name, f"{why}: {PROGRAMS[name]}", programs.cure(name))


def _memory_and_disk() -> Line:
    import psutil

    memory = psutil.virtual_memory().total / 1e9
    disk = shutil.disk_usage(PROJECT).free / 1e9
    found = f"{memory:.1f} GB of memory, {disk:.0f} GB of disk free"
    if memory < ENOUGH_MEMORY_GB:
        return Line("note", "memory and disk", f"{found}: large sizes may not fit; choose smaller ones")
    if disk < ENOUGH_DISK_GB:
        return Line("note", "memory and disk", f"{found}: notebooks may fail to save", "free some disk space")
    return Line("OK", "memory and disk", found)


CHECKS: tuple[Callable[[], Line], ...] = (
    _python,
    _packages,
    _compiler,
    _PyTorch,
    _BLAS,
    _JupyterLab,
    _nbgrader,
    _results_folder,
    _saved_results,
    _GPU,
    _sound_files,
    *(partial(_program, name) for name in PROGRAMS),
    _memory_and_disk,
)
