"""Occupancy: the answers of NVIDIA's occupancy calculator, row by row."""

import pytest
from tools.looped import looped

from course_lib.simulators.gpu.occupancy import occupancy

#: What cuda_occupancy.h of CUDA 13.0 answers (12.9 agrees): cc, threads, registers, shared bytes; blocks per
#: SM, limits that tie (Warps, Blocks, Registers, Shared memory), registers and shared bytes given to a block.
CALCULATOR = [
    ((7, 5), 96, 37, 24576, 2, "S", 3840, 24576),
    ((7, 5), 640, 168, 16384, 0, "R", 107520, 16384),
    ((7, 5), 1024, 16, 0, 1, "W", 16384, 0),
    ((7, 5), 384, 104, 49152, 1, "RS", 39936, 49152),
    ((7, 5), 160, 56, 9000, 6, "W", 8960, 9216),
    ((8, 0), 1000, 40, 33792, 1, "R", 40960, 34816),
    ((8, 0), 32, 48, 0, 32, "B", 1536, 1024),
    ((8, 0), 128, 32, 9000, 16, "WRS", 4096, 10112),
    ((8, 6), 33, 255, 4096, 4, "R", 16384, 5120),
    ((8, 6), 512, 128, 101376, 1, "RS", 65536, 102400),
    ((8, 6), 32, 32, 1024, 16, "B", 1024, 2048),
    ((8, 6), 128, 40, 9000, 10, "S", 5120, 10112),
    ((8, 7), 512, 128, 9000, 1, "R", 65536, 10112),
    ((8, 7), 1000, 72, 49152, 0, "R", 73728, 50176),
    ((8, 7), 224, 37, 1024, 6, "WR", 8960, 2048),
    ((8, 7), 33, 40, 8192, 16, "B", 2560, 9216),
    ((8, 9), 128, 104, 4096, 4, "R", 13312, 5120),
    ((8, 9), 128, 40, 0, 12, "WR", 5120, 1024),
    ((8, 9), 768, 16, 9000, 2, "W", 12288, 10112),
    ((8, 9), 32, 16, 1024, 24, "B", 512, 2048),
    ((9, 0), 96, 80, 10000, 8, "R", 7680, 11136),
    ((9, 0), 128, 41, 33792, 6, "S", 6144, 34816),
    ((9, 0), 1000, 56, 116224, 1, "RS", 57344, 117248),
    ((9, 0), 64, 16, 0, 32, "WB", 1024, 1024),
]
LETTERS = {"warps": "W", "blocks": "B", "registers": "R", "shared memory": "S"}


@looped("row", CALCULATOR)
def test_the_occupancy_calculator_agrees(row):
    cc, threads, registers, shared_bytes, blocks, limits, block_registers, block_bytes = row
    result = occupancy(None, threads, cc, registers=registers, shared_bytes=shared_bytes)
    assert result.blocks_per_sm == blocks
    assert {LETTERS[name] for name in result.limited_by} == set(limits)
    assert (result.registers_per_block, result.shared_per_block) == (block_registers, block_bytes)


def test_the_table_shows_what_is_allocated():
    kernel = occupancy(None, (16, 16), (9, 0), registers=126, shared_bytes=100_000)
    shown = kernel.table()
    assert (
        "25.0 %: 16 of 64 warps in 2 blocks per SM, limited by registers and shared memory" in shown.caption
    )
    rows = {row[0]: row[1:] for row in shown.rows}
    assert rows["registers"] == ("32,768", "65,536", "2")
    assert rows["shared memory"] == ("98.75 KiB", "228 KiB", "2")
    assert "the launch would fail" in str(occupancy(None, 1024, (9, 0), registers=65))


# -- kernels of Numba --------------------------------------------------------------------------------------


class Compiled:
    """Stands for a CUDA dispatcher: what Numba tells about a kernel that a GPU has run."""

    def __init__(self, registers, shared_bytes, device=False):
        self.__name__ = "kernel"
        self.overloads = dict.fromkeys(registers) if isinstance(registers, dict) else {"float32": None}
        self.targetoptions = {"device": device}
        self.answers = registers, shared_bytes

    def __call__(self):
        raise AssertionError("occupancy must not launch")

    def get_regs_per_thread(self):
        return self.answers[0]

    def get_shared_mem_per_block(self):
        return self.answers[1]


def test_a_compiled_kernel_tells_its_registers_and_static_shared_memory():
    for kernel in (Compiled(40, 2048), Compiled({"a": 40, "b": 40}, {"a": 2048, "b": 2048})):
        result = occupancy(kernel, 256, (8, 0), shared_bytes=1000)
        assert (result.registers, result.shared_bytes) == (40, 3048)
    differing = Compiled({"a": 40, "b": 50}, {"a": 0, "b": 0})
    with pytest.raises(ValueError, match=r"^kernel takes 40 registers .* or 50 registers .* give None"):
        occupancy(differing, 256, (8, 0))


def test_an_uncompiled_kernel_is_not_compiled():
    cuda = pytest.importorskip("numba.cuda")

    @cuda.jit
    def double(x):
        x[cuda.grid(1)] *= 2

    with pytest.raises(ValueError, match=r"^double has not been compiled .* give registers="):
        occupancy(double, 256, (8, 0))
    assert occupancy(double, 256, (8, 0), registers=16).occupancy == 1


@looped(
    "arguments, said",
    [
        ({"block": 1025}, "block is 1025, but"),
        ({"block": (64, 32)}, "makes 2048 threads, but a block has 1024 at most"),
        ({"block": (1, 1, 65)}, "along x, y, z it has 1024, 1024, 64 threads at most"),
        ({"registers": 256}, "registers is 256, but a thread has 255 at most"),
        ({"registers": None}, "give registers="),
        ({"shared_bytes": 99 * 1024 + 1}, "needs 101,377 bytes of shared memory, but"),
        ({"cc": (8, 8)}, "cc is (8, 8), but the limits are known for 7.5, 8.0, 8.6, 8.7, 8.9, 9.0"),
    ],
)
def test_bad_input_gets_one_sentence(arguments, said):
    asked = {"block": 256, "cc": (8, 6), "registers": 32} | arguments
    with pytest.raises(ValueError) as caught:
        occupancy(None, asked.pop("block"), asked.pop("cc"), **asked)
    sentence = str(caught.value)
    assert said in sentence
    assert sentence.endswith(".") and "\n" not in sentence and ". " not in sentence
