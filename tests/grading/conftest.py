"""What the grading tests share: the solutions, a way to judge source text, and a tracer made ready once."""

import contextlib
import functools
import io
import os
import pickle
import time
from pathlib import Path

import pytest
from grading_tools import ASSIGNMENTS, answers_of, read_notebook, solution_path

from course_lib.grading import registry
from course_lib.grading.check import PUBLIC_SEED, examine
from course_lib.grading.runner import warm_up_tracer
from course_lib.grading.sandbox import bubblewrap, inside, process
from course_lib.grading.sources import load


@pytest.fixture(scope="session")
def solutions() -> dict[str, str]:
    """The text of all answers, by chapter."""
    return {chapter: answers_of(read_notebook(solution_path(chapter))) for chapter in ASSIGNMENTS}


@pytest.fixture
def judged():
    """judged("01.rows", source_text) -> the report on that answer."""

    def judge_text(id: str, text: str, seed: int = PUBLIC_SEED, entry: str | None = None):
        task = registry.task(id)
        return examine(task, load(text, entry or task.entry), seed)

    return judge_text


@pytest.fixture
def session():
    """session(cells) -> the names after cells have run in an IPython of their own, as in a notebook."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    shell = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))

    def run(cells):
        shell.user_ns.clear()  # shell.reset() takes half a second for all else that it does
        shell.user_ns["__name__"] = "__main__"
        shell.init_user_ns()
        shell.history_manager.reset()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            for text in cells:
                shell.run_cell(text, store_history=True)
        return shell.user_ns

    yield run
    shell.restore_sys_module_state()
    InteractiveShell.clear_instance()


@pytest.fixture(scope="session")
def form_of_grade_books():
    """For each new grade book nbgrader asks another process for the newest form of all: here, asked once."""
    from nbgrader import api

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(api, "get_alembic_version", functools.cache(api.get_alembic_version))
        yield


@pytest.fixture(scope="session")
def tracer_compiled(tmp_path_factory):
    """The tracer of the notebook, made ready: one of pytest's workers compiles it, the others load it."""
    _made_once(_common(tmp_path_factory) / "compiled.pickle", warm_up_tracer)
    warm_up_tracer()


@pytest.fixture(scope="session")
def tracer_ready(tmp_path_factory):
    """The machine code of the tracer, made in one clean sandbox for all processes of these tests.

    Each of pytest's workers would compile it anew, and each process without a sandbox.
    """
    files = _made_once(_common(tmp_path_factory) / "tracer.pickle", _made_in_a_sandbox)
    process._kept().update(files or {})
    inside.unpack(process._kept(), Path(bubblewrap._scratch()))


def _common(tmp_path_factory) -> Path:
    """Return a folder that all workers of this run know."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


def _made_in_a_sandbox() -> process.Files:
    with process.start(bubblewrap.Sandbox()) as first:
        process.make_ready(first)
    return dict(process._kept())


def _made_once(path: Path, make):
    """Return what is in the file; the first that comes makes it, the others wait for it, but not for ever."""
    try:
        os.close(os.open(path.with_suffix(".lock"), os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        end = time.monotonic() + process.READY_S
        while not path.exists() and time.monotonic() < end:
            time.sleep(0.1)
        return pickle.loads(path.read_bytes()) if path.exists() else None
    made = make()
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_bytes(pickle.dumps(made))
    unfinished.rename(path)
    return made
