"""`python -m course_lib lab`: JupyterLab on the first chapter, with all links between the folders working."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
START = "notebooks/00_start_here.ipynb"
#: Settings of JupyterLab for this course: no question about Jupyter news on the first screen.
SETTINGS = Path(__file__).resolve().parent / "jupyter"


def options(own: Sequence[str] = ()) -> list[str]:
    """Return what JupyterLab is started with beside the user's `own` options, which win over ours.

    (JupyterLab refuses an option that is given twice, so ours stay away.)
    """
    given = {option.partition("=")[0] for option in own}
    fixed = [
        f"--ServerApp.root_dir={PROJECT}",  # not notebooks/, or no chapter could link to exercises/
        f"--LabApp.default_url=/lab/tree/{START}",
    ]
    as_root = hasattr(os, "geteuid") and os.geteuid() == 0
    ours = [*fixed, "--allow-root"] if as_root else fixed
    return [option for option in ours if option.partition("=")[0] not in given]


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
    _put_first("PATH", Path(sys.executable).parent)
    _put_first("JUPYTER_CONFIG_PATH", SETTINGS)
    os.chdir(PROJECT)  # nbgrader looks for nbgrader_config.py here
    main(argv=[*options(arguments), *arguments])
    return 0


def _put_first(variable: str, folder: Path) -> None:
    present = os.environ.get(variable)
    os.environ[variable] = os.pathsep.join([str(folder), *([present] if present else [])])
