"""Standard streams that are full or cannot encode a character, and names of files that are no text."""

from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import onnx
import onnx.parser
import pytest

from compiler.cli import _flushed
from compiler.cli.streams import encodable
from tests.cli.command import MODEL

ROOT = Path(__file__).parents[2]
FULL = Path("/dev/full")
ODD = os.fsdecode(b"caf\xe9.onnx")
"""A name in another encoding than UTF-8."""

Done = subprocess.CompletedProcess[bytes]


def candlec(*arguments: str, stdout: int = subprocess.PIPE, **environment: str) -> Done:
    """Run `candlec` in a separate process."""
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    every = {**buffered, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", **environment}
    command = [sys.executable, "-m", "compiler", *arguments]
    return subprocess.run(command, env=every, stdout=stdout, stderr=subprocess.PIPE, check=False)


@pytest.mark.skipif(not FULL.exists(), reason="only Linux has /dev/full")
@pytest.mark.parametrize(
    ("arguments", "before"),
    [
        (["ops"], ""),
        (["ops", "--json"], ""),
        (["check", "echo.onnx", "--json"], ""),
        (["inspect", "echo.onnx", "--list-steps"], ""),
        (["--version"], ""),
        (["check", "gone.onnx", "--json"], "error[CC0102]: gone.onnx: No such file or directory\n"),
        (["ops", "--heat", "--json"], "Usage: candlec ops "),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_an_error_names_a_full_output(arguments: list[str], before: str, folder: Path) -> None:
    with FULL.open("wb") as full:
        done = candlec(*arguments, stdout=full.fileno())
    said = done.stderr.decode()
    assert done.returncode == 1
    assert said.startswith(before) and said.endswith("error: standard output: No space left on device\n")
    assert "Traceback" not in said and said.count("No space") == 1


class Full(io.StringIO):
    """A stream that takes no text when it is flushed."""

    def __init__(self, file: int, error: OSError) -> None:
        super().__init__()
        self._file, self._error = file, error

    def flush(self) -> None:
        raise self._error

    def fileno(self) -> int:
        return self._file


@pytest.mark.parametrize(
    ("error", "before", "code"),
    [(errno.ENOSPC, 0, 1), (errno.ENOSPC, 2, 2), (errno.EPIPE, 0, 141), (errno.EPIPE, 1, 1), (None, 0, 0)],
)
def test_text_that_is_not_written_changes_the_exit_code(
    error: int | None,
    before: int,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with (tmp_path / "output").open("wb") as file:
        stream = None if error is None else Full(file.fileno(), OSError(error, os.strerror(error)))
        monkeypatch.setattr(sys, "stdout", stream)
        assert _flushed(before) == code
    said = "error: standard output: No space left on device\n" if code == 1 and not before else ""
    assert capsys.readouterr().err == said


def test_a_closed_pipe_ends_the_report_of_an_error(folder: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = candlec("check", "gone.onnx", "--json", stdout=writing)
    finally:
        os.close(writing)
    assert done.returncode == 141
    assert done.stderr.startswith(b"error[CC0102]: gone.onnx: ") and b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "latin-1"},
    ],
    ids=" ".join,
)
def test_other_characters_stand_for_those_that_an_output_lacks(environment: dict[str, str], folder: Path) -> None:
    done = candlec("verify", "echo.onnx", **environment)
    assert done.returncode == 0, done.stderr
    assert b"\n+ " in done.stdout and b"2 of 2 outputs equal onnxruntime's" in done.stdout
    done = candlec("check", "refused.onnx", **environment)
    assert done.returncode == 1 and b"\nx " in done.stdout


def test_a_replacement_character_stands_for_a_byte_that_is_no_text(folder: Path) -> None:
    onnx.save(onnx.parser.parse_model(MODEL), ODD)
    done = candlec("compile", ODD, "--report", "report.html")
    assert done.returncode == 0, done.stderr
    assert "caf\N{REPLACEMENT CHARACTER}.plan: " in done.stdout.decode()
    assert "<h1>caf\N{REPLACEMENT CHARACTER}.onnx</h1>" in Path("report.html").read_text(encoding="utf-8")
    shown = json.loads(candlec("compile", ODD, "--json").stdout)
    assert shown["plan"] == "caf\N{REPLACEMENT CHARACTER}.plan"
    Path(ODD).unlink()
    done = candlec("compile", ODD)
    assert done.returncode == 1
    assert done.stderr.decode().startswith("error[CC0102]: caf\N{REPLACEMENT CHARACTER}.onnx: No such file")
    assert b"error[CC0102]: caf?.onnx: " in candlec("compile", ODD, PYTHONIOENCODING="ascii").stderr


def test_text_stays_as_it_is() -> None:
    assert encodable("café ✓") == "café ✓"
