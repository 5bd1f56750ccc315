"""Algorithms on many ranks: rehearsed on threads, compared with NumPy and with the bytes that theory says."""

import inspect
import math

import numpy as np
import pytest

from course_lib.distributed import collectives, faults, schedules
from course_lib.distributed.matmul import ALGORITHMS
from course_lib.distributed.wire import Stuck, Wire, rehearse
from course_lib.simulators import network


def operands(M, K, N, dtype=np.float32):
    rng = np.random.default_rng(M * 31 + N)
    return rng.integers(-9, 10, (M, K)).astype(dtype), rng.integers(-9, 10, (K, N)).astype(dtype)


def rehearsed(name, shape, ranks):
    """Return C and the rehearsal of a product of whole numbers."""
    A, B = operands(*shape)
    algorithm = ALGORITHMS[name]
    layout = algorithm.layout(shape, ranks)

    def play(wire: Wire):
        return algorithm.multiply(wire, A[layout.A[wire.rank]], B[layout.B[wire.rank]], shape)

    played = rehearse(play, ranks)
    C = np.full((shape[0], shape[2]), np.nan, np.float32)
    for cell, value in zip(layout.C, played.values, strict=True):
        C[cell] = value
    np.testing.assert_array_equal(C, A @ B, err_msg=f"{name}, {shape}, {ranks} ranks")
    return played


@pytest.mark.parametrize("name", ALGORITHMS)
def test_products_are_right_on_any_shape_and_send_what_theory_says(name):
    counts = {"cannon": (1, 4, 9, 16), "2.5d": (1, 4, 8, 9, 16, 18)}.get(name, (1, 2, 3, 4, 6, 8, 9, 16))
    for ranks in counts:
        for shape in ((7, 5, 3), (1, 40, 2), (33, 1, 17), (2, 2, 2), (30, 29, 31)):
            rehearsed(name, shape, ranks)
        even = (48, 144, 96)  # blocks of one size: the formula holds to the byte
        sent = np.mean(rehearsed(name, even, ranks).bytes_by_rank)
        assert sent == pytest.approx(4 * ALGORITHMS[name].words(even, ranks)), (name, ranks)


def test_algorithms_say_which_numbers_of_ranks_they_cannot_use():
    for name, ranks in (("cannon", 6), ("2.5d", 12)):
        with pytest.raises(ValueError, match=f"There are {ranks} ranks"):
            ALGORITHMS[name].layout((8, 8, 8), ranks)


def test_collectives_give_everybody_the_right_blocks():
    for ranks in (1, 2, 3, 4, 5, 8, 9):
        rng = np.random.default_rng(ranks)
        x = rng.integers(0, 99, (ranks, 6, 7)).astype(float)
        for name, all_reduce in collectives.ALL_REDUCES.items():
            for value in rehearse(lambda wire, play=all_reduce: play(wire, x[wire.rank]), ranks).values:  # noqa: B023
                np.testing.assert_array_equal(value, x.sum(axis=0), err_msg=name)
        for root in range(ranks):
            for play in (collectives.ring_broadcast, collectives.tree_broadcast):
                values = rehearse(lambda wire: play(wire, x[wire.rank], root), ranks).values  # noqa: B023
                np.testing.assert_array_equal(values, [x[root]] * ranks)
        is_power = ranks & (ranks - 1) == 0
        gathers = [collectives.ring_all_gather] + is_power * [collectives.doubling_all_gather]
        for play in gathers:
            mine = [[x[i] if i == rank else x[i] * np.nan for i in range(ranks)] for rank in range(ranks)]
            values = rehearse(lambda wire: play(wire, mine[wire.rank]), ranks).values  # noqa: B023
            np.testing.assert_array_equal(values, [x] * ranks)
        scatters = [collectives.ring_reduce_scatter] + is_power * [collectives.halving_reduce_scatter]
        for play in scatters:
            values = rehearse(lambda wire: play(wire, collectives.cut(x[wire.rank], ranks)), ranks).values  # noqa: B023
            for value, expected in zip(values, collectives.cut(x.sum(axis=0), ranks), strict=True):
                np.testing.assert_array_equal(value, expected)


def of_blocks(play):
    return lambda wire, x: play(wire, collectives.cut(x, wire.size))


def in_racks(wire, x):
    near = math.isqrt(wire.size)  # as many as divide; 2 for 8
    racks = [list(range(begin, begin + near)) for begin in range(0, wire.size, near)]
    return collectives.hierarchical_all_reduce(wire, x, racks)


def test_collectives_send_what_theory_says_and_stay_short():
    def up(P):
        return math.ceil(math.log2(P))

    def beyond(P):
        return P - (1 << (P.bit_length() - 1))

    powers, all_ranks = (4, 8, 16), (4, 8, 9, 16)
    for play, counts, busiest, together in (  # in arrays: what one rank sends at most, and all of them
        (of_blocks(collectives.ring_all_gather), all_ranks, lambda P: (P - 1) / P, lambda P: P - 1),
        (of_blocks(collectives.ring_reduce_scatter), all_ranks, lambda P: (P - 1) / P, lambda P: P - 1),
        (collectives.ring_all_reduce, all_ranks, lambda P: 2 * (P - 1) / P, lambda P: 2 * (P - 1)),
        (collectives.ring_broadcast, all_ranks, lambda P: 1, lambda P: P - 1),
        (collectives.tree_broadcast, all_ranks, up, lambda P: P - 1),
        (collectives.tree_reduce, all_ranks, lambda P: 1, lambda P: P - 1),
        (collectives.tree_all_reduce, all_ranks, up, lambda P: 2 * (P - 1)),
        (
            collectives.doubling_all_reduce,
            all_ranks,
            lambda P: int(math.log2(P)) + (beyond(P) > 0),
            lambda P: int(math.log2(P)) * (P - beyond(P)) + 2 * beyond(P),
        ),
        (of_blocks(collectives.doubling_all_gather), powers, lambda P: (P - 1) / P, lambda P: P - 1),
        (of_blocks(collectives.halving_reduce_scatter), powers, lambda P: (P - 1) / P, lambda P: P - 1),
        (in_racks, all_ranks, lambda P: 2 * (P - 1) / P, lambda P: 2 * (P - 1)),
    ):
        for ranks in counts:
            x = np.ones(720)
            sent = rehearse(play, ranks, x=x).bytes_by_rank
            told = busiest(ranks) * x.nbytes, together(ranks) * x.nbytes
            assert (max(sent), sum(sent)) == pytest.approx(told, rel=0.02), (play, ranks)
    for name, one in vars(collectives).items():
        if inspect.isfunction(one) and inspect.getmodule(one) is collectives:
            code = inspect.getsource(one).replace(one.__doc__ or "", "")
            assert code.count("\n") <= 25, name


def test_a_rack_sends_less_to_the_other_than_a_ring_does():
    racks = [[0, 2, 4], [1, 3, 5]]
    x = np.arange(60.0)

    def between(played):
        return sum(m.nbytes for m in played.messages if m.sender % 2 != m.receiver % 2)

    near = rehearse(lambda wire: collectives.hierarchical_all_reduce(wire, x * wire.rank, racks), 6)
    ring = rehearse(lambda wire: collectives.ring_all_reduce(wire, x * wire.rank), 6)
    for value in near.values + ring.values:
        np.testing.assert_array_equal(value, x * 15)
    assert between(near) * 5 == between(ring)  # 2 x 480 bytes, of 6 x 10 x 80


def test_a_rehearsal_says_who_waits_for_whom():

    def caught(wire):
        try:
            wire.send(np.ones(1), to=1 - wire.rank)
        except Stuck:
            wire.receive(np.ones(1), source=1 - wire.rank)

    for play, said in (
        (
            lambda wire: wire.send(np.ones(1), to=1 - wire.rank),
            "rank 0 sends to rank 1; rank 1 sends to rank 0",
        ),
        (caught, "rank 0 sends to rank 1; rank 1 sends to rank 0"),  # what was caught happened all the same
        (lambda wire: wire.rank or wire.receive(np.ones(1), source=1), "rank 0 receives from rank 1"),
    ):
        with pytest.raises(Stuck, match=said):
            rehearse(play, 2)
    for play, said in (
        (lambda wire: wire.send(np.ones(1), to=wire.rank), "talks to itself"),
        (lambda wire: wire.send(np.ones(1), to=2), "must be a whole number from 0 to 1"),
        (lambda wire: wire.exchange(np.ones(1 + wire.rank), 1 - wire.rank, 1 - wire.rank), "waited for"),
    ):
        with pytest.raises(ValueError, match=said):
            rehearse(play, 2)


# -- the network --------------------------------------------------------------------------------------------


def test_nothing_travels_whose_bytes_are_not_counted():
    for x in (np.array([[1.0] * 1000, None], object), np.array(["all of A"]), np.zeros(2, "f8,f8")):
        with pytest.raises(ValueError, match="cannot be sent: give it a dtype of numbers"):
            rehearse(lambda wire, x=x: wire.exchange(x, 1 - wire.rank, 1 - wire.rank), 2)


def test_schedules_are_what_the_algorithms_do():
    x = np.ones(720)
    pairs = [
        (schedules.ring_all_reduce, collectives.ring_all_reduce),
        (schedules.tree_all_reduce, collectives.tree_all_reduce),
        (schedules.doubling_all_reduce, collectives.doubling_all_reduce),
    ]
    for ranks in (2, 3, 4, 6, 8, 9):
        nets = network.star(ranks), network.ring(ranks)
        for schedule, play in pairs:
            steps = network.steps_of(rehearse(lambda wire: play(wire, x), ranks).messages)  # noqa: B023
            for net in nets:
                told = network.loads(net, schedule(ranks, x.nbytes))
                np.testing.assert_allclose(network.loads(net, steps), told, err_msg=f"{play}, {ranks}")
    for ranks in (4, 9, 16):
        net = network.star(ranks)
        for name, schedule in schedules.PRODUCTS.items():
            steps = network.steps_of(rehearsed(name, (48, 144, 96), ranks).messages)
            total = network.loads(net, steps).sum()
            assert network.loads(net, schedule((48, 144, 96), ranks)).sum() == pytest.approx(total), name


def test_messages_take_the_shortest_way():
    import networkx

    rng = np.random.default_rng(5)
    senders, receivers = rng.integers(0, 24, (2, 200))
    torus = networkx.grid_2d_graph(4, 6, periodic=True)
    expected = sum(
        networkx.shortest_path_length(torus, divmod(int(a), 6), divmod(int(b), 6))
        for a, b in zip(senders, receivers, strict=True)
    )
    step = network.Step(senders, receivers, np.ones(200))
    assert network.loads(network.torus(4, 6), [step]).sum() == expected
    one = network.Step(np.array([0]), np.array([23]), np.array([1.0]))
    for net, links in ((network.star(24), 2), (network.racks(24, 4), 4), (network.fat_tree(24, 4), 6)):
        assert network.loads(net, [one]).sum() == links, net.name


def test_a_step_waits_for_its_busiest_link():
    net = network.racks(8, racks=2, link=1e9, uplink=2e9, alpha=1e-3)
    ring = [schedules.ring_step(8, 4e6, times=3)]
    line = network.timeline(net, ring)
    assert line.seconds == pytest.approx(
        3 * (1e-3 + 4e-3)
    )  # own links; an uplink has one message of the same
    mixed = network.timeline(net, ring, order=[0, 4, 1, 5, 2, 6, 3, 7])
    assert mixed.seconds == pytest.approx(3 * (1e-3 + 4 * 4e6 / 2e9)) and "ranks 0 to 3" in mixed.busiest[0]
    for order in ([0] * 8, [0, 1]):
        with pytest.raises(ValueError, match="each of the places 0 to 7"):
            network.timeline(net, ring, order)
    with pytest.raises(ValueError, match="has 4"):
        network.timeline(network.star(4), ring)


# -- faults -------------------------------------------------------------------------------------------------


def test_checksums_find_and_repair_a_flipped_bit_and_raise_no_false_alarm():
    rng = np.random.default_rng(8)
    for dtype, bits in ((np.float32, (24, 30, 31)), (np.float64, (40, 62, 63))):
        for _ in range(20):
            A, B = rng.standard_normal((40, 60)).astype(dtype), rng.standard_normal((60, 50)).astype(dtype)
            C = A @ B
            assert not faults.check_and_repair(A, B, C).repaired
            at = tuple(np.unravel_index(np.abs(C).argmax(), C.shape))
            for bit in bits:
                checked = faults.check_and_repair(A, B, faults.flip(C, at, bit))
                assert checked.repaired == (at,), (dtype, bit)
                np.testing.assert_allclose(checked.C, C, rtol=1e-3, atol=1e-4)


def test_the_best_interval_is_where_a_simulated_run_is_shortest():
    checkpoint, mtbf, work = 60.0, 10800.0, 30 * 86400.0
    best = faults.young_daly_s(checkpoint, mtbf)

    def slowdown(interval):
        runs = [faults.simulated_run(work, interval, checkpoint, mtbf, 120, seed) for seed in range(20)]
        return np.mean(runs) / work

    at_best = slowdown(best)
    assert slowdown(best / 4) > at_best and slowdown(4 * best) > at_best
    assert at_best == pytest.approx(1 + faults.overhead(best, checkpoint, mtbf, 120), abs=0.03)


def test_the_interruptions_of_a_published_run_go_into_the_same_formula():
    mtbf = 54 * 86400 / 419  # Llama 3, 16,384 GPUs: arXiv 2407.21783, section 3.3.4
    best = faults.young_daly_s(60, mtbf)
    assert (mtbf / 3600, best / 60) == pytest.approx((3.09, 19.3), rel=0.01)
    lost = {interval: faults.overhead(interval, 60, mtbf) for interval in range(60, 7200)}
    assert min(lost, key=lost.get) == pytest.approx(best, abs=1)  # the formula is where the sum is smallest
    assert lost[round(best)] == pytest.approx(2 * 60 / best, rel=1e-3)  # both losses are equal there
    assert faults.young_daly_s(60, mtbf / 4) == pytest.approx(best / 2)  # four times as many machines


def test_a_killed_worker_loses_nothing(tmp_path):
    pytest.importorskip("distributed")
    from course_lib.distributed import mapreduce

    flag = str(tmp_path / "died")

    def dies_once(pair):
        import os
        import signal

        if pair[0] == (1, 2) and not os.path.exists(flag):
            open(flag, "w").close()
            os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
        return mapreduce.multiply_block(pair)

    A, B = operands(30, 17, 23)
    with mapreduce.workers(2):
        C = mapreduce.map_reduce(A, B, multiply=dies_once)
    np.testing.assert_array_equal(C, A @ B)
    assert (tmp_path / "died").exists()


def test_tiles_that_are_kept_are_not_computed_again(tmp_path):
    A, B = operands(10, 6, 7)
    faults.multiply_tiles(A[:4], B, 4, tmp_path)  # it died after the first band
    (tmp_path / "rows-0.npy").rename(tmp_path / "kept")
    np.save(tmp_path / "rows-0.npy", 7 * np.load(tmp_path / "kept"))  # so that one sees who is used
    C = faults.multiply_tiles(A, B, 4, tmp_path)
    np.testing.assert_array_equal(C, np.concatenate([7 * (A[:4] @ B), A[4:] @ B]))
