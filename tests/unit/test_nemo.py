"""NeMo's files load by name and number; anything else in a file gets one sentence and is never run."""

import copy
import os
import tarfile

import nemo_files
import pytest
import torch
import yaml
from nemo_files import PIECES, archive, changed, member, refused, saved

from course_lib.speech import archive as archives
from course_lib.speech.nemo import UnreadableModel, load_nemo


@pytest.fixture(scope="module")
def model():
    return nemo_files.model()


@pytest.fixture
def state(model):
    return dict(model.state_dict())


@pytest.fixture
def written(tmp_path):
    def write(content):
        path = tmp_path / "model.nemo"
        path.write_bytes(content)
        return path

    return write


# -- whole files -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prefix", ["./", ""], ids=["dot", "bare"])
@pytest.mark.parametrize("zipped", [False, True], ids=["tar", "gzip"])
def test_a_whole_file_gives_the_same_model(written, model, state, prefix, zipped):
    if not prefix:
        made = archive(*nemo_files.members(state, prefix="")[1:], zipped=zipped)
    else:
        made = nemo_files.nemo(state, zipped=zipped)
    loaded = load_nemo(written(made))
    assert not loaded.training and loaded.tokenizer.pieces == tuple(PIECES)
    assert loaded.state_dict().keys() == state.keys()
    assert all(torch.equal(tensor, state[name]) for name, tensor in loaded.state_dict().items())
    samples = 0.1 * torch.randn(1, 8000)
    features, frames = loaded.preprocessor(samples)
    with torch.no_grad():
        assert torch.equal(loaded(features, frames)[0], model(*model.preprocessor(samples))[0])


def test_the_front_ends_buffers_come_from_the_file(written, state):
    state["preprocessor.featurizer.fb"] = state["preprocessor.featurizer.fb"] * 2
    loaded = load_nemo(written(nemo_files.nemo(state)))
    assert torch.equal(loaded.preprocessor.featurizer.fb, state["preprocessor.featurizer.fb"])


SCORED = "".join(f"{piece}\t-{number}\n" for number, piece in enumerate(PIECES))
WORDS = "▁\n##e\n##s\nyes\nno\n##n\n"


@pytest.mark.parametrize(("name", "text"), [("9f_tokenizer.vocab", SCORED), ("9f_vocab.txt", WORDS)])
def test_a_vocabulary_from_the_tokenizers_files(written, state, name, text):
    parts = nemo_files.members(state, changed("decoder", "vocabulary", value=[]))
    loaded = load_nemo(written(archive(*parts, member("./" + name, text.encode()))))
    assert loaded.tokenizer.pieces == tuple(PIECES)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("dropout_att", 0.3),
        ("use_pytorch_sdpa", False),
        ("conv_context_size", [3, 3]),
        ("conv_context_size", None),
        ("att_context_size", None),
        ("feat_out", 16),
    ],
)
def test_options_that_change_nothing_are_let_be(written, state, option, value):
    load_nemo(written(nemo_files.nemo(state, changed("encoder", option, value=value))))


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("num_classes", value) for value in (None, 0, -1, ...)),
        *(("feat_in", value) for value in (None, 0, ...)),
    ],
)
def test_sizes_of_the_decoder_may_be_left_to_nemo(written, state, option, value):
    load_nemo(written(nemo_files.nemo(state, changed("decoder", option, value=value))))


# -- archives that are none, or not to be trusted ----------------------------------------------------------


def with_member(state, *extra):
    return archive(*nemo_files.members(state), *extra)


def whole_blocks(tar):
    """Return the blocks of 512 bytes that hold anything: without the zeros that end a tar."""
    return tar[: -(-len(tar.rstrip(b"\0")) // 512) * 512]


def without(state, name):
    return archive(*(one for one in nemo_files.members(state) if not one[0].name.endswith(name)))


LINK = {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}
HARD = {"type": tarfile.LNKTYPE, "linkname": "model_config.yaml"}
SPARSE = {"GNU.sparse.size": "9", "GNU.sparse.map": "8,1"}  # one byte behind a hole of eight
ARCHIVES = {
    "empty": (lambda state: b"", "is no tar archive or is cut short"),
    "text": (lambda state: b"a letter " * 1000, "is no tar archive"),
    "a zip": (lambda state: saved(state), "is no tar archive"),
    "cut in the weights": (lambda state: nemo_files.nemo(state)[:20_000], "is cut short"),
    "cut before the weights": (
        lambda state: whole_blocks(archive(*nemo_files.members(state)[:3])),
        "has no model_weights.ckpt (found: model_config.yaml; was it cut short?)",
    ),
    "gzip cut": (lambda state: nemo_files.nemo(state, zipped=True)[:-2000], "is cut short"),
    "gzip of no tar": (
        lambda state: __import__("gzip").compress(b"a letter " * 1000),
        "is no tar archive",
    ),
    "no config": (lambda state: without(state, "model_config.yaml"), "has no model_config.yaml"),
    "no weights": (lambda state: without(state, "model_weights.ckpt"), "has no model_weights.ckpt"),
    "nothing": (lambda state: archive(), "has no model_config.yaml (found: nothing"),
    "path upwards": (lambda state: with_member(state, member("../x", b"1")), "would lie outside ('../x')"),
    "path inside upwards": (lambda state: with_member(state, member("a/../../x")), "would lie outside"),
    "path from the root": (lambda state: with_member(state, member("/etc/x")), "would lie outside"),
    "windows path": (lambda state: with_member(state, member("..\\x")), "would lie outside"),
    "symbolic link": (lambda state: with_member(state, member("a", **LINK)), "that is no plain file ('a')"),
    "hard link": (lambda state: with_member(state, member("a", **HARD)), "that is no plain file"),
    "device": (lambda state: with_member(state, member("a", type=tarfile.CHRTYPE)), "no plain file"),
    "fifo": (lambda state: with_member(state, member("a", type=tarfile.FIFOTYPE)), "no plain file"),
    "sparse": (lambda state: with_member(state, member("a", type=tarfile.GNUTYPE_SPARSE)), "no plain file"),
    "sparse by its extended header": (
        lambda state: with_member(state, member("a", b"1", pax_headers=SPARSE)),
        "no plain file ('a')",
    ),
    "config twice": (
        lambda state: with_member(state, member("model_config.yaml", b"{}")),
        "has two members named 'model_config.yaml'",
    ),
    "two vocabularies": (
        lambda state: with_member(state, member("1_vocab.txt", b"a"), member("2_vocab.txt", b"b")),
        "has two members whose names end in 'vocab.txt'",
    ),
    "too many": (
        lambda state: with_member(state, *(member(f"f{i}") for i in range(100))),
        "has more than 64 members",
    ),
    "large config": (
        lambda state: archive(member("model_config.yaml", b" " * ((1 << 20) + 1))),
        "has a member 'model_config.yaml' of 1048577 bytes, but at most 1048576",
    ),
    "gzip of zeros": (
        lambda state: archive(member("zeros", bytes(30 << 20)), zipped=True),
        "unpacks to more than 10 times its size",
    ),
}


@pytest.mark.parametrize("case", ARCHIVES)
def test_an_archive_that_is_none_or_unsafe(written, state, case, tmp_path):
    make, says = ARCHIVES[case]
    path = written(make(state))
    assert says in refused(path)
    assert os.listdir(tmp_path) == ["model.nemo"]  # nothing was unpacked


def test_a_member_that_only_claims_to_be_huge(written):
    header, _ = member("model_weights.ckpt")
    header.size = 5 << 30
    path = written(header.tobuf(tarfile.GNU_FORMAT) + bytes(1024))
    assert "has a member 'model_weights.ckpt' of 5368709120 bytes" in refused(path)


def test_cut_anywhere_is_one_sentence(written, state):
    """Beyond the last member only the padding is missing, and the file may be used."""
    whole = nemo_files.nemo(state)
    end = len(whole.rstrip(b"\0"))
    for length in range(0, end, 1499):
        refused(written(whole[:length]))


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(3))
def test_damage_anywhere_is_one_sentence_or_a_model(written, state, seed):
    whole = bytearray(nemo_files.nemo(state))
    generator = torch.Generator().manual_seed(seed)
    outcomes = set()
    for place in torch.randint(len(whole), (40,), generator=generator).tolist():
        damaged = copy.copy(whole)
        damaged[place] ^= 0xFF
        try:
            load_nemo(written(damaged))
            outcomes.add("a model")
        except UnreadableModel:
            outcomes.add("a sentence")
    assert outcomes == {"a model", "a sentence"}


def test_no_file(tmp_path):
    assert "No such file" in refused(tmp_path / "none.nemo")
    assert "Is a directory" in refused(tmp_path) or os.name == "nt"


# -- configurations ----------------------------------------------------------------------------------------

SIZES = "has {} for encoder.{} in model_config.yaml, but wanted is {}"
CONFIGS = {
    "another model": (
        changed("target", value="nemo.x.EncDecRNNTBPEModel"),
        "is another model (target is 'nemo.x",
    ),
    "no model": (changed("target", value=...), "is another model (target is nothing"),
    "another encoder": (
        changed("encoder", "_target_", value="a.SqueezeformerEncoder"),
        "is another model (encoder",
    ),
    "another decoder": (changed("decoder", "_target_", value="a.RNNTDecoder"), "is another model (decoder"),
    "no encoder": (changed("encoder", value=...), "has nothing for encoder in model_config.yaml"),
    "encoder a list": (changed("encoder", value=[1, 2]), "has a list of 2 for encoder"),
    "word pieces": (changed("tokenizer", "type", value="wpe"), "(tokenizer.type is 'wpe', only bpe is built"),
    "layers a text": (
        changed("encoder", "n_layers", value="two"),
        SIZES.format("'two'", "n_layers", "a whole"),
    ),
    "layers a bool": (
        changed("encoder", "n_layers", value=True),
        SIZES.format("True", "n_layers", "a whole"),
    ),
    "no layers": (
        changed("encoder", "n_layers", value=0),
        SIZES.format("0", "n_layers", "a whole number from 1"),
    ),
    "layers missing": (
        changed("encoder", "n_layers", value=...),
        SIZES.format("nothing", "n_layers", "a whole"),
    ),
    "a million layers": (
        changed("encoder", "n_layers", value=10**6),
        SIZES.format(10**6, "n_layers", "a whole"),
    ),
    "a huge number": (
        changed("encoder", "d_model", value=1 << 2000),
        "a number of 2001 bits for encoder.d_model",
    ),
    "heads that do not divide": (changed("encoder", "n_heads", value=3), "an even number that 3 heads share"),
    "an even kernel": (changed("encoder", "conv_kernel_size", value=8), "an odd number"),
    "unresolved": (changed("encoder", "feat_in", value="${model.features}"), "'${model.features}'"),
    "features unlike feat_in": (
        changed("preprocessor", "features", value=64),
        "has 64 for preprocessor.features",
    ),
    "window in samples": (changed("preprocessor", "window_size", value=400), "seconds from 0.001 to 0.1"),
    "subsampling": (
        changed("encoder", "subsampling", value="dw_striding"),
        "'dw_striding', only striding is",
    ),
    "factor 8": (
        changed("encoder", "subsampling_factor", value=8),
        "encoder.subsampling_factor is 8, only 4",
    ),
    "attention": (changed("encoder", "self_attention_model", value="abs_pos"), "'abs_pos', only rel_pos is"),
    "norm": (changed("encoder", "conv_norm_type", value="layer_norm"), "'layer_norm', only batch_norm is"),
    "limited context": (
        changed("encoder", "att_context_size", value=[70, 1]),
        "encoder.att_context_size is a list",
    ),
    "causal": (
        changed("encoder", "conv_context_size", value="causal"),
        "encoder.conv_context_size is 'causal'",
    ),
    "no scaling": (changed("encoder", "xscaling", value=False), "encoder.xscaling is False, only True"),
    "scaling by 1": (changed("encoder", "xscaling", value=1), "encoder.xscaling is 1, only True"),
    "newer option": (changed("encoder", "rotary", value=True), "has the option 'rotary' for encoder in"),
    "an option with control characters": (
        changed("encoder", "\x1b[2J\nx", value=1),
        r"has the option '\x1b[2J\nx' for encoder in",
    ),
    "an option with a huge number for a name": (
        changed("encoder", 1 << 2000, value=1),
        "has the option a number of 2001 bits for encoder in",
    ),
    "newer front end": (
        changed("preprocessor", "pcen", value=True),
        "has the option 'pcen' for preprocessor in",
    ),
    "8 kHz": (
        changed("preprocessor", "sample_rate", value=8000),
        "preprocessor.sample_rate is 8000, only 16000",
    ),
    "frames padded": (changed("preprocessor", "pad_to", value=...), "preprocessor.pad_to is 16, only 0"),
    "vocabulary a text": (changed("decoder", "vocabulary", value="abc"), "a list of texts"),
    "vocabulary of numbers": (changed("decoder", "vocabulary", value=[1, 2]), "a list of texts"),
    "more classes than pieces": (
        changed("decoder", "num_classes", value=99),
        "has 99 for decoder.num_classes in model_config.yaml, but wanted is the number of pieces",
    ),
    "classes a text": (changed("decoder", "num_classes", value="7"), "has '7' for decoder.num_classes"),
    "another width": (
        changed("decoder", "feat_in", value=512),
        "has 512 for decoder.feat_in in model_config.yaml, but wanted is the encoder's d_model, 16",
    ),
    "no vocabulary": (changed("decoder", "vocabulary", value=[]), "has no vocabulary"),
    "a list": ([1, 2], "has a list of 2 for the whole"),
}


@pytest.mark.parametrize("case", CONFIGS)
def test_a_configuration_of_something_else(written, state, case):
    config, says = CONFIGS[case]
    assert says in refused(written(nemo_files.nemo(state, config)))


BROKEN_YAML = [
    b"\xff\xfe",
    b"a: [1",
    b"\t",
    b"[" * 100_000,
    b"!!timestamp x",
    b"!!int ''",
    b"a: !!python/name:os.system",
    b"".join(
        b"a%d: &a%d {%s}\n" % (n, n, b"<<: [" + b",".join([b"*a%d" % (n - 1)] * 9) + b"]" if n else b"k: v")
        for n in range(12)
    ),
    b"a: &a {k: v}\nb: {!!merge x: *a}",
    b"a: &a 1\nb: [" + b"*a," * 101 + b"]",
]


@pytest.mark.parametrize("text", BROKEN_YAML, ids=lambda text: repr(text[:12]))
def test_a_configuration_that_is_no_yaml(written, state, text):
    parts = [one for one in nemo_files.members(state) if not one[0].name.endswith("yaml")]
    says = refused(written(archive(*parts, member("model_config.yaml", text))))
    assert "has a model_config.yaml that is no YAML" in says


def test_numbers_to_base_60_stay_texts(written, state):
    """PyYAML takes minutes for half a million digits."""
    parts = [one for one in nemo_files.members(state) if not one[0].name.endswith("yaml")]
    for long in (b"1" + b":1" * 400_000, b"1" + b":1" * 400_000 + b".5", b"!!int 1" + b":1" * 400_000):
        text = b"encoder: {}\ntarget: " + long
        says = refused(written(archive(*parts, member("model_config.yaml", text))))
        assert "is another model (target is '1:1:1:1" in says


def test_a_configuration_with_aliases_and_every_kind_of_number(written, state):
    text = "first: &eighty 8_0\n" + yaml.safe_dump(nemo_files.CONFIG, allow_unicode=True)
    for old, new in (("feat_in: 80", "feat_in: *eighty"), ("features: 80", "features: 0b1010000")):
        assert old in text
        text = text.replace(old, new)
    parts = [one for one in nemo_files.members(state) if not one[0].name.endswith("yaml")]
    load_nemo(written(archive(*parts, member("model_config.yaml", text.encode()))))


def test_what_is_not_utf8_among_the_tokenizers_files(written, state):
    parts = nemo_files.members(state, changed("decoder", "vocabulary", value=[]))
    assert "has a vocab.txt that is no UTF-8" in refused(
        written(archive(*parts, member("a_vocab.txt", b"\xff")))
    )


def test_the_limits_are_those_that_a_real_model_keeps():
    """stt_ru_conformer_ctc_large has 121.4 million parameters of 4 bytes, and about ten members."""
    assert archives.MOST_BYTES["model_weights.ckpt"] > 4 * 4 * 121_435_136
    assert archives.MOST_MEMBERS >= 20
