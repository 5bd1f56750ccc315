"""Atomic operations, lane after lane."""

from __future__ import annotations

from course_lib.measure.jit import compiled

ADD, SUB, MAX, MIN, EXCH, CAS, NANMAX, NANMIN = range(8)
AND, OR, XOR, INC, DEC = range(8, 13)
#: By the names of numba.cuda.atomic, in the order of the codes. What commutes has the same one bit: sums with
#: differences. An exchange has two: not even another one does.
GROUPS = {
    **{"add": 1, "sub": 1, "max": 2, "min": 4, "exch": 3, "cas": 8, "nanmax": 512, "nanmin": 1024},
    **{"and_": 16, "or_": 32, "xor": 64, "inc": 128, "dec": 256},
}
CODES = {name: code for code, name in enumerate(GROUPS)}


@compiled(_nrt=False)
def update(flat, code, lanes, base, shift, values, expected, old):
    """Do an arithmetic operation on flat[base[lane] + shift]; old[lane] becomes what was there before."""
    step, step_expected = len(values) > 1, len(expected) > 1
    for lane in range(len(lanes)):
        if not lanes[lane]:
            continue
        at, value = base[lane] + shift, values[lane * step]
        was = flat[at]
        old[lane] = was
        if code == ADD:
            flat[at] = was + value
        elif code == SUB:
            flat[at] = was - value
        elif code in (MAX, NANMAX):
            if value > was or (code == NANMAX and was != was):
                flat[at] = value
        elif code in (MIN, NANMIN):
            if value < was or (code == NANMIN and was != was):
                flat[at] = value
        elif code == EXCH or was == expected[lane * step_expected]:
            flat[at] = value


@compiled(_nrt=False)
def update_bits(flat, code, lanes, base, shift, values, old):
    """Do an operation on whole numbers: and, or, xor, and inc and dec, which wrap at the value given."""
    step = len(values) > 1
    for lane in range(len(lanes)):
        if not lanes[lane]:
            continue
        at, value = base[lane] + shift, values[lane * step]
        was = flat[at]
        old[lane] = was
        if code == AND:
            flat[at] = was & value
        elif code == OR:
            flat[at] = was | value
        elif code == XOR:
            flat[at] = was ^ value
        elif code == INC:
            flat[at] = 0 if was >= value else was + 1
        else:
            flat[at] = value if was == 0 or was > value else was - 1
