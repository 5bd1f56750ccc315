"""`python -m course_lib COMMAND`: the course's command line; each command is loaded when it is called."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

#: command -> (module in course_lib.commands, what it does)
COMMANDS = {
    "lab": ("lab", "open the course in JupyterLab; all options go to JupyterLab"),
    "doctor": ("doctor", "is everything ready? Says what is missing and how to mend it"),
    "bench": ("bench", "measure rungs of the ladder on this machine"),
    "record": ("record", "measure the GPU rungs or the speech encoder, for other computers"),
    "search": ("search", "find the fastest kernel and tile for an FP8 product on a Hopper GPU"),
    "format": ("format_notebooks", "bring notebooks into the course's form"),
    "readme": ("readme", "bring the README's table and picture of the ladder up to date"),
    "exercises": ("exercises", "generate exercises/ from solutions/"),
    "grade": ("grade", "grade a class: a folder or zip of submissions"),
    "transcribe": ("transcribe", "write down what a speech model hears in a recording"),
}
PASSING_ON = "lab"  # it takes whatever follows it as it stands


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that ``arguments`` name and return the exit code."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    name = arguments[0] if arguments else ""
    if name == PASSING_ON:
        return _module(name).run(arguments[1:])
    parser = argparse.ArgumentParser(prog="python -m course_lib", description="Nine Circles of Matmul.")
    choices = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command, (_, summary) in COMMANDS.items():
        subparser = choices.add_parser(command, help=summary, description=summary)
        if command == name:
            _module(command).add_arguments(subparser)
    args = parser.parse_args(arguments)
    return _module(args.command).run(args) or 0


def _module(command: str):
    return importlib.import_module(f"course_lib.commands.{COMMANDS[command][0]}")


def guarded(arguments: Sequence[str] | None = None) -> int:
    """Run ``main`` so that Ctrl-C and a closed pipe (`| head`) end it quietly."""
    try:
        code = main(arguments)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Python would flush stdout once more at exit and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


if __name__ == "__main__":
    sys.exit(guarded())
