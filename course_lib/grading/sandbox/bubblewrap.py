"""The sandbox: what a process that runs an answer can see and use.

It is bubblewrap (the unprivileged container tool of Flatpak): own namespaces for processes, network and file
systems; a file system that shows Python, the library without its task declarations, and nothing else;
everything read-only but one small memory-backed /tmp. No seed, solution, grade book or other student exists
in there. Limits hold inside (memory, CPU time, processes, file size), and the judge outside kills what lives
on or makes many files.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import platform
import secrets
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COURSE = Path(__file__).resolve().parents[3]  # the folder that course_lib is in
LIBRARY = COURSE / "course_lib"
#: What tells how tasks are solved.
TASKS = LIBRARY / "grading" / "tasks"
#: What an older course told, which an upgrade in place leaves behind as compiled files.
LEFT_BEHIND = LIBRARY / "grading" / "mutation"

HOW_TO_GET_IT = (
    "install bubblewrap (Debian, Ubuntu: sudo apt install bubblewrap; Fedora: sudo dnf install bubblewrap), "
    "or grade on a Linux machine; --unsafe-no-sandbox runs the answers with all of your own rights instead"
)
#: The environment variables that set the number of threads of numerical libraries.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
#: Folders in /usr that hold no programs; nbgrader's exchange is in one of them.
SHARED = (Path("/usr/local/share"), Path("/usr/src"), Path("/usr/local/src"))
#: A user of its own for each sandbox that root starts: limits on processes count by user. Chosen at random:
#: several graders may run at once and know nothing of each other.
FIRST_USER, USERS = 210_000, 1_000_000


class NoSandbox(RuntimeError):
    """Answers cannot be run apart on this machine; the message says why and what to do."""


@dataclass(frozen=True)
class AnswerLimits:
    """What an answer may use. `call_s` is CPU time of one call; sleeping, it may take three times as long."""

    call_s: float = 10.0
    task_s: float = 180.0  # wall time of all calls of a task
    memory_mb: int = 2048
    disk_mb: int = 64
    files: int = 1000  # links, folders and pipes, too: each takes memory of the system's own
    processes: int = 32

    def inside(self, unsafe: bool) -> dict[str, int]:
        """Return the limits that the process sets on itself before it has seen any answer."""
        # without a sandbox the grader's own processes would count
        processes = {} if unsafe else {"RLIMIT_NPROC": self.processes + _others_of_this_user()}
        return {
            **processes,
            "RLIMIT_AS": 2 * self.memory_mb * 2**20,  # addresses; the judge watches the memory in use
            "RLIMIT_CPU": int(2 * self.task_s),
            "RLIMIT_FSIZE": self.disk_mb * 2**20,
            "RLIMIT_NOFILE": 256,
            "RLIMIT_CORE": 0,
        }


@dataclass(frozen=True)
class Sandbox:
    """How to start a Python process for an answer. `private` are folders that must not be seen in it."""

    private: tuple[Path, ...] = ()
    limits: AnswerLimits = AnswerLimits()
    unsafe: bool = False

    @contextlib.contextmanager
    def launch(self, code: str, *kept: int) -> Iterator[dict[str, Any]]:
        """Yield what `subprocess` needs to run Python `code` in a new sandbox; it keeps the descriptors."""
        python = [sys.executable, "-I", "-B", "-X", "utf8", "-c", code]
        if self.unsafe:
            yield {"args": python, "env": self.environment()}
            return
        words = [_bubblewrap(), *self._options()]
        with _filter() as calls:
            words += ["--seccomp", str(calls), *_as_another_user(), *python]
            yield {"args": words, "env": self.environment(), "pass_fds": (calls, *kept)}

    def environment(self) -> dict[str, str]:
        """Return the environment of the process: nothing of the grader's own."""
        kept = {} if sys.platform != "win32" else {"SYSTEMROOT": os.environ.get("SYSTEMROOT", "")}
        one_thread = dict.fromkeys(THREADS, "1")
        place = {"HOME": "/tmp", "TMPDIR": "/tmp", "NUMBA_CACHE_DIR": "/tmp/numba", "MPLCONFIGDIR": "/tmp"}
        if self.unsafe:
            place = {name: _scratch() for name in place}
        return {**kept, **one_thread, **place, "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}

    def check(self) -> None:
        """Start an empty sandbox; NoSandbox says why if that fails."""
        if self.unsafe:
            return
        with self.launch("print('inside')") as how:
            tried = subprocess.run(**how, capture_output=True, text=True, timeout=60, check=False)
        if tried.stdout.strip() != "inside":
            why = (tried.stderr.strip().splitlines() or ["it ended without a word"])[-1]
            raise NoSandbox(f"bubblewrap cannot make a sandbox here ({why}); {HOW_TO_GET_IT}.")

    def _options(self) -> list[str]:
        size = str(self.limits.disk_mb * 2**20)
        words = [*_namespaces(), "--die-with-parent", "--new-session", "--as-pid-1", "--clearenv"]
        for name, value in self.environment().items():
            words += ["--setenv", name, value]
        words += ["--perms", "1777", "--size", size, "--tmpfs", "/tmp"]
        tree = _ShownFolders()
        shown = [*_system(), *((home, home) for home in _python_homes())]
        for source, path in shown:
            tree.show(source, path)
        for path in filter(Path.is_dir, SHARED):
            tree.hide(path)
        hidden = [path for path in self._hidden() if _lies_in(path, [one for _, one in shown])]
        for path in hidden:
            tree.hide(path)
        for home in (home for home in _python_homes() if _lies_in(home, hidden)):
            tree.show(home, home)
        tree.show(LIBRARY, LIBRARY)
        for folder in filter(Path.is_dir, (TASKS, LEFT_BEHIND)):
            tree.hide(folder)
        words += [*tree.words, "--proc", "/proc", "--dev", "/dev"]
        for path in ("/dev", *map(str, tree.hidden), "/"):
            words += ["--remount-ro", path]
        return [*words, "--chdir", "/tmp"]

    def _hidden(self) -> list[Path]:
        """Return the folders that must not be seen, should they lie in one that is."""
        course = [COURSE] if (COURSE / "solutions").is_dir() else []
        return [*course, *(path.resolve() for path in self.private)]


class _ShownFolders:
    """Bubblewrap's words for folders that are shown read-only, and for empty ones in the place of others."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.hidden: list[Path] = []
        self._made: set[Path] = {Path("/tmp")}

    def show(self, source: Path, path: Path) -> None:
        """Show a folder or file of the machine."""
        self._make_parents(path)
        self.words += ["--ro-bind", str(source), str(path)]

    def hide(self, path: Path) -> None:
        """Put an empty folder in the place of one; what is in it has to be shown anew."""
        self._make_parents(path)
        self.words += ["--perms", "0755", "--tmpfs", str(path)]
        self._made = {one for one in self._made if not one.is_relative_to(path)}
        self.hidden.append(path)

    def _make_parents(self, path: Path) -> None:
        for parent in reversed(path.parents[:-1]):
            if parent not in self._made:
                self._made.add(parent)
                self.words += ["--perms", "0755", "--dir", str(parent)]


@contextlib.contextmanager
def _filter() -> Iterator[int]:
    """Yield a file descriptor from which bubblewrap reads the filter for system calls."""
    program = filter_program()
    if program is None:
        raise NoSandbox(f"The sandbox knows x86_64 and aarch64, not {platform.machine()}: {HOW_TO_GET_IT}.")
    reader, writer = os.pipe()
    try:
        os.write(writer, program)  # some hundred bytes: a pipe takes them at once
        os.close(writer)
        yield reader
    finally:
        os.close(reader)


@functools.cache
def _bubblewrap() -> str:
    """Return the path of bwrap; NoSandbox where it is missing or too old."""
    found = shutil.which("bwrap") if sys.platform == "linux" else None
    if found is None:
        raise NoSandbox(f"Grading needs bubblewrap (the program bwrap), which is not here: {HOW_TO_GET_IT}.")
    helped = subprocess.run([found, "--help"], capture_output=True, text=True, check=False)
    if "--size" not in helped.stdout + helped.stderr:
        raise NoSandbox(f"bubblewrap is too old here (it knows no --size, from 0.7 on): {HOW_TO_GET_IT}.")
    return found


def _namespaces() -> list[str]:
    own = ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    if not _may_become_anybody():
        return ["--unshare-user", *own, "--cap-drop", "ALL"]
    # No user namespace: inside one, the user is still root to Linux, which exempts root from limits.
    # The three capabilities let setpriv become another user and give them up.
    kept = [word for name in ("SETUID", "SETGID", "SETPCAP") for word in ("--cap-add", f"CAP_{name}")]
    return [*own, "--cap-drop", "ALL", *kept]


def _may_become_anybody() -> bool:
    """Whether the grader is root and may take our users' ids: in some containers few ids exist."""
    if os.geteuid() != 0:
        return False
    with contextlib.suppress(OSError, ValueError):
        ranges = [
            tuple(map(int, line.split())) for line in Path("/proc/self/uid_map").read_text().splitlines()
        ]
        return any(first <= FIRST_USER and first + size >= FIRST_USER + USERS for first, _, size in ranges)
    return True


def _as_another_user() -> list[str]:
    """Return the words that leave root behind, if the grader is root."""
    if not _may_become_anybody():
        return []
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise NoSandbox(
            "Grading as root needs setpriv (of util-linux): install it, or grade as another user."
        )
    user = FIRST_USER + secrets.randbelow(USERS)
    none = [f"--{kind}=-all" for kind in ("bounding-set", "inh-caps", "ambient-caps")]
    return [setpriv, f"--reuid={user}", f"--regid={user}", "--clear-groups", *none, "--no-new-privs"]


def _system() -> list[tuple[Path, Path]]:
    """Return what of the system is shown: programs and libraries, and how the linker finds them."""
    top = [Path(name) for name in ("/usr", "/bin", "/lib", "/lib32", "/lib64", "/nix/store")]
    etc = [Path("/etc") / name for name in ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives")]
    return [(path.resolve(), path) for path in (*top, *etc) if path.exists()]


def _python_homes() -> list[Path]:
    """Return the folders that hold this Python and its packages."""
    homes = {Path(home).resolve() for home in (sys.prefix, sys.base_prefix, sys.exec_prefix)}
    homes.add(Path(sys.executable).parent.parent)
    outside = [home for home in homes if not _lies_in(home, [Path("/usr")])]
    if any(len(home.parts) < 2 or home == Path.home() for home in outside):
        raise NoSandbox(f"Python is in {sys.prefix}, which would show everything: use a virtual environment.")
    return sorted(outside)


def _lies_in(path: Path, folders: list[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def _others_of_this_user() -> int:
    """Return how many threads count already: before Linux 5.14 the limit counts all of a user's."""
    version = platform.release().split("-")[0].split(".")[:2]
    if sys.platform != "linux" or os.geteuid() == 0 or [*map(int, version)] >= [5, 14]:
        return 0
    import psutil

    known = (one.info for one in psutil.process_iter(["uids", "num_threads"]))
    return sum(one["num_threads"] or 1 for one in known if one["uids"] and one["uids"].real == os.getuid())


@functools.cache
def _scratch() -> str:
    """Return a folder for what unsafe answers write; it is removed at the end of this process."""
    folder = tempfile.mkdtemp(prefix="nine-circles-answers-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


# --- the filter of system calls -----------------------------------------------------------------------------
# An answer calculates, and needs no processes, keys or hidden memory. Namespaces do not separate everything:
# the filter refuses what would reach around them: new processes (threads are allowed), key rings, shared
# memory, files and messages that no limit sees, more namespaces, mounts, tracing, the newest interfaces of
# Linux, and questions and orders about the pages of files in memory: there, sandboxes could leave traces.
# It is a program for Linux's packet filter as seccomp(2) describes it; bubblewrap installs it last of all.

EPERM, ENOSYS = 1, 38
ALLOW, ERRNO, KILL = 0x7FFF0000, 0x00050000, 0x80000000
LOAD, EQUAL, AT_LEAST, HAS_BITS, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # BPF_LD|W|ABS, BPF_JMP|…, BPF_RET
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data
CLONE_THREAD = 0x00010000
X32 = 0x40000000  # the numbers of x86's third interface, which repeats all calls


def _numbers(table: str) -> dict[str, int]:
    words = table.split()
    return dict(zip(words[::2], map(int, words[1::2]), strict=True))


#: machine -> (its mark, number of clone, numbers of the calls that are refused)
MACHINES = {
    "x86_64": (
        0xC000003E,
        56,
        _numbers("""
            fork 57  vfork 58  ptrace 101  process_vm_readv 310  process_vm_writev 311  add_key 248
            request_key 249  keyctl 250  kcmp 312  pidfd_getfd 438  shmget 29  shmat 30  semget 64
            msgget 68  memfd_create 319  memfd_secret 447  unshare 272  setns 308  mount 165
            umount2 166  pivot_root 155  chroot 161  open_tree 428  move_mount 429  fsopen 430
            mount_setattr 442  name_to_handle_at 303  open_by_handle_at 304  bpf 321
            perf_event_open 298  userfaultfd 323  io_uring_setup 425  io_uring_enter 426
            io_uring_register 427  symlink 88  symlinkat 266  link 86  linkat 265  mknod 133  mknodat 259
            socket 41  socketpair 53  mq_open 240  inotify_init 253  inotify_init1 294  fanotify_init 300
            mincore 27  cachestat 451  readahead 187  fadvise64 221  preadv2 327
        """),
    ),
    "aarch64": (
        0xC00000B7,
        220,
        _numbers("""
            ptrace 117  process_vm_readv 270  process_vm_writev 271  add_key 217  request_key 218
            keyctl 219  kcmp 272  pidfd_getfd 438  shmget 194  shmat 196  semget 190  msgget 186
            memfd_create 279  memfd_secret 447  unshare 97  setns 268  mount 40  umount2 39
            pivot_root 41  chroot 51  open_tree 428  move_mount 429  fsopen 430  mount_setattr 442
            name_to_handle_at 264  open_by_handle_at 265  bpf 280  perf_event_open 241  userfaultfd 282
            io_uring_setup 425  io_uring_enter 426  io_uring_register 427  symlinkat 36  linkat 37
            mknodat 33  socket 198  socketpair 199  mq_open 180  inotify_init1 26  fanotify_init 262
            mincore 232  cachestat 451  readahead 213  fadvise64 223  preadv2 286
        """),
    ),
}
CLONE3 = 435  # on every machine


def filter_program(machine: str = "") -> bytes | None:
    """Return the filter for a machine (default: this one), None if its calls are not known here."""
    known = MACHINES.get(machine or platform.machine())
    if known is None:
        return None
    mark, clone, refused = known
    steps = [_step(LOAD, ARCHITECTURE), _step(EQUAL, mark, 1, 0), _step(RETURN, KILL), _step(LOAD, NUMBER)]
    steps += [_step(AT_LEAST, X32, 0, 1), _step(RETURN, ERRNO | EPERM)]
    for number in sorted(refused.values()):
        steps += _if_equal(number, ERRNO | EPERM)
    steps += _if_equal(CLONE3, ERRNO | ENOSYS)  # its flags are out of sight; the C library then takes clone
    steps += [_step(EQUAL, clone, 0, 3), _step(LOAD, FIRST_ARGUMENT)]
    steps += [_step(HAS_BITS, CLONE_THREAD, 1, 0), _step(RETURN, ERRNO | EPERM)]
    return b"".join([*steps, _step(RETURN, ALLOW)])


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value)


def _if_equal(value: int, result: int) -> list[bytes]:
    return [_step(EQUAL, value, 0, 1), _step(RETURN, result)]
