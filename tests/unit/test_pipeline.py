"""The timeline of a block: totals worked out by hand, bounds, and what more stages or other roles do."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_lib.simulators.pipeline import ROLES, WARPGROUPS, Pipeline, timeline

pipelines = st.builds(
    Pipeline,
    stages=st.integers(1, 8),
    copy_latency=st.integers(0, 800),
    copy_cycles=st.integers(1, 600),
    math_cycles=st.integers(1, 600),
    blocks_of_k=st.integers(1, 9),
    tiles=st.integers(1, 3),
    epilogue_cycles=st.sampled_from([0, 100, 501]),
    roles=st.sampled_from(ROLES),
    consumers=st.sampled_from([1, 2]),
    promotion_cycles=st.sampled_from([0, 64, 130, 300]),
    async_store=st.booleans(),
)


def changed(pipeline, **values):
    return Pipeline(**vars(pipeline) | values)


def cycles(pipeline, **values):
    return timeline(changed(pipeline, **values)).cycles


# -- by hand -----------------------------------------------------------------------------------------------


def test_one_stage_does_one_thing_after_the_other():
    found = timeline(Pipeline(1, 400, 300, 500, blocks_of_k=6, epilogue_cycles=200, roles="one", consumers=1))
    assert found.cycles == 6 * (400 + 300 + 500) + 200
    assert found.share("tensor core") == 6 * 500 / found.cycles
    ends = [span for span in found.spans if span.who != "warpgroup 0"]
    assert all(after.start == before.end for before, after in pairwise(ends))


def test_warpgroups_hide_each_others_promotion_only_if_they_need_not_march_in_step():
    """The products of 4 blocks take 2000 cycles. Apart, only the last promotion is left over. In step, the
    tensor core waits four times for the first warpgroup's promotion of 100.
    """
    apart = Pipeline(4, 0, 100, 500, blocks_of_k=4, promotion_cycles=200)
    assert timeline(apart).cycles == 100 + 2000 + 100
    assert cycles(apart, roles="one") == 100 + 2000 + 3 * 100 + 200
    assert cycles(apart, consumers=1) == 100 + 4 * (500 + 200)


def test_a_persistent_block_fetches_the_next_tile_while_it_stores_this_one():
    pipeline = Pipeline(4, 400, 300, 500, blocks_of_k=4, tiles=3, epilogue_cycles=600, consumers=1)
    assert timeline(pipeline).cycles == 3 * (400 + 300 + 4 * 500 + 600)
    assert cycles(pipeline, roles="persistent") == 400 + 300 + 3 * (4 * 500 + 600)
    assert cycles(pipeline, roles="persistent", async_store=True) == 400 + 300 + 3 * 4 * 500 + 600


def test_the_model_of_the_chooser_and_the_timeline_agree_in_the_steady_state():
    """What 40 more blocks of K cost is what `choose` says a block of K costs."""
    from course_lib.fp8.choose import estimate
    from course_lib.fp8.pipelines import pipeline_of
    from course_lib.fp8.tiles import Tile

    for tile in (Tile(128, 128), Tile(64, 128), Tile(128, 192), Tile(256, 64), Tile(64, 32)):
        short, long = (timeline(pipeline_of("v5_persistent", tile, K)).cycles for K in (40 * 128, 80 * 128))
        few = (tile.BM, tile.BN)
        expected = estimate(tile, *few, 80 * 128).own_cycles - estimate(tile, *few, 40 * 128).own_cycles
        assert long - short == pytest.approx(expected, rel=0.005), tile


# -- what always holds -------------------------------------------------------------------------------------


@given(pipelines)
def test_all_work_is_done_and_no_bound_is_beaten(pipeline):
    found, blocks = timeline(pipeline), pipeline.visits
    for who in (*found.workers, *WARPGROUPS):  # nobody does two things at once
        spans = [span for span in found.of(who) if span.what != "on its way"]
        assert all(before.end <= after.start for before, after in pairwise(spans))
    assert sum(span.cycles for span in found.of("tensor core")) == blocks * pipeline.math_cycles
    assert found.cycles >= blocks * max(pipeline.bounds.values()) * (1 - 1e-12)
    assert found.share("tensor core") <= pipeline.most_share * (1 + 1e-12)
    assert found.cycles >= pipeline.copy_latency + blocks * pipeline.copy_cycles
    assert len([span for span in found.of("TMA") if span.what == "copy"]) == blocks


@given(pipelines)
def test_no_product_before_its_copy_and_no_copy_before_its_stage_is_free(pipeline):
    found = timeline(pipeline)
    copies = [span for span in found.of("TMA") if span.what == "copy"]
    orders = [span for span in found.of("TMA") if span.what == "on its way"]
    products = found.of("tensor core")
    used = {}
    for span in products:
        visit = span.tile * pipeline.blocks_of_k + span.block
        assert span.start >= copies[visit].end
        used[visit] = max(used.get(visit, 0), span.end)
    orders.sort(key=lambda span: (span.tile, span.block))
    assert all(
        order.start >= used[visit] for visit, order in enumerate(orders[pipeline.stages :]) if visit in used
    )


# -- refused -----------------------------------------------------------------------------------------------


def test_numbers_that_make_no_sense_are_refused():
    refused = {"stages": (0, "stages is 0"), "copy_latency": (-1, "copy_latency is -1")}
    refused |= {"roles": ("many", "one of one, specialised, p"), "consumers": (3, "1 or 2 warpgroups")}
    for name, (value, sentence) in refused.items():
        with pytest.raises(ValueError, match=sentence):
            Pipeline(**{name: value})


# -- the rungs' numbers ------------------------------------------------------------------------------------


def test_the_stages_are_those_that_the_kernels_are_started_with():
    from course_lib.fp8.pipelines import ROLES_OF, SCALED, pipeline_of
    from course_lib.fp8.plans import Problem, plan_for
    from course_lib.fp8.tiles import Tile

    problem = Problem(*[2**20] * 5, rows=256, N=256, K=1024)
    for kernel in ROLES_OF:
        for tile in (Tile(64, 64), Tile(128, 128), Tile(128, 64)) if kernel != "v1_wgmma" else ():
            assert pipeline_of(kernel, tile).stages == plan_for(kernel, problem, tile).constants["STAGES"]
        assert (pipeline_of(kernel).promotion_cycles > 0) == (kernel in SCALED), kernel
