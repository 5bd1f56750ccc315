"""A real JupyterLab, started the way `make lab` starts it, and a real browser before it."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
LEAVE_OUT = shutil.ignore_patterns(".git", ".venv*", ".pytest_cache", "grading", "*.egg-info")
START_LIMIT_S = 60.0


class Lab:
    """A running JupyterLab on a copy of the course, so that its autosave touches no file of the project."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder, self.home = folder, home
        self.port, self.token = free_port(), secrets.token_hex(16)
        self.started = time.monotonic()
        self._log = (home / "lab.log").open("w")
        options = f"--no-browser --port={self.port} --IdentityProvider.token={self.token}"
        self._process = subprocess.Popen(
            ["make", "lab", f"LAB_ARGS={options}"],
            cwd=folder,
            env={**os.environ, "HOME": str(home), "NINE_CIRCLES_HOME": str(home / "results")},
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def url(self, notebook: str) -> str:
        return f"http://127.0.0.1:{self.port}/lab/tree/{notebook}?token={self.token}&reset"

    def wait(self) -> float:
        """Wait until the server answers; return the seconds since it was started."""
        while time.monotonic() - self.started < START_LIMIT_S:
            assert self._process.poll() is None, self.log()
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api", timeout=2).close()
                return time.monotonic() - self.started
            except OSError:
                time.sleep(0.1)
        raise AssertionError(f"JupyterLab did not answer in {START_LIMIT_S} s:\n{self.log()}")

    def log(self) -> str:
        return (self.home / "lab.log").read_text()[-4000:]

    def stop(self) -> None:
        """End the server and its kernels, which live in the same process group."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self._process.pid, number)
                if number == signal.SIGINT:  # Lab asks for confirmation once and takes a second for yes
                    time.sleep(0.3)
                    os.killpg(self._process.pid, number)
                self._process.wait(10)
                break
            except (subprocess.TimeoutExpired, ProcessLookupError):
                continue
        self._log.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    folder = tmp_path_factory.mktemp("course") / "nine circles"
    shutil.copytree(
        ROOT, folder, ignore=lambda here, names: LEAVE_OUT(here, names) if here == str(ROOT) else []
    )
    (folder / ".venv").symlink_to(ROOT / ".venv", target_is_directory=True)
    server = Lab(folder, tmp_path_factory.mktemp("home"))
    try:
        server.wait()
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import sync_playwright

    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    assert chromium, "The browser tests need chromium on the PATH: install it (Debian: apt install chromium)."
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=QUIET)
        yield started
        started.close()


@pytest.fixture
def page(browser):
    context = browser.new_context(viewport={"width": 1280, "height": 1600}, device_scale_factor=1)
    page = context.new_page()
    page.set_default_timeout(30_000)
    yield page
    context.close()


@pytest.fixture(scope="session")
def pictures():
    """Where screenshots go: $SCREENSHOTS if set, else a scratch folder of this run."""
    folder = Path(os.environ.get("SCREENSHOTS") or "/tmp/nine-circles-screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
