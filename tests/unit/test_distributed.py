"""Algorithms on many ranks: rehearsed on threads, compared with NumPy and with the bytes that theory says."""

import inspect
import math
import signal
import threading
import time
import tracemalloc
from collections import Counter

import numpy as np
import pytest

from course_lib import whole_files
from course_lib.distributed import collectives, faults, mapreduce, matmul, schedules
from course_lib.distributed.matmul import ALGORITHMS, lower_bound
from course_lib.distributed.plan import Offer, plans, shares
from course_lib.distributed.wire import Stuck, Wire, rehearse
from course_lib.simulators import network


def operands(M, K, N, dtype=np.float32):
    rng = np.random.default_rng(M * 31 + N)
    return rng.integers(-9, 10, (M, K)).astype(dtype), rng.integers(-9, 10, (K, N)).astype(dtype)


def rehearsed(name, shape, ranks):
    """Return C and the rehearsal of a product of whole numbers."""
    A, B = operands(*shape)
    played = rehearse(matmul.on_rank, ranks, name=name, A=A, B=B)
    C = matmul.joined(name, played.values, shape)
    np.testing.assert_array_equal(C, A @ B, err_msg=f"{name}, {shape}, {ranks} ranks")
    return played


def counts_of(name):
    return {"cannon": (1, 4, 9, 16), "2.5d": (1, 4, 8, 9, 16, 18)}.get(name, (1, 2, 3, 4, 6, 8, 9, 16))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_products_are_right_on_any_shape_and_send_what_theory_says(name):
    for ranks in counts_of(name):
        for shape in ((7, 5, 3), (1, 40, 2), (33, 1, 17), (2, 2, 2), (30, 29, 31)):
            rehearsed(name, shape, ranks)
        even = (48, 144, 96)  # blocks of one size: the formula holds to the byte
        sent = np.mean(rehearsed(name, even, ranks).bytes_by_rank)
        assert sent == pytest.approx(4 * ALGORITHMS[name].words(even, ranks)), (name, ranks)


class Alone:
    """Carries nothing: one rank plays by itself, so that what is held is that rank's."""

    def __init__(self, rank, size):
        self.rank, self.size = rank, size

    def start_send(self, x, to):
        return lambda: None

    start_receive = start_send


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_rank_holds_at_its_peak_what_theory_says(name):
    for shape in ((768, 768, 768), (512, 256, 1024), (1024, 512, 256), (256, 1024, 512)):
        for ranks in counts_of(name):
            at, peaks = ALGORITHMS[name].layout(shape, ranks), []
            for rank in range(ranks):
                tracemalloc.start()
                a, b = (
                    np.ones([part.stop - part.start for part in cells[rank]], np.float32)
                    for cells in (at.A, at.B)
                )
                with np.errstate(all="ignore"):  # what was not received is any number
                    ALGORITHMS[name].multiply(Wire(Alone(rank, ranks)), a, b, shape)
                peaks.append(tracemalloc.get_traced_memory()[1] / 4)
                tracemalloc.stop()
            told = ALGORITHMS[name].memory(shape, ranks)
            assert max(peaks) == pytest.approx(told, rel=0.15), (name, shape, ranks)


def test_nobody_sends_less_than_the_bound():
    for shape in ((512, 512, 512), (4096, 64, 64), (64, 4096, 64), (256, 1024, 4096)):
        for name, one in ALGORITHMS.items():
            for ranks in (*counts_of(name), 64, 729, 1024, 4096):
                if name not in ("cannon", "2.5d") or ranks != 1024:
                    least = lower_bound(shape, ranks, one.memory(shape, ranks))
                    assert least <= one.words(shape, ranks), (name, shape, ranks)
    assert lower_bound((512,) * 3, 4, 3 * 512**2) == pytest.approx(
        115_488, abs=1
    )  # 3 (512³/4)^(2/3) − 3 n²/4
    n = 4096  # 3 / 1024^(2/3) − 3 / 1024 of n²; with little memory n³ / (2 sqrt(2) P sqrt(m)) − m
    assert lower_bound((n,) * 3, 1024, 5 * n * n / 1024) / n**2 == pytest.approx(0.0266, abs=5e-5)
    assert lower_bound((n,) * 3, 16, 1000) == pytest.approx(n**3 / (32 * math.sqrt(2000)) - 1000)
    for ranks, memory, said in ((0, 9, "ranks is 0"), (4, 0, "memory is 0")):
        with pytest.raises(ValueError, match=said):
            lower_bound((8, 8, 8), ranks, memory)


def test_pipelined_panels_are_a_quarter_of_a_block():
    sent = rehearsed("summa-pipelined", (48, 144, 96), 9).messages
    assert {message.nbytes for message in sent} == {4 * 16 * 12, 4 * 12 * 32}
    assert len(sent) == 4 * len(rehearsed("summa", (48, 144, 96), 9).messages)


def test_algorithms_say_which_numbers_of_ranks_they_cannot_use():
    for name, ranks in (("cannon", 6), ("2.5d", 12)):
        with pytest.raises(ValueError, match=f"There are {ranks} ranks"):
            ALGORITHMS[name].layout((8, 8, 8), ranks)
    with pytest.raises(ValueError, match="ranks is 0"):
        ALGORITHMS["summa"].layout((8, 8, 8), 0)


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

    def twice(steps):
        return lambda P: 2 * steps(P)

    def last(P):  # steps of a ring's round
        return P - 1

    powers, all_ranks = (4, 8, 16), (4, 8, 9, 16)
    for play, counts, busiest, together, steps in (  # in arrays: what one rank sends at most, and all of them
        (of_blocks(collectives.ring_all_gather), all_ranks, lambda P: (P - 1) / P, last, last),
        (of_blocks(collectives.ring_reduce_scatter), all_ranks, lambda P: (P - 1) / P, last, last),
        (collectives.ring_all_reduce, all_ranks, lambda P: 2 * (P - 1) / P, twice(last), twice(last)),
        (collectives.ring_broadcast, all_ranks, lambda P: 1, last, twice(last)),
        (collectives.tree_broadcast, all_ranks, up, last, up),
        (collectives.tree_reduce, all_ranks, lambda P: 1, last, up),
        (collectives.tree_all_reduce, all_ranks, up, twice(last), twice(up)),
        (
            collectives.doubling_all_reduce,
            all_ranks,
            lambda P: int(math.log2(P)) + (beyond(P) > 0),
            lambda P: int(math.log2(P)) * (P - beyond(P)) + 2 * beyond(P),
            lambda P: int(math.log2(P)) + 2 * (beyond(P) > 0),
        ),
        (of_blocks(collectives.doubling_all_gather), powers, lambda P: (P - 1) / P, last, None),
        (of_blocks(collectives.halving_reduce_scatter), powers, lambda P: (P - 1) / P, last, None),
        (in_racks, all_ranks, lambda P: 2 * (P - 1) / P, twice(last), None),
    ):
        for ranks in counts:
            x = np.ones(720)
            played = rehearse(play, ranks, x=x)
            sent = played.bytes_by_rank
            told = busiest(ranks) * x.nbytes, together(ranks) * x.nbytes
            assert (max(sent), sum(sent)) == pytest.approx(told, rel=0.02), (play, ranks)
            if steps:
                assert 1 + max(message.step for message in played.messages) == steps(ranks), (play, ranks)
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
    for odd in ([[0, 2], [1, 3]], [[0, 2, 4], [1, 3, 4]], [[0, 1], [2, 3, 4, 5]]):
        with pytest.raises(ValueError, match="must have equally many, and each of 0 to 5 once"):
            rehearse(lambda wire, odd=odd: collectives.hierarchical_all_reduce(wire, x, odd), 6)
    with pytest.raises(ValueError, match="root is 7"):
        rehearse(lambda wire: collectives.tree_broadcast(wire, x, 7), 3)


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


@pytest.fixture
def interruptible():
    """In a job in the background a shell has SIGINT ignored, and Python leaves it so."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_a_rehearsal_keeps_its_time_and_ends_who_waits():
    def computes(wire, interrupt):
        if wire.rank:
            return wire.receive(np.ones(1), source=0)
        if interrupt:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        return time.sleep(1.2)

    def in_turns(wire):
        time.sleep(0.4 * (wire.rank + 1))

    start = time.monotonic()
    with pytest.raises(Stuck, match=r"time limit of 0\.5 s"):
        rehearse(in_turns, 4, time_limit_s=0.5)
    assert time.monotonic() - start < 1.0  # not a limit for each
    for interrupt, problem in ((False, Stuck), (True, KeyboardInterrupt)):
        before = {*threading.enumerate()}
        with pytest.raises(problem):
            rehearse(computes, 4, time_limit_s=0.2 if problem is Stuck else 9, interrupt=interrupt)
        time.sleep(0.3)
        assert len({*threading.enumerate()} - before) == 1  # who computes


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
    with pytest.raises(ValueError, match="names rank 7, but star has 0 to 3"):
        network.timeline(network.star(4), ring)
    with pytest.raises(ValueError, match="names rank -1"):
        network.timeline(network.star(4), [network.Step(np.array([0]), np.array([-1]), np.ones(1))])


def test_trees_that_grow_and_islands_take_what_was_computed_by_hand():
    def seconds(net, sender, receiver, messages=1):
        at = np.arange(messages)
        return network.timeline(
            net, [network.Step(sender + at, receiver + at, np.full(messages, 8e6))]
        ).seconds

    tree = network.fat_tree(64, arity=4, link=1e9, taper=2.0, alpha=0.0)  # 4 ranks: 2 GB/s, 16: 8 GB/s
    for messages, to, expected in ((1, 1, 0.008), (4, 4, 0.016), (4, 16, 0.016), (16, 16, 0.016)):
        assert seconds(tree, 0, to, messages) == pytest.approx(expected), (messages, to)
    assert seconds(network.fat_tree(64, alpha=0.0), 0, 16, 16) == pytest.approx(0.008)  # no taper
    eight = network.islands(16, 8, near=4e9, far=1e9, alpha=0.0)
    for to, expected in ((1, 0.002), (8, 0.008)):
        assert seconds(eight, 0, to) == pytest.approx(expected)
    for ranks in (10, 9):
        with pytest.raises(ValueError, match=f"{ranks} ranks do not divide by 4"):
            network.islands(ranks, 4)
    for play in (schedules.summa, schedules.cannon):
        with pytest.raises(ValueError, match="ranks is 0"):
            play((8, 8, 8), 0)
    with pytest.raises(ValueError, match="ranks is 0"):
        schedules.doubling_all_reduce(0, 8)


@pytest.mark.timing
def test_four_thousand_ranks_take_less_than_two_seconds():
    start = time.perf_counter()
    for play in schedules.PRODUCTS.values():
        assert network.timeline(network.star(4096), play((65536,) * 3, 4096)).seconds > 0
    assert time.perf_counter() - start < 2


def test_plans_take_what_each_number_of_ranks_can_do():
    offer = Offer("eight", 1e12, 1e9, 1.0, network.star, counts=(1, 8))
    found = plans((2048,) * 3, [offer], 1e9)
    assert {(one.ranks, one.algorithm) for one in found} == {(1, "row"), (8, "row"), (8, "summa")}
    for one in found:
        assert one.memory == 4 * ALGORITHMS[one.algorithm].memory((2048,) * 3, one.ranks)
    with pytest.raises(ValueError, match="flops of none is 0"):
        Offer("none", 0, 1e9, 1.0, network.star)
    with pytest.raises(ValueError, match="number of speeds is 0"):
        shares(7, [])
    assert shares(10, [1.0, 1.0, 1.0])[1] == slice(3, 7)  # to the nearest: 10 / 3 and 20 / 3


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
    with pytest.raises(ValueError, match="of int64, int64 and int64, but the tolerance is for floats"):
        faults.check_and_repair(*[np.ones((2, 2), np.int64)] * 3)
    columns, rows = faults.tolerances(np.ones((4, 9)), np.ones((9, 2)), 1.0)  # u sqrt(K + M) sum |A| |B|
    u = 2.0**-53
    np.testing.assert_allclose(columns, [u * math.sqrt(13) * 36] * 2)
    np.testing.assert_allclose(rows, [u * math.sqrt(11) * 18] * 4)


def test_the_best_interval_is_where_a_simulated_run_is_shortest():
    checkpoint, mtbf, work = 60.0, 10800.0, 30 * 86400.0
    best = faults.young_daly_s(checkpoint, mtbf)

    def slowdown(interval):
        runs = [faults.simulated_run(work, interval, checkpoint, mtbf, 120, seed) for seed in range(20)]
        return np.mean(runs) / work

    at_best = slowdown(best)
    assert slowdown(best / 4) > at_best and slowdown(4 * best) > at_best
    assert at_best == pytest.approx(1 + faults.overhead(best, checkpoint, mtbf, 120), abs=0.03)
    assert faults.overhead(100, 10, 1000, 50) == pytest.approx(0.1 + 0.05 + 0.05)
    with pytest.raises(ValueError, match="never ends where something fails every 1 s"):
        faults.simulated_run(1e4, 60, 60, 1.0)
    with pytest.raises(ValueError, match="interval_s is 0"):
        faults.overhead(0, 60, 100)


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


def test_each_partition_has_a_sum_for_all_of_C_and_all_but_one_move():
    pytest.importorskip("dask")
    A, B = operands(30, 17, 23)
    partials = [
        {mapreduce.key_of(mapreduce.multiply_block(pair)): mapreduce.multiply_block(pair)[1] for pair in part}
        for part in mapreduce.bag_of(A, B, 4, 4).to_delayed()
        for part in [part.compute(scheduler="sync")]
    ]
    keys = Counter(key for part in partials for key in part)
    assert set(keys.values()) == {4} and len(keys) == 16  # each has all (i, j)
    sums = sum(block.size for part in partials[1:] for block in part.values())
    blocks = sum(a.size + b.size for _, a, b in mapreduce.pairs(A, B, 4))
    assert mapreduce.moved_words((30, 17, 23), 4) == (blocks, sums)


def test_tiles_that_are_kept_are_not_computed_again(tmp_path, monkeypatch):
    A, B = operands(10, 6, 7)
    faults.multiply_tiles(A[:4], B, 4, tmp_path)  # it died after the first band
    (file,) = tmp_path.iterdir()
    np.save(file, 7 * np.load(file))  # so that one sees who is used
    C = faults.multiply_tiles(A, B, 4, tmp_path)
    np.testing.assert_array_equal(C, np.concatenate([7 * (A[:4] @ B), A[4:] @ B]))
    for a, b, tile in ((A, B, 2), (A + 1, B, 4), (A, B + 1, 4)):  # what is kept of others is not taken
        np.testing.assert_array_equal(faults.multiply_tiles(a, b, tile, tmp_path), a @ b)
    assert faults.multiply_tiles(A[:0], B, 4, tmp_path).shape == (0, 7)

    def dies(unfinished, path):
        raise KeyboardInterrupt

    before = {*tmp_path.iterdir()}
    monkeypatch.setattr(whole_files, "_replace", dies)
    with pytest.raises(KeyboardInterrupt):
        faults.multiply_tiles(A - 1, B, 4, tmp_path)
    assert {*tmp_path.iterdir()} == before  # no half of a tile
