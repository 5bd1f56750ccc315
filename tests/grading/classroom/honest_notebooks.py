"""Reading honest_notebooks.txt: notebooks as honest learners write them.

Each begins with `=== what it shows | argument to call f with | what must not be in the slice`; `---` stands
between two cells.
"""

import ast
from pathlib import Path


def honest_notebooks() -> dict[str, tuple[tuple[str, ...], object, str]]:
    """Return for each name the cells, the argument, and what must not be in the slice."""
    found = {}
    text = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
    for part in f"\n{text}".split("\n=== ")[1:]:
        head, _, text = part.partition("\n")
        name, argument, left_out = (word.strip() for word in head.split("|"))
        cells = text.strip("\n").split("\n---\n")
        found[name] = (tuple(cells), ast.literal_eval(argument), left_out)
    return found
