"""From log-probabilities to text: greedy CTC decoding, and a whole recording through a whole model."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from course_lib.speech.audio import resampled


def greedy(log_probs: Tensor, lengths: Tensor) -> list[list[int]]:
    """Return for each row of log_probs (B, T, classes) its best path's tokens; the last class is the blank.

    The likeliest class of each of the first `lengths` (B,) frames; what repeats counts once, blanks go
    (Graves et al. 2006, Connectionist Temporal Classification, section 3.2: best path decoding).
    """
    blank = log_probs.shape[-1] - 1
    rows = []
    for best, length in zip(log_probs.argmax(-1), lengths.tolist(), strict=True):
        changes = torch.unique_consecutive(best[:length])
        rows.append(changes[changes != blank].tolist())
    return rows


def transcribe(model: Any, samples: NDArray[np.floating], rate: int) -> str:
    """Return what `model` (from `nemo.load_nemo`) hears in samples (n,) as `audio.read` gives them.

    Raises ValueError for a recording that is too short for the front end, and where the weights give infinity
    or NaN, of which the largest would be a token like any other.
    """
    signal = torch.from_numpy(resampled(samples, rate, model.preprocessor.sample_rate))
    weight = model.decoder.decoder_layers[0].weight
    with torch.no_grad():
        features, frames = model.preprocessor(signal[None].to(weight.device))
        log_probs, lengths = model(features.to(weight.dtype), frames)
    # A class may well be impossible (-infinity), but the likeliest is a number; NaN would be the likeliest.
    if not (torch.isfinite(features).all() and torch.isfinite(log_probs.amax(-1)).all()):
        raise ValueError(
            "The model gives NaN or infinity for this recording, so its weights are damaged: fetch it again."
        )
    return model.tokenizer.text(greedy(log_probs, lengths)[0])
