"""`python -m course_lib transcribe FILE --model MODEL.nemo`: what a Conformer-CTC hears in a recording."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

EXAMPLE = "stt_ru_conformer_ctc_large.nemo"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the recording and the model."""
    parser.add_argument("file", type=Path, metavar="FILE", help="a recording: WAV, FLAC, OGG, MP3, …")
    parser.add_argument(
        "--model",
        type=Path,
        required=True,
        metavar="MODEL.nemo",
        help=f"a Conformer-CTC saved by NVIDIA NeMo, such as {EXAMPLE}",
    )
    parser.add_argument(
        "--padding",
        choices=("old", "new"),
        default="old",
        help="the ends of the recording as NeMo treated them before 2.5 (old, the default), or since (new)",
    )


def run(args: argparse.Namespace) -> int:
    """Print the text and return 0; what is wrong with recording or model is one sentence on stderr, and 2."""
    from course_lib.speech import audio, decoding, nemo

    try:
        samples, rate = audio.read(args.file)
        print(decoding.transcribe(nemo.load_nemo(args.model, args.padding), samples, rate))
    except ValueError as problem:
        print(f"transcribe: {problem}", file=sys.stderr)
        return 2
    return 0
