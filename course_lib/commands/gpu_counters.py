"""What the GPU's own counters say of the rungs, read by NVIDIA's profiler Nsight Compute (`ncu`).

    gpu_counters.measure()     a CountedLaunch for each rung and tile; NotCounted where ncu cannot

The tracer of chapter 06 counts what a kernel's source says. Here the hardware counts what the machine code
did: a process of its own starts every rung once under ncu, with the clocks left as they are. The counters'
names are ncu's (Nsight Compute documentation, "Metrics Decoder"): sectors of 32 bytes that global loads and
stores touch, instructions and wavefronts of shared memory, FMAs of single threads.

This file is that process's program as well: `python -m course_lib.commands.gpu_counters`.
"""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from course_lib import ladder
from course_lib.measure.recordings import BASELINE, CountedLaunch

#: CountedLaunch's fields, by ncu's names.
METRICS = {
    "load_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "store_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "shared_loads": "smsp__inst_executed_op_shared_ld.sum",
    "shared_load_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "fmas": "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
}
SIZE = 512
TILES = 2  # the first of each rung's list
LIMIT_S = 300.0  # compiling every kernel included


class NotCounted(RuntimeError):
    """ncu is missing here, or must not read the counters; the message says why."""


def measure() -> list[CountedLaunch]:
    """Return what the counters say of every rung but cuBLAS, for SIZE x SIZE matrices, with its first tiles.

    Raises NotCounted.
    """
    ncu = shutil.which("ncu")
    if not ncu:
        raise NotCounted("the counters need NVIDIA's profiler ncu (Nsight Compute), which is not on the PATH")
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "counted.csv"
        options = ("--csv", "--log-file", str(table), "--metrics", ",".join(METRICS.values()))
        unchanged = ("--clock-control", "none", "--profile-from-start", "off")
        command = [ncu, *options, *unchanged, sys.executable, "-m", "course_lib.commands.gpu_counters"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            raise NotCounted(f"ncu was not done after {LIMIT_S:g} s") from None
        said = table.read_text(encoding="utf-8") if table.exists() else ""
    if done.returncode:
        lines = [line for line in said.splitlines() if line.startswith("==ERROR==")]
        words = (lines or done.stderr.splitlines()[-1:] or ["it gives no reason"])[0]
        raise NotCounted(f"ncu could not read the counters: {words.removeprefix('==ERROR==').strip(' .')}")
    try:
        return read(said)
    except (KeyError, TypeError, ValueError) as problem:  # what was measured before must not be lost with it
        raise NotCounted(f"ncu's table is not as expected ({problem!r})") from problem


def read(table: str) -> list[CountedLaunch]:
    """Return the launches of ncu's table, one line a launch and counter, in the order of `_launches`."""
    lines = (line for line in table.splitlines() if not line.startswith("=="))
    counted: dict[int, dict[str, int]] = {}
    fields = {metric: name for name, metric in METRICS.items()}
    for row in csv.DictReader(lines):
        if row["Metric Name"] in fields:
            value = int(row["Metric Value"].replace(",", ""))
            counted.setdefault(int(row["ID"]), {})[fields[row["Metric Name"]]] = value
    names = [(rung, tile) for rung, tile, _ in _launches()]
    return [
        CountedLaunch(rung, (SIZE,) * 3, tile, **counts)
        for (rung, tile), (_, counts) in zip(names, sorted(counted.items()), strict=True)
    ]


def _launches() -> Iterator[tuple[str, str, Callable[..., None]]]:
    """Yield rung, tile and what starts it, for everything that is counted."""
    for entry in ladder.LADDER:
        if "cuda" in entry.requires and entry.id != BASELINE:
            module = entry.module()
            if not hasattr(module, "TILES"):
                yield entry.id, "", module.start
                continue
            for tile in module.TILES[:TILES]:
                yield entry.id, str(tile), partial(module.start, tile=tile)


def _start_each(starts: Iterable[Callable[..., None]]) -> None:
    """Start everything once unseen, which compiles, and once while ncu looks."""
    import torch

    random = torch.Generator("cuda").manual_seed(SIZE)
    A, B = (torch.randn(SIZE, SIZE, generator=random, device="cuda") for _ in range(2))
    C = torch.zeros(SIZE, SIZE, device="cuda")
    starts = list(starts)
    for start in starts:
        start(A, B, C)
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStart()
    for start in starts:
        start(A, B, C)
        torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStop()


if __name__ == "__main__":
    _start_each(start for _, _, start in _launches())
