"""The GPU tracer on small kernels (tests/gpu_kernels/small), and how quick it is.

The kernels stand in modules of their own: their decorators need Numba, which is imported when a test runs.
"""

import importlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pace import slowness

pytest.register_assert_rewrite("gpu_kernels.small")
TESTS = Path(__file__).parents[1]


def module(name):
    return importlib.import_module(f"gpu_kernels.small.{name}")


@pytest.mark.parametrize("name", ["counts", "once_wrong", "refused", "races", "arithmetic"])
def test_what_is_counted_refused_and_computed(name):
    """Every check of a module (its docstring says of what); a failure's traceback names the one."""
    for test, function in vars(module(name)).items():
        if test.startswith("test_"):
            function()


@pytest.mark.slow
def test_lanes_compute_with_numbas_types_whatever_is_mixed():
    arithmetic = module("arithmetic")
    arithmetic.compare(arithmetic.PAIRS[3:])


# -- speed ---------------------------------------------------------------------------------------------------


@pytest.mark.timing
def test_a_hundred_million_accesses_a_second():
    counts = module("counts")
    for kernel in (counts.naive, counts.tiled):
        counts.product(kernel, 64, 64, 64)
        seconds, accesses = [], 0
        for _ in range(3):
            start = time.perf_counter()
            seen, _, _ = counts.product(kernel, 256, 256, 256)
            seconds.append(time.perf_counter() - start)
            accesses = seen.accesses
        assert accesses / min(seconds) > 100e6, kernel.py_func.__name__


@pytest.mark.timing
def test_traced_tiled_matmul_is_quick():
    counts = module("counts")
    counts.product(counts.tiled, 32, 32, 32)
    for size, limit in ((128, 0.1), (512, 2.5)):
        start = time.perf_counter()
        counts.product(counts.tiled, size, size, size)
        taken = time.perf_counter() - start
        assert taken < limit * slowness(), size


@pytest.mark.timing
def test_the_first_launch_ever_is_quick(tmp_path):
    """With nothing compiled yet, in a process of its own; what Numba's import takes is not counted."""
    program = (
        "import sys, time; from gpu_kernels.small.counts import product, tiled;"
        "start = time.perf_counter();"
        "product(tiled, 64, 64, 64); print(time.perf_counter() - start)"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(TESTS)}
    before = slowness()
    run = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert float(run.stdout) < 5 * max(before, slowness())
