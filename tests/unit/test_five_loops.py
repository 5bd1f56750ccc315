"""The five loops drawn: the sizes are the rung's own, every step is told, nothing overflows its memory."""

import re

from course_lib.views import five_loops

AVX512 = five_loops.Sizes("float32", 4, 6, 64, 512, 512, 512, 32, 48 * 2**10, 2**21, 16)
AVX2 = five_loops.Sizes("float64", 8, 6, 8, 256, 512, 256, 16, 32 * 2**10, 0, 16)


def test_every_step_has_a_title_and_a_picture_with_words():
    for own in (AVX512, AVX2):
        walk = five_loops.KernelLoops(own)
        titles = [five_loops.title(step, own) for step in range(len(five_loops.STEPS))]
        assert len(set(titles)) == 7
        for number in range(1, 6):
            assert titles[6 - number].startswith(f"Loop {number}")
        for step, title in enumerate(titles):
            assert title in re.search(r'aria-label="([^"]*)"', walk.frame(step))[1]


def test_the_numbers_of_a_known_machine_and_of_one_that_does_not_tell_its_caches():
    words = five_loops.KernelLoops(AVX512).static().text
    for said in (
        "tile of C, 6 x 64 float32: 24 registers for 512 k",
        "29 in use",
        "sliver of A, 6 x 512: 12 KiB",
        "packed block of B, 512 x 512: 1 MiB",
        "used for 8 panels",
        "asked for 16 rows ahead: 4 KiB",
    ):
        assert said in words
    words = five_loops.KernelLoops(AVX2).static().text
    assert "L2 cache: packed block" in words and "15 in use" in words
