"""Occupancy: NVIDIA's published examples, its occupancy calculator row by row, and blocks packed by hand."""

import pytest
from tools.looped import looped

from course_lib.simulators.gpu.occupancy import limits_of, occupancy

#: CUDA C++ Programming Guide 13, "Technical Specifications per Compute Capability":
#: cc -> blocks, warps and threads per SM; KB of shared memory per SM and per block
PUBLISHED_LIMITS = {
    (7, 5): (16, 32, 1024, 64, 64),
    (8, 0): (32, 64, 2048, 164, 163),
    (8, 6): (16, 48, 1536, 100, 99),
    (8, 7): (16, 48, 1536, 164, 163),
    (8, 9): (24, 48, 1536, 100, 99),
    (9, 0): (32, 64, 2048, 228, 227),
}

#: cc, block, registers, shared bytes -> blocks per SM, and where that is said. The guides' examples are for
#: compute capabilities 6.x, 7.0 and 10.0, which have the registers, warps and blocks of 8.0 and 9.0.
PUBLISHED_EXAMPLES = [
    # CUDA C++ Best Practices Guide, "Calculating Occupancy": 75 % with 12 blocks, 63 % with 4
    ((8, 0), 128, 37, 0, 12, 0.75),
    ((8, 0), 320, 37, 0, 4, 0.625),
    ((9, 0), 128, 37, 0, 12, 0.75),
    # ibidem: for 100 % a thread can use at most 32 registers
    ((8, 0), 256, 32, 0, 8, 1.0),
    # CUDA C++ Programming Guide, "Multiprocessor Level": two blocks (32 warps), one register more: one block
    ((8, 0), 512, 64, 0, 2, 0.5),
    ((8, 0), 512, 65, 0, 1, 0.25),
    # CUDA Programming Guide 13, on occupancy: blocks of 32 threads stop at 32 blocks, 50 %
    ((9, 0), 32, 16, 0, 32, 0.5),
    # S. Boehm 2022, "How to optimize a CUDA matmul kernel", kernel 3 on an A6000: 32 of 48 warps
    ((8, 6), 1024, 37, 8192, 1, 32 / 48),
    # Kokkos pull request 5739: 92 registers, 224 threads: 3 blocks were it not for whole multiples of 4 warps
    ((8, 0), 224, 92, 0, 2, 14 / 64),
]

#: What cuda_occupancy.h of CUDA 13.0 answers (12.9 agrees): cc, threads, registers, shared bytes; blocks per
#: SM, limits that tie (Warps, Blocks, Registers, Shared memory), registers and shared bytes given to a block.
CALCULATOR = [
    ((7, 5), 96, 37, 24576, 2, "S", 3840, 24576),
    ((7, 5), 640, 168, 16384, 0, "R", 107520, 16384),
    ((7, 5), 1024, 16, 0, 1, "W", 16384, 0),
    ((7, 5), 384, 104, 49152, 1, "RS", 39936, 49152),
    ((7, 5), 1000, 48, 33792, 1, "WRS", 49152, 33792),
    ((7, 5), 64, 40, 1024, 16, "WB", 2560, 1024),
    ((7, 5), 160, 56, 9000, 6, "W", 8960, 9216),
    ((8, 0), 1000, 40, 33792, 1, "R", 40960, 34816),
    ((8, 0), 288, 16, 24577, 6, "S", 4608, 25728),
    ((8, 0), 100, 24, 4096, 16, "W", 3072, 5120),
    ((8, 0), 32, 48, 0, 32, "B", 1536, 1024),
    ((8, 0), 128, 32, 9000, 16, "WRS", 4096, 10112),
    ((8, 6), 33, 255, 4096, 4, "R", 16384, 5120),
    ((8, 6), 288, 16, 101376, 1, "S", 4608, 102400),
    ((8, 6), 512, 128, 101376, 1, "RS", 65536, 102400),
    ((8, 6), 32, 32, 1024, 16, "B", 1024, 2048),
    ((8, 6), 1000, 24, 50688, 1, "WS", 24576, 51712),
    ((8, 6), 128, 40, 9000, 10, "S", 5120, 10112),
    ((8, 7), 512, 128, 9000, 1, "R", 65536, 10112),
    ((8, 7), 1000, 72, 49152, 0, "R", 73728, 50176),
    ((8, 7), 224, 32, 33792, 4, "S", 7168, 34816),
    ((8, 7), 224, 37, 1024, 6, "WR", 8960, 2048),
    ((8, 7), 33, 40, 8192, 16, "B", 2560, 9216),
    ((8, 7), 768, 41, 166912, 1, "RS", 36864, 167936),
    ((8, 9), 128, 104, 4096, 4, "R", 13312, 5120),
    ((8, 9), 128, 40, 0, 12, "WR", 5120, 1024),
    ((8, 9), 768, 16, 9000, 2, "W", 12288, 10112),
    ((8, 9), 640, 37, 33792, 2, "WRS", 25600, 34816),
    ((8, 9), 32, 16, 1024, 24, "B", 512, 2048),
    ((9, 0), 33, 48, 1024, 20, "R", 3072, 2048),
    ((9, 0), 96, 80, 10000, 8, "R", 7680, 11136),
    ((9, 0), 128, 41, 33792, 6, "S", 6144, 34816),
    ((9, 0), 1024, 32, 1024, 2, "WR", 32768, 2048),
    ((9, 0), 1000, 56, 116224, 1, "RS", 57344, 117248),
    ((9, 0), 64, 16, 0, 32, "WB", 1024, 1024),
]
LETTERS = {"warps": "W", "blocks": "B", "registers": "R", "shared memory": "S"}


@looped("cc", PUBLISHED_LIMITS)
def test_the_limits_are_the_published_ones(cc):
    limits = limits_of(cc)
    found = (limits.blocks, limits.warps, limits.threads)
    shared = (limits.shared_bytes / 1024, limits.shared_bytes_per_block / 1024)
    assert (*found, *shared) == PUBLISHED_LIMITS[cc]


@looped("example", PUBLISHED_EXAMPLES)
def test_published_examples(example):
    cc, block, registers, shared_bytes, blocks, share = example
    result = occupancy(None, block, cc, registers=registers, shared_bytes=shared_bytes)
    assert (result.blocks_per_sm, result.occupancy) == (blocks, pytest.approx(share))


@looped("row", CALCULATOR)
def test_the_occupancy_calculator_agrees(row):
    cc, threads, registers, shared_bytes, blocks, limits, block_registers, block_bytes = row
    result = occupancy(None, threads, cc, registers=registers, shared_bytes=shared_bytes)
    assert result.blocks_per_sm == blocks
    assert {LETTERS[name] for name in result.limited_by} == set(limits)
    assert (result.registers_per_block, result.shared_per_block) == (block_registers, block_bytes)


def test_a_block_that_cannot_be_launched():
    kernel = occupancy(None, 1024, (9, 0), registers=65)
    assert (kernel.blocks_per_sm, kernel.occupancy, kernel.limited_by) == (0, 0, ("registers",))
    assert "the launch would fail" in str(kernel)


def test_the_table_shows_what_is_allocated():
    kernel = occupancy(None, (16, 16), (9, 0), registers=126, shared_bytes=100_000)
    shown = kernel.table()
    assert (
        "25.0 %: 16 of 64 warps in 2 blocks per SM, limited by registers and shared memory" in shown.caption
    )
    rows = {row[0]: row[1:] for row in shown.rows}
    assert rows["registers"] == ("32,768", "65,536", "2")
    assert rows["shared memory"] == ("98.75 KiB", "228 KiB", "2")
    assert rows["warps"] == ("8", "64", "8")
    assert any("opt in" in note for note in shown.notes)
    assert "<table" in kernel._repr_html_()
    assert occupancy(None, 32, 7.5, registers=32).table().rows[3][1:] == ("0 bytes", "64 KiB", "any")


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
    assert occupancy(Compiled(40, 2048), 256, (8, 0), registers=50).registers == 50
    assert occupancy(Compiled(40, 2048), 256, (8, 0), registers=50).shared_bytes == 2048
    differing = Compiled({"a": 40, "b": 50}, {"a": 0, "b": 0})
    with pytest.raises(ValueError, match=r"^kernel takes 40 registers .* or 50 registers .* give None"):
        occupancy(differing, 256, (8, 0))


def test_an_uncompiled_kernel_is_not_compiled_and_no_driver_is_asked(monkeypatch):
    cuda = pytest.importorskip("numba.cuda")
    driver = pytest.importorskip("numba.cuda.cudadrv.driver")

    def refuse(*_):
        raise AssertionError("a driver was asked")

    if hasattr(driver, "Driver"):  # Numba's own simulator has none
        monkeypatch.setattr(driver.Driver, "ensure_initialized", refuse)

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
        ({"block": (1, 1, 1, 1)}, "a shape of up to three"),
        ({"block": 0}, "block is 0, but it must be a whole number of at least 1"),
        ({"block": 32.0}, "block is 32.0, but it must be a whole number"),
        ({"registers": 256}, "registers is 256, but a thread has 255 at most"),
        ({"registers": 0}, "registers is 0, but it must be a whole number of at least 1"),
        ({"registers": None}, "give registers="),
        ({"shared_bytes": 99 * 1024 + 1}, "needs 101,377 bytes of shared memory, but"),
        ({"shared_bytes": -1}, "shared_bytes is -1, but"),
        ({"cc": (8, 8)}, "cc is (8, 8), but the limits are known for 7.5, 8.0, 8.6, 8.7, 8.9, 9.0"),
        ({"cc": "sm_90"}, "cc is 'sm_90', but"),
    ],
)
def test_bad_input_gets_one_sentence(arguments, said):
    asked = {"block": 256, "cc": (8, 6), "registers": 32} | arguments
    with pytest.raises(ValueError) as caught:
        occupancy(None, asked.pop("block"), asked.pop("cc"), **asked)
    sentence = str(caught.value)
    assert said in sentence
    assert sentence.endswith(".") and "\n" not in sentence and ". " not in sentence


def test_what_is_no_kernel_is_said():
    with pytest.raises(TypeError, match=r"kernel is 37, but it must be a @cuda\.jit kernel"):
        occupancy(37, 256, (8, 0))
