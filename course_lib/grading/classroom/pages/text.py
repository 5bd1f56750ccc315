"""Text that students wrote, made fit to be shown: nothing in it acts, hides, reorders or never ends.

Names, answers and messages are hostile until proven otherwise. `visible` turns each character that has no
look of its own – controls, bidi and zero-width marks, lone surrogates – into a label that can be seen. What
could act as HTML the templates escape.
"""

from __future__ import annotations

import unicodedata
from typing import Any

SHORT, LONG = 120, 2_000  # characters of a name, of a line in a report
LINES = 60  # of a report, and entries of any other list in it
HIDDEN_KINDS = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
MARKS_IN_A_ROW = 3  # no script stacks more; a tower of them would cover the lines above


class _Visible(dict):
    """str.translate's table, filled as characters are met: what to show for each."""

    def __missing__(self, point: int) -> str:
        character = chr(point)
        noncharacter = point & 0xFFFE == 0xFFFE or 0xFDD0 <= point <= 0xFDEF
        if character in "\n\t":
            shown = character
        elif point < 0x20:
            shown = chr(0x2400 + point)  # ␀ … ␟
        elif noncharacter or unicodedata.category(character) in HIDDEN_KINDS:
            shown = code_point(character)
        else:
            shown = character
        self[point] = shown
        return shown


_TABLE = _Visible()


def code_point(character: str) -> str:
    """Return the label of a character that has no look: "⟨U+202E⟩"."""
    return f"⟨U+{ord(character):04X}⟩"


def visible(text: Any) -> str:
    """Return the text with every character that could hide or act replaced by a label; line ends are \\n."""
    whole = str(text).replace("\r\n", "\n").translate(_TABLE)
    return whole if whole.isascii() else _flattened(whole)


def _flattened(text: str) -> str:
    """Return the text with towers of combining marks laid out as labels."""
    parts, height = [], 0
    for character in text:
        height = height + 1 if unicodedata.category(character) in ("Mn", "Me") else 0
        parts.append(code_point(character) if height > MARKS_IN_A_ROW else character)
    return "".join(parts)


def cut(text: Any, limit: int) -> str:
    """Return visible text of at most `limit` characters of the original; what is missing is said."""
    text = str(text)
    missing = len(text) - limit
    return visible(text) if missing <= 0 else f"{visible(text[:limit])} … ({missing} more characters)"


def name(text: Any, limit: int = SHORT) -> str:
    """Return a name, a title or a reason as one visible line."""
    return cut(text, limit).replace("\n", "␊").replace("\t", "␉")


def harmless(report: Any) -> Any:
    """Return a report's plain data with every string made visible and cut, and at most LINES lines."""
    if isinstance(report, str):
        return cut(report, LONG)
    if isinstance(report, dict):  # "errors" is a map of numbers: it keeps its shape
        return {key: value if key == "errors" else harmless(value) for key, value in report.items()}
    if isinstance(report, list | tuple):
        return [harmless(value) for value in report[:LINES]]
    return report


def number(value: float) -> str:
    """Return points or a share as a person writes it: no digits that only rounding made."""
    return f"{round(float(value), 3):g}"


def spaced(number: int) -> str:
    """Return a whole number in groups of three: "12 345"."""
    return f"{number:,}".replace(",", " ")


def percent(share: float) -> str:
    """Return "53 %", held together by a space that does not break."""
    return f"{100 * share:.0f}\N{NO-BREAK SPACE}%"


def plural(count: int, one: str, many: str = "") -> str:
    """Return "1 student", "2 students"."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def duration(seconds: float) -> str:
    """Return a length of time in words: "42 s", "3 min 20 s", "1 h 05 min"."""
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"
