"""What every test shares: a private folder for the learner's files, so no test touches real results."""

import pytest


@pytest.fixture(autouse=True)
def private_data_folder(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("nine-circles")
    monkeypatch.setenv("NINE_CIRCLES_HOME", str(folder))
    return folder
