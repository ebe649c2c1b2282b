"""Tasks in processes: their results, crashes, limits and ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path

import pytest

from compiler.processes.ending import Ending
from compiler.processes.run import Limits, run_tasks
from tests.running import SOON, children, is_there, wait_for
from tests.tasks import act

ROOT = Path(__file__).parent.parent

LINUX = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux tells the memory, the children and the processors of a process"
)


def endings(words: Sequence[str], jobs: int = 2, limits: Limits | None = None) -> dict[str, Ending]:
    """The endings of tasks by what they do, as soon as they end."""
    found = run_tasks(act, words, jobs=jobs, limits=limits)
    return {words[index]: ending for index, ending in found}


def test_tasks_give_results_as_soon_as_they_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["wait file", "a", "b"]
    found = []
    for index, ending in run_tasks(act, words, jobs=2):
        found.append((words[index], ending.kind, ending.result))
        if words[index] == "b":
            Path("file").touch()
    assert found == [(word, "done", word) for word in ("a", "b", "wait file")]


@pytest.mark.parametrize(
    ("word", "kind", "message"),
    [
        ("signal 11", "crashed", "it crashed with SIGSEGV (segmentation fault)"),
        ("signal 9", "crashed", "it crashed with SIGKILL (the system may have lacked memory, or somebody ended the"),
        ("exit 3", "crashed", "its process ended with exit code 3"),
        ("exit 0", "crashed", "its process ended with exit code 0"),
        ("talk", "crashed", "it crashed with SIGABRT (aborted): the last words"),
        ("apart signal 11", "crashed", "it crashed with SIGSEGV (segmentation fault)"),
        ("apart a", "done", ""),
        ("lack", "out of memory", "it could not allocate memory"),
        ("fail", "raised", "AssertionError: a bug"),
        ("refuse", "raised", "input 'x': expected float32, found int64"),
        ("function", "raised", "AttributeError: Can't pickle local object"),
    ],
)
def test_the_end_of_a_task_is_its_own(word: str, kind: str, message: str) -> None:
    found = endings([word, "a", "b"])
    ending = found.pop(word)
    assert (ending.kind, ending.phase, ending.parts) == (kind, word, (f"before {word}",))
    assert ending.message.startswith(message)
    assert ending.sentence == (f"{ending.message}; last phase: {word}" if message else "")
    assert ending.is_bug == (word in ("fail", "function"))
    assert {word: each.result for word, each in found.items()} == {"a": "a", "b": "b"}


def test_a_task_has_a_limit_of_time() -> None:
    found = endings(["sleep 600", "a"], limits=Limits(seconds=2.5))
    assert (found["sleep 600"].kind, found["sleep 600"].message) == ("timed out", "it took more than 2.5 s")
    assert 2.5 <= found["sleep 600"].seconds < SOON
    assert found["a"].kind == "done"


@LINUX
@pytest.mark.parametrize("word", ["allocate 200000000", "apart allocate 200000000"])
def test_a_task_has_a_limit_of_memory(word: str) -> None:
    found = endings([word, "a"], limits=Limits(memory=100_000_000))
    ending = found[word]
    assert ending.kind == "out of memory" and "but its limit is 100 MB" in ending.message
    assert found["a"].kind == "done"


def test_so_many_tasks_run_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["meet a b", "meet b a", "meet c d", "meet d c"]
    spans = [ending.result for ending in endings(words, jobs=2).values()]
    assert max(sum(begin <= began < end for begin, end in spans) for began, _ in spans) == 2


COUNTS = """
import compiler
from compiler.processes.run import usable_processors
plan = compiler.compile("models/digits.onnx")
print(usable_processors(), compiler.load(plan).threads)
"""


def counts(before: Callable[[], None]) -> list[int]:
    """The usable processors and the threads of a session, in a new process that calls `before` first."""
    done = subprocess.run(
        [sys.executable, "-c", COUNTS], cwd=ROOT, preexec_fn=before, capture_output=True, text=True, check=True
    )
    return [int(each) for each in done.stdout.split()]


@LINUX
def test_threads_follow_the_affinity() -> None:
    [first, *_] = os.sched_getaffinity(0)
    assert counts(lambda: os.sched_setaffinity(0, [first])) == [1, 1]


@pytest.fixture
def cgroup() -> Iterator[Path]:
    """A cgroup, of version 1 or 2, with the quota of one processor, which a process can join."""
    one = Path("/sys/fs/cgroup/cpu")
    folder = (one if one.exists() else one.parent) / f"candle-compiler-{os.getpid()}"
    quota = {"cpu.cfs_quota_us": "100000"} if one.exists() else {"cpu.max": "100000 100000"}
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this process may not make a cgroup")
    try:
        for name, text in quota.items():
            (folder / name).write_text(text)
        subprocess.run(["true"], preexec_fn=lambda: join(folder), check=True)
    except (OSError, subprocess.SubprocessError):
        assert wait_for(lambda: is_removed(folder))
        pytest.skip("this process may not set a quota of processors")
    yield folder
    assert wait_for(lambda: is_removed(folder))


def join(cgroup: Path) -> None:
    """Let this process join a cgroup."""
    (cgroup / "cgroup.procs").write_text("0")


def is_removed(cgroup: Path) -> bool:
    """Remove a cgroup. The system may take some time to take the processes that have ended out of it."""
    with suppress(OSError):
        cgroup.rmdir()
    return not cgroup.exists()


@LINUX
def test_threads_follow_the_quota_of_a_cgroup(cgroup: Path) -> None:
    assert counts(lambda: join(cgroup)) == [1, 1]


def test_phases_are_told_as_they_come() -> None:
    told: list[tuple[int, str]] = []
    assert [ending.result for _, ending in run_tasks(act, ["a"], on_phase=lambda *each: told.append(each))] == ["a"]
    assert told == [(0, ""), (0, "a")]


def test_a_task_has_the_folder_and_environment_of_its_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    endings(["a"])  # a server of processes may be there already
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WHERE", "here")
    assert endings(["place"])["place"].result == [str(tmp_path), "here"]


@LINUX
def test_the_children_of_a_task_end_with_it() -> None:
    pid = endings(["child"])["child"].result
    assert wait_for(lambda: not is_there(pid))


@LINUX
def test_a_process_of_a_task_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with closing(run_tasks(act, ["apart pid file", "wait file"], jobs=2)) as found:
        next(found)
        assert wait_for(lambda: Path("file").read_text() != "")
        pid = int(Path("file").read_text())
        assert is_there(pid)
    assert wait_for(lambda: not is_there(pid))


@LINUX
def test_closing_the_iterator_ends_the_tasks() -> None:
    with closing(run_tasks(act, ["a", "sleep 600"], jobs=2)) as found:
        assert next(found)[1].result == "a"
        working = [pid for pid in children(os.getpid()) if is_there(pid)]
    assert wait_for(lambda: len([pid for pid in working if is_there(pid)]) < len(working))


# A process that is started in the background may have been told to ignore the signal.
PARENT = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from compiler.processes.run import run_tasks
from tests.tasks import act
if __name__ == "__main__":
    tell = lambda index, phase: print(phase, flush=True)
    print([ending for _, ending in run_tasks(act, ["sleep 600", "sleep 601"], jobs=2, on_phase=tell)])
"""


@LINUX
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_tasks_end_with_their_parent(sent: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "parent.py").write_text(PARENT)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "parent.py"], cwd=tmp_path, env=environment, stdout=pipe, stderr=pipe, text=True
    ) as parent:
        try:
            assert parent.stdout is not None
            told = {parent.stdout.readline() for _ in range(4)}
            assert told == {"\n", "sleep 600\n", "sleep 601\n"}, "each starts, and works"
            working = children(parent.pid)
            assert len(working) >= 3, "two tasks, and the server that starts them"
            parent.send_signal(sent)
            parent.communicate(timeout=SOON)
            assert wait_for(lambda: not any(map(is_there, working)))
        finally:
            parent.kill()


SLOW = "import time\ntime.sleep(3)\n"
STARTING = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from compiler.processes.run import run_tasks
from tests.tasks import act
if __name__ == "__main__":
    tell = lambda index, phase: print(phase, flush=True)
    try:
        list(run_tasks(act, ["a"], on_phase=tell, modules=["slow"]))
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


@LINUX
def test_a_process_that_still_imports_says_nothing_about_an_interrupt(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("open('began', 'w').close()\n" + SLOW)
    (tmp_path / "parent.py").write_text(STARTING)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)])}
    with subprocess.Popen(
        [sys.executable, "parent.py"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as parent:
        try:
            assert wait_for((tmp_path / "began").exists)
            working = children(parent.pid)
            os.killpg(parent.pid, signal.SIGINT)  # as a terminal does
            said, errors = parent.communicate(timeout=SOON)
        finally:
            parent.kill()
            for pid in working:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
    assert said.split() == ["interrupted"]
    assert errors == ""
