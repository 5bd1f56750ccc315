"""`record --hopper` without a Hopper: what it compares is right, what is written can be read."""

import copy
import itertools
import json
import math
import weakref
from dataclasses import replace

import pytest
import torch

from course_lib.commands import record, record_hopper
from course_lib.fp8 import control, jit, launch, on_hopper, recordings, search, searching, torch_products
from course_lib.fp8.choose import H200
from course_lib.fp8.plans import Problem
from course_lib.fp8.quantise import ROW_BLOCKS, SQUARES
from course_lib.fp8.recordings import HopperRecording, HopperRow
from course_lib.fp8.reference import product
from course_lib.measure import hardware
from course_lib.measure.gpu_state import Watch
from course_lib.measure.gpu_timing import Taken
from course_lib.measure.recorded_fields import MalformedRecording
from course_lib.measure.recorded_gpu import Gpu
from course_lib.measure.recordings import STATES

CPU = torch.device("cpu")
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
    gpu=Gpu("999.1", "9.0", "13.0", 7, dict.fromkeys(STATES, (1.0, 2.0, 3.0)), 700.0, None),
    versions=dict.fromkeys(recordings.VERSIONS, "1.0"),
    method="Made up.",
    rows=ROWS,
    notes=("torch row-wise cannot be measured here: made up",),
)


def changed(**fields):
    content = copy.deepcopy(json.loads(json.dumps(RECORDING.data())))
    content.update(fields)
    return content


def changed_row(**fields):
    content = changed()
    content["rows"][0].update(fields)
    return content


# -- files -------------------------------------------------------------------------------------------------


def test_the_folder_of_the_package_has_true_recordings_only():
    assert (recordings.FOLDER / "README.md").is_file()
    assert all("Test" not in recordings.read(path).device for path in recordings.FOLDER.glob("*.json"))


def test_what_is_written_can_be_read(tmp_path):
    path = recordings.write(RECORDING, tmp_path / "new folder")
    assert path.name == "hopper-nvidia-test-9-20200203040506.json"
    assert recordings.read(path) == RECORDING == recordings.newest(tmp_path / "new folder")
    later = replace(RECORDING, when="2021-02-03T04:05:06+00:00")
    recordings.write(later, tmp_path / "new folder")
    assert recordings.newest(tmp_path / "new folder") == later
    assert recordings.newest(tmp_path) is None


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([], "it does not say 'kind': 'hopper'"),
        (changed(kind="gpu"), "it does not say 'kind': 'hopper'"),
        (changed(rows=[]), "it has no rows"),
        (changed(commit="abc"), "'commit' is 'abc'"),
        (changed(gpu=None), "'gpu' is None"),
        (changed(versions={}), "'python' is missing"),
        (changed(notes=[""]), "'notes' is empty"),
        (changed_row(kind="sparse"), "in row 1, 'kind' is 'sparse', not one of ladder, dense"),
        (changed_row(seconds=0), "in row 1, 'seconds'"),
        (changed_row(diff=-1), "in row 1, 'diff'"),
        (changed_row(K=1.5), "in row 1, 'K'"),
        (
            changed(rows=[RECORDING.data()["rows"][0]] * 2),
            "'v0_naive' stands there twice for 1 x 128 x 256 x 512",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(content, words):
    with pytest.raises(MalformedRecording) as caught:
        recordings.restore(content, "file.json")
    message = str(caught.value)
    assert message.startswith("file.json is no recording: ") and words in message
    assert message.endswith("make it anew with `python -m course_lib record --hopper`.")


def test_figures_follow_from_seconds_and_sizes():
    ours, bf16 = ROWS[1], ROWS[3]
    assert ours.tflops == pytest.approx(2 * 64 * 512 * 256 / 2e-6 / 1e12)
    assert ours.gbytes_per_s == pytest.approx((64 * 256 + 512 * 256 + 2 * 64 * 512) / 2e-6 / 1e9)
    assert bf16.gbytes_per_s == pytest.approx(2 * (64 * 256 + 512 * 256 + 64 * 512) / 4e-6 / 1e9)
    assert ROWS[4].gbytes_per_s == pytest.approx((100 * 256 + 3 * 512 * 256 + 2 * 100 * 512) / 2e-6 / 1e9)
    one = ROWS[5]  # beside three matrices it reads one
    assert one.gbytes_per_s == pytest.approx((100 * 256 + 512 * 256 + 2 * 100 * 512) / 1e-6 / 1e9)
    assert RECORDING.share(ours) == pytest.approx(1.5) and RECORDING.share(ROWS[0]) is None
    assert RECORDING.share(ROWS[4]) == pytest.approx(0.5)  # groups beside the same work as one product


def test_tables_name_their_origin():
    table = RECORDING.table("dense")
    assert "recorded on an NVIDIA Test 9 (driver 999.1) on 2020-02-03" in table.caption
    assert [row[6:9] for row in table.rows] == [
        ("1.500", "–", "–"),
        ("1.000", "–", "–"),
        ("0.750", "1755", "612"),
    ]
    assert [row.what for row in RECORDING.ladder()] == ["v0_naive"]
    with pytest.raises(ValueError, match="kind is 'sparse', but it must be one of"):
        RECORDING.of("sparse")


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

    def found(address):
        x = seen[address]()
        assert x is not None, "a plan's tensor did not live as long as the plan"
        return x

    def compute(plan, device, change=None):
        by_name = {one.name: one.address for one in plan.arguments if not isinstance(one, int)}
        a, b, d = (found(by_name[name]) for name in "abd")
        if "a_scales" in by_name:
            d.copy_(product(a, found(by_name["a_scales"]), b, found(by_name["b_scales"]), core=None))
        else:
            d.copy_((a.float() @ b.float().T).bfloat16())

    def dense(a, a_scales, b, b_scales, d, choice):
        assert choice in search.candidates(len(a), len(b), a.shape[1], H200)
        d.copy_(product(a, a_scales, b, b_scales, core=None))

    monkeypatch.setenv("NINE_CIRCLES_HOME", str(tmp_path))
    monkeypatch.setattr(record_hopper, "WATCHED_S", 0.0)
    monkeypatch.setattr(search, "_known", {})
    monkeypatch.setattr(launch, "gpu", lambda device: H200)
    monkeypatch.setattr(launch, "finish", lambda device, limit_s: None)
    monkeypatch.setattr(launch, "launch", compute)
    monkeypatch.setattr(Problem, "of", classmethod(remembered))
    monkeypatch.setattr(on_hopper, "dense", dense)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device=None: None)


def test_a_small_recording_has_every_kind_and_every_way(pretend, monkeypatch):
    clocks = itertools.count(1000)  # at each look another one
    monkeypatch.setattr(hardware, "nvidia_smi", lambda fields: [str(next(clocks)), "3201", "[N/A]", "40"])
    rows, notes = record_hopper.measure(record_hopper.Order(small=True), CPU, clock, Watch())
    told = {(row.kind, row.shape, row.sm_mhz) for row in rows}  # a clock for each shape, its own
    assert len(told) == len({clock for *_, clock in told}) == len({(row.kind, row.shape) for row in rows})
    assert {row.power_w for row in rows} == {None}
    assert {row.kind for row in rows} == set(recordings.KINDS)
    ladder = {row.what for row in rows if row.kind == "ladder"}
    assert ladder == {*record_hopper.SCALED, *record_hopper.UNSCALED, record_hopper.NO_YIELDS}
    dense = [row for row in rows if row.kind == "dense"]
    assert len({row.shape for row in dense}) == 2
    refused = {note.partition(" cannot")[0] for note in notes}
    everything = {"ours", "torch bf16", "torch tensor-wise", "torch row-wise", "torch block-wise"}
    assert {row.what for row in dense} | refused == everything and "torch bf16" not in refused
    assert all(row.kernel for row in dense if row.what == "ours")
    grouped = [row for row in rows if row.kind in ("contiguous", "masked")]
    assert [row.what for row in grouped] == ["ours", "ours, dense"] * 3
    assert [row.matrices for row in grouped] == [2, 1, 4, 1, 2, 1]  # the dense one reads one
    assert all(row.kernel.startswith(("v6_tuned ", "v8_swap_ab ", "v9_grouped ")) for row in grouped)
    assert grouped[0].shape == (2, 512, 512, 256) and grouped[4].rows == int(
        record_hopper.counts_of(2, 100, CPU).sum()
    )
    assert all(0 < row.diff < 1e-5 and row.samples == 3 for row in rows)
    whole = replace(RECORDING, rows=tuple(rows), notes=tuple(notes))  # two groupings of the same rows, too
    assert recordings.restore(json.loads(json.dumps(whole.data()))) == whole
    assert all(whole.share(row) for row in grouped)


@pytest.mark.parametrize(
    ("failure", "left"),
    [
        (searching.Wrong("wrong"), ["ladder", "contiguous", "contiguous", "masked"]),
        (jit.CannotBuild("spills"), ["ladder", "contiguous", "contiguous", "masked"]),
        (RuntimeError("CUDA error"), ["ladder"]),
        (launch.Hangs("may hang"), ["ladder"]),
    ],
)
def test_what_fails_is_left_out_and_the_rest_is_kept(pretend, monkeypatch, failure, left):
    """After a hang or an error of the GPU nothing more is begun, but what there is is kept."""

    def broken(*given):
        raise failure

    monkeypatch.setattr(record_hopper, "dense_ways", broken)
    rows, notes = record_hopper.measure(record_hopper.Order(small=True), CPU, clock, Watch())
    kinds = [kind for kind, _ in itertools.groupby(rows, key=lambda row: (row.kind, row.shape))]
    assert [kind for kind, _ in kinds] == left
    assert notes[0] == f"Left out: dense 64 x 128 x 512: {failure}"
    assert sum(note.startswith("Left out: dense") for note in notes) == (2 if len(left) > 1 else 1)
    assert (notes[-1] == record_hopper.BROKEN) == (len(left) == 1)


def test_ours_gets_the_tile_that_the_search_found(pretend, monkeypatch):
    def upside_down(starts):
        taken = clock(starts)
        return {name: Taken([1 / one.median_s] * 3, [1.0]) for name, one in taken.items()}

    monkeypatch.setattr(torch_products, "all_of", lambda x, y: ({}, {}))
    ways, _ = record_hopper.dense_ways((256, 512, 256), CPU, upside_down)
    last = search.candidates(256, 512, 256, H200)[record_hopper.TRIED - 1]
    assert search.best(256, 512, 256, H200) == last
    assert ways["ours"].kernel.startswith(f"{last.kernel} {last.tile.BM}x{last.tile.BN}")


@pytest.mark.parametrize("fault", [math.nan, 2.0])
def test_a_wrong_kernel_is_not_timed(pretend, fault):
    ways = record_hopper.contiguous_ways(2, 128, 256, 256, CPU, clock)
    way = ways["ours"]
    broken = replace(way, result=lambda: way.result() * fault)
    with pytest.raises(
        searching.Wrong, match=r"^'ours' \(contiguous 2 x 256 x 256 x 256\) is wrong: calc_diff is"
    ):
        record_hopper.compared("contiguous", (2, 256, 256, 256), {"ours": broken}, clock, CPU, Watch())


def test_a_wrong_tile_ends_the_search(pretend, monkeypatch):
    right, calls = on_hopper.dense, []

    def third_is_wrong(a, a_scales, b, b_scales, d, choice):
        calls.append(choice)
        right(a, a_scales, b, b_scales, d, choice)
        if len(set(calls)) == 3:
            d[0, 0] = 1000

    monkeypatch.setattr(on_hopper, "dense", third_is_wrong)
    with pytest.raises(searching.Wrong, match=r"^v\d_\w+ \d+x\d+.* is wrong: calc_diff is"):
        record_hopper.dense_ways((256, 512, 512), CPU, clock)
    assert search._store().read() == {}


def test_the_yields_are_taken_out_of_one_rung_only(pretend, monkeypatch):
    changes, compute = {}, launch.launch

    def noted(plan, device, change=None):
        changes.setdefault(plan.kernel, []).append(change)
        compute(plan, device, change)

    monkeypatch.setattr(launch, "launch", noted)
    ways, _ = record_hopper.rungs((128, 128, 128), CPU)
    for way in ways.values():
        way.start()
    assert changes.pop("v6_tuned") == [None, control.without_yields]
    assert all(change == [None] for change in changes.values())


def test_torch_adds_without_the_fast_accumulator(monkeypatch):
    seen = {}
    monkeypatch.setattr(torch, "_scaled_mm", lambda a, b, **options: seen.update(options))
    torch_products.scaled(torch.randn(16, 512), torch.randn(16, 512), ROW_BLOCKS, SQUARES).start()
    assert seen["use_fast_accum"] is False and seen["out_dtype"] == torch.bfloat16
    assert seen["scale_a"].shape == (16, 4) and seen["scale_a"].stride(0) == 1
    assert seen["scale_b"].shape == (4, 1)


def test_shapes_are_those_of_deepgemms_first_release():
    assert len(record_hopper.DENSE) == 18 and (4096, 7168, 16384) in record_hopper.DENSE
    assert (64, 2112, 7168) in record_hopper.DENSE and (4, 8192, 7168, 2048) in record_hopper.CONTIGUOUS
    assert record_hopper.MASKED[-1] == (4, 256, 7168, 2048)
    counts = record_hopper.counts_of(4, 256, CPU)
    assert len(counts) == 4 and counts.dtype == torch.int32
    assert 0.7 * 256 - 1 < counts.min() < counts.max() < 1.3 * 256


def test_torchs_products_compute_what_they_say_they_multiply():
    x, y = torch.randn(48, 256), torch.randn(32, 256)
    one = torch_products.bf16(x, y)
    one.start()
    assert torch.allclose(one.d.float(), x @ y.T, atol=0.3) and not torch.equal(one.a, x)
    assert torch.equal(one.a, x.bfloat16().float())


# -- the command ---------------------------------------------------------------------------------------------


def called(*options):
    from argparse import ArgumentParser

    parser = ArgumentParser()
    record.add_arguments(parser)
    return record.run(parser.parse_args(["--commit", "0" * 40, *options]))


def test_without_a_hopper_the_command_says_so(capsys):
    assert called("--hopper") == 2
    printed = capsys.readouterr().out
    assert printed.startswith("record: ") and len(printed.splitlines()) == 1


def test_one_thing_at_a_time(capsys):
    assert called("--hopper", "--gpu") == 2
    assert (
        "one thing to record at a time: say --gpu, --code, --encoder or --hopper." in capsys.readouterr().out
    )


def test_a_small_recording_is_not_for_the_course(capsys):
    assert called("--hopper", "--small") == 2
    assert capsys.readouterr().out.startswith("record: a small recording is for trying out")


def test_a_recording_is_written_and_shown(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(launch, "missing_here", lambda: None)
    monkeypatch.setattr(record_hopper, "measured", lambda order: RECORDING)
    assert called("--hopper", "--folder", str(tmp_path)) == 0
    printed = capsys.readouterr().out
    assert recordings.newest(tmp_path) == RECORDING
    assert "v0_naive" in printed and RECORDING.notes[0] in printed and "Written to" in printed


def test_after_a_hang_the_file_is_written_and_the_process_ends(monkeypatch, tmp_path, capsys):
    notes = ("Left out: dense 1 x 8 x 16: it may hang.", record_hopper.BROKEN)
    ended = []
    monkeypatch.setattr(launch, "missing_here", lambda: None)
    monkeypatch.setattr(launch, "give_up", ended.append)
    monkeypatch.setattr(record_hopper, "measured", lambda order: replace(RECORDING, notes=notes))
    assert called("--hopper", "--folder", str(tmp_path)) == 1
    assert recordings.newest(tmp_path).notes == notes
    assert ended == [f"record: {notes[0]}"]
    monkeypatch.setattr(record_hopper, "measured", lambda order: replace(RECORDING, rows=(), notes=notes[:1]))
    assert called("--hopper", "--folder", str(tmp_path / "other")) == 1
    assert recordings.newest(tmp_path / "other") is None and len(ended) == 1
