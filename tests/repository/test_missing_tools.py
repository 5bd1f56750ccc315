"""Tests whose tool a machine lacks are skipped, counted and named once; under the switch they fail."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tools import missing

from course_lib.measure import programs

ROOT = Path(__file__).resolve().parents[2]
TESTS = """
import pytest

@pytest.mark.needs("c compiler", "valgrind")
@pytest.mark.parametrize("number", range(3))
def test_loops(number): pass

@pytest.mark.needs("valgrind")
def test_count(): pass

def test_needs_nothing(): pass
"""


def test_the_runs_end_says_what_did_not_run(tmp_path):
    """Once, for both passes of `make test`; where nothing may be missing such tests fail."""
    (tmp_path / "test_tiny.py").write_text(TESTS)
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text(encoding="utf-8"))
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    needs: tools\n")

    def run(*options, **variables):
        places = {"PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), str(ROOT)]), "PATH": str(tmp_path)}
        settings = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", missing.SWITCH: "", "NINE_CIRCLES_PASS": ""}
        order = [sys.executable, "-m", "pytest", "-q", "-c", "pytest.ini", "--rootdir=.", *options]
        environment = os.environ | places | settings | variables
        return subprocess.run(order, cwd=tmp_path, env=environment, capture_output=True, text=True)

    done = run("-p", "xdist", "-n", "2", NINE_CIRCLES_PASS="1")
    sentence = "4 tests did not run: no C compiler (C: 3), no valgrind (cachegrind: 1): install gcc valgrind"
    assert done.returncode == 0 and done.stdout.count("did not run") == 1 and sentence in done.stdout
    both = run("-k", "count", NINE_CIRCLES_PASS="2").stdout
    assert "5 tests did not run: no C compiler (C: 3), no valgrind (cachegrind: 2): " in both
    strict = run(**{missing.SWITCH: "1"}).stdout
    assert "4 errors" in strict and "1 passed" in strict and "did not run" not in strict


@pytest.mark.skipif(os.name != "posix", reason="a PATH of links")
@pytest.mark.needs(*missing.PROGRAMS)
def test_without_each_tool_in_turn(tmp_path, monkeypatch):
    lacking = {
        "bubblewrap": (("bwrap",), "no bubblewrap (sandbox: 3)"),
        "chromium": (programs.BROWSERS, "no chromium (browser: 3)"),
        "valgrind": (("valgrind",), "no valgrind (cachegrind: 3)"),
        "c compiler": (("cc", "gcc", "clang"), "no C compiler (C: 3)"),
        "c++ compiler": (("c++", "g++", "clang++"), "no C++ compiler (C++: 3)"),
    }
    assert set(lacking) == set(missing.PROGRAMS)
    for place in filter(os.path.isdir, os.environ["PATH"].split(os.pathsep)):
        for name in set(os.listdir(place)) - set(os.listdir(tmp_path)):
            (tmp_path / name).symlink_to(os.path.join(place, name))
    for variable in ("PATH", "HOME", "PLAYWRIGHT_BROWSERS_PATH"):
        monkeypatch.setenv(variable, str(tmp_path))
    for tool, (names, said) in lacking.items():
        gone = {name: (tmp_path / name).readlink() for name in names if (tmp_path / name).is_symlink()}
        for name in gone:
            (tmp_path / name).unlink()
        missing.why_missing.cache_clear()
        assert missing.sentence(Counter({tool: 3})).startswith(f"3 tests did not run: {said}: ")
        assert [name for name in missing.PROGRAMS if missing.why_missing(name)] == [tool]
        for name, target in gone.items():
            (tmp_path / name).symlink_to(target)
    missing.why_missing.cache_clear()


def test_what_to_type(monkeypatch):
    here = {"dnf"}
    monkeypatch.setattr(programs.shutil, "which", lambda name, **_: name if name in here else None)
    monkeypatch.setattr(sys, "platform", "linux")
    counts = Counter({"chromium": 112, "bubblewrap": 300, "nvrtc": 1})
    assert missing.cure(sorted(counts)).startswith("sudo dnf install bubblewrap chromium; pip install -c con")
    here.clear()
    assert programs.cure("valgrind", "C++ compiler") == "install valgrind g++"
    monkeypatch.setattr(sys, "platform", "darwin")
    here.add("brew")
    assert programs.why_missing("bubblewrap") == "no bubblewrap (it is for Linux only)"
    assert programs.cure("bubblewrap") == ""
    assert programs.cure("bubblewrap", "C compiler") == "brew install gcc"
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
    for name in ("PATH", "HOME", "LOCALAPPDATA", "PROGRAMFILES(X86)"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.delenv("PLAYWRIGHT_BROWSERS_PATH", raising=False)
    for system, path in (
        ("linux", ".cache/ms-playwright/chromium-1187/chrome-linux64/chrome"),
        ("darwin", "Library/Caches/ms-playwright/chromium-1/chrome-mac/Chromium.app/Contents/MacOS/Chromium"),
        ("win32", "Microsoft/Edge/Application/msedge.exe"),
        ("win32", "ms-playwright/chromium-1187/chrome-win/chrome.exe"),
        *(("linux", name) for name in programs.BROWSERS),
    ):
        monkeypatch.setattr(sys, "platform", system)
        assert programs.browser() is None, path
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch(mode=0o755)
        assert programs.browser() == str(tmp_path / path)
        (tmp_path / path).unlink()
