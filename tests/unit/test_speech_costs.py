"""What 1000 hours of speech cost: by hand, and as a view with fields."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_lib.speech.costs import (
    HOURS_A_YEAR,
    Choice,
    Purchase,
    break_even_hours,
    break_even_ratio,
    hours_that_pay,
)

CPU = Choice("CPU", 20, 0.1)
GPU = Choice("GPU", 1000, 2.0, 0.1)
positive = st.floats(1e-3, 1e6)
shares = st.floats(0.01, 1.0)


@pytest.fixture
def views():
    from course_lib import views

    return views


def test_by_hand():
    assert CPU.per_1000_hours == pytest.approx(50 * 0.1)  # 1000 h of speech at 20 s/s: 50 h of the machine
    assert GPU.per_1000_hours == pytest.approx(1 * 2.0 / 0.1)  # 1 h of work, and nine idle ones beside it
    assert CPU.speech_hours_a_year == pytest.approx(20 * HOURS_A_YEAR)
    bought = Purchase(price=8766, years=1, watts=1000, price_per_kwh=0.5, idle_watts=200)
    assert bought.price_per_hour(1.0) == pytest.approx(1.0 + 0.5)
    assert bought.price_per_hour(0.25) == pytest.approx(1.0 + 0.5 * (0.25 + 0.75 * 0.2))
    saved = 0.020 - 0.005  # an hour of speech
    assert hours_that_pay(1e6, CPU, GPU) == hours_that_pay(1e6, GPU, CPU) == pytest.approx(1e6 / saved)
    assert hours_that_pay(1e6, CPU, CPU) is None and hours_that_pay(0, CPU, GPU) == 0


@given(positive, positive, shares, shares, positive)
def test_at_the_break_even_ratio_both_cost_the_same(cpu_speed, gpu_speed, cpu_share, gpu_share, price):
    cpu = Choice("CPU", cpu_speed, price, cpu_share)
    gpu = Choice("GPU", gpu_speed, 1.0, gpu_share)
    dearest = Choice("GPU", gpu_speed, price * break_even_ratio(cpu, gpu), gpu_share)
    assert dearest.per_1000_hours == pytest.approx(cpu.per_1000_hours)


def test_a_kept_machine_pays_from_some_hours_on():
    hours = break_even_hours(GPU, CPU)  # 2 an hour for a year, against 0.005 for an hour of speech
    assert hours == pytest.approx(2 * HOURS_A_YEAR / 0.005)
    assert break_even_hours(Choice("GPU", 1000, 6.0), CPU) is None  # it cannot encode as much
    assert break_even_hours(GPU, Choice("CPU", 20, 0)) is None
    # idle 1.5 an hour, 1 more with work; its work of an hour costs 5 on CPUs: 1.5 + u = 5 u at u = 0.375
    bought = Purchase(price=HOURS_A_YEAR, years=1, watts=3000, price_per_kwh=0.5, idle_watts=1000)
    for share in (0.01, 0.375, 1.0):
        kept = Choice("GPU", 1000, bought.price_per_hour(share), share, bought.price_per_hour(0))
        assert break_even_hours(kept, CPU) == pytest.approx(375 * HOURS_A_YEAR), share
        assert break_even_hours(kept, Choice("CPU", 20, 0.02)) is None  # 1 an hour: as much as its power
        assert break_even_hours(kept, Choice("CPU", 20, 0.049)) is None  # at u = 1.5 / 1.45
        dearer = break_even_hours(kept, Choice("CPU", 20, 0.051))
        assert dearer == pytest.approx(1.5 / 1.55 * 1000 * HOURS_A_YEAR), share
    # hours without work cost no more than all hours
    assert Choice("GPU", 1, 0.3, 0.25, 0.4).price_per_hour == 0.3
    with pytest.raises(ValueError, match=r"^idle_price_per_hour is 0\.5, but .* price_per_hour of 0\.3: "):
        Choice("GPU", 1, 0.3, 0.25, 0.5)


def test_what_is_no_number_is_refused_in_a_sentence():
    choice = {"name": "CPU", "audio_per_s": 1, "price_per_hour": 1, "utilisation": 1}
    purchase = {"price": 1, "years": 1, "watts": 1, "price_per_kwh": 1, "idle_watts": 1}
    for value in (-1, math.nan, math.inf, "3", True):
        for kind, fields in ((Choice, choice), (Purchase, purchase)):
            for name in fields.keys() - {"name"}:
                with pytest.raises(ValueError, match=rf"^{name} is .*, but it must be a number .*\.$"):
                    kind(**fields | {name: value})
        with pytest.raises(ValueError, match=r"is .*, but it must be a number .*\.$"):
            hours_that_pay(value, CPU, GPU)
    assert Choice("CPU", 1, 0).per_1000_hours == 0  # zero is a price and no throughput
    for change in ({"audio_per_s": 0}, {"utilisation": 0}, {"utilisation": 1.5}):
        with pytest.raises(ValueError, match=next(iter(change))):
            Choice(**choice | change)
    with pytest.raises(ValueError, match="years is 0"):
        Purchase(1, 0, 1, 1)


# -- the view ----------------------------------------------------------------------------------------------

PRICES = {"cpu_price": 0.1, "gpu_price": 2.0, "bridge_price": 1e6, "currency": "EUR", "gpu_utilisation": 0.1}


def test_the_title_is_the_finding(views):
    origins = {"cpu_origin": "measured here", "gpu_origin": "recorded on a Test"}
    still = views.costs(20, 1000, **PRICES, **origins).static()
    assert "1000 hours of speech: 5.00 EUR on the CPU, 4.0x that on the GPU" in still.text
    assert "may cost 5.0x that of the CPU" in still.text and "here it costs 20.0x" in still.text
    assert "has paid for it after 66,700,000 hours of speech" in still.text
    assert "measured here" in still.body and "recorded on a Test" in still.body and "png" in still.body
    busy = views.costs(20, 1000, **{**PRICES, "gpu_utilisation": 1.0}).static()
    assert "2.00 EUR on the GPU, 2.5x that on the CPU" in busy.text
    same = views.costs(20, 20, cpu_price=1, gpu_price=1, bridge_price=5, currency="EUR").static().text
    assert "cost 50.0 EUR on either" in same and "no bridge is ever paid" in same
    free = views.costs(20, 20, cpu_price=0, gpu_price=1, bridge_price=5, currency="EUR").static().text
    assert "cost nothing on the CPU" in free and "never cheaper" in free


def test_the_fields_change_the_picture(views):
    view = views.costs(20, 1000, **PRICES)
    before = view.picture.value
    view.gpu.utilisation.value = 100
    assert view.choices()[1].per_1000_hours == pytest.approx(2.0)
    assert "2.00 EUR on the GPU" in view.picture.value != before
    view.cpu.numbers["price_per_hour"].value = 0.01
    assert "0.500 EUR on the CPU" in view.picture.value
    view.bridge.value = 3e6
    assert "3,000,000 EUR" in view.picture.value and "Keyboard" in view.status.value
    before = view.picture.value
    for value in (-1.0, math.nan):  # what makes no sense is said, and the picture stays
        view.cpu.numbers["price_per_hour"].value = value
        assert "CPU: price_per_hour is" in view.status.value and view.picture.value == before
    view.cpu.numbers["price_per_hour"].value = 0.2
    assert "Keyboard" in view.status.value and view.picture.value != before


def test_a_machine_that_hardly_has_work_is_the_same_in_fields_and_still(views):
    for share, shown in ((5e-4, "0.05%"), (0.07, "7%")):
        view = views.costs(20, 1000, **{**PRICES, "gpu_utilisation": share})
        field = view.gpu.utilisation
        assert view.choices()[1].utilisation == pytest.approx(share)
        assert format(field.value, field.readout_format) + "%" == shown
        assert f">{shown}</td>" in view.static().body and f">{shown}</td>" in view.picture.value


def test_a_bought_machine_has_fields_of_its_own(views):
    bought = Purchase(30_000, 4, 700, 0.3)
    view = views.costs(20, 1000, **{**PRICES, "gpu_price": bought})
    assert list(view.gpu.numbers) == ["price", "years", "watts", "price_per_kwh", "idle_watts"]
    view.gpu.numbers["years"].value = 8
    longer = Purchase(30_000, 8, 700, 0.3).price_per_hour(0.1)
    assert view.choices()[1].price_per_hour == pytest.approx(longer)
    bought = Purchase(price=HOURS_A_YEAR, years=1, watts=3000, price_per_kwh=0.5, idle_watts=1000)
    for share in (0.05, 0.9):
        still = views.costs(20, 1000, **{**PRICES, "gpu_price": bought, "gpu_utilisation": share}).static()
        assert "as soon as it has work in 38 % of its hours" in still.text
