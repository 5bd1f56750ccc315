"""Nine Circles of Matmul: the library the chapters import.

Importing it is cheap: the rooms below are loaded when first touched, and none of torch, numba or matplotlib
before something needs them.
"""

from __future__ import annotations

import importlib
from types import ModuleType

__version__ = "0.1.0"
__all__ = ["circles", "grading", "ladder", "measure", "speech", "theme", "views"]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
