"""Recordings: read a file into mono samples, and bring samples to another rate."""

from __future__ import annotations

import importlib
import io
import math
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

PCM, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE  # WAVE_FORMAT_… of Microsoft's mmreg.h
CODINGS = {2: "ADPCM", 6: "A-law", 7: "mu-law", 0x11: "IMA ADPCM", 0x55: "MP3"}
#: An extensible header names its coding in the first two bytes of a GUID that ends like this.
GUID_TAIL = bytes.fromhex("000000001000800000aa00389b71")
#: From here on a size is what programs write that cannot go back to the header, as in a pipe: sox writes
#: 0x7FFFF000 and a little more, arecord 0x80000000, ffmpeg 0xFFFFFFFF. Others write 0.
UNKNOWN_SIZE = 0x7FFFF000
CONVERT = "convert it with `ffmpeg -i FILE -ar 16000 -ac 1 speech.wav`"

#: The resampling filter: its sinc's crossings of zero to each side (more: steeper), its Kaiser window's beta
#: (more: quieter aliases, about 80 dB here), and where it is half closed, in parts of the lower Nyquist rate.
CROSSINGS, BETA, ROLL_OFF = 32, 8.0, 0.95

#: Of what a Conformer takes: attention's memory grows with the square of the time, and NeMo's table of
#: positions ends here too (5000 x 40 ms).
LONGEST_S = 200
#: What is read of a file at most: 200 s of stereo float64 at 160 kHz. There are files without an end.
MOST_BYTES = 512 << 20
LOWEST_RATE, HIGHEST_RATE = 1_000, 768_000  # a filter to a rate far away would take minutes to build
LOUDEST = 1e10  # integers of 32 bits that nobody scaled reach 2e9; energies of more overflow float32
PIECE = 1 << 20  # values that are decoded at a time


class UnreadableAudio(ValueError):
    """A recording that cannot be read; the message is one sentence: which file, what is wrong."""


def read(path: str | Path) -> tuple[NDArray[np.float32], int]:
    """Return (samples, rate): float32 (n,) at full scale 1, channels averaged, and samples a second.

    Reads WAV (integers of 8, 16, 24 or 32 bits, floats of 32 or 64) by itself, and anything else that the
    package soundfile reads, where that is installed; up to 200 s at 1 to 768 kHz. Raises UnreadableAudio.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as problem:
        raise UnreadableAudio(
            f"{path} cannot be read ({problem.strerror}): name a sound file of yours."
        ) from None
    if len(content) > MOST_BYTES:
        raise UnreadableAudio(
            f"{path} has more than {MOST_BYTES >> 20} MiB, as no recording of {LONGEST_S} s has: {CONVERT}."
        )
    return _mono(content, path, str(path))


def from_bytes(content: bytes, name: str) -> tuple[NDArray[np.float32], int]:
    """Return what `read` does, of a file that is in memory already; `name` is how its faults begin."""
    return _mono(content, io.BytesIO(content), name)


def as_wav(samples: NDArray[np.floating], rate: int) -> bytes:
    """Return a WAV file's bytes of one channel, float32, from which `read` gives the same samples (n,)."""
    data = np.ascontiguousarray(samples, "<f4").tobytes()
    form = struct.pack("<HHIIHH", FLOAT, 1, rate, 4 * rate, 4, 32)
    chunks = struct.pack("<4sI", b"fmt ", len(form)) + form + struct.pack("<4sI", b"data", len(data)) + data
    return struct.pack("<4sI4s", b"RIFF", 4 + len(chunks), b"WAVE") + chunks


def _mono(content: bytes, source: Path | io.BytesIO, name: str) -> tuple[NDArray[np.float32], int]:
    try:
        if content[:4] == b"RIFF" and content[8:12] == b"WAVE":
            samples, rate = _from_wav(content)
        else:
            samples, rate = _from_other(source)
        _check_samples(samples)
    except _Fault as fault:
        raise UnreadableAudio(f"{name} {fault}.") from None
    return samples, rate


def _check_samples(samples: NDArray[np.float32]) -> None:
    """Raise _Fault unless there are samples, and all are numbers with which can be reckoned."""
    if not len(samples):
        raise _Fault("holds no samples: record it again")
    if not np.isfinite(samples).all():
        raise _Fault("holds samples that are NaN or infinite: record or convert it again")
    if (loudest := float(np.abs(samples).max())) > LOUDEST:
        raise _Fault(f"holds samples of up to {loudest:.1e}, but full scale is 1: record or convert it again")


class _Fault(Exception):
    """What is wrong with a file, as the rest of a sentence that begins with its name."""


def _check_rate(rate: int) -> None:
    if not LOWEST_RATE <= rate <= HIGHEST_RATE:
        raise _Fault(
            f"has {rate} samples a second, but {LOWEST_RATE} to {HIGHEST_RATE} can be used: {CONVERT}"
        )


def _averaged(pieces: Iterable[NDArray[np.float64]]) -> NDArray[np.float32]:
    """Return the channels' average (n,) of pieces (n_i, channels), of which one at a time is in memory."""
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is found afterwards
        averages = [piece.mean(axis=1).astype(np.float32) for piece in pieces]
    return np.concatenate(averages) if averages else np.empty(0, np.float32)


def _from_wav(whole: bytes) -> tuple[NDArray[np.float32], int]:
    """Return (samples (n,), rate) of a whole RIFF/WAVE file."""
    content = memoryview(whole)  # of which parts are no copies
    form = None
    position = 12
    while position + 8 <= len(content):
        name, size = struct.unpack_from("<4sI", content, position)
        if name == b"data" and (
            size >= UNKNOWN_SIZE or (not size and not _are_chunks(content[position + 8 :]))
        ):
            size = len(content) - position - 8
        body = content[position + 8 : position + 8 + size]
        if name in (b"fmt ", b"data") and len(body) < size:
            raise _Fault(f"is cut short ({len(body)} of {size} bytes are there): fetch or record it again")
        if name == b"fmt ":
            form = _Form(body)
        elif name == b"data":
            if form is None:
                raise _Fault("has its samples before their description: " + CONVERT)
            return form.samples(body), form.rate
        position += 8 + size + size % 2  # chunks begin at even places
    raise _Fault("is a WAV file without samples (cut short?): fetch or record it again")


def _are_chunks(content: memoryview) -> bool:
    """Whether chunks follow each other to the end, as behind a `data` chunk that is empty indeed."""
    position = 0
    while position + 8 <= len(content):
        name, size = struct.unpack_from("<4sI", content, position)
        if not (name.isascii() and name.decode().isprintable()):
            return False
        position += 8 + size + size % 2
    return position - 1 <= len(content) <= position  # the byte that makes it even may lack


class _Form:
    """The `fmt ` chunk: how the bytes of the samples are to be read."""

    def __init__(self, chunk: memoryview):
        if len(chunk) < 16:
            raise _Fault(
                f"has a description of {len(chunk)} bytes, but a WAV file's has 16 at least: {CONVERT}"
            )
        self.coding, self.channels, self.rate, _, self.block, self.bits = struct.unpack_from("<HHIIHH", chunk)
        if self.coding == EXTENSIBLE and len(chunk) >= 40 and chunk[26:40] == GUID_TAIL:
            self.coding = struct.unpack_from("<H", chunk, 24)[0]
        known = (PCM, 8), (PCM, 16), (PCM, 24), (PCM, 32), (FLOAT, 32), (FLOAT, 64)
        if (self.coding, self.bits) not in known:
            coding = {PCM: "integer", FLOAT: "float"} | CODINGS
            raise _Fault(
                f"has {self.bits}-bit {coding.get(self.coding, f'coding {self.coding}')} samples, but "
                f"only integers of 8, 16, 24 or 32 bits and floats of 32 or 64 can be read: {CONVERT}"
            )
        if not self.channels or self.block != self.channels * self.bits // 8:
            raise _Fault(
                f"says {self.channels} channels, {self.rate} samples a second, {self.block} bytes for all "
                f"channels, which cannot be: {CONVERT}"
            )
        _check_rate(self.rate)

    def samples(self, data: memoryview) -> NDArray[np.float32]:
        """Return the channels' average (n,); a last sample that is not whole is left out."""
        count = len(data) // self.block
        if count > LONGEST_S * self.rate:  # before anything is decoded: 8 bits would become 64
            seconds = -(-count // self.rate)
            raise _Fault(f"lasts {seconds} s, but at most {LONGEST_S} s can be used: cut it into pieces")
        step = max(1, PIECE // self.channels) * self.block
        return _averaged(
            self._decoded(data[start : start + step]) for start in range(0, count * self.block, step)
        )

    def _decoded(self, data: memoryview) -> NDArray[np.float64]:
        """Return samples as float64 (n, channels); a last one that is not whole is left out."""
        data = data[: len(data) // self.block * self.block]
        if self.coding == FLOAT:
            flat = np.frombuffer(data, f"<f{self.bits // 8}").astype(np.float64)
        elif self.bits == 8:
            flat = (np.frombuffer(data, np.uint8) - 128.0) / 128  # the only unsigned one
        elif self.bits == 24:
            flat = _widened(data) / 2.0**31
        else:
            flat = np.frombuffer(data, f"<i{self.bits // 8}") / 2.0 ** (self.bits - 1)
        return flat.reshape(-1, self.channels)


def _widened(data: memoryview) -> NDArray[np.int32]:
    """Return 24-bit integers times 256: a zero byte is put below each, so that its sign stays on top."""
    wide = np.zeros((len(data) // 3, 4), np.uint8)
    wide[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
    return wide.view("<i4")[:, 0]


def _from_other(source: Path | io.BytesIO) -> tuple[NDArray[np.float32], int]:
    """Return (samples (n,), rate) of a file that soundfile reads."""
    try:
        soundfile = importlib.import_module("soundfile")
    except (ImportError, OSError):  # OSError: the package is there, the library libsndfile is not
        raise _Fault(f"is no WAV file, and others need `pip install soundfile`; or {CONVERT}") from None
    try:
        with soundfile.SoundFile(source) as file:
            _check_rate(file.samplerate)
            return _averaged(_pieces(file)), file.samplerate
    except (RuntimeError, OSError, TypeError):  # TypeError: it takes a name it does not know for raw samples
        raise _Fault(f"is no sound that can be read: {CONVERT}") from None


def _pieces(file: Any) -> Iterator[NDArray[np.float64]]:
    """Yield a SoundFile's samples (n, channels), no more than can be used: a small file may hold hours."""
    count = 0
    while len(piece := file.read(max(1, PIECE // file.channels), dtype="float64", always_2d=True)):
        count += len(piece)
        if count > LONGEST_S * file.samplerate:
            raise _Fault(f"lasts more than {LONGEST_S} s, but no more can be used: cut it into pieces")
        yield piece


def resampled(samples: NDArray[np.floating], rate: int, to: int) -> NDArray[np.float32]:
    """Return samples (n,) taken `rate` times a second as float32 (ceil(n * to / rate),), `to` times a second.

    Polyphase: in lowest terms to/rate = up/down, one low-pass filter at `up` times the rate is cut into `up`
    short ones, and each computes every `up`-th result from the samples as they are. Frequencies above half
    the lower rate are removed (Crochiere and Rabiner, Multirate Digital Signal Processing, 1983, chapter 3).
    """
    samples = np.asarray(samples)
    if samples.ndim != 1:
        raise ValueError(f"Samples have shape {samples.shape}, but must be one channel of shape (n,).")
    if rate < 1 or to < 1:
        raise ValueError(f"The rates are {rate} and {to}, but both must be at least 1 sample a second.")
    if rate == to:
        return samples.astype(np.float32)
    up, down = to // math.gcd(rate, to), rate // math.gcd(rate, to)
    wanted = -(-len(samples) * up // down)
    taps = 2 * math.ceil(CROSSINGS * max(1, down / up)) + 1
    padded = np.pad(samples.astype(np.float64), taps)
    windows = np.lib.stride_tricks.sliding_window_view(padded, taps)
    result = np.empty(wanted, np.float32)
    for phase in range(min(up, wanted)):
        # Result phase + up*q lies at sample phase*down/up + down*q: a whole part, and a rest for the filter.
        whole, rest = divmod(phase * down, up)
        first = whole + taps - taps // 2
        result[phase::up] = windows[first::down][: len(result[phase::up])] @ _low_pass(
            taps, rest / up, up / down
        )
    return result


def _low_pass(taps: int, shift: float, ratio: float) -> NDArray[np.float64]:
    """Return a low-pass filter (taps,) whose middle lies `shift` samples after its middle tap.

    ratio: new rate / old rate; below 1 the filter is that much wider and closes at the new rate's half.
    """
    cutoff = ROLL_OFF * min(1.0, ratio)
    time = np.arange(taps) - taps // 2 - shift
    window = np.i0(BETA * np.sqrt(np.clip(1 - (time / (taps // 2)) ** 2, 0, None)))
    impulse = np.sinc(cutoff * time) * window
    return impulse / impulse.sum()  # a constant stays what it is
