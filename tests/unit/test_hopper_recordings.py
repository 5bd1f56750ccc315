"""`record --hopper` without a Hopper: what it compares is right, what is written can be read and drawn."""

import itertools
import json
import math
import weakref
from dataclasses import replace

import pytest

from course_lib.__main__ import main
from course_lib.fp8 import choice, jit, published, recordings
from course_lib.fp8.choose import H200
from course_lib.fp8.recordings import HopperRecording, HopperRow
from course_lib.measure import hardware
from course_lib.measure.gpu_state import STATES, RecordedGpu, Watch
from course_lib.measure.gpu_timing import Taken

#: No measurement: figures made up for these tests, of a device that does not exist.
ROWS = (
    HopperRow("ladder", "v0_naive", "", 1, 128, 256, 512, 1e-3, 1e-5, 9, 1e-5, 1e-6),
    HopperRow("dense", "ours", "v6_tuned 128x128", 1, 64, 512, 256, 2e-6, 1e-7, 9, 1e-5, 1e-6),
    HopperRow("dense", "torch block-wise", "", 1, 64, 512, 256, 3e-6, 1e-7, 9, 1e-5, 1e-6),
    HopperRow("dense", "torch bf16", "", 1, 64, 512, 256, 4e-6, 1e-7, 9, 1e-5, 1e-6, 1, 1755.0, 612.3),
    HopperRow("masked", "ours", "", 3, 100, 512, 256, 2e-6, 0.0, 9, 1e-5, 1e-6, 3),
    HopperRow("masked", "ours, dense", "", 3, 100, 512, 256, 1e-6, 0.0, 9, 1e-5, 1e-6),
)
RECORDING = HopperRecording(
    when="2020-02-03T04:05:06+00:00",
    commit="0123456789abcdef0123456789abcdef01234567",
    device="NVIDIA Test 9",
    gpu=RecordedGpu("999.1", "9.0", "13.0", 7, dict.fromkeys(STATES, (1.0, 2.0, 3.0)), 700.0, None),
    versions=dict.fromkeys(recordings.VERSIONS, "1.0"),
    method="Made up.",
    rows=ROWS,
    notes=("torch row-wise cannot be measured here: made up",),
)


def imports():
    global torch, launch, on_hopper, searching, Problem, product, CPU
    global record_hopper, RecordOrder
    import torch

    from course_lib.commands import record_hopper
    from course_lib.commands.record_order import RecordOrder
    from course_lib.fp8 import launch, on_hopper, searching
    from course_lib.fp8.plans import Problem
    from course_lib.fp8.reference import product

    CPU = torch.device("cpu")


# -- files -------------------------------------------------------------------------------------------------


def test_figures_follow_from_seconds_and_sizes():
    ours, bf16 = ROWS[1], ROWS[3]
    assert ours.tflops == pytest.approx(2 * 64 * 512 * 256 / 2e-6 / 1e12)
    assert ours.gbytes_per_s == pytest.approx((64 * 256 + 512 * 256 + 2 * 64 * 512) / 2e-6 / 1e9)
    assert bf16.gbytes_per_s == pytest.approx(2 * (64 * 256 + 512 * 256 + 64 * 512) / 4e-6 / 1e9)
    assert RECORDING.share(ours) == pytest.approx(1.5) and RECORDING.share(ROWS[0]) is None
    assert RECORDING.share(ROWS[4]) == pytest.approx(0.5)  # groups beside the same work as one product
    table = RECORDING.table("dense")
    assert "recorded on an NVIDIA Test 9 (driver 999.1) on 2020-02-03" in table.caption
    shown = [("1.500", "–", "–"), ("1.000", "–", "–"), ("0.750", "1755", "612")]
    assert [row[5:8] for row in table.rows] == shown
    beside = RECORDING.beside()
    assert beside.columns[4:] == ("torch block-wise", "torch bf16")
    assert [row[0:1] + row[4:] for row in beside.rows] == [("64 x 512 x 256", "1.50x", "2.00x")]
    assert [row.what for row in RECORDING.ladder()] == ["v0_naive"]


# -- under the roofs of its GPU ------------------------------------------------------------------------------


def test_the_picture_says_whose_figures_it_shows():
    from course_lib import views

    alt = views.fp8_roofline().alt
    reaches = "50–80 % of the memory roof for M = 64, 37–69 % of its roof for M = 4096"
    assert f"DeepGEMM reaches {reaches}" in alt and "not measured by this course" in alt
    assert published.SOURCE in alt and published.CAVEAT in alt and "peak 1,979 TFLOP/s" in alt
    assert alt.count(" TFLOP/s at ") == len(published.DEEPGEMM)

    rungs = (replace(ROWS[0], what="v1_mma", seconds=1e-6), replace(ROWS[0], what="v1_wgmma", seconds=5e-7))
    recording = replace(RECORDING, device="NVIDIA H200", rows=(*ROWS, *rungs))
    alt = views.fp8_roofline(recording).alt
    assert "Memory roof 4.80 TB/s" in alt and recording.origin in alt
    assert "M = 64, 512 x 256: 8.39 TFLOP/s at 78.8 FLOP/byte" in alt  # 2 * 64 * 512 * 256 in 2 us
    assert "the ladder, v0:" in alt and "the ladder, v1_wgmma:" in alt
    assert not any(words in alt for words in ("torch", "DeepGEMM", "not measured by this course"))
    with pytest.raises(ValueError, match="The roofs of NVIDIA H20 are not known: NVIDIA H100 80GB HBM3, "):
        views.fp8_roofline(replace(RECORDING, device="NVIDIA H20"))


# -- what is compared ----------------------------------------------------------------------------------------


def clock(starts):
    """A sampler that starts everything once and says that each took longer than the one before."""
    for start in starts.values():
        start()
    return {name: Taken([1e-6 * place] * 3, [1e-6] * 3) for place, name in enumerate(starts, start=1)}


@pytest.fixture
def pretend(monkeypatch, tmp_path):
    """The CPU as a Hopper: launches find their tensors by address, as the GPU would, if they still live."""
    seen, real = {}, Problem.of.__func__

    def remembered(cls, *tensors):
        seen.update({x.data_ptr(): weakref.ref(x) for x in tensors})
        return real(cls, *tensors)

    def tensor_at(address):
        x = seen[address]()
        assert x is not None, "a plan's tensor did not live as long as the plan"
        return x

    def compute(plan, device, change=None):
        by_name = {one.name: one.address for one in plan.arguments if not isinstance(one, int)}
        a, b, d = (tensor_at(by_name[name]) for name in "abd")
        if "a_scales" in by_name:
            scales = (tensor_at(by_name[name]) for name in ("a_scales", "b_scales"))
            a_scales, b_scales = scales
            d.copy_(product(a, a_scales, b, b_scales, simulated=False))
        else:
            d.copy_((a.float() @ b.float().T).bfloat16())

    def dense(a, a_scales, b, b_scales, d, tile):
        assert tile in choice.candidates(len(a), len(b), a.shape[1], H200)
        d.copy_(product(a, a_scales, b, b_scales, simulated=False))

    monkeypatch.setenv("NINE_CIRCLES_HOME", str(tmp_path))
    monkeypatch.setattr(record_hopper, "WATCHED_S", 0.0)
    monkeypatch.setattr(record_hopper, "TRIED", 3)
    monkeypatch.setattr(record_hopper, "ROOM", 256)
    monkeypatch.setattr(choice, "_known", {})
    monkeypatch.setattr(jit, "compiler", lambda: "NVRTC 13.0")
    monkeypatch.setattr(launch, "gpu", lambda device: H200)
    monkeypatch.setattr(launch, "finish", lambda device, limit_s: None)
    monkeypatch.setattr(launch, "launch", compute)
    monkeypatch.setattr(Problem, "of", classmethod(remembered))
    monkeypatch.setattr(on_hopper, "dense", dense)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device=None: None)


def test_a_small_recording_has_every_kind_and_every_way(pretend, monkeypatch):
    clocks = itertools.count(1000)  # at each look another one
    monkeypatch.setattr(hardware, "nvidia_smi", lambda fields: [str(next(clocks)), "3201", "[N/A]", "40"])
    rows, notes = record_hopper.measure(RecordOrder(small=True), CPU, clock, Watch())
    told = {(row.kind, row.shape, row.sm_mhz) for row in rows}  # a clock for each shape, its own
    assert len(told) == len({mhz for *_, mhz in told}) == len({(row.kind, row.shape) for row in rows})
    assert {row.power_w for row in rows} == {None} and {row.kind for row in rows} == set(recordings.KINDS)
    ladder = {row.what for row in rows if row.kind == "ladder"}
    assert ladder == {*record_hopper.SCALED, *record_hopper.UNSCALED, record_hopper.NO_YIELDS}
    dense = [row for row in rows if row.kind == "dense"]
    refused = {note.partition(" cannot")[0] for note in notes}
    everything = {"ours", "torch bf16", "torch tensor-wise", "torch row-wise", "torch block-wise"}
    assert len({row.shape for row in dense}) == 2 and all(row.kernel for row in dense if row.what == "ours")
    assert {row.what for row in dense} | refused == everything and "torch bf16" not in refused
    grouped = [row for row in rows if row.kind in ("contiguous", "masked")]
    assert [row.what for row in grouped] == ["ours", "ours, dense"] * 3
    assert [row.matrices for row in grouped] == [2, 1, 4, 1, 2, 1]  # the dense one reads one
    assert all(row.kernel.startswith(("v6_tuned ", "v8_swap_ab ", "v9_grouped ")) for row in grouped)
    counts = record_hopper.counts_of(2, 100, CPU)
    assert grouped[0].shape == (2, 512, 512, 256) and grouped[4].rows == int(counts.sum())
    assert all(0 < row.diff < 1e-5 and row.samples == 3 for row in rows)
    whole = replace(RECORDING, rows=tuple(rows), notes=tuple(notes))  # two groupings of the same rows, too
    assert recordings.restore(json.loads(json.dumps(recordings.FILES.data(whole)))) == whole
    assert all(whole.share(row) for row in grouped)


def test_what_fails_is_left_out_and_the_rest_is_kept(pretend, monkeypatch):
    """After a hang or an error of the GPU nothing more is begun, but what there is is kept."""
    order = RecordOrder(small=True)
    every = list(record_hopper.comparisons(order, CPU, clock))
    quick = [one for one in every if one[0] in ("dense", "contiguous")][:3]
    monkeypatch.setattr(record_hopper, "comparisons", lambda *_: iter(quick))
    for failure, ends in (
        (searching.WrongProduct("wrong"), False),
        (jit.CannotBuild("spills"), False),
        (RuntimeError("CUDA error"), True),
        (launch.Hangs("may hang"), True),
    ):

        def broken(failure=failure):
            raise failure

        kind, sizes, _ = quick[0]
        quick[0] = (kind, sizes, broken)
        rows, notes = record_hopper.measure(order, CPU, clock, Watch())
        assert notes[0] == f"Left out: dense 64 x 128 x 512: {failure}"
        assert (record_hopper.BROKEN in notes) == ends
        shapes = {(row.kind, row.shape) for row in rows}
        assert len(shapes) == (0 if ends else len(quick) - 1), failure


def test_a_wrong_kernel_is_not_timed(pretend):
    comparison = record_hopper.contiguous_ways(2, 128, 256, 256, CPU, clock)
    way = comparison.ways["ours"]
    for fault in (math.nan, 2.0):
        ways = {"ours": replace(way, result=lambda fault=fault: way.result() * fault)}
        says = r"^'ours' \(contiguous 2 x 256 x 256 x 256\) is wrong: calc_diff is"
        with pytest.raises(searching.WrongProduct, match=says):
            record_hopper.compared("contiguous", replace(comparison, ways=ways), clock, CPU, Watch())


def test_torch_sums_without_its_fast_accumulation(monkeypatch):
    """Else it would be compared with kernels that sum more exactly."""
    from course_lib.fp8 import torch_products
    from course_lib.fp8.quantise import ROW_BLOCKS, SQUARES

    seen, x, y = {}, torch.randn(48, 512), torch.randn(32, 512)
    monkeypatch.setattr(torch, "_scaled_mm", lambda a, b, **options: seen.update(options))
    torch_products.scaled(x, y, ROW_BLOCKS, SQUARES).start()
    assert seen["use_fast_accum"] is False and seen["scale_a"].shape == (48, 4)


# -- the command ---------------------------------------------------------------------------------------------


def called(*options):
    return main(["record", "--commit", "0" * 40, "--hopper", *options])


def test_a_recording_is_written_and_shown_also_after_a_hang(monkeypatch, tmp_path, capsys):
    ended, made = [], RECORDING
    monkeypatch.setattr(launch, "missing_here", lambda: None)
    monkeypatch.setattr(launch, "give_up", ended.append)
    monkeypatch.setattr(record_hopper, "measured", lambda order: made)
    assert called("--folder", str(tmp_path)) == 0
    printed = capsys.readouterr().out
    assert recordings.newest(tmp_path) == RECORDING and not ended
    assert "v0_naive" in printed and RECORDING.notes[0] in printed and "Written to" in printed
    notes = ("Left out: dense 1 x 8 x 16: it may hang.", record_hopper.BROKEN)
    made = replace(RECORDING, notes=notes)
    assert called("--folder", str(tmp_path)) == 1
    assert recordings.newest(tmp_path).notes == notes and ended == [f"record: {notes[0]}"]
    made = replace(RECORDING, rows=(), notes=notes[:1])
    assert called("--folder", str(tmp_path / "other")) == 1
    assert recordings.newest(tmp_path / "other") is None and len(ended) == 1
