"""The ring's protocol in many interleavings: it ends, nothing is read too early or overwritten."""

from tools.looped import looped

from course_lib.simulators.ring import Ring, run, trace

SEEDS = range(60)


@looped("stages", [1, 2, 3, 4])
@looped("blocks", [1, 2, 4])
@looped("tiles", [(1,), (5,), (4, 4), (3, 0, 2, 7)])
def test_it_ends_with_everything_right(stages, blocks, tiles):
    ring = Ring(stages, blocks, tiles)
    assert {run(ring, seed).problem for seed in SEEDS[:20]} == {None}


def problems(**leaves_out):
    ring = Ring(stages=2, blocks=2, tiles=(6,), **leaves_out)
    return [run(ring, seed).problem for seed in SEEDS]


def test_without_reports_to_the_other_block_a_stage_is_overwritten():
    found = [problem for problem in problems(remote_reports=False) if problem]
    assert len(found) > len(SEEDS) / 4
    assert any("was written while a warp read it" in problem for problem in found)
    assert any("wanted block" in problem for problem in found)


def test_without_the_flip_of_parity_nobody_knows_the_lap():
    found = [problem for problem in problems(flips=False) if problem]
    assert len(found) == len(SEEDS)


def test_who_ends_early_gets_signals_that_nobody_receives():
    found = [problem for problem in problems(meets_at_the_end=False) if problem]
    assert found and set(found) == {"A signal went to a block that had ended."}


# -- step by step ------------------------------------------------------------------------------------------


@looped("leaves_out", [{}, {"flips": False}, {"remote_reports": False}, {"meets_at_the_end": False}])
def test_a_trace_is_the_run_with_a_moment_for_every_step(leaves_out):
    ring = Ring(stages=2, blocks=2, tiles=(3, 2), **leaves_out)
    for seed in SEEDS[:10]:
        found = trace(ring, seed)
        assert found.outcome == run(ring, seed)
        assert len(found.moments) == found.outcome.steps + 1
