"""Control bits: read from words made by hand, and from what the compiler makes of the promotion."""

from dataclasses import replace

import pytest

from course_lib.fp8 import jit
from course_lib.fp8.control import (
    FFMA,
    Control,
    Interleaving,
    NotMachineCode,
    controls,
    interleaving,
    without_yields,
)
from course_lib.measure import device_code, machine, sass

NO_COMPILER = machine.missing("nvrtc")
compiles = pytest.mark.skipif(NO_COMPILER is not None, reason=str(NO_COMPILER))


def word(stall=1, keeps=1, writes=7, reads=7, waits=0, reuse=0):
    return stall << 41 | keeps << 45 | writes << 46 | reads << 49 | waits << 52 | reuse << 58


def test_every_field_has_its_bits():
    assert Control.read(32, 0xABC0000000000223, word()) == Control(32, FFMA, 1, True, None, None, 0, 0)
    assert Control.read(0, 0, word(stall=15)).stall == 15
    assert not Control.read(0, 0, word(keeps=0)).keeps
    assert Control.read(0, 0, word(writes=5)).sets_on_write == 5
    assert Control.read(0, 0, word(reads=0)).sets_on_read == 0
    assert Control.read(0, 0, word(waits=0b101010)).waits == 0b101010
    assert Control.read(0, 0, word(reuse=0b1001)).reuse == 0b1001


def test_the_exclusive_or_of_deepgemm_flips_yield_and_a_reuse():
    """0x0800_2000_0000_0000 on the upper word: bit 45 and bit 59."""
    before, after = (Control.read(0, FFMA, word(reuse=2) ^ mask) for mask in (0, 0x0800_2000_0000_0000))
    assert (before.keeps, before.reuse) == (True, 2) and (after.keeps, after.reuse) == (False, 0)


def test_neighbours():
    def ffma(keeps, reuse=0):
        return Control.read(0, FFMA, word(keeps=keeps, reuse=reuse))

    other = Control.read(0, 0x211, word(keeps=0))
    code = [ffma(1, 2), ffma(0), ffma(1, 2), other, ffma(1), ffma(1)]
    assert interleaving(code) == Interleaving(5, 1, 2, 3, 2)
    assert str(interleaving(code)) == "5 FFMAs: 20% yield, 40% reuse an operand; 2 of 3 neighbours alternate"
    assert str(interleaving([other])) == "no FFMA"


@pytest.mark.parametrize("damage", [b"", b"MZ\x90\0\0", b"\x7fELF\x02", b"\x7fELF\x02" + b"\xff" * 200])
def test_what_is_no_cubin_is_refused(damage):
    with pytest.raises(NotMachineCode, match=r"\.$"):
        controls(damage)


@compiles
def test_the_compiler_interleaves_the_promotion_by_itself():
    binary = jit.build("v4_two_level", BM=128, BN=128, STAGES=5)
    code = controls(binary.cubin)
    printed = sass.parse(device_code.disassembled(binary.cubin)).instructions
    assert sum(one.opcode == FFMA for one in code) == sum(one.name == "FFMA" for one in printed)
    found = interleaving(code)
    assert found.count >= 64 and 0.4 < found.yielding / found.count < 0.6
    assert found.alternating > 0.9 * found.neighbours


@compiles
def test_yields_can_be_set_back_and_nothing_else_changes():
    cubin = jit.build("v4_two_level", BM=128, BN=128, STAGES=5).cubin
    changed = without_yields(cubin)
    before, after = interleaving(controls(cubin)), interleaving(controls(changed))
    assert before.yielding and after == replace(before, yielding=0, alternating=0)
    assert len(changed) == len(cubin)
    differing = sum((one ^ other).bit_count() for one, other in zip(cubin, changed, strict=True))
    assert differing == before.yielding  # a bit each
    assert device_code.disassembled(changed) == device_code.disassembled(cubin)
