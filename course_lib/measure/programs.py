"""Programs that do not come with Python and that parts of the course use: compilers, a browser, the sandbox.

Nothing else in the course looks for them. `why_missing("chromium")` says in two words what is not here,
`cure("chromium")` what to type.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from glob import glob
from pathlib import Path

from course_lib.measure import hardware

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
#: Where such a browser lies that is not on the PATH: the system's programs, and what Playwright fetched.
_ELSEWHERE = {
    "linux": (
        "$PLAYWRIGHT_BROWSERS_PATH/chromium-*/*/chrome",
        "~/.cache/ms-playwright/chromium-*/*/chrome",
    ),
    "darwin": (
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
        "~/Library/Caches/ms-playwright/chromium-*/*/*.app/Contents/MacOS/*",
    ),
    "win32": (
        "$PROGRAMFILES/Google/Chrome/Application/chrome.exe",
        "${PROGRAMFILES(X86)}/Microsoft/Edge/Application/msedge.exe",
        "$LOCALAPPDATA/ms-playwright/chromium-*/*/chrome.exe",
    ),
}
#: How programs are installed, by the installer's name.
_INSTALLERS = {
    "apt-get": "sudo apt install",
    "dnf": "sudo dnf install",
    "pacman": "sudo pacman -S",
    "zypper": "sudo zypper install",
    "brew": "brew install",
    "winget": "winget install",
}
#: The Debian name of each program's package; other systems mostly have the same.
PACKAGES = {
    "bubblewrap": "bubblewrap",
    "chromium": "chromium",
    "C compiler": "gcc",
    "C++ compiler": "g++",
    "valgrind": "valgrind",
}
#: Under which names the others stand on the PATH.
_NAMES = {
    "bubblewrap": ("bwrap",),
    "C compiler": ("cc", "gcc", "clang"),
    "C++ compiler": ("c++", "g++", "clang++"),
    "perf": ("perf",),
    "valgrind": ("valgrind",),
}
#: Settings of Linux that forbid namespaces: the value that forbids, and the one that allows.
_NAMESPACE_SWITCHES = {
    "kernel.apparmor_restrict_unprivileged_userns": ("1", "0"),
    "kernel.unprivileged_userns_clone": ("0", "1"),
    "user.max_user_namespaces": ("0", "15000"),
}
_BWRAP_WORDS = ["--ro-bind", "/", "/", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]


def why_missing(program: str) -> str | None:
    """Return the words for a program that cannot be used here ("no chromium"), None if it can."""
    if program != "bubblewrap":
        return None if find(program) else f"no {program}"
    return _tried(find(program)) if sys.platform == "linux" else "no bubblewrap (it is for Linux only)"


def find(program: str) -> str | None:
    """Return the path of a program, None where it is not installed."""
    if program == "chromium":
        return browser()
    return next(filter(None, map(shutil.which, _NAMES[program])), None)


def browser() -> str | None:
    """Return the path of a browser of Chromium's family, None where there is none."""
    places = _ELSEWHERE.get(sys.platform, ())
    elsewhere = (sorted(glob(os.path.expanduser(os.path.expandvars(place)))) for place in places)
    found = [*map(shutil.which, BROWSERS), *(path for paths in elsewhere for path in reversed(paths))]
    return next(filter(None, found), None)


@cache
def _tried(bwrap: str | None) -> str | None:
    if bwrap is None:
        return "no bubblewrap"
    may_all = os.geteuid() == 0
    words = [bwrap, *([] if may_all else ["--unshare-user"]), *_BWRAP_WORDS, "true"]
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
    """Return what to type to get programs (one line; what the kernel forbids is allowed by root)."""
    orders = []
    if "bubblewrap" in programs and shutil.which("bwrap"):
        orders.append(_how_to_allow_namespaces())
    if sys.platform != "linux" or orders:
        programs = tuple(name for name in programs if name != "bubblewrap")
    if programs:
        installer = next((words for name, words in _INSTALLERS.items() if shutil.which(name)), "install")
        orders.append(f"{installer} {' '.join(PACKAGES[name] for name in programs)}")
    return "; ".join(orders)


def _how_to_allow_namespaces() -> str:
    """Return what makes the kernel let users who are not root have namespaces, which bubblewrap needs."""
    closed = [
        f"{name}={value}"
        for name, (forbids, value) in _NAMESPACE_SWITCHES.items()
        if _setting(name) == forbids
    ]
    if closed:
        return f"sudo sysctl {' '.join(closed)}"
    return "run it outside of this container, or in one that allows user namespaces"


def _setting(name: str) -> str:
    return hardware.text_of(Path("/proc/sys", *name.split(".")))
