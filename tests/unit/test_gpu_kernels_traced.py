"""Kernels with known results, faults and counts under the GPU tracer: those that a plain model judges too."""

import pytest
from gpu_kernels.case import SEED
from gpu_kernels.correct import CASES as CORRECT
from gpu_kernels.correct import DISPUTED
from gpu_kernels.faulty import FAULTS
from gpu_kernels.values import CASES as COUNTED
from gpu_kernels.values import WIDE

from course_lib.simulators.gpu import NotTraceable, trace

NOT_TRACEABLE = {  # with a sentence that says why
    "histogram in shared memory, of a warp": "handed on as a value",
    "histogram in global memory, of a warp": "handed on as a value",
}


def named(case):
    return case.name


def traced(case):
    arguments = case.make_args(SEED)
    seen = trace(case.kernel, case.griddim, case.blockdim, *arguments, shared_bytes=case.shared_bytes)
    return seen, arguments


@pytest.mark.parametrize("case", CORRECT, ids=named)
def test_a_correct_kernel_gives_its_result_and_has_no_hazards(case):
    if case.name in NOT_TRACEABLE:
        with pytest.raises(NotTraceable, match=NOT_TRACEABLE[case.name]):
            traced(case)
        return
    seen, arguments = traced(case)
    assert seen.hazards == []
    case.check(arguments)


@pytest.mark.parametrize("case", FAULTS, ids=named)
def test_a_fault_is_found_at_its_line(case):
    seen, arguments = traced(case)
    kinds = {hazard.kind for hazard in seen.hazards}
    assert case.kind in kinds <= {case.kind} | case.may_also
    assert case.lines & {hazard.line for hazard in seen.hazards if hazard.kind == case.kind}
    within_a_block = all(hazard.other_block in (None, hazard.block) for hazard in seen.hazards)
    if case.right_in_lockstep and within_a_block:  # nothing is to be seen in the result
        case.check(arguments)


@pytest.mark.parametrize("case", DISPUTED, ids=named)
def test_what_works_though_a_strict_reading_forbids_it(case):
    _, arguments = traced(case)
    case.check(arguments)


@pytest.mark.parametrize("case", COUNTED + WIDE, ids=named)
def test_counts_are_those_derived_by_hand(case):
    seen, arguments = traced(case)
    case.check(arguments)
    assert seen.hazards == []
    for count in case.counts:
        row = seen.row(count.array, count.kind, case.line_of(count))
        assert (row.requests, row.accesses) == (count.requests, count.lanes)
        if count.sectors is not None:
            assert row.sectors == count.sectors
        if count.wavefronts is not None:
            assert row.wavefronts == count.wavefronts
        if count.rounds is not None:
            assert seen.atomic_rounds[row.line, row.array] == count.rounds
    if case.branch_warps:
        (branch,) = [row for row in seen.divergence if row.line == case.branch_line]
        assert (branch.warps, branch.divided) == (case.branch_warps, case.divergent_warps)
