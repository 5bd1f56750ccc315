"""Sizes in words: the largest unit that is filled, and no digit before the point lost."""

from course_lib.measure.sizes import in_bytes
from course_lib.views import paper


def test_a_size_is_said_in_the_largest_unit_it_fills():
    for size, words in [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1023 bytes"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (1000 * 2**10, "1000 KiB"),
        (1023.9 * 2**10, "1024 KiB"),
        (2**20, "1 MiB"),
        (123.456 * 2**20, "123 MiB"),
        (1536 * 2**30, "1536 GiB"),
        (-(2**11), "-2 KiB"),
    ]:
        assert in_bytes(size) == words, (size, words)


def test_more_digits_can_be_asked_for():
    assert in_bytes(123.456 * 2**20, digits=4) == "123.5 MiB"
    assert in_bytes(1023.96 * 2**10, digits=4) == "1024 KiB"


def test_there_is_one_way_to_say_a_size():
    assert paper.in_bytes is in_bytes
