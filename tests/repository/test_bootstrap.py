"""Making .venv: what a newcomer's machine can do to it. pip is played; `make proof` takes the real one."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
import types
from pathlib import Path

import pytest
from tiny_project import BASE_PYTHON, ROOT, TinyProject, fake_pythons, old_python, real_python

NOOP_STARTS = 6  # nothing to do: make starts Python twice and .venv's once; so many starts of a bare one
GOOD = "made .venv"


class PlayedPip:
    """Takes the place of `bootstrap.step`: makes a .venv of two files, and fails where it is told to."""

    def __init__(self, bootstrap) -> None:
        self.bootstrap, self.commands, self.fails = bootstrap, [], {}

    def __call__(self, name, *command, variables=None):
        words = " ".join(map(str, command))
        self.commands.append(words)
        self.variables = variables
        for sign, outcome in self.fails.items():
            if sign in words:
                if isinstance(outcome, BaseException):
                    raise outcome
                raise self.bootstrap.Refusal(self.bootstrap.complaint(name, outcome))
        if words.endswith("-m venv .venv"):
            python = self.bootstrap.PYTHON
            python.parent.mkdir()
            python.symlink_to(BASE_PYTHON)
            packages = self.bootstrap.VENV / f"lib/python{self.bootstrap.VERSION}/site-packages"
            (packages / "numpy-2.4.dist-info").mkdir(parents=True)
            (packages / "numpy").mkdir()
        return (
            "torch (2.13.0+cpu)\nAvailable versions: 2.13.0+cpu, 2.12.0+cpu"
            if "index versions" in words
            else ""
        )


@pytest.fixture
def bootstrap(tmp_path, monkeypatch):
    """The module, for a project of its own in a folder with spaces, with a pip that is played."""
    spec = importlib.util.spec_from_file_location("bootstrap", ROOT / "course_lib" / "bootstrap.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.PROJECT = tmp_path / "it's nine circles"
    module.PROJECT.mkdir()
    monkeypatch.chdir(module.PROJECT)
    (module.PROJECT / "pyproject.toml").write_text("[project]\n")
    (module.PROJECT / "constraints.txt").write_text("numpy==2.4\ntorch==2.13.0\n")
    monkeypatch.setattr(module, "has_nvidia_gpu", lambda: False)
    monkeypatch.setattr(module, "step", PlayedPip(module))
    return module


def run(bootstrap, capsys, asked_for=False):
    """Return the exit code, what was printed and the one sentence on stderr."""
    code = bootstrap.main(asked_for)
    said = capsys.readouterr()
    if code:
        assert re.fullmatch(r"Set-up stopped: [^\n]+\.\n", said.err) and not re.search(r"\. [A-Z]", said.err)
    else:
        assert said.err == ""
    return code, said.out, said.err


def leftovers(bootstrap):
    names = {path.name for path in bootstrap.PROJECT.glob(".venv*")}
    return sorted(names - {".venv.lock", ".venv.log"})


def is_made(bootstrap):
    return leftovers(bootstrap) == [".venv"] and bootstrap.why_anew() is None


# -- it works ----------------------------------------------------------------------------------------------


def test_made_once(bootstrap, capsys):
    code, said, _ = run(bootstrap, capsys)
    assert code == 0 and "there is none yet" in said and "Ready" in said and is_made(bootstrap)
    assert len(said.splitlines()) <= 6
    commands = list(bootstrap.step.commands)
    assert f"install -c constraints.txt -e {bootstrap.WHAT}" in commands[-2]
    assert run(bootstrap, capsys) == (0, "", "") and run(bootstrap, capsys, asked_for=True) == (0, "", "")
    assert bootstrap.step.commands == commands


def test_every_reason_to_make_it_anew(bootstrap, capsys):
    def say_of_it(**changes):
        bootstrap.MADE.write_text(json.dumps(json.loads(bootstrap.MADE.read_text()) | changes))

    def break_python():
        bootstrap.PYTHON.unlink()
        bootstrap.PYTHON.symlink_to("/nonexistent/python3.11")

    def put_a_file_there():
        shutil.rmtree(bootstrap.VENV)
        bootstrap.VENV.write_text("a file")

    reasons = {
        "pyproject.toml changed": lambda: (bootstrap.PROJECT / "pyproject.toml").write_text("# changed\n"),
        "constraints.txt changed": lambda: (bootstrap.PROJECT / "constraints.txt").write_text("# changed\n"),
        "moved or copied (it was /elsewhere)": lambda: say_of_it(project="/elsewhere"),
        f"its Python became {bootstrap.VERSION} (it was 3.1)": lambda: say_of_it(python="3.1"),
        "packages are gone from it (module numpy, numpy)": lambda: shutil.rmtree(bootstrap.VENV / "lib"),
        "packages are gone from it (module numpy)": lambda: next(bootstrap.VENV.rglob("numpy")).rmdir(),
        "an earlier set-up was interrupted": lambda: bootstrap.MADE.write_text("{}"),
        "was not made by make": lambda: bootstrap.MADE.unlink(),
        "gone or does not start": break_python,
        "is not a folder": put_a_file_there,
        "there is none yet": lambda: shutil.rmtree(bootstrap.VENV),
    }
    run(bootstrap, capsys)
    for reason, damage in reasons.items():
        damage()
        code, said, _ = run(bootstrap, capsys)
        assert code == 0 and reason in said, reason
        assert is_made(bootstrap), reason


def test_a_stamp_of_another_shape_is_not_makes(bootstrap, capsys):
    run(bootstrap, capsys)
    made = json.loads(bootstrap.MADE.read_text())
    for stamp in ({"a": 1}, [1], "x", 0, None, made | {"packages": None}, made | {"sources": ["x"]}):
        bootstrap.MADE.write_text(json.dumps(stamp))
        reason, still_serves = bootstrap.why_anew()
        assert "was not made by make" in reason and still_serves, stamp
    assert run(bootstrap, capsys)[0] == 0 and is_made(bootstrap)


def test_what_a_pull_orphans_is_removed(bootstrap, capsys):
    """Folders with nothing but compiled files go; one with any other file, or empty, stays."""
    stays = ["course_lib/__init__.py", "course_lib/__pycache__/a.pyc", "course_lib/grading/a.py"]
    stays += ["course_lib/grading/__pycache__/a.pyc", "course_lib/mine/deep/notes.txt", "outside/a.pyc"]
    goes = ["course_lib/grading/mutation/__pycache__/a.pyc", "course_lib/old/deep/__pycache__/b.pyc"]
    goes += ["course_lib/mine/old/__pycache__/c.pyc"]
    for name in stays + goes:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()
    Path("course_lib/empty").mkdir()
    assert run(bootstrap, capsys)[0] == 0
    for name in [*stays, "course_lib/empty"]:
        assert Path(name).exists(), name
    for name in goes:
        assert not Path(name).parents[1].exists(), name


def test_another_python_is_a_reason_only_when_asked_for(bootstrap, capsys):
    run(bootstrap, capsys)
    assert bootstrap.why_anew() is None and bootstrap.why_anew(bootstrap.VERSION) is None
    reason, still_serves = bootstrap.why_anew("3.99")
    assert "3.99 was asked for" in reason and still_serves


def test_a_link_to_another_copys_environment_is_used(bootstrap, capsys):
    run(bootstrap, capsys)
    elsewhere = bootstrap.PROJECT.parent / "copy"
    elsewhere.mkdir()
    bootstrap.VENV.rename(elsewhere / ".venv")
    bootstrap.VENV.symlink_to(elsewhere / ".venv", target_is_directory=True)
    made = json.loads(bootstrap.MADE.read_text()) | {"project": str(elsewhere)}
    bootstrap.MADE.write_text(json.dumps(made))
    assert run(bootstrap, capsys) == (0, "", "") and bootstrap.VENV.is_symlink()


# -- it fails, and nothing half-made is left ---------------------------------------------------------------

WHAT_PIP_SAYS = {
    "OSError: [Errno 28] No space left on device": "disk ran full",
    "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed": "PIP_CERT",
    "ProxyError('Cannot connect to proxy.', OSError('Tunnel connection failed: 407'))": "HTTPS_PROXY",
    "NameResolutionError: no name resolution\nNo matching distribution found for x": "connect to the network",
    "ERROR: No matching distribution found for torch<2.14,>=2.11": "found no build of torch<2.14,>=2.11 for",
    "ERROR: Could not install: [Errno 13] Permission denied: '/x'": "may not be written",
    "was not created successfully because ensurepip is not\navailable": "ensurepip",
    "No module named venv": "python3.",
    "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES": "THESE PACKAGES DO NOT MATCH THE HASHES",
    "": "it gave no reason",
}


@pytest.mark.parametrize("has_old_one", [False, True])
def test_a_failure_is_one_sentence_and_leaves_what_was(bootstrap, capsys, has_old_one):
    if has_old_one:
        run(bootstrap, capsys)
        (bootstrap.VENV / "same").touch()
        (bootstrap.PROJECT / "pyproject.toml").write_text("# changed\n")
    outcomes = WHAT_PIP_SAYS | {
        KeyboardInterrupt(): "interrupted; run make again",
        PermissionError(13, "Permission denied", "/x"): "may not be written by this user",
        OSError(28, "No space left on device"): "disk ran full",
    }
    for outcome, fragment in outcomes.items():
        bootstrap.step.fails = {"-e .[lab,dev]": outcome}
        code, _, sentence = run(bootstrap, capsys)
        assert code == (130 if isinstance(outcome, KeyboardInterrupt) else 1), outcome
        assert fragment in sentence, outcome
        assert leftovers(bootstrap) == ([".venv"] if has_old_one else []), outcome
        if has_old_one:
            assert (bootstrap.VENV / "same").exists() and bootstrap.why_anew()[1], outcome
            assert not isinstance(outcome, str) or "back in place" in sentence
    assert "memory" in bootstrap.complaint("pip", "Read timed out", -9)


def test_the_ground_is_looked_at_first(bootstrap, capsys, monkeypatch):
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1_200_000_000))
    code, _, sentence = run(bootstrap, capsys)
    assert code == 1 and "1.2 GB free" in sentence and "about 3 GB" in sentence
    bootstrap.PROJECT = bootstrap.PROJECT.parent / "nine:circles"
    bootstrap.PROJECT.mkdir()
    code, _, sentence = run(bootstrap, capsys)
    assert code == 1 and "rename the folder" in sentence
    assert bootstrap.step.commands == [] and leftovers(bootstrap) == []


def test_killed_then_healed(bootstrap, capsys):
    """Killed in a remake: the old environment comes back; killed right after it: the new one stays."""
    run(bootstrap, capsys)
    (bootstrap.VENV / "same").touch()
    bootstrap.VENV.rename(bootstrap.PREVIOUS)
    bootstrap.VENV.mkdir()
    bootstrap.MADE.write_text("{}")
    code, said, _ = run(bootstrap, capsys)
    assert code == 0 and "is put back" in said and (bootstrap.VENV / "same").exists() and is_made(bootstrap)
    bootstrap.PREVIOUS.mkdir()
    assert run(bootstrap, capsys)[0] == 0 and (bootstrap.VENV / "same").exists() and is_made(bootstrap)


def test_a_file_that_cannot_be_deleted_stops_nobody(bootstrap, capsys, monkeypatch):
    """As on NFS, where a notebook still has a library open; it goes when it can."""
    real = shutil.rmtree
    run(bootstrap, capsys)
    (bootstrap.PROJECT / "pyproject.toml").write_text("# changed\n")
    monkeypatch.setattr(shutil, "rmtree", lambda path, ignore_errors: None)
    code, said, _ = run(bootstrap, capsys)
    assert code == 0 and "Ready" in said and bootstrap.why_anew() is None and not bootstrap.PREVIOUS.exists()
    assert any("discarded" in name for name in leftovers(bootstrap))
    monkeypatch.setattr(shutil, "rmtree", real)
    assert run(bootstrap, capsys) == (0, "", "") and is_made(bootstrap)

    def in_use(path):
        raise PermissionError(13, "in use")

    bootstrap.PREVIOUS.mkdir()  # nor one that cannot even be moved, as on Windows
    monkeypatch.setattr(bootstrap, "remove", in_use)
    assert run(bootstrap, capsys) == (0, "", "")


def test_who_waits_says_so_and_file_systems_without_locks_stop_nobody(bootstrap, capsys, monkeypatch):
    import errno

    for numbers, waits in (([errno.EAGAIN] * 2, True), ([errno.ENOLCK], False), ([errno.EINVAL], False)):
        outcomes = [OSError(number, os.strerror(number)) for number in numbers]

        def lock(file, outcomes=outcomes):
            if outcomes:
                raise outcomes.pop()

        monkeypatch.setattr(bootstrap, "lock", lock)
        monkeypatch.setattr(time, "sleep", lambda seconds: None)
        code, said, _ = run(bootstrap, capsys)
        assert code == 0 and is_made(bootstrap) and said.count("Another make") == waits and not outcomes
        shutil.rmtree(bootstrap.VENV)


def test_windows_locks_too(bootstrap, monkeypatch, tmp_path):
    taken = []
    played = types.SimpleNamespace(LK_NBLCK=2, locking=lambda *order: taken.append(order))
    with (tmp_path / "lock").open("w") as file:
        with monkeypatch.context() as windows:
            windows.setitem(sys.modules, "msvcrt", played)
            windows.setattr(bootstrap.os, "name", "nt")
            bootstrap.lock(file)
        assert taken == [(file.fileno(), 2, 1)]


def test_stopped_by_a_signal_it_clears_up(tmp_path):
    """A polite kill and a closed terminal are like Ctrl-C."""
    project = TinyProject(tmp_path / "tiny")
    log = project.folder / ".venv.log"  # there once the first step runs
    for number in (signal.SIGTERM, signal.SIGHUP):
        process = project.start()
        while not log.exists():
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        process.send_signal(number)
        _, sentence = process.communicate(timeout=60)
        assert process.returncode == 130 and "interrupted; run make again" in sentence, (number, sentence)
        assert "Traceback" not in sentence and not list(project.folder.glob(".venv.[dp]*")), number
        time.sleep(0.5)
        assert not project.venv.exists(), "what the step started would make it anew"
        log.unlink()


def test_a_step_is_logged_and_shown_in_part(tmp_path, monkeypatch, capsys):
    spec = importlib.util.spec_from_file_location("bootstrap", ROOT / "course_lib" / "bootstrap.py")
    bootstrap = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bootstrap)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    for name in ("PIP_PREFIX", "PIP_DRY_RUN", "PIP_REQUIREMENT", "PIP_EDITABLE", "PIP_REPORT"):
        monkeypatch.setenv(name, "/elsewhere")
    monkeypatch.setenv("__PYVENV_LAUNCHER__", "/elsewhere")
    monkeypatch.setenv("PIP_INDEX_URL", "the user's own mirror")
    code = (
        "import os; print('  Downloading torch-2.13.0-cp311.whl (190.2 MB)'); print('chatter');"
        "print('Installing collected packages: a, b'); print(sorted(os.environ.items()))"
    )
    output = bootstrap.step("pip", sys.executable, "-c", code)
    assert output == bootstrap.LOG.read_text() and "chatter" in output
    assert capsys.readouterr().out == "  fetching torch-2.13.0 (190 MB)\n  installing 2 packages\n"
    assert "the user's own mirror" in output and "/elsewhere" not in output and "PIP_USER" in output
    with pytest.raises(bootstrap.Refusal, match="ran full"):
        bootstrap.step("pip", sys.executable, "-c", "raise SystemExit('No space left on device')")


# -- PyTorch -----------------------------------------------------------------------------------------------


def test_without_a_gpu_torch_comes_from_its_cpu_index(bootstrap, capsys, monkeypatch):
    """Taken first; not asked where there is a GPU, on another system, or with TORCH_INDEX empty."""
    monkeypatch.setattr(sys, "platform", "linux")

    def torch_commands(index=bootstrap.CPU_TORCH):
        monkeypatch.setenv("TORCH_INDEX", index)
        bootstrap.step.commands.clear()
        bootstrap.take_cpu_torch()
        return list(bootstrap.step.commands), capsys.readouterr().out

    commands, said = torch_commands()
    assert [words.endswith("torch==2.13.0") for words in commands] == [False, True]
    assert all(f"--index-url {bootstrap.CPU_TORCH}" in words for words in commands)
    assert "--retries 0 --timeout 5" in commands[0] and "--no-deps" in commands[1]
    assert said.count("\n") == 1 and "No NVIDIA GPU" in said and bootstrap.CPU_TORCH in said

    (bootstrap.PROJECT / "constraints.txt").write_text("torch==2.13\n")  # only like one that it has
    commands, said = torch_commands("file:///mine")
    assert len(commands) == 1 and "PyTorch comes from pip's own index, for file:///mine" in said
    (bootstrap.PROJECT / "constraints.txt").write_text("torch==2.13.0\n")
    for sign, number in {"index versions": 1, "--no-deps": 2}.items():
        bootstrap.step.fails = {sign: "ConnectTimeoutError"}
        commands, said = torch_commands()
        assert len(commands) == number and said.splitlines()[-1].startswith("PyTorch comes from pip's own")

    bootstrap.step.fails = {}
    assert torch_commands(index="") == ([], "")
    monkeypatch.setattr(bootstrap, "has_nvidia_gpu", lambda: True)
    assert torch_commands() == ([], "")
    monkeypatch.setattr(bootstrap, "has_nvidia_gpu", lambda: False)
    monkeypatch.setattr(sys, "platform", "darwin")
    assert torch_commands() == ([], "")


def test_torchs_index_is_the_only_one_and_pips_other_settings_stay(bootstrap, monkeypatch, tmp_path):
    """Asked of the real pip, with a pip.conf that looks elsewhere, or nowhere."""
    monkeypatch.setattr(sys, "platform", "linux")
    project = TinyProject(tmp_path / "tiny")
    index = project.put_torch_into(tmp_path / "index", "2.13.0+cpu")
    other = project.put_torch_into(tmp_path / "other", "9.9") / "torch"
    bootstrap.VENV.mkdir()
    monkeypatch.setenv("TORCH_INDEX", index.as_uri())
    bootstrap.take_cpu_torch()
    assert "PIP_CONFIG_FILE" not in bootstrap.step.variables
    conf = tmp_path / "pip.conf"
    own = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    for setting in ("no-index = true", f"find-links = {other}", f"extra-index-url = {other.parent.as_uri()}"):
        conf.write_text(f"[global]\n{setting}\ncert = /the/users/own.pem\n")
        variables = own | bootstrap.step.variables | {"PIP_CONFIG_FILE": str(conf)}
        ask = [*pip, "index", "versions", "torch", "--index-url", index.as_uri()]
        done = subprocess.run(ask, env=variables, capture_output=True, text=True)
        assert "2.13.0" in done.stdout and "9.9" not in done.stdout, (setting, done)
    done = subprocess.run([*pip, "config", "list"], env=variables, capture_output=True, text=True)
    assert "own.pem" in done.stdout


def test_an_nvidia_gpu_is_seen_without_its_driver(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("bootstrap", ROOT / "course_lib" / "bootstrap.py")
    bootstrap = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bootstrap)
    monkeypatch.setenv("PATH", str(tmp_path))
    devices = {"0": ("0x8086", "0x030000"), "1": ("0x10de", "0x040300"), "2": ("0x10de", "0x030200")}
    for number, (maker, kind) in devices.items():
        assert not bootstrap.has_nvidia_gpu(tmp_path), "Intel's graphics and NVIDIA's sound are none"
        (tmp_path / number).mkdir()
        (tmp_path / number / "vendor").write_text(maker + "\n")
        (tmp_path / number / "class").write_text(kind + "\n")
        (tmp_path / f"{number}-hidden").mkdir()  # without the two files: some are not for every user's eyes
    assert bootstrap.has_nvidia_gpu(tmp_path)


# -- which Python: the Makefile ----------------------------------------------------------------------------


@pytest.fixture
def empty(tmp_path):
    """A project whose bootstrap only says that it was called."""
    project = TinyProject(tmp_path / "empty")
    (project.folder / "course_lib" / "bootstrap.py").write_text(
        f"import sys; print({GOOD!r}, *sys.argv[1:])\n"
    )
    return project


def test_the_first_python_that_fits_is_taken(empty, tmp_path):
    """An old one, one that is too new and a shim for a version that is not installed are passed over."""
    for number, version in enumerate([(3, 8, 18), (2, 7, 18), (3, 14, 0)]):
        path = fake_pythons(tmp_path / str(number), python3=old_python(version), python3_12=real_python())
        done = empty.make("venv", PATH=path)
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{GOOD}\n", ""), version
    named_by_the_shell = str(tmp_path / "0" / "python3")
    assert empty.make("venv", PYTHON=named_by_the_shell).stdout == f"{GOOD}\n", "only the first to be tried"
    done = empty.make("venv", f"PYTHON={BASE_PYTHON}")
    assert done.stdout == f"{GOOD} --asked-for\n", "on the command line it is an order"


def test_no_python_fits(empty, tmp_path):
    old, new = old_python((3, 8, 18)), old_python((3, 14, 0))
    cases = {
        "this is Python 3.8.18": {"PATH": fake_pythons(tmp_path / "a", python3=old, python=new)},
        "this is Python 3.14.0": {"PATH": fake_pythons(tmp_path / "b", python3_13=new)},
        "no Python was found": {"PATH": fake_pythons(tmp_path / "c")},
    }
    for fragment, variables in cases.items():
        done = empty.make("lab", **variables)
        lines = [line for line in done.stderr.splitlines() if not line.startswith("make: ***")]
        assert done.returncode and len(lines) == 1 and lines[0].startswith("Set-up stopped: "), done.stderr
        assert fragment in lines[0] and "Python 3.11 to 3.13" in lines[0], fragment
    done = empty.make("lab", f"PYTHON={tmp_path / 'a' / 'python3'}")
    assert done.returncode and "Python 3.8.18" in done.stderr and "PYTHON=/path/to" in done.stderr


def test_the_pythons_that_fit_are_the_same_everywhere():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "requires-python"
    ]
    first, last = re.search(r"not \(3, (\d+)\) <= sys.version_info\[:2\] <= \(3, (\d+)\)", makefile).groups()
    assert wanted == f">=3.{first},<3.{int(last) + 1}"
    assert "{" not in re.search(r"UNFIT = (.*?)\n\n", makefile, re.DOTALL)[1], "an old Python must read it"


@pytest.mark.timing
def test_nothing_to_do_is_fast(bootstrap, capsys):
    """Against a bare Python in turns: on a busy machine a limit in seconds says more about the neighbours."""
    run(bootstrap, capsys)
    project = TinyProject(bootstrap.PROJECT, is_new=False)
    bare, seconds = [], []
    for _ in range(7):
        start = time.perf_counter()
        subprocess.run([BASE_PYTHON, "-c", ""], check=True)
        middle = time.perf_counter()
        done = project.make("venv", f"PYTHON={BASE_PYTHON}")
        bare.append(middle - start)
        seconds.append(time.perf_counter() - middle)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert min(seconds) < NOOP_STARTS * min(bare)


# -- once for real -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_real_make_and_pip(tmp_path):
    """In a hostile shell, with torch from a CPU index; kept when a remake fails; two at once."""
    project = TinyProject(tmp_path / "it's nine circles of matmul")
    index = project.put_torch_into(tmp_path / "index", "2.13.0+cpu")
    (tmp_path / "evil").mkdir()
    (tmp_path / "evil" / "course_lib.py").write_text("raise SystemExit('from PYTHONPATH')")
    evil = {"PYTHONPATH": str(tmp_path / "evil"), "PYTHONHOME": "/nonexistent", "PIP_USER": "1"}
    done = project.make("venv", f"TORCH_INDEX={index.as_uri()}", PIP_TARGET=str(tmp_path / "target"), **evil)
    assert done.returncode == 0 and done.stderr == "" and not (tmp_path / "target").exists(), done
    has_gpu = shutil.which("nvidia-smi")
    assert has_gpu or "PyTorch's CPU build comes from file://" in done.stdout
    assert has_gpu or project.installed("torch") == "2.13.0+cpu"
    assert project.works() and project.leftovers() == []
    assert project.make("venv").stdout == ""

    (project.venv / "same").touch()
    project.need("no-such-package")
    done = project.make("venv", f"TORCH_INDEX={(tmp_path / 'no').as_uri()}")
    assert done.returncode and "no-such-package" in done.stderr and "back in place" in done.stderr
    assert has_gpu or "PyTorch comes from pip's own index" in done.stdout
    assert (project.venv / "same").exists() and project.works() and project.leftovers() == []
    closed = "http://127.0.0.1:9/simple"
    done = project.make("venv", TORCH_INDEX=closed, PIP_INDEX_URL=closed, PIP_RETRIES="1")
    assert "could not be reached" in done.stderr and (project.venv / "same").exists()

    project.need(None)
    (project.folder / "constraints.txt").write_text("# changed\n")
    both = [project.start(), project.start()]
    outputs = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    assert sum("Ready" in out for out, _ in outputs) == 1 and not (project.venv / "same").exists()
    assert project.works() and project.leftovers() == []


@pytest.mark.slow
def test_the_course_itself_is_made(tmp_path):
    """All packages, in a copy of the course: what a learner's first `make` does."""
    copy = tmp_path / "course"
    skip = shutil.ignore_patterns(".venv*", ".git", "__pycache__", ".pytest_cache")
    shutil.copytree(ROOT, copy, ignore=skip)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(["make", "venv"], cwd=copy, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    python = copy / ".venv" / "bin" / "python"
    done = subprocess.run([python, "-m", "course_lib", "doctor"], cwd=copy, capture_output=True, text=True)
    assert done.returncode == 0 and "Everything is ready" in done.stdout, done.stdout
