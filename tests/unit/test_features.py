"""The front end has NeMo's numbers: against slow formulas from their definitions, alone and in batches."""

import math

import numpy as np
import pytest

WAYS = (False, True)  # zero_padded


def imports():
    global torch, LogMel, hz_from_mel, mel_filters, mel_from_hz
    import torch

    from course_lib.speech.features import LogMel, hz_from_mel, mel_filters, mel_from_hz


def speech_like(samples, seed):
    """Noise of falling spectrum with pauses: as loud and as quiet as speech, float64 (samples,)."""
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(samples, generator=generator, dtype=torch.float64)
    time = torch.arange(samples, dtype=torch.float64) / 16_000
    voice = sum(torch.sin(2 * math.pi * 120 * k * time) / k for k in range(1, 30))
    return (0.1 * voice + 0.01 * noise) * (torch.sin(2 * math.pi * 3 * time) > -0.3)


def batch_of(lengths, beyond=0.0):
    samples = torch.full((len(lengths), max(lengths)), beyond, dtype=torch.float64)
    for row, length in enumerate(lengths):
        samples[row, :length] = speech_like(length, row)
    return samples, torch.tensor(lengths)


# -- the mel scale and its filters -------------------------------------------------------------------------


def slow_mel(hz):
    return 3 * hz / 200 if hz < 1000 else 15 + 27 * math.log(hz / 1000) / math.log(6.4)


def slow_hz(mel):
    """The inverse, found by halving: no second formula that could be wrong in the same way."""
    low, high = 0.0, 20_000.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if slow_mel(middle) < mel else (low, middle)
    return low


def slow_filters(features, rate, n_fft):
    corners = [slow_hz(slow_mel(rate / 2) * i / (features + 1)) for i in range(features + 2)]
    filters = np.zeros((features, n_fft // 2 + 1))
    for i in range(features):
        left, top, right = corners[i : i + 3]
        for k in range(n_fft // 2 + 1):
            hz = k * rate / n_fft
            if left < hz <= top:
                filters[i, k] = (hz - left) / (top - left) * 2 / (right - left)
            elif top < hz < right:
                filters[i, k] = (right - hz) / (right - top) * 2 / (right - left)
    return filters


def test_the_scale_and_its_filters():
    for shape in ((80, 16_000, 512), (64, 8_000, 256)):
        filters = mel_filters(*shape)
        assert filters.dtype == torch.float32 and filters.shape == (shape[0], shape[2] // 2 + 1)
        np.testing.assert_allclose(filters.numpy(), slow_filters(*shape), rtol=1e-5, atol=1e-9)
    hz = torch.tensor([0.0, 200, 1000, 6400], dtype=torch.float64)
    assert mel_from_hz(hz).tolist() == pytest.approx([0, 3, 15, 42])
    assert hz_from_mel(mel_from_hz(hz)).tolist() == pytest.approx(hz.tolist())


# -- the whole front end -----------------------------------------------------------------------------------


def slow_features(x, zero_padded):
    """One utterance, float64 (n,) -> (80, frames), a matrix of cosines and sines in place of the FFT."""
    y = np.concatenate([x[:1], x[1:] - 0.97 * x[:-1]])
    padded = np.pad(y, 256) if zero_padded else np.pad(y, 256, mode="reflect")
    count = len(x) // 160 + (0 if zero_padded else 1)
    hann = np.zeros(512)
    hann[56:456] = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 399)
    turns = np.outer(np.arange(257), np.arange(512)) / 512
    frames = np.stack([padded[160 * t : 160 * t + 512] * hann for t in range(count)], 1)
    power = (np.cos(2 * np.pi * turns) @ frames) ** 2 + (np.sin(2 * np.pi * turns) @ frames) ** 2
    logs = np.log(slow_filters(80, 16_000, 512) @ power + 2.0**-24)
    return (logs - logs.mean(1, keepdims=True)) / (logs.std(1, ddof=1, keepdims=True) + 1e-5)


def test_against_the_slow_formula():
    for zero_padded in WAYS:
        for samples in (400, 3200, 16_037):
            x = speech_like(samples, 3)
            features, frames = LogMel(zero_padded=zero_padded).double()(x[None])
            wanted = slow_features(x.numpy(), zero_padded)
            assert frames.tolist() == [wanted.shape[1]]
            np.testing.assert_allclose(features[0].numpy(), wanted, atol=2e-5)  # the filters are float32
        front_end = LogMel(zero_padded=zero_padded)
        samples, lengths = batch_of([48_000, 160_000, 20_001])
        single, _ = front_end(samples.float(), lengths)
        double, _ = front_end.double()(samples.float(), lengths)
        assert single.dtype == torch.float32 and double.dtype == torch.float64
        assert (single - double).abs().max() <= 2e-5, zero_padded
    state = LogMel().state_dict()  # names as in a checkpoint
    shapes = {name: tuple(tensor.shape) for name, tensor in state.items()}
    assert shapes == {"featurizer.window": (400,), "featurizer.fb": (1, 80, 257)}


LENGTHS = [16_000, 8_001, 12_345]  # none ends in a pause


def test_beyond_its_length_a_row_is_zero_and_not_looked_at():
    for zero_padded in WAYS:
        front_end = LogMel(zero_padded=zero_padded).double()
        features, frames = front_end(*batch_of(LENGTHS))
        extra = 0 if zero_padded else 1
        assert frames.tolist() == [100 + extra, 50 + extra, 77 + extra]
        assert features.shape == (3, 80, 100 + extra)
        for row, count in zip(features, frames, strict=True):
            assert (row[:, count:] == 0).all() and (row[:, :count] != 0).any(0).all()
            assert row[:, :count].mean(1).abs().max() < 1e-12
            assert (row[:, :count].std(1) - 1).abs().max() < 1e-3
        assert torch.equal(features, front_end(*batch_of(LENGTHS, beyond=float("nan")))[0])


def test_what_is_no_batch_is_refused():
    assert (LogMel()(torch.zeros(1, 1600))[0] == 0).all()  # silence is finite
    row = torch.zeros(1, 1600)
    for samples, lengths, says in (
        (torch.zeros(1600), None, "must be floating-point numbers of"),
        (torch.zeros(1, 1600, dtype=torch.int16), None, "torch.int16"),
        (torch.zeros(2, 1600), torch.tensor([1600]), "one integer for each of the 2"),
        (row, torch.tensor([1601]), "1601, but the rows have 1600"),
        (torch.zeros(1, 256), None, "has 256 samples, but the front end wants 257 or more"),
    ):
        with pytest.raises(ValueError, match=says):
            LogMel()(samples, lengths)
