"""Sliders over an encoder's measured settings: nothing but measured points, nothing interpolated silently."""

import re

import pytest

from course_lib import views
from course_lib.speech.encoder_speed import SpeedPoint, grid
from course_lib.speech.encoder_variants import Setting
from course_lib.views.speed_choice import AXES, Measured, in_words
from course_lib.views.speed_curves import best, chosen_curves, finding, main_curves

#: No measurement: made up, so that int8 in a batch of 8 is the fastest.
FACTOR = {"float32": 1.0, "bfloat16": 0.6, "int8": 0.4}


def made_up(device="cpu"):
    points = []
    for one in grid(device, threads=4):
        one = one.but(frames={200: 500, 500: 200}.get(one.frames, one.frames))  # sweeps at 5 s: round figures
        seconds = (0.1 + 0.02 * one.audio_s * FACTOR[one.dtype]) * (4 / one.threads if device == "cpu" else 1)
        error = 0.0 if one.dtype == "float32" else 0.02
        points.append(SpeedPoint(one, seconds, 0.001, 5, error, seconds / 2 if device == "cuda" else None))
    return points


POINTS = made_up()
BASE = Setting(1, 500, "float32", 4)


class TestChoice:
    @pytest.mark.parametrize("device", ["cpu", "cuda"])
    def test_every_choice_leads_to_a_measured_setting_with_the_chosen_value(self, device):
        measured = Measured(made_up(device))
        for now in measured.points:
            for axis in AXES:
                for value in measured.values(axis):
                    chosen = measured.choose(now, axis, value)
                    assert chosen.setting in measured.points and getattr(chosen.setting, axis) == value
                    assert (chosen.sentence == "") == (chosen.setting == now.but(**{axis: value}))

    def test_what_gives_way_is_said(self):
        chosen = Measured(POINTS).choose(BASE.but(dtype="int8"), "batch", 32)
        assert chosen.setting == BASE.but(batch=32)
        assert chosen.sentence == (
            "Batch 32, 5 s, int8, eager, 4 threads was not measured: dtype went from int8 to float32."
        )
        chosen = Measured(POINTS).choose(BASE.but(dtype="int8", batch=8), "threads", 1)
        assert chosen.setting == BASE.but(threads=1)
        assert chosen.sentence.endswith("batch went from 8 to 1 and dtype went from int8 to float32.")

    def test_the_nearest_number_is_taken(self):
        chosen = Measured(POINTS).choose(BASE.but(batch=16), "dtype", "int8")
        assert chosen.setting == BASE.but(batch=8, dtype="int8")
        assert chosen.sentence.endswith("was not measured: batch went from 16 to 8.")

    def test_the_baseline_has_the_most_threads(self):
        assert Measured(POINTS).base == Measured(POINTS[::-1]).base.but(frames=500) == BASE

    @pytest.mark.parametrize(
        ("points", "error", "words"),
        [
            ([], TypeError, "must be SpeedPoints"),
            (["fast"], TypeError, "must be SpeedPoints"),
            (POINTS[1:2], ValueError, "No point has batch 1, float32 and eager"),
            ([*POINTS, *made_up("cuda")], ValueError, "of two devices"),
        ],
    )
    def test_what_is_no_sweep_is_refused(self, points, error, words):
        with pytest.raises(error, match=words):
            views.encoder_speed(points)


class TestFinding:
    def test_follows_from_the_figures(self):
        measured = Measured(POINTS)
        fast = best(measured)
        assert fast.setting == BASE.but(dtype="int8", batch=8)  # 40 s in 0.42 s; the baseline 5 s in 0.2 s
        said = finding(measured, fast.setting)
        assert said == (
            "Batch 8, int8: 3.8x the audio a second of the baseline, each utterance waits 2.1x as long"
        )
        assert finding(measured, BASE).startswith("The baseline, batch 1, 5 s")
        assert "25.0 s of audio a second, ready after 200 ms" in finding(measured, BASE)
        assert finding(measured, BASE.but(threads=2)).endswith("0.50x the audio a second of the baseline")

    def test_a_difference_within_the_spread_is_none(self):
        noisy = [SpeedPoint(one.setting, one.seconds, one.seconds / 2, 5, one.error) for one in POINTS]
        assert "as far as can be told" in finding(Measured(noisy), BASE.but(batch=2))


class TestPictures:
    def test_the_alt_text_has_the_points_of_the_curve(self):
        measured = Measured(POINTS)
        alt = chosen_curves(measured, BASE.but(dtype="int8"), "batch", "recorded on a Test").alt
        assert "int8, eager, 5 s, 4 threads: 1: 35.7 s/s, 140 ms, 8: 95.2 s/s, 420 ms" in alt
        assert "float32, eager, 5 s, 4 threads: 1: 25.0 s/s" in alt and "Recorded on a Test." in alt
        alt = chosen_curves(measured, BASE, "frames").alt
        assert (
            "float32, eager, batch 1, 4 threads: 1: 8.33 s/s" in alt
            and alt.count("float32, eager, batch") == 1
        )

    def test_all_ways_to_run_have_a_curve(self):
        alt = main_curves(Measured(made_up("cuda"))).alt
        for name in ("float32, eager", "int8, eager", "float32, torch.compile", "bfloat16, CUDA graph"):
            assert f"{name}: 1: " in alt


class TestWidget:
    def test_it_starts_at_the_fastest_and_follows_the_controls(self):
        view = views.encoder_speed(POINTS, "recorded on a Test")
        assert view.setting == BASE.but(dtype="int8", batch=8)
        assert list(view.controls) == ["batch", "frames", "dtype", "threads", "how"]
        before = view.picture.value
        view.controls["batch"].value = 1
        assert view.setting == BASE.but(dtype="int8") and "Keyboard" in view.status.value
        assert "batch 1, 5 s, int8" in view.picture.value != before
        view.controls["frames"].value = 2000
        assert view.setting == BASE.but(frames=2000) and view.axis == "frames"
        assert "dtype went from int8 to float32" in view.status.value
        assert view.controls["dtype"].value == "float32"  # the control shows what gave way

    def test_what_was_measured_in_one_way_only_has_no_control(self):
        assert list(views.encoder_speed(made_up("cuda")).controls) == ["batch", "frames", "dtype", "how"]

    def test_the_still_twin_has_every_point(self):
        view = views.encoder_speed(POINTS, "recorded on a Test")
        still = view.static()
        rows = re.findall(r"<tr", still.body)
        assert len(rows) == len(POINTS) + 1
        assert "data:image/png" in still.body and "(baseline)" in still.body
        assert still.text.startswith("Batch 8, int8: 3.8x") and "Recorded on a Test." in still.text
        assert (
            "GPU busy" not in still.body and "GPU busy" in views.encoder_speed(made_up("cuda")).static().body
        )

    def test_a_recording_brings_its_origin_and_notes(self):
        from course_lib.speech.encoder_recordings import EncoderRecording

        names = EncoderRecording.__dataclass_fields__
        recording = EncoderRecording(
            **{**dict.fromkeys(names, 1), "points": tuple(POINTS), "notes": ("No compiler.",), "gpu": None,
               "device_kind": "cpu", "device": "Test", "when": "2020-02-03", "cores": 4, "simd": "AVX2"}
        )  # fmt: skip
        still = views.encoder_speed(recording).static()
        assert (
            "Recorded on a Test (4 cores, AVX2) on 2020-02-03." in still.text and "No compiler." in still.body
        )

    def test_without_a_recording_it_says_so(self):
        assert "record --encoder" in views.encoder_speed(None).text

    def test_words(self):
        assert in_words(Setting(2, 150, "bfloat16", 1, "compiled")) == (
            "batch 2, 1.5 s, bfloat16, torch.compile, 1 thread"
        )
        assert in_words(Setting(2, 500, device="cuda")) == "batch 2, 5 s, float32, eager"
