"""Kernels with known results, faults and counts (tests/gpu_kernels) under the GPU tracer.

That the cases themselves are right is judged by Numba's own simulator (`make proof`) and by a GPU where there
is one.
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


@cache
def cases(*files):
    from gpu_kernels.case import read

    return [case for file in files for case in read(f"{file}.txt")]


def correct():
    return [case for case in cases("own", "foreign") if not case.disputed]


def disputed():
    return [case for case in cases("own", "foreign") if case.disputed]


def faults():
    return cases("faulty")


def counted():
    return cases("counted")


def traced(case):
    from gpu_kernels.case import SEED

    from course_lib.simulators.gpu import trace

    arguments = case.make_args(SEED)
    seen = trace(case.kernel, case.griddim, case.blockdim, *arguments, shared_bytes=case.shared_bytes)
    return seen, arguments


def test_there_are_as_many_cases_as_the_course_claims():
    from gpu_kernels.case import KINDS

    assert (len(correct()), len(disputed()), len(faults()), len(counted())) == (79, 5, 41, 36)
    names = [case.name for case in (*correct(), *disputed(), *faults(), *counted())]
    assert sorted(set(names)) == sorted(names)
    assert {case.kind for case in faults()} == set(KINDS)


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
    assert case.kind in kinds <= {case.kind, *case.may_also}
    lines = case.marks["HAZARD"] | case.marks["PARTNER"]
    assert lines & {hazard.line for hazard in seen.hazards if hazard.kind == case.kind}
    within_a_block = all(hazard.other_block in (None, hazard.block) for hazard in seen.hazards)
    if not case.wrong_in_lockstep and within_a_block:  # nothing is to be seen in the result
        case.check(arguments)


@looped("case", disputed)
def test_what_works_though_a_strict_reading_forbids_it(case):
    _, arguments = traced(case)
    case.check(arguments)


def check_counts(case, seen):
    for array, kind, wanted in case.counts:
        row = seen.row(array, kind)
        assert row.line in case.marks["COUNT"]
        rounds = seen.atomic_rounds[row.line, row.array] if kind == "atomic" else 0
        found = {"requests": row.requests, "lanes": row.accesses, "rounds": rounds}
        cost = "sectors" if row.space == "global" else "wavefronts"
        assert wanted.items() <= (found | {cost: getattr(row, cost)}).items(), (array, kind)
    if case.branch:
        (branch,) = [row for row in seen.divergence if row.line in case.marks["BRANCH"]]
        assert (branch.warps, branch.divided) == case.branch


@looped("case", counted)
def test_counts_are_those_derived_by_hand(case):
    seen, arguments = traced(case)
    case.check(arguments)
    assert seen.hazards == [] and case.counts
    check_counts(case, seen)


@looped("case", lambda: cases("small"))
def test_small_kernels_do_and_show_what_is_said_of_them(case):
    seen, arguments = traced(case)
    case.check(arguments)
    check_counts(case, seen)
    assert {hazard.line for hazard in seen.hazards} == (case.marks["HAZARD"] if case.finds else set())
    for found, wanted in ((seen.hazards, case.finds), (seen.remarks, case.remarks)):
        assert len(found) == len(wanted), found
        for hazard, fields in zip(found, wanted, strict=True):
            assert fields.items() <= (vars(hazard) | {"threads": hazard.threads[0]}).items(), hazard
    for words in case.says:
        assert words in str(seen.report()), words


# -- Numba's simulator and a GPU judge -----------------------------------------------------------------------


@pytest.mark.slow
def test_numbas_simulator_gets_the_wanted_results():
    done = subprocess.run(
        [sys.executable, "-m", "gpu_kernels.simulate"],
        env=os.environ | {"NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    complaints = json.loads(done.stdout.splitlines()[-1])
    assert len(complaints) > 90
    assert {name: said for name, said in complaints.items() if said} == {}


@pytest.mark.gpu
@looped("case", lambda: [*correct(), *disputed(), *counted()])
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


def test_every_foreign_kernel_says_whose_it_is():
    text = (TESTS / "gpu_kernels" / "foreign.txt").read_text(encoding="utf-8")
    licences = {
        word.rpartition("/")[2] for word in text.replace(")", " ").split() if word.startswith("licences/")
    }
    for repository in text.split("# Repository: ")[1:]:
        assert repository.startswith("https://") and "# Licence: " in repository and "# Path: " in repository
    folder = TESTS / "gpu_kernels" / "licences"
    assert {path.name for path in folder.iterdir()} == {word.rstrip(".") for word in licences} - {""}
