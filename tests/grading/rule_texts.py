"""The rows of rule_texts.txt: ways around what answers may be, and what honest learners write."""

import re
from pathlib import Path

_FILE = Path(__file__).with_name("rule_texts.txt").read_text(encoding="utf-8")
_BLOCKS = re.findall(r"^==== (\w+) ([^:\n]+): (.*?)(?: >> (.*))?\n((?:(?!====).*\n)+)", _FILE, re.MULTILINE)
assert len(_BLOCKS) == _FILE.count("\n====")
EACH_LINE = "a line each"
#: (refused or fine, rules, name, what a refusal says, text); a line that is no whole text is a body of f.
ROWS = [block for block in _BLOCKS if block[2] != EACH_LINE]
for _verdict, _rules, _name, _, _lines in _BLOCKS:
    for _line in _lines.splitlines() if _name == EACH_LINE else ():
        _text, _, _words = _line.partition(" >> ")
        _whole = "\n".join(part.removeprefix(" ") for part in _text.removeprefix("| ").split(" ⏎"))
        _body = "def f(A, B):\n    " + _whole.replace("\n", "\n    ")
        ROWS.append((_verdict, _rules, _line, _words, f"{_whole if _text.startswith('| ') else _body}\n"))
