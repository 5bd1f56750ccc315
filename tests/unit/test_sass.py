"""SASS is read rightly: loops, operations, widths, and the source lines they come from."""

from sass_counts import count

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


def test_the_hot_loop_is_the_innermost_one_that_computes():
    code = sass.parse(TEXT)
    (hot,) = code.loops  # the branch to itself at the end is none
    assert hot is code.hot and hot.instructions[0].address == 0x50
    assert (count(hot, "FFMA"), count(hot, "LDS"), count(hot, "LDS.128"), count(hot, "LDG")) == (2, 2, 1, 0)
    assert hot.kinds == {"FMA": 2, "shared load": 2, "index": 1, "control": 1}
    assert [one.line for one in hot.instructions] == [47, 47, 47, 49, 49, 49]
    assert (
        count(code, "FFMA") == 3 and count(code, "LDG.128") == 1 and code.instructions[1].predicate == "@!P1"
    )
    kinds = [one.kind for one in code.instructions]
    assert kinds[:4] == ["index", "global load", "shared store", "barrier"]
    assert kinds[-4:] == ["global store", "local memory", "control", "control"]
