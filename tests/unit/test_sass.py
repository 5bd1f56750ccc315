"""SASS is read rightly: loops, operations, widths, and the source lines they come from."""

import pytest

from course_lib.measure import sass

#: A piece of what nvdisasm 13.5 prints of a kernel of this course (compute capability 9.0), shortened.
TEXT = """
	.target	sm_90
//--------------------- .text.kernel --------------------------
.text.kernel:
	//## File "/course/kernel.py", line 40
        /*0000*/                   S2R R0, SR_TID.X ;
        /*0010*/              @!P1 LDG.E.128 R72, desc[UR12][R76.64] ;
	//## File "/course/kernel.py", line 44
        /*0020*/                   STS.128 [R85], R72 ;
        /*0030*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
.L_x_2:
        /*0040*/                   MOV R5, 0x1 ;
.L_x_1:
	//## File "/course/kernel.py", line 47
        /*0050*/                   LDS.128 R68, [R0+UR5] ;
        /*0060*/                   LDS R72, [R2+UR5] ;
        /*0070*/                   IADD3 R5, R5, 0x10, RZ ;
	//## File "/course/kernel.py", line 49 inlined at "/course/kernel.py", line 60
        /*0080*/                   FFMA R4, R68, R72.reuse, R4 ;
        /*0090*/                   FFMA R12, R69, R72, R12 ;
        /*00a0*/               @P0 BRA `(.L_x_1) ;
        /*00b0*/                   FFMA R1, R2, R3, R4 ;
        /*00c0*/               @P2 BRA `(.L_x_2) ;
        /*00d0*/                   STG.E.64 desc[UR4][R2.64], R68 ;
        /*00e0*/                   STL [R1], R4 ;
        /*00f0*/                   EXIT ;
.L_x_3:
        /*0100*/                   BRA `(.L_x_3);
"""


@pytest.fixture
def code():
    return sass.parse(TEXT)


def test_the_hot_loop_is_the_innermost_one_that_computes(code):
    assert [loop.label for loop in code.loops] == [".L_x_1"]  # the branch to itself at the end is none
    hot = code.hot
    assert len(hot.instructions) == 6
    assert (hot.count("FFMA"), hot.count("LDS"), hot.count("LDS.128"), hot.count("LDG")) == (2, 2, 1, 0)
    assert hot.kinds == {"FMA": 2, "shared load": 2, "index": 1, "control": 1}
    assert hot.fma_share == pytest.approx(2 / 6)


def test_the_whole_kernel_is_counted_too(code):
    assert code.count("FFMA") == 3 and code.count("LDG.128") == 1 and code.count("LDG.E.128") == 1
    assert code.count("LDG.64") == 0 and code.count("STG.E.64") == 1
    kinds = [instruction.kind for instruction in code.instructions]
    assert kinds[:4] == ["index", "global load", "shared store", "barrier"]
    assert kinds[-4:] == ["global store", "local memory", "control", "control"]


def test_an_instruction_knows_its_predicate_and_its_line(code):
    load = code.instructions[1]
    assert (load.address, load.operation, load.name, load.predicate) == (0x10, "LDG.E.128", "LDG", "@!P1")
    assert (load.file, load.line) == ("/course/kernel.py", 40)
    assert [instruction.line for instruction in code.hot.instructions] == [47, 47, 47, 49, 49, 49]


def test_a_constant_made_by_a_multiply_add_is_a_copy_and_remarks_are_no_operands():
    copied, fma, spill = sass.parse("""
        /*0000*/                   HFMA2.MMA R5, -RZ, RZ, 0, 0 ;
        /*0010*/                   HFMA2 R5, R6, R7, R8 ;
        /*0020*/                   LDL.LU R10, [R1+0xc]                 (*"SpillRefill"*)          ;
""").instructions
    assert (copied.kind, fma.kind, spill.kind) == ("index", "FMA", "local memory")
    assert spill.text == "LDL.LU R10, [R1+0xc]"
