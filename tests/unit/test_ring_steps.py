"""The ring step by step: what the picture says of barriers and waits, and the runs that go wrong."""

import pytest

from course_lib import views
from course_lib.simulators.ring import run, trace
from course_lib.views import ring_animation
from course_lib.views.ring_animation import VARIANTS, WHOLE, found, turns

DEADLOCK = "the flip of the parity (deadlock)"


@pytest.fixture(scope="module")
def view():
    return views.ring()


def test_each_variant_shows_the_problem_it_is_named_for():
    for stages in (2, 3, 4):
        base = views.ring(stages).base
        for name, variant in VARIANTS.items():
            shown = found(name, base)
            outcome = shown.outcome
            assert variant.problem in (outcome.problem or ""), (stages, name)
            assert bool(outcome.problem) == (name != WHOLE) and shown.ring == variant.ring(base)
            assert any(run(shown.ring, seed) == outcome for seed in range(ring_animation.SEEDS))


def test_the_controls_walk_through_the_run():
    view = views.ring()
    view.jumps["next phase »"].click()
    assert view.slider.value == turns(view.trace)[0]
    view.variant.value = DEADLOCK
    assert "Left out: the flip of the parity." in view.picture.value
    view.jumps["end »"].click()
    assert "It goes wrong. Everybody waits: 3 of 3 never end." in view.picture.value


def test_the_still_twin_names_the_steps_that_end_a_phase_and_the_failures(view):
    """Each of the 7 blocks of K ends a phase of full and one of empty."""
    assert len(turns(view.trace)) == 14 and view.trace == trace(view.trace.ring, 0)
    still = view.static()
    assert still.text.startswith("7 blocks of K go through 4 stages in 101 steps.")
    for name in VARIANTS:
        if name != WHOLE:
            assert f"Left out: {name}. {found(name, view.base).outcome}" in still.text
