"""Tensor maps: the arguments that the driver is given, and a sentence for each that it would refuse."""

import dataclasses

import pytest

from course_lib.fp8 import tensor_maps
from course_lib.fp8.tensor_maps import BFLOAT16, FLOAT32, UINT8, of_operand, of_result, of_scales


def test_the_four_maps_of_a_product():
    """Dims innermost first, strides in bytes, boxes in elements."""
    a = of_operand("A", 0x1000, rows=100, K=7168, box_rows=128)
    assert (a.dtype, a.dims, a.strides, a.box, a.swizzle) == (UINT8, (7168, 100), (7168,), (128, 128), 128)
    scales = of_scales("scales of A", 0x1000, padded_rows=100, blocks=56, box_rows=128)
    assert (scales.dtype, scales.dims, scales.strides, scales.box) == (FLOAT32, (100, 56), (400,), (128, 1))
    assert scales.swizzle == 0
    d = of_result("D", 0x1000, rows=100, N=4096, box_rows=128, width=64)
    assert (d.dtype, d.dims, d.strides, d.box, d.swizzle) == (BFLOAT16, (4096, 100), (8192,), (32, 128), 64)
    assert (a.box_bytes, scales.box_bytes, d.box_bytes) == (128 * 128, 512, 128 * 64)


def test_groups_are_a_third_dimension():
    a = of_operand("A", 0, rows=100, K=256, box_rows=64, groups=5)
    assert (a.dims, a.strides, a.box) == ((256, 100, 5), (256, 25600), (128, 64, 1))
    d = of_result("D", 0, rows=100, N=24, box_rows=64, width=32, groups=5)
    assert (d.dims, d.strides, d.box) == ((24, 100, 5), (48, 4800), (16, 64, 1))


def test_the_boxes_bytes_are_what_the_kernels_expect():
    """`barrier_expect` in kernels/v6_tuned.cu counts A_BYTES + B_BYTES + S_BYTES, whatever lies outside."""
    BM, BN, cluster = 128, 160, 2
    part = of_operand("A", 0, rows=3, K=16, box_rows=BM // cluster)
    b = of_operand("B", 0, rows=8, K=16, box_rows=BN)
    scales = of_scales("scales of A", 0, padded_rows=4, blocks=1, box_rows=BM)
    assert cluster * part.box_bytes + b.box_bytes + scales.box_bytes == (BM + BN) * 128 + BM * 4


GOOD = of_operand("A", 0, rows=100, K=256, box_rows=64)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"address": 8}, "begins at address 0x8, but it must be a multiple of 16"),
        ({"dims": (0, 4)}, r"has dims \(0, 4\), but each must be 1 to 2\^32"),
        ({"strides": (120,)}, r"has a stride of 120 bytes, but it must be a multiple of 16 below 2\^40"),
        ({"strides": (2**40,)}, "has a stride of 1099511627776 bytes"),
        ({"strides": ()}, "has 2 dims, 0 strides, 2 box sides"),
        ({"box": (128, 257)}, r"has a box of \(128, 257\), but each side must be 1 to 256"),
        ({"box": (24, 4)}, "has rows of 24 bytes in a box, but they must be a multiple of 16"),
        ({"swizzle": 16}, "has swizzle 16, but it must be 0, 32, 64 or 128 bytes"),
        ({"swizzle": 64}, "has rows of 128 bytes in a box, but it swizzles over 64: no row may be longer"),
    ],
)
def test_what_the_driver_would_refuse_is_a_sentence(change, words):
    with pytest.raises(ValueError, match=f"^the tensor map of A {words}"):
        dataclasses.replace(GOOD, **change)


def test_rows_that_are_no_multiple_of_16_bytes_are_refused():
    with pytest.raises(ValueError, match="the tensor map of B has a stride of 120 bytes"):
        of_operand("B", 0, rows=8, K=120, box_rows=64)
    with pytest.raises(ValueError, match="the tensor map of D has a stride of 24 bytes"):
        of_result("D", 0, rows=8, N=12, box_rows=64, width=32)


def test_the_numbers_are_those_of_the_driver():
    driver = pytest.importorskip("cuda.bindings.driver")
    kinds, swizzles = driver.CUtensorMapDataType, driver.CUtensorMapSwizzle
    assert (UINT8, FLOAT32, BFLOAT16) == (
        kinds.CU_TENSOR_MAP_DATA_TYPE_UINT8,
        kinds.CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
        kinds.CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
    )
    assert tensor_maps.SWIZZLES == {
        0: swizzles.CU_TENSOR_MAP_SWIZZLE_NONE,
        32: swizzles.CU_TENSOR_MAP_SWIZZLE_32B,
        64: swizzles.CU_TENSOR_MAP_SWIZZLE_64B,
        128: swizzles.CU_TENSOR_MAP_SWIZZLE_128B,
    }
    promotion = driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B
    assert promotion == tensor_maps.PROMOTION_256
