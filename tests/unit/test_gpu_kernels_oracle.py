"""Right kernels are free of hazards, faulty ones have theirs and no other, counts are what is claimed.

Judged by a plain model of a GPU (gpu_kernels.oracle), thread by thread, in several orders of execution.
"""

from functools import cache

import numpy as np
import pytest
from gpu_kernels import correct, faulty, values
from gpu_kernels.case import SEED
from gpu_kernels.oracle import SCHEDULES, Machine, warp_result


def by_name(cases):
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


@cache  # several questions are asked of one launch; nothing changes the machine after it
def run(case, schedule="lockstep", seed=0):
    """Launch the case on the model and return the machine, and whether the result was right."""
    machine, args = Machine(schedule, seed), case.make_args(SEED)
    with np.errstate(all="ignore"):  # what was never written is nan
        machine.launch(case.kernel, case.griddim, case.blockdim, args, case.shared_bytes)
    try:
        case.check(args)
    except AssertionError:
        return machine, False
    return machine, True


def lines_of(machine, kind):
    """Return all lines that hazards of this kind name."""
    return {line for h in machine.hazards if h.kind == kind for line in (h.line, h.partner) if line}


# -- right kernels -------------------------------------------------------------------------------------------


@by_name(correct.CASES)
def test_right_kernels_have_no_hazard_in_any_order(case):
    assert_without_hazard(case, "random")


@pytest.mark.sample(4)
@by_name(correct.CASES)
def test_right_kernels_have_no_hazard_in_lockstep(case):
    assert_without_hazard(case, "lockstep")


def assert_without_hazard(case, schedule):
    machine, right = run(case, schedule)
    assert right
    assert machine.hazards == set()


@by_name(correct.DISPUTED)
def test_disputed_kernels_get_the_right_result_in_any_order(case):
    assert all(run(case, schedule)[1] for schedule in SCHEDULES)


# -- faulty kernels ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schedule", SCHEDULES)
@by_name(faulty.FAULTS)
def test_the_fault_is_found_and_no_other(case, schedule):
    machine, _ = run(case, schedule)
    assert case.line in lines_of(machine, case.kind) <= case.lines
    assert {hazard.kind for hazard in machine.hazards} <= {case.kind} | case.may_also


@by_name(faulty.FAULTS)
def test_a_right_result_in_lockstep_is_declared(case):
    assert run(case)[1] == case.right_in_lockstep


@by_name([case for case in faulty.FAULTS if case.kind == "race"])
def test_a_race_gives_a_wrong_result_in_some_order(case):
    orders = [(schedule, 0) for schedule in SCHEDULES] + [("random", seed) for seed in range(1, 9)]
    assert not all(run(case, *order)[1] for order in orders)


# -- counts --------------------------------------------------------------------------------------------------


@by_name(values.CASES + values.WIDE)
def test_the_counts_are_those_of_the_model(case):
    machine, right = run(case)
    assert right
    assert machine.hazards == set()
    for count in case.counts:
        found = [
            request
            for request in machine.requests.values()
            if (request.memory.name, request.kind, request.line)
            == (count.array, count.kind, case.line_of(count))
        ]
        assert (len(found), sum(len(request.offsets) for request in found)) == (count.requests, count.lanes)
        for quantity in ("sectors", "wavefronts", "rounds"):
            wanted = getattr(count, quantity)
            assert wanted in (None, sum(getattr(request, quantity) for request in found)), quantity


# -- the model itself ----------------------------------------------------------------------------------------

LANES = {lane: (10 * lane, 3) for lane in range(32)}


@pytest.mark.parametrize(
    ("operation", "lane", "wanted"),
    [
        ("shfl_sync", 9, 30),
        ("shfl_up_sync", 9, 60),
        ("shfl_up_sync", 2, 20),  # no lane three below: its own
        ("shfl_down_sync", 9, 120),
        ("shfl_down_sync", 30, 300),  # no lane three above: its own
        ("shfl_xor_sync", 9, 100),
        ("any_sync", 9, True),
        ("all_sync", 9, False),  # lane 0 votes 0
        ("ballot_sync", 9, 0xFFFFFFFE),
        ("match_any_sync", 9, 1 << 9),
    ],
)
def test_what_a_lane_gets(operation, lane, wanted):
    assert warp_result(operation, lane, LANES) == wanted
