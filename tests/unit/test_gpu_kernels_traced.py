"""Kernels with known results, faults and counts (tests/gpu_kernels) under the GPU tracer.

That the cases themselves are right is proved apart, in `test_gpu_kernels_proved.py`.
"""

import pytest
from tools.looped import looped

NOT_TRACEABLE = {  # with a sentence that says why
    "histogram in shared memory, of a warp": "handed on as a value",
    "histogram in global memory, of a warp": "handed on as a value",
}


def correct():
    from gpu_kernels.correct import CASES

    return CASES


def disputed():
    from gpu_kernels.correct import DISPUTED

    return DISPUTED


def faults():
    from gpu_kernels.faulty import FAULTS

    return FAULTS


def counted():
    from gpu_kernels.values import CASES, WIDE

    return CASES + WIDE


def traced(case):
    from gpu_kernels.case import SEED

    from course_lib.simulators.gpu import trace

    arguments = case.make_args(SEED)
    seen = trace(case.kernel, case.griddim, case.blockdim, *arguments, shared_bytes=case.shared_bytes)
    return seen, arguments


def test_there_are_as_many_cases_as_the_course_claims():
    assert (len(correct()), len(faults()), len(counted())) == (79, 41, 36)


@looped("case", correct)
def test_a_correct_kernel_gives_its_result_and_has_no_hazards(case):
    if case.name in NOT_TRACEABLE:
        from course_lib.simulators.gpu import NotTraceable

        with pytest.raises(NotTraceable, match=NOT_TRACEABLE[case.name]):
            traced(case)
        return
    seen, arguments = traced(case)
    assert seen.hazards == []
    case.check(arguments)


@looped("case", faults)
def test_a_fault_is_found_at_its_line(case):
    seen, arguments = traced(case)
    kinds = {hazard.kind for hazard in seen.hazards}
    assert case.kind in kinds <= {case.kind} | case.may_also
    assert case.lines & {hazard.line for hazard in seen.hazards if hazard.kind == case.kind}
    within_a_block = all(hazard.other_block in (None, hazard.block) for hazard in seen.hazards)
    if case.right_in_lockstep and within_a_block:  # nothing is to be seen in the result
        case.check(arguments)


@looped("case", disputed)
def test_what_works_though_a_strict_reading_forbids_it(case):
    _, arguments = traced(case)
    case.check(arguments)


@looped("case", counted)
def test_counts_are_those_derived_by_hand(case):
    seen, arguments = traced(case)
    case.check(arguments)
    assert seen.hazards == []
    for count in case.counts:
        row = seen.row(count.array, count.kind, case.line_of(count))
        assert (row.requests, row.accesses) == (count.requests, count.lanes)
        assert count.sectors is None or count.sectors == row.sectors
        assert count.wavefronts is None or count.wavefronts == row.wavefronts
        assert count.rounds is None or count.rounds == seen.atomic_rounds[row.line, row.array]
    if case.branch_warps:
        (branch,) = [row for row in seen.divergence if row.line == case.branch_line]
        assert (branch.warps, branch.divided) == (case.branch_warps, case.divergent_warps)
