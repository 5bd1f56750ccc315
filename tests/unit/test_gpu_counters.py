"""The GPU's own counters: how ncu is asked and read, and that the tracer counts what the hardware counted."""

import math

import pytest


def imports():
    global np, ladder, gpu_counters, recordings, trace
    import numpy as np

    from course_lib import ladder
    from course_lib.commands import gpu_counters
    from course_lib.measure import recordings
    from course_lib.simulators.gpu import trace


def traced(entry, monkeypatch):
    """Return the trace of a rung's first kernel for 128 x 128 matrices, as its `start` launches it."""
    from course_lib.circles import cuda_launch

    launched = []
    monkeypatch.setattr(cuda_launch, "_launch", lambda *launch: launched.append(launch))
    module = entry.module()
    if hasattr(module, "rows_are_wide"):  # it asks for an address on the GPU
        monkeypatch.setattr(module, "rows_are_wide", lambda *arrays: True)
    A, B = ladder.operands((128, 128, 128), "float32")
    tile = getattr(module, "TILES", (None,))[0]
    module.start(A, B, np.zeros((128, 128), np.float32), *([tile] if tile else []))
    ((kernel, grid, block, *arrays),) = launched
    return trace(kernel, grid, block, *arrays, progress=False)


def of_global(found, kind):
    return sum(row.sectors for row in found.global_accesses if row.kind == kind)


def test_the_tracers_sectors_are_those_that_a_gpu_counted(monkeypatch):
    """Sectors of loads for an FMA of a warp, and of stores for an element of C, depend on the tile alone.

    Where a rung moves 16 bytes at once the tracer counts four accesses to the same sectors (`cuda_wide`).
    """
    recorded = recordings.of_chapter()
    rungs = [entry for entry in ladder.LADDER if "cuda" in entry.requires and entry.id != recordings.BASELINE]
    for entry in rungs:
        found, hardware = traced(entry, monkeypatch), recorded.counted(entry.id)
        accesses = 4 if entry.id in ("cuda-vectorised", "cuda-warptiled") else 1
        M, _, N = hardware.shape
        assert hardware.fmas == math.prod(hardware.shape), entry.id
        ours = of_global(found, "load") / (128**3 / 32)
        assert ours == accesses * hardware.load_sectors / hardware.warp_fmas, entry.id
        assert of_global(found, "store") / 128**2 == accesses * hardware.store_sectors / (M * N), entry.id


def test_four_numbers_for_all_lanes_take_two_wavefronts():
    """What chapter 06 teaches of the counters: loads of B, and a quarter of a load of A, for an FMA."""
    recorded = recordings.of_chapter()
    for id, wavefronts in (("cuda-tiled", 1 + 2 / 4), ("cuda-1d", 1 / 8 + 2 / 4), ("cuda-2d", 0.5)):
        counted = recorded.counted(id)
        assert counted.shared_load_wavefronts / counted.warp_fmas == pytest.approx(wavefronts, rel=1e-3), id


def table(launches):
    lines = [
        "==PROF== Connected to process 1",
        '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"',
    ]
    for id in range(launches):
        for place, metric in enumerate(gpu_counters.METRICS.values()):
            lines.append(f'"{id}","k","{metric}","sector","{1000 * (id + 1) + place:,}"')
        lines.append(f'"{id}","k","gpu__time_duration.sum","ns","7"')
    return "\n".join(lines) + "\n"


def test_ncus_table_is_read_launch_by_launch_and_a_launch_too_few_is_an_error():
    counted = gpu_counters.read(table(11))
    assert [(one.rung, one.load_sectors, one.fmas) for one in counted][:3] == [
        ("cuda-naive", 1000, 1004),
        ("cuda-coalesced", 2000, 2004),
        ("cuda-tiled", 3000, 3004),
    ]
    assert [one.rung for one in counted[3:]] == [
        rung for rung in ("cuda-1d", "cuda-2d", "cuda-vectorised", "cuda-warptiled") for _ in range(2)
    ]
    assert counted[0].tile == "" and counted[3].tile != counted[4].tile
    with pytest.raises(ValueError):
        gpu_counters.read(table(10))


def test_without_ncu_or_without_the_right_to_ask_it_there_is_a_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(gpu_counters.NotCounted, match="ncu"):
        gpu_counters.measure()
    said = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access the counters."
    ncu = tmp_path / "ncu"
    ncu.write_text(f'#!/bin/sh\necho "{said}" > "$3"\nexit 1\n')  # --csv --log-file FILE
    ncu.chmod(0o755)
    with pytest.raises(gpu_counters.NotCounted, match="could not read the counters: ERR_NVGPUCTRPERM"):
        gpu_counters.measure()
    ncu.write_text("#!/bin/sh\necho that went wrong >&2\nexit 1\n")
    with pytest.raises(gpu_counters.NotCounted, match="counters: that went wrong"):
        gpu_counters.measure()
    (tmp_path / "table").write_text(table(11).replace("1,000", "n/a"))
    ncu.write_text(f'#!/bin/sh\nexec /bin/cp "{tmp_path}/table" "$3"\n')
    with pytest.raises(gpu_counters.NotCounted, match="not as expected"):
        gpu_counters.measure()
    (tmp_path / "table").write_text(table(11))
    assert len(gpu_counters.measure()) == 11
