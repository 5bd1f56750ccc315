"""Every kind of WAV gives the samples written, foreign files a sentence; resampling keeps sounds."""

import os
import struct
import sys
import wave

import numpy as np
import pytest
from sound_files import soundfile_of

from course_lib.speech import audio
from course_lib.speech.audio import UnreadableAudio, read, resampled

CODES = {"i8": (1, 8), "i16": (1, 16), "i24": (1, 24), "i32": (1, 32), "f32": (3, 32), "f64": (3, 64)}
GUID_TAIL = bytes.fromhex("000000001000800000aa00389b71")


def encoded(values, kind):
    """Return full-scale values as a WAV file's bytes, by the definition of each kind."""
    if kind == "i8":
        return bytes(round(v * 128) + 128 for v in values)
    if kind.startswith("f"):
        return struct.pack(f"<{len(values)}{'f' if kind == 'f32' else 'd'}", *values)
    bits = int(kind[1:])
    return b"".join(round(v * 2 ** (bits - 1)).to_bytes(bits // 8, "little", signed=True) for v in values)


def chunk(name, body):
    return struct.pack("<4sI", name, len(body)) + body + b"\0" * (len(body) % 2)


def header(kind, channels=1, rate=8000, extensible=False, block=None):
    coding, bits = CODES[kind]
    block = channels * bits // 8 if block is None else block
    plain = struct.pack("<HHIIHH", coding, channels, rate, rate * block, block, bits)
    if not extensible:
        return plain
    guid = struct.pack("<H", coding) + GUID_TAIL
    return struct.pack("<H", 0xFFFE) + plain[2:] + struct.pack("<HHI", 22, bits, 0) + guid


def wav(*chunks):
    body = b"WAVE" + b"".join(chunks)
    return struct.pack("<4sI", b"RIFF", len(body)) + body


def plain(values=(0.5, -0.25), kind="i16", **form):
    return wav(chunk(b"fmt ", header(kind, **form)), chunk(b"data", encoded(values, kind)))


@pytest.fixture
def written(tmp_path):
    def write(content, name="speech.wav"):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write


VALUES = (0.5, -0.25, 0.0, -1.0, 0.125, 0.75, -0.0625, 0.25)  # each exact in 8 bits


@pytest.mark.parametrize("extensible", [False, True], ids=["plain", "extensible"])
@pytest.mark.parametrize("kind", CODES)
def test_every_kind_gives_the_samples_written(written, kind, extensible):
    samples, rate = read(written(plain(VALUES, kind, extensible=extensible, rate=11_025)))
    assert samples.dtype == np.float32 and samples.shape == (8,) and rate == 11_025
    assert samples.tolist() == list(VALUES)


def test_the_smallest_step_is_kept(written):
    for kind, step in (("i16", 2.0**-15), ("i24", 2.0**-23), ("i32", 2.0**-31)):
        samples, _ = read(written(plain((step, -step, 1 - 2.0**-15), kind)))
        assert samples.tolist() == [step, -step, 1 - 2.0**-15]


@pytest.mark.parametrize("kind", ["i8", "i24", "f32"])
def test_channels_are_averaged(written, kind):
    samples, _ = read(written(plain((0.5, 0.25, -1.0, 0.0), kind, channels=2)))
    assert samples.tolist() == [0.375, -0.5]


def test_what_pythons_own_module_writes(tmp_path):
    path = tmp_path / "own.wav"
    with wave.open(str(path), "wb") as file:
        file.setparams((2, 2, 16_000, 0, "NONE", ""))
        file.writeframes(struct.pack("<4h", 16384, 0, -32768, -32768))
    samples, rate = read(path)
    assert rate == 16_000 and samples.tolist() == [0.25, -1.0]


def test_other_chunks_are_passed_by_also_those_of_odd_length(written):
    content = wav(
        chunk(b"LIST", b"odd"),
        chunk(b"fmt ", header("i16")),
        chunk(b"fact", b"four"),
        chunk(b"data", encoded((0.5,), "i16")),
        chunk(b"id3 ", b"after"),
    )
    assert read(written(content))[0].tolist() == [0.5]


UNKNOWN = (0xFFFFFFFF, 0x7FFFFFFF, 0x80000000, 0x7FFFF000, 0x7FFFF024, 0)


@pytest.mark.parametrize("size", UNKNOWN)
def test_from_a_pipe_the_samples_go_to_the_end(written, size):
    values = (0.5, -0.25, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.25)
    old = struct.pack("<4sI", b"data", 18)
    assert old in plain(values)
    content = plain(values).replace(old, struct.pack("<4sI", b"data", size))
    assert read(written(content))[0].tolist() == list(values)


@pytest.mark.parametrize(
    "after", [b"", chunk(b"LIST", b"some"), chunk(b"LIST", b"odd") + chunk(b"id3 ", b"")]
)
def test_an_empty_chunk_of_samples_before_others_is_empty(written, after):
    with pytest.raises(UnreadableAudio, match="holds no samples"):
        read(written(wav(FORM, chunk(b"data", b""), after)))


FORM = chunk(b"fmt ", header("i16"))
REFUSED = {
    "cut in the samples": (plain(VALUES)[:-3], r"is cut short \(13 of 16 bytes"),
    "cut in the header": (plain()[:30], r"is cut short \(10 of 16 bytes"),
    "cut before the samples": (wav(FORM), "a WAV file without samples"),
    "no description": (wav(chunk(b"data", b"1234")), "samples before their description"),
    "short description": (wav(chunk(b"fmt ", b"12345678"), chunk(b"data", b"")), "description of 8 bytes"),
    "mu-law": (wav(chunk(b"fmt ", struct.pack("<HHIIHH", 7, 1, 8000, 8000, 1, 8))), "8-bit mu-law samples"),
    "unknown": (wav(chunk(b"fmt ", struct.pack("<HHIIHH", 999, 1, 8000, 8000, 1, 8))), "8-bit coding 999"),
    "20 bits": (wav(chunk(b"fmt ", struct.pack("<HHIIHH", 1, 1, 8000, 1, 3, 20))), "20-bit integer"),
    "foreign guid": (
        wav(chunk(b"fmt ", header("i16", extensible=True)[:-1] + b"!"), chunk(b"data", b"12")),
        "16-bit coding 65534",
    ),
    "no channels": (plain(channels=0, block=2), "0 channels"),
    "rate 0": (plain(rate=0), "0 samples a second"),
    "rate too low": (plain(rate=999), "999 samples a second, but 1000 to 768000 can be used"),
    "rate too high": (plain(rate=768_001), "768001 samples a second, but 1000 to 768000 can be used"),
    "too loud for float32": (plain((1e300, 0.0), "f64"), "NaN or infinite"),
    "too loud on average": (plain((1.7e308, 1.7e308), "f64", channels=2), "NaN or infinite"),
    "too loud for energies": (plain((3e38, 0.0), "f32"), r"samples of up to 3.0e\+38, but full scale is 1"),
    "block that does not fit": (plain(channels=2, block=2), "2 bytes for all"),
    "no samples": (plain(()), "holds no samples"),
    "NaN": (plain((float("nan"), 0.5), "f32"), "NaN or infinite"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_broken_file_gets_a_sentence(written, case):
    content, says = REFUSED[case]
    path = written(content)
    with pytest.raises(UnreadableAudio, match=says) as caught:
        read(path)
    sentence = str(caught.value)
    assert sentence.startswith(str(path)) and sentence.endswith(".") and "\n" not in sentence


@pytest.mark.parametrize("kind", CODES)
def test_cut_anywhere_it_is_a_sentence_or_whole(written, kind):
    content = plain(VALUES, kind, extensible=True)
    for length in range(len(content)):
        with pytest.raises(UnreadableAudio):
            read(written(content[:length], f"cut{length}.wav"))


def test_no_file(tmp_path):
    with pytest.raises(UnreadableAudio, match="No such file"):
        read(tmp_path / "none.wav")
    with pytest.raises(UnreadableAudio, match=r"Is a directory|Permission"):
        read(tmp_path)


def test_another_format_without_soundfile_says_what_to_install(written, monkeypatch):
    monkeypatch.setitem(sys.modules, "soundfile", None)
    with pytest.raises(
        UnreadableAudio, match=r"is no WAV file, and others need `pip install soundfile`; or conv"
    ):
        read(written(b"fLaC" + bytes(40), "speech.flac"))


def test_another_format_goes_to_soundfile(written, monkeypatch):
    monkeypatch.setattr(audio, "PIECE", 3)
    values = [[0.5, 0.25], [0.0, 1.0], [0.5, 0.5]]
    monkeypatch.setitem(sys.modules, "soundfile", soundfile_of(values, 22_050))
    samples, rate = read(written(b"fLaC", "speech.flac"))
    assert samples.dtype == np.float32 and samples.tolist() == [0.375, 0.5, 0.5] and rate == 22_050
    with pytest.raises(UnreadableAudio, match="no sound that can be read: convert"):
        read(written(b"a letter", "letter.txt"))


def test_a_small_file_of_much_sound_is_not_read_to_its_end(written, monkeypatch):
    monkeypatch.setattr(audio, "PIECE", 1000)
    monkeypatch.setitem(sys.modules, "soundfile", soundfile_of(np.zeros((200_001, 1)), 1000))
    with pytest.raises(UnreadableAudio, match="flac lasts more than 200 s, but no more can be used: cut it"):
        read(written(b"fLaC", "speech.flac"))
    monkeypatch.setitem(sys.modules, "soundfile", soundfile_of(np.zeros((5, 1)), 999))
    with pytest.raises(UnreadableAudio, match="has 999 samples a second, but 1000 to 768000 can be used"):
        read(written(b"fLaC", "speech.flac"))


# -- sizes, before and after decoding ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", CODES)
def test_pieces_and_the_whole_give_the_same(written, monkeypatch, kind):
    path = written(plain(VALUES, kind, channels=2))
    whole = read(path)[0]
    monkeypatch.setattr(audio, "PIECE", 6)
    assert whole.tolist() == read(path)[0].tolist() == [0.125, -0.5, 0.4375, 0.09375]


def test_too_long_a_file_is_not_decoded(written, monkeypatch):
    monkeypatch.setattr(audio._Form, "_decoded", None)
    path = written(wav(chunk(b"fmt ", header("i8", rate=1000)), chunk(b"data", bytes(200_001))))
    with pytest.raises(UnreadableAudio, match="wav lasts 201 s, but at most 200 s can be used: cut it"):
        read(path)


def test_a_file_of_200_s_is_read(written):
    path = written(wav(chunk(b"fmt ", header("i8", rate=1000)), chunk(b"data", bytes(200_000))))
    assert len(read(path)[0]) == 200_000


def test_a_file_without_an_end_is_read_up_to_a_limit(written, monkeypatch):
    assert audio.MOST_BYTES > 200 * 2 * 8 * 160_000
    monkeypatch.setattr(audio, "MOST_BYTES", 1 << 20)
    path = "/dev/zero" if os.path.exists("/dev/zero") else written(bytes((1 << 20) + 1))
    with pytest.raises(UnreadableAudio, match="has more than 1 MiB, as no recording of 200 s has: convert"):
        read(path)


# -- resampling --------------------------------------------------------------------------------------------


def sine(hz, rate, seconds=0.5):
    return np.sin(2 * np.pi * hz * np.arange(round(rate * seconds)) / rate + 0.3)


def inner(samples, rate):
    """What is left 25 ms from either end, where the silence around the sound no longer matters."""
    return samples[rate // 40 : -rate // 40]


@pytest.mark.parametrize("rate", [8_000, 11_025, 22_050, 44_100, 48_000, 15_999])
@pytest.mark.parametrize("hz", [50, 440, 3400])
def test_a_sine_stays_that_sine(rate, hz):
    result = resampled(sine(hz, rate), rate, 16_000)
    assert result.dtype == np.float32
    wanted = sine(hz, 16_000)
    assert abs(len(result) - len(wanted)) <= 1
    shorter = min(len(result), len(wanted))
    difference = inner(result[:shorter] - wanted[:shorter], 16_000)
    assert np.abs(difference).max() < 2e-3


@pytest.mark.parametrize(("rate", "hz"), [(44_100, 9_000), (48_000, 20_000), (22_050, 8_600)])
def test_what_the_lower_rate_cannot_carry_is_removed(rate, hz):
    assert np.abs(inner(resampled(sine(hz, rate), rate, 16_000), 16_000)).max() < 1e-3


@pytest.mark.parametrize("rate", [22_050, 32_000, 44_100, 48_000])
def test_aliases_are_80_db_down(rate):
    """From 4 % above what the lower rate carries, where the filter has closed, to what the other does."""
    for hz in np.linspace(8_300, 0.499 * rate, 20):
        alias = inner(resampled(sine(hz, rate, seconds=0.15), rate, 16_000), 16_000)
        assert np.abs(alias).max() < 10 ** (-80 / 20), hz


@pytest.mark.parametrize(("n", "rate", "to", "wanted"), [(441, 44_100, 16_000, 160), (1, 8_000, 16_000, 2)])
def test_lengths(n, rate, to, wanted):
    assert resampled(np.ones(n), rate, to).shape == (wanted,)


@pytest.mark.parametrize("length", [0, 1, 2, 3, 7, 100])
@pytest.mark.parametrize(("rate", "to"), [(44_100, 16_000), (16_000, 44_100), (3, 2), (2, 3)])
def test_any_length_has_ceil_of_its_share(length, rate, to):
    assert resampled(np.zeros(length), rate, to).shape == (-(-length * to // rate),)


def test_a_constant_and_the_same_rate():
    assert np.abs(inner(resampled(np.full(8000, 0.5), 44_100, 16_000), 16_000) - 0.5).max() < 1e-6
    samples = np.array([0.1, 0.2], np.float32)
    assert resampled(samples, 8000, 8000).tolist() == samples.tolist()


def test_no_samples_of_two_channels_and_no_rate_of_zero():
    with pytest.raises(ValueError, match=r"shape \(2, 5\)"):
        resampled(np.zeros((2, 5)), 8000, 16_000)
    with pytest.raises(ValueError, match="at least 1 sample a second"):
        resampled(np.zeros(5), 0, 16_000)
