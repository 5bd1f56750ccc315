"""The learner's sample of sound: what is taken, kept, refused; the sound made by code; the figure of both."""

import base64
import io
import sys
from datetime import datetime

import numpy as np
import pytest
import torch
from sound_files import soundfile_of

from course_lib import views
from course_lib.speech import audio, sample, synthetic
from course_lib.speech.audio import UnreadableAudio
from course_lib.speech.features import LogMel
from course_lib.speech.sample import Sample
from course_lib.theme import Picture
from course_lib.views import log_mel_figure, microphone


@pytest.fixture
def in_words(monkeypatch):
    """Figures are drawn, their pixels are not: where only the words beside them are asked for."""
    monkeypatch.setattr(Picture, "of", lambda fig, alt: Picture(b"", alt, 0))


def tone(hz=1000.0, seconds=1.0, rate=16_000):
    return (0.25 * np.sin(2 * np.pi * hz * np.arange(round(seconds * rate)) / rate)).astype(np.float32)


def wav(samples=None, rate=16_000):
    return audio.as_wav(tone(rate=rate) if samples is None else samples, rate)


# -- samples -----------------------------------------------------------------------------------------------


def test_a_wav_of_ours_gives_the_same_samples(tmp_path):
    samples = np.random.default_rng(0).normal(0, 0.3, 1001).astype(np.float32)
    for given in (samples, samples[::-1], samples.astype(np.float64)):
        path = tmp_path / "own.wav"
        path.write_bytes(audio.as_wav(given, 22_050))
        for read, rate in (audio.read(path), audio.from_bytes(path.read_bytes(), "own.wav")):
            assert rate == 22_050 and np.array_equal(read, given) and read.dtype == np.float32


def test_a_foreign_format_in_memory_goes_to_soundfile(monkeypatch):
    def opened(source):
        assert isinstance(source, io.BytesIO) and source.read() == b"fLaC..."

    monkeypatch.setitem(sys.modules, "soundfile", soundfile_of([[0.5, 0.25]], 8000, opened))
    samples, rate = audio.from_bytes(b"fLaC...", "a.flac")
    assert samples.tolist() == [0.375] and rate == 8000


def test_a_sample_has_16_khz_and_one_channel():
    given = Sample.of(wav(tone(440, 0.5, 44_100), 44_100), "a.wav")
    assert given.samples.dtype == np.float32 and given.samples.shape == (8000,) and given.seconds == 0.5
    spectrum = np.abs(np.fft.rfft(given.samples))
    assert np.argmax(spectrum) == 220  # of 2 Hz each


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "a.wav is no WAV file"),
        (b"a letter", "a.wav is no WAV file"),
        (wav()[:-2], "a.wav is cut short"),
        (wav(np.array([np.nan] * 4000, "f4")), "a.wav holds samples that are NaN"),
        (wav(tone(seconds=0.09)), "a.wav lasts 0.09 s, but 0.1 to 200 s can be used: record again"),
        (wav(tone(seconds=201, rate=2000), 2000), "a.wav lasts 201 s, but .* can be used: cut it"),
    ],
)
def test_what_is_no_sample_is_refused_in_one_sentence(content, says, monkeypatch):
    monkeypatch.setitem(sys.modules, "soundfile", None)
    with pytest.raises(UnreadableAudio, match=says) as caught:
        Sample.of(content, "a.wav")
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


def test_the_shortest_sample_is_enough_for_both_front_ends():
    shortest = torch.zeros(1, round(sample.SHORTEST_S * sample.RATE))
    for zero_padded in (False, True):
        LogMel(zero_padded=zero_padded)(shortest)


def test_a_sample_is_kept_replaced_and_forgotten(private_data_folder):
    assert sample.kept() is None
    for given in (Sample("a", tone()), Sample("b", tone(seconds=0.5))):
        sample.keep(given)
        assert np.array_equal(sample.kept().samples, given.samples)
    assert [path.name for path in private_data_folder.iterdir()] == ["speech.wav"]
    sample.forget()
    sample.forget()
    assert sample.kept() is None


def test_a_failed_write_leaves_the_sample_before_and_nothing_else(private_data_folder, monkeypatch):
    sample.keep(Sample("a", tone()))

    def full(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sample.os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        sample.keep(Sample("b", tone(seconds=0.5)))
    assert sample.kept().seconds == 1.0
    assert [path.name for path in private_data_folder.iterdir()] == ["speech.wav"]


# -- the sound made by code --------------------------------------------------------------------------------


def test_the_vowels_are_the_same_every_time_and_no_speech():
    sound = synthetic.vowels()
    assert (
        sound.dtype == np.float32 and sound.shape == (33_600,) and np.array_equal(sound, synthetic.vowels())
    )
    assert np.abs(sound).max() == 0.5 and not sound[:2400].any() and not sound[-2400:].any()
    assert "no speech" in synthetic.NAME and "made by code" in synthetic.NAME


def test_each_vowels_second_formant_tells_it_from_the_others():
    """Within the distance of two harmonics, which alone sound: at most 140 Hz."""
    sound = synthetic.vowels()
    table = {"ah": (730, 1090, 2440), "ee": (270, 2290, 3010), "oo": (300, 870, 2240)}
    assert table == synthetic.FORMANTS_HZ  # Peterson and Barney, table II, men
    for n, (_, second, _) in enumerate(table.values()):
        start = 2400 + n * (8000 + 2400)
        spectrum = np.abs(np.fft.rfft(sound[start + 1000 : start + 7000] * np.hanning(6000)))
        hz = np.arange(len(spectrum)) * 16_000 / 6000
        near = np.abs(hz - second) < 220
        assert abs(hz[near][spectrum[near].argmax()] - second) < 140


# -- the figure --------------------------------------------------------------------------------------------


def test_log_mels_are_what_is_normalised():
    front_end, samples = LogMel().double(), torch.from_numpy(synthetic.vowels())[None].double()
    features, frames = front_end(samples)
    mels, of_mels = front_end.log_mels(samples)
    assert torch.equal(frames, of_mels) and mels.shape == features.shape
    own = (mels - mels.mean(-1, keepdim=True)) / (mels.std(-1, keepdim=True) + 1e-5)
    assert (own - features).abs().max() < 1e-9


@pytest.mark.usefixtures("in_words")
@pytest.mark.parametrize("hz", [300, 1000, 3000])
def test_the_figure_finds_where_a_tone_is(hz):
    loud = tone(hz, 2.0)
    loud[16_000:] *= 0.1
    alt = views.log_mel(loud).alt
    assert alt.startswith("2.0 s of sound, loudest at 0.") and "32,000 samples" in alt
    said = int(alt.split(" in band ")[1].split(",")[0])
    assert abs(said - log_mel_figure.band_at(hz)) <= 0.6
    assert abs(float(alt.split(" near ")[1].split(" Hz")[0].replace(",", "")) / hz - 1) < 0.08


def test_the_axes_are_in_seconds_and_bands_with_hz_beside(monkeypatch):
    figures = []
    monkeypatch.setattr(log_mel_figure.Picture, "of", lambda fig, alt: figures.append(fig))
    views.log_mel(tone(1000, 1.5, 8000), rate=8000)
    wave, bands, bar = figures[0].axes[:3]
    assert bands.get_xlim() == (0.0, 1.5) and bands.get_xlabel() == "time in s"
    assert bands.get_ylim() == (0.5, 80.5) and "mel band" in bands.get_ylabel()
    assert "full scale" in wave.get_ylabel() and "dB" in bar.get_ylabel()
    in_hz = bands.child_axes[0]
    assert "Hz" in in_hz.get_ylabel()
    assert in_hz.get_yticks()[2] == pytest.approx(log_mel_figure.band_at(1000))
    assert bands.images[0].origin == "lower"
    shown = bands.images[0].get_array()
    assert shown.shape == (80, 151) and abs(shown[:, 75].argmax() + 1 - log_mel_figure.band_at(1000)) <= 1


def test_every_extreme_of_a_long_wave_is_drawn(monkeypatch):
    figures = []
    monkeypatch.setattr(log_mel_figure.Picture, "of", lambda fig, alt: figures.append(fig))
    samples = np.zeros(100_000, np.float32)
    samples[54_321], samples[77_777] = 0.75, -0.5
    views.log_mel(samples)
    points = figures[0].axes[0].collections[0].get_paths()[0].vertices[:, 1]
    assert points.max() == 0.75 and points.min() == -0.5


def test_normalised_is_what_the_front_end_gives(monkeypatch):
    figures = []
    monkeypatch.setattr(log_mel_figure.Picture, "of", lambda fig, alt: figures.append(fig))
    sound = synthetic.vowels()
    views.log_mel(sound, normalised=True)
    features, _ = LogMel()(torch.from_numpy(sound)[None])
    assert np.array_equal(figures[0].axes[1].images[0].get_array(), features[0].numpy())
    assert "deviations" in figures[0].axes[2].get_ylabel()


def test_normalised_and_silent_sounds_have_titles_of_their_own():
    assert "mean 0 and deviation 1" in views.log_mel(synthetic.vowels(), normalised=True).alt
    assert views.log_mel(np.zeros(16_000, "f4")).alt.startswith("1.0 s of silence: every sample is 0.")
    assert views.log_mel(tone(), title="Mine").alt.startswith("Mine. ")


@pytest.mark.parametrize("wrong", [np.zeros((2, 900)), np.zeros(900, int), np.array([np.nan] * 900)])
def test_what_is_no_sound_of_one_channel_is_not_drawn(wrong):
    with pytest.raises(ValueError, match=r"must be finite floating-point numbers of shape \(n,\)"):
        views.log_mel(wrong)


# -- the widget --------------------------------------------------------------------------------------------


def upload(speech, name, content):
    file = {"name": name, "type": "", "size": len(content), "content": memoryview(content)}
    speech.upload.value = ({**file, "last_modified": datetime.now()},)


def test_with_nobody_there_it_is_the_sound_made_by_code():
    speech = views.speech_input()
    assert np.array_equal(speech.samples, synthetic.vowels()) and speech.rate == 16_000
    assert speech.name == synthetic.NAME and speech.seconds == 2.1
    assert speech.drop.disabled and speech.choice.options == (synthetic.NAME,)


@pytest.mark.usefixtures("in_words")
def test_an_upload_is_used_kept_and_chosen():
    speech = views.speech_input()
    upload(speech, "<b>.wav", wav())
    assert speech.name == "<b>.wav" and np.array_equal(speech.samples, tone()) and speech.upload.value == ()
    assert "In use: &lt;b&gt;.wav, 1.0 s." in speech.said.value and "<b>" not in speech.said.value
    assert speech.choice.value == "<b>.wav" and not speech.drop.disabled
    assert speech.choice.index == 1  # what the page is sent
    assert audio.from_bytes(speech.player.value, "player")[0].tolist() == tone().tolist()
    again = views.speech_input()
    assert again.name == "your last sample" and np.array_equal(again.samples, tone())


@pytest.mark.usefixtures("in_words")
@pytest.mark.parametrize("content", [b"", b"a letter", wav()[:-2], wav(tone(seconds=0.01))])
def test_a_bad_file_changes_nothing_and_a_sentence_says_so(content):
    speech = views.speech_input()
    upload(speech, "good.wav", wav())
    picture = speech.shown.value
    upload(speech, "bad.wav", content)
    assert speech.name == "good.wav" and np.array_equal(speech.samples, tone())
    assert 'role="alert"' in speech.said.value and "bad.wav" in speech.said.value
    assert "stays what it was" in speech.said.value and speech.shown.value == picture
    assert len(speech.choice.options) == 2 and sample.kept().seconds == 1.0
    upload(speech, "better.wav", wav())
    assert 'role="alert"' not in speech.said.value


@pytest.mark.usefixtures("in_words")
def test_a_recording_comes_as_text_and_a_broken_one_is_refused():
    speech = views.speech_input()
    speech.data.value = microphone.HEAD + base64.b64encode(wav()).decode()
    assert speech.name == "your recording" and speech.data.value == "" and speech.seconds == 1.0
    speech.data.value = microphone.HEAD + "no base64!"
    assert "did not arrive whole" in speech.said.value and speech.data.value == ""
    speech.data.value = microphone.HEAD + base64.b64encode(wav()[:50]).decode()
    assert "your recording is cut short" in speech.said.value and speech.name == "your recording"
    speech.data.value = microphone.HEAD + base64.b64encode(wav()).decode()
    assert speech.name == "your recording (2)"


@pytest.mark.usefixtures("in_words")
def test_earlier_samples_can_be_chosen_again_and_are_drawn():
    speech = views.speech_input()
    upload(speech, "a.wav", wav(tone(500)))
    upload(speech, "a.wav", wav(tone(2000)))
    assert speech.choice.options == (synthetic.NAME, "a.wav", "a.wav (2)")
    high = speech.shown.value
    speech.choice.value = "a.wav"
    assert np.array_equal(speech.samples, tone(500)) and speech.shown.value != high
    speech.choice.value = synthetic.NAME
    assert np.array_equal(speech.samples, synthetic.vowels())
    speech.drop.click()
    assert speech.choice.options == (synthetic.NAME,) and sample.kept() is None


@pytest.mark.usefixtures("in_words")
def test_a_silent_recording_asks_after_the_microphone():
    speech = views.speech_input()
    upload(speech, "a.wav", wav(np.zeros(8000, "f4")))
    assert "is the microphone muted?" in speech.said.value


@pytest.mark.usefixtures("in_words")
def test_a_path_comes_first_and_its_faults_are_raised(tmp_path):
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


@pytest.mark.usefixtures("in_words")
def test_a_damaged_kept_sample_is_named_and_passed_over(private_data_folder):
    (private_data_folder / "speech.wav").write_bytes(wav()[:-2])
    speech = views.speech_input()
    assert speech.name == synthetic.NAME and "Your last sample was not taken" in speech.said.value
    assert "is cut short" in speech.said.value


@pytest.mark.usefixtures("in_words")
def test_without_a_folder_a_sample_lasts_as_long_as_the_kernel(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NINE_CIRCLES_HOME", str(tmp_path / "file" / "folder"))
    speech = views.speech_input()
    upload(speech, "a.wav", wav())
    assert speech.name == "a.wav" and "cannot be written" in speech.said.value


def test_the_still_twin_shows_and_says_the_sound_in_use():
    speech = views.speech_input()
    upload(speech, "<b>.wav", wav())
    still = speech.static()
    assert "The sound in use: &lt;b&gt;.wav, 1.0 s" in still.body and "<img alt=" in still.body
    assert "<script" not in still.body and "onclick" not in still.body  # nothing that needs a kernel
    assert "In a running notebook" in still.body and "loudest" in still.text
    bundle = speech._repr_mimebundle_()
    assert bundle["text/html"] == still.body and "application/vnd.jupyter.widget-view+json" in bundle


def test_every_word_of_the_button_is_a_sentence_with_a_way_out():
    for sentence in (*microphone.REFUSALS.values(), microphone.NONE_HERE, microphone.OTHERWISE):
        assert sentence.endswith(".") and microphone.UPLOAD in sentence
    button = microphone.button()
    assert button.startswith("<button") and 'role="status"' in button and "<script" not in button
