"""Recordings of the encoder: one made here with a tiny encoder, read back, and broken in every way."""

import copy
import json
import math
from argparse import ArgumentParser
from dataclasses import replace
from types import SimpleNamespace

import pytest

from course_lib.commands import record, record_encoder
from course_lib.commands.record_encoder import Order
from course_lib.measure import gpu_state, machine, recorded_fields, recorded_gpu, recordings
from course_lib.measure.recorded_fields import MalformedRecording
from course_lib.measure.recorded_gpu import Gpu
from course_lib.speech import encoder_recordings, encoder_speed
from course_lib.speech.encoder_speed import SpeedPoint
from course_lib.speech.encoder_variants import CannotMeasure, Setting

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def quick_points(encoder, settings, budget_s, skip):
    """No timing: made-up seconds for the settings that were asked for."""
    skip("torch.compile needs a C++ compiler here.")
    return [SpeedPoint(one, 0.1 + 0.01 * one.audio_s, 0.001, 3, 0.0) for one in settings]


@pytest.fixture(scope="module")
def made():
    """A recording of this machine as the command makes it, its times made up."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_encoder, "measure", quick_points)
        return record_encoder.measured(Order("cpu", small=True, commit=COMMIT))


def changed(recording, **fields):
    content = copy.deepcopy(json.loads(json.dumps(recording.data())))
    content.update(fields)
    return content


def test_the_folder_of_the_package_has_true_recordings_only():
    assert (encoder_recordings.FOLDER / "README.md").is_file()
    for path in encoder_recordings.FOLDER.glob("*.json"):
        recording = encoder_recordings.read(path)
        assert recording.is_large and not recording.commit.endswith("+changes") and recording.forwards == 64
        assert path.stat().st_size < 200_000
    assert encoder_recordings.newest("cuda") is None or encoder_recordings.newest("cuda").gpu


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


def test_what_is_written_can_be_read(made, tmp_path):
    path = encoder_recordings.write(made, tmp_path / "new")
    assert path.name.startswith("encoder-") and path.stat().st_size < 50_000
    assert encoder_recordings.read(path) == made


def test_the_newest_of_a_kind_of_device_is_found(made, tmp_path):
    large = replace(made, parameters=encoder_recordings.LARGE_PARAMETERS)
    late = replace(large, when="2090-01-01T00:00:00+00:00")
    for one in (made, large, late, on_gpu(large)):
        encoder_recordings.write(replace(one, device=f"{one.device} {one.parameters}"), tmp_path)
    assert encoder_recordings.newest(folder=tmp_path).when == late.when
    assert encoder_recordings.newest("cuda", tmp_path).gpu == GPU
    assert encoder_recordings.newest("cuda", tmp_path / "none") is None
    with pytest.raises(ValueError, match="device_kind is 'gpu', but it must be one of cpu, cuda"):
        encoder_recordings.newest("gpu", tmp_path)


def test_a_small_recording_is_not_taken_for_the_large_one(made, tmp_path):
    encoder_recordings.write(made, tmp_path)
    assert encoder_recordings.newest("cpu", tmp_path) is None
    assert encoder_recordings.newest("cpu", tmp_path, large=False) == made


GPU = Gpu(
    driver="999.1",
    compute_capability="9.9",
    cuda="13.0",
    multiprocessors=7,
    state=dict.fromkeys(recordings.STATES, (1.0, 2.0, 3.0)),
    power_limit_w=None,
    highest_sm_mhz=2000.0,
)


def on_gpu(recording):
    points = tuple(replace(one, setting=one.setting.but(device="cuda", threads=1), busy_s=0.05)
                   for one in recording.points if one.setting.threads == recording.cores)  # fmt: skip
    return replace(recording, device_kind="cuda", device="NVIDIA Test 9", gpu=GPU, points=points)


def test_a_gpu_is_recorded_with_its_driver_and_clocks(made, tmp_path):
    recording = on_gpu(made)
    path = encoder_recordings.write(recording, tmp_path)
    assert encoder_recordings.read(path) == recording
    assert recording.origin == f"recorded on an NVIDIA Test 9 (driver 999.1) on {made.when[:10]}"


def test_a_field_that_is_missing_is_named(made):
    for field in made.data():
        if field in ("kind", "format"):
            continue
        content = changed(made)
        del content[field]
        with pytest.raises(MalformedRecording, match=f"'{field}' is missing"):
            encoder_recordings.restore(content)
    for part in ("profile", "points"):
        for field in made.data()[part][0]:
            content = changed(made)
            del content[part][1][field]
            with pytest.raises(MalformedRecording, match=f"{part.rstrip('s')}.* ?2, '{field}' is missing"):
                encoder_recordings.restore(content)


def first(part, **fields):
    return lambda made: changed(made, **{part: [{**made.data()[part][0], **fields}, *made.data()[part][1:]]})


BAD = {
    "another kind": (lambda made: changed(made, kind="gpu"), "does not say 'kind': 'encoder'"),
    "another format": (lambda made: changed(made, format=2), "'format': 1"),
    "a list": (lambda made: [], "does not say 'kind'"),
    "no time zone": (lambda made: changed(made, when="2020-02-03T04:05:06"), "no date and time"),
    "short commit": (lambda made: changed(made, commit="012"), "no full git commit"),
    "another device": (lambda made: changed(made, device_kind="tpu"), "'tpu', not one of cpu, cuda"),
    "a GPU's name alone": (lambda made: changed(made, device_kind="cuda"), "'cuda' and 'gpu' is None"),
    "empty name": (lambda made: changed(made, device=" "), "'device' is empty"),
    "half a core": (lambda made: changed(made, cores=0.5), "'cores' is 0.5, not a whole number"),
    "load as text": (lambda made: changed(made, load="low"), "'load' is 'low'"),
    "no torch": (lambda made: changed(made, versions={"python": "3", "numpy": "2"}), "'torch' is missing"),
    "no points": (lambda made: changed(made, points=[]), "'points' is empty"),
    "points of text": (lambda made: changed(made, points=["fast"]), "in point 1, it is no object"),
    "no time": (first("points", seconds=0), "in point 1, 'seconds' is 0, which cannot be"),
    "nan": (first("points", error=math.nan), "in point 1, 'error' is nan"),
    "half a batch": (first("points", batch=1.5), "in point 1, 'batch' is 1.5"),
    "another dtype": (first("points", dtype="float8"), "in point 1, dtype is 'float8'"),
    "a point twice": (first("points", batch=2), "stands there twice"),
    "a stray device": (first("points", device="cuda"), "of another device"),
    "a busy text": (first("points", busy_s="no"), "in point 1, 'busy_s' is 'no'"),
    "calls none": (first("profile", calls=0), "in row of the profile 1, 'calls' is 0"),
    "another op": (first("profile", kind="thing"), "in row of the profile 1, 'kind' is 'thing'"),
    "negative time": (first("profile", self_cpu_us=-1), "'self_cpu_us' is -1"),
    "note of numbers": (lambda made: changed(made, notes=[3]), "'notes' is 3, not a text"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_malformed_file_is_refused_in_a_sentence(case, made, tmp_path):
    content, words = BAD[case]
    path = tmp_path / "odd.json"
    path.write_text(json.dumps(content(made)))
    with pytest.raises(MalformedRecording) as caught:
        encoder_recordings.newest(folder=tmp_path)
    message = str(caught.value)
    assert message.startswith("odd.json is no recording: ") and words in message
    assert "\n" not in message and message.endswith("record --encoder`.")


def test_what_is_not_json_is_refused_in_a_sentence(tmp_path):
    (tmp_path / "half.json").write_text('{"kind": "encoder"')
    with pytest.raises(MalformedRecording, match=r"half\.json is no recording: it is not JSON"):
        encoder_recordings.newest(folder=tmp_path)


def test_nothing_is_written_that_could_not_be_read(made, tmp_path):
    with pytest.raises(MalformedRecording, match="'device' is empty"):
        encoder_recordings.write(replace(made, device=""), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_names_of_files_are_plain():
    name = recorded_fields.file_name("encoder", "Intel(R) Xeon(R) @ 2.5/GHz", "2020-02-03T04:05:06+00:00")
    assert name == "encoder-intel-r-xeon-r-2-5-ghz-20200203040506.json"


def test_none_is_said_with_what_to_do():
    assert "on a GPU yet" in encoder_recordings.none("cuda")
    assert "record --encoder --device cpu`" in encoder_recordings.none("cpu")


# -- the command -------------------------------------------------------------------------------------------


def command(*options):
    parser = ArgumentParser()
    record.add_arguments(parser)
    return record.run(parser.parse_args(["--encoder", "--commit", COMMIT, *options]))


def test_the_whole_way_from_measuring_to_the_file(made, monkeypatch, tmp_path, capsys):
    orders = []
    monkeypatch.setattr(record_encoder, "measured", lambda order: orders.append(order) or made)
    assert command("--budget", "9", "--folder", str(tmp_path)) == 0
    assert orders == [Order("cpu", 9.0, False, COMMIT)]
    assert encoder_recordings.newest("cpu", tmp_path, large=False) == made
    said = capsys.readouterr().out
    assert made.origin in said and "audio s/s" in said and "batch 2, 1 s" in said and "Written to" in said
    assert "torch.compile needs a C++ compiler here." in said


def test_a_small_recording_does_not_go_into_the_course(capsys):
    assert command("--small") == 2
    assert "say with --folder" in capsys.readouterr().out


def test_without_a_gpu_it_is_one_sentence(monkeypatch, capsys):
    monkeypatch.setattr(machine, "missing", lambda need: f"No {need} here.")
    assert command("--device", "cuda") == 2
    assert capsys.readouterr().out == "record: No torch-cuda here.\n"


def test_one_thing_at_a_time(capsys):
    assert command("--gpu") == 2
    assert "say --gpu, --code, --encoder or --hopper." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("problem", "code"), [(record_encoder.Wrong("int8 is wrong."), 1), (CannotMeasure("too little."), 2)]
)
def test_what_goes_wrong_is_one_sentence(monkeypatch, capsys, problem, code):
    def failing(order):
        raise problem

    monkeypatch.setattr(record_encoder, "measured", failing)
    assert command() == code
    assert capsys.readouterr().out == f"record: {problem}\n"


def test_a_folder_that_cannot_be_written_is_said(made, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(record_encoder, "measured", lambda order: made)
    (tmp_path / "file").write_text("")
    assert command("--folder", str(tmp_path / "file")) == 1
    assert "see --folder" in capsys.readouterr().out


def test_an_error_that_no_rounding_explains_is_not_recorded():
    good = SpeedPoint(Setting(dtype="int8"), 1.0, 0.1, 3, 0.05)
    record_encoder.check([good, replace(good, setting=Setting(), error=1e-6)])
    for bad in (replace(good, error=0.9), replace(good, setting=Setting(how="compiled"), error=0.05)):
        with pytest.raises(record_encoder.Wrong, match=r"is wrong: it is off by .* could explain\.$"):
            record_encoder.check([good, bad])


def test_nothing_measured_is_no_recording(monkeypatch):
    monkeypatch.setattr(record_encoder, "measure", lambda *settings, **options: [])
    with pytest.raises(CannotMeasure, match="none of the settings"):
        record_encoder.measured(Order("cpu", small=True, commit=COMMIT))


def test_a_gpus_header_comes_from_torch_and_nvidia_smi(monkeypatch):
    import torch

    properties = SimpleNamespace(multi_processor_count=132, total_memory=2**37)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda number: properties)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(gpu_state, "limits", lambda: (700.0, 1980.0))
    found = SimpleNamespace(name="NVIDIA Test 9", driver="580.1", compute_capability="9.0")
    monkeypatch.setattr(machine, "gpu", lambda: found)
    monkeypatch.setattr(machine, "describe", lambda: SimpleNamespace(gpu=found))
    gpu = recorded_gpu.now(gpu_state.Watch())
    assert (gpu.driver, gpu.cuda, gpu.multiprocessors, gpu.power_limit_w) == ("580.1", "13.0", 132, 700.0)
    assert gpu.state == dict.fromkeys(recordings.STATES)
    assert record_encoder._device("cuda") == {"device": "NVIDIA Test 9", "memory_bytes": 2**37}


def test_clocks_are_a_range_or_unknown(monkeypatch):
    import psutil

    assert record_encoder._range([3.0, 1.0, 2.0]) == (1.0, 2.0, 3.0)
    assert record_encoder._range([]) is None
    monkeypatch.setattr(psutil, "cpu_freq", lambda percpu: [])
    assert record_encoder._cpu_mhz() == []
