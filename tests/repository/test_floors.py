"""Imports go down the house only, and its door opens at once."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
from pace import slowness

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "course_lib"

FLOORS = (
    {"arguments"},
    {"bootstrap", "environment", "theme", "measure", "notebook_form"},
    {"simulators"},
    {"circles", "speech", "fp8", "training", "distributed"},
    {"ladder"},
    {"batched_ladder"},
    {"grading", "views"},
    {"commands", "__main__"},
)
FLOOR = {room: number for number, rooms in enumerate(FLOORS, start=1) for room in rooms}
#: Inside one floor a room is entered from itself only; colours and style are for everybody on the ground.
#: The page of passed tasks is a view of what grading recorded; grading itself draws with no view.
ALLOWED = {("measure", "theme"), ("bootstrap", "environment"), ("__main__", "commands"), ("views", "grading")}

HEAVY = ("torch", "numba", "matplotlib", "ipywidgets", "IPython", "pandas", "jupyterlab")
LIGHT = ("", ".ladder", ".views", ".grading", ".measure.timing", ".measure.machine", ".theme", ".__main__")
LIMIT_S = 0.3


def room_of(path: Path) -> str:
    return path.relative_to(LIBRARY).parts[0].removesuffix(".py")


def imported_rooms(path: Path, text: str | None = None) -> list[tuple[int, str]]:
    """Return (line, room) for every import of the course's own modules in ``path``, wherever it stands."""
    tree = ast.parse(path.read_text(encoding="utf-8") if text is None else text)
    package = ["course_lib", *path.relative_to(LIBRARY).parts[:-1]]
    found = []
    for node in ast.walk(tree):
        for name in _modules_named(node, package):
            parts = name.split(".")
            if parts[0] == "course_lib" and len(parts) > 1:
                found.append((node.lineno, parts[1]))
    return found


def _modules_named(node: ast.AST, package: list[str]) -> list[str]:
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


def may_import(room: str, other: str) -> bool:
    return room == other or FLOOR[other] < FLOOR[room] or (room, other) in ALLOWED


MODULES = sorted(path for path in LIBRARY.rglob("*.py") if path != LIBRARY / "__init__.py")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(LIBRARY)))
def test_imports_go_down(path):
    room = room_of(path)
    assert room in FLOOR, f"give the room {room!r} a floor"
    for line, other in imported_rooms(path):
        assert other in FLOOR, f"{path.name}:{line} imports course_lib.{other}, which has no floor"
        assert may_import(room, other), f"{path.name}:{line}: {room} must not import from {other}"


def test_the_search_sees_every_way_to_import():
    text = """
import course_lib.ladder
from course_lib import views, theme
from ..grading import task
from . import store
def later():
    from course_lib.simulators.cache import Cache
    importlib.import_module("course_lib.fp8.kernel")
"""
    found = [room for _, room in imported_rooms(LIBRARY / "measure" / "timing.py", text)]
    assert sorted(found) == ["fp8", "grading", "ladder", "measure", "simulators", "theme", "views"]
    assert not may_import("measure", "ladder") and not may_import("grading", "views")
    assert may_import("views", "ladder") and may_import("measure", "theme")


def loaded_by(module: str) -> tuple[float, list[str]]:
    """Return how long ``import module`` takes in a fresh Python, and the heavy packages it brings in."""
    code = (
        "import json, sys, time; start = time.perf_counter(); "
        f"__import__({module!r}); took = time.perf_counter() - start; "
        f"print(json.dumps([took, [name for name in {HEAVY!r} if name in sys.modules]]))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    seconds, heavy = json.loads(done.stdout)
    return seconds, heavy


@pytest.mark.parametrize("module", [f"course_lib{name}" for name in LIGHT])
def test_import_is_light(module):
    assert loaded_by(module)[1] == []


def test_the_door_opens_at_once():
    assert min(loaded_by("course_lib")[0] for _ in range(3)) < LIMIT_S * slowness()


def test_heavy_packages_would_be_noticed():
    assert loaded_by("matplotlib")[1] == ["matplotlib"]
