"""The store keeps its promises: atomic, nothing lost, nothing dropped, said once when it cannot write."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
import warnings

import pytest

from course_lib.measure.store import HOME_VARIABLE, Store, StoreNotice


def put(key, value):
    return lambda values: values.__setitem__(key, value)


@pytest.fixture
def path(private_data_folder):
    return private_data_folder / "ladder.json"


def damaged_files(path):
    return sorted(path.parent.glob("ladder.damaged-*.json"))


def test_a_damaged_file_is_set_aside_and_never_dropped(path):
    for content in [
        b"",
        b'{"format": 1, "values": {"a": 1}',  # cut off
        b"\xff\xfe\x00not text",
        b'{"format": 99, "values": {}}',
        b'{"format": 1, "values": [1]}',
        b"[" * 100_000,  # nested too deeply for Python's JSON reader
    ]:
        path.write_bytes(content)
        with pytest.warns(StoreNotice, match="damaged"):
            assert Store("ladder").read() == {}, content
        assert path.read_bytes() == content, content  # a reader holds no lock and touches nothing
        with pytest.warns(StoreNotice, match="set aside as ladder.damaged-"):
            Store("ladder").update(put("a", 1))
        assert Store("ladder").read() == {"a": 1}, content
        assert content in [aside.read_bytes() for aside in damaged_files(path)]  # several a second, too


def test_a_folder_that_cannot_be_made_is_said_once_and_values_live_on(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "file" / "folder"))
    store = Store("ladder")
    with pytest.warns(StoreNotice, match="cannot be written") as notices:
        store.update(put("a", 1))
        store.update(put("b", 2))
    assert len([n for n in notices if "cannot be written" in str(n.message)]) == 1
    assert store.read() == {"a": 1, "b": 2}


def test_a_full_disk_keeps_the_old_file_and_runs_the_change_once(path, monkeypatch):
    store = Store("ladder")
    store.update(put("old", 1))
    before = path.read_bytes()

    def no_space(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    calls = []
    with pytest.warns(StoreNotice, match="No space left"):
        store.update(lambda values: (calls.append(1), values.update(new=2)))
    assert calls == [1]
    assert path.read_bytes() == before
    assert store.read() == {"old": 1, "new": 2}
    assert not list(path.parent.glob("*.unfinished"))


def _count_up(name, times):
    for number in range(times):
        Store("ladder").update(put(f"{name}-{number}", number))
        Store("ladder").update(lambda values: values.update(total=values.get("total", 0) + 1))


def test_two_processes_with_200_updates_each_lose_nothing(path):
    context = multiprocessing.get_context("spawn")
    crew = [context.Process(target=_count_up, args=(name, 100)) for name in ("left", "right")]
    for member in crew:
        member.start()
    for member in crew:
        member.join(60)
    assert [member.exitcode for member in crew] == [0, 0]
    values = Store("ladder").read()
    assert values["total"] == 200
    assert os.name != "posix" or path.stat().st_mode & 0o077 == 0  # nobody else reads a learner's answers
    assert sum(name.startswith(("left-", "right-")) for name in values) == 200


WRITER = """
import sys
from course_lib.measure.store import Store
print("started", flush=True)
while True:
    Store("ladder").update(lambda values: values.update(n=values.get("n", 0) + 1, filling=["x" * 1000] * 200))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="kills with a signal")
def test_killing_a_writer_leaves_a_whole_file_and_no_lock(path):
    reached = 0
    for left in (".ladder.json.unfinished", ".ladder.json.0a.unfinished"):
        (path.parent / left).touch(0o644)
    for delay in (0.05, 0.11, 0.17):
        writer = subprocess.Popen([sys.executable, "-c", WRITER], stdout=subprocess.PIPE)
        writer.stdout.readline()
        time.sleep(delay)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # no notice: the file is whole
            values = Store("ladder").update(lambda values: None)
        assert values.get("n", 0) >= reached
        reached = values.get("n", 0)
    assert reached > 0
    assert sorted(os.listdir(path.parent)) == ["ladder.json", "ladder.json.lock"]  # what was left is cleared
