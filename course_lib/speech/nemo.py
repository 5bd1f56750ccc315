"""Models that NVIDIA NeMo saved: `load_nemo` reads a `.nemo` file into the course's own Conformer-CTC.

The file is a tar archive, sometimes gzipped, and untrusted. Its members are read into memory and nothing is
ever unpacked; `nemo_config` reads the sizes, `nemo_weights` the tensors, without running any code. Both are
compared before the model that the sizes describe takes any memory.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from pathlib import Path
from typing import BinaryIO

import torch

from course_lib.speech.conformer import ConformerCTC, ConformerEncoder, ConvDecoder
from course_lib.speech.features import LogMel
from course_lib.speech.nemo_config import CONFIG, UNSAFE, ModelFault, NemoConfig, read_config
from course_lib.speech.nemo_weights import WEIGHTS, check_fit, read_weights
from course_lib.speech.tokenizer import Tokenizer, pieces_of_vocab, pieces_of_word_list

PADDING = ("old", "new")  # the ends of rows as before NeMo 2.5, and since

#: The lists of words, by the end of their names: NeMo puts a hash before.
VOCABULARIES = {"tokenizer.vocab": pieces_of_vocab, "vocab.txt": pieces_of_word_list}
MOST_MEMBERS = 64
MOST_BYTES = {CONFIG: 512 << 10, WEIGHTS: 4 << 30}
MOST_BYTES_OF_ANOTHER = 64 << 20
#: Weights hardly shrink: a file that grows tenfold is no model. The allowance is for zeros that pad a tar.
MOST_GROWTH, GROWTH_ALLOWANCE = 10, 1 << 20

GZIP = b"\x1f\x8b"


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
    if not config.vocabulary:
        config = config._replace(vocabulary=_pieces(members))
    state = read_weights(members[WEIGHTS])
    with torch.device("meta"):  # shapes without memory
        expected = _model(config, new).state_dict()
    check_fit(state, expected)
    model = _model(config, new)
    model.load_state_dict(state, strict=True)
    return model.eval()


def _model(config: NemoConfig, new: bool) -> ConformerCTC:
    """Return the model with weights as they come; `new`: with the padding of NeMo 2.5."""
    encoder = ConformerEncoder(**config.encoder, masks_subsampling=new)
    model = ConformerCTC(encoder, ConvDecoder(encoder.d_model, len(config.vocabulary) + 1))
    model.preprocessor = LogMel(**config.front_end, zero_padded=new)
    model.tokenizer = Tokenizer(config.vocabulary)
    return model


def _pieces(members: dict[str, bytes]) -> tuple[str, ...]:
    """Return the vocabulary from the tokenizer's files, for a configuration that has none."""
    for name, pieces_of in VOCABULARIES.items():
        if name in members:
            try:
                return tuple(pieces_of(members[name].decode("utf-8")))
            except UnicodeDecodeError:
                raise ModelFault(f"has a {name} that is no UTF-8 text") from None
    raise ModelFault("has no vocabulary (decoder.vocabulary, tokenizer.vocab or vocab.txt)")


# -- the archive -------------------------------------------------------------------------------------------


def _members(path: Path) -> dict[str, bytes]:
    """Return the configuration, the weights and the lists of words, by name without `./` and hash.

    Raises ModelFault, also when configuration or weights are missing.
    """
    try:
        with path.open("rb") as file:
            contents = _read_all(_Metered(file, path.stat().st_size))
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile):
        raise ModelFault("is no tar archive or is cut short") from None
    except OSError as problem:
        why = problem.strerror or problem
        raise ModelFault(f"cannot be read ({why})", "name a .nemo file of yours") from None
    except (ValueError, OverflowError, RecursionError):  # what tarfile raises for numbers that make no sense
        raise ModelFault("has a table of contents that makes no sense") from None
    for name in (CONFIG, WEIGHTS):
        if name not in contents:
            there = ", ".join(sorted(contents)) or "nothing"
            raise ModelFault(f"has no {name} (found: {there}; was it cut short?)")
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
            raise ModelFault(f"unpacks to more than {MOST_GROWTH} times its size, as no model does", UNSAFE)
        return content


def _read_all(stream: _Metered) -> dict[str, bytes]:
    """Return the wanted members' contents; every member is checked, the others are passed by."""
    contents: dict[str, bytes] = {}
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for number, member in enumerate(archive, start=1):
            if number > MOST_MEMBERS:
                raise ModelFault(f"has more than {MOST_MEMBERS} members, as no model has", UNSAFE)
            name = _checked_name(member)
            if name not in MOST_BYTES:
                name = next((end for end in VOCABULARIES if name.endswith(end)), None)
            if member.isdir() or name is None:
                continue
            if name in contents:  # which one counts is not for chance to say
                raise ModelFault(f"has two members whose names end in {name!r}", UNSAFE)
            contents[name] = archive.extractfile(member).read()
            if len(contents[name]) != member.size:
                there = f"{len(contents[name])} of {member.size} bytes"
                raise ModelFault(f"is cut short in {member.name!r} ({there})")
    return contents


def _checked_name(member: tarfile.TarInfo) -> str:
    """Return the member's name without `./`; raises ModelFault for what no model has."""
    # Not tarfile.data_filter: Python 3.11 has it from 3.11.4 on only.
    parts = [part for part in member.name.split("/") if part not in ("", ".")]
    if member.name.startswith("/") or ".." in parts or "\\" in member.name or "\0" in member.name:
        raise ModelFault(f"has a member that would lie outside ({member.name[:80]!r})", UNSAFE)
    if not (member.isdir() or member.isreg()) or member.issparse():
        raise ModelFault(f"has a member that is no plain file ({member.name[:80]!r})", UNSAFE)
    name = "/".join(parts)
    most = MOST_BYTES.get(name, MOST_BYTES_OF_ANOTHER)
    if not 0 <= member.size <= most:
        size = f"{member.size} bytes, but at most {most} are expected"
        raise ModelFault(f"has a member {name[:80]!r} of {size}", UNSAFE)
    return name
