"""The results for the public scoreboard of ONNX backends."""

from __future__ import annotations

import json
import unittest
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from onnx.backend.test.runner import BackendIsNotSupposedToImplementIt

from tests.onnx_backend import scoreboard


class OnnxBackendNodeModelTest(unittest.TestCase):
    """Tests as onnx's runner makes them."""

    __test__ = False  # pytest must not run them

    def test_right_cpu(self) -> None:
        self.assertTrue(True)

    def test_wrong_cpu(self) -> None:
        self.assertEqual(1, 2)

    def test_broken_cpu(self) -> None:
        raise ValueError("it is broken")

    def test_missing_cpu(self) -> None:
        raise BackendIsNotSupposedToImplementIt("it is missing")

    def test_right_cuda(self) -> None:
        self.fail("it runs on another device")

    @unittest.skip("it does not apply")
    def test_skipped_cpu(self) -> None:
        self.fail("it runs")


def test_the_report_has_the_names_of_all_tests(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Cases:
        def __init__(self, *_: Any) -> None:
            self.test_cases = {"OnnxBackendNodeModelTest": OnnxBackendNodeModelTest}

    monkeypatch.setattr(scoreboard, "BackendTest", Cases)
    done = CliRunner().invoke(scoreboard.command, [str(tmp_path / "new/folder")])
    assert done.exit_code == 0, done.output
    assert "1 of 5 pass as the scoreboard counts them" in done.output
    found = json.loads((tmp_path / "new/folder/report.json").read_text())
    assert found.pop("date")
    prefix = "OnnxBackendNodeModelTest::test_"
    assert found == {
        "passed": [f"{prefix}right_cpu"],
        "failed": [f"{prefix}broken_cpu", f"{prefix}wrong_cpu"],
        "skipped": [f"{prefix}missing_cpu", f"{prefix}skipped_cpu"],
    }
