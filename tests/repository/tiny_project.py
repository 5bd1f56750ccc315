"""A project of a few lines with the real Makefile and bootstrap, so that making its .venv takes seconds.

Its build backend is a file of its own, so pip installs it with no index and no network, and it can be told to
misbehave: fail as on a full disk, or take its time.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BASE_PYTHON = getattr(sys, "_base_executable", sys.executable)
CANDIDATES = ("python3", "python3.13", "python3.12", "python3.11", "python")

PYPROJECT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "tiny"
version = "1"
requires-python = ">=3.11"
dependencies = []
optional-dependencies = {lab = [], dev = []}
"""

BACKEND = '''\
"""Makes an editable wheel by hand; the file `behaviour` says how it goes wrong."""
import os, time, zipfile

def build_editable(folder, config_settings=None, metadata_directory=None):
    with open("builds", "a") as file:
        file.write("x")
    behaviour = open("behaviour").read().split()
    if behaviour[0] == "full":
        raise OSError(28, "No space left on device")
    if behaviour[0] == "slow":
        time.sleep(float(behaviour[1]))
    needs = [line.split()[1] for line in open("pyproject.toml") if line.startswith("#needs")]
    info = "tiny-1.dist-info/"
    with zipfile.ZipFile(os.path.join(folder, "tiny-1-py3-none-any.whl"), "w") as wheel:
        wheel.writestr("tiny.pth", os.getcwd() + "\\n")
        lines = ["Metadata-Version: 2.1", "Name: tiny", "Version: 1"]
        lines += ["Provides-Extra: lab", "Provides-Extra: dev"] + ["Requires-Dist: " + need for need in needs]
        wheel.writestr(info + "METADATA", "\\n".join(lines) + "\\n")
        wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nGenerator: tiny\\nTag: py3-none-any\\n")
        wheel.writestr(info + "RECORD", "")
    return "tiny-1-py3-none-any.whl"
'''

#: pip looks at no index and no settings of this machine.
ALONE = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": "", "PIP_EXTRA_INDEX_URL": ""}


class TinyProject:
    """A folder with a Makefile, a bootstrap and next to nothing to install."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.venv = folder / ".venv"
        self.python = self.venv / "bin" / "python"
        package = folder / "course_lib"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        shutil.copy(ROOT / "Makefile", folder)
        shutil.copy(ROOT / "course_lib" / "bootstrap.py", package)
        skip = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "course_lib" / "environment", package / "environment", ignore=skip)
        (folder / "pyproject.toml").write_text(PYPROJECT)
        (folder / "backend.py").write_text(BACKEND)
        (folder / "constraints.txt").write_text("# nothing\n")
        self.behave("well")

    def behave(self, how: str) -> None:
        """Tell the build backend what to do: "well", "full" (disk) or "slow SECONDS"."""
        (self.folder / "behaviour").write_text(how)

    def need(self, package: str | None) -> None:
        """Change pyproject.toml so that the project depends on ``package``."""
        (self.folder / "pyproject.toml").write_text(PYPROJECT + (f"#needs {package}\n" if package else ""))

    def builds(self) -> int:
        """Return how often pip has built the project."""
        file = self.folder / "builds"
        return len(file.read_text()) if file.exists() else 0

    def bootstrap(self, *arguments: str, python: str = BASE_PYTHON, **variables: str):
        """Run the bootstrap step to its end, as make does."""
        return self._run([python, "course_lib/bootstrap.py", *arguments], variables)

    def make(self, *arguments: str, **variables: str):
        """Run make to its end."""
        return self._run(["make", *arguments], variables)

    def start(self) -> subprocess.Popen:
        """Start the bootstrap step and return at once."""
        return subprocess.Popen(
            [BASE_PYTHON, "course_lib/bootstrap.py"],
            cwd=self.folder,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def environment(self, **variables: str) -> dict[str, str]:
        """Return this process' environment without what pip or an active environment left in it."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "MAKE"))}
        for name in ("VIRTUAL_ENV", "PYTHONPATH", "PYTHON", "MFLAGS"):
            clean.pop(name, None)
        return clean | ALONE | variables

    def leftovers(self) -> list[str]:
        """Return what lies beside .venv and should not, the lock and the log apart."""
        names = {path.name for path in self.folder.glob(".venv.*")}
        return sorted(names - {".venv.lock", ".venv.log"})

    def _run(self, command: list[str], variables: dict[str, str]):
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment(**variables),
            capture_output=True,
            text=True,
            timeout=120,
        )


def fake_pythons(folder: Path, **scripts: str) -> str:
    """Return a PATH whose Pythons are ``scripts`` (python3="...") and, for every other name, broken shims."""
    folder.mkdir(parents=True)
    for name in CANDIDATES:
        script = scripts.get(name.replace(".", "_"), "echo no such version >&2; exit 127")
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    return os.pathsep.join([str(folder), "/usr/bin", "/bin"])


def real_python() -> str:
    """Return the script of a Python that fits."""
    return f'exec "{BASE_PYTHON}" "$@"'


def old_python(version: tuple[int, int, int]) -> str:
    """Return the script of a Python that believes it is of ``version``."""
    pretend = (
        f"import sys, runpy; sys.version_info = {(*version, 'final', 0)}; sys.argv = sys.argv[1:]; "
        "runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    return f'[ "$1" = -c ] && exec "{BASE_PYTHON}" "$@"\nexec "{BASE_PYTHON}" -c "{pretend}" "$@"'
