"""The kernels that the GPU tracer is tested against are right: numba's simulator (and a GPU) say so."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from gpu_kernels import correct, faulty, values
from gpu_kernels.case import KINDS, SEED, Case, marked_lines, plain
from gpu_kernels.own import elementwise
from gpu_kernels.simulate import simulated

TESTS = Path(__file__).parents[1]
RIGHT = correct.CASES + correct.DISPUTED + values.CASES + values.WIDE


def by_name(cases):
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


@pytest.fixture(scope="session")
def complaints(request):
    """What numba's simulator, in a process of its own, found wrong with each case that is asked about."""
    asked = [item.callspec.params["case"].name for item in request.session.items if asks(item)]
    done = subprocess.run(
        [sys.executable, "-m", "gpu_kernels.simulate"],
        env=os.environ | {"NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": str(TESTS)},
        input="\n".join(asked),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def asks(item):
    return getattr(item, "originalname", None) == "test_numbas_simulator_gets_the_wanted_result"


@pytest.mark.sample(6)
@by_name(simulated())
def test_numbas_simulator_gets_the_wanted_result(case, complaints):
    assert complaints[case.name] is None


def test_most_cases_are_simulated():
    assert len(simulated()) > 90


# -- the check itself ----------------------------------------------------------------------------------------


def vector_add() -> tuple[Case, tuple]:
    case = correct.CASES[0]
    args = case.make_args(SEED)
    args[2][:] = args[0] + args[1]
    return case, args


def test_a_right_result_passes():
    case, args = vector_add()
    case.check(args)


@pytest.mark.parametrize("spoil", [lambda a, b, c: c.__setitem__(76, 0), lambda a, b, c: a.__setitem__(3, 0)])
def test_a_wrong_element_and_a_changed_input_are_seen(spoil):
    case, args = vector_add()
    spoil(*args)
    with pytest.raises(AssertionError, match="vector add"):
        case.check(args)


def test_a_result_of_another_seed_is_wrong():
    case, args = vector_add()
    with pytest.raises(AssertionError):
        case.check(args, SEED + 1)


def test_names_tell_the_cases_apart():
    names = [case.name for case in (*RIGHT, *faulty.FAULTS)]
    assert sorted(set(names)) == sorted(names)


# -- marks ---------------------------------------------------------------------------------------------------


@by_name(faulty.FAULTS)
def test_the_marked_line_is_in_the_kernel(case):
    code = plain(case.marked or case.kernel).__code__
    text = Path(code.co_filename).read_text(encoding="utf-8").splitlines()
    assert case.kind in KINDS
    assert text[case.line - 1].endswith("# HAZARD")
    assert {line for *_, line in code.co_lines()} >= case.lines


@by_name(values.CASES + values.WIDE)
def test_every_counted_line_is_counted(case):
    assert {case.line_of(count) for count in case.counts} == set(marked_lines(case.kernel, "COUNT"))


def test_a_kernel_without_marks_has_no_marked_lines():
    assert marked_lines(elementwise.saxpy, "HAZARD") == ()


# -- what others wrote ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", sorted((TESTS / "gpu_kernels" / "third_party").glob("[!_]*.py")), ids=lambda p: p.stem
)
def test_every_foreign_file_says_whose_it_is(path):
    head = path.read_text(encoding="utf-8").partition("\nimport")[0]
    for word in ("# Repository: https://", "# Path: ", "# Version: ", "# Licence: ", "# Changed: "):
        assert word in head
    licence = head.partition("full text: ")[2].partition(".txt")[0]
    assert (path.parent / f"{licence}.txt").stat().st_size > 1000


# -- on a GPU ------------------------------------------------------------------------------------------------


@pytest.mark.gpu
@by_name(RIGHT)
def test_a_gpu_gets_the_wanted_result(case):
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
