"""Kernels compiled for GPUs without a GPU: what the rungs become, and what is said when they cannot."""

import pytest
from sass_counts import count


def imports():
    global cuda, float32, types, cuda_1d, cuda_2d, cuda_coalesced, cuda_naive, cuda_tiled, cuda_vectorised
    global cuda_warptiled, machine, CannotCompile, compile_kernel, MATRIX
    from numba import cuda, float32, types

    from course_lib.circles import (
        cuda_1d,
        cuda_2d,
        cuda_coalesced,
        cuda_naive,
        cuda_tiled,
        cuda_vectorised,
        cuda_warptiled,
    )
    from course_lib.measure import machine
    from course_lib.measure.device_code import CannotCompile, compile_kernel

    MATRIX = types.Array(float32, 2, "C")


ARCHITECTURES = ((8, 0), (9, 0))
MORE_ARCHITECTURES = ((8, 6), (8, 9))  # of the cards for games and desks
REGISTERS, SHARED_BYTES = 65_536, 48 * 1024  # of a multiprocessor; of a block that asks for no more

needs_cubin = pytest.mark.needs("cubin")


def kernels():
    """Yield (name, kernel, tile, whether it is the first of its list) for every rung, tile and row width."""
    for module, name in ((cuda_naive, "naive"), (cuda_coalesced, "coalesced"), (cuda_tiled, "tiled")):
        yield name, getattr(module, name), None, True
    for module in (cuda_1d, cuda_2d):
        for tile in module.TILES:
            yield f"{module.__name__[-2:]} {tile}", module.kernel(tile), tile, tile == module.TILES[0]
    for module, name in ((cuda_vectorised, "vectorised"), (cuda_warptiled, "warptiled")):
        for tile in module.TILES:
            for wide in (True, False):
                words = f"{name} {tile} {'wide' if wide else 'narrow'}"
                yield words, module.kernel(tile, wide), tile, tile == module.TILES[0]


def check_no_spills(kernel, tile, cc, name):
    case = (name, cc)
    code = compile_kernel(kernel, MATRIX, MATRIX, MATRIX, cc=cc)
    assert code.cc == cc and f"sm_{cc[0]}{cc[1]}" in code.ptx, case
    elsewhere = code.spill_store_bytes, code.spill_load_bytes, code.stack_bytes
    assert elsewhere == (0, 0, 0), f"{case}: not all numbers are in registers"
    assert count(code.sass, "LDL") == count(code.sass, "STL") == 0, case
    threads, blocks = (tile.threads, tile.blocks) if tile else (1024, 1)
    assert code.registers * threads * blocks <= REGISTERS, case
    assert code.shared_bytes <= SHARED_BYTES, case
    assert count(code.hot, "FFMA") >= 4, case


@needs_cubin
def test_no_rung_spills_and_its_blocks_fit():
    for name, kernel, tile, is_first in kernels():
        if is_first:
            for cc in ARCHITECTURES:
                check_no_spills(kernel, tile, cc, name)


@pytest.mark.slow
@needs_cubin
def test_no_tile_spills_on_any_card():
    for name, kernel, tile, _ in kernels():
        for cc in ARCHITECTURES + MORE_ARCHITECTURES:
            check_no_spills(kernel, tile, cc, name)


@needs_cubin
def test_vectorised_moves_sixteen_bytes_everywhere():
    code = compile_kernel(cuda_vectorised.kernel(cuda_vectorised.TILES[0]), MATRIX, MATRIX, MATRIX)
    assert count(code.sass, "LDG.128") > 0 and count(code.sass, "LDG") == count(code.sass, "LDG.128")
    assert count(code.sass, "STG.128") > 0 and count(code.sass, "STG") == count(code.sass, "STG.128")
    assert count(code.hot, "LDS") == count(code.hot, "LDS.128") == count(code.hot, "FFMA") // 16
    assert count(code.sass, "STS.128") > 0


@needs_cubin
def test_each_rung_spends_more_of_its_instructions_on_fmas():
    def share(kernel):
        hot = compile_kernel(kernel, MATRIX, MATRIX, MATRIX).hot
        return hot.kinds["FMA"] / len(hot.instructions)

    naive, one, two = (
        share(cuda_naive.naive),
        share(cuda_1d.kernel(cuda_1d.TILES[0])),
        share(cuda_2d.kernel(cuda_2d.TILES[0])),
    )
    assert naive < 0.2 < one < 0.6 < two < 0.85
    assert share(cuda_vectorised.kernel(cuda_vectorised.TILES[0])) > 0.85
    assert share(cuda_warptiled.kernel(cuda_warptiled.TILES[1])) > 0.9


@needs_cubin
def test_a_while_loop_costs_a_fraction_of_a_range():
    """What cuda_naive's first lines say: 29 instructions for four turns, and 137."""

    @cuda.jit
    def with_range(A, B, C):
        i = cuda.blockIdx.y * 32 + cuda.threadIdx.x
        j = cuda.blockIdx.x * 32 + cuda.threadIdx.y
        if i < C.shape[0] and j < C.shape[1]:
            total = float32(0)
            for k in range(A.shape[1]):
                total += A[i, k] * B[k, j]
            C[i, j] = total

    for_loop, while_loop = (
        compile_kernel(kernel, MATRIX, MATRIX, MATRIX).hot for kernel in (with_range, cuda_naive.naive)
    )
    assert count(for_loop, "FFMA") == count(while_loop, "FFMA") == 4
    assert len(for_loop.instructions) > 3 * len(while_loop.instructions)


@needs_cubin
def test_what_cannot_be_compiled_is_one_sentence():
    @cuda.jit
    def greedy(X):
        a = cuda.shared.array((128, 128), float32)
        a[cuda.threadIdx.x, 0] = X[0]
        cuda.syncthreads()
        X[cuda.threadIdx.x] = a[0, cuda.threadIdx.x]

    words = r"^greedy cannot be compiled for .* 9.0: [^\n]*too much shared data[^\n]*\.$"
    with pytest.raises(CannotCompile, match=words):
        compile_kernel(greedy, types.Array(float32, 1, "C"))


def test_without_the_compiler_one_sentence_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(machine, "missing", lambda need: f"Install {need}.")
    with pytest.raises(CannotCompile, match=r"^Install cubin\.$"):
        compile_kernel(cuda_naive.naive, MATRIX, MATRIX, MATRIX)
