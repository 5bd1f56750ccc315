"""`python -m course_lib lab`: JupyterLab on the first chapter, with all links between the folders working."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
START = "notebooks/00_start_here.ipynb"


def options(project: Path = PROJECT) -> list[str]:
    """Return what JupyterLab is started with, before the user's own options (later ones win)."""
    fixed = [
        f"--ServerApp.root_dir={project}",  # not notebooks/, or no chapter could link to exercises/
        f"--LabApp.default_url=/lab/tree/{START}",
        "--LabApp.news_url=None",  # no pop-up about Jupyter news on the first screen
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]
    as_root = hasattr(os, "geteuid") and os.geteuid() == 0
    return [*fixed, "--allow-root"] if as_root else fixed


def run(arguments: Sequence[str]) -> int:
    """Start JupyterLab in this process and stay until it ends."""
    try:
        from jupyterlab.labapp import main
    except ImportError as problem:
        print(
            f"JupyterLab cannot be imported ({problem}); install the course with its parts: "
            'pip install -c constraints.txt -e ".[lab,dev]"',
            file=sys.stderr,
        )
        return 1
    # nbgrader calls programs of this environment by name, also where nobody activated it.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    os.chdir(PROJECT)  # nbgrader looks for nbgrader_config.py here
    main(argv=[*options(), *arguments])
    return 0
