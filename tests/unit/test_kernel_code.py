"""The view of a kernel's machine code: what it says, what it shows of which kind, and what when it cannot."""

import re
from dataclasses import replace

import numpy as np
import pytest

from course_lib import views


@pytest.fixture(scope="module")
def rungs():
    """The course's kernels by name; numba is imported with them."""
    from course_lib.circles import cuda_naive, cuda_tiled, cuda_warptiled

    warptiled = cuda_warptiled.kernel(cuda_warptiled.TILES[0])
    return {"naive": cuda_naive.naive, "tiled": cuda_tiled.tiled, "warptiled": warptiled}


@pytest.fixture(scope="module")
def doubled():
    from numba import cuda

    @cuda.jit
    def doubled(X):
        i = cuda.grid(1)
        X[i] = 2 * X[i]

    return doubled


@pytest.fixture(autouse=True)
def no_compiler(monkeypatch):
    from course_lib.measure import machine

    monkeypatch.setattr(machine, "missing", lambda need: f"No {need} here.")


def shipped(kernel, cc=(9, 0)):
    from course_lib.measure import code_listing

    return code_listing.find(kernel, cc)


def rows(html):
    """Return the cells of every instruction that is shown, without tags."""
    body = html[html.index("<tbody>", html.index('role="region"')) :]
    body = body[: body.index("</tbody>")]
    lines = re.findall(r"<tr.*?</tr>", body, re.S)
    return [[re.sub(r"<.*?>", "", cell) for cell in re.findall(r"<td.*?</td>", line)] for line in lines]


def test_a_rung_is_shown_as_it_was_compiled_elsewhere(rungs):
    from course_lib.simulators.gpu import occupancy

    shown, listing = views.gpu_code(rungs["warptiled"]).static(), shipped(rungs["warptiled"])
    fmas, all_of_them = listing.kinds["FMA"], len(listing.loop)
    assert f"cuda_warptiled for compute capability 9.0: {fmas} of {all_of_them} instructions" in shown.text
    assert f"{listing.registers} registers a thread, nothing spilled" in shown.text
    fits = occupancy(None, 256, (9, 0), registers=listing.registers, shared_bytes=listing.shared_bytes)
    assert f"occupancy {100 * fits.occupancy:.0f} %: {fits.blocks_per_sm} blocks of 256" in shown.text
    assert f"Compiled on {listing.when[:10]} with numba-cuda" in shown.text and "not here" in shown.text
    assert shown.body.count('role="region" tabindex="0"') == 2  # scrolled by keyboard


def test_every_instruction_has_a_sign_a_word_and_its_line(rungs):
    from course_lib.circles import cuda_tiled
    from course_lib.views.kernel_code import LOOKS

    view = views.gpu_code(rungs["tiled"])
    view.whole.value = True
    shown, listing = rows(view.picture.value), view.listing
    assert len(shown) == len(listing.loop)
    for (kind, text, _), line in zip(shown, listing.lines("SASS"), strict=True):
        assert kind == LOOKS[line.kind][0] + line.kind and text == line.text.replace(">", "&gt;")
    barrier = next(cells for cells in shown if "barrier" in cells[0])
    number, _, text = barrier[2].partition("&nbsp; ")
    with open(cuda_tiled.__file__, encoding="utf-8") as file:
        assert file.read().splitlines()[int(number) - 1].strip() == text
    assert text.startswith("cuda.syncthreads()")


def test_the_choices_change_what_is_shown(rungs):
    view = views.gpu_code(rungs["tiled"])
    view.only.value = "barrier"
    assert [cells[1] for cells in rows(view.picture.value)] == ["BAR.SYNC.DEFER_BLOCKING 0x0"] * 2
    view.language.value = "PTX"  # has barriers, too: the choice stays
    assert [cells[1] for cells in rows(view.picture.value)] == ["bar.sync 0"] * 2
    view.language.value = "SASS"
    view.cc.value = (8, 0)
    registers = shipped(rungs["tiled"], (8, 0)).registers
    assert f"{registers} registers" in view.picture.value and "capability 8.0" in view.picture.value


def test_without_the_compiler_other_kernels_are_one_sentence(rungs, doubled):
    naive, A = rungs["naive"], np.ones((4, 4))
    assert views.gpu_code(doubled, np.ones(8, np.float32)).text == "No cubin here."
    assert views.gpu_code(naive, A, A, A).text == "No cubin here."  # float64: another code
    A = A.astype(np.float32)
    assert "of 29 instructions" in views.gpu_code(naive, A, A, A).static().text


def test_with_the_compiler_it_is_compiled_here(monkeypatch, rungs, doubled):
    from course_lib.measure import machine
    from course_lib.views import kernel_code

    def compiled(kernel, args, cc, threads):
        return replace(shipped(rungs["naive"]), registers=33, cc=cc, when="", threads=threads)

    monkeypatch.setattr(machine, "missing", lambda need: None)
    monkeypatch.setattr(kernel_code, "_compiled", compiled)
    view = views.gpu_code(rungs["naive"])
    view.cc.value = (8, 9)
    here = view.static().text
    assert "33 registers" in here and "Compiled here with" in here and "capability 8.9" in here
    X = np.ones(8, np.float32)
    assert "occupancy: say block=" in views.gpu_code(doubled, X).static().text
    assert "blocks of 128 threads" in views.gpu_code(doubled, X, block=(64, 2)).static().text
    with pytest.raises(ValueError, match=r"gives? examples, gpu_code\(doubled, A, B, C\)\."):
        views.gpu_code(doubled)
