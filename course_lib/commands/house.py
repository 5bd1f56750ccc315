"""The course's rooms and floors, who imports whom, and the picture of that in docs/architecture.md.

The floors are a rule that a test keeps (tests/repository/test_floors.py); the arrows are read from the code.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

LIBRARY = Path(__file__).resolve().parents[1]
PACKAGE = LIBRARY.name

#: Rooms by floor, the ground first, and what is in them; a room imports from the floors below it only.
FLOORS: tuple[dict[str, str], ...] = (
    {
        "arguments": "checks of what functions are given",
        "bootstrap": "makes .venv",
        "theme": "colours and words",
        "whole_files": "written whole or not at all",
    },
    {
        "measure": "this machine, clocks, rooflines, what is kept",
        "notebook_form": "how notebooks are stored",
    },
    {"simulators": "caches, threads, a GPU, counted by the letter"},
    {
        "circles": "the rungs: kernels of matmul",
        "speech": "the talk's encoder",
        "fp8": "eight-bit products for Hopper",
        "distributed": "products on many ranks, and what a network makes of them",
    },
    {"training": "gradients, layers and stages on many ranks"},
    {"ladder": "the rungs, measured and ranked"},
    {"batched_ladder": "the same for batches", "distributed_ladder": "the same for many ranks"},
    {"grading": "tasks, rules, sandbox, judge, classes"},
    {"views": "pictures and widgets"},
    {"commands": "python -m course_lib ..."},
    {"__main__": "the command line"},
)
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}


@cache
def modules() -> dict[str, Path]:
    """Return every module of the course by its dotted name, packages under their own name."""
    return {_dotted(path): path for path in sorted(LIBRARY.rglob("*.py"))}


def _dotted(path: Path) -> str:
    parts = path.relative_to(LIBRARY.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imported(path: Path) -> tuple[tuple[int, str], ...]:
    """Return (line, name) for each import of the course's own names in a file, wherever it stands."""
    package = [PACKAGE, *path.relative_to(LIBRARY).parts[:-1]]
    return tuple(
        (node.lineno, name)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in _names(node, package)
        if name.partition(".")[0] == PACKAGE and "." in name
    )


def _names(node: ast.AST, package: list[str]) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = package[: len(package) - node.level + 1] if node.level else []
        module = ".".join([*base, *([node.module] if node.module else [])])
        return [f"{module}.{alias.name}" for alias in node.names]
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module") and node.args:
        value = node.args[0]
        return [value.value] if isinstance(value, ast.Constant) and isinstance(value.value, str) else []
    return []


@cache
def graph() -> dict[str, set[str]]:
    """Return module -> the modules that it imports."""
    arrows = {}
    for module, path in modules().items():
        arrows[module] = {_module_of(name) for _, name in imported(path)} - {module, PACKAGE}
    return arrows


def _module_of(name: str) -> str:
    while name not in modules():
        name = name.rpartition(".")[0]
    return name


def _reached_from(module: str, arrows: dict[str, set[str]]) -> set[str]:
    reached, waiting = set(), list(arrows[module])
    while waiting:
        other = waiting.pop()
        if other not in reached:
            reached.add(other)
            waiting += arrows[other]
    return reached


def room_of(module: str) -> str:
    """Return the room of a module: "grading" for course_lib.grading.task."""
    return module.split(".")[1]


# -- the picture -------------------------------------------------------------------------------------------


def picture() -> str:
    """Return rooms and imports as a Mermaid diagram, without arrows to the ground or that others imply."""
    arrows = defaultdict(set)
    for module in modules():
        if module not in (PACKAGE, f"{PACKAGE}.__main__"):  # they open rooms by name
            room = room_of(module)
            others = {room_of(target) for target in graph()[module]} - {room}
            arrows[room] |= {other for other in others if FLOOR[other]}  # the ground is everybody's
    words = {room: text for rooms in FLOORS for room, text in rooms.items()}
    drawn = [f'    {room}["{room}: {words[room]}"]' for room in sorted(arrows, key=_from_the_top)]
    for room in sorted(arrows, key=_from_the_top):
        for target in sorted(arrows[room], key=_from_the_top):
            if not any(target in _reached_from(other, arrows) for other in arrows[room] - {target}):
                drawn.append(f"    {room} --> {target}")
    return "\n".join(["```mermaid", "flowchart TB", *drawn, "```"])


def _from_the_top(room: str) -> tuple[int, str]:
    return -FLOOR[room], room
