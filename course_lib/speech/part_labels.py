"""Labels that let the profiler see where each part of a network begins and ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch.nn import Module

PART = "part: "


@contextmanager
def labelled(parts: Iterable[tuple[str, Module]]) -> Iterator[None]:
    """Have every forward of these (name, module) recorded as an event called PART + name."""
    from torch.profiler import record_function

    running, hooks = [], []

    def label(module: Module, name: str) -> None:
        def begin(*_: Any) -> None:
            running.append(record_function(PART + name))
            running[-1].__enter__()

        def end(*_: Any) -> None:
            running.pop().__exit__(None, None, None)

        hooks.extend((module.register_forward_pre_hook(begin), module.register_forward_hook(end)))

    for name, module in parts:
        label(module, name)
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
        while running:  # a forward that raised has ended none of them
            running.pop().__exit__(None, None, None)


def label_of(event: Any) -> str | None:
    """Return the name of the part that the event is the label of, None for any other event."""
    return event.name.removeprefix(PART) if event.name.startswith(PART) else None


def part_of(event: Any) -> str | None:
    """Return the innermost part that was running when the event began; for a label, the part around it."""
    around = event.cpu_parent
    while around is not None and not around.name.startswith(PART):
        around = around.cpu_parent
    return around and label_of(around)
