"""Recordings: read a file into mono samples (soundfile), and bring samples to another rate (soxr)."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from soundfile import SoundFile

FLOAT = 3  # WAVE_FORMAT_IEEE_FLOAT of Microsoft's mmreg.h
#: From here on a size is what programs write that cannot go back to the header, as in a pipe: sox writes
#: 0x7FFFF000 and a little more, arecord 0x80000000, ffmpeg 0xFFFFFFFF. Others write 0.
UNKNOWN_SIZE = 0x7FFFF000
CONVERT = "convert it with `ffmpeg -i FILE -ar 16000 -ac 1 speech.wav`"

#: Of what a Conformer takes: attention's memory grows with the square of the time, and NeMo's table of
#: positions ends here too (5000 x 40 ms).
LONGEST_S = 200
#: What is read of a file at most: 200 s of stereo float64 at 160 kHz. There are files without an end.
MOST_BYTES = 512 << 20
LOWEST_RATE, HIGHEST_RATE = 1_000, 768_000
LOUDEST = 1e10  # integers of 32 bits that nobody scaled reach 2e9; energies of more overflow float32
PIECE = 1 << 20  # values that are decoded at a time
UNKNOWN_FRAMES = 1 << 62  # and more: what libsndfile says where the file does not, as in FLAC from a pipe


class UnreadableAudio(ValueError):
    """A recording that cannot be read; the message is one sentence: which file, what is wrong."""


def read(path: str | Path) -> tuple[NDArray[np.float32], int]:
    """Return (samples, rate): float32 (n,) at full scale 1, channels averaged, and samples a second.

    Reads WAV, FLAC, OGG, MP3 and whatever else soundfile knows, up to 200 s at 1 to 768 kHz. Raises
    UnreadableAudio.
    """
    try:
        with Path(path).open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as problem:
        raise UnreadableAudio(
            f"{path} cannot be read ({problem.strerror}): name a sound file of yours."
        ) from None
    return from_bytes(content, str(path))


def from_bytes(content: bytes, name: str) -> tuple[NDArray[np.float32], int]:
    """Return what `read` does, of a file that is in memory already; `name` is how its faults begin."""
    try:
        return _mono(bytes(content))
    except _BadSound as fault:
        raise UnreadableAudio(f"{name} {fault}.") from None


def as_wav(samples: NDArray[np.floating], rate: int) -> bytes:
    """Return a WAV file's bytes of one channel, float32, from which `read` gives the same samples (n,).

    Written here because the same samples must give the same bytes: libsndfile adds the time of day.
    """
    data = np.ascontiguousarray(samples, "<f4").tobytes()
    form = struct.pack("<HHIIHH", FLOAT, 1, rate, 4 * rate, 4, 32)
    chunks = struct.pack("<4sI", b"fmt ", len(form)) + form + struct.pack("<4sI", b"data", len(data)) + data
    return struct.pack("<4sI4s", b"RIFF", 4 + len(chunks), b"WAVE") + chunks


class _InMemory(io.BytesIO):
    """A file in memory, of which no copy is made. In a damaged one libsndfile looks before its beginning."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.length = len(content)  # getbuffer() would copy the content to make it writable

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place, at the earliest the beginning: an error here would be printed, not raised."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self.tell(), io.SEEK_END: self.length}[whence]
        return super().seek(max(base + offset, 0))


class _BadSound(Exception):
    """What is wrong with a file, as the rest of a sentence that begins with its name."""


def _mono(content: bytes) -> tuple[NDArray[np.float32], int]:
    try:
        import soundfile
    except (ImportError, OSError):  # OSError: the package is there, the library libsndfile is not
        raise _BadSound(
            "cannot be read without the library libsndfile, which soundfile does not find here: run "
            "`pip install --force-reinstall soundfile`, or install libsndfile from your system's packages"
        ) from None
    if len(content) > MOST_BYTES:
        raise _BadSound(
            f"has more than {MOST_BYTES >> 20} MiB, as no recording of {LONGEST_S} s has: {CONVERT}"
        )
    if content[:4] == b"RIFF" and content[8:12] == b"WAVE":
        content = _with_its_size(content)
    try:
        with soundfile.SoundFile(_InMemory(content)) as file:
            samples, rate = np.concatenate(list(_averages(file))), file.samplerate
    except (RuntimeError, ValueError, TypeError, OSError) as problem:  # LibsndfileError is a RuntimeError
        why = " ".join(str(getattr(problem, "error_string", problem)).split()).rstrip(".")
        raise _BadSound(
            f"is no sound that can be read ({why}): record or fetch it again, or {CONVERT}"
        ) from None
    if not len(samples):
        raise _BadSound("holds no samples: record it again")
    if not np.isfinite(samples).all():
        raise _BadSound("holds samples that are NaN or infinite: record or convert it again")
    if (loudest := float(np.abs(samples).max())) > LOUDEST:
        raise _BadSound(
            f"holds samples of up to {loudest:.1e}, but full scale is 1: record or convert it again"
        )
    return samples, rate


def _with_its_size(wav: bytes) -> bytes:
    """Return a WAV file with the size of its samples, where a pipe wrote 0.

    Raises _BadSound if it is cut short, for libsndfile reads what is there without a word.
    """
    content = memoryview(wav)  # of which parts are no copies
    position = 12
    while position + 8 <= len(wav):
        name, size = struct.unpack_from("<4sI", wav, position)
        body = content[position + 8 : position + 8 + size]
        if name in (b"fmt ", b"data") and len(body) < size < UNKNOWN_SIZE:
            raise _BadSound(f"is cut short ({len(body)} of {size} bytes are there): fetch or record it again")
        if name == b"data":
            after = wav[position + 8 : position + 12]
            is_a_chunk = after.isascii() and after.decode().isprintable()  # or the end of the file
            if size or is_a_chunk:
                return wav
            return b"".join((content[: position + 4], b"\xff\xff\xff\xff", content[position + 8 :]))
        position += 8 + size + size % 2  # chunks begin at even places
    return wav


def _averages(file: SoundFile) -> Iterator[NDArray[np.float32]]:
    """Yield the channels' average, piece by piece: a small file may hold many channels of silence."""
    rate = file.samplerate
    if not LOWEST_RATE <= rate <= HIGHEST_RATE:
        raise _BadSound(
            f"has {rate} samples a second, but {LOWEST_RATE} to {HIGHEST_RATE} can be used: {CONVERT}"
        )
    if LONGEST_S * rate < file.frames < UNKNOWN_FRAMES:
        seconds = -(-file.frames // rate)
        raise _BadSound(f"lasts {seconds} s, but at most {LONGEST_S} s can be used: cut it into pieces")
    yield np.empty(0, np.float32)
    if file.frames >= UNKNOWN_FRAMES:  # or read() would seek to where it is already, which libsndfile refuses
        file.seekable = lambda: False
    count = 0  # not file.blocks(): it refuses codings in which libsndfile cannot seek, such as GSM 6.10
    while len(piece := file.read(max(1, PIECE // file.channels), dtype="float64", always_2d=True)):
        count += len(piece)
        if count > LONGEST_S * rate:
            raise _BadSound(f"lasts more than {LONGEST_S} s, but no more can be used: cut it into pieces")
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is found afterwards
            yield piece.mean(axis=1).astype(np.float32)


def resampled(samples: NDArray[np.floating], rate: int, to: int) -> NDArray[np.float32]:
    """Return samples (n,) taken `rate` times a second as float32 (ceil(n * to / rate),), `to` times a second.

    Frequencies above half the lower rate are removed; before and after the samples there is silence.
    """
    import soxr

    if rate == to:
        return samples.astype(np.float32)
    wanted = -(-len(samples) * to // rate)
    with_silence = np.pad(samples.astype(np.float64), (0, 2 * rate // to + 2))  # soxr rounds the length
    return soxr.resample(with_silence, rate, to, "VHQ")[:wanted].astype(np.float32)
