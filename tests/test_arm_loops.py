"""The count of instructions in the loops of a program for ARM."""

from __future__ import annotations

import pytest

from tools.arm_loops import Loop, best, functions

LISTING = """
0000000000001000 <kernels::tile>:
    1000:	mov	x8, x0
    1004:	ldp	q0, q1, [x1]
    1008:	fmla	v2.4s, v0.4s, v1.s[0]
    100c:	fmla	v3.4s, v0.4s, v1.s[1]
    1010:	subs	x8, x8, #0x1
    1014:	b.ne	1004 <kernels::tile+0x4>  // b.any
    1018:	str	q2, [x2]
    101c:	cbnz	x3, 1000 <kernels::tile>
    1020:	ret

0000000000001024 <kernels::other>:
    1024:	fmla	v2.4s, v0.4s, v1.4s
    1028:	str	q2, [sp, #16]
    102c:	tbz	w0, #0, 1024 <kernels::other>
    1030:	b	1000 <kernels::tile>
"""


@pytest.mark.parametrize(
    ("function", "multiply", "expected"),
    [
        ("tile", "fmla", Loop(5, 2, 0)),
        ("other", "fmla", Loop(3, 1, 1)),
        ("kernels", "fmla", Loop(5, 2, 0)),
        ("tile", "sdot", None),
        ("none", "fmla", None),
    ],
)
def test_the_best_innermost_loop_is_found(function: str, multiply: str, expected: Loop | None) -> None:
    assert best(list(functions(LISTING)), function, multiply) == expected
