"""Models that NVIDIA NeMo saved: `load_nemo` reads a `.nemo` file into the course's own Conformer-CTC.

The file is untrusted. `archive` reads its members, `nemo_config` its sizes, `nemo_weights` its tensors;
here these are compared with the model that the sizes describe before that takes any memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import torch
from torch import Tensor

from course_lib.speech import tokenizer
from course_lib.speech.archive import FETCH_AGAIN, WEIGHTS, Fault, UnreadableModel, members
from course_lib.speech.conformer import ConformerCTC, ConformerEncoder, ConvDecoder
from course_lib.speech.features import LogMel
from course_lib.speech.nemo_config import NemoConfig, read_config
from course_lib.speech.nemo_weights import read_tensors

PADDING = ("old", "new")  # the ends of rows as before NeMo 2.5, and since


def load_nemo(path: str | Path, padding: str = "old") -> ConformerCTC:
    """Return the model of a .nemo file, ready to listen: in eval mode, on the CPU, float32.

    `model.preprocessor` is its front end (samples to features), `model.tokenizer` turns tokens into text.
    `padding` says how the ends of rows are treated, in front end and encoder together: "old" as NeMo did
    before 2.5, when the talk's checkpoint was trained and measured (what a row of a batch gives depends a
    little on how long the others are), "new" as it does since (`LogMel(zero_padded=True)` and
    `ConformerEncoder(masks_subsampling=True)`: a row gives the same in any batch).
    Raises UnreadableModel with one sentence for anything that is not a whole Conformer-CTC as built here,
    ValueError for another `padding`.
    """
    if padding not in PADDING:
        raise ValueError(f'padding is {padding!r}, but must be "old" (NeMo before 2.5) or "new" (since).')
    path = Path(path)
    try:
        return _loaded(members(path), padding == "new")
    except Fault as fault:
        raise UnreadableModel(f"{path} {fault}.") from None


def _loaded(found: dict[str, bytes], new: bool) -> ConformerCTC:
    config = read_config(found["model_config.yaml"])
    pieces = config.vocabulary or _pieces(found)
    state = read_tensors(found[WEIGHTS])
    with torch.device("meta"):  # shapes without memory
        expected = _model(config, pieces, new).state_dict()
    _compare(state, expected)
    model = _model(config, pieces, new)
    model.load_state_dict(state, strict=True)
    return model.eval()


def _model(config: NemoConfig, pieces: Iterable[str], new: bool) -> ConformerCTC:
    """Return the model with weights as they come; `new`: with the padding of NeMo 2.5."""
    words = tokenizer.Tokenizer(tuple(pieces))
    encoder = ConformerEncoder(
        feat_in=config.feat_in,
        n_layers=config.n_layers,
        d_model=config.d_model,
        n_heads=config.n_heads,
        conv_kernel=config.conv_kernel,
        ff_expansion=config.ff_expansion,
        subsampling_channels=config.subsampling_channels,
        masks_subsampling=new,
    )
    model = ConformerCTC(encoder, ConvDecoder(config.d_model, len(words) + 1))
    sizes = {"window": config.window, "hop": config.hop, "n_fft": config.n_fft}
    model.preprocessor = LogMel(config.feat_in, **sizes, zero_padded=new)
    model.tokenizer = words
    return model


def _pieces(found: dict[str, bytes]) -> list[str]:
    """Return the vocabulary from the tokenizer's files, for a configuration that has none."""
    readers = {"tokenizer.vocab": tokenizer.pieces_of_vocab, "vocab.txt": tokenizer.pieces_of_word_list}
    for name, pieces_of in readers.items():
        if name in found:
            try:
                return pieces_of(found[name].decode("utf-8"))
            except UnicodeDecodeError:
                raise Fault(f"has a {name} that is no UTF-8 text: {FETCH_AGAIN}") from None
    raise Fault(f"has no vocabulary (decoder.vocabulary, tokenizer.vocab or vocab.txt): {FETCH_AGAIN}")


# -- the tensors, compared -------------------------------------------------------------------------------


def _compare(state: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    """Raise Fault unless both have the same names, shapes and element types, and every number is finite."""
    if missing := [name for name in expected if name not in state]:
        raise Fault(f"lacks {_named(missing)} that its configuration calls for: {FETCH_AGAIN}")
    if extra := [name for name in state if name not in expected]:
        raise Fault(f"has {_named(extra)} that its configuration does not call for: {FETCH_AGAIN}")
    for name, tensor in state.items():
        got, wanted = tuple(tensor.shape), tuple(expected[name].shape)
        if got != wanted:
            raise Fault(f"has {name} of shape {got}, but its configuration calls for {wanted}: {FETCH_AGAIN}")
        if tensor.dtype != expected[name].dtype:
            raise Fault(
                f"has {name} as {tensor.dtype}, but {expected[name].dtype} is wanted: convert it in NeMo"
            )
        if not torch.isfinite(tensor).all():
            raise Fault(f"has NaN or infinity in {name}: {FETCH_AGAIN}")


def _named(names: list[str]) -> str:
    """Return the first three names, and how many more there are."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    plural = "tensors " if len(names) > 1 else "the tensor "
    return plural + ", ".join(repr(name[:80]) for name in names[:3]) + more
