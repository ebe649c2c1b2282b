"""Runs a plan over the rows of many files, and writes the results in parts, so that an interrupted run can continue.

`run_batch` is the entry. A *source* reads the rows of one file, and gives them in *chunks*. The rows that fit the
inputs make batches, and the outputs of the batches make parts. The manifest lists the finished parts.
"""

from compiler.batch.largest import largest_batch
from compiler.batch.run import run_batch
from compiler.batch.settings import Progress, Settings, Summary

__all__ = ["Progress", "Settings", "Summary", "largest_batch", "run_batch"]
