"""Programs that do not come with Python and that parts of the course use: compilers, a browser, the sandbox.

Each function looks for one of them, and nothing else in the course does. What a machine lacks, and how to get
it, is said by `cure`.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

#: Names under which a browser of Chromium's family may stand on the PATH; the tests can drive each of them.
BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "microsoft-edge-stable",
    "msedge",
    "brave-browser",
)
#: Where such a browser lies that is not on the PATH; {} is a folder for programs.
_APPLICATIONS = {
    "darwin": (
        "{}/Google Chrome.app/Contents/MacOS/Google Chrome",
        "{}/Chromium.app/Contents/MacOS/Chromium",
        "{}/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    ),
    "win32": (
        "{}/Google/Chrome/Application/chrome.exe",
        "{}/Chromium/Application/chrome.exe",
        "{}/Microsoft/Edge/Application/msedge.exe",
    ),
}
#: What `playwright install chromium` leaves in its folder; the newest counts.
_PLAYWRIGHT = (
    "chromium-*/chrome-linux*/chrome",
    "chromium-*/chrome-mac*/*.app/Contents/MacOS/*",
    "chromium-*/chrome-win*/chrome.exe",
)
#: How programs are installed, by the installer's name.
_INSTALLERS = {
    "apt-get": "sudo apt install",
    "dnf": "sudo dnf install",
    "pacman": "sudo pacman -S",
    "zypper": "sudo zypper install",
    "brew": "brew install",
    "winget": "winget install",
}
BWRAP_WORDS = ["--ro-bind", "/", "/", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]


def browser() -> str | None:
    """Return the path of a browser of Chromium's family, None where there is none."""
    on_path = next(filter(None, map(shutil.which, BROWSERS)), None)
    return on_path or next((str(path) for path in _browsers_elsewhere() if path.is_file()), None)


def _browsers_elsewhere() -> list[Path]:
    home = Path.home()
    if sys.platform == "darwin":
        folders, downloads = ["/Applications", home / "Applications"], home / "Library/Caches/ms-playwright"
    elif sys.platform == "win32":
        names = ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA")
        folders = [os.environ[name] for name in names if name in os.environ]
        downloads = Path(os.environ.get("LOCALAPPDATA", home)) / "ms-playwright"
    else:
        folders, downloads = [], home / ".cache/ms-playwright"
    chosen = os.environ.get("PLAYWRIGHT_BROWSERS_PATH", "")
    if chosen not in ("", "0"):
        downloads = Path(chosen)
    installed = [
        Path(place.format(folder)) for place in _APPLICATIONS.get(sys.platform, ()) for folder in folders
    ]
    downloaded = [path for pattern in _PLAYWRIGHT for path in downloads.glob(pattern)]
    return installed + sorted(downloaded, reverse=True)


def c_compiler() -> str | None:
    """Return the path of a C compiler, None where there is none."""
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def cxx_compiler() -> str | None:
    """Return the path of a C++ compiler, None where there is none."""
    return shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")


def why_no_sandbox() -> str | None:
    """Return the words for what keeps bubblewrap from making a sandbox here, None if it can."""
    return (
        _tried(shutil.which("bwrap")) if sys.platform == "linux" else "no bubblewrap (it is for Linux only)"
    )


@cache
def _tried(bwrap: str | None) -> str | None:
    if bwrap is None:
        return "no bubblewrap"
    may_all = os.geteuid() == 0
    words = [bwrap, *([] if may_all else ["--unshare-user"]), *BWRAP_WORDS, "true"]
    try:
        tried = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        reason = tried.stderr.strip().splitlines()[-1:] if tried.returncode else None
    except (OSError, subprocess.SubprocessError) as problem:
        reason = [str(problem)]
    if reason is None:
        return None
    said = "".join(reason).removeprefix("bwrap: ") or "it ended without a word"
    return f"bubblewrap may not make a sandbox on this machine: {said}"


def cure(*programs: str) -> str:
    """Return what to type to get programs, called by their Debian names: "sudo apt install chromium"."""
    installer = next((words for name, words in _INSTALLERS.items() if shutil.which(name)), None)
    return f"{installer or 'install'} {' '.join(programs)}"


def how_to_allow_namespaces() -> str:
    """Return what makes the kernel let users who are not root have namespaces, which bubblewrap needs."""
    switches = {
        "kernel.apparmor_restrict_unprivileged_userns": "0",
        "kernel.unprivileged_userns_clone": "1",
        "user.max_user_namespaces": "15000",
    }
    closed = [
        f"{name}={wanted}"
        for name, wanted in switches.items()
        if _switch(name) not in (None, wanted) and (wanted != "15000" or _switch(name) == "0")
    ]
    if platform.system() != "Linux" or not closed:
        return "run it outside this container, or in one that may make user namespaces"
    return f"sudo sysctl {' '.join(closed)}"


def _switch(name: str) -> str | None:
    try:
        return Path("/proc/sys", *name.split(".")).read_text().strip()
    except OSError:
        return None
