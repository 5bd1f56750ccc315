"""The front end of the speech recogniser: samples in, normalised log-mel features out, with NeMo's numbers.

Source: NVIDIA NeMo 1.23, `FilterbankFeatures` (nemo/collections/asr/parts/preprocessing/features.py); the mel
scale and its norm are those of Slaney's Auditory Toolbox (Technical Report 1998-010), which librosa uses.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

PRE_EMPHASIS = 0.97
LOG_GUARD = 2.0**-24  # what is added before the logarithm, so that silence stays finite
STD_GUARD = 1e-5  # what is added to the standard deviation, so that a constant feature becomes 0

BREAK_HZ, BREAK_MEL = 1000.0, 15.0  # below: 3 mel per 200 Hz; above: 27 mel for every factor 6.4
MEL_PER_LOG = 27 / math.log(6.4)


class LogMel(nn.Module):
    """Log-mel features of utterances: (B, n) samples -> (B, features, T), each row normalised by itself.

    `window` and `hop` are in samples. The default is what NeMo did until 2.4: frames at the edges see the
    signal mirrored, and n samples give n//hop + 1 frames. In a batch the mirror stands at the end of the
    longest row, so the last two frames of a shorter one differ from those it has alone. `zero_padded=True` is
    what NeMo does since 2.5: frames at the edges see zeros, n samples give n//hop frames, and a row is the
    same in any batch. The buffers have the checkpoint's names: `featurizer.window` and `featurizer.fb`.
    """

    def __init__(
        self,
        features: int = 80,
        sample_rate: int = 16_000,
        window: int = 400,
        hop: int = 160,
        n_fft: int = 512,
        zero_padded: bool = False,
    ):
        super().__init__()
        self.sample_rate, self.hop, self.n_fft = sample_rate, hop, n_fft
        self.zero_padded = zero_padded
        self.featurizer = nn.Module()
        self.featurizer.register_buffer("window", torch.hann_window(window, periodic=False))
        self.featurizer.register_buffer("fb", mel_filters(features, sample_rate, n_fft)[None])

    @property
    def fewest_samples(self) -> int:
        """The shortest utterance it takes: a mirror needs n_fft//2 more to show, a deviation two frames."""
        return 2 * self.hop if self.zero_padded else max(self.n_fft // 2 + 1, self.hop)

    def forward(self, samples: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return features (B, features, T) and their lengths (B,) in frames; beyond these they are 0.

        Takes and raises what `log_mels` does.
        """
        mels, frames = self.log_mels(samples, lengths)
        return normalised(mels, frames), frames

    @torch.no_grad()
    def log_mels(self, samples: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return log(energy + 2^-24) of each mel band (B, features, T), not normalised, and lengths (B,).

        samples: (B, n) at `sample_rate`, full scale 1; lengths: (B,) in samples, default n for all. What
        stands in a row beyond its length is never looked at. ValueError for another
        shape or too short an utterance.
        """
        lengths = self._checked(samples, lengths)
        frames = lengths // self.hop + (0 if self.zero_padded else 1)
        signal = self._emphasised(samples.to(self.featurizer.fb.dtype), lengths)  # (B, n)
        with torch.autocast(
            samples.device.type, enabled=False
        ):  # half precision is too coarse for a spectrum
            spectrum = torch.stft(
                signal,
                self.n_fft,
                hop_length=self.hop,
                win_length=len(self.featurizer.window),
                window=self.featurizer.window,
                center=True,
                pad_mode="constant" if self.zero_padded else "reflect",
                return_complex=True,
            )  # (B, n_fft//2 + 1, T)
            power = torch.view_as_real(spectrum).square().sum(-1)
            mels = torch.log(self.featurizer.fb @ power + LOG_GUARD)  # (B, features, T)
        return mels[..., : int(frames.max())], frames

    def _emphasised(self, samples: Tensor, lengths: Tensor) -> Tensor:
        """Return y[t] = x[t] - 0.97 x[t-1], which lifts the high frequencies that speech has little of."""
        beyond = torch.arange(samples.shape[1], device=samples.device) >= lengths[:, None]
        x = samples.masked_fill(beyond, 0.0)
        y = torch.cat((x[:, :1], x[:, 1:] - PRE_EMPHASIS * x[:, :-1]), dim=1)
        # The old way leaves -0.97 times the last sample just beyond the end; the new way wipes it.
        return y.masked_fill(beyond, 0.0) if self.zero_padded else y

    def _checked(self, samples: Tensor, lengths: Tensor | None) -> Tensor:
        """Return the lengths, or raise ValueError when samples and lengths are no batch of utterances."""
        if samples.ndim != 2 or not samples.is_floating_point():
            raise ValueError(
                f"Samples are {samples.dtype} of shape {tuple(samples.shape)}, but must be floating-point "
                f"numbers of shape (utterances, samples): give one utterance as samples[None]."
            )
        if lengths is None:
            lengths = torch.full((samples.shape[0],), samples.shape[1])
        lengths = lengths.to(samples.device)
        if lengths.shape != samples.shape[:1] or lengths.is_floating_point() or not len(lengths):
            raise ValueError(
                f"Lengths are {lengths.dtype} of shape {tuple(lengths.shape)}, but must be one integer "
                f"for each of the {samples.shape[0]} utterances."
            )
        shortest, longest = int(lengths.min()), int(lengths.max())
        if longest > samples.shape[1]:
            raise ValueError(
                f"A length is {longest}, but the rows have {samples.shape[1]} samples: lengths count samples."
            )
        if shortest < self.fewest_samples:
            raise ValueError(
                f"A row has {shortest} samples, but the front end wants {self.fewest_samples} or more: "
                f"record at least {1000 * self.fewest_samples / self.sample_rate:.0f} ms."
            )
        return lengths


def normalised(features: Tensor, lengths: Tensor) -> Tensor:
    """Return features (B, F, T) with mean 0 and deviation 1 in every row and feature, over its valid frames.

    The deviation is the unbiased one (divided by frames - 1) plus 1e-5. Beyond `lengths` (B,) stands 0.
    """
    beyond = torch.arange(features.shape[-1], device=features.device) >= lengths[:, None]  # (B, T)
    beyond = beyond[:, None]  # (B, 1, T)
    count = lengths[:, None, None].to(features.dtype)
    shifted = features - features[..., :1]  # small numbers have small rounding errors
    mean = shifted.masked_fill(beyond, 0.0).sum(-1, keepdim=True) / count  # (B, F, 1)
    centred = (shifted - mean).masked_fill(beyond, 0.0)
    deviation = (centred.square().sum(-1, keepdim=True) / (count - 1)).sqrt()
    return centred / (deviation + STD_GUARD)


def mel_from_hz(hz: Tensor) -> Tensor:
    """Return Slaney's mel of frequencies: linear up to 1000 Hz, logarithmic above."""
    logarithmic = BREAK_MEL + MEL_PER_LOG * torch.log(hz.clamp(min=BREAK_HZ) / BREAK_HZ)
    return torch.where(hz < BREAK_HZ, hz * BREAK_MEL / BREAK_HZ, logarithmic)


def hz_from_mel(mel: Tensor) -> Tensor:
    """Return the frequencies in Hz that have these mels; the inverse of `mel_from_hz`."""
    logarithmic = BREAK_HZ * torch.exp((mel - BREAK_MEL) / MEL_PER_LOG)
    return torch.where(mel < BREAK_MEL, mel * BREAK_HZ / BREAK_MEL, logarithmic)


def mel_filters(features: int = 80, sample_rate: int = 16_000, n_fft: int = 512) -> Tensor:
    """Return the triangular filters as float32 (features, n_fft//2 + 1), from 0 Hz to half the sample rate.

    The corners are equally far apart in mel; filter i rises from corner i to i + 1 and falls to i + 2, and is
    scaled to area 1 over Hz (Slaney's norm).
    """
    highest = torch.tensor(sample_rate / 2, dtype=torch.float64, device="cpu")
    mels = torch.linspace(0, float(mel_from_hz(highest)), features + 2, dtype=torch.float64, device="cpu")
    corners = hz_from_mel(mels)[:, None]  # (features + 2, 1)
    bins = torch.linspace(0, float(highest), n_fft // 2 + 1, dtype=torch.float64, device="cpu")  # Hz
    rising = (bins - corners[:-2]) / (corners[1:-1] - corners[:-2])  # (features, bins)
    falling = (corners[2:] - bins) / (corners[2:] - corners[1:-1])
    triangles = torch.minimum(rising, falling).clamp(min=0)
    return (triangles * 2 / (corners[2:] - corners[:-2])).to(torch.float32)
