"""What holds for every file, and that the lists of packages agree with each other."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version
from tools import missing

from course_lib.measure import programs

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("course_lib", "tests", "notebooks", "solutions")
SUFFIXES = {".py", ".ipynb", ".md", ".toml", ".yml"}
LONGEST_FILE = 900  # a chapter's tasks are one file
UNFINISHED = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
REQUIREMENTS = [
    Requirement(text) for group in (PROJECT["dependencies"], EXTRAS["lab"], EXTRAS["dev"]) for text in group
]


def texts():
    """Yield every file that people write, with its text."""
    own = [path for path in ROOT.iterdir() if path.is_file()]
    inside = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    for path in sorted(own + inside):
        if (path.suffix in SUFFIXES or path.name == "Makefile") and ".ipynb_checkpoints" not in path.parts:
            yield path, path.read_text(encoding="utf-8")


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in pairs}


# -- files -------------------------------------------------------------------------------------------------


def test_nothing_is_left_for_later():
    found = [f"{path.name}: {match[0]}" for path, text in texts() for match in UNFINISHED.finditer(text)]
    assert found == []


def test_no_file_of_the_library_is_too_long():
    library = [(path, text) for path, text in texts() if ROOT / "course_lib" in path.parents]
    assert len(library) > 10
    assert [path.name for path, text in library if len(text.splitlines()) > LONGEST_FILE] == []


def test_ruff_is_content():
    for command in (["check"], ["format", "--check"]):
        order = [sys.executable, "-m", "ruff", *command, "."]
        done = subprocess.run(order, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


# -- packages ----------------------------------------------------------------------------------------------


def test_constraints_cover_and_satisfy():
    for requirement in REQUIREMENTS:
        version = pins().get(canonicalize_name(requirement.name))
        assert version is not None, f"{requirement} is not in constraints.txt"
        assert Version(version) in requirement.specifier, f"{requirement}, but {version} in constraints.txt"
        assert requirement.specifier, f"give {requirement} the oldest version that works"


def test_constraints_form():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    listed = [line for line in lines if not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.]*", line) for line in listed)
    assert list(pins()) == sorted(pins()) and len(pins()) == len(listed)
    forbidden = ("nvidia-", "triton", "cuda", canonicalize_name(PROJECT["name"]))
    asked_for = {canonicalize_name(requirement.name) for requirement in REQUIREMENTS}
    assert not [name for name in pins() if name.startswith(forbidden) and name not in asked_for]


def test_constraints_hold_whatever_the_pinned_packages_need():
    """Complete: every package that a pinned one needs here is pinned as well."""
    from importlib import metadata

    missing = set()
    for name in pins():
        for text in metadata.requires(name) or ():
            requirement = Requirement(text)
            needed = not requirement.marker or requirement.marker.evaluate({"extra": ""})
            if needed and canonicalize_name(requirement.name) not in pins():
                missing.add(f"{name} needs {requirement.name}")
    assert missing == set()


def test_environment_yml_repeats_no_version():
    content = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    *conda, pip = content["dependencies"]
    assert conda == ["python=3.12", "pip"]  # repo2docker, which Binder uses, reads a range as Python 3.10
    assert Version("3.12") in SpecifierSet(PROJECT["requires-python"])
    assert pip == {"pip": ["-c constraints.txt", "-e .[lab,dev]"]}
    assert set(EXTRAS) == {"lab", "dev", "cubin"}
    text = (ROOT / "environment.yml").read_text(encoding="utf-8")
    assert re.findall(r"[=<>~!]=|=\d", text.replace("python=3.12", "")) == []


def test_every_way_to_install_is_the_same():
    from course_lib import bootstrap
    from course_lib.commands import doctor

    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert bootstrap.WHAT == ".[lab,dev]"
    assert f'pip install -c constraints.txt -e "{bootstrap.WHAT}"' == doctor.INSTALL
    assert doctor.INSTALL in readme
    assert bootstrap.CPU_TORCH in readme and f"torch=={pins()['torch']} --index-url" in readme
    assert f"TORCH_INDEX ?= {bootstrap.CPU_TORCH}\n" in (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "make lab" in readme and "make test" in readme


def test_ci_runs_the_readmes_command():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert script.rstrip().endswith("\nmake test") and "set -euo pipefail" in script
    assert f"export {missing.SWITCH}=1" in script, "there a test that lacks a tool must fail"
    packages = set(programs.PACKAGES.values())
    assert {name for name in packages if f"wanted+=({name})" in script} == packages
    assert subprocess.run(["bash", "-n", ROOT / ".ci" / "run"]).returncode == 0
