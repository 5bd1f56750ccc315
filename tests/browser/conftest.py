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
from lab_pages import QUIET

from course_lib.measure import programs

ROOT = Path(__file__).resolve().parents[2]
START_LIMIT_S = 60.0
OF_THE_LEARNER = {"NINE_CIRCLES_HASTE": "1"}  # pages, not times, are looked at


def pytest_collection_modifyitems(items):
    """Whatever opens a page needs a browser."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.needs("chromium"))


class Lab:
    """A running JupyterLab that shows a copy of the notebooks: its autosave touches no file of ours."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder, self.home = folder, home
        self.port, self.token = free_port(), secrets.token_hex(16)
        options = f"--no-browser --port={self.port} --IdentityProvider.token={self.token}"
        self.started = time.monotonic()
        self._log = (home / "lab.log").open("w")
        self._process = subprocess.Popen(
            ["make", "lab", f"LAB_ARGS={options} --ServerApp.root_dir={folder}"],
            cwd=ROOT,
            env={
                **os.environ,
                "HOME": str(home),
                **OF_THE_LEARNER,
                "NINE_CIRCLES_HOME": str(home / "results"),
            },
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def url(self, notebook: str = "") -> str:
        """Return the address of a notebook, or the one that `make lab` opens the browser on."""
        place = f"/lab/tree/{notebook}?reset&" if notebook else "/?"
        return f"http://127.0.0.1:{self.port}{place}token={self.token}"

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


def show_every_cell(home: Path) -> None:
    """Let Lab keep all cells in the page: by default it drops those that are scrolled away."""
    settings = home / ".jupyter/lab/user-settings/@jupyterlab/notebook-extension/tracker.jupyterlab-settings"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"windowingMode": "none"}')


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    folder, home = tmp_path_factory.mktemp("course"), tmp_path_factory.mktemp("home")
    for part in ("notebooks", "exercises"):
        shutil.copytree(ROOT / part, folder / part)
    show_every_cell(home)
    server = Lab(folder, home)
    try:
        server.answered_s = server.wait()
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=programs.browser(), args=QUIET)
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
def pictures(tmp_path_factory):
    """Where screenshots go: $SCREENSHOTS if set, else a scratch folder of this run."""
    folder = Path(os.environ.get("SCREENSHOTS") or tmp_path_factory.mktemp("screenshots"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder
