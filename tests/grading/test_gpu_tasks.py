"""Tasks of chapter 06: limits say what is traced, other right answers pass, no barrier can be left out."""

import re

import numpy as np
import pytest
from golden import corpus
from grading_tools import GPU_HEAD, answers_of, read_notebook, solution_path, text_of

from course_lib.grading import checkpoints, registry
from course_lib.grading.judge import generator
from course_lib.grading.launch import SharedRequests
from course_lib.grading.runner import clone
from course_lib.grading.sources import load
from course_lib.grading.task import source
from course_lib.grading.tasks.gpu import kernels, memory
from course_lib.simulators.gpu import occupancy, trace

pytestmark = pytest.mark.usefixtures("tracer_compiled")
TASKS = registry.tasks("06")
KERNELS = [task for task in TASKS if task.launch]
SEEDS = (9, 7, 12345)


def traced(task, text: str, args: tuple):
    """Return the trace of a launch of an answer, and the result's array afterwards."""
    args = clone(args)
    shape = task.launch.shape(args)
    found = trace(load(text, task.entry), shape.grid, shape.block, *args, progress=False)
    return found, args[-1]


def cases(task, seed: int = 9):
    return list(task.cases(generator(task, seed)))


def kernel(text: str) -> str:
    """Return a kernel below the imports that are handed out."""
    return GPU_HEAD + source(text)


@pytest.fixture(scope="module")
def cells() -> dict[str, str]:
    return {cell["id"]: text_of(cell) for cell in read_notebook(solution_path("06"))["cells"]}


@pytest.fixture(scope="module")
def solution() -> str:
    return answers_of(read_notebook(solution_path("06")))


def answer(task, cells) -> str:
    return kernel(cells[task.id.replace(".", "-") + "-answer"])


# --- the assignment ---


def test_the_text_states_the_launch_with_its_arguments(cells):
    for task in KERNELS:
        name = task.id.replace(".", "-")
        said = cells[f"{name}-launch"]
        args = cases(task)[0].args
        block = task.launch.block
        width = f"({', '.join(map(str, block))})" if len(block) > 1 else str(block[0])
        parameters = re.search(rf"def {task.entry}\((.*?)\)", cells[f"{name}-answer"])[1]
        assert re.search(rf"{task.entry}\[.*, {re.escape(width)}\]\({re.escape(parameters)}\)", said), name
        for parameter, value in zip(parameters.split(", "), args, strict=True):
            if isinstance(value, np.ndarray):
                assert re.search(rf"\b{parameter}\b.*\(", said), (name, parameter)
        assert "**Limits.**" in said, name


def test_what_the_text_says_to_look_with_runs(cells, solution):
    for task in KERNELS:
        name = task.id.replace(".", "-")
        line = re.search(r"To look: `(trace\(.*\)\.report\(\))`", cells[f"{name}-launch"])
        line = line[1] if line else cells[f"{name}-look"]
        names = {}
        exec(cells["setup"], names)
        entry = line[len("trace(") :].partition(",")[0] if f"{name}-given" in cells else task.entry
        text = kernel(cells[f"{name}-given"]) if f"{name}-given" in cells else solution
        names[entry] = load(text, entry)
        told = str(eval(line, names))
        assert "outside" not in told and "blocks" in told, name


# --- what the limits say is what is traced ---


def test_the_sectors_are_those_that_the_tracer_counts():
    from numba import cuda

    @cuda.jit
    def read(x, start, stride, y):
        t = cuda.threadIdx.x
        y[t] = x[start + t * stride]

    kinds = {1: np.int8, 2: np.int16, 4: np.float32, 8: np.float64, 16: np.complex128}
    for seed in SEEDS:
        for case in cases(memory.SECTORS, seed):
            start, stride, size = case.args
            x = np.zeros(max(start, start + 31 * stride) + 1, kinds[size])
            found = trace(read, 1, 32, x, start, stride, np.zeros(32, kinds[size]), progress=False)
            assert found.row("x").sectors == memory.sectors(*case.args), case.label


#: Requests to shared memory and shuffles, of the first case: an answer, its requests, and words of the text.
FIGURES = (
    ("06.reduction", "", 45, "45"),
    ("06.reduction", "neighbours in pairs", 150, "at most 100 requests"),
    ("06.reduction", "one thread adds", 264, "at most 100 requests"),
    ("06.register", "", 208, "224"),
    ("06.register", "no register", 272, "272"),
    ("06.banks", "", 16, "16 will do"),
    ("06.matmul", "", 272, "At most 288 requests"),
    ("06.softmax", "", 40, "ten shuffles do it"),  # four warps
)
LIMITS = {
    "06.reduction": 100,
    "06.register": 224 + 16,
    "06.banks": 36,
    "06.matmul": 288 + 16,
    "06.softmax": 4 * 80,
}


def test_the_figures_in_the_text_are_those_of_the_tracer(cells):
    for id, name, needs, said in FIGURES:
        task = registry.task(id)
        args = cases(task)[0].args
        found, _ = traced(task, corpus.text_of(id, name) if name else answer(task, cells), args)
        done = sum(row.requests for row in found.shared_accesses) + sum(found.shuffles.values())
        (limit,) = (one for one in task.launch.limits if isinstance(one, SharedRequests))
        assert done == needs and limit.formula(*args) == LIMITS[id], (id, name)
        assert said in cells[f"{id.replace('.', '-')}-launch"], (id, name)
    args = cases(kernels.MATMUL)[0].args
    plain, _ = traced(kernels.MATMUL, corpus.text_of("06.matmul", "without tiles"), args)
    assert kernels.READS.formula(*args) == 96
    assert sum(row.sectors for row in plain.global_accesses if row.kind == "load") == 512
    assert "at most 96 sectors" in cells["06-matmul-launch"] and "512" in cells["06-matmul-launch"]


# --- hazards ---


def test_the_broken_kernel_is_right_in_lockstep_and_its_two_races_are_found():
    task = memory.BARRIER
    text = corpus.text_of(task.id, "nothing repaired")
    for case in cases(task):
        found, result = traced(task, text, case.args)
        assert task.comparison.compare(result, task.reference(*case.args), case.args) is None
    found, _ = traced(task, text, cases(task)[0].args)
    lines = {found.source[one.line].strip() for one in found.hazards}
    assert {"row[j] = X[i, j]", "largest = row[0]"} <= lines
    assert {one.kind for one in found.hazards} == {"race"}


# --- checkpoints ---


def answer_to(id: str):
    return next(one for one in checkpoints.questions("06") if one.id == id).answer


def test_the_checkpoints_say_what_the_library_computes():
    from numba import cuda, float32

    assert answer_to("06.sectors_stride") == memory.sectors(0, 6, 4)
    found = occupancy(None, 256, (9, 0), registers=80, shared_bytes=48 * 1024)
    assert answer_to("06.occupancy") == found.warps_per_sm
    more = occupancy(None, 256, (9, 0), registers=64, shared_bytes=48 * 1024)
    assert more.blocks_per_sm == 4

    @cuda.jit
    def column(y):
        tile = cuda.shared.array((32, 34), float32)
        lane = cuda.threadIdx.x
        tile[lane, 0] = lane
        y[lane] = tile[lane, 0]

    found = trace(column, 1, 32, np.zeros(32, np.float32), progress=False)
    assert answer_to("06.bank") == found.row("tile").wavefronts
    assert 2 * answer_to("06.launch") ** 3 == pytest.approx(50e12 * 5e-6)
    assert answer_to("06.littles_law") == pytest.approx(93.75)
