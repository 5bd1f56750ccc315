"""What the CUDA rungs are compiled to, as it is shipped: of the present text, and what the compiler says."""

import importlib.util
import json
from dataclasses import replace

import pytest

from course_lib.measure import code_listing
from course_lib.measure.code_listing import fingerprint
from course_lib.measure.recording_files import MalformedRecording


def imports():
    global cuda_tiled, record_code, SUBJECTS, CASES
    from course_lib.circles import cuda_tiled
    from course_lib.commands import record_code

    SUBJECTS = list(record_code.subjects())
    CASES = [(subject, cc) for subject in SUBJECTS for cc in record_code.ARCHITECTURES]


def test_a_listing_of_the_present_text_is_shipped():
    for subject, cc in CASES:
        found = code_listing.find(subject.kernel, cc)
        assert found, f"{subject.rung} was changed: run `python -m course_lib record --code` with .[cubin]"
        case = (subject.rung, cc)
        assert (found.rung, found.tile, found.threads) == (subject.rung, subject.tile, subject.threads), case
        assert found.spilled_bytes == found.stack_bytes == 0 and 16 <= found.registers <= 128, case
        assert found.kinds["FMA"] >= 4 and sum(line.kind == "FMA" for line in found.lines("PTX")) >= 4, case
        assert "not here" in found.origin and found.versions["nvidia-nvvm"] in found.origin, case
    assert len(code_listing.shipped()) == len(CASES)  # no file is left over


@pytest.mark.needs("cubin")
def test_the_same_compiler_makes_the_same():
    for subject, cc in CASES:
        shipped = code_listing.find(subject.kernel, cc)
        fresh = record_code.compiled(subject, cc)
        if fresh.versions != shipped.versions:
            pytest.skip(f"compiled with {dict(shipped.versions)}, here is {dict(fresh.versions)}")
        assert replace(fresh, when=shipped.when, commit=shipped.commit) == shipped, (subject, cc)


def test_instructions_stand_at_their_lines():
    listing = code_listing.find(cuda_tiled.tiled, (9, 0))
    import inspect

    lines = inspect.getsource(cuda_tiled.tiled.py_func).splitlines()
    at = {
        kind: {lines[line.source].strip() for line in listing.lines("SASS") if line.kind == kind}
        for kind in listing.kinds
    }
    assert at["FMA"] == at["shared load"] == {"total += a[row, k] * b[k, column]"}
    assert {text.partition("  #")[0] for text in at["barrier"]} == {"cuda.syncthreads()"}
    assert all(" = element(" in text for text in at["global load"])
    assert listing.kinds == {
        **dict.fromkeys(("global load", "shared store", "barrier"), 2),
        "FMA": 32,
        "shared load": 40,  # 32 of b, and 8 of four numbers each of a
        "index": listing.kinds["index"],
        "control": listing.kinds["control"],
    }
    assert listing.fma_share == 32 / len(listing.loop)


# -- the fingerprint ---------------------------------------------------------------------------------------

MODULE = """
from numba import cuda, float32

SIDE = 32


@cuda.jit(device=True)
def twice(x):
    return 2 * x


@cuda.jit
def scale(X):
    i = cuda.threadIdx.x
    if i < SIDE:
        X[i] = twice(X[i])
"""


def test_what_a_kernel_is_made_of_is_in_its_fingerprint(tmp_path):
    for old, new, is_another in [
        ("", "", False),
        ("SIDE = 32", "SIDE = 64", True),
        ("return 2 * x", "return 3 * x", True),
        ("i < SIDE", "i <= SIDE", True),
        ("@cuda.jit\n", "@cuda.jit(fastmath=True)\n", True),
        ("\nSIDE", "\n\n# further down\nSIDE", False),
    ]:
        made = []
        for text in (MODULE, MODULE.replace(old, new)):
            name = f"kernel_{len(list(tmp_path.iterdir()))}"
            file = tmp_path / f"{name}.py"
            file.write_text(text)
            spec = importlib.util.spec_from_file_location(name, file)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            made.append(fingerprint(module.scale))
        assert (made[0] != made[1]) == is_another, old


# -- files -------------------------------------------------------------------------------------------------


def test_what_is_written_can_be_read_and_what_is_malformed_is_refused(tmp_path):
    shipped = code_listing.FOLDER / "cuda-2d.json"
    listings = code_listing.FILES.read(shipped).listings
    path = code_listing.write(list(listings), tmp_path)
    assert code_listing.shipped(tmp_path) == listings and path.read_text() == shipped.read_text()
    text = path.read_text()
    names = ("listings", *json.loads(text)["listings"][0])
    bad = [
        ('"loop": [', f'"loop": [{line},', "loop, no. 1' is .* a tab") for line in ('"x\\tFFMA R1"', '"5"')
    ]
    bad += [('"threads": ', '"threads": null, "x": ', "threads' is None")]
    for old, new, words in bad + [(f'"{name}"', '"x"', f"{name}' is missing") for name in names]:
        path.write_text(text.replace(old, new))
        code_listing.shipped.cache_clear()
        with pytest.raises(MalformedRecording, match=f"^cuda-2d.json is no recording: .*{words}.*--code`.$"):
            code_listing.shipped(tmp_path)
