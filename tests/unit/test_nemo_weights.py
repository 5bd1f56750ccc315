"""Weights in NeMo's files are tensors by name and nothing else, and reading them ends and runs nothing."""

import collections
import copy
import io
import os
import re
import zipfile

import nemo_files
import pytest
import torch
from nemo_files import CONFIG, archive, member, refused, saved

from course_lib.speech.nemo import load_nemo


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


QUERY = "encoder.layers.0.self_attn.linear_q.weight"


class Evil:
    """Unpickled by a careless reader, it makes a folder."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (self.folder,)


@pytest.mark.parametrize("where", ["alone", "among tensors"])
def test_code_in_the_weights_is_not_run(written, state, tmp_path, where):
    folder = tmp_path / "made by the file"
    evil = Evil(str(folder))
    content = saved(evil if where == "alone" else state | {"encoder.evil": evil})
    config = nemo_files.members(state)[2]
    says = refused(written(archive(config, member("model_weights.ckpt", content))))
    assert re.search(
        r"wants to run '(posix|nt)\.mkdir' when model_weights\.ckpt is read, which was refused", says
    )
    assert not folder.exists()
    torch.load(io.BytesIO(content), weights_only=False)  # the same bytes do run when they are trusted
    assert folder.exists()


def deflated(content, level=None):
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as old,
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            new.writestr(name, old.read(name), compresslevel=level)
    return buffer.getvalue()


def edited(**changes):
    """Return a function that gives the state with tensors replaced; ... removes one."""

    def edit(state):
        state = state | {name.replace("__", "."): value for name, value in changes.items()}
        return {name: value for name, value in state.items() if value is not ...}

    return edit


def with_query(change):
    return lambda state: state | {QUERY: change(state[QUERY].clone())}


def first_nan(tensor):
    tensor[3, 5] = float("nan")
    return tensor


STATES = {
    "missing": (
        edited(decoder__decoder_layers__0__bias=...),
        "lacks the tensor 'decoder.decoder_layers.0.bias'",
    ),
    "several missing": (
        lambda state: {name: tensor for name, tensor in state.items() if "self_attn" not in name},
        "'encoder.layers.0.self_attn.pos_bias_v', 'encoder.layers.0.self_attn.linear_q.weight' and 19 more",
    ),
    "extra": (
        edited(encoder__more=torch.ones(2)),
        "has the tensor 'encoder.more' that its configuration does not",
    ),
    "a name with control characters": (
        lambda state: state | {"\x1b[2J\nline two\ud800": torch.ones(2)},
        r"has the tensor '\x1b[2J\nline two\ud800' that its configuration does not",
    ),
    "a third layer": (
        lambda state: (
            state | {n.replace("layers.1.", "layers.2."): t for n, t in state.items() if "layers.1." in n}
        ),
        "and 37 more that its configuration does not call for",
    ),
    "shape": (
        with_query(lambda t: t[:8]),
        f"has {QUERY} of shape (8, 16), but its configuration calls for (16, 16)",
    ),
    "half precision": (with_query(lambda t: t.half()), f"has {QUERY} as torch.float16, but torch.float32"),
    "NaN": (with_query(first_nan), f"has NaN or infinity in {QUERY}"),
    "infinity": (with_query(lambda t: t.fill_(float("inf"))), f"has NaN or infinity in {QUERY}"),
    "a number": (
        edited(encoder__more=3),
        "has 'encoder.more' in model_weights.ckpt, which is no plain tensor",
    ),
    "nested": (
        with_query(lambda t: torch.nested.nested_tensor([t, t[:1]])),
        "has 'torch._utils._rebuild_nested_tensor' in model_weights.ckpt, which is no plain tensor",
    ),
    "sparse": (with_query(lambda t: t.to_sparse()), "which is no plain tensor"),
    "no table": (lambda state: [1, 2], "is no table of tensors by name"),
    "numbers for names": (lambda state: {1: torch.ones(1)}, "is no table of tensors by name"),
    "empty table": (lambda state: {}, "is no table of tensors"),
    "one element as many": (
        edited(encoder__more=torch.ones(1).expand(1 << 40)),
        "whose tensors hold more than the file does",
    ),
}


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("case", STATES)
def test_tensors_that_are_not_the_models(written, state, case):
    change, says = STATES[case]
    assert says in refused(written(nemo_files.nemo(change(state))))


def older():
    """Return what torch.save wrote before 1.6: pickles one behind the other, and no zip."""
    buffer = io.BytesIO()
    torch.save({"a": torch.ones(1)}, buffer, _use_new_zipfile_serialization=False)
    return buffer.getvalue()


def with_table(content, pickle):
    """Return the file with another pickle in the place of its table of tensors."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            new.writestr(name, pickle if name.endswith("data.pkl") else old.read(name))
    return buffer.getvalue()


#: Instructions that make a tuple of () twice, then a tuple of that twice, and so on 45 times.
TWICE = b")" + b"".join(b"q%ch%c\x86" % (level, level) for level in range(45))
#: The same of dicts with two names, for they have no hash but can be written out.
TABLES = b"}" + b"".join(
    b"q%c}q%cX\1\0\0\0ah%csX\1\0\0\0bh%cs" % (level, level + 100, level, level) for level in range(45)
)

CONTENTS = {
    "text": (lambda content: b"a letter", "that torch.save did not write"),
    "cut": (lambda content: content[:-100], "that torch.save did not write"),
    "before torch 1.6": (lambda content: b"\x80\x02" + content[:100], "that torch.save did not write"),
    "an empty zip": (lambda content: b"PK\x05\x06" + bytes(18), "that torch.save did not write"),
    "an older file before an empty zip": (
        lambda content: older() + b"PK\x05\x06" + bytes(18),
        "that torch.save did not write",
    ),
    "an older file before a zip": (lambda content: older() + content, "that torch.save did not write"),
    "a table that is too long": (
        lambda content: with_table(content, b"\x80\x02" + b"K\0" * (2 << 20)),
        "is no table of tensors by name",
    ),
    "a tuple with 2^45 leaves for a name": (
        lambda content: with_table(content, b"\x80\x02}" + TWICE + b"K\x01s."),
        "is no table of tensors by name",
    ),
    "a tuple with 2^45 leaves for a storage": (
        lambda content: with_table(content, b"\x80\x02" + TWICE + b"\x85Q."),
        "is no table of tensors by name",
    ),
    "a table of tables, each twice in the next": (
        lambda content: with_table(content, b"\x80\x02" + TABLES + b"."),
        "has 'a' in model_weights.ckpt, which is no plain tensor",
    ),
    "deflated": (deflated, "that is compressed or unpacks to more than it is"),
    "deflated to more": (
        lambda content: deflated(content, level=0),
        "that is compressed or unpacks to more than it is",
    ),
}


@pytest.mark.parametrize("case", CONTENTS)
def test_weights_that_torch_did_not_write(written, state, case):
    change, says = CONTENTS[case]
    parts = nemo_files.members(state)
    content = change(saved(state))
    assert says in refused(written(archive(*parts[:3], member("./model_weights.ckpt", content))))


def with_attributes(state, **attributes):
    table = collections.OrderedDict(state)
    table.__dict__.update(attributes)
    return table


ATTRIBUTES = [{"_metadata": "boo"}, {"_metadata": {"": {"assign_to_params_buffers": True}}}]
ATTRIBUTES += [{name: 1} for name in ("keys", "values", "copy")]


@pytest.mark.parametrize("attributes", ATTRIBUTES, ids=str)
def test_attributes_of_the_table_are_not_obeyed(written, model, state, attributes):
    loaded = load_nemo(written(nemo_files.nemo(with_attributes(state, **attributes))))
    assert all(torch.equal(tensor, state[name]) for name, tensor in loaded.state_dict().items())
    assert all(isinstance(one, torch.nn.Parameter) for one in loaded.parameters())


def test_real_tables_of_tensors_load(written, model, state):
    """As state_dict gives it, with its versions; of parameters; of a thousand tensors in one file."""
    parameters = {name: torch.nn.Parameter(tensor, False) for name, tensor in state.items()}
    for table in (model.state_dict(), parameters):
        assert load_nemo(written(nemo_files.nemo(table))).state_dict().keys() == state.keys()
    from course_lib.speech.nemo_weights import read_tensors

    many = saved({f"encoder.layers.{number}.norm_out.weight": torch.ones(1) for number in range(1000)})
    assert len(read_tensors(many)) == 1000


def test_a_large_model_by_configuration_takes_no_memory(written, state):
    """50 billion parameters by its words: the names are compared before a model of that size is made."""
    config = copy.deepcopy(CONFIG)
    config["encoder"] |= {"n_layers": 128, "d_model": 4096, "ff_expansion_factor": 16}
    config["decoder"]["feat_in"] = 4096
    assert "lacks tensors" in refused(written(nemo_files.nemo(state, config)))
