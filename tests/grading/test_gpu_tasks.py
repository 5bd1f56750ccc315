"""Tasks of chapter 06: limits say what is traced, other right answers pass, no barrier can be left out."""

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest
from grading_tools import answers_of, read_notebook, solution_path, text_of
from wrong_answers import start, wrong_answer, wrong_answers

from course_lib.grading import checkpoints, registry
from course_lib.grading.judge import generator, judge
from course_lib.grading.limits import SharedRequests
from course_lib.grading.runner import InProcess, clone
from course_lib.grading.sources import load
from course_lib.grading.task import source
from course_lib.grading.tasks.gpu import kernels, memory
from course_lib.grading.tasks.gpu.shared import HEAD, UNWRITTEN, exact_sectors, row_sectors
from course_lib.simulators.gpu import occupancy, trace

pytestmark = pytest.mark.usefixtures("tracer_compiled")
TASKS = registry.tasks("06")
KERNELS = [task for task in TASKS if task.launch]
SEEDS = (9, 7, 12345)


def verdict(task, text: str, seed: int = 9):
    return judge(task, InProcess(load(text, task.entry)), text, seed)


def traced(task, text: str, args: tuple):
    """Return the trace of a launch of an answer, and the result's array afterwards."""
    args = clone(args)
    shape = task.launch.shape(args)
    found = trace(load(text, task.entry), shape.grid, shape.block, *args, progress=False)
    return found, args[task.launch.result]


def cases(task, seed: int = 9):
    return list(task.cases(generator(task, seed)))


def kernel(text: str) -> str:
    """Return a kernel below the imports that are handed out."""
    return HEAD + source(text)


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
        block = task.launch.shape(args).block
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


# --- inputs ---


def test_inputs_leave_no_room_for_luck():
    for task, seed in itertools.product(KERNELS, SEEDS):
        sizes = set()
        for case in cases(task, seed):
            *inputs, result = case.args
            assert task.launch.result == len(inputs)
            assert (result.view(np.uint32) == UNWRITTEN).all() and result.dtype == np.float32
            arrays = [one for one in inputs if isinstance(one, np.ndarray)]
            sizes |= {size for one in (*arrays, result) for size in one.shape}
            for one in arrays:
                assert len(np.unique(one)) >= 0.45 * one.size  # half of a masked row is -inf
                small = one[np.abs(one) < 0.5]
                assert task.id == "06.softmax" or (len(small) <= 3 and not small.any())  # a 0 meets an inf
        assert 1 in sizes and any(size % 2 for size in sizes if size > 1), task.id
        assert any(size % 32 for size in sizes if size > 32), task.id


def test_an_answer_is_judged_with_few_accesses(solution):
    for task in KERNELS:
        total = sum(traced(task, solution, case.args)[0].accesses for case in cases(task))
        assert total < 2_000_000, task.id  # some 20 ms


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


def requests(found) -> int:
    return sum(row.requests for row in found.shared_accesses)


def test_the_figures_of_the_reduction(cells):
    args = cases(kernels.REDUCTION)[0].args
    assert args[0].shape == (256,)
    text = {
        name: wrong_answer("06.reduction", name).source for name in ("neighbours in pairs", "one thread adds")
    }
    text["tree"] = answer(kernels.REDUCTION, cells)
    done = {name: requests(traced(kernels.REDUCTION, one, args)[0]) for name, one in text.items()}
    assert done == {"tree": 45, "neighbours in pairs": 150, "one thread adds": 264}
    assert "45" in cells["06-reduction-launch"] and "at most 64 requests" in cells["06-reduction-launch"]
    assert kernels.REDUCTION_MOST_REQUESTS == 64


def test_the_figures_of_the_tiled_product(cells):
    args = cases(kernels.MATMUL)[0].args
    assert [one.shape for one in args] == [(16, 16)] * 3
    reads = kernels.READS.formula(*args)
    plain, _ = traced(kernels.MATMUL, wrong_answer("06.matmul", "without tiles").source, args)
    assert reads == 96
    assert sum(row.sectors for row in plain.global_accesses if row.kind == "load") == 512
    assert "at most 96 sectors" in cells["06-matmul-launch"] and "512" in cells["06-matmul-launch"]


def test_the_figures_of_the_register_tile(cells):
    task, args = kernels.REGISTER, cases(kernels.REGISTER)[0].args
    assert requests(traced(task, answer(task, cells), args)[0]) == 208
    assert requests(traced(task, wrong_answer(task.id, "no register").source, args)[0]) == 272
    assert kernels.most_requests(*args) == 224
    assert "224" in cells["06-register-launch"] and "272" in cells["06-register-launch"]


#: What the tasks say that the solutions need, in requests to shared memory and shuffles: of the first case.
NEEDED = {
    "banks": (16, "16 will do"),
    "matmul": (272, "At most 288 requests"),
    "softmax": (40, "ten shuffles do it"),  # four warps
}


def test_the_figures_of_the_limits_on_exchanges(cells):
    for name, (needs, said) in NEEDED.items():
        task = registry.task(f"06.{name}")
        args = cases(task)[0].args
        found, _ = traced(task, answer(task, cells), args)
        (limit,) = (one for one in task.launch.limits if isinstance(one, SharedRequests))
        assert requests(found) + sum(found.shuffles.values()) == needs <= limit.formula(*args), name
        assert said in cells[f"06-{name}-launch"]
        assert {"banks": 36, "matmul": 288, "softmax": 4 * 80}[name] == limit.formula(*args), name


def test_the_bounds_of_rows_are_reached_by_no_aligned_row_and_by_every_other_at_most():
    from numba import cuda

    @cuda.jit
    def copy(X, Y):
        j, i = cuda.grid(2)
        if i < X.shape[0] and j < X.shape[1]:
            Y[i, j] = X[i, j]

    for columns in (32, 33, 35, 64, 100):
        X = np.zeros((16, columns), np.float32)
        found = trace(copy, (-(-columns // 32), 2), (32, 8), X, X.copy(), progress=False)
        done = found.row("X").sectors
        assert done == exact_sectors(16, columns) <= row_sectors(16, columns)
        assert (done == 4 * 16 * columns // 32) == (columns % 32 == 0)


class Alone:
    """In the place of a task's limits: one of them, which remembers whether it had anything to say."""

    def __init__(self, limit) -> None:
        self._limit = limit
        self.wanted = limit.wanted
        self.rejected = False

    def judge(self, counts, args):
        said = self._limit.judge(counts, args)
        self.rejected = self.rejected or bool(said)
        return said


def rejects(limit, task, text: str, inputs: list) -> bool:
    """Whether the limit, without the others, is what an answer fails by on these inputs."""
    alone = Alone(limit)
    only = replace(task, launch=replace(task.launch, limits=(alone,)), cases=lambda rng: inputs)
    return not verdict(only, text).passed and alone.rejected


def test_every_limit_is_what_rejects_some_typical_answer():
    for task in KERNELS:
        every = cases(task)
        for limit in task.launch.limits:
            assert any(  # on the first inputs, as a rule; a large one takes long
                rejects(limit, task, one.source, inputs)
                for inputs in (every[:2], every[2:])
                for one in wrong_answers(task.id)
            ), f"{task.id}, {limit.wanted}"


# --- hazards ---


def test_the_broken_kernel_is_right_in_lockstep_and_its_two_races_are_found():
    task = memory.BARRIER
    text = wrong_answer(task.id, "nothing repaired").source
    for case in cases(task):
        found, result = traced(task, text, case.args)
        assert task.comparison.compare(result, task.reference(*case.args), case.args) is None
    found, _ = traced(task, text, cases(task)[0].args)
    lines = {found.source[one.line].strip() for one in found.hazards}
    assert {"row[j] = X[i, j]", "largest = row[0]"} <= lines
    assert {one.kind for one in found.hazards} == {"race"}


def test_no_barrier_of_a_solution_can_be_left_out(cells):
    expected = {"barrier": 2, "banks": 1, "reduction": 1, "transpose": 1, "matmul": 2, "register": 2}
    for task in KERNELS:
        text = answer(task, cells)
        places = [found.start() for found in re.finditer(r"cuda\.syncthreads\(\)", text)]
        assert len(places) == expected.get(task.id[3:], 0), task.id
        for place in places:
            without = text[:place] + "pass" + text[place + len("cuda.syncthreads()") :]
            report = str(verdict(task, without))
            assert "Data race" in report or "Read before anything was written" in report, task.id


@pytest.mark.slow
def test_typical_wrong_answers_are_named_on_other_inputs_too():
    for task, seed in itertools.product(TASKS, SEEDS[1:]):
        for one in wrong_answers(task.id):
            report = verdict(task, one.source, seed)
            assert report.points == 0 and one.says in str(report), f"{one}\n{report}"


def test_nan_that_was_computed_is_not_said_to_be_unwritten():
    report = str(verdict(kernels.SOFTMAX, wrong_answer("06.softmax", "not stable").source))
    assert "No thread wrote" not in report and "inf / inf" in report
    right = start("06.softmax")
    missing = right.replace("        Y[i, j] = ", "        if j > 0:\n            Y[i, j] = ")
    assert missing != right and "No thread wrote" in str(verdict(kernels.SOFTMAX, missing))


# --- other right answers ---

OTHERS = {
    "two numbers at a time for each thread": (
        "06.coalesce",
        """
        @cuda.jit
        def coalesced(alpha, x, y, out):
            for first in range(2 * cuda.blockIdx.x * 64, len(x), 2 * cuda.gridsize(1)):
                for k in (first + cuda.threadIdx.x, first + cuda.threadIdx.x + 64):
                    if k < len(x):
                        out[k] = alpha * x[k] + y[k]
        """,
    ),
    "largest and sum in one pass": (
        "06.softmax",
        """
        @cuda.jit
        def softmax(X, Y):
            lane = cuda.threadIdx.x
            i = cuda.blockIdx.x * 4 + cuda.threadIdx.y
            if i < X.shape[0]:
                m = float32(-1e30)
                s = float32(0)
                for j in range(lane, X.shape[1], 32):
                    v = X[i, j]
                    n = max(m, v)
                    s = s * math.exp(m - n) + math.exp(v - n)
                    m = n
                for d in range(5):
                    m2 = cuda.shfl_xor_sync(0xFFFFFFFF, m, 1 << d)
                    s2 = cuda.shfl_xor_sync(0xFFFFFFFF, s, 1 << d)
                    n = max(m, m2)
                    s = s * math.exp(m - n) + s2 * math.exp(m2 - n)
                    m = n
                for j in range(lane, X.shape[1], 32):
                    Y[i, j] = math.exp(X[i, j] - m) / s
        """,
    ),
    "rows as plain arithmetic": (
        "06.index",
        """
        @cuda.jit
        def add_row(alpha, matrix, row, out):
            column = cuda.blockIdx.x * 32 + cuda.threadIdx.x
            line = cuda.blockIdx.y * 8 + cuda.threadIdx.y
            if line < matrix.shape[0] and column < len(row):
                out[line, column] = row[column] + alpha * matrix[line, column]
        """,
    ),
    "the maximum by a device function": (
        "06.barrier",
        """
        @cuda.jit(device=True)
        def largest_of(row, n):
            best = row[0]
            for k in range(n):
                best = max(best, row[k])
            return best


        @cuda.jit
        def repaired(X, Y):
            row = cuda.shared.array(64, float32)
            i = cuda.blockIdx.x
            while i < X.shape[0]:
                inside = cuda.threadIdx.x < X.shape[1]
                cuda.syncthreads()
                if inside:
                    row[cuda.threadIdx.x] = X[i, cuda.threadIdx.x]
                cuda.syncthreads()
                if inside:
                    Y[i, cuda.threadIdx.x] = X[i, cuda.threadIdx.x] - largest_of(row, X.shape[1])
                i += cuda.gridDim.x
        """,
    ),
    "planes of channels, 72 words apart": (
        "06.banks",
        """
        @cuda.jit
        def brightness(X, w, y):
            tile = cuda.shared.array((4, 72), float32)
            t = cuda.threadIdx.x
            first = cuda.blockIdx.x * 64
            for s in range(4):
                e = t + 64 * s
                if first + e // 4 < len(y):
                    tile[e % 4, e // 4] = X[first + e // 4, e % 4]
            cuda.syncthreads()
            if first + t < len(y):
                low = w[0] * tile[0, t] + w[1] * tile[1, t]
                y[first + t] = low + w[2] * tile[2, t] + w[3] * tile[3, t]
        """,
    ),
    "shuffles, then a tree of warps": (
        "06.reduction",
        """
        @cuda.jit
        def block_sums(x, sums):
            part = cuda.shared.array(8, float32)
            t, k = cuda.threadIdx.x, cuda.grid(1)
            mine = float32(0)
            if k < len(x):
                mine = x[k]
            for n in range(5):
                mine += cuda.shfl_xor_sync(0xFFFFFFFF, mine, 1 << n)
            if t % 32 == 0:
                part[t // 32] = mine
            cuda.syncthreads()
            if t < 32:
                mine = part[t] if t < 8 else float32(0)
                for n in range(3):
                    mine += cuda.shfl_xor_sync(0xFFFFFFFF, mine, 1 << n)
                if t == 0:
                    sums[cuda.blockIdx.x] = mine
        """,
    ),
    "the last warp with syncwarp": (
        "06.reduction",
        """
        @cuda.jit
        def block_sums(x, sums):
            part = cuda.shared.array(256, float32)
            t, k = cuda.threadIdx.x, cuda.grid(1)
            part[t] = x[k] if k < len(x) else float32(0)
            cuda.syncthreads()
            half = 128
            while half > 16:
                if t < half:
                    part[t] += part[t + half]
                cuda.syncthreads()
                half //= 2
            if t < 32:
                while half > 0:
                    if t < half:
                        part[t] += part[t + half]
                    cuda.syncwarp()
                    half //= 2
                if t == 0:
                    sums[cuda.blockIdx.x] = part[0]
        """,
    ),
    "turned places instead of padding": (
        "06.transpose",
        """
        @cuda.jit
        def transpose(A, B):
            tile = cuda.shared.array((32, 32), float32)
            x, y = cuda.threadIdx.x, cuda.threadIdx.y
            i0, j0 = cuda.blockIdx.y * 32, cuda.blockIdx.x * 32
            for s in range(4):
                r = y + 8 * s
                if i0 + r < A.shape[0] and j0 + x < A.shape[1]:
                    tile[r, x ^ r] = A[i0 + r, j0 + x]
            cuda.syncthreads()
            for s in range(4):
                r = y + 8 * s
                if j0 + r < A.shape[1] and i0 + x < A.shape[0]:
                    B[j0 + r, i0 + x] = tile[x, r ^ x]
        """,
    ),
    "edges by device functions": (
        "06.matmul",
        """
        T = 16


        @cuda.jit(device=True)
        def element(X, i, j):
            value = float32(0)
            if i < X.shape[0] and j < X.shape[1]:
                value = X[i, j]
            return value


        @cuda.jit
        def tiled(A, B, C):
            a = cuda.shared.array((T, T), float32)
            b = cuda.shared.array((T, T), float32)
            r, c = cuda.threadIdx.y, cuda.threadIdx.x
            j, i = cuda.grid(2)
            total = float32(0)
            for step in range((A.shape[1] + T - 1) // T):
                cuda.syncthreads()
                a[r, c] = element(A, i, step * T + c)
                b[r, c] = element(B, step * T + r, j)
                cuda.syncthreads()
                for k in range(min(T, A.shape[1] - step * T)):
                    total = cuda.fma(a[r, k], b[k, c], total)
            if i < A.shape[0] and j < B.shape[1]:
                C[i, j] = total
        """,
    ),
    "lanes give each other their channels": (
        "06.banks",
        """
        @cuda.jit
        def brightness(X, w, y):
            t = cuda.threadIdx.x
            first = cuda.blockIdx.x * 64
            mine = w[t % 4]
            for s in range(4):
                e = t + 64 * s
                value = float32(0)
                if first + e // 4 < len(y):
                    value = mine * X[first + e // 4, e % 4]
                value += cuda.shfl_down_sync(0xFFFFFFFF, value, 2)
                value += cuda.shfl_down_sync(0xFFFFFFFF, value, 1)
                if t % 4 == 0 and first + e // 4 < len(y):
                    y[first + e // 4] = value
        """,
    ),
    "sums in a local array": (
        "06.register",
        """
        @cuda.jit
        def two_rows(A, B, C):
            a = cuda.shared.array((16, 16), float32)
            b = cuda.shared.array((16, 16), float32)
            sums = cuda.local.array(2, float32)
            r, c = cuda.threadIdx.y, cuda.threadIdx.x
            i, j = cuda.blockIdx.y * 16 + r, cuda.blockIdx.x * 16 + c
            for s in range(2):
                sums[s] = 0
            for k0 in range(0, A.shape[1], 16):
                for s in range(2):
                    row = r + 8 * s
                    a[row, c] = 0
                    if i + 8 * s < A.shape[0] and k0 + c < A.shape[1]:
                        a[row, c] = A[i + 8 * s, k0 + c]
                    b[row, c] = 0
                    if k0 + row < B.shape[0] and j < B.shape[1]:
                        b[row, c] = B[k0 + row, j]
                cuda.syncthreads()
                for k in range(16):
                    value = b[k, c]
                    for s in range(2):
                        sums[s] += a[r + 8 * s, k] * value
                cuda.syncthreads()
            for s in range(2):
                if i + 8 * s < C.shape[0] and j < C.shape[1]:
                    C[i + 8 * s, j] = sums[s]
        """,
    ),
}


@pytest.mark.parametrize("seeds", [SEEDS[:1], pytest.param(SEEDS[1:], marks=pytest.mark.slow)])
def test_other_right_answers_get_all_points(seeds):
    assert {id for id, _ in OTHERS.values()} == {task.id for task in KERNELS}
    for name, (id, text) in OTHERS.items():
        for seed in seeds:
            report = verdict(registry.task(id), kernel(text), seed)
            assert report.passed, f"{name}\n{report}"


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


def test_there_are_six_checkpoints_of_several_kinds():
    asked = checkpoints.questions("06")
    assert len(asked) == 6
    assert any(one.options for one in asked) and any(not one.options for one in asked)
    assert all(len(one.wrong) >= 3 for one in asked)
