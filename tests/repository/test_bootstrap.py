"""Making .venv: what a newcomer's machine can do to it, each tried for real on a project of a few lines."""

from __future__ import annotations

import ast
import errno
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
from contextlib import contextmanager

import pytest
from tiny_project import BASE_PYTHON, ROOT, TinyProject, fake_pythons, old_python, real_python

from course_lib.environment import build, complaints, state

NOOP_STARTS = 6  # nothing to do: make starts Python twice; about 3 starts of a bare Python were measured


@pytest.fixture(scope="module")
def first_make(tmp_path_factory):
    """A project and how its first `make venv` ended, in a shell whose settings belong to other projects."""
    folder = tmp_path_factory.mktemp("made")
    project = TinyProject(folder / "it's nine circles of matmul")
    evil = folder / "evil"
    evil.mkdir()
    (evil / "course_lib.py").write_text("raise SystemExit('from PYTHONPATH')")
    done = project.make(
        "venv",
        PYTHONPATH=str(evil),
        PYTHONHOME="/nonexistent",
        VIRTUAL_ENV="/nonexistent",
        PIP_USER="1",
        PIP_REQUIRE_VIRTUALENV="1",
        PIP_TARGET=str(folder / "elsewhere"),
    )
    return project, done


@pytest.fixture(scope="module")
def made(first_make):
    """A project whose .venv is made, in a folder with spaces; tests leave it whole."""
    project, done = first_make
    assert done.returncode == 0, done.stderr
    return project


@pytest.fixture
def project(tmp_path):
    return TinyProject(tmp_path / "tiny")


def assert_one_sentence(done, *fragments):
    """Exit code not 0, and on stderr exactly one line that holds every fragment."""
    assert done.returncode != 0
    lines = [line for line in done.stderr.splitlines() if not line.startswith("make: ***")]
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("Set-up stopped: ") and lines[0].endswith(".")
    assert not re.search(r"Traceback|\. [A-Z]", lines[0]), "more than one sentence"
    for fragment in fragments:
        assert fragment in lines[0]


def assert_nothing_left(project):
    assert not os.path.lexists(project.venv)
    assert project.leftovers() == []


def mark(project):
    """Leave a file in .venv by which this very environment can be told from a new one."""
    (project.venv / "same").touch()


def is_same(project):
    return (project.venv / "same").exists()


@contextmanager
def moved_away(path):
    """Whatever happens, ``path`` comes back."""
    aside = path.with_name(path.name + ".aside")
    path.rename(aside)
    try:
        yield path
    finally:
        if os.path.lexists(path):
            path.unlink()
        aside.rename(path)


@contextmanager
def kept(file):
    """Whatever happens to ``file``, its content comes back."""
    before = file.read_bytes()
    try:
        yield file
    finally:
        file.write_bytes(before)


def works(project):
    done = subprocess.run([project.python, "-c", "import course_lib"], cwd="/", capture_output=True)
    return done.returncode == 0


# -- it works ----------------------------------------------------------------------------------------------


def test_first_make_under_a_hostile_shell(first_make):
    """Settings that belong to other projects do no harm, and there are few lines to read."""
    project, done = first_make
    assert done.returncode == 0, done.stdout + done.stderr
    assert works(project) and project.leftovers() == []
    assert "Making .venv" in done.stdout and "Ready" in done.stdout
    assert len(done.stdout.splitlines()) <= 6 and done.stderr == ""
    assert not (project.folder.parent / "elsewhere").exists()


def test_what_pip_inherits(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    monkeypatch.setenv("PIP_PREFIX", "/elsewhere")
    monkeypatch.setenv("PIP_INDEX_URL", "the user's own mirror")
    inherited = build._environment()
    assert "/elsewhere" not in inherited.values()
    assert inherited["PIP_INDEX_URL"] == "the user's own mirror"


@pytest.mark.timing
def test_nothing_to_do_is_fast_and_silent(made):
    """Against a bare Python in turns: on a busy machine a limit in seconds says more about the neighbours."""
    mark(made)
    bare, seconds = [], []
    for _ in range(7):
        start = time.perf_counter()
        subprocess.run([BASE_PYTHON, "-c", ""], check=True)
        middle = time.perf_counter()
        done = made.make("venv", PYTHON=BASE_PYTHON)
        bare.append(middle - start)
        seconds.append(time.perf_counter() - middle)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert is_same(made) and min(seconds) < NOOP_STARTS * min(bare)


def test_remade_when_a_source_changes(made):
    mark(made)
    for name in state.SOURCES:
        with kept(made.folder / name) as file:
            file.write_text(file.read_text() + "# changed\n")
            assert state.examine(made.venv).reason == f"{name} changed"
            assert state.examine(made.venv).works
        assert state.examine(made.venv) is None
    for name in state.SOURCES:
        with open(made.folder / name, "a") as file:
            file.write("# changed for good\n")
    done = made.bootstrap()
    assert done.returncode == 0 and "pyproject.toml and constraints.txt changed" in done.stdout
    assert not is_same(made) and works(made) and made.leftovers() == []


@pytest.mark.slow
def test_remade_by_the_python_inside_it(made):
    """An active .venv is the first Python on the PATH, and it is moved away while it works."""
    mark(made)
    (made.folder / "constraints.txt").write_text("# and again\n")
    done = made.bootstrap(python=str(made.python))
    assert done.returncode == 0, done.stderr
    assert not is_same(made) and works(made)


@pytest.mark.slow  # that damage is a reason is tested below, without an installation
@pytest.mark.parametrize("damage", ["interpreter", "packages"])
def test_damaged_is_remade_with_a_reason(made, damage):
    mark(made)
    if damage == "interpreter":
        made.python.unlink()
        made.python.symlink_to("/nonexistent/python3.11")
    else:
        shutil.rmtree(state.site_packages(made.venv, state.this_version()))
    done = made.bootstrap()
    reason = {"interpreter": "gone or does not start", "packages": "installed packages are gone"}[damage]
    assert done.returncode == 0 and reason in done.stdout
    assert not is_same(made) and works(made) and made.leftovers() == []


def test_every_other_reason_to_remake(made, tmp_path):
    def reason(venv=made.venv):
        return state.examine(venv).reason

    stamp = made.venv / state.STAMP
    assert state.examine(made.venv) is None
    with kept(stamp):
        stamp.write_text(json.dumps(json.loads(stamp.read_text()) | {"project": "/elsewhere"}))
        assert "moved or copied (it was /elsewhere)" in reason()
    with kept(stamp):
        stamp.write_text("{")
        assert "not finished by make" in reason()
    with kept(stamp):
        stamp.write_text(json.dumps(json.loads(stamp.read_text()) | {"python": "3.1"}))
        assert f"its Python became {state.this_version()} (it was 3.1)" in reason()
    (made.venv / state.MARKER).touch()
    assert "interrupted" in reason()
    (made.venv / state.MARKER).unlink()
    with moved_away(made.python):
        made.python.symlink_to("/nonexistent/python3.11")
        assert "gone or does not start" in reason() and not state.examine(made.venv).works
    with moved_away(state.site_packages(made.venv, state.this_version())):
        assert "installed packages are gone" in reason()
    (tmp_path / ".venv").write_text("a file")
    assert "not a folder" in reason(tmp_path / ".venv")
    assert "none yet" in reason(tmp_path / "nothing")
    assert state.examine(made.venv) is None


@pytest.mark.slow
def test_an_environment_made_by_hand_gives_way(project):
    """`python -m venv .venv` without make: remade once; kept, should that fail."""
    subprocess.run([BASE_PYTHON, "-m", "venv", "--without-pip", project.venv], check=True)
    mark(project)
    project.need("no-such-package")
    assert_one_sentence(project.bootstrap(), "no-such-package", "back in place")
    assert is_same(project)
    assert state.examine(project.venv) == state.Finding(
        f"the present one was not finished by make ({state.STAMP} is missing)", works=True
    )


def test_a_link_to_another_copys_environment_is_used(made, project):
    project.venv.symlink_to(made.venv, target_is_directory=True)
    for name in state.SOURCES:
        shutil.copy(made.folder / name, project.folder / name)
    done = project.bootstrap()
    assert (done.returncode, done.stdout) == (0, "") and project.venv.is_symlink()


def test_another_python_is_a_reason_only_when_asked_for(made):
    assert state.examine(made.venv) is None
    assert state.examine(made.venv, state.this_version()) is None
    finding = state.examine(made.venv, "3.99")
    assert finding is not None and "3.99 was asked for" in finding.reason and finding.works


# -- it fails, and nothing half-made is left ---------------------------------------------------------------


@pytest.mark.slow  # its sentence is tested below, without an installation
def test_package_not_to_be_had(project):
    project.need("no-such-package")
    assert_one_sentence(project.make("venv"), "found no build of no-such-package", "network", ".venv.log")
    assert_nothing_left(project)


@pytest.mark.slow  # its sentence is tested below, without an installation
def test_no_network(project):
    project.need("no-such-package")
    nowhere = {"PIP_NO_INDEX": "0", "PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "1"}
    assert_one_sentence(project.bootstrap(**nowhere), "index could not be reached", "connect to the network")
    assert_nothing_left(project)


@pytest.mark.slow
def test_disk_runs_full(project):
    project.behave("full")
    assert_one_sentence(project.bootstrap(), "disk ran full", str(project.folder), "free about 3 GB")
    assert_nothing_left(project)


def test_failed_remake_keeps_the_old_one(made):
    mark(made)
    with kept(made.folder / "pyproject.toml"):
        made.need("no-such-package")
        assert_one_sentence(made.bootstrap(), "no-such-package", "back in place")
        assert is_same(made) and works(made) and made.leftovers() == []
    assert state.examine(made.venv) is None


def in_process(project, capsys, **options):
    code = build.make_ready(project.folder, **options)
    return subprocess.CompletedProcess([], code, *capsys.readouterr())


def test_too_little_space(project, capsys, monkeypatch):
    usage = shutil.disk_usage("/")._replace(free=1_200_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    assert_one_sentence(in_process(project, capsys), "1.2 GB free", "about 3 GB", "free some space")
    assert_nothing_left(project)


def test_no_ensurepip(project, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    assert_one_sentence(in_process(project, capsys), "ensurepip", f"python{state.this_version()}-venv")
    assert_nothing_left(project)


@pytest.mark.parametrize(("code", "fragment"), [(errno.EACCES, "not be written"), (errno.ENOSPC, "is full")])
def test_the_folder_cannot_be_written(project, capsys, monkeypatch, code, fragment):
    def refuse(path, *_, **__):
        raise OSError(code, os.strerror(code), str(path))

    monkeypatch.setattr("pathlib.Path.mkdir", refuse)
    assert_one_sentence(in_process(project, capsys), fragment, "try again")
    assert_nothing_left(project)


def test_the_folder_has_a_colon_in_its_name(tmp_path, capsys):
    project = TinyProject(tmp_path / "nine:circles")
    assert_one_sentence(in_process(project, capsys), "nine:circles", "rename the folder")
    assert_nothing_left(project)


@pytest.mark.parametrize(
    ("said", "fragment"),
    [
        ("OSError: [Errno 28] No space left on device", "disk ran full"),
        ("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed", "PIP_CERT"),
        ("ProxyError('Cannot connect to proxy.', OSError('Tunnel connection failed: 407'))", "HTTPS_PROXY"),
        ("NameResolutionError: no name resolution\nNo matching distribution found for x", "not be reached"),
        ("ERROR: No matching distribution found for torch<2.14,>=2.11", "no build of torch<2.14,>=2.11 for"),
        ("ERROR: Could not install: [Errno 13] Permission denied: '/x'", "may not be written"),
        ("The virtual environment was not created because ensurepip is not\navailable", "ensurepip"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES", "THESE PACKAGES DO NOT MATCH THE HASHES"),
        ("", "exit code 2 (it gave no reason)"),
    ],
)  # fmt: skip
def test_what_pip_said_in_one_sentence(tmp_path, said, fragment):
    sentence = str(complaints.about_step("pip", 2, said, tmp_path))
    assert fragment in sentence and "\n" not in sentence


def test_a_killed_pip_is_not_blamed_on_the_network(tmp_path):
    assert "memory" in str(complaints.about_step("pip", -9, "Read timed out", tmp_path))


# -- it is stopped half-way --------------------------------------------------------------------------------


def wait_until_building(project, process, already=0):
    deadline = time.monotonic() + 60
    while project.builds() <= already:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)


def test_interrupted_politely(project):
    project.behave("slow 30")
    process = project.start()
    wait_until_building(project, process)
    process.send_signal(signal.SIGTERM)
    done = subprocess.CompletedProcess([], None, *process.communicate(timeout=30))
    done.returncode = process.returncode
    assert_one_sentence(done, "interrupted")
    assert_nothing_left(project)


@pytest.mark.slow
def test_killed_then_healed(project):
    """kill -9 in the first run; then in a remake, where the old environment has to come back."""
    project.behave("slow 2")
    process = project.start()
    wait_until_building(project, process)
    process.kill()
    process.communicate()
    assert (project.venv / state.MARKER).exists() and not (project.venv / state.STAMP).exists()
    project.behave("well")
    done = project.bootstrap()
    assert "waiting" in done.stdout, "the orphaned pip still writes into .venv"
    assert done.returncode == 0 and "interrupted" in done.stdout and works(project)

    mark(project)
    before = project.builds()
    project.behave("slow 1")
    project.need("no-such-package")
    process = project.start()
    wait_until_building(project, process, before)
    process.kill()
    process.communicate()
    assert (project.folder / ".venv.previous" / "same").exists()
    project.need(None)
    done = project.bootstrap()
    assert done.returncode == 0 and "put back" in done.stdout
    assert is_same(project) and works(project) and project.leftovers() == []


@pytest.mark.slow
def test_two_at_once_take_turns(project):
    project.behave("slow 1")
    first, second = project.start(), project.start()
    outputs = [process.communicate(timeout=120) for process in (first, second)]
    assert [first.returncode, second.returncode] == [0, 0], outputs
    assert project.builds() == 1 and works(project) and project.leftovers() == []
    assert sum("waiting" in out for out, _ in outputs) == 1


def test_rubbish_of_a_killed_clean_up_goes(made):
    (made.folder / ".venv.discarded-1-1" / "lib").mkdir(parents=True)
    mark(made)
    assert made.bootstrap().returncode == 0
    assert made.leftovers() == [] and is_same(made)


# -- which Python ------------------------------------------------------------------------------------------


def test_every_python_is_too_old(project, tmp_path):
    path = fake_pythons(tmp_path / "bin", python3=old_python((3, 8, 18)), python=old_python((2, 7, 18)))
    assert_one_sentence(project.make("lab", PATH=path), "Python 3.8.18", "Python 3.11 to 3.13", "PYTHON=")
    assert_nothing_left(project)


def test_no_python_at_all(project, tmp_path):
    assert_one_sentence(
        project.make("lab", PATH=fake_pythons(tmp_path / "bin")), "no Python was found", "3.11"
    )
    assert_nothing_left(project)


def test_the_first_python_that_fits_is_taken(made, tmp_path):
    """An old python3 and a shim for a version that is not installed are passed over."""
    path = fake_pythons(tmp_path / "bin", python3=old_python((3, 8, 18)), python3_12=real_python())
    done = made.make("venv", PATH=path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_python_named_on_the_command_line_is_an_order(made, tmp_path):
    fake_pythons(tmp_path / "bin", python=old_python((3, 10, 1)))
    done = made.make("venv", f"PYTHON={tmp_path / 'bin' / 'python'}")
    assert_one_sentence(done, "Python 3.10.1", "3.11 to 3.13")


def test_a_python_newer_than_the_course_was_tried_on_is_passed_over(made, project, tmp_path):
    new = old_python((3, 14, 0))
    path = fake_pythons(tmp_path / "both", python3=new, python3_12=real_python())
    assert made.make("venv", PATH=path).returncode == 0
    path = fake_pythons(tmp_path / "only", python3=new)
    assert_one_sentence(project.make("lab", PATH=path), "Python 3.14.0", "Python 3.11 to 3.13")


def test_a_python_named_by_the_shell_is_only_tried_first(made, tmp_path):
    fake_pythons(tmp_path / "bin", python=old_python((3, 10, 1)))
    assert made.make("venv", PYTHON=str(tmp_path / "bin" / "python")).returncode == 0


def test_bootstrap_reads_as_python_2():
    """No syntax that Python 2.7 or 3.6 lacks: those must reach the sentence."""
    text = (ROOT / "course_lib" / "bootstrap.py").read_text(encoding="utf-8")
    assert text.isascii()
    newer = (
        ast.JoinedStr,
        ast.AnnAssign,
        ast.NamedExpr,
        ast.Match,
        ast.AsyncFunctionDef,
        ast.Nonlocal,
        ast.Starred,
    )
    for node in ast.walk(ast.parse(text)):
        assert not isinstance(node, newer), f"line {node.lineno}"
        if isinstance(node, ast.FunctionDef):
            arguments = node.args
            assert node.returns is None and not arguments.kwonlyargs and not arguments.posonlyargs
            assert all(argument.annotation is None for argument in arguments.args)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print":
            assert len(node.args) == 1 and not node.keywords


def test_the_oldest_python_is_the_same_everywhere():
    place = ROOT / "course_lib" / "bootstrap.py"
    spec = importlib.util.spec_from_file_location("bootstrap", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    beyond = (module.NEWEST[0], module.NEWEST[1] + 1)
    assert project["requires-python"] == ">={}.{},<{}.{}".format(*module.OLDEST, *beyond)
