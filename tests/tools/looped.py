"""One test for many cases: they are gone through in a loop, and a failure names the case it came from.

    @looped("stride, wavefronts", [(0, 1), (1, 1), (2, 2)])
    def test_wavefronts_are_the_bank_conflicts_of_a_stride(stride, wavefronts): ...

Unlike `pytest.mark.parametrize` it makes one collected test, which stops at the first case that fails.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any


def looped(names: str, cases: Iterable[Any] | Callable[[], Iterable[Any]]) -> Callable[[Callable], Callable]:
    """Call the decorated test for each case; with several names a case is a tuple of values.

    `cases` may be a function that gives them: then nothing it needs is imported before the test runs.
    """
    parameters = [name.strip() for name in names.split(",")]

    def decorate(test: Callable) -> Callable:
        @functools.wraps(test)
        def over_all(*args: Any, **fixtures: Any) -> None:
            for case in cases() if callable(cases) else cases:
                values = case if len(parameters) > 1 else (case,)
                try:
                    test(*args, **dict(zip(parameters, values, strict=True)), **fixtures)
                except Exception as problem:
                    problem.add_note(f"The case: {', '.join(map(_named, parameters, values))}")
                    raise

        signature = inspect.signature(test)
        others = [value for name, value in signature.parameters.items() if name not in parameters]
        over_all.__signature__ = signature.replace(parameters=others)
        return over_all

    return decorate


def _named(name: str, value: Any) -> str:
    return f"{name} = {getattr(value, 'name', None) or repr(value)}"
