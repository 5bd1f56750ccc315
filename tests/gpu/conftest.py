"""What the tests on a GPU share. They are run by `pytest -m gpu`, and only where there is a GPU.

Not yet run on a GPU.
"""

import pytest

from course_lib.measure import machine


@pytest.fixture(autouse=True)
def gpu_or_skip():
    """Skip with the sentence that says what is missing; no driver is called before this."""
    if sentence := machine.missing("cuda"):
        pytest.skip(sentence)
