"""NeMo's files load by name and number; anything else in a file gets one sentence and is never run."""

import collections
import copy
import gzip
import io
import os
import random
import tarfile
import zipfile

import nemo_files
import pytest
from nemo_files import PIECES, archive, changed, member, refused, saved

QUERY = "encoder.layers.0.self_attn.linear_q.weight"


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


def load(path, **options):
    from course_lib.speech.nemo import load_nemo

    return load_nemo(path, **options)


def assert_refused(written, cases):
    """Each case: its name, the file's content, what the sentence must say."""
    for case, content, says in cases:
        sentence = refused(written(content))
        assert says in sentence, f"{case}: {sentence}"


# -- whole files -------------------------------------------------------------------------------------------


def test_a_whole_file_gives_the_same_model(written, model, state):
    import torch

    state["preprocessor.featurizer.fb"] = state["preprocessor.featurizer.fb"] * 2  # taken from the file, too
    bare = archive(*nemo_files.members(state, prefix="")[1:])
    dotted = nemo_files.nemo(state, prefix="././")
    wordless = nemo_files.members(state, changed("decoder", "vocabulary", value=...))
    scored = "".join(f"{piece}\t-{number}\n" for number, piece in enumerate(PIECES))
    lists = (("9f_tokenizer.vocab", scored), ("./9f_vocab.txt", "▁\n##e\n##s\nyes\nno\n##n\n"))
    listed = [archive(*wordless, member(name, text.encode())) for name, text in lists]
    for made in (nemo_files.nemo(state), nemo_files.nemo(state, zipped=True), bare, dotted, *listed):
        loaded = load(written(made))
        assert not loaded.training and loaded.tokenizer.pieces == tuple(PIECES)
        assert loaded.state_dict().keys() == state.keys()
        assert all(torch.equal(tensor, state[name]) for name, tensor in loaded.state_dict().items())
    loaded = load(written(nemo_files.nemo(dict(model.state_dict()))))
    samples = 0.1 * torch.randn(1, 8000)
    with torch.no_grad():
        heard = loaded(*loaded.preprocessor(samples))[0]
        assert torch.equal(heard, model(*model.preprocessor(samples))[0])


def test_options_that_change_nothing_are_let_be(written, state):
    import yaml

    for section, option, values in (
        ("encoder", "dropout_att", (0.3,)),
        ("encoder", "conv_context_size", ([3, 3], None)),
        ("encoder", "att_context_size", (None,)),
        ("decoder", "num_classes", (None, -1, ...)),
        ("decoder", "feat_in", (0, ...)),
    ):
        for value in values:
            load(written(nemo_files.nemo(state, changed(section, option, value=value))))
    text = "first: &eighty 8_0\n" + yaml.safe_dump(nemo_files.CONFIG, allow_unicode=True)
    text = text.replace("feat_in: 80", "feat_in: *eighty").replace("features: 80", "features: 0b1010000")
    load(written(archive(*with_config(state, text.encode()))))


def test_attributes_of_the_table_are_not_obeyed(written, state):
    import torch

    for attributes in ({"_metadata": {"": {"assign_to_params_buffers": True}}}, {"keys": 1, "values": 1}):
        table = collections.OrderedDict(state)
        table.__dict__.update(attributes)
        loaded = load(written(nemo_files.nemo(table)))
        assert all(isinstance(weight, torch.nn.Parameter) for weight in loaded.parameters()), attributes


# -- archives that are none, or not to be trusted ----------------------------------------------------------


def test_an_archive_that_is_none_or_unsafe(written, state, tmp_path):
    parts, whole = nemo_files.members(state), nemo_files.nemo(state)

    def with_member(name, content=b"", **fields):
        return archive(*parts, member(name, content, **fields))

    cut = archive(*parts[:3])
    cut = cut[: -(-len(cut.rstrip(b"\0")) // 512) * 512]  # without the zeros that end a tar
    huge = tarfile.TarInfo("model_weights.ckpt")
    huge.size = 5 << 30
    no_file, outside = "a member that is no plain file (", "a member that would lie outside ("
    cases = [
        ("empty", b"", "is no tar archive or is cut short"),
        ("text", b"a letter " * 1000, "is no tar archive"),
        ("a zip", saved(state), "is no tar archive"),
        ("cut in the weights", whole[:20_000], "is cut short"),
        ("cut before the weights", cut, "has no model_weights.ckpt (found: model_config.yaml; was it cut"),
        ("gzip cut", nemo_files.nemo(state, zipped=True)[:-2000], "is cut short"),
        ("gzip of no tar", gzip.compress(b"a letter " * 1000), "is no tar archive"),
        ("no config", archive(parts[3]), "has no model_config.yaml"),
        ("nothing", archive(), "has no model_config.yaml (found: nothing"),
        ("path upwards", with_member("../x", b"1"), outside + "'../x')"),
        ("absolute path", with_member("/tmp/x", b"1"), outside + "'/tmp/x')"),
        ("path of Windows", with_member("a\\..\\x", b"1"), outside),
        ("path inside upwards", with_member("a/../../x"), outside),
        ("symbolic link", with_member("a", type=tarfile.SYMTYPE, linkname="/etc/passwd"), no_file + "'a')"),
        ("hard link", with_member("a", type=tarfile.LNKTYPE, linkname="model_config.yaml"), no_file),
        ("device", with_member("a", type=tarfile.CHRTYPE), no_file),
        ("fifo", with_member("a", type=tarfile.FIFOTYPE), no_file),
        ("sparse", with_member("a", type=tarfile.GNUTYPE_SPARSE), no_file),
        ("config twice", with_member("model_config.yaml", b"{}"), "two members whose names end in 'model_c"),
        ("too many", archive(*parts, *(member(f"f{i}") for i in range(100))), "has more than 64 members"),
        ("large", archive(member("model_config.yaml", b" " * (1 << 20))), "but at most 524288 are expected"),
        ("gzip of zeros", archive(member("z", bytes(30 << 20)), zipped=True), "more than 10 times its size"),
        ("claims to be huge", huge.tobuf(tarfile.GNU_FORMAT) + bytes(1024), "of 5368709120 bytes"),
    ]
    assert_refused(written, cases)
    assert os.listdir(tmp_path) == ["model.nemo"]  # nothing was unpacked
    assert "No such file" in refused(tmp_path / "none.nemo")
    for length in range(0, len(whole.rstrip(b"\0")), 2999):
        refused(written(whole[:length]))


def test_damage_anywhere_is_one_sentence_or_a_model(written, state):
    from course_lib.speech.nemo import UnreadableModel

    whole, rng, outcomes = bytearray(nemo_files.nemo(state)), random.Random(0), set()
    for _ in range(40):
        damaged = copy.copy(whole)
        damaged[rng.randrange(len(whole))] ^= 0xFF
        try:
            load(written(damaged))
            outcomes.add("a model")
        except UnreadableModel:
            outcomes.add("a sentence")
    assert outcomes == {"a model", "a sentence"}


# -- configurations ----------------------------------------------------------------------------------------


def with_config(state, text):
    """Return the members of a file with another text for its configuration."""
    parts = [part for part in nemo_files.members(state) if not part[0].name.endswith("yaml")]
    return [*parts, member("model_config.yaml", text)]


#: section, option, value, what is said of it
OPTIONS = [
    ("encoder", "_target_", "a.SqueezeformerEncoder", "is another model (encoder"),
    ("encoder", "n_layers", "two", "has 'two' for encoder.n_layers in model_config.yaml, but wanted is a wh"),
    ("encoder", "n_layers", ..., "has nothing for encoder.n_layers"),
    ("encoder", "d_model", 1 << 2000, "a number of 2001 bits for encoder.d_model"),
    ("encoder", "n_heads", 3, "an even number that 3 heads share"),
    ("encoder", "conv_kernel_size", 8, "an odd number"),
    ("encoder", "feat_in", "${model.features}", "'${model.features}'"),
    ("encoder", "subsampling", "dw_striding", "'dw_striding', only striding is"),
    ("encoder", "att_context_size", [70, 1], "encoder.att_context_size is a list"),
    ("encoder", "conv_context_size", "causal", "encoder.conv_context_size is 'causal'"),
    ("encoder", "xscaling", 1, "encoder.xscaling is 1, only True"),
    ("encoder", "rotary", True, "has the option 'rotary' for encoder in"),
    ("encoder", "\x1b[2J\nx", 1, r"has the option '\x1b[2J\nx' for encoder in"),
    ("encoder", 1 << 2000, 1, "has the option a number of 2001 bits for encoder in"),
    ("preprocessor", "features", 64, "has 64 for preprocessor.features"),
    ("preprocessor", "window_size", 400, "seconds from 0.001 to 0.1"),
    ("preprocessor", "pad_to", ..., "preprocessor.pad_to is 16, only 0"),
    ("decoder", "vocabulary", [1, 2], "a list of texts"),
    ("decoder", "vocabulary", [], "has no vocabulary (decoder.vocabulary, tokenizer.vocab or vocab.txt)"),
    ("decoder", "num_classes", 99, "has 99 for decoder.num_classes in model_config.yaml, but wanted is the"),
    ("decoder", "feat_in", 512, "has 512 for decoder.feat_in in model_config.yaml, but wanted is the"),
    ("tokenizer", "type", "wpe", "(tokenizer.type is 'wpe', only bpe is built"),
]


def test_a_configuration_of_something_else(written, state):
    configs = [
        (changed("target", value="nemo.x.EncDecRNNTBPEModel"), "is another model (target is 'nemo.x"),
        (changed("target", value=...), "is another model (target is nothing"),
        (changed("encoder", value=...), "has nothing for encoder in model_config.yaml"),
        (changed("encoder", value=[1, 2]), "has a list of 2 for encoder"),
        ([1, 2], "has a list of 2 for the whole"),
        *((changed(section, name, value=value), says) for section, name, value, says in OPTIONS),
    ]
    assert_refused(written, [(says, nemo_files.nemo(state, config), says) for config, says in configs])


def test_a_configuration_that_is_no_yaml(written, state):
    merges = b"".join(
        b"a%d: &a%d {%s}\n" % (n, n, b"<<: [" + b",".join([b"*a%d" % (n - 1)] * 9) + b"]" if n else b"k: v")
        for n in range(12)
    )
    aliases = b"a: &a 1\nb: [" + b"*a," * 101 + b"]"
    plain = (b"\xff\xfe", b"a: [1", b"\t", b"[" * 100_000, b"!!timestamp x", b"!!int ''")
    texts = (*plain, b"a: !!python/name:os.system", merges, b"a: {<<: {k: v}}", aliases)
    no_yaml = "has a model_config.yaml that is no YAML"
    assert_refused(written, [(text[:12], archive(*with_config(state, text)), no_yaml) for text in texts])
    # a number to base 60 stays a text: PyYAML adds one up in quadratic time, of 512 KiB that would be minutes
    assert "target is '1:30'" in refused(written(archive(*with_config(state, b"target: 1:30"))))
    long = b"target: 1" + b":1" * 200_000
    assert "target is '1:1:1:" in refused(written(archive(*with_config(state, long))))


# -- tensors -----------------------------------------------------------------------------------------------


class Evil:
    """Unpickled by a careless reader, it makes a folder."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (self.folder,)


def with_weights(state, content):
    return archive(*nemo_files.members(state)[:3], member("./model_weights.ckpt", content))


def test_code_in_the_weights_is_not_run(written, state, tmp_path):
    import torch

    folder = tmp_path / "made by the file"
    evil = Evil(str(folder))
    for table in (evil, state | {"encoder.evil": evil}):
        says = refused(written(with_weights(state, saved(table))))
        assert f"wants to run '{os.mkdir.__module__}.mkdir' when model_weights.ckpt is read" in says
        assert not folder.exists()
    torch.load(io.BytesIO(saved(evil)), weights_only=False)  # the same bytes do run when they are trusted
    assert folder.exists()


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors", "ignore:torch.quantize_per_tensor")
def test_tensors_that_are_not_the_models(written, state):
    import torch

    query = state[QUERY]
    nan = query.clone()
    nan[3, 5] = float("nan")
    third = {n.replace("layers.1.", "layers.2."): t for n, t in state.items() if "layers.1." in n}
    not_called = "that its configuration does not"
    tables = [
        ({n: t for n, t in state.items() if n != QUERY}, f"lacks the tensor '{QUERY}'"),
        ({n: t for n, t in state.items() if "self_attn" not in n}, "linear_q.weight' and 19 more"),
        (state | {"\x1b[2J\nline two\ud800": nan}, rf"the tensor '\x1b[2J\nline two\ud800' {not_called}"),
        (state | third, f"and 37 more {not_called} call for"),
        (state | {QUERY: query[:8]}, f"has {QUERY} of shape (8, 16), but its configuration calls for (16,"),
        (state | {QUERY: query.half()}, f"has {QUERY} as torch.float16, but torch.float32"),
        (state | {QUERY: nan}, f"has NaN or infinity in {QUERY}"),
        (state | {QUERY: query + float("inf")}, f"has NaN or infinity in {QUERY}"),
        (state | {"more": 3}, "has 'more' in model_weights.ckpt, which is no plain tensor"),
        (state | {QUERY: torch.nested.nested_tensor([query, query[:1]])}, "which is no plain tensor"),
        (state | {QUERY: query.to_sparse()}, "which is no plain tensor"),
        (state | {QUERY: query.to("meta")}, "which is no plain tensor"),
        (state | {QUERY: torch.quantize_per_tensor(query, 0.1, 0, torch.qint8)}, "which is no plain tensor"),
        (state | {"more": [query]}, "is no table of tensors by name"),
        ([1, 2], "is no table of tensors by name"),
        ({1: torch.ones(1)}, "is no table of tensors by name"),
        ({}, "lacks tensors"),
        (state | {"more": torch.ones(1).expand(1 << 40)}, "whose tensors hold more than the file does"),
    ]  # fmt: skip
    assert_refused(written, [(says, nemo_files.nemo(table), says) for table, says in tables])
    config = copy.deepcopy(nemo_files.CONFIG)  # 50 billion parameters by its words take no memory
    config["encoder"] |= {"n_layers": 128, "d_model": 4096, "ff_expansion_factor": 16}
    config["decoder"]["feat_in"] = 4096
    assert "lacks tensors" in refused(written(nemo_files.nemo(state, config)))


def zip_of(pickle):
    """Return a file as torch.save writes it, with a pickle of one's own."""
    with zipfile.ZipFile(buffer := io.BytesIO(), "w") as new:
        for name, text in (("data.pkl", pickle), ("version", b"3\n"), ("byteorder", b"little")):
            new.writestr(f"archive/{name}", text)
    return buffer.getvalue()


def test_a_pickle_that_takes_for_ever_is_refused_before_it_is_followed(written, state):
    """A nest that holds itself twice at each level takes 2^60 steps to hash or to write."""
    tuples = b"K\x01\x85" + b"q\x01h\x01\x86" * 60
    tables = b"}q\x01X\x01\0\0\0aK\x01s" + b"q\x01}q\x02X\x01\0\0\0ah\x01sX\x01\0\0\0bh\x01s" * 60
    counter = b"ccollections\nCounter\n)R."
    assert_refused(
        written,
        [
            (name, with_weights(state, zip_of(b"\x80\x02" + pickle)), says)
            for name, pickle, says in (
                ("as a key", b"}" + tuples + b"K\x01s.", "is no table of tensors by name"),
                ("as a storage", b"}X\x01\0\0\0a" + tuples + b"Qs.", "is no table of tensors by name"),
                ("tables in a storage", b"}X\x01\0\0\0a" + tables + b"\x85Qs.", "is no table of tensors"),
                ("deep", b"}K\x01" + b"\x85" * 1_000_000 + b"K\x01s.", "is no table of tensors by name"),
                ("long", b"}" + b"K\x010" * 1_000_000 + b".", "is no table of tensors by name"),
                ("a set", b"}\x8f.", "is no table of tensors by name"),
                ("a number as key", b"}K\x01K\x01s.", "is no table of tensors by name"),
                ("no code, but no table", counter, "wants to run 'collections.Counter'"),
                ("cut", b"}X\x01\0\0\0a", "is no table of tensors by name"),
            )
        ],
    )


def test_weights_that_torch_did_not_write(written, state):
    import torch

    def deflated(members):
        with zipfile.ZipFile(buffer := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as new:
            for name, text in members.items():
                new.writestr(name, text)
        return buffer.getvalue()

    content, old = saved(state), io.BytesIO()
    torch.save(state, old, _use_new_zipfile_serialization=False)
    zeros = {
        entry.filename: bytes(entry.file_size) for entry in zipfile.ZipFile(io.BytesIO(content)).infolist()
    }
    not_torch = "that torch.save did not write"
    cases = [
        ("text", b"a letter", not_torch),
        ("cut", content[:-100], not_torch),
        ("a pickle", b"\x80\x02" + content[:100], not_torch),
        ("an empty zip", b"PK\x05\x06" + bytes(18), not_torch),
        ("two formats", old.getvalue() + content, not_torch),
        ("compressed", deflated({"archive/data.pkl": os.urandom(1000)}), "is compressed or"),
        ("zeros", deflated(zeros), "unpacks to more than it is"),
    ]
    assert_refused(written, [(case, with_weights(state, content), says) for case, content, says in cases])


# -- the ends of rows, as NeMo treated them before 2.5 and since -------------------------------------------


def test_padding_old_and_new(written, state):
    """With the new padding a row is the same alone and in a batch, with the old one the batch leaks."""
    import torch

    def differences_in_a_batch(heard_by, *lengths):
        """Return for each row how far its log-probabilities in a batch are from those it has alone."""
        torch.manual_seed(2)
        samples = torch.randn(len(lengths), max(lengths))  # beyond a row's length: nobody may look at it
        together, frames = heard_by(*heard_by.preprocessor(samples, torch.tensor(lengths)))
        for row, length in enumerate(lengths):
            alone, (own,) = heard_by(*heard_by.preprocessor(samples[row : row + 1, :length]))
            assert own == frames[row] == alone.shape[1]
            yield float((together[row, :own] - alone[0]).abs().max())

    path = written(nemo_files.nemo(state))
    old, new = load(path), load(path, padding="new")
    with torch.no_grad():
        assert new.preprocessor.zero_padded and new.encoder.pre_encode.masks
        assert max(differences_in_a_batch(new, 8000, 5170, 1700, 320)) <= 1e-5
        assert not old.preprocessor.zero_padded and not old.encoder.pre_encode.masks
        longest, *shorter = differences_in_a_batch(old, 8000, 5170, 1700)
        assert longest <= 1e-5 and min(shorter) > 1e-3
        features, frames = old.preprocessor(torch.randn(1, 8000))
        assert torch.equal(old(features, frames)[0], new(features, frames)[0])
    with pytest.raises(ValueError, match=r'padding is \'newer\', but must be "old" \(NeMo before 2.5\)'):
        load(path.with_name("none.nemo"), padding="newer")
