"""What stands for a fault that is none, and reasons that several chapters give."""

from __future__ import annotations

from dataclasses import dataclass

#: Of counters, sizes and indices.
WHOLE_NUMBERS = (
    "A number here is whole and not below 0, so rounding it, taking away its sign or turning it into a whole "
    "number changes nothing."
)


@dataclass(frozen=True)
class Equivalent:
    """Faults of some tasks, by the operator and the change, that are none, and one sentence why."""

    tasks: tuple[str, ...]
    operator: str
    changes: tuple[str, ...]
    reason: str


def changes_from(before: str, *after: str) -> tuple[str, ...]:
    """Return the changes of one line into each of the others."""
    return tuple(f"{before} -> {one}" for one in after)
