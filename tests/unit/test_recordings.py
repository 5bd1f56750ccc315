"""Recordings of a GPU: what is written can be read, what makes no sense is refused, nothing is invented."""

import copy
import json
import math
import os
import subprocess
import sys
from argparse import ArgumentParser
from types import SimpleNamespace

import numpy as np
import pytest

from course_lib import ladder
from course_lib.circles.front_door import RungUnavailable
from course_lib.commands import record
from course_lib.measure import gpu_state, hardware, machine, recordings
from course_lib.measure.gpu_timing import Taken
from course_lib.measure.recordings import HidingPoint, MalformedRecording, Recording, Row

#: No measurement: figures made up for these tests, of a device that does not exist.
ROWS = (
    Row("cuda-naive", (256, 256, 256), 4e-4, 1e-5, 9, 3e-5, 2e-7),
    Row("cuda-2d", (256, 256, 256), 4e-5, 1e-6, 9, 3e-5, 2e-7, "64x64x8, 8x8 a thread"),
    Row("torch", (256, 256, 256), 2e-5, 1e-6, 9, 1e-5, 1e-7),
    Row("torch", (512, 512, 512), 1e-4, 1e-6, 9, 1e-5, 1e-7),
)
RECORDING = Recording(
    when="2020-02-03T04:05:06+00:00",
    commit="0123456789abcdef0123456789abcdef01234567",
    device="NVIDIA Test 9",
    compute_capability="9.9",
    memory_bytes=2**30,
    multiprocessors=7,
    driver="999.1",
    versions=dict.fromkeys(recordings.VERSIONS, "1.0"),
    state={**dict.fromkeys(recordings.STATES, (1.0, 2.0, 3.0)), "temperature_c": None},
    power_limit_w=None,
    highest_sm_mhz=2000.0,
    method="Made up.",
    rows=ROWS,
    latency_hiding=(HidingPoint(1, 1.0, 2e12), HidingPoint(1, 4.0, 8e12), HidingPoint(4, 1.0, 1e13)),
)


def changed(**fields):
    content = copy.deepcopy(json.loads(json.dumps(RECORDING.data())))
    content.update(fields)
    return content


def faults_of(folder) -> list[str]:
    """Return what is wrong with the files of a folder of recordings, a sentence for each."""
    found = []
    for path in sorted(folder.iterdir()):
        if path.suffix != ".json":
            continue
        try:
            recording = recordings.read(path)
        except MalformedRecording as problem:
            found.append(f"{path.name}: {problem}")
        else:
            found += [f"{path.name} is made up"] if "Test" in recording.device else []
    return found


def test_the_folder_of_the_package_has_true_recordings_only(tmp_path):
    assert (recordings.FOLDER / "README.md").is_file()  # it is the folder
    assert faults_of(recordings.FOLDER) == []
    real = recordings.restore(changed(device="NVIDIA Other"))
    path = recordings.write(real, tmp_path)
    assert faults_of(tmp_path) == [] and recordings.newest(folder=tmp_path) == real
    recordings.write(RECORDING, tmp_path)
    path.write_text(path.read_text().replace('"driver"', '"drover"'))
    assert len(faults_of(tmp_path)) == 2


def test_what_is_written_can_be_read(tmp_path):
    path = recordings.write(RECORDING, tmp_path / "new folder")
    assert path.name == "gpu-nvidia-test-9-20200203040506.json"
    assert recordings.read(path) == RECORDING
    assert path.stat().st_size < 10_000


def test_the_newest_of_a_device_is_found(tmp_path):
    assert recordings.newest(folder=tmp_path / "none") is None
    other = recordings.restore(changed(device="NVIDIA Other", when="2021-01-01T00:00:00+00:00"))
    late = recordings.restore(changed(when="2020-02-03T23:30:00-05:00"))  # the 4th in UTC
    for recording in (RECORDING, other, late):
        recordings.write(recording, tmp_path)
    assert recordings.newest(folder=tmp_path) == other
    assert recordings.newest("test", folder=tmp_path) == late
    assert recordings.newest("H200", folder=tmp_path) is None


def test_figures_follow_from_what_was_measured():
    row = RECORDING.row("cuda-2d", 256)
    assert row.tflops == pytest.approx(2 * 256**3 / 4e-5 / 1e12)
    assert RECORDING.share("cuda-2d", 256) == pytest.approx(0.5)
    assert RECORDING.share("torch", 512) == 1.0
    assert RECORDING.row("cuda-2d", 512) is None and RECORDING.share("cuda-2d", 512) is None
    assert RECORDING.sizes == (256, 512)


def test_the_table_says_where_it_comes_from():
    text = str(RECORDING.table(256))
    assert "recorded on an NVIDIA Test 9 (driver 999.1) on 2020-02-03" in text and "Made up." in text
    line = next(line for line in text.splitlines() if line.startswith("cuda-2d"))
    assert line.split() == ["cuda-2d", "40.0", "±", "1.0", "0.839", "0.500", "2.0e-07", "30.0"]
    with pytest.raises(ValueError, match=r"Size 300 was not recorded; 256, 512 were\."):
        RECORDING.table(300)


@pytest.mark.parametrize("field", [name for name in RECORDING.data() if name not in ("kind", "format")])
def test_a_field_that_is_missing_is_named(field):
    content = changed()
    del content[field]
    with pytest.raises(MalformedRecording, match=f"'{field}' is missing"):
        recordings.restore(content)


ROW = RECORDING.data()["rows"][0]
BAD = {
    "another kind": (changed(kind="weather"), "does not say 'kind'"),
    "another format": (changed(format=2), "'format': 1"),
    "a list": ([], "does not say 'kind'"),
    "no rows": (changed(rows=[]), "it has no rows"),
    "rows of text": (changed(rows=["fast"]), "in row 1, it is no object"),
    "no time zone": (changed(when="2020-02-03T04:05:06"), "no date and time with a time zone"),
    "no date": (changed(when="yesterday"), "no date and time"),
    "short commit": (changed(commit="0123456"), "no full git commit"),
    "empty driver": (changed(driver=" "), "'driver' is empty"),
    "versions missing": (changed(versions={"python": "3"}), "'numpy' is missing"),
    "clocks as text": (changed(state={**RECORDING.state, "sm_mhz": ["a", "b", "c"]}), "'sm_mhz' is 'a'"),
    "clocks unordered": (changed(state={**RECORDING.state, "sm_mhz": [3, 1, 2]}), "not the lowest"),
    "no power": (changed(power_limit_w=0), "'power_limit_w' is 0, which cannot be"),
    "seconds zero": (changed(rows=[{**ROW, "seconds": 0}]), "in row 1, 'seconds' is 0"),
    "seconds nan": (changed(rows=[{**ROW, "seconds": math.nan}]), "in row 1, 'seconds' is nan"),
    "seconds true": (changed(rows=[ROW, {**ROW, "seconds": True}]), "in row 2, 'seconds' is True"),
    "error negative": (changed(rows=[{**ROW, "error": -1}]), "'error' is -1"),
    "hiding as text": (changed(latency_hiding=["fast"]), "'latency_hiding' has 'fast'"),
    "hiding without warps": (changed(latency_hiding=[{"chains": 1, "fma_per_s": 1}]), "'warps' is missing"),
    "shape of two": (changed(rows=[{**ROW, "shape": [2, 2]}]), "not three positive whole numbers"),
    "shape of halves": (changed(rows=[{**ROW, "shape": [2, 2, 0.5]}]), "not three positive whole numbers"),
    "samples broken": (changed(rows=[{**ROW, "samples": 2.5}]), "'samples' is 2.5, not a whole number"),
    "a row twice": (changed(rows=[ROW, ROW]), "'cuda-naive' stands there twice for 256 x 256 x 256"),
    "rung missing": (changed(rows=[{k: v for k, v in ROW.items() if k != "rung"}]), "'rung' is missing"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_malformed_file_is_refused_in_a_sentence(case, tmp_path):
    content, words = BAD[case]
    path = tmp_path / "odd.json"
    path.write_text(json.dumps(content))
    with pytest.raises(MalformedRecording) as caught:
        recordings.newest(folder=tmp_path)
    message = str(caught.value)
    assert message.startswith("odd.json is no recording: ") and words in message
    assert "\n" not in message and message.endswith(".")


def test_latency_hiding_is_given_as_shares_of_the_highest_rate():
    found = RECORDING.hiding()
    assert list(found.values()) == [{1.0: 0.2, 4.0: 0.8}, {1.0: 1.0}]
    one, four = found
    assert one.startswith("1 sum of FMAs") and "4 sums" in four and "recorded on an NVIDIA Test 9" in four


def test_what_is_not_json_is_refused_in_a_sentence(tmp_path):
    (tmp_path / "half.json").write_text('{"kind": "gpu"')
    with pytest.raises(MalformedRecording, match=r"half\.json is no recording: it is not JSON"):
        recordings.newest(folder=tmp_path)


def test_nothing_is_written_that_could_not_be_read(tmp_path):
    with pytest.raises(MalformedRecording, match="'device' is empty"):
        recordings.write(recordings.Recording(**{**vars(RECORDING), "device": ""}), tmp_path)
    assert list(tmp_path.iterdir()) == []


# -- the command -------------------------------------------------------------------------------------------


def command(*options):
    parser = ArgumentParser()
    record.add_arguments(parser)
    return record.run(parser.parse_args(list(options)))


COMMIT = ("--commit", RECORDING.commit)


def test_without_a_gpu_it_is_one_sentence(capsys, monkeypatch):
    monkeypatch.setattr(machine, "missing", lambda need: f"No {need} here.")
    assert command("--gpu", *COMMIT) == 2
    assert capsys.readouterr().out == "record: No cuda here.\n"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "say --gpu"),
        (("--gpu", "--sizes", "256", "0"), "--sizes has 0"),
        (("--gpu", "--rounds", "2"), "--rounds is 2"),
        (("--gpu", "--budget", "nan"), "--budget is nan"),
        (("--gpu", "--commit", "main"), "the commit is 'main'"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, words, capsys):
    assert command(*options) == 2
    said = capsys.readouterr().out
    assert words in said and said.startswith("record: ") and said.count("\n") == 1


def test_nothing_is_recorded_in_haste(monkeypatch, capsys):
    monkeypatch.setenv("NINE_CIRCLES_HASTE", "1")
    assert command("--encoder") == 2
    assert capsys.readouterr().out == (
        "record: NINE_CIRCLES_HASTE is set, but a recording must be measured with patience: unset it.\n"
    )


def rung(id, multiply):
    """A rung that looks like one for a GPU and runs on the CPU."""

    def start(A, B, C):
        C.copy_(multiply(A, B))

    return SimpleNamespace(id=id, module=lambda: SimpleNamespace(start=start))


def counted(functions):
    for function in functions.values():
        function()
    return {name: Taken([0.3, 0.1, 0.2], [0.01, 0.03, 0.02]) for name in functions}


def test_every_rung_gets_a_row_of_medians():
    rungs = [rung("cuda-a", lambda A, B: A @ B), rung("torch", lambda A, B: A @ B)]
    rows = record.measure(rungs, 40, counted, "cpu")
    assert [row.rung for row in rows] == ["cuda-a", "torch"]
    for row in rows:
        assert (row.seconds, row.spread_s, row.samples) == (0.2, pytest.approx(0.05), 3)
        assert (row.call_s, row.shape, row.tile) == (0.02, (40, 40, 40), "")
        assert 0 < row.error < 1e-6


def rounded_to_tf32(X):
    """float32 with 10 bits after the point."""
    bits = X.numpy().view(np.int32)
    return X.new_tensor(((bits + 0x1000) & ~0x1FFF).view(np.float32))


@pytest.mark.parametrize(
    "multiply",
    [
        lambda A, B: rounded_to_tf32(A) @ rounded_to_tf32(B),
        lambda A, B: (A @ B).index_fill(0, A.new_zeros(1, dtype=int), math.nan),
        lambda A, B: (A @ B).t(),
    ],
    ids=["TF32", "a row is missing", "transposed"],
)
def test_a_wrong_product_is_not_recorded(multiply):
    with pytest.raises(record.Wrong, match="'cuda-a' is wrong at 256 x 256: it is off by") as caught:
        record.measure([rung("cuda-a", multiply)], 256, counted, "cpu")
    assert "\n" not in str(caught.value)


def test_the_whole_way_from_measuring_to_the_file(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(machine, "missing", lambda need: None)
    monkeypatch.setattr(record, "measured", lambda *options: RECORDING)
    assert command("--gpu", "--folder", str(tmp_path), *COMMIT) == 0
    assert recordings.newest(folder=tmp_path) == RECORDING
    said = capsys.readouterr().out
    assert "x cuBLAS" in said and "Written to" in said

    def wrong(*options):
        raise record.Wrong("'cuda-1d' is wrong.")

    monkeypatch.setattr(record, "measured", wrong)
    assert command("--gpu", "--folder", str(tmp_path), *COMMIT) == 1
    assert capsys.readouterr().out == "record: 'cuda-1d' is wrong.\n"


@pytest.mark.parametrize("problem", [MemoryError("too little."), RungUnavailable("an old driver.")])
def test_what_the_gpu_lacks_is_one_sentence(monkeypatch, capsys, problem):
    def lacking(*options):
        raise problem

    monkeypatch.setattr(machine, "missing", lambda need: None)
    monkeypatch.setattr(record, "measured", lacking)
    assert command("--gpu", *COMMIT) == 2
    assert capsys.readouterr().out == f"record: {problem}\n"


def test_memory_for_the_largest_size_is_asked_before_the_first():
    record.check_memory((256, 8192), rungs=8, free=80 * 8192**2)
    with pytest.raises(MemoryError, match=r"has 5 GiB .* 8192 x 8192 needs about 5 GiB: give smaller"):
        record.check_memory((8192, 256), rungs=8, free=80 * 8192**2 - 1)


def test_a_device_gets_its_article():
    said = [recordings.restore(changed(device=name)).origin for name in ("NVIDIA T4", "Tesla T4", "A100")]
    assert [origin.split()[2:4] for origin in said] == [["an", "NVIDIA"], ["a", "Tesla"], ["an", "A100"]]


def test_a_folder_that_cannot_be_written_is_said(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(machine, "missing", lambda need: None)
    monkeypatch.setattr(record, "measured", lambda *options: RECORDING)
    (tmp_path / "file").write_text("")
    assert command("--gpu", "--folder", str(tmp_path / "file"), *COMMIT) == 1
    assert "see --folder" in capsys.readouterr().out


def test_every_rung_for_a_gpu_can_be_recorded():
    rungs = [entry for entry in ladder.LADDER if "cuda" in entry.requires]
    assert [entry.id for entry in rungs][-1] == recordings.BASELINE and len(rungs) == 8
    assert all(callable(entry.module().start) for entry in rungs)


BARE = """
import sys

NOT_THERE = "ipywidgets IPython jupyterlab jupytext nbformat greenlet platformdirs matplotlib".split()

class Refuses:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in NOT_THERE:
            raise ImportError(name + " is not on this machine")

sys.meta_path.insert(0, Refuses())
from course_lib import ladder
from course_lib.__main__ import main
from course_lib.measure import device_code, gpu_state, gpu_timing, recordings, store
for entry in ladder.LADDER:
    if "cuda" in entry.requires:
        entry.module()
print(store.data_dir())
sys.exit(main(["record"]))
"""


def test_a_bare_gpu_machine_has_all_that_recording_needs():
    """No notebooks, no plots, no platformdirs: the figures come from such a machine (it has psutil and
    threadpoolctl, as the course's dependencies bring them)."""
    environment = {name: value for name, value in os.environ.items() if name != "NINE_CIRCLES_HOME"}
    done = subprocess.run([sys.executable, "-c", BARE], capture_output=True, text=True, env=environment)
    assert (done.stderr, done.returncode) == ("", 2)
    assert ".nine-circles-of-matmul" in done.stdout and "say --gpu" in done.stdout


# -- what nvidia-smi tells ---------------------------------------------------------------------------------


def test_the_state_is_the_range_of_what_was_said(monkeypatch):
    said = iter([["1980", "3201", "[N/A]", "40"], [], ["1755", "3201", "[N/A]", "46"]])
    monkeypatch.setattr(hardware, "nvidia_smi", lambda fields: next(said, []))
    monkeypatch.setattr(gpu_state, "PERIOD_S", 0.001)
    watch = gpu_state.Watch()
    assert watch.latest() == dict.fromkeys(recordings.STATES)
    with watch:
        watch._over.wait(0.1)
        said_before = len(watch._samples)
    with watch:
        watch._over.wait(0.1)
    assert said_before and watch.ranges() == {
        "sm_mhz": (1755.0, 1867.5, 1980.0),
        "memory_mhz": (3201.0, 3201.0, 3201.0),
        "power_w": None,
        "temperature_c": (40.0, 43.0, 46.0),
    }


def test_the_latest_state_is_that_of_the_last_block(monkeypatch):
    watch = gpu_state.Watch()
    for clock in ("1980", "1755"):
        monkeypatch.setattr(hardware, "nvidia_smi", lambda fields, now=clock: [now, "3201", "[N/A]", "40"])
        with watch:
            watch._over.wait(0.1)
    assert watch.latest()["sm_mhz"] == (1755.0,) * 3 and watch.latest()["power_w"] is None
    assert watch.ranges()["sm_mhz"][2] == 1980.0


def test_a_state_that_nobody_told_is_not_known(monkeypatch):
    monkeypatch.setattr(hardware, "nvidia_smi", lambda fields: [])
    with gpu_state.Watch() as watch:
        pass
    assert watch.ranges() == dict.fromkeys(recordings.STATES)
    assert gpu_state.limits() == (None, None)
    monkeypatch.setattr(hardware, "nvidia_smi", lambda fields: ["700.00", "[N/A]"])
    assert gpu_state.limits() == (700.0, None)
