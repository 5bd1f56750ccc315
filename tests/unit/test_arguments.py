"""The one check of arguments: what it takes, and the sentence for what it refuses."""

import math

import numpy as np
import pytest

from course_lib.arguments import number, one_of, refusal, whole


def test_what_fits_is_returned():
    assert whole("n", 3) == 3 and whole("n", 0, least=0) == 0 and whole("n", -5, least=None) == -5
    kept = whole("n", np.int64(7), most=7)
    assert kept == 7 and type(kept) is int
    assert number("s", 0.5, above=0) == 0.5 and number("s", np.float32(2), least=2, most=2) == 2
    assert one_of("kind", "plain", ("plain", "locked")) == "plain"
    assert one_of("kind", np.str_("plain"), ("plain", "locked")) == "plain"
    assert one_of("bytes", np.int64(8), (4, 8)) == 8


def test_what_does_not_fit_is_refused_in_one_sentence():
    refused = [
        (lambda: whole("n", True), "n is True, but it must be a whole number of at least 1."),
        (lambda: whole("n", 2.0), "n is 2.0, but it must be a whole number of at least 1."),
        (lambda: whole("n", 0), "n is 0, but it must be a whole number of at least 1."),
        (lambda: whole("n", 9999, most=8192), "n is 9999, but it must be a whole number from 1 to 8,192."),
        (lambda: whole("n", "3", least=None), "n is '3', but it must be a whole number."),
        (lambda: number("s", math.nan), "s is nan, but it must be a finite number."),
        (lambda: number("s", math.inf, above=0), "s is inf, but it must be a finite number above 0."),
        (lambda: number("s", 0, above=0, most=2), "s is 0, but it must be a number above 0 and at most 2."),
        (lambda: number("s", False, least=0), "s is False, but it must be a number of at least 0."),
        (lambda: one_of("bytes", True, (1, 2)), "bytes is True, but it must be one of 1, 2."),
        (lambda: one_of("kind", 1, (True, "locked")), "kind is 1, but it must be one of True, 'locked'."),
    ]
    for call, sentence in refused:
        with pytest.raises(ValueError) as said:
            call()
        assert str(said.value) == sentence
    assert str(refusal("ways", 3, "a power of two")) == "ways is 3, but it must be a power of two."
