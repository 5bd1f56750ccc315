"""Recordings of the encoder: one made here with a tiny encoder, read back, and broken in every way."""

import json
import math
from dataclasses import replace

import pytest

from course_lib.__main__ import main
from course_lib.measure import machine
from course_lib.measure.gpu_state import STATES, RecordedGpu
from course_lib.measure.recording_files import MalformedRecording
from course_lib.speech import encoder_recordings, encoder_speed
from course_lib.speech.encoder_speed import SpeedPoint
from course_lib.speech.encoder_variants import Setting

COMMIT = "0123456789abcdef0123456789abcdef01234567"
GPU = RecordedGpu("999.1", "9.9", "13.0", 7, dict.fromkeys(STATES, (1.0, 2.0, 3.0)), None, 2000.0)


def imports():
    global record_encoder, CannotRecord, RecordOrder, WrongResult
    from course_lib.commands import record_encoder
    from course_lib.commands.record_order import CannotRecord, RecordOrder, WrongResult


@pytest.fixture(scope="module")
def made():
    """A recording of this machine as the command makes it, its times made up."""

    def quick_points(encoder, settings, budget_s, skip):
        skip("torch.compile needs a C++ compiler here.")
        return [SpeedPoint(setting, 0.1 + 0.01 * setting.audio_s, 0.001, 3, 0.0) for setting in settings]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_encoder, "measure", quick_points)
        recording = record_encoder.measured(RecordOrder(small=True, commit=COMMIT))
        patch.setattr(record_encoder, "measure", lambda *settings, **options: [])
        with pytest.raises(CannotRecord, match="none of the settings"):
            record_encoder.measured(RecordOrder(small=True, commit=COMMIT))
    return recording


def on_gpu(recording):
    points = tuple(
        replace(point, setting=point.setting.but(device="cuda", threads=1), busy_s=0.05)
        for point in recording.points
        if point.setting.threads == recording.cores
    )
    return replace(recording, device_kind="cuda", device="NVIDIA Test 9", gpu=GPU, points=points)


def test_a_recording_says_what_was_measured_where(made):
    here = machine.describe()
    assert (made.device, made.cores, made.simd) == (here.cpu, here.cores, here.simd)
    assert made.device_kind == "cpu" and made.gpu is None and made.memory_bytes == here.memory_bytes
    assert made.versions.keys() == set(encoder_recordings.VERSIONS)
    assert made.origin.startswith("recorded on a") and here.cpu in made.origin
    assert made.origin.endswith(f"on {made.when[:10]}")
    assert made.forwards == 2 and 2 < made.audio_s < 10 and not made.is_large
    names = {row.name: row for row in made.profile}
    assert names["aten::bmm"].calls == 2 * 2 * 3 and names["aten::addmm"].flops > 0
    assert [point.setting for point in made.points] == encoder_speed.grid("cpu", small=True)
    assert made.notes == ("torch.compile needs a C++ compiler here.",)


def test_what_is_written_can_be_read_and_the_newest_is_found(made, tmp_path):
    path = encoder_recordings.write(made, tmp_path / "new")
    assert path.name.startswith("encoder-") and path.stat().st_size < 50_000
    assert encoder_recordings.read(path) == made
    assert encoder_recordings.newest("cpu", tmp_path / "new") is None  # it is not the large encoder
    large = replace(made, parameters=encoder_recordings.LARGE_PARAMETERS)
    late, gpu = replace(large, when="2090-01-01T00:00:00+00:00"), on_gpu(large)
    for recording in (made, large, late, gpu):
        device = f"{recording.device} {recording.parameters}"
        encoder_recordings.write(replace(recording, device=device), tmp_path)
    assert encoder_recordings.newest(folder=tmp_path).when == late.when
    assert encoder_recordings.newest("cuda", tmp_path).gpu == GPU
    assert encoder_recordings.newest("cuda", tmp_path / "none") is None
    assert gpu.origin == f"recorded on an NVIDIA Test 9 (driver 999.1) on {made.when[:10]}"
    with pytest.raises(ValueError, match="device_kind is 'gpu', but it must be one of 'cpu', 'cuda'"):
        encoder_recordings.newest("gpu", tmp_path)


def test_the_folder_of_the_package_has_true_recordings_only():
    assert (encoder_recordings.FOLDER / "README.md").is_file()
    for path in encoder_recordings.FOLDER.glob("*.json"):
        recording = encoder_recordings.read(path)
        assert recording.is_large and not recording.commit.endswith("+changes") and recording.forwards == 64
        data = encoder_recordings.FILES.data(recording)
        assert json.loads(json.dumps(data)) == json.loads(path.read_text())


def test_a_malformed_file_is_refused_in_a_sentence(made, tmp_path):
    whole = json.loads(json.dumps(encoder_recordings.FILES.data(made)))
    setting = whole["points"][0]["setting"]

    def first(part, **fields):
        return whole | {part: [whole[part][0] | fields, *whole[part][1:]]}

    for content, words in (
        (whole | {"device_kind": "cuda"}, "'cuda' and 'gpu' is None"),
        (first("points", error=math.nan), "'points, no. 1: error' is nan"),
        (first("points", setting=setting | {"dtype": "float8"}), "dtype is 'float8'"),
        (first("points", setting=whole["points"][1]["setting"]), "stands there twice"),
        (first("points", setting=setting | {"device": "cuda"}), "of another device"),
        (first("profile", kind="thing"), "'profile, no. 1: kind' is 'thing'"),
    ):
        (tmp_path / "odd.json").write_text(json.dumps(content))
        with pytest.raises(MalformedRecording) as caught:
            encoder_recordings.newest(folder=tmp_path)
        message = str(caught.value)
        assert message.startswith("odd.json is no recording: ") and words in message
        assert "\n" not in message


# -- the command -------------------------------------------------------------------------------------------


def command(*options):
    return main(["record", "--encoder", "--commit", COMMIT, *options])


def test_the_whole_way_from_measuring_to_the_file(made, monkeypatch, tmp_path, capsys):
    orders = []
    monkeypatch.setattr(record_encoder, "measured", lambda order: orders.append(order) or made)
    assert command("--budget", "9", "--folder", str(tmp_path)) == 0
    (order,) = orders
    assert (order.device, order.budget_s, order.small, order.commit) == ("cpu", 9.0, False, COMMIT)
    (path,) = tmp_path.glob("*.json")
    assert encoder_recordings.read(path) == made
    said = capsys.readouterr().out
    assert made.origin in said and "audio s/s" in said and "batch 2 of 1 s" in said and "Written to" in said
    assert "torch.compile needs a C++ compiler here." in said
    monkeypatch.setattr(machine, "missing", lambda need: f"No {need} here.")
    assert command("--device", "cuda") == 2
    assert capsys.readouterr().out == "record: No torch-cuda here.\n"


def test_an_error_that_no_rounding_explains_is_not_recorded():
    good = SpeedPoint(Setting(dtype="int8"), 1.0, 0.1, 3, 0.05)
    record_encoder.check([good, replace(good, setting=Setting(), error=1e-6)])
    for bad in (replace(good, error=0.9), replace(good, setting=Setting(how="compiled"), error=0.05)):
        with pytest.raises(WrongResult, match=r"is wrong: it is off by .* could explain\.$"):
            record_encoder.check([good, bad])
