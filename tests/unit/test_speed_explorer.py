"""Sliders over an encoder's measured settings: nothing but measured points, nothing interpolated silently."""

import re

import pytest
from view_samples import speed_points

from course_lib import views


@pytest.fixture(scope="module")
def measured():
    from course_lib.views.speed_explorer import Measured

    return Measured(speed_points())


@pytest.fixture(scope="module")
def base():
    from course_lib.speech.encoder_variants import Setting

    return Setting(1, 500, "float32", 4)


class TestChoice:
    def test_every_choice_leads_to_a_measured_setting_with_the_chosen_value(self):
        from course_lib.views.speed_explorer import AXES, Measured

        for device in ("cpu", "cuda"):
            measured = Measured(speed_points(device))
            for now in measured.points:
                for axis in AXES:
                    for value in measured.values(axis):
                        chosen, given_way = measured.choose(now, axis, value)
                        assert chosen in measured.points
                        assert getattr(chosen, axis) == value, (device, now, axis)
                        assert (given_way == "") == (chosen == now.but(**{axis: value}))


class TestWords:
    def test_the_finding_follows_from_the_figures(self, measured, base):
        from course_lib.views.speed_explorer import best, finding

        fast = best(measured)
        assert fast.setting == base.but(dtype="int8", batch=8)  # 40 s in 0.42 s; the baseline 5 s in 0.2 s
        assert finding(measured, fast.setting) == (
            "Batch 8, int8: 3.8x the audio a second of the baseline, each utterance waits 2.1x as long"
        )
        assert finding(measured, base).startswith("The baseline, batch 1, 5 s")
        assert "25.0 s of audio a second, ready after 200 ms" in finding(measured, base)


class TestWidget:
    def test_without_a_recording_it_says_how_to_make_one(self):
        assert "record --encoder" in views.encoder_speed(None).text

    def test_it_starts_at_the_fastest_and_follows_the_controls(self, base):
        view = views.encoder_speed(speed_points(), "recorded on a Test")
        assert view.setting == base.but(dtype="int8", batch=8)
        assert list(view.controls) == ["batch", "frames", "dtype", "threads", "how"]
        view.controls["batch"].value = 1
        assert view.setting == base.but(dtype="int8") and "Keyboard" in view.status.value
        assert "batch 1, 5 s, int8" in view.picture.value
        view.controls["frames"].value = 2000
        assert view.setting == base.but(frames=2000) and view.axis == "frames"
        words = "Batch 1, 20 s, int8, eager, 4 threads was not measured: dtype went from int8 to float32."
        assert words in view.status.value
        assert view.controls["dtype"].value == "float32"  # the control shows what gave way

    def test_the_still_twin_has_every_point_and_a_gpu_its_busy_time(self):
        still = views.encoder_speed(speed_points(), "recorded on a Test").static()
        assert len(re.findall(r"<tr", still.body)) == len(speed_points()) + 1
        assert "data:image/png" in still.body and "(baseline)" in still.body
        assert still.text.startswith("Batch 8, int8: 3.8x") and "Recorded on a Test." in still.text
        on_gpu = views.encoder_speed(speed_points("cuda"))
        assert list(on_gpu.controls) == ["batch", "frames", "dtype", "how"]  # one way only: no control
        assert "GPU busy" not in still.body and "GPU busy" in on_gpu.static().body

    def test_a_recording_brings_its_origin_and_notes(self):
        from course_lib.speech import encoder_recordings

        recording = encoder_recordings.newest("cpu")
        still = views.encoder_speed(recording).static()
        assert recording.origin[1:] in still.text
        assert all(note in still.text for note in recording.notes)
