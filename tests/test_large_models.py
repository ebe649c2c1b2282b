"""Large models: `verify` and `bisect` hold one copy of the weights, and read the others from files.

Linux counts pages of files that a process reads, although it can take them back at any time. One copy in a session and
the pages of one file are twice the weights.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.large_model import BROKEN, COMMANDS

ROOT = Path(__file__).parent.parent
LAYERS, SIDE, LARGE = 8, 2048, 32 << 20
"""The weights have 134 MB. The test lowers the limit from which the compiler counts a model as large."""
MOST = 2.5
"""The largest peak, as a multiple of the weights. Without care for large models, it is more than 6."""


def measured(command: str, large: int) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """The output of the command for a small and for the large model, and the memory of the run of the large one."""
    program = [sys.executable, "-m", "tests.large_model", str(LAYERS), str(SIDE), command, "--large", str(large)]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=True)
    *printed, taken = [json.loads(each) for each in _documents(done.stdout)]
    return printed, taken


def _documents(text: str) -> list[str]:
    """The JSON documents in a text."""
    decoder, found = json.JSONDecoder(), []
    while text := text.strip():
        _, end = decoder.raw_decode(text)
        found.append(text[:end])
        text = text[end:]
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the peak memory of a process")
@pytest.mark.parametrize("command", COMMANDS)
def test_one_copy_of_the_weights_is_in_memory(command: str) -> None:
    (_, shown), taken = measured(command, LARGE)
    assert not shown["ok"]
    if command == "bisect":
        assert (shown["pass"]["name"], shown["step"]["origin"]) == (BROKEN, "Add(shift0)")
        assert shown["files_differ"]
    assert taken["peak"] <= MOST * taken["weights"]
