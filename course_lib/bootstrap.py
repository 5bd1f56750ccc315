"""Makes the course's Python environment, .venv, when it is missing or out of date; every `make` runs this.

    python course_lib/bootstrap.py [--asked-for]    --asked-for: .venv must be of this very Python

An environment cannot be moved, so a good old one steps aside to .venv.previous, the new one is made in its
place, and should that fail the old one comes back. The file made.json in .venv says what it was made from:
empty when the making begins, filled when it ends. Nothing but the standard library is there yet.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

PROJECT = Path(__file__).resolve().parents[1]
WHAT = ".[lab,dev]"
SOURCES = ("pyproject.toml", "constraints.txt")
VERSION = "{}.{}".format(*sys.version_info)
#: In the project, where all of this runs.
VENV, PREVIOUS, LOG = Path(".venv"), Path(".venv.previous"), Path(".venv.log")
DISCARDED = ".venv.discarded-{}"  # being deleted, or with a file in it that cannot be
MADE = VENV / "made.json"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
NEEDED_GB, WORTH_SAYING_MB, HEARTBEAT_S = 3, 20, 30
CPU_TORCH = "https://download.pytorch.org/whl/cpu"  # a tenth of what PyPI's build for Linux brings with it
#: Settings of the user's shell that would send packages elsewhere or bring foreign code in.
DROPPED = (
    "PYTHON(PATH|HOME|STARTUP|SAFEPATH)|VIRTUAL_ENV|__PYVENV_LAUNCHER__|"
    "PIP_(TARGET|PREFIX|ROOT|PYTHON|NO_DEPS|QUIET|DRY_RUN|REQUIREMENT|EDITABLE|REPORT)"
)
SET = {
    "PIP_USER": "0",  # also overrides 'user = true' in pip.conf, which no virtual environment accepts
    "PIP_NO_INPUT": "1",  # a question nobody can see would hang for ever
    "PIP_PROGRESS_BAR": "off",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PYTHONNOUSERSITE": "1",
    "PYTHONUNBUFFERED": "1",
}
#: Signs in what venv, pip or the system says, most telling first, and the sentence for each.
SIGNS = {
    r"No space left|Errno 28\]|not enough space on the disk|[Qq]uota exceeded": "the disk ran full while "
    "packages were installed into {project} (pip also unpacks in {temporary}); free about 3 GB, or 9 GB if "
    "pip takes PyTorch's GPU build (README, Trouble), and try again",
    r"CERTIFICATE_VERIFY_FAILED|SSLError|ProxyError|Tunnel connection failed|407 Proxy": "the way to the "
    "package index is barred, as behind a company proxy; set HTTPS_PROXY to its address, or PIP_CERT to your "
    "organisation's certificate file, and try again ({log} says more)",
    r"NewConnectionError|[Nn]ame.?[Rr]esolution|getaddrinfo failed|Network is unreachable|[Tt]imeoutError|"
    r"Read timed out|ConnectionResetError|IncompleteRead|Connection refused|Remote end closed": "the package "
    "index could not be reached; connect to the network (or set HTTPS_PROXY, if you are behind a proxy) and "
    "try again ({log} names the address)",
    r"No matching distribution found for (?P<package>[^\s(]+)": "pip found no build of {package} for "
    "{python} where it is set up to look; connect to the network or mend pip's index settings ('pip config "
    "list' shows them), and try again ({log} says more)",
    r"Errno (13|30)\]|Permission denied|WinError 5\]|Access is denied": "a file or folder may not be written "
    "by this user: {reason}; make the course's folder your own and try again",
    r"ensurepip is not\s+available|No module named '?(ensurepip|venv)": "{python} came without the ensurepip "
    "module, which making .venv needs; install it (Debian, Ubuntu: apt install python{version}-venv) or name "
    "another Python: make lab PYTHON=/path/to/python3",
    "": "{step} did not end well ({reason}); {log} holds all that it said",
}


class Refusal(Exception):
    """Set-up cannot go on; the message is the sentence that says why."""


def main(asked_for: bool) -> int:
    """See to it that .venv is sound; return 0, or after one sentence on stderr 1 (interrupted: 130)."""
    wanted = VERSION if asked_for else None
    os.chdir(PROJECT)
    sys.stdout.reconfigure(line_buffering=True)
    code = 1
    try:
        if why_anew(wanted):
            with in_turn():
                ensure(wanted)
        elif os.path.lexists(PREVIOUS) or any(Path().glob(DISCARDED.format("*"))):
            with contextlib.suppress(OSError), in_turn():  # clearing up is no reason to fail
                ensure(wanted)
        return 0
    except KeyboardInterrupt:
        sentence, code = "interrupted; run make again and it begins afresh", 130
    except Refusal as problem:
        sentence = str(problem)
    except OSError as problem:
        sentence = complaint("a step", str(problem))
    print(f"Set-up stopped: {sentence}.", file=sys.stderr)
    return code


# -- is it sound? ------------------------------------------------------------------------------------------


def why_anew(wanted: str | None = None) -> tuple[str, bool] | None:
    """Return why .venv must be made anew and whether the present one still serves; None when it is sound."""
    if not VENV.is_dir():
        return (".venv is not a folder" if os.path.lexists(VENV) else "there is none yet"), False
    ask = [PYTHON, "-I", "-S", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    try:
        version = subprocess.run(ask, capture_output=True, text=True, timeout=60, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return "the Python it was made with is gone or does not start", False
    try:
        made = json.loads(MADE.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        made = None
    if made == {}:
        return "an earlier set-up was interrupted", False
    present = facts(version)
    if not isinstance(made, dict) or any(type(made.get(name)) is not type(present[name]) for name in present):
        return "the present one was not made by make", True
    if made["project"] != present["project"]:
        return f"the course's folder was moved or copied (it was {made['project']})", False
    if made["python"] != version:
        return f"its Python became {version} (it was {made['python']})", False
    if wanted not in (None, version):
        return f"Python {wanted} was asked for (it has {version})", True
    changed = [name for name in SOURCES if made["sources"].get(name) != present["sources"][name]]
    return (f"{' and '.join(changed)} changed", True) if changed else None


def facts(version: str) -> dict:
    """Return what is kept of a finished .venv: where it was made, and from what."""
    return {
        "project": str(VENV.resolve().parent),  # a link to another copy's .venv is welcome
        "python": version,
        "sources": {name: hashlib.sha256(Path(name).read_bytes()).hexdigest() for name in SOURCES},
    }


# -- making it ---------------------------------------------------------------------------------------------


def ensure(wanted: str | None) -> None:
    """Put right what an earlier run left, then make .venv if it still needs making."""
    for left in Path().glob(DISCARDED.format("*")):
        shutil.rmtree(left, ignore_errors=True)
    if os.path.lexists(PREVIOUS):
        reason = why_anew()
        if reason is None or reason[1]:
            remove(PREVIOUS)  # stopped after the new one was finished
        else:
            print("An earlier set-up was interrupted; the .venv from before it is put back.")
            remove(VENV)
            PREVIOUS.rename(VENV)
    reason = why_anew(wanted)
    if reason is None:
        return
    check_ground()
    print(f"Making .venv with Python {sys.version.split()[0]}: {reason[0]}.")
    begun = time.monotonic()
    if reason[1]:
        VENV.rename(PREVIOUS)
    try:
        remove(VENV)
        make()
    except BaseException as problem:
        remove(VENV)
        if not os.path.lexists(PREVIOUS):
            raise
        PREVIOUS.rename(VENV)
        if not isinstance(problem, Refusal):
            raise
        back = f"the .venv from before is back in place ({PYTHON} -m course_lib lab still opens the course)"
        raise Refusal(f"{problem} – {back}") from None
    with contextlib.suppress(OSError):  # the new one stands
        remove(PREVIOUS)
    print(f"Ready: .venv was made in {span(begun)}.")


def check_ground() -> None:
    """Refuse what can only end badly."""
    if os.pathsep in str(PROJECT):
        raise Refusal(
            f"the course's folder has a '{os.pathsep}' in its name ({PROJECT}), which no Python environment "
            "can live with; rename the folder and try again"
        )
    free = shutil.disk_usage(PROJECT).free / 1e9
    if free < NEEDED_GB:
        raise Refusal(
            f"the disk of {PROJECT} has {free:.1f} GB free and the course's packages need about {NEEDED_GB} "
            "GB; free some space and try again"
        )


def make() -> None:
    """Make .venv where there is none; the lines are for a reader who waits."""
    made = facts(VERSION)  # taken before: a change while pip works counts as a change
    VENV.mkdir()
    MADE.write_text("{}", encoding="utf-8")
    LOG.unlink(missing_ok=True)
    # The base Python, for the running one may itself live in the .venv that stepped aside.
    step("python -m venv", getattr(sys, "_base_executable", None) or sys.executable, "-m", "venv", ".venv")
    packages = Path("constraints.txt").read_text(encoding="utf-8").count("==")
    print(f"About {packages} packages, 0.5 GB to fetch; usually 2 to 6 minutes, and only this once.")
    take_cpu_torch()
    step("pip", PYTHON, "-m", "pip", "install", "-c", "constraints.txt", "-e", WHAT)
    step("the first import of course_lib", PYTHON, "-c", "import course_lib")
    whole = MADE.with_suffix(".new")  # then made.json is never half-written
    whole.write_text(json.dumps(made, indent=1), encoding="utf-8")
    whole.replace(MADE)


def take_cpu_torch() -> None:
    """On Linux without an NVIDIA GPU take PyTorch's CPU build; else pip finds its own."""
    index = os.environ.get("TORCH_INDEX", CPU_TORCH)
    torch = re.search(r"^torch==([\d.]+)$", Path("constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    if not index or not torch or sys.platform != "linux" or shutil.which("nvidia-smi"):
        return
    pip, there = (PYTHON, "-m", "pip"), ("--index-url", index)
    # A proxy or a certificate in pip.conf must stay; its other places for packages must not, but pip passes
    # over empty values: so the same index once more, and a folder with no packages in it.
    only_there = {"PIP_EXTRA_INDEX_URL": index, "PIP_FIND_LINKS": str(VENV), "PIP_NO_INDEX": "0"}
    try:
        quickly = ("--retries", "0", "--timeout", "5")
        offered = step("pip", *pip, "index", "versions", "torch", *there, *quickly, variables=only_there)
        if torch[1] not in re.findall(r"\d[\d.]*\d", offered):
            raise Refusal(f"{torch[0]} is not there")
        print(f"No NVIDIA GPU: PyTorch's CPU build comes from {index} (TORCH_INDEX= switches that off).")
        step("pip", *pip, "install", "--no-deps", *there, torch[0], variables=only_there)
    except Refusal:
        print(f"PyTorch comes from pip's own index, for {index} cannot be reached or lacks {torch[0]}.")


def step(name: str, *command: str | Path, variables: dict[str, str] | None = None) -> str:
    """Run ``command``: all it says goes to the log and is returned, the telling lines to the screen."""
    own = {name: value for name, value in os.environ.items() if not re.fullmatch(DROPPED, name)}
    child = subprocess.Popen(
        command, env=own | SET | (variables or {}), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, encoding="utf-8", errors="replace", start_new_session=True,
    )  # fmt: skip
    output, is_over = [], threading.Event()
    threading.Thread(target=show_life, args=(is_over,), daemon=True).start()
    try:
        with LOG.open("a", encoding="utf-8") as log:
            for line in child.stdout or ():
                log.write(line)
                output.append(line)
                report(line)
        code = child.wait()
    finally:
        is_over.set()
        if child.returncode is None and os.name == "posix":
            os.killpg(child.pid, signal.SIGKILL)  # what it started would go on filling .venv
        child.kill()
        child.wait()
    if code:
        raise Refusal(complaint(name, "".join(output), code))
    return "".join(output)


def show_life(is_over: threading.Event) -> None:
    """Say now and then that work goes on."""
    begun = time.monotonic()
    while not is_over.wait(HEARTBEAT_S):
        print(f"  still at work ({span(begun)})")


def span(begun: float) -> str:
    """Return the time since ``begun`` in words."""
    minutes, seconds = divmod(round(time.monotonic() - begun), 60)
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


def report(line: str) -> None:
    """Show what of pip's output tells a waiting user where it is."""
    fetched = re.match(r"\s*Downloading (\S+) \(([\d.]+) ([MG])B\)", line)
    if fetched and (size := float(fetched[2]) * (1000 if fetched[3] == "G" else 1)) >= WORTH_SAYING_MB:
        print(f"  fetching {'-'.join(Path(fetched[1]).name.split('-')[:2])} ({size:.0f} MB)")
    elif line.startswith("Installing collected packages"):
        print(f"  installing {line.count(',') + 1} packages")


def complaint(step: str, output: str, code: int = 1) -> str:
    """Say in one sentence why a step ("pip") failed after printing ``output``."""
    if code in (-9, 137):
        return f"{step} was killed, most likely for want of memory; close other programs and try again"
    lines = [line for line in output.splitlines() if re.search("ERROR|[Ee]rror|Errno", line)] or [
        "it gave no reason"
    ]
    sign, found = next((sign, found) for sign in SIGNS if (found := re.search(sign, output)))
    return SIGNS[sign].format(
        step=step,
        reason=lines[-1].removeprefix("ERROR:").strip(),
        log=PROJECT / LOG,
        project=PROJECT,
        python=f"Python {sys.version.split()[0]} ({sys.executable})",
        temporary=tempfile.gettempdir(),
        version=VERSION,
        **found.groupdict(),
    )


def remove(path: Path) -> None:
    """Delete a folder, a file or a link, if it is there; a folder's name is free even if some file stays."""
    if path.is_dir() and not path.is_symlink():
        aside = path.rename(DISCARDED.format(time.time_ns()))
        shutil.rmtree(aside, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def in_turn() -> Iterator[None]:
    """Wait until no other make works on .venv, and keep others out, where the file system knows locks."""
    busy, waits = (BlockingIOError if os.name == "posix" else PermissionError), False
    with open(".venv.lock", "a", encoding="utf-8") as file:
        while True:
            try:
                lock(file)
            except busy:
                if not waits:
                    print("Another make is preparing .venv; waiting for it to finish.")
                waits = True
                time.sleep(0.5)
                continue
            except OSError:
                pass  # a file system without locks
            break
        yield


def lock(file: IO) -> None:
    """Lock an open file until it is closed; OSError if another process has it locked."""
    if os.name == "posix":
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    else:
        import msvcrt

        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)


if __name__ == "__main__":
    # A polite kill or a closed terminal (not under nohup) cleans up like Ctrl-C does.
    for polite in {"SIGTERM", "SIGHUP"} & set(dir(signal)):
        if signal.getsignal(getattr(signal, polite)) is signal.SIG_DFL:
            signal.signal(getattr(signal, polite), signal.default_int_handler)
    sys.exit(main(asked_for="--asked-for" in sys.argv))
