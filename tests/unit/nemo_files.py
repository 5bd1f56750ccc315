"""Tiny .nemo files for tests: a model of random weights, its configuration, archives of anything."""

from __future__ import annotations

import copy
import io
import tarfile

import pytest
import yaml

PIECES = ["<unk>", "▁", "e", "s", "▁yes", "▁no", "n"]
CONFIG = yaml.safe_load(f"""
target: nemo.collections.asr.models.ctc_bpe_models.EncDecCTCModelBPE
sample_rate: 16000
preprocessor: {{
  _target_: nemo.collections.asr.modules.AudioToMelSpectrogramPreprocessor, sample_rate: 16000,
  normalize: per_feature, window_size: 0.025, window_stride: 0.01, window: hann, features: 80, n_fft: 512,
  log: true, frame_splicing: 1, dither: 1.0e-5, pad_to: 0, pad_value: 0.0}}
encoder: {{
  _target_: nemo.collections.asr.modules.ConformerEncoder, feat_in: 80, feat_out: -1, n_layers: 2,
  d_model: 16, subsampling: striding, subsampling_factor: 4, subsampling_conv_channels: 8, n_heads: 4,
  ff_expansion_factor: 2, self_attention_model: rel_pos, att_context_size: [-1, -1], xscaling: true,
  untie_biases: true, pos_emb_max_len: 5000, conv_kernel_size: 7, conv_norm_type: batch_norm, dropout: 0.1}}
decoder: {{
  _target_: nemo.collections.asr.modules.ConvASRDecoder, feat_in: 16, num_classes: 7, vocabulary: {PIECES}}}
tokenizer: {{dir: /somewhere, type: bpe}}
""")


def model(seed=0):
    """Return the model that CONFIG describes, with random weights and running statistics."""
    import torch

    from course_lib.speech.conformer import ConformerCTC, ConformerEncoder, ConvDecoder
    from course_lib.speech.features import LogMel

    torch.manual_seed(seed)
    encoder = ConformerEncoder(
        feat_in=80, n_layers=2, d_model=16, n_heads=4, conv_kernel=7, ff_expansion=2, subsampling_channels=8
    )
    made = ConformerCTC(encoder, ConvDecoder(16, len(PIECES) + 1))
    made.preprocessor = LogMel()
    for name, buffer in made.named_buffers():
        if "running" in name:
            buffer.copy_(0.5 + torch.rand_like(buffer))
    return made.eval()


def changed(*path, value):
    """Return CONFIG with the option at `path` set to `value`, or without it where value is ..."""
    section = config = copy.deepcopy(CONFIG)
    for name in path[:-1]:
        section = section[name]
    if value is ...:
        del section[path[-1]]
    else:
        section[path[-1]] = value
    return config


def saved(state):
    """Return what torch.save writes."""
    import torch

    torch.save(state, buffer := io.BytesIO())
    return buffer.getvalue()


def member(name, content=b"", **form):
    """Return (header, content) of one member; `form` sets further fields of the header."""
    header = tarfile.TarInfo(name)
    header.size = len(content)
    for field, value in form.items():
        setattr(header, field, value)
    return header, content


def archive(*members, zipped=False):
    """Return a tar file's bytes."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz" if zipped else "w") as tar:
        for header, content in members:
            tar.addfile(header, io.BytesIO(content))
    return buffer.getvalue()


def members(state, config=None, prefix="./"):
    """Return the members of a whole .nemo file, in the order in which NeMo's come."""
    text = yaml.safe_dump(CONFIG if config is None else config, allow_unicode=True).encode()
    return [
        member(prefix, type=tarfile.DIRTYPE),
        member(f"{prefix}0123abc_tokenizer.model", b"not looked at"),
        member(f"{prefix}model_config.yaml", text),
        member(f"{prefix}model_weights.ckpt", saved(state)),
    ]


def nemo(state, config=None, prefix="./", zipped=False):
    """Return a whole .nemo file's bytes."""
    return archive(*members(state, config, prefix), zipped=zipped)


def refused(path):
    """Return the sentence with which `path` is refused."""
    from course_lib.speech.nemo import UnreadableModel, load_nemo

    with pytest.raises(UnreadableModel) as caught:
        load_nemo(path)
    sentence = str(caught.value)
    assert sentence.startswith(f"{path} ") and sentence.endswith(".") and "\n" not in sentence
    assert len(sentence) < 600
    return sentence.removeprefix(f"{path} ")
