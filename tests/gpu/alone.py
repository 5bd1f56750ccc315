"""Each test of the FP8 kernels in a process of its own: a kernel that hangs ends with it; the rest runs."""

import os
import subprocess
import sys
import tempfile

import pytest

CHILD = "NINE_CIRCLES_GPU_TEST_ALONE"  # set in that process
LIMIT_S = 5.0  # for what was started
SILENT_S = 30.0  # a case says its name, and takes less, compiling included


def done(limit_s: float = LIMIT_S) -> None:
    """Wait for the GPU; end the process at once if it hangs, for an orderly end would wait as well."""
    import torch

    from course_lib.fp8 import launch

    try:
        launch.finish(torch.device("cuda"), limit_s)
    except launch.Hangs as problem:
        launch.give_up(str(problem))


def run(test: pytest.Function) -> None:
    """Run a test in its own process; fails with the test's name, its last case and what was said of it."""
    options = ("-m", "gpu", "-vv", "-s", "-p", "no:cacheprovider")
    command = [sys.executable, "-m", "pytest", *options, test.nodeid]
    if words := last_words(command, test.config.rootpath):
        pytest.fail(f"{test.nodeid}, in a process of its own:\n{words}", pytrace=False)


def last_words(command: list[str], folder: os.PathLike, silent_s: float = SILENT_S) -> str:
    """Return the end of what a command said, "" if it succeeded; kills it if it says nothing for so long."""
    with tempfile.TemporaryFile("w+") as said:
        streams = {"stdout": said, "stderr": subprocess.STDOUT}
        child = subprocess.Popen(command, cwd=folder, env=os.environ | {CHILD: "1"}, **streams)
        size = -1
        while child.poll() is None:
            try:
                child.wait(silent_s)
            except subprocess.TimeoutExpired:
                before, size = size, os.fstat(said.fileno()).st_size
                if size == before:
                    child.kill()
                    child.wait(silent_s)
                    os.write(said.fileno(), f"Killed: it said nothing for {silent_s:g} s.\n".encode())
        said.seek(0)
        return "".join(said.readlines()[-40:]) if child.returncode else ""
