"""The rows of rule_texts.txt: ways around the structural rules, and what honest learners write."""

import re
from pathlib import Path

_FILE = Path(__file__).with_name("rule_texts.txt").read_text(encoding="utf-8")
#: (refused or fine, rules, name, what a refusal says, text)
ROWS = re.findall(r"^==== (\w+) ([^:]+): (.*?)(?: >> (.*))?\n((?:(?!====).*\n)+)", _FILE, re.MULTILINE)
assert len(ROWS) == _FILE.count("\n====")


def text(rules: str, name: str) -> str:
    """Return one text."""
    return next(row[4] for row in ROWS if row[1:3] == (rules, name))
