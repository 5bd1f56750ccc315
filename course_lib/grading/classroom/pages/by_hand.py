"""What a person has decided in nbgrader's form grader: it counts more than the judge, on every page."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from course_lib.grading.report import PARTLY, RIGHT, WRONG


@dataclass(frozen=True)
class ByHand:
    """Points given to tasks by hand (task id -> points), and comments (task id, "" for no task -> words)."""

    points: dict[str, float] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)


def amended(verdict: dict[str, Any], by_hand: ByHand | None) -> dict[str, Any]:
    """Return the verdict with what a person has decided; what is scored by hand needs no look any more."""
    if by_hand is None:
        return verdict
    tasks = [_amended_task(task, by_hand) for task in verdict["tasks"]]
    everywhere = all(task["id"] in by_hand.points for task in tasks)
    return {
        **verdict,
        "tasks": tasks,
        "manual": [] if everywhere else verdict["manual"],
        "comment": by_hand.comments.get("", ""),
    }


def _amended_task(task: dict[str, Any], by_hand: ByHand) -> dict[str, Any]:
    task = {**task, "comment": by_hand.comments.get(task["id"], "")}
    points = by_hand.points.get(task["id"])
    if points is None:
        return task
    state = RIGHT if points >= task["max_points"] else PARTLY if points > 0 else WRONG
    return {**task, "points": points, "state": state, "manual": [], "judged_points": task["points"]}
