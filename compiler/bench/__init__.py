"""Measurement of a plan's time, compared with other runtimes: in turns in one process, and in fresh processes.

`engines` lists the runtimes, `turns` and `cold` measure, `timing` holds results, `machine` describes the machine.
"""
