"""The view of a kernel's machine code: what it says, what it shows of which kind, and what when it cannot."""

import re
from dataclasses import replace

import numpy as np
import pytest
from numba import cuda

pytest.importorskip("ipywidgets")

from course_lib import views
from course_lib.circles import cuda_naive, cuda_tiled, cuda_warptiled
from course_lib.measure import code_listing, machine
from course_lib.measure.code_listing import Line
from course_lib.simulators.gpu import occupancy
from course_lib.views import kernel_code, kernel_code_page
from course_lib.views.paper import Html

WARPTILED = cuda_warptiled.kernel(cuda_warptiled.TILES[0])


@cuda.jit
def doubled(X):
    i = cuda.grid(1)
    X[i] = 2 * X[i]


@pytest.fixture(autouse=True)
def no_compiler(monkeypatch):
    monkeypatch.setattr(machine, "missing", lambda need: f"No {need} here.")


@pytest.fixture
def compiler(monkeypatch):
    """A compiler that finds what is shipped, with one register more; returns what it was asked for."""
    asked = []

    def compiled(kernel, args, cc, threads):
        asked.append((kernel, args, cc))
        return replace(
            code_listing.find(cuda_naive.naive, (9, 0)), registers=33, cc=cc, when="", threads=threads
        )

    monkeypatch.setattr(machine, "missing", lambda need: None)
    monkeypatch.setattr(kernel_code, "_compiled", compiled)
    return asked


def rows(html):
    """Return the cells of every instruction that is shown, without tags."""
    body = html[html.index("<tbody>", html.index('role="region"')) :]
    body = body[: body.index("</tbody>")]
    lines = re.findall(r"<tr.*?</tr>", body, re.S)
    return [[re.sub(r"<.*?>", "", cell) for cell in re.findall(r"<td.*?</td>", line)] for line in lines]


def test_a_rung_is_shown_as_it_was_compiled_elsewhere():
    shown = views.gpu_code(WARPTILED).static()
    listing = code_listing.find(WARPTILED, (9, 0))
    fmas, all_of_them = listing.kinds["FMA"], len(listing.loop)
    assert f"cuda_warptiled for compute capability 9.0: {fmas} of {all_of_them} instructions" in shown.text
    assert f"{listing.registers} registers a thread, nothing spilled" in shown.text
    fits = occupancy(None, 256, (9, 0), registers=listing.registers, shared_bytes=listing.shared_bytes)
    assert f"occupancy {100 * fits.occupancy:.0f} %: {fits.blocks_per_sm} blocks of 256" in shown.text
    assert f"Compiled on {listing.when[:10]} with numba-cuda" in shown.text and "not here" in shown.text
    assert shown.body.count("not here") == 1 and "Tile 128x128x8, 8x8 a thread" in shown.body


def test_every_instruction_has_a_sign_a_word_and_its_line():
    view = views.gpu_code(cuda_tiled.tiled)
    view.whole.value = True
    shown = rows(view.picture.value)
    listing = view.listing
    assert len(shown) == len(listing.loop)
    for (kind, text, _), line in zip(shown, listing.loop, strict=True):
        sign = kernel_code_page.LOOKS[line.kind][0]
        assert kind == sign + line.kind and text == line.text.replace(">", "&gt;")
    signs = [look[0] for look in kernel_code_page.LOOKS.values()]
    assert len(set(signs)) == len(signs)
    barrier = next(cells for cells in shown if "barrier" in cells[0])
    number, _, text = barrier[2].partition("&nbsp; ")
    with open(cuda_tiled.__file__, encoding="utf-8") as file:
        assert file.read().splitlines()[int(number) - 1].strip() == text.replace("&#x27;", "'")
    assert "cuda.syncthreads()" in text


def test_long_runs_are_shortened_and_counted():
    view = views.gpu_code(WARPTILED)
    shown = rows(view.frame())
    hidden = sum(int(m[1]) for cells in shown if (m := re.match(r"⋮ (\d+) more", cells[0])))
    lines = [cells for cells in shown if not cells[0].startswith("⋮")]
    assert hidden + len(lines) == len(view.listing.loop) and len(shown) < len(view.listing.loop) / 2
    assert sum("shared load" in cells[0] for cells in lines) == view.listing.kinds["shared load"]


def test_totals_add_up_to_a_turn():
    body = views.gpu_code(cuda_tiled.tiled).static().body
    table = body[body.index("<table") : body.index("</table>")]
    cells = [re.sub(r"<.*?>", "", cell) for cell in re.findall(r"<td.*?</td>", table)]
    counts, shares = cells[1::3], cells[2::3]
    listing = code_listing.find(cuda_tiled.tiled, (9, 0))
    assert sum(map(int, counts[:-1])) == int(counts[-1]) == len(listing.loop)
    assert sum(float(share.removesuffix(" %")) for share in shares[:-1]) == pytest.approx(100, abs=0.5)
    fma = cells.index("×+FMA")
    assert cells[fma + 1 : fma + 3] == ["32", f"{3200 / len(listing.loop):.1f} %"]


def test_the_choices_change_what_is_shown():
    view = views.gpu_code(cuda_tiled.tiled)
    view.only.value = "barrier"
    assert [cells[1] for cells in rows(view.picture.value)] == ["BAR.SYNC.DEFER_BLOCKING 0x0"] * 2
    view.language.value = "PTX"  # has barriers, too: the choice stays
    assert [cells[1] for cells in rows(view.picture.value)] == ["bar.sync 0"] * 2
    view.only.value = ""
    assert "fma.rn.f32" in view.picture.value and "whose totals stand above" in view.picture.value
    view.language.value = "SASS"
    view.cc.value = (8, 0)
    listing = code_listing.find(cuda_tiled.tiled, (8, 0))
    assert f"{listing.registers} registers" in view.picture.value and "capability 8.0" in view.picture.value
    assert [label for label, _ in view.cc.options] == ["8.0", "9.0"]


def test_a_kind_that_the_other_language_lacks_is_forgotten():
    view = views.gpu_code(cuda_naive.naive)
    view.only.value = "index"
    view._listing = lambda cc: replace(
        code_listing.find(cuda_naive.naive, cc), ptx=(Line("bar.sync 0", "barrier"),)
    )
    view.language.value = "PTX"
    assert view.only.value == "" and [cells[1] for cells in rows(view.picture.value)] == ["bar.sync 0"]


def test_a_page_can_be_read_and_scrolled_by_keyboard():
    body = views.gpu_code(cuda_tiled.tiled).static().body
    assert body.count('role="region" tabindex="0"') == 2 and body.count("<details") == 1
    assert 'role="figure" aria-label="tiled for compute capability 9.0: 32 of' in body
    assert body.count("<div") == body.count("</div>") and body.endswith("</div>")


def test_spills_are_said_and_edged():
    good = code_listing.find(cuda_naive.naive, (9, 0))
    spilling = replace(
        good,
        spill_store_bytes=8,
        spill_load_bytes=4,
        stack_bytes=16,
        loop=(Line("LDL R1, [R1]", "local memory"), *good.loop),
    )
    shown = kernel_code_page.still(cuda_naive.naive, spilling)
    assert "12 bytes spilled" in shown.text and "1 go to local memory" in shown.text
    assert "16 bytes of local memory a thread" in shown.text
    assert shown.body.count("outline:1.5px dashed") == 2  # in the totals and in the listing
    assert "dashed" not in kernel_code_page.still(cuda_naive.naive, good).body


def test_without_the_compiler_other_kernels_are_one_sentence():
    X = np.ones(8, np.float32)
    shown = views.gpu_code(doubled, X)
    assert isinstance(shown, Html) and shown.text == "No cubin here."
    A = np.ones((4, 4))
    assert views.gpu_code(cuda_naive.naive, A, A, A).text == "No cubin here."  # float64: another code
    assert views.gpu_code(cuda_naive.naive, cc=(8, 6)).text == (
        "The course brings naive for compute capability 8.0 and 9.0, not for 8.6. No cubin here."
    )
    A = A.astype(np.float32)
    assert "of 31 instructions" in views.gpu_code(cuda_naive.naive, A, A, A, cc=(8, 0)).static().text


def test_with_the_compiler_it_is_compiled_here(compiler):
    view = views.gpu_code(cuda_naive.naive, cc=(8, 9))
    assert compiler == [(cuda_naive.naive, (), (8, 9))]
    assert "33 registers" in view.static().text and "Compiled here with" in view.static().text
    view.cc.value = (7, 5)
    view.whole.value = True
    assert [cc for _, _, cc in compiler] == [(8, 9), (7, 5)]  # once each
    X = np.ones(8, np.float32)
    assert "occupancy: say block=" in views.gpu_code(doubled, X).static().text
    assert "blocks of 128 threads" in views.gpu_code(doubled, X, block=(64, 2)).static().text
    with pytest.raises(ValueError, match=r"gives? examples, gpu_code\(doubled, A, B, C\)\."):
        views.gpu_code(doubled)


def test_what_is_no_kernel_is_refused():
    with pytest.raises(TypeError, match=r"a function with @cuda\.jit is needed"):
        views.gpu_code(len)
