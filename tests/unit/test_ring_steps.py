"""The ring step by step: what the picture says of barriers and waits, and the runs that go wrong."""

from xml.etree import ElementTree

import pytest

from course_lib import views
from course_lib.simulators.ring import run, trace
from course_lib.views import ring_animation
from course_lib.views.ring_animation import VARIANTS, WHOLE, found, frame, turns

DEADLOCK = "the flip of the parity (deadlock)"


@pytest.fixture(scope="module")
def view():
    return views.ring()


def words_of(drawing):
    return [text.text for text in ElementTree.fromstring(drawing).iter("{http://www.w3.org/2000/svg}text")]


def test_the_first_step_shows_fresh_barriers_and_who_waits(view):
    said = words_of(frame(view.trace, 0))
    assert said.count("full: phase 0, parity 0") == said.count("empty: phase 0, parity 0") == 4
    assert said.count("needs 1 arrival") == said.count("needs 2 arrivals") == 4
    assert "0: may pass empty, parity 1" in said
    assert said.count("0: waits for full, parity 0") == 2
    for words in ("Left out: nothing.", "on their way: nothing", "Before the first step"):
        assert words in said


def test_each_variant_shows_the_problem_it_is_named_for():
    for stages in (2, 3, 4):
        base = views.ring(stages).base
        for name, variant in VARIANTS.items():
            shown = found(name, base)
            outcome = shown.outcome
            assert variant.problem in (outcome.problem or ""), (stages, name)
            assert bool(outcome.problem) == (name != WHOLE) and shown.ring == variant.ring(base)
            assert any(run(shown.ring, seed) == outcome for seed in range(ring_animation.SEEDS))


def test_the_controls_walk_through_the_run(view):
    view = views.ring()
    view.player.forward.click()
    assert view.player.slider.value == 1 and "Step 1 of 101" in view.player.picture.value
    view.player.jumps["next phase »"].click()
    assert view.player.slider.value == turns(view.trace)[0]
    view.variant.value = DEADLOCK
    assert "Left out: the flip of the parity." in view.player.picture.value
    assert view.player.slider.value == 0 and view.player.slider.max == len(view.trace.moments) - 1
    view.player.jumps["end »"].click()
    assert "It goes wrong. Everybody waits: 3 of 3 never end." in view.player.picture.value


def test_the_still_twin_names_the_steps_that_end_a_phase_and_the_failures(view):
    """Each of the 7 blocks of K ends a phase of full and one of empty."""
    assert len(turns(view.trace)) == 14 and view.trace == trace(view.trace.ring, 0)
    still = view.static()
    assert still.text.startswith("7 blocks of K go through 4 stages in 101 steps.")
    for name in VARIANTS:
        if name != WHOLE:
            assert f"Left out: {name}. {found(name, view.base).outcome}" in still.text
    assert still.body.count("<table") == 2 and still.body.count("<svg") == 1
    assert still.body.count("</tr>") == 1 + 14 + 1 + 4
