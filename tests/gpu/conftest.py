"""What the tests on a GPU share. They are run by `pytest -m gpu`, and only where there is a GPU."""

import os

import alone
import pytest

from course_lib.measure import machine


@pytest.fixture(autouse=True)
def gpu_or_skip(request):
    """Skip with the sentence that says what is missing; no driver is called before this.

    The FP8 kernels need torch and NVIDIA's run-time compiler, the rungs Numba's target for GPUs.
    """
    if request.path.stem == "test_fp8_on_gpu":
        from course_lib.fp8 import launch

        sentence = launch.missing_here()
    else:
        sentence = machine.missing("cuda")
    if sentence:
        pytest.skip(sentence)


def pytest_pyfunc_call(pyfuncitem):
    """Give each test of the FP8 kernels a process of its own; there, and for the others, pytest calls it."""
    if pyfuncitem.path.stem != "test_fp8_on_gpu" or alone.CHILD in os.environ:
        return None
    alone.run(pyfuncitem)
    return True
