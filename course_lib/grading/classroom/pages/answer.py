"""An answer's source as HTML: highlighted, with line numbers, and cut where nobody reads on."""

from __future__ import annotations

from typing import Any

from course_lib.grading.classroom.pages.text import escape, plural, visible

CHARACTERS, LINES = 12_000, 400


def answer_html(source: Any, characters: int = CHARACTERS, lines: int = LINES) -> str:
    """Return the source as a code block, and a sentence if only its beginning is shown."""
    source = str(source)
    if not source.strip():
        return '<p class="soft">There is no answer in the notebook.</p>'
    beginning = source[:characters].replace("\r\n", "\n").split("\n")[:lines]
    text = "\n".join(beginning).rstrip("\n")
    missing = len(source.rstrip()) - len(text)
    whole = "" if missing <= 0 else _cut_sentence(len(beginning), len(text), len(source))
    return f'<pre class="code">{_lines(visible(text))}</pre>{whole}'


def _cut_sentence(lines: int, shown: int, all_of_it: int) -> str:
    return (
        f'<p class="soft">Cut here: this is the beginning ({plural(lines, "line")}, {shown} of {all_of_it} '
        "characters). All of it was judged.</p>"
    )


def _lines(text: str) -> str:
    """Return one element a line, so that the style numbers them and a copy leaves the numbers out."""
    return "".join(f"<span>{line}\n</span>" for line in _highlighted(text).split("\n"))


def _highlighted(text: str) -> str:
    """Return the text as HTML in which no element goes over a line end."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    lexer = PythonLexer(stripnl=False, ensurenl=False)
    return highlight(text, lexer, HtmlFormatter(nowrap=True)).removesuffix("\n") or escape(text)
