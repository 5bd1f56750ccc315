"""What soundfile reads comes as mono samples, what it cannot read as a sentence; resampling keeps sounds."""

import contextlib
import io
import struct
import sys

import numpy as np
import pytest

from course_lib.speech import audio
from course_lib.speech.audio import UnreadableAudio, from_bytes, read, resampled

SUBTYPES = ("PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE")
VALUES = (0.5, -0.25, 0.0, -1.0, 0.125, 0.75, -0.0625, 0.25)  # each exact in 8 bits


def chunk(name, body):
    return struct.pack("<4sI", name, len(body)) + body + b"\0" * (len(body) % 2)


def form(coding=1, bits=16, channels=1, rate=8000):
    block = channels * bits // 8
    return chunk(b"fmt ", struct.pack("<HHIIHH", coding, channels, rate, rate * block, block, bits))


def wav(*chunks):
    body = b"WAVE" + b"".join(chunks)
    return struct.pack("<4sI", b"RIFF", len(body)) + body


def encoded(values, rate=11_025, **options):
    """Return what libsndfile writes; values (n,) or (n, channels)."""
    import soundfile

    file = io.BytesIO()
    soundfile.write(file, np.array(values, np.float64), rate, **({"format": "WAV"} | options))
    return file.getvalue()


def test_every_kind_of_file_gives_the_samples_written(tmp_path):
    for subtype in SUBTYPES:
        for container in ("WAV", "WAVEX", "RF64"):
            path = tmp_path / "speech.wav"
            path.write_bytes(encoded(VALUES, format=container, subtype=subtype))
            samples, rate = read(path)
            assert samples.dtype == np.float32 and rate == 11_025, (subtype, container)
            assert samples.tolist() == list(VALUES), (subtype, container)
    assert from_bytes(encoded(VALUES, format="FLAC"), "a.flac")[0].tolist() == list(VALUES)
    for container in ("OGG", "MP3"):
        samples, rate = from_bytes(encoded(np.zeros(9000), 16_000, format=container), "a")
        assert rate == 16_000 and len(samples) >= 9000 and not samples.any(), container
    for container, subtype in (("WAV", "GSM610"), ("AU", "G721_32"), ("AIFF", "GSM610")):  # cannot seek
        samples, rate = from_bytes(encoded(np.zeros(9000), 8000, format=container, subtype=subtype), "a")
        assert rate == 8000 and len(samples) >= 9000 and np.abs(samples).max() < 0.1, (container, subtype)
    smallest = from_bytes(encoded((2.0**-31, 1 - 2.0**-15), subtype="PCM_32"), "a")[0]
    assert smallest.tolist() == [2.0**-31, 1 - 2.0**-15]


def test_channels_are_averaged_also_piece_by_piece(monkeypatch):
    content = encoded(np.reshape(VALUES, (4, 2)))
    whole = from_bytes(content, "a")[0].tolist()
    monkeypatch.setattr(audio, "PIECE", 6)
    assert whole == from_bytes(content, "a")[0].tolist() == [0.125, -0.5, 0.4375, 0.09375]


def test_from_a_pipe_the_samples_go_to_the_end():
    """Programs that cannot go back to the header write these sizes (see UNKNOWN_SIZE)."""
    flac = of_unknown_length(encoded(VALUES, format="FLAC"))
    assert from_bytes(flac, "a")[0].tolist() == list(VALUES)
    samples = (16384, -8192, 0, 0, 0, 8192)
    for first in ((16384, -8192), (0, 0)):
        body = struct.pack("<6h", *first, *samples[2:])
        for size in (0xFFFFFFFF, 0x7FFFFFFF, 0x80000000, 0x7FFFF000, 0x7FFFF024, 0):
            content = wav(form(), struct.pack("<4sI", b"data", size) + body)
            found = from_bytes(content, "a")[0]
            assert found.tolist() == [*(x / 2**15 for x in first), 0, 0, 0, 0.25], (first, hex(size))


def of_unknown_length(flac):
    """Return a FLAC file as from a pipe: the 36 bits from byte 21.5 on, its count of samples, are 0."""
    return flac[:21] + bytes((flac[21] & 0xF0, 0, 0, 0, 0)) + flac[26:]


REFUSED = {
    "cut in the samples": (wav(form(), chunk(b"data", bytes(16)))[:-3], r"is cut short \(13 of 16 bytes"),
    "cut in the header": (wav(form())[:30], r"is cut short \(10 of 16 bytes"),
    "cut before the samples": (wav(form()), "no sound that can be read .*data.*: record or fetch it again"),
    "text": (b"a letter", "no sound that can be read .*: record or fetch it again, or convert it with"),
    "nothing": (b"", "no sound that can be read"),
    "unknown coding": (wav(form(999), chunk(b"data", bytes(8))), "no sound that can be read"),
    "rate too low": (encoded((0.5,), 999), "999 samples a second, but 1000 to 768000 can be used: convert"),
    "rate too high": (encoded((0.5,), 768_001), "768001 samples a second, but"),
    "too loud for float32": (encoded((1e300, 0.0), subtype="DOUBLE"), "NaN or infinite"),
    "too loud for energies": (encoded((3e38, 0.0), subtype="FLOAT"), r"up to 3.0e\+38, but full scale is 1"),
    "NaN": (encoded((np.nan, 0.5), subtype="FLOAT"), "NaN or infinite: record or convert it again"),
    "no samples": (encoded(()), "holds no samples: record it again"),
    "long": (wav(form(bits=8, rate=1000), chunk(b"data", bytes(200_001))), "lasts 201 s, but at most 200"),
    "no length": (of_unknown_length(encoded(np.zeros(201 * 8000), 8000, format="FLAC")), "lasts more"),
    "long, but small": (encoded(np.zeros(201 * 8000), 8000, format="FLAC"), "lasts 201 s, .* cut it into"),
}  # fmt: skip


def test_a_broken_file_gets_a_sentence(tmp_path):
    path = tmp_path / "speech.wav"
    for case, (content, says) in REFUSED.items():
        path.write_bytes(content)
        with pytest.raises(UnreadableAudio, match=says) as caught:
            read(path)
        sentence = str(caught.value)
        assert sentence.startswith(f"{path} ") and sentence.endswith(".") and "\n" not in sentence, case
    assert len(from_bytes(wav(form(bits=8, rate=1000), chunk(b"data", bytes(200_000))), "a")[0]) == 200_000
    with pytest.raises(UnreadableAudio, match="No such file"):
        read(tmp_path / "none.wav")
    with pytest.raises(UnreadableAudio, match=r"Is a directory|Permission"):
        read(tmp_path)


def test_without_libsndfile_a_sentence_says_what_to_do(tmp_path, monkeypatch):
    for fails in ("OSError('sndfile library not found')", "ImportError('no soundfile')"):
        (tmp_path / "soundfile.py").write_text(f"raise {fails}\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.delitem(sys.modules, "soundfile", raising=False)
        with pytest.raises(UnreadableAudio, match=r"^a cannot be read without .* run `pip install .*\.$"):
            from_bytes(audio.as_wav(np.zeros(9), 8000), "a")


def test_cut_anywhere_it_is_a_sentence():
    for subtype, size in (("PCM_16", 2), ("DOUBLE", 8)):
        whole = wav(chunk(b"LIST", b"odd"), encoded(VALUES, subtype=subtype)[12:])
        for length in range(whole.index(b"data") + 8 + size * len(VALUES)):
            with pytest.raises(UnreadableAudio):
                from_bytes(whole[:length], f"{subtype} cut to {length}")


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_damage_anywhere_is_a_sentence_or_sound_and_nothing_is_printed(capfd):
    rng = np.random.default_rng(0)
    for container in ("WAV", "FLAC", "OGG", "AIFF", "AU", "CAF", "W64"):
        whole = encoded(rng.normal(0, 0.1, 4000), 16_000, format=container)
        for _ in range(40):
            damaged = bytearray(whole)
            for place in rng.integers(0, 200, 4):
                damaged[place] = rng.integers(0, 256)
            with contextlib.suppress(UnreadableAudio):
                from_bytes(bytes(damaged), container)
        assert capfd.readouterr().err == "", container


def test_a_file_without_an_end_is_read_up_to_a_limit(tmp_path, monkeypatch):
    assert audio.MOST_BYTES > 200 * 2 * 8 * 160_000
    monkeypatch.setattr(audio, "MOST_BYTES", 1 << 20)
    path = tmp_path / "long"
    path.write_bytes(bytes((1 << 20) + 1))
    with pytest.raises(UnreadableAudio, match="has more than 1 MiB, as no recording of 200 s has: convert"):
        read(path)


# -- resampling --------------------------------------------------------------------------------------------


def test_a_sine_stays_that_sine_and_in_time():
    def sine(hz, rate):
        return np.sin(2 * np.pi * hz * np.arange(rate // 2) / rate + 0.3)

    for rate in (8_000, 11_025, 22_050, 44_100, 48_000, 15_999, 768_000):
        for hz in (50, 440, 3400):
            result, wanted = resampled(sine(hz, rate), rate, 16_000), sine(hz, 16_000)
            assert result.dtype == np.float32 and abs(len(result) - len(wanted)) <= 1
            off = (result[:8000] - wanted[: len(result)])[400:-400]  # the silence around it matters 25 ms far
            assert np.abs(off).max() < 1e-5, (rate, hz)
    alias = resampled(sine(9_000, 44_100), 44_100, 16_000)[400:-400]  # which the lower rate cannot carry
    assert np.abs(alias).max() < 1e-5


def test_any_length_has_ceil_of_its_share():
    for rate, to in ((44_100, 16_000), (16_000, 44_100), (3, 2), (2, 3), (768_000, 1_000)):
        for length in (0, 1, 2, 3, 7, 100, 441):
            share = -(-length * to // rate)
            assert resampled(np.zeros(length), rate, to).shape == (share,), (length, rate, to)
