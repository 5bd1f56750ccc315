"""Kernels with known results, faults and counts (tests/gpu_kernels) under the GPU tracer.

That the cases themselves are right belongs to `make proof`. Judges are a plain model of a GPU
(gpu_kernels.oracle), thread by thread and in several orders of execution, Numba's own simulator, and a GPU
where there is one.
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


def right():
    return correct() + disputed() + counted()


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
    if not case.wrong_in_lockstep and within_a_block:  # nothing is to be seen in the result
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


# -- the model judges ----------------------------------------------------------------------------------------


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


@pytest.mark.slow
@looped("case", lambda: correct() + counted())
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
    assert run(case)[1] != case.wrong_in_lockstep
    if case.kind == "race":
        orders = [(schedule, 0) for schedule in SCHEDULES] + [("random", seed) for seed in range(1, 9)]
        assert not all(run(case, *order)[1] for order in orders), "right in every order"


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
