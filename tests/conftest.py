"""What every test shares: a private folder for the learner's files, so no test touches real results."""

import os

import pytest

MOST_WORKERS = 8
#: Files that take a minute and more: a worker that began one of them last would end alone.
LONG_FILES = (
    "test_chapters_run.py",
    "test_answers.py",
    "test_bootstrap.py",
    "test_whole_runs.py",
    "test_kernel_attacks.py",
    "test_assignments.py",
    "test_gpu_tasks.py",
)


def pytest_xdist_auto_num_workers(config):
    """One worker more than cores: many a test waits for a process, a browser or a notebook."""
    return min((os.cpu_count() or 1) + 1, MOST_WORKERS)


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.name not in LONG_FILES)  # stable: else as they stand


@pytest.fixture(autouse=True)
def private_data_folder(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("nine-circles")
    monkeypatch.setenv("NINE_CIRCLES_HOME", str(folder))
    return folder
