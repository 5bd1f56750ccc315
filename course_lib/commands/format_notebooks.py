"""`python -m course_lib format`: bring notebooks into the course's form, or only say which are not in it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from course_lib import notebook_form

PROJECT = Path(__file__).resolve().parents[2]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options to ``parser``."""
    parser.add_argument(
        "paths",
        nargs="*",
        type=Path,
        help="notebooks or folders of notebooks (default: notebooks/ and solutions/)",
    )
    parser.add_argument(
        "--check", action="store_true", help="change nothing; exit 1 if a notebook would change"
    )


def run(args: argparse.Namespace) -> int:
    """Bring the chosen notebooks into form; return 0 when all is well."""
    chosen = args.paths or [path for path in (PROJECT / "notebooks", PROJECT / "solutions") if path.is_dir()]
    try:
        notebooks = list(notebook_form.find_notebooks(chosen))
        outcomes = [_handle(path, args.check) for path in notebooks]
    except OSError as problem:
        print(f"{problem.filename}: {problem.strerror}; nothing further was done.", file=sys.stderr)
        return 1
    changed, failed = outcomes.count("changed"), outcomes.count("failed")
    verb = "would change" if args.check else "changed"
    print(f"{len(notebooks)} notebooks looked at, {changed} {verb}, {failed} left alone.")
    return 1 if failed or (args.check and changed) else 0


def _handle(path: Path, check: bool) -> str:
    if (PROJECT / "exercises") in path.resolve().parents:
        print(f"{path} is generated: change it in solutions/ and run 'make exercises'.", file=sys.stderr)
        return "failed"
    try:
        changed = not notebook_form.is_canonical(path) if check else notebook_form.tidy(path)
    except notebook_form.DamagedNotebook as problem:
        print(problem, file=sys.stderr)
        return "failed"
    if changed:
        print(f"{'would change' if check else 'changed'} {path}")
    return "changed" if changed else "same"
