"""Chapter 10's tasks: what is handed out is what it says it is, and other right answers are right."""

import ast
from functools import partial

import numpy as np
import pytest
from grading_tools import read_notebook, solution_path, text_of
from tools.mutation.survey import solution

from course_lib.fp8.errors import calc_diff
from course_lib.fp8.formats import E4M3
from course_lib.fp8.swizzle import conflicts
from course_lib.grading import registry
from course_lib.grading.judge import generator, judge
from course_lib.grading.patterns import recognise
from course_lib.grading.report import input_note
from course_lib.grading.rules_given import GivenAsItIs, OnlyHandedTo
from course_lib.grading.runner import InProcess
from course_lib.grading.sources import load
from course_lib.grading.task import source
from course_lib.grading.tasks.fp8 import experiments, kernels, shared
from course_lib.grading.tasks.fp8.kernels import waits
from course_lib.simulators.ring import Ring, run
from course_lib.simulators.tensor_core import ADA, BLACKWELL, HOPPER, HOPPER_FP16, gemm_e4m3

SEEDS = (9, 5150)


def verdict(id: str, text: str, seed: int = 9):
    task = registry.task(id)
    return judge(task, InProcess(load(text, task.entry)), text, seed)


# --- what is handed out ---


def functions(text: str) -> dict[str, str]:
    return {one.name: ast.dump(one) for one in ast.parse(text).body if isinstance(one, ast.FunctionDef)}


@pytest.fixture(scope="module")
def handed() -> str:
    """The text of the cells that are given."""
    cells = read_notebook(solution_path("10"))["cells"]
    return "\n\n".join(text_of(cell) for cell in cells if cell["id"].endswith("-given"))


def test_the_assignment_hands_out_the_declared_helpers(handed):
    given = functions(handed)
    assert given.pop("published")
    assert given == functions(f"{shared.TENSOR_CORE}\n\n{experiments.KERNELS}")


def test_the_tensor_core_that_is_handed_out_is_the_simulator_bit_by_bit():
    tensor_core = load(shared.TENSOR_CORE, "tensor_core")
    for core in (HOPPER, ADA, BLACKWELL, HOPPER_FP16):
        rng = np.random.default_rng(3)
        for K in (32, 96, 320):
            a, b = (
                E4M3.round(rng.standard_normal((9, K)) * np.exp2(rng.integers(-9, 7, (9, K)))) for _ in "ab"
            )
            a[0] = 0
            got = tensor_core(a, b, np.zeros((9, 9)), (core.terms, core.sum_bits, core.result_bits))
            assert got.dtype == np.float32
            np.testing.assert_array_equal(got, gemm_e4m3(a, b, core=core), err_msg=core.name)


def test_beside_zeros_a_tiny_old_sum_loses_nothing():
    tensor_core = load(shared.TENSOR_CORE, "tensor_core")
    a, b = np.zeros((1, 32)), np.full((1, 32), 448.0)
    for c in (np.float32(2.0**-100), np.float32(0), np.float32(-(2.0**-60) * 1.5)):
        assert tensor_core(a, b, np.full((1, 1), c), (32, 13, 13)).item() == c


def kernel(**fault: int) -> tuple:
    names = ("late", "a_late", "b_late", "row_late", "first", "spoilt", "backwards")
    return tuple({"spoilt": -1, **fault}.get(name, 0) for name in names)


@pytest.fixture(scope="module")
def matrices():
    rng = np.random.default_rng(8)
    return tuple(E4M3.round(100 * rng.standard_normal((rows, 384))).astype(np.float64) for rows in (40, 200))


def test_the_published_test_accepts_what_the_assignment_says(matrices, handed):
    published = load(f"import numpy as np\n\n{handed}", "published")
    for fault, accepted in (
        ({}, True),
        ({"late": 16}, True),
        ({"spoilt": 3}, True),
        ({"a_late": 1}, False),
        ({"row_late": 1}, False),
    ):
        assert (published(kernel(**fault), *matrices) == "right") == accepted, fault


def test_a_right_kernel_is_as_exact_as_a_real_one(matrices):
    names = {name: load(experiments.KERNELS, name) for name in ("product", "dequantised")}
    a, b = matrices
    a_scales, b_scales = np.exp2(np.arange(120).reshape(40, 3) % 7), np.exp2(np.arange(6).reshape(2, 3))
    A, B = names["dequantised"](a, a_scales, b, b_scales)
    d = names["product"](kernel(), a, a_scales, b, b_scales)
    assert 5e-7 < calc_diff(d, A @ B.T) < 3e-6
    spoilt = names["product"](kernel(spoilt=4), a, a_scales, b, b_scales)
    assert (spoilt != d).sum() == 1


# --- parities ---


def test_the_right_table_leads_to_nothing_wrong():
    for stages in (1, 2, 3, 4):
        assert kernels.outcome(waits(3 * stages + 1, stages), stages) is None


def test_a_wrong_table_is_shown_by_what_it_leads_to():
    for change, found in (
        (lambda s, p, c: [s, c, c], kernels.DEADLOCK),  # nobody begins
        (lambda s, p, c: [s, 0, 1], kernels.NOT_THERE),  # exchanged
        (lambda s, p, c: [s, 1, c], kernels.OVERWRITTEN),  # the producer never waits
        (lambda s, p, c: [s, p, 1 - c], kernels.NOT_THERE),  # the consumer never waits
    ):
        assert kernels.outcome([change(*row) for row in waits(9, 3)], 3) == found


def test_the_protocol_agrees_with_the_simulated_ring():
    flat = [[stage, 1, 0] for stage, *_ in waits(8, 2)]
    assert kernels.outcome(flat, 2) is not None
    assert any(run(Ring(2, tiles=(8,), flips=False), seed).problem for seed in range(20))
    assert not any(run(Ring(2, tiles=(8,)), seed).problem for seed in range(20))


def test_a_table_with_other_stages_is_refused():
    with pytest.raises(ValueError, match="no stage with two parities"):
        kernels.outcome([[4, 1, 0]], 4)


# --- addresses and tiles ---


def test_addresses_are_all_different_and_columns_free_of_conflicts():
    for width in (128, 64, 32):
        rows = 1024 // width * 2
        every = {kernels.address(row, column, width) for row in range(rows) for column in range(width)}
        assert every == set(range(rows * width)), width
        for piece in range(width // 16):
            assert conflicts(kernels.address(row, 16 * piece, width) for row in range(8)) == 1, width


def test_all_blocks_together_compute_every_tile_once():
    for args in ((5, 7, 6, 2, 3), (4, 4, 4, 1, 2), (9, 1, 4, 2, 4)):
        rows, columns, blocks, team, _ = args
        found = [tile for block in range(blocks) for tile in kernels.tiles_of(block, *args)]
        inside = [tuple(tile) for tile in found if tile[1] < columns]
        assert sorted(inside) == [(r, c) for r in range(rows) for c in range(columns)]
        assert len(found) == rows * -(-columns // team) * team


def test_too_few_tiles_are_no_fault_of_the_form():
    compare = kernels.ListOfTiles().compare
    (said,) = compare([[0, 0]], [[0, 0], [1, 0]], ()).says
    assert said == "Your block computes 1 tile; 2 are its own."
    assert "number 0" in compare([[1, 0]], [[0, 0], [1, 0]], ()).says[0]
    assert "every row must be a list" in compare([(0, 0)], [[0, 0]], ()).says[0]


def test_a_stage_too_many_is_not_blamed_on_one_of_several_slips():
    of = partial(recognise, lookalikes=registry.task("10.tiles").lookalikes)
    args, right = (4096, 4096, 132), kernels.tile_for(4096, 4096, 132)
    assert right[3] == 5
    assert of((*right[:3], 6), right, args)[0].startswith("Count again")
    assert not of((*right[:2], 0.5, 6), right, args)
    (said,) = of((*right[:2], 100 * right[2], 5), right, args)
    assert said.endswith("not per cent.")


def test_tiles_in_a_list_are_not_called_rows():
    args = (0, 4, 3, 2, 1, 4)
    want = kernels.tiles_of(*args)
    got = [want[0], *([row, column + 7] for row, column in want[1:])]
    assert "Only the last 5 rows are wrong." in recognise(got, want, args)
    (said,) = recognise(got, want, args, kernels.SCHEDULE.lookalikes)
    assert said.startswith("All rows are right, and the columns are not")


def test_words_and_numbers_are_about_the_same_width():
    task, core = registry.task("10.accumulator"), (32, 25, 23)
    for got, about in (
        ((16, 23, 23), "The step is longer"),
        ((64, 25, 25), "The step is not that long"),
        ((32, 23, 23), "The bits in the sum"),
        ((32, 25, 25), "The bits in the result"),
        ((32, 26, 23), "1.5 x 1.5"),
    ):
        assert recognise(got, core, (core,), task.lookalikes)[0].startswith(about), got


def test_a_number_to_encode_is_shown_once_and_in_full():
    task = registry.task("10.encode")
    cases = list(task.cases(generator(task, 4)))
    (tie,) = (case for case in cases if case.args == (2.0**-10,))
    assert input_note(task, tie) == ("Input (half the smallest number: a tie): x = 0.0009765625",)
    for case in cases:
        (said,) = input_note(task, case)
        assert said.count("x =") == 1
        assert repr(float(said.split("x = ")[1])) == repr(case.args[0])


# --- rules: given code and black boxes ---

GIVEN = "import numpy as np\n\n\ndef box(x, key):\n    return np.abs(x) * key\n"
HONEST = {
    "plain": "def f(key):\n    return box(1, key)",
    "by name": "def f(key):\n    return box(x=1, key=key)",
    "a helper": "def g(n, key):\n    return box(n, key)\n\n\ndef f(key):\n    return g(2, key)",
    "inside": "def f(key):\n    def g(n):\n        return box(n, key)\n    return max(range(9), key=g)",
    "recursion": "def f(key, n=3):\n    return box(n, key) + (f(key, n - 1) if n else 0)",
    "its own np": "def f(key):\n    ones = np.ones(3)\n    return box(ones, key)",
    "no return yet": "def f(key):\n    x = key",
}
DODGES = {
    "returned": "def f(key):\n    return key",
    "renamed": "def f(key):\n    k = key\n    return box(1, k)",
    "as a star": "def f(*key):\n    return box(1, *key)",
    "a star before it": "def g(a, key, x):\n    return x\n\n\ndef f(key):\n    return g(*[1, 2], key)",
    "a keyword for all": "def g(**all):\n    return all\n\n\ndef f(key):\n    return g(key=key)",
    "a star takes it": "def g(*all, key):\n    return all\n\n\ndef f(key):\n    return g(key, key=1)",
    "a default": "def f(key):\n    def g(key=key):\n        return box(1, key)\n    return g()",
    "the name of a list": "def f(key):\n    def list(key):\n        return 1\n    return list(key)",
    "a decorated helper": "@repr\ndef g(key):\n    return 1\n\n\ndef f(key):\n    return g(key)",
    "an argument's name": "def g(key):\n    return 1\n\n\ndef f(key, g=repr):\n    return g(key)",
    "a lambda": "f = lambda key: key",
    "given a value": "def f(key):\n    key = 3\n    return key",
}
CHANGES = {
    "another box": "def box(x, key):\n    return key\n\n\ndef f(key):\n    return box(1, key)",
    "a class": "class box:\n    pass\n\n\ndef f(key):\n    return box(1, key)",
    "an import": "from math import sqrt as box\n\n\ndef f(key):\n    return box(key)",
    "np": "import math as np\n\n\ndef f(key):\n    return box(1, key) + np.pi",
    "np in a loop": "for np in [3]:\n    pass\n\n\ndef f(key):\n    return box(1, key) + np",
    "np in a function": "def f(key):\n    global np\n    np = 3\n    return box(1, key)",
    "a part of np": "def f(key):\n    np.abs = print\n    return box(1, key)",
}


def test_a_key_may_be_handed_on_and_nothing_else():
    handed_on, as_given = OnlyHandedTo("key", "box"), GivenAsItIs(GIVEN)
    for name, text in HONEST.items():
        whole = f"{GIVEN}\n\n{text}\n"
        assert handed_on.judge(whole, "f") is None and as_given.judge(whole, "f") is None, name
    for name, text in DODGES.items():
        assert handed_on.judge(f"{GIVEN}\n\n{text}\n", "f"), name
    for name, text in CHANGES.items():
        assert as_given.judge(f"{GIVEN}\n\n{text}\n", "f"), name


def test_rules_say_what_they_want():
    assert GivenAsItIs(GIVEN).wanted == "box left as given"
    assert OnlyHandedTo("key", "box").wanted == "`key` goes to box alone"


# --- other right answers ---


def on_tensor_core(answer: str) -> str:
    """Return the answer below the tensor core that is handed out."""
    return f"{shared.TENSOR_CORE}\n\n{source(answer)}"


OTHERS = {
    "decode by a table": (
        "10.decode",
        """
        import numpy as np
        def decode(code):
            steps = [f if e == 0 else (8 + f) << (e - 1) for e in range(16) for f in range(8)]
            value = float("nan") if code % 128 == 127 else steps[code % 128] / 512
            return float(np.copysign(value, -1.0 if code > 127 else 1.0))
        """,
    ),
    "encode by a search": (
        "10.encode",
        """
        import math
        def encode(x):
            if math.isnan(x):
                return 127
            values = [(c if c < 8 else (8 + c % 8) * 2.0 ** (c // 8 - 1)) / 512 for c in range(127)]
            size = min(abs(x), 448.0)
            code = min(range(127), key=lambda c: (abs(values[c] - size), c % 2))
            return code + (128 if str(x)[0] == "-" else 0)
        """,
    ),
    "quantise by reshaping": (
        "10.quantise",
        """
        import numpy as np
        def quantise(x):
            M, K = x.shape
            rest = -K % 128
            padded = np.pad(x, ((0, 0), (0, rest))).reshape(M, -1, 128)
            amax = np.abs(padded).max(axis=2, keepdims=True) if K else np.zeros((M, 0, 1), np.float32)
            amax = np.maximum(amax, np.float32(1e-4))
            scaled = (padded * (np.float32(448) / amax)).reshape(M, K + rest)[:, :K]
            return scaled.copy(), (amax / np.float32(448))[:, :, 0].copy()
        """,
    ),
    "two levels, step by step": (
        "10.promotion",
        on_tensor_core("""
            def two_level(A, B, every, core):
                total = np.zeros((len(A), len(B)), np.float32)
                part, since = np.zeros_like(total), 0
                for k in range(0, A.shape[1], core[0]):
                    part = tensor_core(A[:, k : k + core[0]], B[:, k : k + core[0]], part, core)
                    since += core[0]
                    if since == every:
                        total, part, since = total + part, np.zeros_like(part), 0
                return total + part
        """),
    ),
    "laps counted": (
        "10.parity",
        """
        def waits(visits, stages):
            rows, stage, lap = [], 0, 0
            for _ in range(visits):
                rows.append([stage, lap ^ 1, lap])
                stage += 1
                if stage == stages:
                    stage, lap = 0, lap ^ 1
            return rows
        """,
    ),
    "bits of the address": (
        "10.swizzle",
        """
        def address(row, column, width):
            at = row * width + column
            bits = {128: 0b1110000, 64: 0b110000, 32: 0b10000}[width]
            return at ^ ((at >> 3) & bits)
        """,
    ),
    "all units in a list": (
        "10.schedule",
        """
        def tiles_of(block, rows, columns, blocks, team, band):
            order = [
                [row, column]
                for first in range(0, rows, band)
                for column in range(0, columns, team)
                for row in range(first, min(first + band, rows))
            ]
            return [[row, column + block % team] for row, column in order[block // team :: blocks // team]]
        """,
    ),
    "the least of three": (
        "10.tiles",
        """
        import math
        def tile_for(M, N, sms):
            BM = 128 if M > 64 else 64
            def tiles(BN):
                return math.ceil(M / BM) * math.ceil(N / BN)
            def turns(BN):
                return math.ceil(tiles(BN) / sms)
            def idle(BN):
                return turns(BN) * sms - tiles(BN)
            BN = min(range(128, 15, -16), key=lambda BN: (turns(BN), idle(BN)))
            stages = 0
            while stages < 8 and 2 * BM * BN + (stages + 1) * (132 * BM + 128 * BN) <= 226 * 1024:
                stages += 1
            return BN, turns(BN), idle(BN) / turns(BN) / sms, stages
        """,
    ),
    "other products": (
        "10.accumulator",
        on_tensor_core("""
            def run(powers, core):
                # a sum of products that are powers of two, with signs
                a = [[sign * 2.0 ** (power // 2) for sign, power in powers]]
                b = [[2.0 ** (power - power // 2) for _, power in powers]]
                return tensor_core(np.array(a), np.array(b), np.zeros((1, 1)), core).item()


            def widths(core):
                wide, exact, terms = 0, 0, 2
                while run([(1, 16), (-1, 16), (1, 15 - wide)], core) > 0:
                    wide += 1
                while run([(1, 16), (1, 15 - exact)], core) > 2**16:
                    exact += 1
                while not run([(1, 16), (-1, 16)] + [(0, 0)] * (terms - 2) + [(1, -17)], core):
                    terms += 1
                return terms, wide, exact
        """),
    ),
    "scales from a list": (
        "10.scales",
        experiments.KERNELS
        + source("""


            def judged(kernel, a, b):
                M, N, K = len(a), len(b), a.shape[1]
                powers = [2.0 ** (n * n * 7 % 11 - 5) for n in range(M + 20)]
                a_scales = np.array([[powers[m + 3 * k] for k in range(-(-K // 128))] for m in range(M)])
                blocks, groups = range(-(-K // 128)), range(-(-N // 128))
                b_scales = np.array([[8.0 ** ((n + k) % 3) for k in blocks] for n in groups])
                d = product(kernel, a, a_scales, b, b_scales)
                A, B = dequantised(a, a_scales, b, b_scales)
                error = np.abs(d - A @ B.T)
                return "wrong" if (error > abs(A @ B.T) / 200 + abs(A) @ abs(B).T / 900).any() else "right"
        """),
    ),
}


def test_other_right_answers_get_all_points():
    for name, (id, text) in OTHERS.items():
        for seed in SEEDS:
            report = verdict(id, source(text), seed)
            assert report.passed, f"{name}\n{report}"
    assert {id for id, _ in OTHERS.values()} == {task.id for task in registry.tasks("10")}


def test_the_solution_of_the_test_of_kernels_is_right_for_many_seeds():
    text = solution(registry.task("10.scales")).text
    for seed in range(1, 7):
        report = verdict("10.scales", text, seed)
        assert report.passed, str(report)


def test_cores_of_the_cases_differ_in_all_that_is_asked():
    task = registry.task("10.accumulator")
    keys = [case.args[0] for case in task.cases(generator(task, 4))]
    assert all(len(set(column)) >= 3 for column in zip(*keys, strict=True))
    assert any(wide > result for _, wide, result in keys)
