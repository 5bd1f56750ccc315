"""An answer's source as HTML: highlighted, with line numbers, and cut where nobody reads on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from course_lib.grading.classroom.pages.text import plural, visible

CHARACTERS, LINES = 12_000, 400


def answer_html(
    source: Any, numbers: Sequence[int] = (), characters: int = CHARACTERS, lines: int = LINES
) -> str:
    """Return the source as a code block, and a sentence if only its beginning is shown.

    `numbers` are the lines' numbers in their cells, which reports speak of; 0 for a line without one.
    """
    source = str(source)
    if not source.strip():
        return '<p class="soft">There is no answer in the notebook.</p>'
    beginning = source[:characters].replace("\r\n", "\n").split("\n")[:lines]
    text = "\n".join(beginning).rstrip("\n")
    missing = len(source.rstrip()) - len(text)
    whole = "" if missing <= 0 else _cut_sentence(len(beginning), len(text), len(source))
    return f'<pre class="code">{_lines(visible(text), numbers)}</pre>{whole}'


def _cut_sentence(lines: int, shown: int, all_of_it: int) -> str:
    return (
        f'<p class="soft">Cut here: this is the beginning ({plural(lines, "line")}, {shown} of {all_of_it} '
        "characters). All of it was judged.</p>"
    )


def _lines(text: str, numbers: Sequence[int]) -> str:
    """Return one element a line with its number beside it, which a copy leaves out."""
    lines = _highlighted(text).split("\n")
    shown = [str(int(number) or "") for number in numbers[: len(lines)]]
    shown += [""] * (len(lines) - len(shown)) if shown else [str(n + 1) for n in range(len(lines))]
    pairs = zip(lines, shown, strict=True)
    return "".join(f'<span data-line="{number}">{line}\n</span>' for line, number in pairs)


def _highlighted(text: str) -> str:
    """Return the text as HTML in which no element goes over a line end."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    lexer = PythonLexer(stripnl=False, ensurenl=False)
    return highlight(text, lexer, HtmlFormatter(nowrap=True)).removesuffix("\n")
