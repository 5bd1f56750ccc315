"""The kernels that the GPU tracer is tested against are right, and so are the faults and counts they claim.

Judges are a plain model of a GPU (gpu_kernels.oracle), thread by thread and in several orders of execution,
Numba's own simulator, and a GPU where there is one. All of it belongs to `make proof`.
"""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tools.looped import looped

TESTS = Path(__file__).parents[1]


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


def right():
    return correct() + disputed() + counted()


@cache  # several questions are asked of one launch; nothing changes the machine after it
def run(case, schedule="lockstep", seed=0):
    """Launch the case on the model and return the machine, and whether the result was right."""
    from gpu_kernels.case import SEED
    from gpu_kernels.oracle import Machine

    machine, args = Machine(schedule, seed), case.make_args(SEED)
    with np.errstate(all="ignore"):  # what was never written is nan
        machine.launch(case.kernel, case.griddim, case.blockdim, args, case.shared_bytes)
    try:
        case.check(args)
    except AssertionError:
        return machine, False
    return machine, True


# -- the model judges ----------------------------------------------------------------------------------------


@pytest.mark.slow
@looped("case", correct)
def test_right_kernels_have_no_hazard(case):
    for schedule in ("random", "lockstep"):
        machine, is_right = run(case, schedule)
        assert is_right, schedule
        assert machine.hazards == set(), schedule


@pytest.mark.slow
@looped("case", disputed)
def test_disputed_kernels_get_the_right_result_in_any_order(case):
    from gpu_kernels.oracle import SCHEDULES

    assert all(run(case, schedule)[1] for schedule in SCHEDULES)


@pytest.mark.slow
@looped("case", faults)
def test_the_fault_is_found_and_no_other(case):
    from gpu_kernels.oracle import SCHEDULES

    for schedule in SCHEDULES:
        hazards = run(case, schedule)[0].hazards
        lines = {line for h in hazards if h.kind == case.kind for line in (h.line, h.partner) if line}
        assert case.line in lines <= case.lines, schedule
        assert {hazard.kind for hazard in hazards} <= {case.kind} | case.may_also, schedule
    assert run(case)[1] == case.right_in_lockstep
    if case.kind == "race":
        orders = [(schedule, 0) for schedule in SCHEDULES] + [("random", seed) for seed in range(1, 9)]
        assert not all(run(case, *order)[1] for order in orders), "right in every order"


@pytest.mark.slow
@looped("case", counted)
def test_the_counts_are_those_of_the_model(case):
    machine, is_right = run(case)
    assert is_right
    assert machine.hazards == set()
    for count in case.counts:
        wanted = (count.array, count.kind, case.line_of(count))
        requests = [
            request
            for request in machine.requests.values()
            if (request.memory.name, request.kind, request.line) == wanted
        ]
        lanes = sum(len(request.offsets) for request in requests)
        assert (len(requests), lanes) == (count.requests, count.lanes)
        for quantity in ("sectors", "wavefronts", "rounds"):
            claimed = getattr(count, quantity)
            assert claimed in (None, sum(getattr(request, quantity) for request in requests)), quantity


def test_the_models_warp_operations():
    from gpu_kernels.oracle import warp_result

    lanes = {lane: (10 * lane, 3) for lane in range(32)}
    for operation, lane, wanted in (
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
    ):
        assert warp_result(operation, lane, lanes) == wanted, (operation, lane)


# -- Numba's simulator and a GPU judge -----------------------------------------------------------------------


@pytest.mark.slow
def test_numbas_simulator_gets_the_wanted_results():
    from gpu_kernels.simulate import simulated

    names = [case.name for case in simulated()]
    assert len(names) > 90
    done = subprocess.run(
        [sys.executable, "-m", "gpu_kernels.simulate"],
        env=os.environ | {"NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": str(TESTS)},
        input="\n".join(names),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    complaints = json.loads(done.stdout.splitlines()[-1])
    assert {name: complaints[name] for name in names if complaints[name] is not None} == {}


@pytest.mark.gpu
@looped("case", right)
def test_a_gpu_gets_the_wanted_result(case):
    from gpu_kernels.case import SEED
    from numba import cuda

    args = case.make_args(SEED)
    # One copy an array: where the case hands in an array twice, the kernel gets it twice.
    on_device = {id(arg): cuda.to_device(arg) for arg in args if isinstance(arg, np.ndarray)}
    case.kernel[case.griddim, case.blockdim, 0, case.shared_bytes](
        *(on_device.get(id(arg), arg) for arg in args)
    )
    cuda.synchronize()
    for arg in args:
        if isinstance(arg, np.ndarray):
            on_device[id(arg)].copy_to_host(arg)
    case.check(args)


# -- the cases themselves ------------------------------------------------------------------------------------


def test_the_check_of_a_result_sees_what_is_wrong():
    from gpu_kernels.case import SEED

    case = correct()[0]

    def added():
        args = case.make_args(SEED)
        args[2][:] = args[0] + args[1]
        return args

    case.check(added())
    with pytest.raises(AssertionError):
        case.check(added(), SEED + 1)
    for array, place in ((2, 76), (0, 3)):  # a wrong element, a changed input
        args = added()
        args[array][place] = 0
        with pytest.raises(AssertionError, match="vector add"):
            case.check(args)


def test_names_tell_the_cases_apart_and_marks_stand_in_the_kernels():
    from gpu_kernels.case import KINDS, marked_lines, plain

    names = [case.name for case in (*right(), *faults())]
    assert sorted(set(names)) == sorted(names)
    for case in faults():
        code = plain(case.marked or case.kernel).__code__
        text = Path(code.co_filename).read_text(encoding="utf-8").splitlines()
        assert case.kind in KINDS, case.name
        assert text[case.line - 1].endswith("# HAZARD"), case.name
        assert {line for *_, line in code.co_lines()} >= case.lines, case.name
    for case in counted():
        marked = set(marked_lines(case.kernel, "COUNT"))
        assert {case.line_of(count) for count in case.counts} == marked, case.name


def test_every_foreign_file_says_whose_it_is():
    for path in sorted((TESTS / "gpu_kernels" / "third_party").glob("[!_]*.py")):
        head = path.read_text(encoding="utf-8").partition("\nimport")[0]
        for word in ("# Repository: https://", "# Path: ", "# Version: ", "# Licence: ", "# Changed: "):
            assert word in head, path.name
        licence = head.partition("full text: ")[2].partition(".txt")[0]
        assert (path.parent / f"{licence}.txt").stat().st_size > 1000, path.name
