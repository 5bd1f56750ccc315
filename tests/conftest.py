"""What every test shares: a private folder for the learner's files, so no test touches real results."""

import os

import pytest

MOST_WORKERS = 8


def pytest_xdist_auto_num_workers(config):
    """One worker more than cores: many a test waits for a process, a browser or a notebook."""
    return min((os.cpu_count() or 1) + 1, MOST_WORKERS)


@pytest.fixture(autouse=True)
def private_data_folder(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("nine-circles")
    monkeypatch.setenv("NINE_CIRCLES_HOME", str(folder))
    return folder
