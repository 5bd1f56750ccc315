"""The learner's sample of sound: what is taken, kept, refused; the sound made by code; the figure of both."""

import base64
from datetime import datetime

import numpy as np
import pytest

from course_lib.speech import audio, sample, synthetic
from course_lib.speech.audio import UnreadableAudio
from course_lib.speech.sample import Sample


@pytest.fixture
def views():
    from course_lib import views

    return views


def tone(hz=1000.0, seconds=1.0, rate=16_000):
    return (0.25 * np.sin(2 * np.pi * hz * np.arange(round(seconds * rate)) / rate)).astype(np.float32)


def wav(samples=None, rate=16_000):
    return audio.as_wav(tone(rate=rate) if samples is None else samples, rate)


# -- samples -----------------------------------------------------------------------------------------------


def test_a_sample_has_16_khz_and_one_channel():
    given = Sample.of(wav(tone(440, 0.5, 44_100), 44_100), "a.wav")
    assert given.samples.dtype == np.float32 and given.samples.shape == (8000,) and given.seconds == 0.5
    assert np.argmax(np.abs(np.fft.rfft(given.samples))) == 220  # of 2 Hz each
    for content, says in (
        (b"", "a.wav is no sound that can be read"),
        (wav()[:-2], "a.wav is cut short"),
        (wav(np.array([np.nan] * 4000, "f4")), "a.wav holds samples that are NaN"),
        (wav(tone(seconds=0.09)), "a.wav lasts 0.09 s, but 0.1 to 200 s can be used: record again"),
        (wav(tone(seconds=200.5, rate=2000), 2000), "a.wav lasts 201 s, but .* can be used: cut it"),
    ):
        with pytest.raises(UnreadableAudio, match=says) as caught:
            Sample.of(content, "a.wav")
        assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


def test_a_sample_is_kept_replaced_and_forgotten(private_data_folder, monkeypatch):
    assert sample.kept() is None
    for given in (Sample("a", tone()), Sample("b", tone(seconds=0.5))):
        sample.keep(given)
        assert np.array_equal(sample.kept().samples, given.samples)

    def full(source, target):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", full)
        with pytest.raises(OSError, match="No space"):
            sample.keep(Sample("c", tone()))
    assert sample.kept().seconds == 0.5  # the one before, and no scraps beside it
    assert [path.name for path in private_data_folder.iterdir()] == ["speech.wav"]
    sample.forget()
    sample.forget()
    assert sample.kept() is None


# -- the sound made by code --------------------------------------------------------------------------------


def test_the_vowels_are_the_same_every_time_and_no_speech():
    sound = synthetic.vowels()
    assert sound.dtype == np.float32 and sound.shape == (33_600,)
    assert np.array_equal(sound, synthetic.vowels())
    assert np.abs(sound).max() == 0.5 and not sound[:2400].any() and not sound[-2400:].any()
    assert "no speech" in synthetic.NAME and "made by code" in synthetic.NAME
    for n, (vowel, (_, second, _)) in enumerate(synthetic.FORMANTS_HZ.items()):
        start = 2400 + n * (8000 + 2400)
        spectrum = np.abs(np.fft.rfft(sound[start + 1000 : start + 7000] * np.hanning(6000)))
        hz = np.arange(len(spectrum)) * 16_000 / 6000
        near = np.abs(hz - second) < 220
        loudest = hz[near][spectrum[near].argmax()]  # within two harmonics, which alone sound
        assert abs(loudest - second) < 140, vowel


# -- the figure --------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("figures")
def test_the_figure_says_where_a_tone_is(views):
    from course_lib.views import log_mel_figure

    for hz in (300, 1000, 3000):
        loud = tone(hz, 2.0)
        loud[16_000:] *= 0.1
        alt = views.log_mel(loud).alt
        assert alt.startswith("2.0 s of sound, loudest at 0.") and "32,000 samples" in alt
        band = int(alt.split(" in band ")[1].split(",")[0])
        assert abs(band - log_mel_figure.band_at(hz)) <= 0.6, hz
        assert abs(float(alt.split(" near ")[1].split(" Hz")[0].replace(",", "")) / hz - 1) < 0.08
    assert views.log_mel(np.zeros(16_000, "f4")).alt.startswith("1.0 s of silence: every sample is 0.")
    for wrong in (np.zeros((2, 900)), np.zeros(900, int), np.array([np.nan] * 900)):
        with pytest.raises(ValueError, match=r"must be finite floating-point numbers of shape \(n,\)"):
            views.log_mel(wrong)


def test_every_extreme_is_drawn(views, figures):
    samples = np.zeros(100_000, np.float32)
    samples[54_321], samples[77_777] = 0.75, -0.5
    views.log_mel(samples)
    points = figures[0].axes[0].collections[0].get_paths()[0].vertices[:, 1]
    assert points.max() == 0.75 and points.min() == -0.5


# -- the widget --------------------------------------------------------------------------------------------


def upload(speech, name, content):
    file = {"name": name, "type": "", "size": len(content), "content": memoryview(content)}
    speech.upload.value = ({**file, "last_modified": datetime.now()},)


@pytest.mark.usefixtures("figures")
def test_an_upload_is_used_kept_and_chosen(views):
    speech = views.speech_input()
    assert np.array_equal(speech.samples, synthetic.vowels()) and speech.rate == 16_000
    assert speech.name == synthetic.NAME and speech.seconds == 2.1
    assert speech.drop.disabled and speech.choice.options == (synthetic.NAME,)
    upload(speech, "<b>.wav", wav())
    assert speech.name == "<b>.wav" and np.array_equal(speech.samples, tone()) and speech.upload.value == ()
    assert "In use: &lt;b&gt;.wav, 1.0 s." in speech.said.value and "<b>" not in speech.said.value
    assert speech.choice.value == "<b>.wav" and not speech.drop.disabled
    assert speech.choice.index == 1  # what the page is sent
    assert audio.from_bytes(speech.player.value, "player")[0].tolist() == tone().tolist()
    still = speech.static()
    assert "The sound in use: &lt;b&gt;.wav, 1.0 s" in still.body and "loudest" in still.text
    again = views.speech_input()
    assert again.name == "your last sample" and np.array_equal(again.samples, tone())


@pytest.mark.usefixtures("figures")
def test_a_bad_file_changes_nothing_and_a_sentence_says_so(views):
    speech = views.speech_input()
    upload(speech, "good.wav", wav())
    picture = speech.shown.value
    for content in (b"", b"a letter", wav()[:-2], wav(tone(seconds=0.01))):
        upload(speech, "bad.wav", content)
        assert speech.name == "good.wav" and np.array_equal(speech.samples, tone())
        assert 'role="alert"' in speech.said.value and "bad.wav" in speech.said.value
        assert "stays what it was" in speech.said.value and speech.shown.value == picture
        assert len(speech.choice.options) == 2 and sample.kept().seconds == 1.0
    upload(speech, "better.wav", wav())
    assert 'role="alert"' not in speech.said.value
    upload(speech, "silent.wav", wav(np.zeros(8000, "f4")))
    assert "is the microphone muted?" in speech.said.value
    upload(speech, "good.wav", wav(tone(500)))
    assert speech.choice.options[1:] == ("good.wav", "better.wav", "silent.wav", "good.wav (2)")
    speech.choice.value = "good.wav"
    assert np.array_equal(speech.samples, tone()) and speech.shown.value == picture
    speech.drop.click()
    assert speech.choice.options == (synthetic.NAME,) and sample.kept() is None


@pytest.mark.usefixtures("figures")
def test_a_recording_comes_as_text_and_a_broken_one_is_refused(views):
    from course_lib.views import microphone

    speech = views.speech_input()
    speech.data.value = microphone.HEAD + base64.b64encode(wav()).decode()
    assert speech.name == "your recording" and speech.data.value == "" and speech.seconds == 1.0
    speech.data.value = microphone.HEAD + "no base64!"
    assert "did not arrive whole" in speech.said.value and speech.data.value == ""
    speech.data.value = microphone.HEAD + base64.b64encode(wav()[:50]).decode()
    assert "your recording is cut short" in speech.said.value and speech.name == "your recording"
    speech.data.value = microphone.HEAD + base64.b64encode(wav()).decode()
    assert speech.name == "your recording (2)"


@pytest.mark.usefixtures("figures")
def test_a_path_comes_first_and_its_faults_are_raised(views, tmp_path):
    path = tmp_path / "mine.wav"
    path.write_bytes(wav())
    sample.keep(Sample("a", tone(seconds=0.5)))
    speech = views.speech_input(path)
    assert speech.name == str(path) and speech.seconds == 1.0 and "your last sample" in speech.choice.options
    with pytest.raises(UnreadableAudio, match=r"none.wav cannot be read \(No such file"):
        views.speech_input(tmp_path / "none.wav")
    path.write_bytes(b"a letter")
    with pytest.raises(UnreadableAudio, match=r"mine.wav is no"):
        views.speech_input(path)


@pytest.mark.usefixtures("figures")
def test_what_is_wrong_with_the_folder_is_said(views, private_data_folder, tmp_path, monkeypatch):
    (private_data_folder / "speech.wav").write_bytes(wav()[:-2])
    speech = views.speech_input()
    assert speech.name == synthetic.NAME and "Your last sample was not taken" in speech.said.value
    assert "is cut short" in speech.said.value
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NINE_CIRCLES_HOME", str(tmp_path / "file" / "folder"))
    speech = views.speech_input()
    upload(speech, "a.wav", wav())
    assert speech.name == "a.wav" and "cannot be written" in speech.said.value
