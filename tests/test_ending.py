"""The end of the program after Ctrl-C or a closed pipe. Each test uses a separate process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.running import SOON, children, is_there, wait_for

ROOT = Path(__file__).parent.parent
DIGITS = str(ROOT / "models/digits.onnx")


def start(folder: Path, *arguments: str, stdout: int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    """`candlec` in a folder whose modules come first."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
    command = [sys.executable, "-m", "compiler", *arguments]
    return subprocess.run(
        command, env=environment, cwd=folder, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False
    )


# `compiler` itself, which is imported before the program can catch Ctrl-C, imports none of these.
STANDARD = ["typing", "dataclasses", "inspect", "logging", "json", "shutil", "pathlib"]


@pytest.mark.parametrize("imported", ["click", "rich", "numpy", "onnx", "onnx_ir", *STANDARD])
def test_an_interrupted_import_leaves_a_word_and_no_file(imported: str, tmp_path: Path) -> None:
    module = tmp_path / f"{imported}.py"
    module.write_text("raise KeyboardInterrupt")  # as at Ctrl-C
    done = start(tmp_path, "compile", DIGITS, "-o", "digits.plan")
    assert done.returncode == 130
    assert done.stderr.strip() == "interrupted"
    assert not (tmp_path / "digits.plan").exists()


def test_programs_see_an_interruption_too(tmp_path: Path) -> None:
    (tmp_path / "onnx.py").write_text("raise KeyboardInterrupt")
    done = start(tmp_path, "check", DIGITS, "--json")
    assert done.returncode == 130
    assert json.loads(done.stdout) == {"ok": False, "error": "interrupted"}


@pytest.mark.skipif(os.name != "posix", reason="other systems have no SIGPIPE")
@pytest.mark.parametrize("arguments", [["ops"], ["ops", "--json"], ["check", DIGITS]], ids=" ".join)
def test_a_closed_pipe_ends_it_as_it_does_any_program(arguments: list[str], tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = start(tmp_path, *arguments, stdout=writing)
    finally:
        os.close(writing)
    assert done.returncode == 141
    assert done.stderr == ""


@pytest.mark.skipif(os.name != "posix", reason="elsewhere a closed output is another matter")
@pytest.mark.parametrize("arguments", [["--help"], ["ops"], ["ops", "--json"], ["check", DIGITS]], ids=" ".join)
@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-"])
def test_a_closed_output_is_no_fault(closed: str, arguments: list[str]) -> None:
    command = ["sh", "-c", f'"$@" {closed}', "sh", sys.executable, "-m", "compiler", *arguments]
    done = subprocess.run(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


# A process that is started in the background may have been told to ignore the signal.
BENCH = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from compiler.bench import turns
from compiler.cli import main
turns.MOST = 10**9  # so that a fast processor is not done before the signal
def working(run, turn=turns._one_turn):
    open("working", "w").close()
    return turn(run)
turns._one_turn = working
if __name__ == "__main__":
    main(["bench", "digits.onnx", "--against", "nothing", "--processes", "2", "--threads", "1", "--seconds", "600"])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who started whom")
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_a_signal_to_it_alone_ends_its_workers(sent: signal.Signals, code: int, tmp_path: Path) -> None:
    (tmp_path / "bench.py").write_text(BENCH)
    (tmp_path / "digits.onnx").write_bytes(Path(DIGITS).read_bytes())
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "bench.py"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert wait_for(lambda: (tmp_path / "working").exists() or process.poll() is not None)
            workers = children(process.pid)
            assert len(workers) > 1, "a worker, and what tracks its resources"
            process.send_signal(sent)
            assert process.wait(SOON) == code
            assert wait_for(lambda: not any(map(is_there, workers)))
        finally:
            process.kill()
