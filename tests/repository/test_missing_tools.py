"""Tests whose tool a machine lacks are skipped, counted and named once; under the switch they fail."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tools import missing

from course_lib.measure import programs

ROOT = Path(__file__).resolve().parents[2]
TESTS = """
import pytest

@pytest.mark.needs("bubblewrap")
@pytest.mark.parametrize("number", range(3))
def test_sandbox(number): pass

@pytest.mark.needs("chromium", "valgrind")
def test_page(): pass

@pytest.mark.needs("c compiler", "c++ compiler", "valgrind")
def test_count(): pass

def test_needs_nothing(): pass
"""


@pytest.fixture(scope="module")
def links(tmp_path_factory):
    """A folder of links to all programs on the PATH."""
    folder = tmp_path_factory.mktemp("links")
    programs_of = {}
    for place in reversed(os.environ["PATH"].split(os.pathsep)):
        programs_of |= {name: place for name in (os.listdir(place) if os.path.isdir(place) else ())}
    for name, place in programs_of.items():
        os.symlink(os.path.join(place, name), folder / name)
    return folder


@contextmanager
def taken_away(links: Path, names: Iterable[str]) -> Iterator[None]:
    gone = {name: os.readlink(links / name) for name in names if (links / name).is_symlink()}
    for name in gone:
        (links / name).unlink()
    yield
    for name, target in gone.items():
        (links / name).symlink_to(target)


on_posix = pytest.mark.skipif(os.name != "posix", reason="a PATH of links")


@on_posix
@pytest.mark.needs(*missing.PROGRAMS)
def test_the_runs_end_says_what_did_not_run(tmp_path, links):
    project = tmp_path / "project"
    project.mkdir()
    (project / "test_tiny.py").write_text(TESTS)
    (project / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text(encoding="utf-8"))
    (project / "pytest.ini").write_text("[pytest]\nmarkers =\n    needs: tools\n")

    def run(*options, **variables):
        places = {"PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), str(ROOT)]), "PATH": str(links)}
        settings = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PLAYWRIGHT_BROWSERS_PATH": str(tmp_path)}
        unset = {missing.SWITCH: "", "NINE_CIRCLES_PASS": ""}
        order = [sys.executable, "-m", "pytest", "-q", "-c", "pytest.ini", "--rootdir=.", *options]
        environment = os.environ | places | settings | unset | variables
        return subprocess.run(order, cwd=project, env=environment, capture_output=True, text=True)

    with taken_away(links, ["bwrap", *programs.BROWSERS]):
        done = run("-p", "xdist", "-n", "2", NINE_CIRCLES_PASS="1")
        sentence = "4 tests did not run: no bubblewrap (sandbox: 3), no chromium (browser: 1): "
        assert done.returncode == 0 and done.stdout.count("did not run") == 1 and sentence in done.stdout
        both = run("-k", "page", NINE_CIRCLES_PASS="2").stdout
        assert "5 tests did not run: no bubblewrap (sandbox: 3), no chromium (browser: 2): " in both
        strict = run(**{missing.SWITCH: "1"})
        assert strict.returncode == 1 and "4 errors" in strict.stdout and "2 passed" in strict.stdout
        assert "no bubblewrap" in strict.stdout and "did not run" not in strict.stdout


def test_what_to_type(monkeypatch):
    here = {"dnf"}
    monkeypatch.setattr(programs.shutil, "which", lambda name, **_: name if name in here else None)
    monkeypatch.setattr(sys, "platform", "linux")
    counts = Counter({"chromium": 112, "bubblewrap": 300, "greenlet": 1})
    assert missing.cure(sorted(counts)).startswith("sudo dnf install bubblewrap chromium; pip install -c con")
    here.clear()
    assert programs.cure("valgrind", "C++ compiler") == "install valgrind g++"
    monkeypatch.setattr(sys, "platform", "darwin")
    here.add("brew")
    assert programs.why_missing("bubblewrap") == "no bubblewrap (it is for Linux only)"
    assert (
        programs.cure("bubblewrap") == "" and programs.cure("bubblewrap", "C compiler") == "brew install gcc"
    )
    assert all(missing.why_missing.__wrapped__(name) for name in ("c compiler", "valgrind"))
    with pytest.raises(ValueError, match="known tools are bubblewrap, chromium"):
        missing.why_missing("hammer")


def test_a_sandbox_that_the_kernel_forbids_counts_as_missing(tmp_path, monkeypatch):
    bwrap = tmp_path / "bwrap"
    bwrap.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    bwrap.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(sys, "platform", "linux")
    why = programs.why_missing("bubblewrap")
    assert why == "bubblewrap may not make a sandbox on this machine: No permissions to create new namespace"
    monkeypatch.setattr(programs, "_setting", {"kernel.unprivileged_userns_clone": "0"}.get)
    assert programs.cure("bubblewrap") == "sudo sysctl kernel.unprivileged_userns_clone=1"
    monkeypatch.setattr(programs, "_setting", lambda name: None)
    assert "container" in programs.cure("bubblewrap")


def test_any_browser_of_chromiums_family_serves(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PLAYWRIGHT_BROWSERS_PATH", raising=False)
    places = {
        "linux": [".cache/ms-playwright/chromium-1187/chrome-linux64/chrome"],
        "darwin": [
            "Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
            "Library/Caches/ms-playwright/chromium-1187/chrome-mac/Chromium.app/Contents/MacOS/Chromium",
        ],
        "win32": [
            "Microsoft/Edge/Application/msedge.exe",
            "ms-playwright/chromium-1187/chrome-win/chrome.exe",
        ],
    }
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    for system, paths in places.items():
        monkeypatch.setattr(sys, "platform", system)
        for place in paths:
            assert programs.browser() is None, place
            (tmp_path / place).parent.mkdir(parents=True)
            (tmp_path / place).touch()
            assert programs.browser() == str(tmp_path / place)
            (tmp_path / place).unlink()
    monkeypatch.setattr(sys, "platform", "linux")
    for name in programs.BROWSERS:
        (tmp_path / name).touch(mode=0o755)
        assert Path(programs.browser()).name == name
        (tmp_path / name).unlink()
