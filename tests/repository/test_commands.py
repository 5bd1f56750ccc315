"""The command line: loaded a command at a time, and the doctor finds what is wrong."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from importlib import metadata
from pathlib import Path

import pytest

from course_lib import __main__ as command_line
from course_lib.commands import doctor, lab

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments, **variables):
    command = [sys.executable, "-m", "course_lib", *arguments]
    environment = os.environ | variables
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)


# -- python -m course_lib ----------------------------------------------------------------------------------


def test_no_command_lists_them():
    done = run("--help")
    assert done.returncode == 0 and all(name in done.stdout for name in command_line.COMMANDS)
    assert run().returncode == 2 and run("nonsense").returncode == 2


def test_every_command_has_help(capsys):
    for name in sorted({*command_line.COMMANDS} - {command_line.PASSING_ON}):
        with pytest.raises(SystemExit) as ended:
            command_line.main([name, "--help"])
        assert ended.value.code == 0, name
        assert f"python -m course_lib {name}" in capsys.readouterr().out, name


def test_only_the_called_command_is_loaded():
    code = (
        "import atexit, sys; from course_lib.__main__ import main; "
        "loaded = lambda: sorted(name for name in sys.modules if name.startswith('course_lib.commands.')); "
        "atexit.register(lambda: print(loaded())); main(['format', '--help'])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "['course_lib.commands.format_notebooks']"


# -- lab ---------------------------------------------------------------------------------------------------


def test_lab_serves_the_whole_course_from_the_first_chapter(monkeypatch):
    from jupyterlab_server.config import get_page_config

    seen = {}
    monkeypatch.setattr("jupyterlab.labapp.main", lambda argv: seen.update(argv=argv, cwd=Path.cwd()))
    monkeypatch.setenv("PATH", "/usr/bin")
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "")
    monkeypatch.chdir("/")
    assert command_line.main(["lab", "--no-browser", "--port=8901"]) == 0
    assert f"--ServerApp.root_dir={ROOT}" in seen["argv"]
    assert f"--LabApp.default_url=/lab/tree/{lab.START}" in seen["argv"]
    assert seen["argv"][-2:] == ["--no-browser", "--port=8901"], "the user's options come last and win"
    assert seen["cwd"] == ROOT and (ROOT / lab.START).is_file()
    assert os.environ["PATH"].split(os.pathsep) == [str(Path(sys.executable).parent), "/usr/bin"]
    disabled = get_page_config([])["disabledExtensions"]
    assert any("announcements" in name for name in disabled), "nobody is asked about news"


def test_lab_runs_as_root_only_then(monkeypatch):
    for user, expected in ((0, True), (1000, False)):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user, raising=False)
        assert ("--allow-root" in lab.options()) is expected


# -- doctor ------------------------------------------------------------------------------------------------


def test_doctor_finds_this_environment_ready():
    done = run("doctor")
    assert done.returncode == 0 and done.stderr == "" and "Everything is ready" in done.stdout
    for name in ("Python", "packages", "compiler", "NumPy's BLAS", "JupyterLab", "nbgrader", "GPU"):
        assert f" {name} " in done.stdout, name


def test_doctor_ends_with_a_summary_and_survives_a_check_that_breaks(monkeypatch, capsys):
    def broken():
        raise RuntimeError("LLVM is gone")

    mends = {"b": lambda: ("problem", "broken", "mend it"), "c": lambda: ("note", "hm"), "compiler": broken}
    last = "2 problems to mend: b, compiler (1 note: the course works all the same)."
    for checks, code, words, end in (
        ({"a": lambda: ("OK", "fine")}, 0, ("fine",), "Everything is ready."),
        (mends, 1, ("-> mend it", "RuntimeError: LLVM"), last),
    ):
        monkeypatch.setattr(doctor, "CHECKS", checks)
        assert command_line.main(["doctor"]) == code
        said = capsys.readouterr().out
        assert all(word in said for word in words) and said.splitlines()[-1] == end


def test_doctor_judges_packages(monkeypatch):
    real, tested = metadata.version, {name: doctor.tested_versions()[name] for name in ("torch", "numpy")}
    for changed, status, fragment in (
        ({"numba": None}, "problem", "numba missing"),
        ({"hypothesis": None}, "note", "tests cannot run"),
        ({"numpy": "1.26.4"}, "problem", "numpy 1.26.4 (needs >=2.0)"),
        ({"torch": "2.12.0"}, "note", "torch 2.12.0"),
        ({"torch": "2.13.0+cu130"}, "OK", "in the tested versions"),
    ):

        def version(name, versions=tested | changed):
            if versions.get(name, "") is None:
                raise metadata.PackageNotFoundError(name)
            return versions.get(name) or real(name)

        monkeypatch.setattr(metadata, "version", version)
        found = doctor._packages()
        assert found[0] == status and fragment in found[1], changed


def test_doctor_sees_that_results_cannot_be_kept(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("NINE_CIRCLES_HOME", str(tmp_path / "file" / "folder"))
    status, _, cure = doctor._results_folder()
    assert status == "problem" and "NINE_CIRCLES_HOME" in cure


def test_doctor_reads_what_was_saved(private_data_folder):
    file = private_data_folder / "ladder.json"
    assert doctor._saved_results() == ("OK", "none yet")
    for content, expected, words in (
        ("garbage", "problem", "not JSON"),
        ('{"format": 99}', "problem", "not of format 1"),
        ('{"format": 1, "values": {}}', "OK", "ladder.json can be read"),
        ('{"format": 1, "values": {"odd": {"colour": "green"}, "o": 3}}', "note", "2 entries cannot be read"),
    ):
        file.write_text(content)
        status, found, *cure = doctor._saved_results()
        assert status == expected and words in found, content
        assert status != "problem" or str(private_data_folder) in cure[0]


@pytest.mark.parametrize("has_environment", [True, False])
def test_doctor_says_one_thing_to_a_python_without_the_course(monkeypatch, capsys, tmp_path, has_environment):
    program = tmp_path / ".venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if has_environment:
        program.parent.mkdir(parents=True)
        program.touch()
    monkeypatch.setattr(doctor, "PROJECT", tmp_path)
    assert doctor.wrong_python() is None, "another environment that has the course is welcome"
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    code = command_line.main(["doctor"])
    said = capsys.readouterr().out
    assert code == 1 and said.count("problem ") == 2  # the one line, and the last word
    assert f"You run the system's Python ({sys.executable})" in said and "pip install" not in said
    assert ("use .venv" in said.replace(os.sep, "/")) is has_environment
    assert "make" in said
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "elsewhere"))
    assert "the Python of another environment" in doctor.wrong_python()[1]
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))
    assert doctor.wrong_python() is None, "in .venv each check says what is missing"


def test_doctor_notes_a_blas_that_is_behind_and_sees_a_foreign_kernel(monkeypatch):
    from course_lib.measure import machine

    monkeypatch.setattr(machine, "blas_is_behind", lambda: "OpenBLAS took its Haswell kernels.")
    assert doctor._blas() == ("note", "OpenBLAS took its Haswell kernels.")
    spec = types.SimpleNamespace(argv=("/bin/sh",))
    monkeypatch.setattr("jupyter_client.kernelspec.KernelSpecManager.get_kernel_spec", lambda *_: spec)
    status, found, _ = doctor._jupyterlab()
    assert status == "problem" and "/bin/sh" in found


# -- nbgrader ----------------------------------------------------------------------------------------------


def test_nbgrader_keeps_a_class_out_of_git():
    """The folders of the configuration, and that git ignores the class's work but not the library's room."""
    from traitlets.config import PyFileConfigLoader

    course = PyFileConfigLoader("nbgrader_config.py", path=str(ROOT)).load_config().CourseDirectory
    assert (course.source_directory, course.release_directory) == ("solutions", "exercises")
    assert course.course_id == "nine-circles" and Path(course.root) == ROOT
    private = [course.submitted_directory, course.autograded_directory, course.feedback_directory]
    private.append(os.path.relpath(course.db_url.removeprefix("sqlite:///"), ROOT))
    assert all(path.split("/")[0] == "grading" for path in private)

    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").split()
    assert {"/grading/", "/.venv", "/.venv.*"} <= set(ignored)
    assert not {"grading", "grading/", "exercises", "/exercises/"} & set(ignored), (
        "course_lib/grading is code"
    )
