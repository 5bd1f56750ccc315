"""Reading the assignments' notebooks, for the grading tests."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ASSIGNMENTS = {
    "00": "00_start_here",
    "01": "01_python_loops",
    "02": "02_compiled_loops",
    "03": "03_strassen",
    "04": "04_cache_and_simd",
    "05": "05_threads",
    "06": "06_gpu",
    "07": "07_batched_conformer",
    "08": "08_distributed",
    "10": "10_fp8_hopper_gemm",
    "C": "C_distributed_training",
}
MOST_S = 60.0  # of a call: the first one compiles, and other tests may be running
#: What the assignment on GPUs hands out above each kernel.
GPU_HEAD = "import math\n\nfrom numba import cuda, float32\n\n\n"


def solution_path(chapter: str) -> Path:
    name = ASSIGNMENTS[chapter]
    return ROOT / "solutions" / name / f"{name}.ipynb"


def read_notebook(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def code_cell(code: str, id: str) -> dict:
    """Return a code cell."""
    plain = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": 1}
    return {**plain, "id": id, "source": code}


def notebook_of(*texts: str) -> bytes:
    """Return the notebook of these code cells, as it is handed in."""
    cells = [code_cell(text, f"cell-{number}") for number, text in enumerate(texts)]
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}).encode()


def text_of(cell: dict) -> str:
    return "".join(cell["source"])


def grader_of(cell: dict) -> dict:
    return cell["metadata"].get("nbgrader", {})


def is_given(cell: dict) -> bool:
    """Whether an answer may use what a cell hands out."""
    return cell["id"] == "setup" or cell["id"].endswith("-given")


def answers_of(notebook: dict) -> str:
    """Return all answers of an assignment as one text, imports first."""
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    kept = [cell for cell in code if grader_of(cell).get("solution") or is_given(cell)]
    return "\n\n\n".join(map(text_of, kept)) + "\n"


def execute(path: Path, folder: Path, leave_out: str = "-none") -> dict:
    """Run a notebook in a fresh kernel in `folder`, errors allowed; return it with its outputs.

    Cells whose id ends in `leave_out` are not run.
    """
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    notebook.cells = [cell for cell in notebook.cells if not cell.get("id", "").endswith(leave_out)]
    client = NotebookClient(
        notebook,
        timeout=120,
        kernel_name="python3",
        allow_errors=True,
        resources={"metadata": {"path": folder}},
    )
    client.execute()
    return notebook


def verdict(task, text: str, seed: int = 9, speedup: float = 100.0, load=None):
    """Return the report on an answer that runs in this process, by a clock that always says the same."""
    from course_lib.grading import sources
    from course_lib.grading.judge import judge
    from course_lib.grading.runner import InProcess, Timing
    from course_lib.grading.sandbox.questions import AskingInProcess

    code = task.code(text)
    function = (load or sources.load)(code.text, code.entry)
    runner = AskingInProcess(function, task.oracle) if task.oracle else InProcess(function, MOST_S)
    runner.time = lambda *_: Timing(speedup, speedup * 0.97, speedup * 1.03, 1e-3, 1e-3 * speedup)
    return judge(task, runner, text, seed)


def points_by_task(executed: dict) -> dict[str, float]:
    """Return what nbgrader would read from each grade cell: {"01-rows": 3.0, …}."""
    from nbgrader.utils import determine_grade

    grades = [cell for cell in executed["cells"] if grader_of(cell).get("grade")]
    return {cell["id"].removesuffix("-points"): determine_grade(cell)[0] for cell in grades}


def noise(executed: dict) -> list[str]:
    """Return every error and everything on stderr in an executed notebook."""
    found = []
    for cell in executed["cells"]:
        for output in cell.get("outputs", []):
            if output["output_type"] == "error":
                found.append(f"{cell['id']}: {output['ename']}: {output['evalue']}")
            elif output.get("name") == "stderr":
                found.append(f"{cell['id']}: stderr: {output['text']}")
    return found


def nbgraders_environment() -> dict[str, str]:
    """Return the environment of nbgrader's processes; it looks for alembic beside the Python that runs it."""
    programs = (str(Path(sys.executable).parent), os.environ.get("PATH", ""))
    modules = (str(ROOT / "tests" / "grading" / "no_grammars"), os.environ.get("PYTHONPATH", ""))
    places = {"PATH": programs, "PYTHONPATH": modules}
    return {**os.environ, **{name: os.pathsep.join(filter(None, one)) for name, one in places.items()}}


def shows_in_one_of(tries: int, holds: Callable[[], bool]) -> bool:
    """Whether one of so many measurements shows it: noise disturbs some of them, a fault disturbs all."""
    return any(holds() for _ in range(tries))
