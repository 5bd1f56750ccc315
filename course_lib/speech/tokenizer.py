"""From token numbers to text: all of SentencePiece that listening needs, and only the list of its pieces."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

WORD_START = "▁"  # U+2581, how SentencePiece writes a space
UNKNOWN = "<unk>"
CONTROL = ("<s>", "</s>", "<pad>")  # they mark places and have no text
#: Characters that act on a terminal instead of being seen: control, ends of lines, turned directions.
UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
BYTE = re.compile(r"<0x([0-9A-F]{2})>")  # a byte of a character that has no piece of its own


class Tokenizer:
    """The pieces in the order of their numbers; `text` puts them together (it splits no text into pieces)."""

    def __init__(self, pieces: Sequence[str]):
        self.pieces = tuple(pieces)

    def text(self, tokens: Iterable[int]) -> str:
        """Return the text of token numbers 0 … len - 1, as SentencePiece's decoder would.

        The pieces come from a file, so control characters among them are left out.
        """
        joined = b"".join(self._bytes(self.pieces[token]) for token in tokens).decode("utf-8", "replace")
        return UNSEEN.sub("", joined).replace(WORD_START, " ").removeprefix(" ")

    def _bytes(self, piece: str) -> bytes:
        if piece in CONTROL:
            return b""
        if piece == UNKNOWN:
            return " ⁇ ".encode()
        byte = BYTE.fullmatch(piece)
        return bytes.fromhex(byte[1]) if byte else piece.encode("utf-8", "replace")


def pieces_of_vocab(text: str) -> list[str]:
    """Return the pieces of a SentencePiece `tokenizer.vocab`: a line each, the piece, a tab, its score."""
    return [line.split("\t")[0] for line in _lines(text)]


def pieces_of_word_list(text: str) -> list[str]:
    """Return the pieces of NeMo's `vocab.txt`: the same less <unk>, with "##" before what continues a word.

    Source: `create_spt_model` in nemo/collections/common/tokenizers/sentencepiece_tokenizer.py.
    """
    return [UNKNOWN, *(_piece(line) for line in _lines(text))]


def _piece(word: str) -> str:
    if word.startswith("##"):
        return word[2:]
    return word if word == WORD_START else WORD_START + word


def _lines(text: str) -> list[str]:
    """Return the lines that are not empty; a piece may hold rare ends of lines, so only \\n counts."""
    return [line for line in text.replace("\r\n", "\n").split("\n") if line]
