"""Conformer-CTC in plain PyTorch: the network whose profile the talk shows.

The architecture is Gulati et al. 2020 (arXiv:2005.08100); parameter names and order of operations are those
of NeMo 1.23's `EncDecCTCModelBPE` with a striding subsampling, so that a checkpoint of NeMo loads by name and
the profile counts the same calls. Dropout is left out: the course only runs the network.
Shapes: B rows, F features (mel bands), T frames, T' = ceil(ceil(T / 2) / 2) frames after the subsampling.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.arguments import whole
from course_lib.speech.relative_attention import RelativePositions, RelPositionMultiHeadAttention

KERNEL, STRIDE, PADDING = 3, 2, 1  # of both convolutions of the subsampling


class ConformerEncoder(nn.Module):
    """Turn mel features into a quarter as many vectors of d_model: subsampling, then n_layers layers.

    `masks_subsampling` False is NeMo before 2.5, the time of the talk's checkpoint: the second convolution
    sees what the first made of the padding, which leaks into the last frames of a short row. True is NeMo
    from 2.5: padding is zeroed around both, and a row's result does not depend on its neighbours.
    """

    def __init__(
        self,
        feat_in: int = 80,
        n_layers: int = 18,
        d_model: int = 512,
        n_heads: int = 8,
        conv_kernel: int = 31,
        ff_expansion: int = 4,
        subsampling_channels: int | None = None,
        masks_subsampling: bool = False,
    ) -> None:
        """Raise ValueError for a size below 1, heads that cannot share d_model, odd d_model or even kernel.

        `subsampling_channels` None means d_model, as in the large model.
        """
        super().__init__()
        channels = d_model if subsampling_channels is None else subsampling_channels
        sizes = {"feat_in": feat_in, "n_layers": n_layers, "d_model": d_model, "n_heads": n_heads}
        sizes |= {"conv_kernel": conv_kernel, "ff_expansion": ff_expansion}
        for name, size in (sizes | {"subsampling_channels": channels}).items():
            whole(name, size)
        if d_model % n_heads:
            raise ValueError(
                f"d_model is {d_model}, which {n_heads} heads cannot share: take a multiple of n_heads."
            )
        if d_model % 2:
            raise ValueError(
                f"d_model is {d_model}, but it must be even (sines and cosines): take {d_model + 1}."
            )
        if not conv_kernel % 2:
            wanted = f"odd (centred on a frame): take {conv_kernel + 1}"
            raise ValueError(f"conv_kernel is {conv_kernel}, but it must be {wanted}.")
        self.feat_in, self.d_model = feat_in, d_model
        self.pre_encode = ConvSubsampling(feat_in, channels, d_model, masks_subsampling)
        self.pos_enc = RelativePositions(d_model)
        self.layers = nn.ModuleList(
            ConformerLayer(d_model, n_heads, conv_kernel, ff_expansion) for _ in range(n_layers)
        )

    @classmethod
    def large(cls, *, masks_subsampling: bool = False) -> ConformerEncoder:
        """Return the encoder of `stt_ru_conformer_ctc_large`: 121,435,136 parameters, values untrained."""
        return cls(masks_subsampling=masks_subsampling)

    def forward(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Return (encoded (B, d_model, T'), encoded_lengths (B,) int64).

        Takes features (B, feat_in, T) of the weights' dtype and lengths (B,), int32 or int64, in mel frames.
        Frames of row b from encoded_lengths[b] on are what became of the padding: ignore them.
        Raises TypeError and ValueError for a wrong dtype, shape, device or length.
        """
        _check_batch(features, lengths, self.feat_in, like=self.pre_encode.conv[0].weight)
        x, lengths = self.pre_encode(features.transpose(1, 2), lengths)  # (B, T', d_model)
        x = x * math.sqrt(self.d_model)
        positions = self.pos_enc(x.size(1), like=x)  # (1, 2T' − 1, d_model)
        padding, hidden = masks(lengths, x.size(1))  # (B, T'), (B, T', T')
        for layer in self.layers:
            x = layer(x, positions, hidden, padding)  # (B, T', d_model)
        return x.transpose(1, 2), lengths  # (B, d_model, T')


class ConvSubsampling(nn.Module):
    """Two 3 × 3 convolutions of stride 2 leave a quarter of the frames; a linear layer leads to d_model."""

    def __init__(self, feat_in: int, channels: int, d_model: int, masks: bool) -> None:
        super().__init__()
        self.masks = masks
        self.conv = nn.Sequential(
            nn.Conv2d(1, channels, KERNEL, STRIDE, PADDING),
            nn.ReLU(),
            nn.Conv2d(channels, channels, KERNEL, STRIDE, PADDING),
            nn.ReLU(),
        )
        self.out = nn.Linear(channels * math.ceil(feat_in / STRIDE**2), d_model)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Return ((B, T', d_model), lengths (B,) int64) for x (B, T, F)."""
        x = x.unsqueeze(1)  # (B, 1, T, F)
        lengths = lengths.to(torch.float32)
        first, first_relu, second, second_relu = self.conv
        x = first_relu(first(self._without_padding(x, lengths)))  # (B, C, T / 2, F / 2)
        lengths = halved(lengths)
        x = second_relu(second(self._without_padding(x, lengths)))  # (B, C, T', F / 4)
        lengths = halved(lengths)
        x = self._without_padding(x, lengths)  # (B, C, T', F / 4)
        x = x.transpose(1, 2).flatten(2)  # (B, T', C · F / 4)
        return self.out(x), lengths.to(torch.int32).to(torch.int64)

    def _without_padding(self, x: Tensor, lengths: Tensor) -> Tensor:
        if not self.masks:
            return x
        padding = torch.arange(x.size(2), device=x.device) >= lengths[:, None]  # (B, T)
        return x.masked_fill(padding[:, None, :, None], 0.0)


def halved(lengths: Tensor) -> Tensor:
    """Return how many frames one convolution of the subsampling leaves: ceil(lengths / 2), float32 (B,).

    In floating point as NeMo does it (exact up to 2^24 frames): these casts are calls of the talk's profile.
    """
    return torch.floor((lengths + (2 * PADDING - KERNEL)) / STRIDE + 1)


def masks(lengths: Tensor, frames: int) -> tuple[Tensor, Tensor]:
    """Return (padding (B, T), hidden (B, T, T)), bool, True where nothing may be seen, for T = `frames`.

    A pair (query, key) is visible if both frames are real; hidden is the rest.
    """
    real = torch.arange(frames, device=lengths.device) < lengths[:, None]  # (B, T)
    keys = real[:, None, :].expand(-1, frames, -1).contiguous()  # (B, T, T); `repeat` would add in torch 2.13
    return ~real, ~torch.logical_and(keys, keys.transpose(1, 2))


class ConformerLayer(nn.Module):
    """Half a feed-forward step, attention, convolution, half a feed-forward step, each after a layer norm."""

    def __init__(self, d_model: int, n_heads: int, conv_kernel: int, ff_expansion: int) -> None:
        super().__init__()
        self.norm_feed_forward1 = nn.LayerNorm(d_model)
        self.feed_forward1 = FeedForward(d_model, ff_expansion * d_model)
        self.norm_self_att = nn.LayerNorm(d_model)
        self.self_attn = RelPositionMultiHeadAttention(d_model, n_heads)
        self.norm_conv = nn.LayerNorm(d_model)
        self.conv = ConformerConvolution(d_model, conv_kernel)
        self.norm_feed_forward2 = nn.LayerNorm(d_model)
        self.feed_forward2 = FeedForward(d_model, ff_expansion * d_model)
        self.norm_out = nn.LayerNorm(d_model)

    def forward(self, x: Tensor, positions: Tensor, hidden: Tensor, padding: Tensor) -> Tensor:
        """Return (B, T, d_model) for x of that shape; the rest as for attention and convolution."""
        x = x + self.feed_forward1(self.norm_feed_forward1(x)) * 0.5
        x = x + self.self_attn(self.norm_self_att(x), positions, hidden)
        x = x + self.conv(self.norm_conv(x), padding)
        x = x + self.feed_forward2(self.norm_feed_forward2(x)) * 0.5
        return self.norm_out(x)  # (B, T, d_model)


class FeedForward(nn.Module):
    """Two linear layers, to d_hidden and back, on every frame by itself."""

    def __init__(self, d_model: int, d_hidden: int) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_hidden)
        self.linear2 = nn.Linear(d_hidden, d_model)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear2(F.silu(self.linear1(x)))  # (B, T, d_model)


class ConformerConvolution(nn.Module):
    """A convolution along time for each channel by itself (depthwise), between two that mix the channels."""

    def __init__(self, d_model: int, kernel: int) -> None:
        super().__init__()
        self.reach = (kernel - 1) // 2  # frames seen on either side
        self.pointwise_conv1 = nn.Conv1d(d_model, 2 * d_model, 1)
        self.depthwise_conv = nn.Conv1d(d_model, d_model, kernel, groups=d_model)
        self.batch_norm = nn.BatchNorm1d(d_model)
        self.pointwise_conv2 = nn.Conv1d(d_model, d_model, 1)

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        """Return (B, T, d_model) for x (B, T, d_model) and padding (B, T), True where a row has ended."""
        x = x.transpose(1, 2)  # (B, d_model, T)
        x = F.glu(self.pointwise_conv1(x), dim=1)  # (B, d_model, T)
        x = x.masked_fill(padding.unsqueeze(1), 0.0)  # else the convolution would mix it into real frames
        x = F.pad(x, (self.reach, self.reach))  # (B, d_model, T + kernel − 1)
        x = F.silu(self.batch_norm(self.depthwise_conv(x)))  # (B, d_model, T)
        return self.pointwise_conv2(x).transpose(1, 2)  # (B, T, d_model)


class ConvDecoder(nn.Module):
    """Log-probabilities of the classes (the tokens, then the blank) for every frame: a 1 × 1 convolution."""

    def __init__(self, d_model: int, classes: int) -> None:
        super().__init__()
        self.decoder_layers = nn.Sequential(nn.Conv1d(d_model, classes, 1))

    def forward(self, encoded: Tensor) -> Tensor:
        """Return log-probabilities (B, T', classes) for encoded (B, d_model, T')."""
        return F.log_softmax(self.decoder_layers(encoded).transpose(1, 2), dim=-1)


class ConformerCTC(nn.Module):
    """Encoder and decoder: from mel features to log-probabilities that a CTC search turns into text."""

    def __init__(self, encoder: ConformerEncoder, decoder: ConvDecoder) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def forward(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Return (log_probs (B, T', classes), encoded_lengths (B,) int64); arguments as for the encoder."""
        encoded, encoded_lengths = self.encoder(features, lengths)
        return self.decoder(encoded), encoded_lengths


# -- what a batch must be: one sentence for each mistake, before any arithmetic ---------------------------


def _check_batch(features: Tensor, lengths: Tensor, feat_in: int, like: Tensor) -> None:
    """Raise TypeError or ValueError unless features (B, feat_in, T) and lengths (B,) suit the weights `like`.

    The lengths' values are looked at only where that is free: not on a GPU, which one would have to await,
    and not while torch.compile traces.
    """
    if not isinstance(features, Tensor):
        raise TypeError(f"features are a {type(features).__name__}, but must be a tensor (B, {feat_in}, T).")
    if features.dtype != like.dtype:
        raise TypeError(
            f"features are {features.dtype}, the weights {like.dtype}: convert one with .to({like.dtype})."
        )
    if not isinstance(lengths, Tensor) or lengths.dtype not in (torch.int32, torch.int64):
        got = lengths.dtype if isinstance(lengths, Tensor) else type(lengths).__name__
        raise TypeError(f"lengths are {got}, but frames are counted in whole numbers: give an int64 tensor.")
    shape = tuple(features.shape)
    if len(shape) != 3 or shape[1] != feat_in:
        bands = f"(B, {feat_in}, T): {feat_in} mel bands for each of T frames"
        raise ValueError(f"features have shape {shape}, but must be {bands}.")
    if not shape[0] or not shape[2]:
        raise ValueError(f"features have shape {shape}, which holds no frame: give at least one.")
    if lengths.shape != shape[:1]:
        rows = f"{shape[0]} rows: give one length for each row"
        raise ValueError(f"lengths have shape {tuple(lengths.shape)}, features {rows}.")
    for names, one, other in (("features", features, like), ("lengths", lengths, features)):
        if one.device != other.device:
            where = f"{'the weights' if other is like else 'features'} on {other.device}"
            raise ValueError(f"{names} are on {one.device}, {where}: move them to one device.")
    if lengths.device.type == "cpu" and not torch.compiler.is_compiling():
        for row, length in enumerate(lengths.tolist()):
            if not 1 <= length <= shape[2]:
                frames = f"1 to {shape[2]}, the frames that features have"
                raise ValueError(f"lengths[{row}] is {length}, but must be {frames}.")
