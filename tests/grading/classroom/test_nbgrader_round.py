"""The whole round with nbgrader's exchange and its form grader: all of them know the same grades."""

import json
import os
import pwd
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from short_course import NAME, RIGHT, ROOT, WRONG, answered, hand_in, make_course

from course_lib.grading.classroom.run import Order, grade

ME = pwd.getpwuid(os.getuid()).pw_name  # whom the exchange takes the submission from
HALF = {"01-count-answer": RIGHT["01-count-answer"]}


@pytest.fixture(scope="module")
def course(tmp_path_factory) -> Path:
    """A course with nbgrader's configuration, an exchange and a student's folder beside it."""
    place = tmp_path_factory.mktemp("round")
    root = make_course(place / "course")
    shutil.copy(ROOT / "nbgrader_config.py", root)
    (place / "student").mkdir()
    (place / "exchange").mkdir()
    (place / "exchange").chmod(0o777)  # nbgrader insists
    return root


def environment() -> dict[str, str]:
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**os.environ, "PATH": programs}


def nbgrader(folder: Path, *words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", *words, f"--Exchange.root={folder.parent / 'exchange'}"],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.fixture(scope="module")
def graded(course) -> Path:
    """A class folder in which one submission came through the exchange and one from a folder."""
    student = course.parent / "student"
    nbgrader(course, "generate_assignment", NAME)
    nbgrader(course, "release_assignment", NAME)
    nbgrader(student, "fetch_assignment", NAME, "--course", "nine-circles")
    (student / NAME / f"{NAME}.ipynb").write_text(json.dumps(answered(course, HALF)))
    nbgrader(student, "submit", NAME, "--course", "nine-circles")
    nbgrader(course, "collect", NAME)
    grade(Order(course / "grading" / "submitted", course / "grading", course))
    return course


def test_feedback_goes_back_through_the_exchange(graded):
    student = graded.parent / "student"
    nbgrader(graded, "release_feedback", NAME)
    nbgrader(student, "fetch_feedback", NAME, "--course", "nine-circles")
    (page,) = (student / NAME / "feedback").rglob("*.html")
    (ours,) = (graded / "grading" / "feedback").rglob("*.html")
    assert page.read_bytes() == ours.read_bytes()
    assert "Count the operations" in page.read_text()


class FormGrader:
    """nbgrader's form grader on a real Jupyter server."""

    def __init__(self, course: Path, home: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self._token = secrets.token_hex(16)
        self._log = (home / "server.log").open("w+")
        words = [
            f"--port={self._port}",
            f"--IdentityProvider.token={self._token}",
            f"--ServerApp.root_dir={course}",
        ]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "jupyter", "server", "--no-browser", "--allow-root", *words],
            cwd=course,
            env={**environment(), "HOME": str(home), "JUPYTER_CONFIG_DIR": str(home)},
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        self._wait()

    def _wait(self) -> None:
        end = time.monotonic() + 60
        while time.monotonic() < end and self._process.poll() is None:
            try:
                self.get("/api/status")
                return
            except (OSError, urllib.error.URLError):
                time.sleep(0.2)
        self._log.seek(0)
        raise AssertionError(self._log.read()[-3000:])

    def get(self, path: str, method: str = "GET") -> str:
        address = f"http://127.0.0.1:{self._port}{path}"
        request = urllib.request.Request(
            address, method=method, headers={"Authorization": f"token {self._token}"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read().decode()

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(20)
        self._log.close()


@pytest.fixture(scope="module")
def form_grader(graded, tmp_path_factory):
    server = FormGrader(graded, tmp_path_factory.mktemp("home"))
    yield server
    server.stop()


def test_the_form_grader_shows_the_same_grades(graded, form_grader):
    hand_in(graded, graded.parent / "more", "bob", WRONG)
    hand_in(graded, graded.parent / "more", "cleo", b"no notebook at all")
    grade(Order(graded.parent / "more", graded / "grading", graded))
    shown = {
        one["student"]: one for one in json.loads(form_grader.get(f"/formgrader/api/submissions/{NAME}"))
    }
    assert {student: one["score"] for student, one in shown.items()} == {ME: 1.0, "bob": 0.0, "cleo": 0.0}
    assert {student: one["needs_manual_grade"] for student, one in shown.items()} == {
        ME: False,
        "bob": False,
        "cleo": True,
    }
    assert shown[ME]["autograded"]
    notebooks = json.loads(form_grader.get(f"/formgrader/api/submitted_notebooks/{NAME}/{NAME}"))
    page = form_grader.get(f"/formgrader/submissions/{next(one['id'] for one in notebooks if one['score'])}/")
    words = re.sub("<[^>]*>", "", page)
    assert "Count the operations" in words and "operations(M, K, N)" in words


def test_its_autograde_button_and_command_give_the_same_grades(graded, form_grader):
    path = f"/formgrader/api/submission/{NAME}/{ME}"
    said = json.loads(form_grader.get(f"{path}/autograde", method="POST"))
    assert said["success"], said
    assert json.loads(form_grader.get(path))["score"] == 1.0
    shutil.rmtree(graded / "grading" / "verdicts")  # now it has to judge itself
    nbgrader(graded, "autograde", NAME, "--student", ME, "--force")
    assert json.loads(form_grader.get(path))["score"] == 1.0
