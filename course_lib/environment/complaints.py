"""What went wrong while .venv was made, as one sentence: what, got, wanted, how to fix."""

from __future__ import annotations

import errno
import platform
import re
import sys
from pathlib import Path

LOG = ".venv.log"

#: Signs in pip's output, most telling first; each leads to the sentence of the same name below.
SIGNS = (
    ("full", r"No space left on device|\[Errno 28\]|not enough space on the disk|Disk quota exceeded"),
    ("certificate", r"CERTIFICATE_VERIFY_FAILED|SSLError"),
    ("proxy", r"ProxyError|Tunnel connection failed|407 Proxy Authentication"),
    (
        "network",
        r"NewConnectionError|NameResolutionError|ConnectTimeoutError|Network is unreachable|ReadTimeoutError"
        r"|Read timed out|getaddrinfo failed|name resolution|ConnectionResetError|IncompleteRead"
        r"|Connection refused|Remote end closed connection",
    ),
    ("nothing", r"No matching distribution found for (?P<package>[^\s(]+).*"),
    ("forbidden", r"\[Errno 13\]|Permission denied|\[WinError 5\]|Access is denied"),
    ("ensurepip", r"ensurepip is not\s+available|No module named ensurepip"),
)


class Refusal(Exception):
    """Set-up cannot go on; the message is the whole sentence."""


def about_step(step: str, code: int, output: str, project: Path) -> Refusal:
    """Say in one sentence why ``step`` ("pip") ended with exit ``code`` after printing ``output``."""
    if code in (-9, 137):
        return Refusal(
            f"{step} was killed, most likely for want of memory; close other programs and try again"
        )
    for name, sign in SIGNS:
        found = re.search(sign, output)
        if found:
            return _sentence(name, found, project)
    errors = [line for line in output.splitlines() if "ERROR" in line or "error:" in line] or [""]
    words = errors[-1].replace("ERROR:", "").strip() or "it gave no reason"
    return Refusal(f"{step} ended with exit code {code} ({words}); {_log(project)} holds all it said")


def _sentence(name: str, found: re.Match[str], project: Path) -> Refusal:
    import tempfile

    system = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    package = found.groupdict().get("package", "")
    sentences = {
        "full": f"the disk ran full while packages were installed into {project} (pip also unpacks in "
        f"{tempfile.gettempdir()}); free about 3 GB, or on Linux about 9 GB if pip takes PyTorch's GPU build "
        "(README, Trouble), and try again",
        "certificate": "the package index answered with a certificate that pip does not trust, as behind a "
        "company proxy; point the variable PIP_CERT to your organisation's certificate file "
        f"({_log(project)} names the address) and try again",
        "proxy": "the proxy refused the connection to the package index; set HTTPS_PROXY to the right "
        f"address and try again ({_log(project)} says more)",
        "network": "the package index could not be reached; connect to the network (or set HTTPS_PROXY, "
        f"if you are behind a proxy) and try again ({_log(project)} names the address)",
        "nothing": f"pip found no build of {package} for {system} where it is set up to look; connect to "
        f"the network or mend pip's index settings ('pip config list' shows them), and try again "
        f"({_log(project)} says more)",
        "forbidden": f"a file or folder may not be written by this user ({_log(project)} names it); make the "
        "course's folder your own and try again",
        "ensurepip": no_ensurepip(),
    }
    return Refusal(sentences[name])


def no_ensurepip() -> str:
    """Return the sentence for a Python without what `python -m venv` needs."""
    version = "{}.{}".format(*sys.version_info)
    return (
        f"Python {platform.python_version()} ({sys.executable}) came without the ensurepip module, which "
        f"making .venv needs; install it (Debian, Ubuntu: apt install python{version}-venv) or name another "
        "Python: make lab PYTHON=/path/to/python3"
    )


def about_system(problem: OSError, project: Path) -> Refusal:
    """Say in one sentence what the operating system refused."""
    if problem.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", -1)):
        return Refusal(f"the disk is full ({project}); free about 3 GB and try again")
    if problem.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        where = problem.filename or project
        return Refusal(
            f"{where} may not be written by this user; make the course's folder your own "
            "(or copy it into your home folder) and try again"
        )
    return Refusal(f"the system refused a step ({problem}); mend that and try again")


def _log(project: Path) -> Path:
    return project / LOG
