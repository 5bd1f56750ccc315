"""The encoder on a GPU in every way that is measured: the same numbers, wall time above the GPU's own."""

import pytest

from course_lib.speech.encoder_speed import measure
from course_lib.speech.encoder_variants import Setting, Variants

pytestmark = pytest.mark.gpu
BASE = Setting(2, 100, device="cuda")


def imports():
    global torch, record_encoder, ConformerEncoder
    import torch

    from course_lib.commands import record_encoder
    from course_lib.speech.conformer import ConformerEncoder


def encoder():
    torch.manual_seed(0)
    return ConformerEncoder(n_layers=2, d_model=64, n_heads=4).eval()


def test_every_way_to_run_gives_the_encoders_numbers():
    settings = [
        BASE.but(dtype=dtype, how=how) for how in ("eager", "graph") for dtype in record_encoder.WORST_ERROR
    ]
    settings.append(BASE.but(how="compiled"))
    for point in measure(encoder(), settings, budget_s=4):
        assert point.error <= record_encoder.WORST_ERROR[point.setting.dtype], point
        assert point.setting.dtype == "float32" or point.error > 0
        assert 0 < point.busy_s < 1.2 * point.seconds


def test_a_graph_follows_its_input():
    model = encoder().to("cuda")
    features = torch.randn(2, 80, 100, device="cuda")
    with torch.no_grad():
        forward = Variants(model).forward(BASE.but(how="graph"), features)
        first = forward().clone()
        features.copy_(torch.randn(2, 80, 100, device="cuda"))  # the addresses stay
        second = forward().clone()
        wanted = model(features, torch.tensor([100, 100], device="cuda"))[0]
    assert not torch.equal(first, second)
    assert float((second - wanted).abs().max() / wanted.abs().max()) < 1e-5


def test_a_small_recording_of_this_gpu(tmp_path):
    from course_lib.commands.record_order import RecordOrder
    from course_lib.speech import encoder_recordings

    order = RecordOrder("0" * 40, device="cuda", budget_s=4.0, small=True)
    recording = record_encoder.measured(order)
    path = encoder_recordings.write(recording, tmp_path)
    assert encoder_recordings.read(path) == recording
    assert any(row.kind == "kernel" for row in recording.profile)
    assert recording.gpu.driver in recording.origin
