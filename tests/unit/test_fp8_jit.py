"""The kernels compile for Hopper without a GPU, without spills or injected waits; builds are kept safely."""

import re
from collections import Counter

import pytest
from pace import slowness

from course_lib.fp8 import jit, wgmma
from course_lib.fp8.tiles import TILES
from course_lib.measure import device_code, machine, sass

NO_COMPILER = machine.missing("nvrtc")
compiles = pytest.mark.skipif(NO_COMPILER is not None, reason=str(NO_COMPILER))

TILE = {"BM": 128, "BN": 128, "STAGES": 5}
CONSTANTS = {
    "probe": {"BN": 128},
    "v0_naive": {},
    "v1_mma": {},
    "v1_wgmma": {"BN": 128},
    "v2_tma_ring": TILE,
    "v3_warp_specialised": TILE,
    "v4_two_level": TILE,
    "v5_persistent": TILE | {"CLUSTER": 2, "BAND": 16},
    "v6_tuned": TILE | {"CLUSTER": 2, "BAND": 16},
    "v8_swap_ab": {"ROWS": 64, "WGMMA_N": 16, "STAGES": 8, "BAND": 1},
    "v9_grouped": TILE | {"CLUSTER": 2, "BAND": 16, "MASKED": 1},
}
#: What the machine code of a rung has, and the rungs below it have not.
NEW = {
    "probe": ("QGMMA", 1),
    "v0_naive": ("FFMA", 16),
    "v1_mma": ("HMMA", 64),
    "v1_wgmma": ("QGMMA", 4),
    "v2_tma_ring": ("UTMALDG", 4),
    "v3_warp_specialised": ("USETMAXREG", 2),
    "v4_two_level": ("FFMA", 64),
    "v5_persistent": ("UCGABAR_ARV", 2),
    "v6_tuned": ("UTMASTG", 1),
    "v8_swap_ab": ("UTMASTG", 1),
    "v9_grouped": ("UTMASTG", 1),
}


@pytest.fixture(autouse=True)
def kept_elsewhere(monkeypatch, tmp_path):
    monkeypatch.setenv(jit.FOLDER_VARIABLE, str(tmp_path / "kernels"))


def test_every_kernel_is_tested_here():
    assert jit.names() == sorted(CONSTANTS) == sorted(NEW)


@pytest.mark.parametrize("name", CONSTANTS)
def test_a_kernel_says_what_has_been_seen_of_it(name):
    head = re.match(r"(//.*\n)+", jit.source_of(name))[0]
    assert head.endswith("\n//\n// Compiles for sm_90a; not yet run on a GPU.\n")


@compiles
@pytest.mark.parametrize("name", CONSTANTS)
def test_a_kernel_has_what_is_new_in_it_and_does_not_spill(name):
    binary = jit.build(name, **CONSTANTS[name])
    assert binary.spilled_bytes == 0 and binary.stack_bytes == 0 and binary.registers <= 255
    code = sass.parse(device_code.disassembled(binary.cubin))
    counts = Counter(instruction.name for instruction in code.instructions)
    kind, least = NEW[name]
    assert counts[kind] >= least
    assert ("QGMMA" in counts) == (name not in ("v0_naive", "v1_mma")) == ("UTMALDG" in counts)
    assert not {"LDL", "STL"} & set(counts)


@compiles
@pytest.mark.parametrize(
    "name", [name for name in CONSTANTS if NEW[name][0] != "HMMA" and name != "v0_naive"]
)
def test_no_loop_over_k_has_a_fence(name):
    """Between the first product and the last promotion nobody waits for all of the GPU's memory."""
    code = sass.parse(device_code.disassembled(jit.build(name, **CONSTANTS[name]).cubin))
    names = [instruction.name for instruction in code.instructions]
    promotes = "FFMA" in names[names.index("QGMMA") :]
    last = len(names) - names[::-1].index("FFMA" if promotes else "QGMMA")
    assert not {"MEMBAR", "ERRBAR"} & set(names[names.index("QGMMA") : last])


@compiles
def test_mma_sync_is_no_fp8_on_hopper():
    """Two products of float16 from zero, and ordinary units add their sum: so no bits are lost."""
    code = sass.parse(device_code.disassembled(jit.build("v1_mma").cubin))
    counts = Counter(instruction.operation for instruction in code.instructions)
    assert (
        counts["HMMA.16816.F32"] == 64 and counts["F2FP.F16.E4M3.UNPACK_B"] == 128 and counts["FADD"] == 128
    )


QUICK = {(64, 16, 1), (128, 112, 2), (128, 192, 2), (256, 128, 2), (128, 144, 1)}


@compiles
@pytest.mark.parametrize(
    "tile",
    [
        pytest.param(
            tile,
            id=f"{tile.BM}x{tile.BN}, {tile.cluster}",
            marks=[] if (tile.BM, tile.BN, tile.cluster) in QUICK else pytest.mark.slow,
        )
        for tile in TILES
    ],
)
def test_every_tile_of_the_table_compiles(tile):
    binary = jit.build("v6_tuned", **tile.constants())
    assert binary.spilled_bytes == 0
    assert binary.registers == (248 if tile.BM == 64 else 168)  # at the start; setmaxnreg gives and takes


@compiles
@pytest.mark.parametrize("masked", [0, 1])
def test_grouped_kernels_compile(masked):
    assert jit.build("v9_grouped", **TILE, CLUSTER=2, BAND=16, MASKED=masked).registers == 168


# -- what the compiler says --------------------------------------------------------------------------------


@pytest.fixture
def kernel(monkeypatch, tmp_path):
    """Write a kernel of one's own and build it."""
    monkeypatch.setattr(jit, "KERNELS", tmp_path)
    for header in (jit.kernels_folder()).glob("*.cuh"):
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
MULTIPLY = "wgmma_k32(d, descriptor_of(tile), descriptor_of(tile), 1); wgmma_commit();"


@compiles
def test_a_right_use_of_wgmma_compiles(kernel):
    assert kernel(BODY % f"pin(d); wgmma_fence(); {MULTIPLY} pin(d); wgmma_wait<0>();", BN=64).registers > 32


@compiles
@pytest.mark.parametrize(
    ("body", "words"),
    [
        (f"{MULTIPLY} wgmma_wait<0>();", "put a fence before wgmma itself"),
        (f"wgmma_fence(); {MULTIPLY} d[0] += 1; wgmma_wait<0>();", "C75"),
    ],
)
def test_a_wait_that_the_compiler_puts_in_is_an_error(kernel, body, words):
    with pytest.raises(jit.CannotBuild, match=rf"^mine \(BN=64\) would be slow: .*{words}.*\."):
        kernel(BODY % body, BN=64)


@compiles
def test_a_spill_is_an_error(kernel):
    sums = " ".join(f"float x{i} = in[{i} * 1024 + threadIdx.x];" for i in range(96))
    uses = " ".join(f"in[{i} * 1024 + threadIdx.x] = x{i} * x{(i + 1) % 96};" for i in range(96))
    text = f'extern "C" __global__ __launch_bounds__(1024) void mine(volatile float* in) {{ {sums} {uses} }}'
    with pytest.raises(
        jit.CannotBuild, match=r"^mine spills \d+ bytes to memory: its tile needs more registers"
    ):
        kernel(text)


@compiles
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            'extern "C" __global__ void mine() {\n  undefined();\n}',
            'The compiler refuses mine.cu, line 2: identifier "undefined" is undefined.',
        ),
        (
            '#include "types.cuh"\nstatic_assert(SCALED == 64, "no");',
            r"The compiler refuses mine.cu, line 2: static assertion failed with \"no\".",
        ),
        (
            'extern "C" __global__ void mine() { asm volatile("nonsense;"); }',
            "The assembler refuses the kernel: ",
        ),
        ('extern "C" __global__ void mine() {', "The compiler refuses the end of the text: "),
        ("#include <cuda.h>", "The compiler refuses mine.cu, line 1: could not open source file"),
    ],
)
def test_an_error_is_a_sentence_with_its_line(kernel, text, sentence):
    with pytest.raises(jit.CannotBuild) as raised:
        kernel(text)
    said = str(raised.value)
    assert said.startswith(sentence.replace("\\", "")) and "\n" not in said and said.endswith(".")


def test_a_log_without_figures_is_not_taken_for_no_spills():
    with pytest.raises(jit.CannotBuild, match=r"^mine \(BM=64\): The compiler's log names no registers: ''"):
        jit._numbers("mine", {"BM": 64}, "")


def test_a_name_or_constant_that_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="name is 'v7', but the kernels are probe, v0_naive, v1_mma"):
        jit.build("v7")
    for wrong in ({"BM": "128"}, {"BM": True}, {"bm": 128}, {"BM": 12.8}):
        with pytest.raises(ValueError, match="is no constant: names are upper case, values whole numbers"):
            jit.build("v0_naive", **wrong)
    for width in (0, 12, 264, True, 8.0):
        with pytest.raises(ValueError, match="but wgmma has the widths 8, 16"):
            wgmma.header(width)


def test_without_a_compiler_one_sentence_says_what_to_install(monkeypatch):
    jit.compiler.cache_clear()
    monkeypatch.setattr(machine, "missing", lambda what: "This needs a compiler: install one.")
    with pytest.raises(jit.CannotBuild, match=r"^This needs a compiler: install one\.$"):
        jit.build("v0_naive")
    monkeypatch.undo()
    jit.compiler.cache_clear()


def test_the_text_of_wgmma_names_every_register_once():
    for N in wgmma.WIDTHS:
        text = wgmma.header(N)
        assert len(re.findall(r'"\+f"\(d\[\d+\]\)', text)) == N // 2
        assert f"m64n{N}k32" in text and f"float (&d)[{N // 2}]" in text
        used = list(map(int, re.findall(r"%(\d+)", text)))
        assert sorted(used) == list(range(N // 2 + 3))


# -- what is kept -----------------------------------------------------------------------------------------


def never(*_):
    raise AssertionError("compiled again")


@compiles
def test_a_build_is_made_once(monkeypatch):
    first = jit.build("v0_naive")
    monkeypatch.setattr(jit, "_compiled", never)
    assert jit.build("v0_naive") == first
    with pytest.raises(AssertionError, match="compiled again"):
        jit.build("v0_naive", keep=False)
    with pytest.raises(AssertionError, match="compiled again"):
        jit.build("v0_naive", OTHER=1)


@compiles
@pytest.mark.parametrize("damage", ["cut", "a bit", "empty", "text", "another's"])
def test_a_damaged_build_is_made_anew(damage):
    first = jit.build("v0_naive")
    (file,) = jit.folder().iterdir()
    whole = file.read_bytes()
    broken = {
        "cut": whole[:-100],
        "a bit": whole[:-1] + bytes([whole[-1] ^ 1]),
        "empty": b"",
        "text": b"[1, 2]\nx",
        "another's": whole.replace(b'"registers": ', b'"registers": 1'),
    }
    file.write_bytes(broken[damage])
    again = jit.build("v0_naive")
    assert again.cubin == first.cubin and again.registers == first.registers
    assert jit._kept(file.name) == again  # and what is kept now is whole


@compiles
def test_where_nothing_can_be_written_it_compiles_all_the_same(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv(jit.FOLDER_VARIABLE, str(tmp_path / "file" / "kernels"))
    assert jit.build("v0_naive").registers > 0


@compiles
def test_another_text_another_option_another_compiler_is_another_build(monkeypatch):
    headers = jit.headers_of({})
    key = jit._key("v0_naive", "text", headers, {"BM": 1})
    assert key == jit._key("v0_naive", "text", dict(headers), {"BM": 1})
    others = [
        jit._key("v0_naive", "text2", headers, {"BM": 1}),
        jit._key("v0_naive", "text", headers | {"types.cuh": ""}, {"BM": 1}),
        jit._key("v0_naive", "text", headers, {"BM": 2}),
    ]
    monkeypatch.setattr(jit, "OPTIONS", (*jit.OPTIONS, "-G"))
    others.append(jit._key("v0_naive", "text", headers, {"BM": 1}))
    monkeypatch.undo()
    monkeypatch.setattr(jit, "compiler", lambda: "NVRTC 99.0")
    others.append(jit._key("v0_naive", "text", headers, {"BM": 1}))
    assert len({key, *others}) == 6


@compiles
def test_compiling_never_calls_the_driver(monkeypatch):
    from cuda.bindings import driver

    calls = [name for name in dir(driver) if name.startswith("cu") and callable(getattr(driver, name))]
    assert len(calls) > 100
    for name in calls:
        monkeypatch.setattr(driver, name, never)
    assert jit.build("v0_naive", keep=False).registers > 0


@compiles
@pytest.mark.timing
def test_the_final_kernel_compiles_in_half_a_second():
    seconds = [jit.build("v6_tuned", keep=False, **CONSTANTS["v6_tuned"]).seconds for _ in range(3)]
    assert min(seconds) < 0.5 or min(seconds) < 0.5 * slowness()
