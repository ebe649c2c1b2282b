"""The memory of a run does not grow with the number of rows."""

from __future__ import annotations

import re
import sys

import pytest


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_memory_is_flat_and_no_row_is_lost(capfd: pytest.CaptureFixture[str]) -> None:
    """The program fails if a row is lost or doubled, or if the memory grows after the first quarter."""
    pytest.importorskip("pyarrow", reason="needs pyarrow")
    from benchmarks import batch_rows

    batch_rows.main(40_000)
    out = capfd.readouterr().out
    assert out.startswith("40000 rows in ")
    assert len(re.findall(r"\d+ MB", out)) == 4
