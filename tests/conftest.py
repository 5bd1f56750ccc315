"""What every test shares: a private folder for the learner's files, so no test touches real results."""

import os

import pytest


def pytest_xdist_auto_num_workers(config):
    """One more than there are cores: many tests wait for a process of their own."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture(autouse=True)
def private_data_folder(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("nine-circles")
    monkeypatch.setenv("NINE_CIRCLES_HOME", str(folder))
    return folder
