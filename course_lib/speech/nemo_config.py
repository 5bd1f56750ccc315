"""The configuration in a `.nemo` archive: is it a Conformer-CTC as built here, and of what size?

Every option that would change what is computed must have the value that `conformer.py` and `features.py` have
built in; options that matter in training only are let be; an option not known here makes the file too new.
Names and defaults: NeMo 1.23 and 2.5, `ConformerEncoder`, `AudioToMelSpectrogramPreprocessor`,
`ConvASRDecoder`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import yaml

from course_lib.arguments import is_number, is_whole

CONFIG = "model_config.yaml"
UNSAFE = "do not use it"
MODELS = ("EncDecCTCModelBPE", "EncDecCTCModel")
USE = (
    "use a Conformer-CTC with striding subsampling and relative positions, such as stt_ru_conformer_ctc_large"
)
RATE = 16_000
MOST_PIECES = 100_000
MOST_ALIASES = 100  # NeMo writes every value where it stands

#: section -> option -> the values that mean what is built here, NeMo's default first.
FIXED: dict[str, dict[str, tuple[Any, ...]]] = {
    "encoder": {
        "causal_downsampling": (False,),
        "subsampling": ("striding",),
        "subsampling_factor": (4,),
        "reduction": (None,),
        "self_attention_model": ("rel_pos",),
        "att_context_size": (None, [-1, -1], [[-1, -1]]),
        "att_context_style": ("regular",),
        "xscaling": (True,),
        "untie_biases": (True,),
        "conv_norm_type": ("batch_norm",),
        "use_bias": (True,),
        "global_tokens": (0,),
    },
    "preprocessor": {
        "sample_rate": (RATE,),
        "window": ("hann",),
        "normalize": ("per_feature",),
        "n_window_size": (None,),
        "n_window_stride": (None,),
        "preemph": (0.97,),
        "lowfreq": (0,),
        "highfreq": (None, 8000),
        "log": (True,),
        "log_zero_guard_type": ("add",),
        "log_zero_guard_value": (2.0**-24,),
        "pad_value": (0,),
        "frame_splicing": (1,),
        "exact_pad": (False,),
        "stft_exact_pad": (False,),
        "stft_conv": (False,),
        "mag_power": (2.0,),
        "mel_norm": ("slaney",),
        "use_torchaudio": (False,),
    },
}
#: Whole numbers of the encoder: option -> its name in ConformerEncoder, NeMo's default, lowest, highest.
ENCODER_SIZES = {
    "feat_in": ("feat_in", None, 4, 512),
    "n_layers": ("n_layers", None, 1, 128),
    "d_model": ("d_model", None, 2, 4096),
    "n_heads": ("n_heads", 4, 1, 128),
    "conv_kernel_size": ("conv_kernel", 31, 1, 255),
    "ff_expansion_factor": ("ff_expansion", 4, 1, 16),
}
#: Options that are looked at, and those that change nothing here: training, memory, speed, or a part
#: that is switched off above. The table of positions grows as needed, whatever pos_emb_max_len says.
OTHERS = {
    "encoder": f"{' '.join(ENCODER_SIZES)} feat_out conv_context_size subsampling_conv_channels "
    "_target_ dropout dropout_pre_encoder dropout_emb dropout_att pos_emb_max_len att_context_probs "
    "reduction_position reduction_factor subsampling_conv_chunking_factor stochastic_depth_drop_prob "
    "stochastic_depth_mode stochastic_depth_start_layer global_tokens_spacing global_attn_separate "
    "use_pytorch_sdpa use_pytorch_sdpa_backends sync_max_audio_length",
    "preprocessor": "features n_fft window_size window_stride pad_to "
    "_target_ dither use_grads rng nb_augmentation_prob nb_max_freq max_duration",
}
CLASSES = {
    "encoder": "ConformerEncoder",
    "preprocessor": "AudioToMelSpectrogramPreprocessor",
    "decoder": "ConvASRDecoder",
}


class ModelFault(Exception):
    """What is wrong with a model file, as the rest of a sentence that begins with its name; and the cure."""

    def __init__(self, what: str, cure: str = "fetch it again") -> None:
        super().__init__(f"{what}: {cure}")


class NemoConfig(NamedTuple):
    """The sizes as ConformerEncoder and LogMel take them; the vocabulary in the order of tokens' numbers.

    It is empty where the configuration has none.
    """

    encoder: dict[str, int]
    front_end: dict[str, int]
    vocabulary: tuple[str, ...]


def read_config(text: bytes) -> NemoConfig:
    """Return what `model_config.yaml` states; raises ModelFault when it is broken or of another model."""
    root = _mapping(_parsed(text), "the whole")
    _check_class("target", root.get("target"), MODELS)
    sections = {name: _mapping(root.get(name), name) for name in CLASSES}
    for name, wanted in CLASSES.items():
        _check_class(f"{name}._target_", sections[name].get("_target_"), (wanted,))
    tokenizer = _mapping(root.get("tokenizer") or {"type": "bpe"}, "tokenizer")
    _check_value("tokenizer.type", tokenizer.get("type", "bpe"), ("bpe",))
    encoder = _encoder_sizes(sections["encoder"])
    front_end = _front_end_sizes(sections["preprocessor"], encoder["feat_in"])
    for name, fixed in FIXED.items():
        for option, values in fixed.items():
            _check_value(f"{name}.{option}", sections[name].get(option, values[0]), values)
        known = {*fixed, *OTHERS[name].split()}
        if unknown := [option for option in sections[name] if option not in known]:
            raise ModelFault(
                f"has the option {_short(unknown[0])} for {name} in {CONFIG}, which is not known here", USE
            )
    return NemoConfig(encoder, front_end, _vocabulary(sections["decoder"], encoder["d_model"]))


def _encoder_sizes(encoder: Mapping[str, Any]) -> dict[str, int]:
    sizes = {
        name: _whole(f"encoder.{option}", encoder.get(option, default), low, high)
        for option, (name, default, low, high) in ENCODER_SIZES.items()
    }
    d_model, n_heads, kernel = sizes["d_model"], sizes["n_heads"], sizes["conv_kernel"]
    if d_model % 2 or d_model % n_heads:
        raise _wrong("encoder.d_model", d_model, f"an even number that {n_heads} heads share")
    if not kernel % 2:
        raise _wrong("encoder.conv_kernel_size", kernel, "an odd number")
    _check_value("encoder.conv_context_size", encoder.get("conv_context_size"), (None, [kernel // 2] * 2))
    _check_value("encoder.feat_out", encoder.get("feat_out", -1), (-1, 0, None, d_model))
    channels = encoder.get("subsampling_conv_channels", -1)
    channels = d_model if channels == -1 else channels
    return sizes | {"subsampling_channels": _whole("encoder.subsampling_conv_channels", channels, 1, 4096)}


def _front_end_sizes(front_end: Mapping[str, Any], feat_in: int) -> dict[str, int]:
    _check_value("preprocessor.pad_to", front_end.get("pad_to", 16), (0,))  # 16 is NeMo's default
    window = _samples("preprocessor.window_size", front_end.get("window_size", 0.02))
    hop = _samples("preprocessor.window_stride", front_end.get("window_stride", 0.01))
    n_fft = front_end.get("n_fft")
    if n_fft is None:  # NeMo's own choice
        n_fft = 1 << (window - 1).bit_length()
    n_fft = _whole("preprocessor.n_fft", n_fft, window, 8192)
    if (features := front_end.get("features", 64)) != feat_in:
        raise _wrong("preprocessor.features", features, f"the encoder's feat_in, {feat_in}")
    return {"features": feat_in, "window": window, "hop": hop, "n_fft": n_fft}


def _vocabulary(decoder: Mapping[str, Any], d_model: int) -> tuple[str, ...]:
    """Return the decoder's pieces.

    Raises ModelFault where its own sizes contradict them or the encoder's width. NeMo refuses the same, and
    fills both sizes in where they are null or 0, or there are -1 classes.
    """
    width = decoder.get("feat_in") or d_model
    if isinstance(width, bool) or width != d_model:
        raise _wrong("decoder.feat_in", width, f"the encoder's d_model, {d_model}")
    pieces = decoder.get("vocabulary") or []
    if not isinstance(pieces, list) or not all(isinstance(piece, str) for piece in pieces):
        raise _wrong("decoder.vocabulary", pieces, "a list of texts")
    if len(pieces) > MOST_PIECES:
        raise _wrong("decoder.vocabulary", f"{len(pieces)} pieces", f"at most {MOST_PIECES}")
    classes = decoder.get("num_classes")
    if pieces and classes not in (None, 0, -1) and (isinstance(classes, bool) or classes != len(pieces)):
        raise _wrong("decoder.num_classes", classes, f"the number of pieces in its vocabulary, {len(pieces)}")
    return tuple(pieces)


class _Loader(yaml.SafeLoader):
    """PyYAML's loader of plain values, without the means by which a short text takes long.

    Merge keys (`<<: [*a, *a]`) copy what they name, so that ten lines make 10^9 entries; numbers to base 60
    (`1:1:1`) are added up in quadratic time, and stay texts here, as in YAML 1.2. NeMo writes neither.
    """

    aliases = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Return the next node; raises YAMLError at a merge key and at one alias too many."""
        self.aliases += self.check_event(yaml.AliasEvent)
        node = super().compose_node(parent, index)
        if self.aliases > MOST_ALIASES or node.tag == "tag:yaml.org,2002:merge":
            raise yaml.YAMLError
        if isinstance(node, yaml.ScalarNode) and ":" in node.value and node.tag.endswith((":int", ":float")):
            node.tag = "tag:yaml.org,2002:str"
        return node


def _parsed(text: bytes) -> Any:
    try:
        return yaml.load(text.decode("utf-8"), _Loader)
    except Exception:  # the loader runs nothing, but a wrong date or an empty number makes it raise anything
        raise ModelFault(f"has a {CONFIG} that is no YAML") from None


def _mapping(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(name, value, "a section with options")
    return value


def _check_class(name: str, target: Any, wanted: tuple[str, ...]) -> None:
    """Raise ModelFault unless `target`, a class with the modules before it, ends in one of `wanted`."""
    if not isinstance(target, str) or target.split(".")[-1] not in wanted:
        raise ModelFault(f"is another model ({name} is {_short(target)}, wanted {' or '.join(wanted)})", USE)


def _check_value(name: str, value: Any, wanted: tuple[Any, ...]) -> None:
    if not any(value == choice and isinstance(value, bool) == isinstance(choice, bool) for choice in wanted):
        only = f"only {' or '.join(map(str, wanted))} is built here"
        raise ModelFault(f"is of another architecture ({name} is {_short(value)}, {only})", USE)


def _whole(name: str, value: Any, low: int, high: int) -> int:
    if not is_whole(value) or not low <= value <= high:
        raise _wrong(name, value, f"a whole number from {low} to {high}")
    return value


def _samples(name: str, seconds: Any) -> int:
    """Return a time of 1 to 100 ms in samples."""
    if not is_number(seconds) or not 0.001 <= seconds <= 0.1:
        raise _wrong(name, seconds, "seconds from 0.001 to 0.1")
    return int(seconds * RATE)


def _wrong(name: str, value: Any, wanted: str) -> ModelFault:
    return ModelFault(f"has {_short(value)} for {name} in {CONFIG}, but wanted is {wanted}")


def _short(value: Any) -> str:
    """Return a value in at most 60 characters, without walking through a nest of references."""
    if isinstance(value, dict | list):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, int) and value.bit_length() > 200:
        return f"a number of {value.bit_length()} bits"  # Python refuses to write very long ones
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
