"""Imports go down the house only, never round in circles, and its door opens at once."""

from __future__ import annotations

import ast
import graphlib
import json
import subprocess
import sys

import pytest
from pace import slowness

from course_lib.commands import house, readme

HEAVY = ("torch", "numba", "matplotlib", "pydantic", "ipywidgets", "IPython", "pandas", "jupyterlab")
LIGHT = ("", ".ladder", ".views", ".grading", ".measure.timing", ".measure.machine", ".theme", ".__main__")
LIMIT_S = 0.3


def may_import(room: str, other: str) -> bool:
    return room == other or house.FLOOR[other] < house.FLOOR[room]


def test_imports_go_down():
    assert len(house.modules()) > 100
    wrong = []
    for module, path in house.modules().items():
        if module == house.PACKAGE:
            continue
        room = house.room_of(module)
        assert room in house.FLOOR, f"give the room {room!r} a floor (course_lib/commands/house.py)"
        for line, name in house.imported(path):
            other = house.room_of(name)
            assert other in house.FLOOR, f"{path.name}:{line} imports {name}, which has no floor"
            if not may_import(room, other):
                wrong.append(f"{path.name}:{line}: {room} must not import from {other}")
    assert wrong == []


def test_no_module_imports_itself_by_way_of_others():
    graphlib.TopologicalSorter(house.graph()).prepare()  # CycleError names those that do


def test_no_two_public_classes_share_a_name():
    """Who searches for a name finds one class."""
    rooms: dict[str, list[str]] = {}
    for module, path in house.modules().items():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                rooms.setdefault(node.name, []).append(module)
    assert len(rooms) > 200
    assert {name: modules for name, modules in rooms.items() if len(modules) > 1} == {}


def test_the_picture_shows_the_house():
    text = readme.ARCHITECTURE.read_text(encoding="utf-8")
    assert readme.replaced(text, "rooms", house.picture()) == text, "run 'make format'"


def loaded_by(*modules: str) -> tuple[float, list[str]]:
    """Return how long it takes to import modules in a fresh Python, and the heavy packages they bring in."""
    code = (
        "import json, sys, time; start = time.perf_counter(); "
        f"[__import__(module) for module in {modules!r}]; took = time.perf_counter() - start; "
        f"print(json.dumps([took, [name for name in {HEAVY!r} if name in sys.modules]]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=house.LIBRARY.parent, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    seconds, heavy = json.loads(done.stdout)
    return seconds, heavy


def test_imports_are_light():
    """All at once; only a failure is looked at one by one."""
    names = [f"course_lib{name}" for name in LIGHT]
    if loaded_by(*names)[1]:
        assert {name: loaded_by(name)[1] for name in names} == {name: [] for name in names}
    assert loaded_by("matplotlib")[1] == ["matplotlib"], "a heavy one would be noticed"


@pytest.mark.timing
def test_the_door_opens_at_once():
    assert min(loaded_by("course_lib")[0] for _ in range(3)) < LIMIT_S * slowness()
