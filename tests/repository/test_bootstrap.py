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

import pytest
from tiny_project import BASE_PYTHON, ROOT, TinyProject, fake_pythons, old_python, real_python

GOOD = "made .venv"


class PlayedPip:
    """Takes the place of `bootstrap.step`: makes a .venv of one file, and fails where it is told to."""

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
        return (
            "torch (2.13.0+cpu)\nAvailable versions: 2.13.0+cpu, 2.12.0+cpu"
            if "index versions" in words
            else ""
        )


def load():
    spec = importlib.util.spec_from_file_location("bootstrap", ROOT / "course_lib" / "bootstrap.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def bootstrap(tmp_path, monkeypatch):
    """The module, for a project of its own in a folder with spaces, with a pip that is played."""
    module = load()
    module.PROJECT = tmp_path / "it's nine circles"
    module.PROJECT.mkdir()
    monkeypatch.chdir(module.PROJECT)
    (module.PROJECT / "pyproject.toml").write_text("[project]\n")
    (module.PROJECT / "constraints.txt").write_text("numpy==2.4\ntorch==2.13.0\n")
    monkeypatch.setattr(module.shutil, "which", lambda program: None)
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
    run(bootstrap, capsys)
    (bootstrap.PROJECT / "pyproject.toml").write_text("# changed\n")
    with monkeypatch.context() as busy:
        busy.setattr(shutil, "rmtree", lambda path, ignore_errors: None)
        code, said, _ = run(bootstrap, capsys)
    assert code == 0 and "Ready" in said and bootstrap.why_anew() is None and not bootstrap.PREVIOUS.exists()
    assert any("discarded" in name for name in leftovers(bootstrap))
    assert run(bootstrap, capsys) == (0, "", "") and is_made(bootstrap)


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


def test_a_step_is_logged_and_shown_in_part(bootstrap, monkeypatch, capsys):
    real = load().step
    monkeypatch.setenv("PIP_PREFIX", "/elsewhere")
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    monkeypatch.setenv("PIP_INDEX_URL", "the user's own mirror")
    code = (
        "import os; print('  Downloading torch-2.13.0-cp311.whl (190.2 MB)'); print('chatter');"
        "print('Installing collected packages: a, b'); print(sorted(os.environ.items()))"
    )
    output = real("pip", sys.executable, "-c", code)
    assert output == bootstrap.LOG.read_text() and "chatter" in output
    assert capsys.readouterr().out == "  fetching torch-2.13.0 (190 MB)\n  installing 2 packages\n"
    assert "the user's own mirror" in output and "/elsewhere" not in output


# -- PyTorch -----------------------------------------------------------------------------------------------


def test_without_a_gpu_torch_comes_from_its_cpu_index(bootstrap, capsys, monkeypatch):
    """Taken first; pip's own index where that cannot be reached; not asked where there is a GPU."""
    monkeypatch.setattr(sys, "platform", "linux")

    def torch_commands(index=bootstrap.CPU_TORCH):
        monkeypatch.setenv("TORCH_INDEX", index)
        bootstrap.step.commands.clear()
        bootstrap.take_cpu_torch()
        return list(bootstrap.step.commands), capsys.readouterr().out

    commands, said = torch_commands()
    assert [words.endswith("torch==2.13.0") for words in commands] == [False, True]
    assert all(f"--index-url {bootstrap.CPU_TORCH}" in words for words in commands)
    assert said.count("\n") == 1 and "No NVIDIA GPU" in said and bootstrap.CPU_TORCH in said
    for sign, number in {"index versions": 1, "--no-deps": 2}.items():
        bootstrap.step.fails = {sign: "ConnectTimeoutError"}
        commands, said = torch_commands()
        assert len(commands) == number and said.splitlines()[-1].startswith("PyTorch comes from pip's own")
    bootstrap.step.fails = {}
    assert torch_commands(index="") == ([], "")
    monkeypatch.setattr(bootstrap.shutil, "which", lambda program: program)
    assert torch_commands() == ([], "")


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
