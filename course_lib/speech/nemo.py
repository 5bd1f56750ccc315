"""Models that NVIDIA NeMo saved: `load_nemo` reads a `.nemo` file into the course's own Conformer-CTC.

The file is a tar archive, sometimes gzipped, and untrusted. Its members are read into memory and nothing is
ever unpacked; `nemo_config` reads the sizes, torch the tensors, without running any code. Both are compared
before the model that the sizes describe takes any memory.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

import torch
from torch import Tensor

from course_lib.speech import pickle_check, tokenizer
from course_lib.speech.conformer import ConformerCTC, ConformerEncoder, ConvDecoder
from course_lib.speech.features import LogMel
from course_lib.speech.nemo_config import CONFIG, FETCH_AGAIN, ModelFault, NemoConfig, read_config

PADDING = ("old", "new")  # the ends of rows as before NeMo 2.5, and since

WEIGHTS = "model_weights.ckpt"
#: The lists of words, by the end of their names: NeMo puts a hash before.
VOCABULARIES = {"tokenizer.vocab": tokenizer.pieces_of_vocab, "vocab.txt": tokenizer.pieces_of_word_list}
MOST_MEMBERS = 64
MOST_BYTES = {CONFIG: 512 << 10, WEIGHTS: 4 << 30}
MOST_BYTES_OF_ANOTHER = 64 << 20
#: Weights hardly shrink: a file that grows tenfold is no model. The allowance is for zeros that pad a tar.
MOST_GROWTH, GROWTH_ALLOWANCE = 10, 1 << 20

UNSAFE = "do not use it"
GZIP = b"\x1f\x8b"
#: How torch.save's files begin since 1.6; an older one may have a zip appended, and torch sees both.
ZIP = b"PK\x03\x04"
TABLE = "data.pkl"  # torch.save's member with the names; it lies in a folder


class UnreadableModel(ValueError):
    """A model file that cannot be used; the message is one sentence: which file, what is wrong."""


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
    try:
        return _loaded(_members(Path(path)), padding == "new")
    except ModelFault as fault:
        raise UnreadableModel(f"{path} {fault}.") from None


def _loaded(members: dict[str, bytes], new: bool) -> ConformerCTC:
    config = read_config(members[CONFIG])
    pieces = config.vocabulary or _pieces(members)
    state = _tensors(members[WEIGHTS])
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


def _pieces(members: dict[str, bytes]) -> list[str]:
    """Return the vocabulary from the tokenizer's files, for a configuration that has none."""
    for name, pieces_of in VOCABULARIES.items():
        if name in members:
            try:
                return pieces_of(members[name].decode("utf-8"))
            except UnicodeDecodeError:
                raise ModelFault(f"has a {name} that is no UTF-8 text: {FETCH_AGAIN}") from None
    raise ModelFault(f"has no vocabulary (decoder.vocabulary, tokenizer.vocab or vocab.txt): {FETCH_AGAIN}")


# -- the archive -------------------------------------------------------------------------------------------


def _members(path: Path) -> dict[str, bytes]:
    """Return the configuration, the weights and the lists of words, by name without `./` and hash.

    Raises ModelFault, also when configuration or weights are missing.
    """
    try:
        with path.open("rb") as file:
            contents = _read_all(_Metered(file, path.stat().st_size))
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile):
        raise ModelFault(f"is no tar archive or is cut short: {FETCH_AGAIN}") from None
    except OSError as problem:
        raise ModelFault(
            f"cannot be read ({problem.strerror or problem}): name a .nemo file of yours"
        ) from None
    except (ValueError, OverflowError, RecursionError):  # what tarfile raises for numbers that make no sense
        raise ModelFault(f"has a table of contents that makes no sense: {FETCH_AGAIN}") from None
    for name in (CONFIG, WEIGHTS):
        if name not in contents:
            there = ", ".join(sorted(contents)) or "nothing"
            raise ModelFault(f"has no {name} (found: {there}; was it cut short?): {FETCH_AGAIN}")
    return contents


class _Metered(io.RawIOBase):
    """The tar stream of a file, unzipped where it is zipped; it refuses to grow without end."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        zipped = file.read(len(GZIP)) == GZIP
        file.seek(0)
        self.stream = gzip.GzipFile(fileobj=file) if zipped else file
        self.left = size * (MOST_GROWTH if zipped else 1) + GROWTH_ALLOWANCE

    def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes; raises ModelFault beyond the limit."""
        content = self.stream.read(min(size, self.left + 1) if size >= 0 else self.left + 1)
        self.left -= len(content)
        if self.left < 0:
            raise ModelFault(f"unpacks to more than {MOST_GROWTH} times its size, as no model does: {UNSAFE}")
        return content


def _read_all(stream: _Metered) -> dict[str, bytes]:
    """Return the wanted members' contents; every member is checked, the others are passed by."""
    contents: dict[str, bytes] = {}
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for number, member in enumerate(archive, start=1):
            if number > MOST_MEMBERS:
                raise ModelFault(f"has more than {MOST_MEMBERS} members, as no model has: {UNSAFE}")
            name = _checked_name(member)
            key = next((word for word in (CONFIG, WEIGHTS, *VOCABULARIES) if name.endswith(word)), None)
            if member.isdir() or key is None or (key in MOST_BYTES and name != key):
                continue
            if key in contents:  # which one counts is not for chance to say
                raise ModelFault(f"has two members whose names end in {key!r}: {UNSAFE}")
            contents[key] = archive.extractfile(member).read()
            if len(contents[key]) != member.size:
                there = f"{len(contents[key])} of {member.size} bytes"
                raise ModelFault(f"is cut short in {member.name!r} ({there}): {FETCH_AGAIN}")
    return contents


def _checked_name(member: tarfile.TarInfo) -> str:
    """Return the member's name without `./`; raises ModelFault for what no model has."""
    # Not tarfile.data_filter: Python 3.11 has it from 3.11.4 on only.
    parts = [part for part in member.name.split("/") if part not in ("", ".")]
    if member.name.startswith("/") or ".." in parts or "\\" in member.name or "\0" in member.name:
        raise ModelFault(f"has a member that would lie outside ({member.name[:80]!r}): {UNSAFE}")
    if not (member.isdir() or member.isreg()) or member.issparse():
        raise ModelFault(f"has a member that is no plain file ({member.name[:80]!r}): {UNSAFE}")
    name = "/".join(parts)
    most = MOST_BYTES.get(name, MOST_BYTES_OF_ANOTHER)
    if not 0 <= member.size <= most:
        raise ModelFault(
            f"has a member {name[:80]!r} of {member.size} bytes, but at most {most} are expected: {UNSAFE}"
        )
    return name


# -- the tensors -------------------------------------------------------------------------------------------


def _tensors(content: bytes) -> dict[str, Tensor]:
    """Return the tensors in what torch.save wrote, by name, on the CPU; no code of the file is run."""
    _check_zip(content)
    try:
        # Read by torch itself: what is checked must be what torch.load finds, however odd the zip is.
        pickle_check.check_table(torch._C.PyTorchFileReader(io.BytesIO(content)).get_record(TABLE))
        state = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except pickle_check.ForeignClass as found:
        raise _foreign(found.name) from None
    except pickle_check.NoTable:
        raise ModelFault(f"has a {WEIGHTS} that is no table of tensors by name: {FETCH_AGAIN}") from None
    except Exception:  # a file made to break it may raise anything
        raise ModelFault(f"has a {WEIGHTS} that holds no tensors (damaged?): {FETCH_AGAIN}") from None
    if not isinstance(state, dict) or not all(isinstance(name, str) for name in dict.keys(state)):
        raise ModelFault(f"has a {WEIGHTS} that is no table of tensors by name: {FETCH_AGAIN}")
    table = dict(dict.items(state))  # without the attributes that the file may give an OrderedDict
    for name, value in table.items():
        if not isinstance(value, Tensor) or not _is_plain(value):
            raise ModelFault(f"has {name[:80]!r} in {WEIGHTS}, which is no plain tensor: {FETCH_AGAIN}")
    if sum(value.numel() * value.element_size() for value in table.values()) > len(content):
        raise ModelFault(f"has a {WEIGHTS} whose tensors hold more than the file does: {UNSAFE}")
    return table


def _is_plain(tensor: Tensor) -> bool:
    """Whether a tensor's numbers lie in the CPU's memory one by one."""
    strided = tensor.layout == torch.strided and not tensor.is_nested and not tensor.is_quantized
    return strided and tensor.device.type == "cpu"


def _foreign(name: str) -> ModelFault:
    """Return what to say of a class or function that a table of tensors has no need of."""
    if name.startswith("torch."):  # sparse, quantized, meta or nested tensors, and the like
        return ModelFault(f"has {name[:80]!r} in {WEIGHTS}, which is no plain tensor: {FETCH_AGAIN}")
    return ModelFault(f"wants to run {name[:80]!r} when {WEIGHTS} is read, which was refused: {UNSAFE}")


def _check_zip(content: bytes) -> None:
    """Raise ModelFault unless this is a zip that keeps its members as they are, as torch.save's does."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, ValueError, OverflowError, NotImplementedError):
        entries = []
    if not content.startswith(ZIP) or not any(entry.filename.endswith("/" + TABLE) for entry in entries):
        raise ModelFault(f"has a {WEIGHTS} that torch.save did not write (damaged?): {FETCH_AGAIN}")
    compressed = any(entry.compress_type != zipfile.ZIP_STORED for entry in entries)
    if compressed or sum(entry.file_size for entry in entries) > len(content):
        raise ModelFault(f"has a {WEIGHTS} that is compressed or unpacks to more than it is: {UNSAFE}")


def _compare(state: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    """Raise ModelFault unless names, shapes and element types are the same and all numbers finite."""
    if missing := [name for name in expected if name not in state]:
        raise ModelFault(f"lacks {_named(missing)} that its configuration calls for: {FETCH_AGAIN}")
    if extra := [name for name in state if name not in expected]:
        raise ModelFault(f"has {_named(extra)} that its configuration does not call for: {FETCH_AGAIN}")
    for name, tensor in state.items():
        got, wanted = tuple(tensor.shape), tuple(expected[name].shape)
        if got != wanted:
            raise ModelFault(
                f"has {name} of shape {got}, but its configuration calls for {wanted}: {FETCH_AGAIN}"
            )
        if tensor.dtype != expected[name].dtype:
            raise ModelFault(
                f"has {name} as {tensor.dtype}, but {expected[name].dtype} is wanted: convert it in NeMo"
            )
        if not torch.isfinite(tensor).all():
            raise ModelFault(f"has NaN or infinity in {name}: {FETCH_AGAIN}")


def _named(names: list[str]) -> str:
    """Return the first three names, and how many more there are."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    plural = "tensors " if len(names) > 1 else "the tensor "
    return plural + ", ".join(repr(name[:80]) for name in names[:3]) + more
