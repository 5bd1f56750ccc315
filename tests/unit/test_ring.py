"""The ring's protocol in many interleavings: it ends, nothing is read too early or overwritten."""

import pytest

from course_lib.simulators.ring import Ring, Wrong, _Barrier, run

SEEDS = range(60)


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
@pytest.mark.parametrize("blocks", [1, 2, 4])
@pytest.mark.parametrize("tiles", [(1,), (5,), (4, 4), (3, 0, 2, 7)], ids=str)
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


def test_a_block_alone_needs_no_meeting_at_the_end():
    ring = Ring(stages=2, tiles=(6,), meets_at_the_end=False, remote_reports=False)
    assert {run(ring, seed).problem for seed in SEEDS} == {None}


def test_the_same_seed_is_the_same_run():
    ring = Ring(stages=3, blocks=2, tiles=(4, 4))
    assert run(ring, 5) == run(ring, 5) and str(run(ring, 5)).startswith("done in ")
    assert len({run(ring, seed).steps for seed in SEEDS}) == 1  # every step is taken once, in whatever order


def test_a_run_that_takes_too_long_says_so():
    assert run(Ring(stages=1), most_steps=5).problem == "It did not end within 5 steps."


def test_a_phase_that_waits_for_bytes_takes_no_more_arrivals():
    barrier = _Barrier(arrivals=1)
    barrier.arrive(expected=1)
    with pytest.raises(Wrong, match="A barrier got more arrivals than its phase has"):
        barrier.arrive()
    barrier.deliver()
    assert barrier.phase == 1 and barrier.missing == 1


def test_numbers_that_make_no_sense_are_refused():
    for wrong in ({"stages": 0}, {"stages": True}, {"blocks": 1.5}, {"consumers": -1}):
        with pytest.raises(ValueError, match="must be a whole number above 0"):
            Ring(**{"stages": 1} | wrong)
    with pytest.raises(ValueError, match="tiles is"):
        Ring(1, tiles=(1, -1))
