"""What the pictures of chapter 08 say: whose part is where, and who sends more than must be."""

import time

import numpy as np
import pytest

from course_lib import views
from course_lib.distributed.matmul import grid_layout, layered_layout
from course_lib.distributed.plan import Offer, plans
from course_lib.distributed.wire import rehearse
from course_lib.simulators import network


def test_shards_say_whose_rows_and_columns_are_where():
    shape = (8, 6, 4)
    shown = views.shards(grid_layout(shape, 4), shape, "SUMMA")
    assert shown.text.startswith("SUMMA: 4 ranks. A: rank 0 rows 0 to 3, columns 0 to 2;")
    assert "B: rank 0 rows 0 to 2, columns 0 to 1;" in shown.text
    assert shown.body.count("fill-opacity") == 12
    layered = views.shards(layered_layout(shape, 8), shape)  # the second layer has nothing yet
    assert layered.body.count("fill-opacity") == 12 and "rank 4" not in layered.text
    with pytest.raises(ValueError, match="49 ranks cannot be drawn"):
        views.shards(grid_layout((49,) * 3, 49), (49,) * 3)


def test_bytes_against_ranks_are_told_at_the_largest_number_of_ranks():
    curves = {"row": {4: 0.75, 16: 0.9375}, "summa": {4: 0.5, 16: 0.375}}
    said = views.rank_bytes(curves, {"row": {4: 0.75}}, {4: 0.44, 16: 0.285}).alt
    assert "each of 16 ranks sends: summa 0.375, row 0.938; at least 0.285" in said
    assert "the bound 4: 0.440, 16: 0.285" in said


def test_stepping_through_shards_adds_each_product_once_and_moves_what_the_algorithms_move():
    walk = views.shard_steps(3)
    for algorithm, different in (("SUMMA", 1), ("Cannon", 3)):
        walk.algorithm.value = algorithm
        inner = [walk.inner(step) for step in (1, 2, 3)]
        for i in range(3):
            assert len({*inner[0][i]}) == different
            for j in range(3):
                assert sorted(one[i][j] for one in inner) == [0, 1, 2]
    assert walk.inner(2)[1][2] == (1 + 2 + 1) % 3  # Cannon: k = i + j + turn
    assert walk.frame(2).count(">A11<") == 2  # at home, and where it is used
    assert "in one place only" in walk.static().text and walk.frame(0).count("C21") == 1
    with pytest.raises(ValueError, match="side"):
        views.shard_steps(6)


def test_who_waits_for_a_slow_rank_is_seen():
    def turns(wire, slow):
        for _ in range(3):
            time.sleep(0.15 if wire.rank == slow else 0.0)
            wire.exchange(np.ones(1), (wire.rank + 1) % wire.size, (wire.rank - 1) % wire.size)

    played = rehearse(turns, 4, slow=2)
    waited = [sum(to - since for at, since, to in played.waits if at == rank) for rank in range(4)]
    assert waited[2] < 0.5 * min(waited[1], waited[3]) and max(played.ends) >= 0.45
    share = sum(waited) / sum(played.ends)
    assert (
        f"{1e3 * max(played.ends):.0f} ms, {share:.0%} of it waiting" in views.rank_waits({"1": played}).alt
    )
    with pytest.raises(ValueError, match="1 to 32"):
        views.rank_waits({})


def test_the_cheapest_cluster_follows_the_deadline_and_the_prices_in_the_fields():
    shape = (32768,) * 3
    offers = [
        Offer("slow", 5e11, 32e9, 0.05, network.star),
        Offer("fast", 2e13, 64e9, 4.0, lambda ranks: network.star(ranks, 1e10)),
    ]
    view = views.cheapest(shape, offers, 300)
    for deadline, said in ((300, "1 x slow"), (10, "64 x slow, cannon"), (0.1, "256 x fast, cannon")):
        view.deadline.value = deadline
        best = plans(shape, offers, deadline)[0]
        assert said.startswith(f"{best.ranks} x {best.offer}")
        assert f": {said}, " in view.picture.value and "nothing fails" in view.picture.value
    assert "Tab goes from field to field" in view.status.value  # it has neither slider nor button
    assert "Cheapest within 300 s: 1 x slow" in view.static().text  # as given
    view.deadline.value = 10
    view.prices[0].value = 1.0  # twenty times dearer: slow no longer pays
    assert "Cheapest within 10.0 s: 1 x fast, 3.52 s" in view.picture.value
    before = view.picture.value
    view.prices[1].value = 0
    assert "the price of fast is 0" in view.status.value and view.picture.value == before
    view.prices[1].value, view.deadline.value = 4.0, 0.001
    assert "Nothing ends within 0.00100 s: the fastest, 1024 x fast, cannon" in view.picture.value
    assert "cheapest in time" not in view.picture.value
    with pytest.raises(ValueError, match="No offer has the memory"):
        views.cheapest((1 << 20,) * 3, [Offer("small", 1e12, 1e9, 1.0, network.star)], 10)


@pytest.mark.parametrize("ranks", [4, 8, 16])
def test_messages_between_two_racks_do_not_lie_on_each_other(ranks):
    half = np.arange(ranks // 2)
    across = [network.Step(half, half + ranks // 2, np.full(len(half), 1e6))]
    heights = views.messages(network.racks(ranks), across)._where[: ranks // 2, 1]
    assert np.diff(np.sort(heights)).min() > 5  # pixels


def test_no_arrow_between_two_racks_runs_through_a_rank():
    ring = np.arange(16)
    places = np.array([at for pair in zip(range(8), range(8, 16), strict=True) for at in pair])
    step = network.Step(ring, (ring + 1) % 16, np.ones(16))
    where = views.messages(network.racks(16), [step], places)._where
    for start, end in zip(where[places], where[np.roll(places, -1)], strict=True):
        far = np.hypot(*(end - start))
        along = (end - start) / far
        for away in where - start:
            if 1 < away @ along < far - 1:
                assert abs(away[0] * along[1] - away[1] * along[0]) > 15 + 4  # a disc, the arrow's shift
