"""Chapter 10's tasks: what is handed out is what it says it is, and other right answers are right."""

import ast

import numpy as np
import pytest
from grading_tools import read_notebook, solution_path, text_of

from course_lib.fp8.errors import calc_diff
from course_lib.fp8.formats import E4M3
from course_lib.grading.language import Language
from course_lib.grading.sources import load
from course_lib.grading.tasks.fp8 import experiments, kernels, shared
from course_lib.grading.tasks.fp8.kernels import waits
from course_lib.simulators.ring import Ring, run
from course_lib.simulators.tensor_core import ADA, BLACKWELL, HOPPER, HOPPER_FP16, gemm_e4m3

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


# --- rules: given code ---

GIVEN = "import numpy as np\n\n\ndef box(x, key):\n    return np.abs(x) * key\n"
CHANGES = {
    "another box": "def box(x, key):\n    return key\n\n\ndef f(key):\n    return box(1, key)",
    "a class": "class box:\n    pass\n\n\ndef f(key):\n    return box(1, key)",
    "an import": "from math import sqrt as box\n\n\ndef f(key):\n    return box(key)",
    "np": "import math as np\n\n\ndef f(key):\n    return box(1, key) + np.pi",
    "np in a loop": "for np in [3]:\n    pass\n\n\ndef f(key):\n    return box(1, key) + np",
    "np in a function": "def f(key):\n    global np\n    np = 3\n    return box(1, key)",
    "a part of np": "def f(key):\n    np.abs = print\n    return box(1, key)",
}


def test_what_is_given_must_stay_as_it_is():
    as_given = Language(("numpy", "math"), given=GIVEN)
    assert (
        as_given.judge(f"{GIVEN}\n\ndef f(key):\n    ones = np.ones(3)\n    return box(ones, key)\n", "f")
        is None
    )
    for name, text in CHANGES.items():
        assert as_given.judge(f"{GIVEN}\n\n{text}\n", "f"), name
