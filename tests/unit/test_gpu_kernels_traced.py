"""Kernels of the field, unmodified, under the GPU tracer: the right result, and no false alarm."""

import pytest
from gpu_kernels.case import SEED
from gpu_kernels.correct import CASES

from course_lib.simulators.gpu import NotTraceable, trace

NOT_TRACEABLE = {  # with a sentence that says why
    "histogram in shared memory, of a warp": "handed on as a value",
    "histogram in global memory, of a warp": "handed on as a value",
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_correct_kernel_gives_its_result_and_has_no_hazards(case):
    arguments = case.make_args(SEED)
    if case.name in NOT_TRACEABLE:
        with pytest.raises(NotTraceable, match=NOT_TRACEABLE[case.name]):
            trace(case.kernel, case.griddim, case.blockdim, *arguments, shared_bytes=case.shared_bytes)
        return
    seen = trace(case.kernel, case.griddim, case.blockdim, *arguments, shared_bytes=case.shared_bytes)
    assert seen.hazards == []
    case.check(arguments)
