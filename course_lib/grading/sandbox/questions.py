"""What an answer asks of an oracle during a call, answered on the safe side.

The answer has a number in the place of the key: looking at it tells nothing. A question is numbers for the
helper's arguments; what the helper says goes back, or what is wrong with the question. Whoever asks without
end is stopped.
"""

from __future__ import annotations

import inspect
import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from course_lib.grading.runner import InProcess, Outcome, fault_of, quiet
from course_lib.grading.sandbox.process import Stopped
from course_lib.grading.task import Code, Oracle

MOST_QUESTIONS = 10_000  # of a call
MOST_WORK, MOST_WORK_OF_A_CALL = 2**22, 2**28  # numbers in a question, and in all


class Questions:
    """Those of one call: its `key` stands for what is hidden, and for nothing in any other call."""

    def __init__(self, oracle: Oracle, hidden: Any) -> None:
        self.key = secrets.randbelow(2**52)
        self._oracle, self._hidden = oracle, hidden
        self._number = self._work = 0

    def answer(self, asked: Any) -> dict[str, Any]:
        """Return what the helper says, or what is wrong; Stopped if that was one question too many."""
        name = self._oracle.helper
        self._number += 1
        if self._number > MOST_QUESTIONS or self._work > MOST_WORK_OF_A_CALL:
            raise Stopped(
                "QuestionLimit",
                f"it asked {name} {self._number:,} times in one call, for {self._work:,} numbers: "
                "fewer or smaller experiments tell as much.",
            )
        try:
            with quiet():
                return {"value": self._value(asked["args"], asked["words"])}
        except Exception as error:
            fault = fault_of(error)
            return {"kind": fault.kind, "message": fault.message}

    def _value(self, args: tuple, words: dict[str, Any]) -> Any:
        oracle = self._oracle
        given = inspect.signature(oracle.answer).bind(*args, **words).arguments
        if given.pop(oracle.key) != self.key:
            raise ValueError(f"{oracle.helper} was not handed the {oracle.key} of this call")
        numbers = {name: np.asarray(one, np.float64) for name, one in given.items()}
        if any(one.ndim > 2 for one in numbers.values()):
            raise ValueError(f"{oracle.helper} takes matrices")
        work = oracle.work(**numbers)
        if work > MOST_WORK:
            raise ValueError(
                f"{oracle.helper} was asked for {work:,} numbers at once, and {MOST_WORK:,} are the most"
            )
        self._work += work
        try:
            return oracle.answer(**numbers, **{oracle.key: self._hidden})
        except Exception:  # whose words could tell the key
            raise ValueError(f"{oracle.helper} cannot answer that") from None


class AskingInProcess(InProcess):
    """Calls the answer to a task with an oracle in this process; what is hidden stays hidden."""

    def __init__(self, answer: Callable | Code, oracle: Oracle, lines: Sequence[int] = ()) -> None:
        super().__init__(answer, lines=lines)
        self._oracle = oracle

    def call(self, args: tuple) -> Outcome:
        """Call the answer with a number in the place of the key, and answer what it asks."""
        self._questions = Questions(self._oracle, args[0])
        outcome = super().call((self._questions.key, *args[1:]))
        return replace(outcome, args_after=(args[0], *outcome.args_after[1:]))

    def _value(self, args: tuple) -> Any:
        self.function.__globals__[self._oracle.helper] = self._helper
        return super()._value(args)

    def _helper(self, *args: Any, **words: Any) -> Any:
        said = self._questions.answer({"args": args, "words": words})
        if "value" not in said:
            raise ValueError(said["message"])
        return said["value"]
