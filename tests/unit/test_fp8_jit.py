"""The kernels compile for Hopper without a GPU, without spills or injected waits; builds are kept safely."""

import re
from collections import Counter
from dataclasses import replace

import pytest

from course_lib.fp8 import jit
from course_lib.fp8.control import FFMA, controls, interleaving, without_yields
from course_lib.fp8.tiles import TILES
from course_lib.measure import device_code, sass

TILE = {"BM": 128, "BN": 128, "STAGES": 5}
PAIRS = TILE | {"CLUSTER": 2, "BAND": 16}
#: Constants of a rung, and what its machine code has that the rungs below have not, how often at least.
RUNGS = {
    "probe": ({"BN": 128}, "QGMMA", 1),
    "v0_naive": ({}, "FFMA", 16),
    "v1_mma": ({}, "HMMA", 64),
    "v1_wgmma": ({"BN": 128}, "QGMMA", 4),
    "v2_tma_ring": (TILE, "UTMALDG", 4),
    "v3_warp_specialised": (TILE, "USETMAXREG", 2),
    "v4_two_level": (TILE, "FFMA", 64),
    "v5_persistent": (PAIRS, "UCGABAR_ARV", 2),
    "v6_tuned": (PAIRS, "UTMASTG", 1),
    "v8_swap_ab": ({"ROWS": 64, "WGMMA_N": 16, "STAGES": 8, "BAND": 1}, "UTMASTG", 1),
    "v9_grouped": (PAIRS | {"MASKED": 1}, "UTMASTG", 1),
}


@pytest.fixture(scope="module")
def shared_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture(autouse=True)
def kept_elsewhere(monkeypatch, shared_folder):
    """Each kernel is compiled once for all tests of this file."""
    monkeypatch.setenv(jit.FOLDER_VARIABLE, str(shared_folder))


@pytest.mark.needs("nvrtc", "nvdisasm")
def test_a_kernel_has_what_is_new_in_it_and_does_not_spill():
    assert jit.names() == sorted(RUNGS)
    for name, (constants, kind, least) in RUNGS.items():
        binary = jit.build(name, **constants)
        assert binary.spilled_bytes == 0 and binary.stack_bytes == 0 and binary.registers <= 255, name
        parsed = sass.parse(device_code.disassembled(binary.cubin))
        code = parsed.instructions
        names = [instruction.name for instruction in code]
        counts = Counter(names)
        assert counts[kind] >= least, name
        tensor_core = name not in ("v0_naive", "v1_mma")
        assert ("QGMMA" in counts) == tensor_core == ("UTMALDG" in counts), name
        assert not {"LDL", "STL"} & set(counts), name
        if tensor_core:  # between the first product and the last promotion nobody waits for all memory
            first = names.index("QGMMA")
            last = len(names) - names[::-1].index("FFMA" if "FFMA" in names[first:] else "QGMMA")
            assert not {"MEMBAR", "ERRBAR"} & set(names[first:last]), name
        if name == "v1_mma":  # mma.sync is no FP8: products of float16, and ordinary units add their sum
            operations = Counter(instruction.text.split()[0] for instruction in code)
            wanted = {"HMMA.16816.F32": 64, "F2FP.F16.E4M3.UNPACK_B": 128, "FADD": 128}
            assert {operation: operations[operation] for operation in wanted} == wanted
        if name in ("v6_tuned", "v9_grouped"):
            assert not waits_for_scales(parsed.hot), name
    assert jit.build("v9_grouped", **PAIRS, MASKED=0).registers == 168


def waits_for_scales(loop):
    """Return what reads what a load brings before the next four products, a block of K, have begun."""
    found = []
    for place, load in enumerate(loop.instructions):
        products = 0
        for later in loop.instructions[place + 1 :] if load.name == "LDG" else ():
            products += later.name == "QGMMA"
            if products == 4:
                break
            if re.search(rf"\b{re.search(r'R[0-9]+', load.text)[0]}\b", later.text):
                found.append((load.text, products, later.text))
    return found


def tiles_compile(tiles):
    for tile in tiles:
        binary = jit.build("v6_tuned", **tile.constants())
        assert binary.spilled_bytes == 0, tile
        start = 248 if tile.BM == 64 else 168  # setmaxnreg gives and takes
        assert binary.registers == start, tile
        loop = sass.parse(device_code.disassembled(binary.cubin)).hot
        names = [instruction.name for instruction in loop.instructions]
        products = [place for place, name in enumerate(names) if name == "QGMMA"][:4]
        assert "LDG" in names and "LDG" not in names[products[0] : products[3]], tile
        assert not waits_for_scales(loop), tile


@pytest.mark.needs("nvrtc", "nvdisasm")
def test_tiles_compile():
    tiles_compile(tile for tile in TILES if (tile.BM, tile.BN, tile.cluster) in {(64, 16, 1), (256, 112, 2)})


@pytest.mark.slow
@pytest.mark.needs("nvrtc", "nvdisasm")
def test_every_tile_of_the_table_compiles():
    tiles_compile(TILES)


# -- what the compiler says --------------------------------------------------------------------------------


@pytest.fixture
def kernel(monkeypatch, tmp_path):
    """Write a kernel of one's own and build it."""
    monkeypatch.setattr(jit, "KERNELS", tmp_path)
    for header in jit.kernels_folder().glob("*.cuh"):
        (tmp_path / header.name).write_text(header.read_text())

    def build(text, **constants):
        (tmp_path / "mine.cu").write_text(text)
        return jit.build("mine", **constants)

    return build


BODY = """#include "tensor_core.cuh"
#include "wgmma.cuh"
extern "C" __global__ __launch_bounds__(128, 1) void mine(float* out) {
  extern __shared__ __align__(1024) u8 tile[];
  float d[WGMMA_WIDTH / 2] = {};
  %s
  for (int i = 0; i < WGMMA_WIDTH / 2; ++i) out[threadIdx.x * WGMMA_WIDTH / 2 + i] = d[i];
}
"""
MINE = 'extern "C" __global__ void mine()'
MULTIPLY = "wgmma_k32(d, descriptor_of(tile), descriptor_of(tile), 1); wgmma_commit();"


@pytest.mark.needs("nvrtc")
def test_waits_and_spills_are_errors(kernel):
    right = f"pin(d); wgmma_fence(); {MULTIPLY} pin(d); wgmma_wait<0>();"
    assert kernel(BODY % right, BN=64).registers > 32
    for body, words in (
        (f"{MULTIPLY} wgmma_wait<0>();", "put a fence before wgmma itself"),
        (f"wgmma_fence(); {MULTIPLY} d[0] += 1; wgmma_wait<0>();", "C75"),
    ):
        with pytest.raises(jit.CannotBuild, match=rf"^mine \(BN=64\) would be slow: .*{words}.*\."):
            kernel(BODY % body, BN=64)
    sums = " ".join(f"float x{i} = in[{i} * 1024 + threadIdx.x];" for i in range(96))
    uses = " ".join(f"in[{i} * 1024 + threadIdx.x] = x{i} * x{(i + 1) % 96};" for i in range(96))
    text = f'extern "C" __global__ __launch_bounds__(1024) void mine(volatile float* in) {{ {sums} {uses} }}'
    with pytest.raises(jit.CannotBuild, match=r"^mine spills \d+ bytes to memory: its tile needs more"):
        kernel(text)


@pytest.mark.needs("nvrtc")
def test_an_error_is_a_sentence_with_its_line(kernel):
    for text, sentence in (
        (f"{MINE} {{\n  undefined();\n}}", 'refuses mine.cu, line 2: identifier "undefined" is undefined.'),
        (f'{MINE} {{ asm volatile("nonsense;"); }}', "The assembler refuses the kernel: "),
        (f"{MINE} {{", "The compiler refuses the end of the text: "),
        ("#include <cuda.h>", "refuses mine.cu, line 1: could not open source file"),
    ):
        with pytest.raises(jit.CannotBuild) as raised:
            kernel(text)
        message = str(raised.value)
        assert sentence in message and "\n" not in message and message.endswith("."), message


# -- what is kept -----------------------------------------------------------------------------------------


def never(*_):
    raise AssertionError("compiled again")


@pytest.mark.needs("nvrtc")
def test_a_build_is_made_once_and_a_damaged_one_anew(monkeypatch, tmp_path):
    fresh_folder = tmp_path / "kernels"
    monkeypatch.setenv(jit.FOLDER_VARIABLE, str(fresh_folder))
    first = jit.build("v0_naive")
    (file,) = fresh_folder.iterdir()
    whole = file.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(jit, "_compiled", never)
        assert jit.build("v0_naive") == first
        with pytest.raises(AssertionError, match="compiled again"):
            jit.build("v0_naive", OTHER=1)
    again = jit.build("v0_naive", keep=False)
    monkeypatch.setattr(jit, "_compiled", lambda *_: again)
    for content in (whole[:-100], whole[:-1] + bytes([whole[-1] ^ 1]), b""):
        file.write_bytes(content)
        assert jit.build("v0_naive") is again
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv(jit.FOLDER_VARIABLE, str(tmp_path / "file" / "kernels"))
    assert jit.build("v0_naive").registers > 0  # where nothing can be written


@pytest.mark.needs("nvrtc")
@pytest.mark.timing
def test_the_final_kernel_compiles_in_half_a_second():
    from pace import slowness

    seconds = [jit.build("v6_tuned", keep=False, **PAIRS).seconds for _ in range(3)]
    assert min(seconds) < 0.5 or min(seconds) < 0.5 * slowness()


# -- control bits ------------------------------------------------------------------------------------------


@pytest.mark.needs("nvrtc", "nvdisasm")
def test_the_compiler_interleaves_the_promotion_by_itself():
    cubin = jit.build("v4_two_level", **TILE).cubin
    code = controls(cubin)
    printed = sass.parse(device_code.disassembled(cubin)).instructions
    assert sum(one.opcode == FFMA for one in code) == sum(one.name == "FFMA" for one in printed)
    before = interleaving(code)
    assert before.count >= 64 and 0.4 < before.yielding / before.count < 0.6
    assert before.alternating > 0.9 * before.neighbours
    changed = without_yields(cubin)  # yields can be set back, and nothing else changes
    assert interleaving(controls(changed)) == replace(before, yielding=0, alternating=0)
    assert len(changed) == len(cubin)
    differing = sum((one ^ other).bit_count() for one, other in zip(cubin, changed, strict=True))
    assert differing == before.yielding  # a bit each
    assert device_code.disassembled(changed) == device_code.disassembled(cubin)
