"""How long a plan takes, beside what else runs its model: in turns in one process, and from a fresh one.

`engines` is what can be timed, `turns` and `cold` are how, `timing` is what comes out, `machine` where it was measured.
"""
