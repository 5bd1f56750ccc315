"""Is .venv there, whole, and made from the present pyproject.toml and constraints.txt? Asked by every make.

A finished environment carries a stamp, written last; an unfinished one carries a marker, written first and
removed last. Whatever lies between the two was interrupted.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STAMP = "nine-circles.json"
MARKER = "nine-circles.unfinished"
FORMAT = 1
SOURCES = ("pyproject.toml", "constraints.txt")


@dataclass(frozen=True)
class Finding:
    """What is to be said about an environment: why it must be made anew, and whether it would still serve."""

    reason: str  # the clause after "making .venv: "
    works: bool  # worth keeping until the new one stands


def examine(venv: Path, asked_for: str | None = None) -> Finding | None:
    """Return why ``venv`` must be made anew, or None when it is sound.

    ``asked_for`` is the Python the user named ("3.12"), or None when any that fits will do: a learner whose
    default Python changes from shell to shell should not wait for a new environment each time.
    """
    if not os.path.lexists(venv):
        return Finding("there is none yet", works=False)
    if not venv.is_dir():
        return Finding(f"{venv.name} is not a folder", works=False)
    if (venv / MARKER).exists():
        return Finding("an earlier set-up was interrupted", works=False)
    version = _version_of(venv)
    if version is None:
        return Finding("the Python it was made with is gone or does not start", works=False)
    stamp = _read_stamp(venv)
    if stamp is None:
        return Finding(f"the present one was not finished by make ({STAMP} is missing)", works=True)
    return _compare(venv, stamp, version, asked_for)


def _compare(venv: Path, stamp: dict[str, Any], version: str, asked_for: str | None) -> Finding | None:
    if stamp["project"] != _home_of(venv):
        return Finding(f"the course's folder was moved or copied (it was {stamp['project']})", works=False)
    if stamp["python"] != version:
        return Finding(f"its Python became {version} (it was {stamp['python']})", works=False)
    lost = sorted(set(stamp["packages"]) - set(inventory(venv, version)))
    if lost:
        more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
        return Finding(f"installed packages are gone from it ({lost[0]}{more})", works=False)
    if asked_for is not None and asked_for != version:
        return Finding(f"Python {asked_for} was asked for (it has {version})", works=True)
    now = fingerprints(venv.parent)
    changed = [name for name in SOURCES if stamp["sources"].get(name) != now[name]]
    if changed:
        return Finding(f"{' and '.join(changed)} changed", works=True)
    return None


def write_stamp(venv: Path, sources: dict[str, str]) -> None:
    """Declare ``venv`` finished: made from ``sources``, holding what it holds now."""
    version = _version_of(venv)
    content = {
        "format": FORMAT,
        "project": _home_of(venv),
        "python": version,
        "sources": sources,
        "packages": inventory(venv, version or ""),
    }
    temporary = venv / (STAMP + ".new")
    temporary.write_text(json.dumps(content, indent=1, sort_keys=True), encoding="utf-8")
    os.replace(temporary, venv / STAMP)
    (venv / MARKER).unlink(missing_ok=True)


def fingerprints(project: Path) -> dict[str, str]:
    """Return the hash of every file that decides what belongs into the environment."""
    return {name: hashlib.sha256((project / name).read_bytes()).hexdigest() for name in SOURCES}


def inventory(venv: Path, version: str) -> list[str]:
    """Return what is installed: distributions and modules, without versions (updating by hand is fine)."""
    try:
        entries = os.listdir(site_packages(venv, version))
    except OSError:
        return []
    distributions = {name.split("-")[0] + " (package)" for name in entries if name.endswith(".dist-info")}
    modules = {name for name in entries if name.removesuffix(".py").isidentifier() and name != "__pycache__"}
    return sorted(distributions | modules)


def interpreter(venv: Path) -> Path:
    """Return the path of the environment's Python."""
    return venv / "Scripts" / "python.exe" if os.name == "nt" else venv / "bin" / "python"


def site_packages(venv: Path, version: str) -> Path:
    """Return the folder that ``venv`` (of Python ``version``, "3.11") installs into."""
    return venv / "Lib" / "site-packages" if os.name == "nt" else venv / f"lib/python{version}/site-packages"


def this_version() -> str:
    """Return the running Python's version as "3.11"."""
    return "{}.{}".format(*sys.version_info)


def _version_of(venv: Path) -> str | None:
    ask = [str(interpreter(venv)), "-I", "-S", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    try:
        answer = subprocess.run(ask, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None


def _home_of(venv: Path) -> str:
    """Return the folder the environment was made in; a .venv that links to another copy's is welcome."""
    return str(venv.resolve().parent)


def _read_stamp(venv: Path) -> dict[str, Any] | None:
    try:
        stamp = json.loads((venv / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    whole = isinstance(stamp, dict) and stamp.get("format") == FORMAT
    whole = whole and all(key in stamp for key in ("project", "python", "sources", "packages"))
    return stamp if whole else None
