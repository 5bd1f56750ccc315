"""The command line: loaded a command at a time, and the doctor finds what is wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import types
from importlib import metadata
from pathlib import Path

import pytest

from course_lib import __main__ as command_line
from course_lib.commands import doctor, lab
from course_lib.measure import programs

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
    for name in sorted(set(command_line.COMMANDS) - command_line.PASSING_ON):
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


def test_a_closed_pipe_is_no_traceback():
    command = f'"{sys.executable}" -m course_lib --help | true'
    done = subprocess.run(["sh", "-c", command], cwd=ROOT, capture_output=True, text=True)
    assert done.stderr == ""


# -- lab ---------------------------------------------------------------------------------------------------


def test_lab_serves_the_whole_course_from_the_first_chapter(monkeypatch):
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


def test_lab_asks_nothing_about_news(monkeypatch):
    """The plug-in that asks is switched off in what JupyterLab tells the page."""
    from jupyterlab_server.config import get_page_config

    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "")
    monkeypatch.setenv("PATH", os.environ["PATH"])
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("jupyterlab.labapp.main", lambda argv: None)
    assert command_line.main(["lab"]) == 0
    disabled = get_page_config([])["disabledExtensions"]
    assert any("announcements" in name for name in disabled)


def test_lab_runs_as_root_only_then(monkeypatch):
    for user, expected in ((0, True), (1000, False)):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user, raising=False)
        assert ("--allow-root" in lab.options()) is expected


# -- doctor ------------------------------------------------------------------------------------------------


def test_doctor_finds_this_environment_ready():
    done = run("doctor", "--json")
    lines = json.loads(done.stdout)
    assert [line["found"] for line in lines if line["status"] == "problem"] == []
    assert done.returncode == 0 and done.stderr == ""
    names = {line["what"] for line in lines}
    assert names >= {"Python", "packages", "compiler", "NumPy's BLAS", "JupyterLab", "nbgrader", "GPU"}


def test_doctor_ends_with_a_summary_and_survives_a_check_that_breaks(monkeypatch, capsys):
    def broken():
        raise RuntimeError("LLVM is gone")

    for checks, code, words, last in (
        ({"a": lambda: ("OK", "fine")}, 0, "fine", "Everything is ready."),
        (
            {"b": lambda: ("problem", "broken", "mend it"), "c": lambda: ("note", "hm")},
            1,
            "-> mend it",
            "1 problem to mend: b (1 note: the course works all the same).",
        ),
        (
            {"compiler": broken, "d": lambda: ("OK", "")},
            1,
            "RuntimeError: LLVM",
            "1 problem to mend: compiler.",
        ),
    ):
        monkeypatch.setattr(doctor, "CHECKS", checks)
        assert command_line.main(["doctor"]) == code
        said = capsys.readouterr().out
        assert words in said and said.splitlines()[-1] == last


def with_versions(monkeypatch, **versions):
    """Pretend that these packages are installed in these versions (None: not at all)."""
    real = metadata.version

    def version(name):
        wanted = versions.get(name, real(name))
        if wanted is None:
            raise metadata.PackageNotFoundError(name)
        return wanted

    monkeypatch.setattr(metadata, "version", version)


def test_doctor_judges_packages(monkeypatch):
    tested = {name: doctor.tested_versions()[name] for name in ("torch", "numpy")}
    for versions, status, fragment in (
        ({"numba": None}, "problem", "numba missing"),
        ({"jupyterlab": None}, "problem", "jupyterlab missing"),
        ({"hypothesis": None}, "note", "tests cannot run"),
        ({"numpy": "1.26.4"}, "problem", "numpy 1.26.4 (needs >=2.0)"),
        ({"torch": "2.12.0"}, "note", "torch 2.12.0"),
        ({"torch": "2.13.0+cu130"}, "OK", "in the tested versions"),
        ({}, "OK", "in the tested versions"),
    ):
        with monkeypatch.context() as pretended:
            with_versions(pretended, **(tested | versions))
            found = doctor._packages()
            assert found[0] == status and fragment in found[1], versions


def test_doctor_does_not_miss_what_only_some_want(monkeypatch):
    """The compilers for GPUs, 550 MB, are an extra that `make lab` does not install."""
    wanted = ['not-here-1>=1; extra == "cubin"', "numpy>=2", 'pytest>=8; extra == "dev"']
    monkeypatch.setattr(metadata, "requires", lambda name: wanted)
    status, found, *_ = doctor._packages()
    assert status != "problem" and "not-here-1" not in found and "all 2 present" in found
    wanted.append('not-here-2>=1; extra == "lab"')
    assert doctor._packages()[1] == "not-here-2 missing"


def test_doctor_sees_that_results_cannot_be_kept(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("NINE_CIRCLES_HOME", str(tmp_path / "file" / "folder"))
    status, _, cure = doctor._results_folder()
    assert status == "problem" and "NINE_CIRCLES_HOME" in cure


def test_doctor_reads_what_was_saved(private_data_folder):
    for content, words in (("garbage", "not JSON"), ('{"format": 99}', "newer version")):
        for name in ("ladder", "machine", "guesses"):
            assert doctor._saved_results() == ("OK", "none yet")
            file = private_data_folder / f"{name}.json"
            file.write_text(content)
            status, found, cure = doctor._saved_results()
            assert status == "problem" and found.startswith(f"{name}.json: "), (name, content)
            assert words in found and str(private_data_folder) in cure
            file.unlink()
    ladder = private_data_folder / "ladder.json"
    ladder.write_text('{"format": 1, "values": {}}')
    assert doctor._saved_results() == ("OK", "ladder.json can be read")
    ladder.write_text('{"format": 1, "values": {"odd": {"colour": "green"}, "odder": 3}}')
    status, found, cure = doctor._saved_results()
    assert status == "note" and "2 entries cannot be read" in found and "bench" in cure


def test_doctor_says_which_sound_files_can_be_read(monkeypatch):
    fake = types.SimpleNamespace(__version__="9.9", available_formats=lambda: ("AIFF", "FLAC", "OGG", "WAV"))
    for module, found in (
        (fake, ("OK", "WAV is read; by soundfile 9.9 FLAC, OGG and others as well")),
        (None, ("note", "none is read: soundfile is not installed or broken", doctor.INSTALL)),
    ):
        monkeypatch.setitem(sys.modules, "soundfile", module)
        assert doctor._sound_files() == found


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


def test_doctor_only_notes_what_tests_need(monkeypatch, tmp_path):
    monkeypatch.setattr(programs, "find", lambda name: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert set(doctor.PROGRAMS) < set(programs.PACKAGES) and set(doctor.PROGRAMS) < set(doctor.CHECKS)
    assert {doctor._program(name)[0] for name in doctor.PROGRAMS} == {"note"}
    words = ("note", "no chromium: only 'make test' needs it", "install chromium")
    assert doctor._program("chromium") == words


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
