"""An interrupted run continues: no row is lost, none is written twice, and it refuses other data and plans."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compiler import Error
from compiler.batch import Settings, Summary, run_batch
from tests.batch.plans import LINES, LOOKUP, bad_rows, lines_of, plan_of, ramp, written
from tests.running import SOON, wait_for

ROOT = Path(__file__).parent.parent.parent
ROWS = 50


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Rows of indices into a table. Each seventh is outside the table."""
    path = tmp_path / "rows.npz"
    np.savez(path, i=np.where(np.arange(ROWS) % 7 == 6, 9, np.arange(ROWS) % 3))
    return path


def run(file: Path, folder: Path, batches: int | None = None, *, resume: bool = False, graph: str = LOOKUP) -> Summary:
    """Run batches of 4 rows in parts of 10, and stop after so many batches."""
    count = 0

    def stop() -> bool:
        nonlocal count
        count += 1
        return count == batches

    return run_batch(plan_of(graph), [file], folder, Settings(batch=4, part_rows=10, resume=resume), stop=stop)


def assert_same(folder: Path, undisturbed: Path) -> None:
    rows, values = written(folder)
    expected_rows, expected = written(undisturbed)
    assert rows == expected_rows
    np.testing.assert_array_equal(values, expected)
    assert bad_rows(folder) == bad_rows(undisturbed)


@pytest.mark.parametrize("batches", [1, 2, 3, 5, 11])
def test_a_stopped_run_continues(batches: int, file: Path, tmp_path: Path) -> None:
    whole = run(file, tmp_path / "whole")
    first = run(file, tmp_path / "out", batches)
    assert not first.finished
    second = run(file, tmp_path / "out", resume=True)
    assert (second.finished, second.known) == (True, 4 * batches)
    assert (second.rows, second.written, second.bad) == (whole.rows, whole.written, whole.bad) == (ROWS, 43, 7)
    assert_same(tmp_path / "out", tmp_path / "whole")
    third = run(file, tmp_path / "out", resume=True)
    assert (third.known, third.written, third.parts) == (ROWS, 43, second.parts)


def test_a_torn_end_is_written_again(file: Path, tmp_path: Path) -> None:
    run(file, tmp_path / "whole")
    run(file, tmp_path / "out", 6)
    folder = tmp_path / "out"
    manifest = folder / "_manifest.jsonl"
    lines = manifest.read_bytes().splitlines(keepends=True)
    manifest.write_bytes(b"".join(lines[:-1]) + lines[-1][:20])  # the last part and its bad rows are there
    (folder / f".{'0' * 16}.part").write_bytes(b"a part of a file")
    run(file, folder, resume=True)
    assert_same(folder, tmp_path / "whole")
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


def test_a_run_that_began_no_part_starts_again(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "_manifest.jsonl").write_text('{"version": 1, "pl')
    assert run(file, folder, resume=True).known == 0
    assert run(file, tmp_path / "new", resume=True).finished


KILLED = """
import os, signal, sys
from pathlib import Path
import compiler.batch.manifest as manifest
from compiler.batch import Settings, run_batch

last = sys.argv[4]
writes = manifest.write_whole, manifest._write

def whole(path, data):
    if last == "before" and path.name == "part-000003.npz":
        path.with_name(".0123456789abcdef.part").write_bytes(data[:9])
        os.kill(os.getpid(), signal.SIGKILL)
    writes[0](path, data)

def line(file, data, *, sync=True):
    if last == "after" and data.get("name") == "part-000003.npz":
        os.kill(os.getpid(), signal.SIGKILL)
    writes[1](file, data, sync=sync)

manifest.write_whole, manifest._write = whole, line
run_batch(sys.argv[1], [sys.argv[2]], sys.argv[3], Settings(batch=4, part_rows=10))
"""


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_killed_run_continues(moment: str, file: Path, tmp_path: Path) -> None:
    """The process ends while it writes a part, or between the part and its line."""
    plan_of(LOOKUP).save(tmp_path / "lookup.plan")
    run(file, tmp_path / "whole")
    command = [sys.executable, "-c", KILLED, tmp_path / "lookup.plan", file, tmp_path / "out", moment]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert len(lines_of(tmp_path / "out/_manifest.jsonl")) == 4  # the first line, and three parts
    assert run(file, tmp_path / "out", resume=True).known == 36
    assert_same(tmp_path / "out", tmp_path / "whole")


def test_a_run_killed_at_any_time_continues(tmp_path: Path) -> None:
    plan_of(LINES).save(tmp_path / "lines.plan")
    np.savez(tmp_path / "rows.npz", x=ramp(20_000))
    arguments = ["batch", "lines.plan", "--input", "rows.npz", "--output", "out", "--part-rows", "40", "--batch", "2"]
    command = [sys.executable, "-m", "compiler", *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL)
    assert wait_for(lambda: (tmp_path / "out/part-000004.npz").exists() or process.poll() is not None)
    process.kill()
    assert process.wait(SOON) == -signal.SIGKILL
    done = subprocess.run(
        [*command, "--resume", "--json"], cwd=tmp_path, env=environment, capture_output=True, check=True
    )
    summary = json.loads(done.stdout)
    assert 160 <= summary["known"] < 20_000 and summary["finished"]
    rows, values = written(tmp_path / "out")
    assert rows == [*range(20_000)]
    np.testing.assert_array_equal(values, 2 * ramp(20_000))


def moved(file: Path, folder: Path) -> dict[str, Any]:
    os.utime(file, ns=(0, 1))
    return {}


def cut(file: Path, folder: Path) -> dict[str, Any]:
    next(folder.glob("part-*")).write_bytes(b"short")
    return {}


def gone(file: Path, folder: Path) -> dict[str, Any]:
    next(folder.glob("part-*")).unlink()
    return {}


def damaged(file: Path, folder: Path) -> dict[str, Any]:
    manifest = folder / "_manifest.jsonl"
    manifest.write_text(manifest.read_text().replace('"first"', '"fast"'))
    return {}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (moved, "parts of another run, so it cannot continue: the data differ: .*rows.npz"),
        (lambda *_: {"graph": LOOKUP.replace("30", "40")}, "cannot continue: the plan is another one"),
        (cut, "part-000000.npz is missing, or is not the file that _manifest.jsonl lists"),
        (gone, "part-000000.npz is missing"),
        (damaged, "_manifest.jsonl is damaged: name a new folder"),
    ],
    ids=["data", "plan", "cut", "gone", "damaged"],
)
def test_something_else_does_not_continue(change: Any, said: str, file: Path, tmp_path: Path) -> None:
    run(file, tmp_path / "out", 3)
    options = change(file, tmp_path / "out")
    with pytest.raises(Error, match=said):
        run(file, tmp_path / "out", resume=True, **options)


def test_other_settings_do_not_continue(file: Path, tmp_path: Path) -> None:
    run(file, tmp_path / "out", 3)
    with pytest.raises(Error, match=r"cannot continue: the settings differ: batch was 4, and is 5$"):
        run_batch(plan_of(LOOKUP), [file], tmp_path / "out", Settings(batch=5, resume=True))
    shutil.copy(file, tmp_path / "more.npz")
    with pytest.raises(Error, match="another run"):
        run_batch(plan_of(LOOKUP), [file, tmp_path / "more.npz"], tmp_path / "out", Settings(batch=4, resume=True))


def test_a_folder_with_files_is_refused(file: Path, tmp_path: Path) -> None:
    run(file, tmp_path / "out", 3)
    with pytest.raises(Error, match=r"out is not empty: name a new folder, or resume \(--resume\)"):
        run(file, tmp_path / "out")
    with pytest.raises(Error, match=r"is not empty: it has no _manifest.jsonl: name a new folder"):
        run(file, tmp_path, resume=True)


def test_two_processes_do_not_write_to_one_folder(file: Path, tmp_path: Path) -> None:
    import fcntl

    run(file, tmp_path / "out", 3)
    with (tmp_path / "out/_manifest.jsonl").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(Error, match="another process writes to it"):
            run(file, tmp_path / "out", resume=True)
