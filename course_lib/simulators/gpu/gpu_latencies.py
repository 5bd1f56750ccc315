"""How long an instruction's result takes on some GPUs, in clock cycles.

Measured on idle machines by chains of dependent instructions and by chasing pointers, rounded to whole
cycles; under load memory takes longer. Another way of measuring gives another figure: Luo et al. find 466
cycles for the A100's DRAM where Abdelkhalik et al. find 290.
"""

from __future__ import annotations

from dataclasses import dataclass

from course_lib.simulators.gpu.whole_numbers import check_whole

MOST_LATENCY = 10_000


@dataclass(frozen=True)
class Latencies:
    """Cycles from an instruction's issue to that of the first one that may read its result."""

    arithmetic: int  # an FP32 FMA
    shared: int  # a load from shared memory, without bank conflicts
    l2: int  # a load from global memory that the L2 cache answers
    dram: int  # a load from global memory that no cache answers
    source: str = ""

    def __post_init__(self) -> None:
        for what in ("arithmetic", "shared", "l2", "dram"):
            check_whole(f"The latency {what}", getattr(self, what), 1, MOST_LATENCY)


_LUO = (
    "memory: Luo et al. 2024, arXiv:2402.13499, table IV; FMA: Jia et al. 2019, arXiv:1903.07486, table 4.1"
)
LATENCIES = {
    "A100": Latencies(4, 23, 200, 290, "Abdelkhalik et al. 2022, arXiv:2208.11174"),
    "RTX 4090": Latencies(4, 30, 273, 542, _LUO),
    "H100": Latencies(4, 29, 263, 479, _LUO),
}


def latencies_of(gpu: str | Latencies) -> Latencies:
    """Return the latencies of a GPU by its name in LATENCIES; Latencies are returned as they are.

    Raises ValueError for an unknown name.
    """
    if isinstance(gpu, Latencies):
        return gpu
    if gpu not in LATENCIES:
        known = ", ".join(map(repr, LATENCIES))
        raise ValueError(
            f"latencies is {gpu!r}, but known are {known}: name one, or give Latencies of your own."
        )
    return LATENCIES[gpu]
