"""Interlude C: many ranks train as one would, and what they send, wait for and keep is known."""

import os
import signal
import time

import numpy as np
import pytest
import torch
from pace import slowness

from course_lib import views
from course_lib.distributed.emulated import run_emulated, why_not
from course_lib.distributed.launch import run
from course_lib.distributed.wire import Stuck, Wire, rehearse
from course_lib.measure.table import digits
from course_lib.training import compress, elastic, overlap, pipeline, planner, server, tensor_parallel, zero
from course_lib.training.data_parallel import average, first_not_finite, scaled_rate

rng = np.random.default_rng(22)


def test_ranks_average_to_the_big_batch_whatever_their_shares():
    x, y = rng.normal(size=(24, 3)), rng.normal(size=24)

    def trained(cuts, wire=None):
        w, b, losses = np.zeros(3), np.zeros(1), []
        mine = slice(*cuts[wire.rank]) if wire else slice(None)
        for _ in range(20):
            off = x[mine] @ w + b - y[mine]
            losses.append(np.mean((x @ w + b - y) ** 2))
            n = len(off)
            gradients = [2 * x[mine].T @ off / max(n, 1), np.array([2 * off.sum() / max(n, 1)])]
            if wire:
                gradients = average(wire, gradients, n)
            w, b = w - 0.1 * gradients[0], b - 0.1 * gradients[1]
        return losses

    big = trained(None)
    assert big[-1] < 0.9 * big[0]
    for cuts in ([(0, 12), (12, 24)], [(0, 4), (4, 24)], [(0, 24), (24, 24), (24, 24)]):
        played = rehearse(lambda wire, cuts=cuts: trained(cuts, wire), len(cuts))
        for losses in played.values:
            np.testing.assert_allclose(losses, big, rtol=1e-9)
    with pytest.raises(ValueError, match="No rank has an example"):
        rehearse(lambda wire: average(wire, [np.ones(2)], 0), 2)


def test_a_nan_is_named_before_it_is_everywhere():
    def play(wire, bad):
        gradients = [np.ones(2), np.ones(3)]
        if wire.rank == bad:
            gradients[1][2] = np.inf
        return first_not_finite(wire, ["W", "b"], gradients)

    assert rehearse(lambda wire: play(wire, 2), 4).values == ["b on rank 2"] * 4
    assert rehearse(lambda wire: play(wire, None), 3).values == [None] * 3
    assert rehearse(lambda wire: play(wire, None), 5).bytes_by_rank == [16 * 4] * 5


def test_the_learning_rate_grows_with_the_batch_after_a_warm_up():
    assert scaled_rate(0.05, 128) == 0.2
    rates = [scaled_rate(0.05, 128, step=step, warm_up=4) for step in range(6)]
    np.testing.assert_allclose(rates, [0.05, 0.0875, 0.125, 0.1625, 0.2, 0.2])


def test_a_server_counts_how_stale_an_update_is_and_who_waits():
    def gradient(w, worker, made):
        return w - worker

    w = np.zeros(1)
    for workers in (2, 4, 7):
        run = server.asynchronous(gradient, w, [1.0] * workers, 300, 0.01)
        assert run.staleness[workers:].mean() == workers - 1
    equal, slow = [1.0] * 4, [1.0] * 3 + [10.0]
    assert server.synchronous(gradient, w, slow, 30, 0.1).seconds[-1] == 300
    behind = server.asynchronous(gradient, w, slow, 120, 0.1)
    assert behind.seconds[-1] < 1.5 * server.asynchronous(gradient, w, equal, 120, 0.1).seconds[-1]
    assert behind.staleness[behind.workers == 3].min() >= 3 * 9  # the others' while it computes one
    together = server.synchronous(gradient, w, equal, 1, 0.5)
    np.testing.assert_allclose(together.weights[-1], [0.75])  # half a way to the mean of 0 … 3
    alone = server.asynchronous(gradient, np.ones(1), [2.0], 3, 0.5)
    np.testing.assert_allclose(alone.weights[:, 0], [1, 0.5, 0.25, 0.125])
    with pytest.raises(ValueError, match="number of workers"):
        server.asynchronous(gradient, w, [], 3, 0.1)


def test_a_cut_mlp_is_the_whole_one_with_two_all_reduces():
    x, A, B = (torch.from_numpy(rng.normal(size=size)) for size in ((5, 6), (6, 10), (10, 6)))
    whole = [one.clone().requires_grad_() for one in (x, A, B)]
    y = torch.relu(whole[0] @ whole[1]) @ whole[2]
    y.square().mean().backward()

    def play(wire):
        mine, own = tensor_parallel.shards(wire, A, B), x.clone().requires_grad_()
        out = tensor_parallel.mlp(wire, own, *mine)
        out.square().mean().backward()
        return out.detach(), own.grad, mine[0].grad, mine[1].grad

    for ranks in (1, 2, 3):
        played = rehearse(play, ranks)
        for out, of_x, *_ in played.values:
            torch.testing.assert_close(out, y.detach())
            torch.testing.assert_close(of_x, whole[0].grad)
        torch.testing.assert_close(torch.cat([one[2] for one in played.values], dim=1), whole[1].grad)
        torch.testing.assert_close(torch.cat([one[3] for one in played.values]), whole[2].grad)
        sent = 2 * 2 * (ranks - 1) / ranks * x.numel() * 8  # two all-reduces, each of batch x width
        assert np.mean(played.bytes_by_rank) == pytest.approx(sent)


def test_compressed_gradients_send_fewer_bytes_and_nothing_is_lost():
    gradients = rng.normal(size=(4, 40, 25)).astype(np.float32)
    gradients[:, 3, 7] += 9
    mean, zero = gradients.mean(axis=0), np.zeros((40, 25), np.float32)

    def play(wire, way, steps):
        error, total = zero, 0.0
        for step in range(steps):
            seed = {"seed": step} if way is compress.power_sgd else {}
            got, error = way(wire, gradients[wire.rank], error, **seed)
            total = total + got
        return total / steps, error

    whole = rehearse(lambda wire: play(wire, compress.exact, 1), 4)
    np.testing.assert_allclose(whole.values[0][0], mean, rtol=1e-5, atol=1e-6)
    halved = rehearse(lambda wire: play(wire, compress.half, 1), 4)
    assert halved.bytes_by_rank == [one / 2 for one in whole.bytes_by_rank]
    np.testing.assert_allclose(halved.values[0][0], mean, atol=0.01)
    for way, bytes_sent in ((compress.top_k, 3 * 8 * 10), (compress.power_sgd, 2 * 3 / 4 * 4 * (40 + 25))):
        once = rehearse(lambda wire, way=way: play(wire, way, 1), 4)
        assert np.mean(once.bytes_by_rank) == pytest.approx(bytes_sent, rel=0.02)
        assert np.abs(once.values[0][0] - mean).max() > 0.1  # one step says little
        many = rehearse(lambda wire, way=way: play(wire, way, 300), 4)
        owed = np.mean([value[1] for value in many.values], axis=0) / 300  # what has still to be sent
        np.testing.assert_allclose(many.values[0][0] + owed, mean, atol=1e-3)
        assert np.abs(many.values[0][0] - mean).max() < 0.3
        assert all(np.array_equal(value[0], many.values[0][0]) for value in many.values)
    with pytest.raises(ValueError, match="which float16 cannot hold"):
        rehearse(lambda wire: compress.half(wire, np.full(3, 1e6, np.float32), np.zeros(3, np.float32)), 2)


def test_pipelines_lose_what_the_formula_says_and_1f1b_keeps_less():
    for stages, micro in ((1, 3), (2, 1), (4, 4), (4, 16), (8, 32), (5, 3)):
        for order in (pipeline.gpipe(stages, micro), pipeline.one_forward_one_backward(stages, micro)):
            times = pipeline.timeline(order)
            assert times.bubble == pytest.approx((stages - 1) / (micro + stages - 1))
            assert times.seconds == pytest.approx(3 * (micro + stages - 1))
        assert pipeline.most_kept(pipeline.gpipe(stages, micro)) == [micro] * stages
        kept = pipeline.most_kept(pipeline.one_forward_one_backward(stages, micro))
        assert kept == [min(stages - stage, micro) for stage in range(stages)]
    with pytest.raises(ValueError, match="stage 0 at B0 waits for B0 of stage 1"):
        pipeline.timeline(
            [[("F", 0), ("B", 0), ("F", 1), ("B", 1)], [("F", 0), ("F", 1), ("B", 0), ("B", 1)]]
        )
    with pytest.raises(ValueError, match="once of each of 1"):
        pipeline.timeline([[("F", 0), ("B", 0)], [("F", 0), ("F", 0)]])


def test_a_pipeline_trains_as_one_machine_would():
    torch.manual_seed(3)
    layers = [torch.nn.Linear(6, 6) for _ in range(3)]
    inputs = [rng.normal(size=(4, 6)).astype(np.float32) for _ in range(5)]

    def loss(y, m):
        return (y - m).square().mean()

    out = [
        loss(layers[2](torch.relu(layers[1](torch.relu(layers[0](torch.from_numpy(x)))))), m)
        for m, x in enumerate(inputs)
    ]
    sum(out).backward()
    right = [layer.weight.grad.clone() for layer in layers]
    for make in (pipeline.gpipe, pipeline.one_forward_one_backward):
        order = make(3, 5)
        for layer in layers:
            layer.zero_grad()

        def play(wire, order=order):
            layer = layers[wire.rank]
            stage = (lambda x: torch.relu(layer(x))) if wire.rank < 2 else layer
            return pipeline.train_step(wire, order[wire.rank], stage, inputs, loss, ((4, 6), (4, 6)))

        played = rehearse(play, 3)
        np.testing.assert_allclose(played.values[2], [float(one.detach()) for one in out], rtol=1e-5)
        for layer, grad in zip(layers, right, strict=True):
            torch.testing.assert_close(layer.weight.grad, grad)
        assert len(played.messages) == 2 * 2 * 5

    def waits(wire):  # 1F1B with sends that wait: two neighbours send at the same time
        begin = wire.start_send
        wire.start_send = lambda x, to: begin(x, to)() or (lambda: None)
        return play(wire, pipeline.one_forward_one_backward(3, 5))

    with pytest.raises(Stuck, match="rank 0 sends to rank 1"):
        rehearse(waits, 3)


def test_sharded_adam_is_adam_and_sends_what_an_all_reduce_does():
    torch.manual_seed(1)
    start = [rng.normal(size=(4, 3)), rng.normal(size=5)]
    gradients = rng.normal(size=(3, 6, 17))  # (ranks, steps, parameters)
    whole = [torch.from_numpy(one.copy()).requires_grad_() for one in start]
    adam = torch.optim.Adam(whole, lr=0.01)
    for step in range(6):
        mean = gradients[:, step].mean(axis=0)
        whole[0].grad, whole[1].grad = (
            torch.from_numpy(one.copy()) for one in (mean[:12].reshape(4, 3), mean[12:])
        )
        adam.step()

    def play(wire):
        own = [one.copy() for one in start]
        update = zero.ShardedAdam(wire, own, rate=0.01)
        for step in range(6):
            mine = gradients[wire.rank, step]
            update([mine[:12].reshape(4, 3), mine[12:]])
        return own, update.mean.size

    played = rehearse(play, 3)
    for own, states in played.values:
        assert states in (5, 6)
        for got, want in zip(own, whole, strict=True):
            np.testing.assert_allclose(got, want.detach(), rtol=1e-6)
    assert sum(played.bytes_by_rank) == 6 * 2 * 2 * 17 * 8  # as six all-reduces: 2 n (P - 1) of all ranks
    assert [zero.kept(1e9, 64, stage).total / 1e9 for stage in range(4)] == [16, 8.125, 4.1875, 0.25]
    assert zero.kept(7.5e9, 64, 2, mixed=True).total / 1e9 == pytest.approx(16.6, abs=0.05)  # their figure 1
    with pytest.raises(ValueError, match="stage is 4"):
        zero.kept(1e9, 64, 4)


def test_training_goes_on_from_a_checkpoint_bit_by_bit(tmp_path):
    def trained(steps, kept):
        state = kept.latest() or {"step": 0, "w": np.ones(3), "momentum": np.zeros(3)}
        x = np.random.default_rng(5).normal(size=(40, 3))
        for step in range(state["step"], steps):
            batch = x[elastic.batch_of(step, 40, 8)]
            momentum = 0.9 * state["momentum"] + batch.T @ (batch @ state["w"] - 1) / 8
            state = {"step": step + 1, "w": state["w"] - 0.1 * momentum, "momentum": momentum}
            kept.keep(state)
        return state

    straight = trained(25, elastic.Checkpoints(tmp_path / "one", 4))
    broken = elastic.Checkpoints(tmp_path / "two", 4)
    trained(15, broken)  # lost after step 15: three steps are done again
    assert broken.latest()["step"] == 12
    assert np.array_equal(trained(25, broken)["w"], straight["w"])
    assert len(list((tmp_path / "two").iterdir())) == 2
    whole = max((tmp_path / "two").iterdir()).read_bytes()
    for content in (b"half", whole[: len(whole) // 2]):
        (tmp_path / "two" / "000000099.npz").write_bytes(content)
        with pytest.raises(ValueError, match=r"000000099.npz is no checkpoint .*: delete it"):
            broken.latest()
    epoch = np.concatenate([elastic.batch_of(step, 40, 8) for step in range(5)])
    assert sorted(epoch) == list(range(40)) and not np.array_equal(elastic.batch_of(5, 40, 8), epoch[:8])


def _survives(folder, dies_at, steps=30):
    rank, again = torch.distributed.get_rank(), os.environ["TORCHELASTIC_RESTART_COUNT"] != "0"
    wire, kept = Wire.of_group(), elastic.Checkpoints(folder / "kept", every=10)
    state = kept.latest() or {"step": 0, "w": np.ones(3)}
    (folder / f"{rank}-{again}").write_text(f"{state['step']} {time.time()}")
    for step in range(state["step"], steps):
        if rank == 1 and step == dies_at and not again:
            (folder / "died").write_text(f"{step} {time.time()}")
            os.kill(os.getpid(), signal.SIGKILL)
        at = elastic.batch_of(step, 40, 8)[rank::2]
        mean = average(wire, [state["w"] - at[:, None].mean(axis=0)], len(at))[0]
        state = {"step": step + 1, "w": state["w"] - 0.1 * mean}
        if rank == 0:
            kept.keep(state)
    return state["w"]


def lives_through(folder, dies_at):
    """Train on two ranks, rank 1 killed at a step; return the weights, and who died and began when."""
    (folder / "kept").mkdir(parents=True)
    weights = run(_survives, ranks=2, restarts=int(dies_at is not None), folder=folder, dies_at=dies_at)
    told = [(folder / name).read_text().split() for name in ("died", "0-True") if dies_at]
    return weights, [float(word) for words in told for word in words]


def test_a_killed_rank_costs_one_interval_at_most_and_no_bit(tmp_path):
    calm, _ = lives_through(tmp_path / "calm", dies_at=None)
    killed, (died, _, begun, _) = lives_through(tmp_path / "killed", dies_at=17)
    assert all(np.array_equal(one, calm[0]) for one in (*calm, *killed))
    assert died - begun <= 10 and begun == 10


@pytest.mark.timing
def test_a_killed_rank_is_back_within_two_seconds(tmp_path):
    _, (_, died_at, _, begun_at) = lives_through(tmp_path, dies_at=17)
    assert begun_at - died_at < 2 * slowness()


def test_torch_keeps_what_the_formula_says():
    for stage in (0, 3):
        for rank in run(zero.measured, ranks=2, stage=stage):
            assert rank == zero.kept(4 * (256 * 256 + 256), 2, stage)
    with pytest.raises(ValueError, match="stage is 1"):
        zero.measured(1)


def test_buckets_hide_what_travels_behind_what_is_computed():
    apart = overlap.planned([0.1] * 4, [1e6] * 4, link=1e7)  # 0.1 s for each layer's gradients, too
    together = overlap.planned([0.1] * 4, [1e6] * 4, link=1e7, bucket=1e6)
    assert (apart.seconds, together.seconds) == pytest.approx(
        (0.8, 0.5)
    )  # the first layer's cannot be hidden
    assert overlap.hidden(apart, together) == pytest.approx(0.75)
    coarse = overlap.planned([0.1] * 4, [1e6] * 4, link=1e7, bucket=2e6)
    assert [bar[1:] for bar in coarse.wire] == [pytest.approx(one) for one in ((0.2, 0.4), (0.4, 0.6))]
    slow = overlap.planned([0.1] * 4, [1e6] * 4, link=1e7, ranks=3, alpha=0.5, bucket=1e6)
    assert slow.seconds == pytest.approx(0.1 + 4 * 4 * (0.5 + 1 / 30))  # 2 (P - 1) steps for each bucket
    for wrong, words in (
        ({"link": 0}, "link is 0"),
        ({"link": 1e7, "ranks": 0}, "ranks is 0"),
        ({"link": 1e7, "bucket": 0}, "bucket is 0"),
        ({"link": 1e7, "alpha": -1}, "alpha is -1"),
    ):
        with pytest.raises(ValueError, match=words):
            overlap.planned([0.1], [1e6], **wrong)


def _backward(bucket):
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(4)))
    x = torch.randn(2048, 256) * (1 + torch.distributed.get_rank())
    tries = []
    for _ in range(3):
        model.zero_grad()
        tries.append(overlap.backward(model, lambda: model(x).square().mean(), bucket))
    grads = [one.grad.clone().numpy() for one in model.parameters()]
    return min(tries, key=lambda one: one.seconds), grads


def test_gradients_that_travel_early_are_the_ranks_means():
    apart, early = (run(_backward, ranks=2, bucket=bucket) for bucket in (None, 3e5))
    for one, other, third in zip(apart[0][1], early[0][1], early[1][1], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
        assert np.array_equal(other, third)
    times = early[0][0]
    assert [bar.name for bar in times.computes] == ["4", "3", "2", "1"]
    assert [bar.name for bar in times.wire] == [
        "4 to 3",
        "2 to 1",
    ]  # a layer has 263,168 bytes: two fill a bucket
    assert all(bar.end > bar.begin >= 0 for bar in times.computes + times.wire)


@pytest.mark.timing
@pytest.mark.skipif(why_not() is not None, reason="no network can be emulated here")
def test_on_a_slow_wire_a_third_is_hidden():
    apart, early = (run_emulated(_backward, ranks=2, link=1e7, bucket=bucket)[0][0] for bucket in (None, 2e5))
    assert overlap.hidden(apart, early) >= 0.3


def test_the_planner_meets_nine_published_runs_with_what_one_of_them_says():
    reached = planner.fitted(planner.MEGATRON[0])
    assert 0.55 < reached < 0.7
    assert planner.predicted(planner.MEGATRON[0], reached).flops == pytest.approx(137e12)
    off = [planner.predicted(run, reached).flops / run.flops - 1 for run in planner.MEGATRON[1:]]
    assert max(map(abs, off)) < 0.045
    sizes = [planner.transformer(*run[:3]).parameters / 1e9 for run in planner.MEGATRON]
    np.testing.assert_allclose(
        sizes, [1.7, 3.6, 7.5, 18.4, 39.1, 76.1, 145.6, 310.1, 529.6, 1008.0], rtol=0.03
    )
    assert all(planner.predicted(run, reached).memory < 80e9 for run in planner.MEGATRON)
    large = planner.transformer(32, 20480, 128)  # 162 billion parameters on 64 GPUs: figure 13 of that paper
    for batch in (32, 128):
        ways = [planner.Mesh(1, tensor, 64 // tensor) for tensor in (8, 4, 2)]
        speeds = [planner.step(large, planner.A100, way, batch, reached=reached).flops for way in ways]
        assert speeds == sorted(speeds, reverse=True)


def test_a_step_is_made_of_its_parts():
    gpt, how = planner.transformer(8, 1024, 16), {"reached": 0.7}
    one = planner.step(gpt, planner.A100, planner.Mesh(1), 16, **how)
    assert one.parts["bubble"] == one.parts["gradients' all-reduce"] == one.parts["layers' all-reduces"] == 0
    spread = planner.step(gpt, planner.A100, planner.Mesh(8), 16, **how)
    assert spread.parts["products"] == pytest.approx(one.parts["products"] / 8)
    sent = 2 * 7 / 8 * 2 * gpt.parameters  # bytes of a ring of 8 in an island
    assert spread.parts["gradients' all-reduce"] == pytest.approx(sent / 300e9 + 14 * planner.ALPHA)
    far = planner.step(gpt, planner.A100, planner.Mesh(2, tensor=8), 16, **how)
    assert far.parts["gradients' all-reduce"] == pytest.approx(
        2 * gpt.parameters / 8 / 25e9 + 2 * planner.ALPHA
    )
    early = planner.step(gpt, planner.A100, planner.Mesh(8), 16, overlaps=True, **how)
    assert early.parts["gradients' all-reduce"] < spread.parts["gradients' all-reduce"]
    staged = planner.step(gpt, planner.A100, planner.Mesh(1, pipeline=4), 16, **how)
    busy = staged.seconds - staged.parts["update"]
    assert staged.parts["bubble"] / busy == pytest.approx(3 / 19)
    six = planner.transformer(
        12, 1536, 16
    )  # fewer than an island are near to each other, six as well as eight
    sums = [
        planner.step(six, planner.A100, planner.Mesh(n), 24, **how).parts["gradients' all-reduce"]
        for n in (3, 6, 8)
    ]
    assert max(sums) < 1.5 * min(sums)
    cut = planner.step(gpt, planner.A100, planner.Mesh(8, zero=1), 16, **how)
    assert cut.memory == pytest.approx(spread.memory - 12 * gpt.parameters * 7 / 8)
    for mesh, batch, words in (
        (planner.Mesh(3), 16, "does not divide into 3 times"),
        (planner.Mesh(1, 16), 16, "an island of A100 has 8"),
        (planner.Mesh(1, 1, 3), 16, "8 layers do not divide into 3 x 1"),
        (planner.Mesh(1, zero=4), 16, "zero is 4"),
    ):
        with pytest.raises(ValueError, match=words):
            planner.step(gpt, planner.A100, mesh, batch, **how)


def test_a_module_is_counted_and_the_cheapest_plan_fits():
    layers = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8))
    model = planner.counted(layers, torch.randn(10, 64), layers=2, edge=640.0, sums=4)
    assert model.layers == 2 and model.edge == 640.0 and model.sums == 4
    assert model.flops == 2 * 10 * (64 * 32 + 32 * 8) and model.parameters == 64 * 32 + 32 + 32 * 8 + 8
    assert model.kept == 2 * 10 * (64 + 32)  # the inputs of both products; relu keeps its result, the same
    gpt = planner.transformer(36, 4096, 32)
    gpus = [planner.ClusterGpu("small", 3e14, 8e10, 2e12, 8, 3e11, 2.5e10, price=2.0)]
    found = planner.plans(gpt, gpus, 1e6, 512, (1, 8, 64), reached=0.7)
    assert {one.ranks for one in found} == {8, 64}  # 120 GB do not fit on one
    assert all(one.memory <= 8e10 and one.cost > 0 for one in found)
    assert found[0].algorithm.startswith("64 x 1 x 1, ZeRO 3")
    view = views.cheapest(lambda gpus: planner.plans(gpt, gpus, 1e6, 512, (1, 8), reached=0.7), gpus, 1e6)
    assert "Cheapest within 1e+06 s: 8 x small, 8 x 1 x 1, ZeRO" in view.static().text.replace(
        "1,000,000", "1e+06"
    )
    view.prices[0].value = 4.0
    (eight,) = (one for one in found if one.ranks == 8)
    assert f"for {digits(2 * eight.cost)}" in view.picture.value


def test_pictures_of_training_say_what_they_show():
    walk = views.schedule(4, 8)
    for name, most in (("GPipe", [8, 8, 8, 8]), ("1F1B", [4, 3, 2, 1])):
        assert np.max([walk.kept(name, step) for step in range(walk.last + 1)], axis=0).tolist() == most
        assert walk.kept(name, walk.last) == [0, 0, 0, 0]
    assert "GPipe: 27 % of the time lost, activations of up to 8 micro-batches" in walk.static().text
    assert "1F1B: 27 % of the time lost, activations of up to 4 micro-batches" in walk.static().text
    walk.order.value = "1F1B"
    assert walk.picture.value.count("F3") == 0 and "F3" in walk.frame(5)
    said = views.losses({"a": [2.0, 1.0], "b": ([0, 5], [2.0, 0.5])}, x="s").alt
    assert "At the end the loss is: b 0.500; a 1.00" in said
    said = views.rank_memory({"ZeRO 0": zero.kept(1e9, 4, 0), "ZeRO 3": zero.kept(1e9, 4, 3)}).alt
    assert "ZeRO 0 16.0 GB, ZeRO 3 4.00 GB" in said and "gradients 1.00 GB" in said
    for call, words in (
        (lambda: views.losses({}), "at least one run"),
        (lambda: views.losses({"a": [1.0]}), "two points"),
        (lambda: views.lanes({}), "0 bars cannot be drawn"),
        (lambda: views.schedule(9, 2), "stages is 9"),
        (lambda: views.rank_memory({}), "nothing to draw"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
