"""The ring's protocol in many interleavings: it ends, nothing is read too early or overwritten."""

from itertools import pairwise

import pytest
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


def test_a_block_alone_needs_no_meeting_at_the_end():
    ring = Ring(stages=2, tiles=(6,), meets_at_the_end=False, remote_reports=False)
    assert {run(ring, seed).problem for seed in SEEDS} == {None}


def test_a_run_that_takes_too_long_says_so():
    assert run(Ring(stages=1), most_steps=5).problem == "It did not end within 5 steps."


def test_numbers_that_make_no_sense_are_refused():
    for wrong in ({"stages": 0}, {"stages": True}, {"blocks": 1.5}, {"consumers": -1}):
        with pytest.raises(ValueError, match="must be a whole number of at least 1"):
            Ring(**{"stages": 1} | wrong)
    with pytest.raises(ValueError, match="tiles is"):
        Ring(1, tiles=(1, -1))


# -- step by step ------------------------------------------------------------------------------------------


@looped("leaves_out", [{}, {"flips": False}, {"remote_reports": False}, {"meets_at_the_end": False}])
def test_a_trace_is_the_run_with_a_moment_for_every_step(leaves_out):
    ring = Ring(stages=2, blocks=2, tiles=(3, 2), **leaves_out)
    for seed in SEEDS[:10]:
        found = trace(ring, seed)
        assert found.outcome == run(ring, seed)
        assert len(found.moments) == found.outcome.steps + 1


def test_moments_follow_the_rules_of_the_barriers():
    """From a moment to the next a phase opens only when nothing of the one before was missing."""
    ring = Ring(stages=3, tiles=(7,))
    moments = trace(ring, seed=4).moments
    for before, after in pairwise(moments):
        for old, new in zip(before.stages[0], after.stages[0], strict=True):
            for was, now, arrivals in ((old.full, new.full, 1), (old.empty, new.empty, ring.consumers)):
                assert now.phase - was.phase in (0, 1)
                if now.phase > was.phase:
                    assert (now.arrivals, now.copies) == (arrivals, 0) and was.arrivals + was.copies == 1
    first, last = moments[0], moments[-1]
    assert first.did == "nothing yet" and {stage.held for stage in first.stages[0]} == {(None, None)}
    assert [stage.held for stage in last.stages[0]] == [(6, 6), (4, 4), (5, 5)]
    assert [stage.full.phase for stage in last.stages[0]] == [3, 2, 2]
    assert [stage.empty.phase for stage in last.stages[0]] == [3, 2, 2]
    assert all(actor.has_ended for actor in last.actors) and not last.copies


def test_actors_say_what_they_wait_for():
    ring = Ring(stages=2, tiles=(5,))
    first = trace(ring, seed=1).moments[0]
    assert [(one.name, one.waits_for, one.parity, one.is_able) for one in first.actors] == [
        ("producer", "empty", 1, True),
        ("warp 0", "full", 0, False),
        ("warp 1", "full", 0, False),
    ]
    seen = [one for moment in trace(ring, seed=1).moments for one in moment.actors if one.name == "producer"]
    assert {(one.visit, one.stage, one.parity) for one in seen if one.waits_for == "empty"} == {
        (0, 0, 1), (1, 1, 1), (2, 0, 0), (3, 1, 0), (4, 0, 1),
    }  # fmt: skip
