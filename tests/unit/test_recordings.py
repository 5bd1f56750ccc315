"""Recordings of a GPU: what is written can be read, what makes no sense is refused, nothing is invented."""

import copy
import json
import math
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from course_lib.__main__ import main
from course_lib.measure import machine

COMMIT = ("--commit", "0123456789abcdef0123456789abcdef01234567")


@pytest.fixture(scope="module")
def recordings():
    from course_lib.measure import recordings

    return recordings


@pytest.fixture(scope="module")
def recording(recordings):
    """No measurement: figures made up for these tests, of a device that does not exist."""
    from course_lib.measure.gpu_state import STATES, RecordedGpu
    from course_lib.measure.recordings import HidingPoint, RungRow

    return recordings.Recording(
        when="2020-02-03T04:05:06+00:00",
        commit=COMMIT[1],
        device="NVIDIA Test 9",
        memory_bytes=2**30,
        gpu=RecordedGpu("999.1", "9.0", "13.0", 7, dict.fromkeys(STATES, (1.0, 2.0, 3.0)), None, 2000.0),
        versions=dict.fromkeys(recordings.VERSIONS, "1.0"),
        method="Made up.",
        rows=(
            RungRow("cuda-naive", (256, 256, 256), 4e-4, 1e-5, 9, 3e-5, 2e-7),
            RungRow("cuda-2d", (256, 256, 256), 4e-5, 1e-6, 9, 3e-5, 2e-7, "64x64x8, 8x8 a thread"),
            RungRow("torch", (256, 256, 256), 2e-5, 1e-6, 9, 1e-5, 1e-7),
            RungRow("torch", (512, 512, 512), 1e-4, 1e-6, 9, 1e-5, 1e-7),
        ),
        latency_hiding=(HidingPoint(1, 1.0, 2e12), HidingPoint(1, 4.0, 8e12), HidingPoint(4, 1.0, 1e13)),
    )


@pytest.fixture(scope="module")
def changed(recordings, recording):
    """What makes the content of the recording's file, with other fields and other fields in its first row."""

    def content(row=None, **fields):
        found = copy.deepcopy(json.loads(json.dumps(recordings.FILES.data(recording))))
        found["rows"][0].update(row or {})
        return {**found, **fields}

    return content


# -- files -------------------------------------------------------------------------------------------------


def test_the_folders_of_the_package_have_true_recordings_only(recordings):
    from course_lib.fp8 import recordings as hopper

    for module in (recordings, hopper):
        assert (module.FOLDER / "README.md").is_file()  # it is the folder
        assert all("Test" not in module.read(path).device for path in module.FOLDER.glob("*.json"))


def test_a_share_of_the_peak_is_that_at_the_highest_clock(recording):
    peak = 2 * 128 * 7 * 2000e6  # FLOP/s: seven multiprocessors of 128 FMAs a cycle
    assert recording.of_peak("torch", 512) == pytest.approx(2 * 512**3 / 1e-4 / peak)
    assert recording.of_peak("torch", 1024) is None and recording.counted("torch") is None


def test_what_is_written_can_be_read_and_the_newest_is_found(recordings, recording, changed, tmp_path):
    assert recordings.newest(folder=tmp_path / "none") is None
    path = recordings.write(recording, tmp_path / "new folder")
    assert path.name == "gpu-nvidia-test-9-20200203040506.json"
    assert recordings.read(path) == recording and path.stat().st_size < 10_000
    other = recordings.restore(changed(device="NVIDIA Other", when="2021-01-01T00:00:00+00:00"))
    late = recordings.restore(changed(when="2020-02-03T23:30:00-05:00"))  # the 4th in UTC
    for one in (recording, other, late):
        recordings.write(one, tmp_path)
    assert recordings.newest(folder=tmp_path) == other
    assert recordings.newest("test", folder=tmp_path) == late
    assert recordings.newest("H200", folder=tmp_path) is None


def test_a_malformed_file_is_refused_in_a_sentence_that_says_what_is_wrong(
    recordings, recording, changed, tmp_path
):
    row, gpu = changed()["rows"][0], changed()["gpu"]
    path = tmp_path / "odd.json"
    for content, words in (
        ({name: value for name, value in changed().items() if name != "device"}, "'device' is missing"),
        (changed(format=2), "it does not say 'kind': 'gpu' and 'format': 1"),
        (changed(when="2020-02-03T04:05:06"), "it must be a date and time with a time zone"),
        (changed(commit="0123456"), "'commit' is '0123456', but it must be a full git commit"),
        (
            changed(gpu={**gpu, "state": {**gpu["state"], "sm_mhz": [3, 1, 2]}}),
            "it must be the lowest, the m",
        ),
        (changed({"seconds": math.nan}), "'rows, no. 1: seconds' is nan, but it must be a number above 0"),
        (changed(versions={"4": ""}), "'versions: 4' is '', but it must be a text that is not empty"),
        (changed(rows=[row, row]), "'cuda-naive at 256 x 256 x 256' stands there twice"),
        ('{"kind": "gpu"', "it is not JSON"),
    ):
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        with pytest.raises(recordings.MalformedRecording) as caught:
            recordings.newest(folder=tmp_path)
        message = str(caught.value)
        assert message.startswith("odd.json is no recording: ") and words in message
        assert "\n" not in message and message.endswith(".")


def test_figures_follow_from_what_was_measured(recordings, recording, changed):
    row = recording.row("cuda-2d", 256)
    assert row.tflops == pytest.approx(2 * 256**3 / 4e-5 / 1e12)
    assert recording.share("cuda-2d", 256) == pytest.approx(0.5)
    assert recording.share("torch", 512) == 1.0
    assert recording.row("cuda-2d", 512) is None and recording.share("cuda-2d", 512) is None
    assert recording.sizes == (256, 512)
    one, four = recording.hiding()  # shares of the highest rate
    assert list(recording.hiding().values()) == [{1.0: 0.2, 4.0: 0.8}, {1.0: 1.0}]
    assert one.startswith("1 sum of FMAs") and "4 sums" in four and "recorded on an NVIDIA Test 9" in four


# -- the command -------------------------------------------------------------------------------------------


def command(*options):
    return main(["record", *options])


def test_what_cannot_be_recorded_is_one_sentence(capsys, monkeypatch):
    monkeypatch.setattr(machine, "missing", lambda need: f"No {need} here.")
    hasty = "NINE_CIRCLES_HASTE is set, but a recording must be measured with patience: unset it"
    for options, words in (
        (("--gpu", "--rounds", "2"), "--rounds is 2"),
        (("--gpu", "--commit", "main"), "the commit is 'main'"),
        (("--gpu", *COMMIT), "No cuda here."),
        (("--encoder",), hasty),
    ):
        if words == hasty:
            monkeypatch.setenv("NINE_CIRCLES_HASTE", "1")
        assert command(*options) == 2
        printed = capsys.readouterr().out
        assert words in printed and printed.startswith("record: ") and printed.count("\n") == 1, words


def rung(id, multiply):
    """A rung that looks like one for a GPU and runs on the CPU."""

    def start(A, B, C):
        C.copy_(multiply(A, B))

    return SimpleNamespace(id=id, module=lambda: SimpleNamespace(start=start))


def counted(functions):
    from course_lib.measure.gpu_timing import Taken

    for function in functions.values():
        function()
    return {name: Taken([0.3, 0.1, 0.2], [0.01, 0.03, 0.02]) for name in functions}


def rounded_to_tf32(X):
    """float32 with 10 bits after the point."""
    bits = X.numpy().view(np.int32)
    return X.new_tensor(((bits + 0x1000) & ~0x1FFF).view(np.float32))


def test_a_wrong_product_is_not_recorded():
    from course_lib.commands import record

    wrong = {
        "TF32": lambda A, B: rounded_to_tf32(A) @ rounded_to_tf32(B),
        "a row is missing": lambda A, B: (A @ B).index_fill(0, A.new_zeros(1, dtype=int), math.nan),
        "transposed": lambda A, B: (A @ B).t(),
    }
    for what, multiply in wrong.items():
        with pytest.raises(
            record.WrongResult, match="'cuda-a' is wrong at 256 x 256: it is off by"
        ) as caught:
            record.measure([rung("cuda-a", multiply)], 256, counted, "cpu")
        assert "\n" not in str(caught.value), what


def test_the_whole_way_from_measuring_to_the_file(recordings, recording, monkeypatch, tmp_path, capsys):
    from course_lib.commands import record

    monkeypatch.setattr(machine, "missing", lambda need: None)
    monkeypatch.setattr(record, "measured", lambda *options: recording)
    assert command("--gpu", "--folder", str(tmp_path), *COMMIT) == 0
    assert recordings.newest(folder=tmp_path) == recording
    printed = capsys.readouterr().out
    assert "x cuBLAS" in printed and "Written to" in printed
    assert "recorded on an NVIDIA Test 9 (driver 999.1) on 2020-02-03" in printed
    (tmp_path / "file").write_text("")
    assert command("--gpu", "--folder", str(tmp_path / "file"), *COMMIT) == 1
    assert "see --folder" in capsys.readouterr().out


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
sys.exit(main(["record", "--gpu", "--rounds", "2"]))
"""


def test_a_bare_gpu_machine_has_all_that_recording_needs():
    """No notebooks, no plots, no platformdirs: the figures come from such a machine (it has psutil and
    threadpoolctl, as the course's dependencies bring them)."""
    environment = {name: value for name, value in os.environ.items() if name != "NINE_CIRCLES_HOME"}
    done = subprocess.run([sys.executable, "-c", BARE], capture_output=True, text=True, env=environment)
    assert (done.stderr, done.returncode) == ("", 2)
    assert ".nine-circles-of-matmul" in done.stdout and "--rounds is 2" in done.stdout
