"""One test for many cases: on a GPU each is short, and hundreds of them would crowd every collection."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any


def each(name: str, values: Iterable[Any]) -> Callable:
    """Run a test for all values of an argument, one after the other; a failure says which it was."""

    def decorated(test: Callable) -> Callable:
        def every(**others: Any) -> None:
            for value in values:
                print(f"with {name} = {value}", flush=True)  # should it never end
                try:
                    test(**others, **{name: value})
                except Exception as problem:
                    problem.add_note(f"with {name} = {value}")
                    raise

        signature = inspect.signature(test)
        fixtures = [parameter for parameter in signature.parameters.values() if parameter.name != name]
        every.__name__, every.__doc__ = test.__name__, test.__doc__
        every.__signature__ = signature.replace(parameters=fixtures)  # what pytest is to fill in
        return every

    return decorated
