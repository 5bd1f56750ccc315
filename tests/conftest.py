"""What every test shares: private folders for the learner's files and for other programs' settings.

So no test touches real results, and none depends on what lies in somebody's home.
"""

import os
import tempfile
from pathlib import Path

import hypothesis
import pytest
from tools import missing

# How long an example takes says more about the machine's other guests than about the code.
hypothesis.settings.register_profile("course", deadline=None)
hypothesis.settings.load_profile("course")

MOST_WORKERS = 8
GPU_TESTS = Path(__file__).resolve().parent / "gpu"  # every test in it is marked so
NOT_RUN = "nine-circles/not-run"  # what the first pass of `make test` left out, for the second to tell
#: Files that take a minute and more: a worker that began one of them last would end alone.
LONG_FILES = (
    "test_chapters_run.py",
    "test_answers.py",
    "test_bootstrap.py",
    "test_whole_runs.py",
    "test_attack_suite.py",
    "test_assignments.py",
    "test_views_in_browser.py",
)


def pytest_configure(config):
    """Keep Matplotlib and IPython from the user's settings, and from a list of fonts that a program spoilt.

    Workers and kernels inherit the variables.
    """
    if hasattr(config, "workerinput"):
        return
    folder = tempfile.TemporaryDirectory(prefix="nine-circles-", ignore_cleanup_errors=True)
    config.add_cleanup(folder.cleanup)
    for variable in ("MPLCONFIGDIR", "IPYTHONDIR"):
        os.environ[variable] = str(Path(folder.name) / variable.lower())


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """One worker more than cores: many a test waits for a process, a browser or a notebook."""
    return min((os.cpu_count() or 1) + 1, MOST_WORKERS)


def pytest_ignore_collect(collection_path, config):
    """Pass over files with no test among those asked for: to read all takes its time."""
    chosen = config.option.markexpr
    if collection_path == GPU_TESTS:
        return "not gpu" in chosen or None
    if collection_path.suffix != ".py" or not chosen.startswith("timing and "):
        return None
    return "mark.timing" not in collection_path.read_text(encoding="utf-8") or None


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.name not in LONG_FILES)  # stable: else as they stand


@pytest.hookimpl(tryfirst=True)  # before a fixture starts what is not there
def pytest_runtest_setup(item):
    missing.stop_if_missing(item)


def pytest_terminal_summary(terminalreporter, config):
    """Name once what did not run for want of a tool; in the second pass of `make test`, for both passes."""
    counts = missing.count(terminalreporter.getreports("skipped"))
    the_pass = os.environ.get("NINE_CIRCLES_PASS")
    if the_pass == "1":
        config.cache.set(NOT_RUN, counts)
    elif the_pass == "2":
        counts.update(config.cache.get(NOT_RUN, {}))
    if counts:
        terminalreporter.section("not run")
        terminalreporter.line(missing.sentence(counts))


@pytest.fixture(autouse=True)
def private_data_folder(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("nine-circles")
    monkeypatch.setenv("NINE_CIRCLES_HOME", str(folder))
    return folder


@pytest.fixture(scope="module", autouse=True)
def late_imports(request):
    """What a file imports in a function `imports`: when its first test runs, for each worker collects all."""
    getattr(request.module, "imports", lambda: None)()


@pytest.fixture
def figures(monkeypatch):
    """The figures that are drawn: the words beside them are made, their pixels are not."""
    from course_lib.theme import Picture

    drawn = []

    def of(fig, alt):
        drawn.append(fig)
        return Picture(b"", alt, 0)

    monkeypatch.setattr(Picture, "of", of)
    return drawn
