"""A project of a few lines with the real Makefile and bootstrap, so that making its .venv takes seconds.

Its build backend is a file of its own, so pip installs it with no index and no network.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import zipfile
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
"""Makes an editable wheel by hand."""
import os, time, zipfile

def build_editable(folder, config_settings=None, metadata_directory=None):
    time.sleep(0.5)
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
ALONE = {
    "PIP_INDEX_URL": "file:///nonexistent",
    "PIP_CONFIG_FILE": os.devnull,
    "PIP_FIND_LINKS": "",
    "PIP_EXTRA_INDEX_URL": "",
}


def _hears_a_closed_terminal() -> None:
    """Undo what nohup hands down to all that is started under it."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


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
        (folder / "pyproject.toml").write_text(PYPROJECT)
        (folder / "backend.py").write_text(BACKEND)
        (folder / "constraints.txt").write_text("torch==2.13.0\n")

    def need(self, package: str | None) -> None:
        """Change pyproject.toml so that the project depends on ``package``."""
        (self.folder / "pyproject.toml").write_text(PYPROJECT + (f"#needs {package}\n" if package else ""))

    def put_torch_into(self, folder: Path, version: str) -> Path:
        """Make a package index of one empty torch and return its folder."""
        (folder / "torch").mkdir(parents=True)
        name, info = f"torch-{version}-py3-none-any.whl", f"torch-{version}.dist-info/"
        with zipfile.ZipFile(folder / "torch" / name, "w") as wheel:
            wheel.writestr("torch.py", "")
            wheel.writestr(info + "METADATA", f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")
            wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: tiny\nTag: py3-none-any\n")
            wheel.writestr(info + "RECORD", "")
        (folder / "torch" / "index.html").write_text(f'<a href="{name.replace("+", "%2B")}">{name}</a>')
        return folder

    def installed(self, package: str) -> str:
        """Return the version of a package in .venv."""
        code = f"from importlib import metadata; print(metadata.version({package!r}))"
        return subprocess.run([self.python, "-c", code], capture_output=True, text=True).stdout.strip()

    def works(self) -> bool:
        """Whether .venv's Python finds the course."""
        done = subprocess.run([self.python, "-c", "import course_lib"], cwd="/", capture_output=True)
        return done.returncode == 0

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
            preexec_fn=_hears_a_closed_terminal if os.name == "posix" else None,
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
        f"import sys; sys.version_info = {(*version, 'final', 0)}; "
        "exec(sys.argv[2] if sys.argv[1] == '-c' else open(sys.argv[1]).read())"
    )
    return f'exec "{BASE_PYTHON}" -c "{pretend}" "$@"'
