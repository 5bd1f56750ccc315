"""What a Conformer accepts, checked at its door: one sentence for each mistake, before any arithmetic."""

from __future__ import annotations

import torch
from torch import Tensor


def check_batch(features: Tensor, lengths: Tensor, feat_in: int, like: Tensor) -> None:
    """Raise TypeError or ValueError unless features (B, feat_in, T) and lengths (B,) suit the weights `like`.

    The lengths' values are looked at only where that is free: not on a GPU, which one would have to await,
    and not while torch.compile traces.
    """
    _check_features(features, feat_in, like)
    if not isinstance(lengths, Tensor) or lengths.dtype not in (torch.int32, torch.int64):
        got = lengths.dtype if isinstance(lengths, Tensor) else type(lengths).__name__
        raise TypeError(f"lengths are {got}, but frames are counted in whole numbers: give an int64 tensor.")
    batch, _, frames = features.shape
    if lengths.shape != (batch,):
        raise ValueError(
            f"lengths have shape {tuple(lengths.shape)}, features {batch} rows: give one length for each row."
        )
    if lengths.device != features.device:
        raise ValueError(
            f"lengths are on {lengths.device}, features on {features.device}: move them to one device."
        )
    if lengths.device.type == "cpu" and not torch.compiler.is_compiling():
        _check_lengths(lengths.tolist(), frames)


def _check_features(features: Tensor, feat_in: int, like: Tensor) -> None:
    if not isinstance(features, Tensor):
        raise TypeError(f"features are a {type(features).__name__}, but must be a tensor (B, {feat_in}, T).")
    if features.dtype != like.dtype:
        raise TypeError(
            f"features are {features.dtype}, the weights {like.dtype}: convert one with .to({like.dtype})."
        )
    if features.dim() != 3 or features.size(1) != feat_in:
        raise ValueError(
            f"features have shape {tuple(features.shape)}, but must be (B, {feat_in}, T): "
            f"{feat_in} mel bands for each of T frames."
        )
    if not features.size(0) or not features.size(2):
        raise ValueError(
            f"features have shape {tuple(features.shape)}, which holds no frame: give at least one."
        )
    if features.device != like.device:
        raise ValueError(
            f"features are on {features.device}, the weights on {like.device}: move them to one device."
        )


def _check_lengths(lengths: list[int], frames: int) -> None:
    for row, length in enumerate(lengths):
        if not 1 <= length <= frames:
            raise ValueError(
                f"lengths[{row}] is {length}, but must be 1 to {frames}, the frames that features have."
            )
