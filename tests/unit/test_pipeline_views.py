"""Timelines of a block as figures and controls: what they say is what the model says."""

import dataclasses

import pytest

from course_lib import views
from course_lib.fp8.pipelines import pipeline_of
from course_lib.simulators.pipeline import ROLES, Pipeline, timeline
from course_lib.views import pipeline_explorer
from course_lib.views.pipeline_explorer import finding, in_words, percent, shares

HAND = Pipeline(2, 400, 500, 500, blocks_of_k=10, consumers=1)


def share(pipeline):
    return percent(timeline(pipeline).share("tensor core"))


@pytest.mark.usefixtures("figures")
def test_the_rungs_say_their_cycles_and_shares():
    alt = views.roles().alt
    for kernel in pipeline_explorer.RUNGS:
        found = timeline(pipeline_of(kernel, K=512, tiles=2))
        assert f"is done after {found.cycles:,} cycles, tensor core {share(found.pipeline)}" in alt
    assert "A model, nothing measured" in alt


def test_the_sum_behind_the_limit_and_what_limits_are_said():
    said = in_words(HAND)
    assert "400 (latency) + 500 (copy) + 500 (product) = 1,400 cycles" in said
    assert "With 2 stages a block of K can be done every 700 cycles; TMA needs 500." in said
    assert "So 3 stages or more keep it busy." in said
    assert finding(timeline(HAND)).endswith(": too few stages")
    assert finding(timeline(dataclasses.replace(HAND, stages=3))).endswith(": copies are the limit")
    fast = dataclasses.replace(HAND, stages=4, copy_cycles=100)
    assert finding(timeline(fast)).endswith(", and it is the limit")


@pytest.mark.usefixtures("figures")
def test_the_controls_choose_the_pipeline():
    view = views.pipeline()
    view.stages.value, view.latency.value, view.roles.value = 5, 900, "persistent"
    chosen = dataclasses.replace(view.start, stages=5, copy_latency=900, roles="persistent")
    assert view.pipeline == chosen and share(chosen) in view.status.value
    assert "900 (latency)" in view.picture.value


@pytest.mark.usefixtures("figures")
def test_the_still_twin_shows_three_timelines_and_the_curve():
    view = views.pipeline()
    still = view.static()
    for stages in (1, 2, 4):
        found = timeline(dataclasses.replace(view.start, stages=stages))
        assert f"works {share(found.pipeline)} of the time" in still.text
        assert f"{found.cycles:,} cycles" in still.text
    assert still.text.startswith("Model: 4 stages need 0.47 of the time of 1 stage")
    assert "from 3 stages on" in still.text
    alt = shares(HAND).alt
    for role in ROLES:
        values = [share(dataclasses.replace(HAND, stages=stages, roles=role)) for stages in range(1, 9)]
        assert f"{role}: " + ", ".join(f"{n}: {value}" for n, value in enumerate(values, 1)) in alt
