"""Rules about the heart of one task, read in the text of an answer: where a lock is held …

What an answer may be written in at all says `language`, the first rule of every task. A rule needs the text
and the entry's name, nothing that runs; one that cannot read the entry does not pass it.
"""

from __future__ import annotations

import ast
from typing import Protocol

from course_lib.grading.program import Program, read_program, returns_something


class Rule(Protocol):
    """A condition on the source."""

    def judge(self, source: str, entry: str) -> str | None:
        """Return None if the rule is kept, else one sentence that names the fault."""


class EntryRule:
    """A rule on the entry: one that cannot be read does not pass; without a result, running says more."""

    def judge(self, source: str, entry: str) -> str | None:
        """Return None if the rule is kept, else one sentence that names the fault."""
        program = read_program(source, entry)
        function = program.function()
        if function is None:
            return f"{entry} cannot be read: write it with `def {entry}(…)`, at the top of a cell."
        return self.fault(program, function) if returns_something(function) else None

    def fault(self, program: Program, function: ast.FunctionDef) -> str | None:
        """Return a sentence that names the fault of an entry that can be read, None if there is none."""
        raise NotImplementedError
