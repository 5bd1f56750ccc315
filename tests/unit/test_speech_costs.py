"""What 1000 hours of speech cost: by hand, and as a view with fields."""

import math

import pytest

from course_lib.speech.costs import HOURS_A_YEAR, Choice, break_even_hours, break_even_ratio, hours_that_pay

CPU = Choice("CPU", 20, 0.1)
GPU = Choice("GPU", 1000, 2.0, 0.1)


@pytest.fixture
def views():
    from course_lib import views

    return views


def test_by_hand():
    assert CPU.per_1000_hours == pytest.approx(50 * 0.1)  # 1000 h of speech at 20 s/s: 50 h of the machine
    assert GPU.per_1000_hours == pytest.approx(1 * 2.0 / 0.1)  # 1 h of work, and nine idle ones beside it
    assert CPU.speech_hours_a_year == pytest.approx(20 * HOURS_A_YEAR)
    saved = 0.020 - 0.005  # an hour of speech
    assert hours_that_pay(1e6, CPU, GPU) == hours_that_pay(1e6, GPU, CPU) == pytest.approx(1e6 / saved)
    assert hours_that_pay(1e6, CPU, CPU) is None and hours_that_pay(0, CPU, GPU) == 0
    dearest = Choice("GPU", 1000, 0.1 * break_even_ratio(CPU, GPU), 0.1)
    assert dearest.per_1000_hours == pytest.approx(CPU.per_1000_hours)
    # a machine that is kept: 2 an hour for a year, against 0.005 for an hour of speech
    assert break_even_hours(GPU, CPU) == pytest.approx(2 * HOURS_A_YEAR / 0.005)
    assert break_even_hours(Choice("GPU", 1000, 6.0), CPU) is None  # it cannot encode as much
    assert break_even_hours(GPU, Choice("CPU", 20, 0)) is None


def test_what_is_no_number_is_refused_in_a_sentence():
    choice = {"name": "CPU", "audio_per_s": 1, "price_per_hour": 1, "utilisation": 1}
    for value in (-1, math.nan, math.inf, "3", True):
        for name in choice.keys() - {"name"}:
            with pytest.raises(ValueError, match=rf"^{name} is .*, but it must be a (finite )?number .*\.$"):
                Choice(**choice | {name: value})
        with pytest.raises(ValueError, match=r"is .*, but it must be a (finite )?number .*\.$"):
            hours_that_pay(value, CPU, GPU)
    assert Choice("CPU", 1, 0).per_1000_hours == 0  # zero is a price and no throughput
    for change in ({"audio_per_s": 0}, {"utilisation": 0}, {"utilisation": 1.5}):
        with pytest.raises(ValueError, match=next(iter(change))):
            Choice(**choice | change)


# -- the view ----------------------------------------------------------------------------------------------

PRICES = {"cpu_price": 0.1, "gpu_price": 2.0, "bridge_price": 1e6, "currency": "EUR"}


def said(gpu_speed=1000, cpu_price=0.1, gpu_price=2.0, busy=0.1):
    from course_lib.views.cost_explorer import finding, in_words, machine

    machines = machine("CPU", 20, cpu_price), machine("GPU", gpu_speed, gpu_price, busy)
    return f"{finding(*machines, 'EUR')} {in_words(*machines, 1e6, 'EUR')}"


def test_the_title_is_the_finding(views):
    origins = {"cpu_origin": "measured here", "gpu_origin": "recorded on a Test"}
    still = views.costs(20, 1000, **PRICES, **origins).static()
    assert "1000 hours of speech: 2.00 EUR on the GPU, 2.5x that on the CPU" in still.text
    assert "may cost 50.0x that of the CPU" in still.text and "here it costs 20.0x" in still.text
    assert "measured here" in still.body and "recorded on a Test" in still.body and "png" in still.body
    for text, *says in (
        (said(), "5.00 EUR on the CPU, 4.0x that on the GPU", "after 66,700,000 hours of speech"),
        (said(gpu_price=3.0, busy=1.0), "as soon as it has work in 60 % of its hours"),
        (said(20, 1, 1, 1.0), "cost 50.0 EUR on either", "no bridge is ever paid"),
        (said(20, 0), "cost nothing on the CPU", "never cheaper"),
    ):
        assert all(words in text for words in says), text


def test_the_fields_change_the_picture(views):
    view = views.costs(20, 1000, **PRICES)
    before = view.picture.value
    view.gpu.utilisation.value = 10
    assert view.choices()[1].per_1000_hours == pytest.approx(20.0)
    assert "4.0x that on the GPU" in view.picture.value != before
    view.cpu.price.value = 0.01
    assert "0.500 EUR on the CPU" in view.picture.value
    view.bridge.value = 3e6
    assert "3,000,000 EUR" in view.picture.value and "Keyboard" in view.status.value
    before = view.picture.value
    for value in (-1.0, math.nan):  # what makes no sense is said, and the picture stays
        view.cpu.price.value = value
        assert "CPU: price_per_hour is" in view.status.value and view.picture.value == before
    view.cpu.price.value = 0.2
    assert "Keyboard" in view.status.value and view.picture.value != before
