"""The tasks without points: their solutions, typical faults, and what cannot be judged here."""

import json
import re
import signal
from pathlib import Path

import pytest

from course_lib.fp8.choice import candidates
from course_lib.grading import optional
from course_lib.grading.optional import loops
from course_lib.grading.optional.kernel_text import NAMES, with_loops
from course_lib.grading.report import NOT_STARTED, PARTLY, RIGHT, WRONG
from course_lib.measure import machine

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "10_fp8_hopper_gemm"


def answers(folder: str) -> dict[str, object]:
    """Return the functions of the optional cells, from the solutions or the released exercises."""
    notebook = json.loads((ROOT / folder / FOLDER / f"{FOLDER}.ipynb").read_text(encoding="utf-8"))
    space = {}
    for cell in notebook["cells"]:
        if cell["id"] in ("optional-loops-fetch", "optional-loops-multiply", "optional-tile-answer"):
            exec("".join(cell["source"]), space)
    return space


SOLVED = answers("solutions")
FETCH, MULTIPLY = SOLVED["fetch"](), SOLVED["multiply"]()

# -- two loops ---------------------------------------------------------------------------------------------


@pytest.mark.needs("c++ compiler")
def test_the_solution_is_right_and_a_class_is_told_what_was_run():
    report = loops.judged(SOLVED["fetch"], SOLVED["multiply"])
    assert report.state == RIGHT and report.score == "optional"
    assert "On the model of Hopper: 3 products, 4 orders" in str(report)
    assert ("takes it for sm_90a" in str(report)) == (machine.missing("nvrtc") is None)
    assert "Not run on a GPU" in str(report) or "On the GPU: 4 products" in str(report)


#: Faults of the two loops: the loop, what is changed in it, and what the model of Hopper says of it.
ARRIVES = "if (block > 0 && lane == 0) barrier_arrive(&empty[(block - 1) % STAGES]);"
WAITS = "barrier_wait(&full[block % STAGES], block / STAGES & 1);"
PRODUCT = "wgmma_k32(d, a + k * NEXT_STEP, b + k * NEXT_STEP, 1);"
COMMIT = "wgmma_commit();"
FAULTS = (
    ("fetch", "~(block", "(block", "Everybody waits. Look at the parities"),
    ("multiply", COMMIT, f"{COMMIT} d[0] += 1;", "touched while products were in flight"),
    # those of every run end here: nobody goes on, and the result is wrong
    ("fetch", "A_BYTES + B_BYTES", "A_BYTES", "128 x 128 x 128, tiles of 128 x 128: "),
    ("fetch", "block * BK, m0", "m0, block * BK", "expected"),
    (
        "multiply",
        ARRIVES,
        ARRIVES.replace("block > 0 && ", "").replace("(block - 1)", "block"),
        "product read it",
    ),
    ("multiply", ARRIVES, "", "Everybody waits."),
    ("fetch", "barrier_wait(&empty[stage], ~(block / STAGES) & 1);", "", "written while a product read it"),
    ("multiply", " && lane == 0", "", "64 x 128 x 2064, tiles of 128 x 128: "),
    ("multiply", "wgmma_wait<0>();", "", "while its products were in flight"),
    ("multiply", WAITS, "", "128 x 128 x 128, tiles of 128 x 128: "),
    ("multiply", COMMIT, "", "never committed. `wgmma_commit()` comes after"),
    ("multiply", "a + k * NEXT_STEP", "a", "elements are wrong; at [0, 0] yours is"),
    ("multiply", PRODUCT, ";", "elements are wrong"),
    ("multiply", "wgmma_fence();", "", "before the first `wgmma_k32`"),
)


@pytest.mark.needs("c++ compiler")
@pytest.mark.parametrize("faults", [FAULTS[:2], pytest.param(FAULTS[2:], marks=pytest.mark.slow)])
def test_the_model_finds_faults_and_says_where_to_look(faults):
    from course_lib.grading.optional import loops_child

    for part, there, instead, words in faults:
        texts = {"fetch": FETCH, "multiply": MULTIPLY}
        assert there in texts[part], there
        texts[part] = texts[part].replace(there, instead)
        right, says = loops_child.on_model(with_loops(**texts))
        assert right is False and words in says, f"{there} -> {instead}\n{says}"
        assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)  # it would end whoever asked, a minute later


@pytest.mark.needs("nvrtc")
def test_nvidias_compiler_has_its_say():
    from course_lib.grading.optional import loops_child

    for part, there, instead, words in (
        ("fetch", "barrier_wait", "barier_wait", "refuses fetch, line 4: identifier"),
        ("multiply", "wgmma_wait<0>();", "", r"accumulator is read too early.*C7517"),
    ):
        texts = {"fetch": FETCH, "multiply": MULTIPLY}
        texts[part] = texts[part].replace(there, instead)
        right, says = loops_child.compiled(with_loops(**texts))
        assert right is False and re.search(words, says), part


#: Other ways to write the second loop, with what is left in flight.
OTHERS = {
    "a lap that is counted, two products in flight": """
        int stage = 0, lap = 0;
        for (int block = 0; block < blocks; ++block) {
          if (lane == 0) barrier_wait(&full[stage], lap);
          __syncwarp();
          u64 a = descriptor_of(a_tiles + stage * A_BYTES + group * 64 * BK);
          u64 b = descriptor_of(b_tiles + stage * B_BYTES);
          wgmma_fence();
          for (int k = 0; k < 4; ++k) wgmma_k32(d, a + k * NEXT_STEP, b + k * NEXT_STEP, 1);
          wgmma_commit();
          constexpr int AHEAD = 2;
          wgmma_wait<AHEAD>();
          if (block >= AHEAD && elect_one()) barrier_arrive(&empty[(block - AHEAD) % STAGES]);
          if (++stage == STAGES) stage = 0, lap ^= 1;
        }
        wgmma_wait<0>();
    """,
    "none in flight": MULTIPLY.replace("wgmma_wait<1>();", "wgmma_wait<0>(); // not wgmma_wait<1>();"),
}


@pytest.mark.needs("c++ compiler")
def test_other_loops_are_right_and_the_model_sees_what_is_in_flight():
    from course_lib.grading.optional import loops_child

    for name, multiply in OTHERS.items():
        right, _says, overlaps = loops_child.on_model(with_loops(FETCH, multiply))
        assert right and overlaps == (name != "none in flight")


def test_without_torch_nothing_can_be_said(monkeypatch):
    real = machine.missing
    monkeypatch.setattr(machine, "missing", lambda need: "No torch." if need == "torch" else real(need))
    for report in (loops.judged(FETCH, MULTIPLY), optional.check_tile(lambda M, N, K: (64, 16, 1))):
        assert report.state == PARTLY and "No torch." in str(report)


def steps(monkeypatch, *told, end=""):
    monkeypatch.setattr(
        loops, "_tried", lambda *_: ([{"step": s, "right": r, "says": t} for s, r, t in told], end)
    )


def test_right_is_what_has_run_and_leaves_a_product_in_flight(monkeypatch):
    steps(monkeypatch, ("compiler", True, "taken"), ("model", None, "no model"), ("gpu", True, "all right"))
    assert loops.judged(FETCH, MULTIPLY).state == RIGHT
    waiting = loops.judged(FETCH, MULTIPLY.replace("<1>", "<0>"))
    assert waiting.state == PARTLY and "no product begins while another is in flight" in str(waiting)
    steps(monkeypatch, ("compiler", True, "taken"), ("model", None, "no model"), ("gpu", None, "no GPU"))
    unknown = loops.judged(FETCH, MULTIPLY)
    assert unknown.state == PARTLY and "they have not run" in str(unknown)
    steps(monkeypatch, ("compiler", True, "taken"), ("model", False, "Everybody waits."))
    wrong = loops.judged(FETCH, MULTIPLY)
    assert wrong.state == WRONG and wrong.lines == ("Everybody waits.",)


def test_a_process_that_does_not_come_back_costs_nothing(monkeypatch):
    monkeypatch.setattr(loops, "_child", lambda: [loops.sys.executable, "-c", "while True: pass"])
    assert "not done after 1 s" in str(loops.judged(FETCH, MULTIPLY, limit_s=1))
    crash = (
        'print(\'{"step": "compiler", "right": true, "says": "taken"}\', flush=True)\nimport os\nos.abort()'
    )
    monkeypatch.setattr(loops, "_child", lambda: [loops.sys.executable, "-c", crash])
    report = loops.judged(FETCH, MULTIPLY)
    assert report.state == WRONG and "signal 6" in report.lines[0] and len(report.lines) == 1
    forever = "import signal\nsignal.alarm(1)\nwhile True: pass"
    monkeypatch.setattr(loops, "_child", lambda: [loops.sys.executable, "-c", forever])
    assert "did not come to an end" in str(loops.judged(FETCH, MULTIPLY))
    hangs = (
        "import sys; sys.exit('The GPU was not done after 120 s, so a kernel may hang: this process ends.')"
    )
    monkeypatch.setattr(loops, "_child", lambda: [loops.sys.executable, "-c", hangs])
    assert "a kernel may hang" in str(loops.judged(FETCH, MULTIPLY))


def test_what_is_no_loop_is_one_sentence(monkeypatch):
    steps(monkeypatch, ("model", True, "fine"))
    assert loops.judged(FETCH + "// }", MULTIPLY).state == RIGHT
    for text, words in (
        (lambda: 1 // 0, "fetch() raised ZeroDivisionError"),
        (FETCH.rstrip().removesuffix("}"), "fetch has 1 opening braces and 0 closing ones"),
        ("for (;;) \0;", "characters that no compiler takes"),
        ("\ud800", "characters that no compiler takes"),
    ):
        report = loops.judged(text, MULTIPLY)
        assert report.state == WRONG and words in str(report), words


def test_what_is_no_text_is_refused():
    with pytest.raises(TypeError, match="fetch gives int, but it must give a text"):
        loops.judged(3, MULTIPLY)
    with pytest.raises(TypeError, match="multiply gives NoneType"):
        loops.judged(FETCH, lambda: None)


# -- a tile ------------------------------------------------------------------------------------------------


def test_without_a_gpu_the_model_has_its_say_and_nobody_is_right(monkeypatch):
    from course_lib.fp8 import launch
    from course_lib.grading.optional import tile

    monkeypatch.setattr(launch, "missing_here", lambda: "There is no GPU.")
    report = tile.judged(SOLVED["own_tile"])
    assert report.state == PARTLY and len(report.lines) == len(tile.SHAPES)
    assert "Nothing was measured" in str(report) and "There is no GPU." in str(report)
    assert "on an H200 the model expects" in report.lines[0]


def test_with_a_gpu_it_is_measured_beside_the_favourites(monkeypatch):
    from course_lib.fp8 import launch, searching
    from course_lib.grading.optional import tile

    monkeypatch.setattr(launch, "missing_here", lambda: None)
    for times_as_long, state in ((1.02, RIGHT), (1.05, PARTLY), (0.9, RIGHT)):

        def here(M, N, K, more, times_as_long=times_as_long):
            seconds = dict.fromkeys(candidates(M, N, K)[:8], 1e-3)
            seconds[more[0]] = 1e-3 * times_as_long
            return dict(sorted(seconds.items(), key=lambda pair: pair[1]))

        monkeypatch.setattr(searching, "here", here)
        report = tile.judged(lambda M, N, K: (64, 16, 1))
        assert report.state == state, times_as_long
        assert f"yours, v6_tuned 64x16, {1000 * times_as_long:.0f} us; the fastest of 9" in report.lines[0]


def test_what_is_no_tile_is_one_sentence():
    from course_lib.grading.optional import tile

    for answer, words in (
        (lambda M, N, K: (256, 192, 2), "needs 288 accumulators"),
        (lambda M, N, K: (100, 128, 1), "a block computes 64, 128 or 256 rows"),
        (
            lambda M, N, K: (128, 128),
            "gave (128, 128), which is no tile (BM, BN, cluster): three whole numbers",
        ),
        (lambda M, N, K: (128.9, 160.7, 2.2), "three whole numbers"),
        (lambda M, N, K: "abc", "three whole numbers"),
        (lambda M, N, K: None, "three whole numbers"),
        (lambda M, N, K: 1 // 0, "raised ZeroDivisionError"),
        (lambda M: (64, 16, 1), "raised TypeError"),
    ):
        report = tile.judged(answer)
        assert report.state == WRONG and words in str(report) and len(report.lines) == 1, words


# -- as it is handed out -----------------------------------------------------------------------------------


def test_handed_out_nothing_is_started(capsys):
    given = answers("exercises")
    assert optional.check_loops(given["fetch"], given["multiply"]).state == NOT_STARTED
    assert optional.check_tile(given["own_tile"]).state == NOT_STARTED
    assert capsys.readouterr().out.count("Not started") == len(NAMES)
