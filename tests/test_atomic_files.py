"""Writing over files, links and pipes: files are replaced whole, links stay, and pipes get the bytes."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

import compiler
from compiler.atomic_files import write_whole
from tests.running import SOON

posix = pytest.mark.skipif(os.name != "posix", reason="links, pipes and permissions are POSIX's")


def test_a_file_is_written_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "out.plan"
    write_whole(target, b"old")
    threads = [threading.Thread(target=write_whole, args=(target, bytes([index]) * 10**6)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(target.read_bytes())) == 1 and target.stat().st_size == 10**6
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        write_whole(target, b"new")
    assert list(tmp_path.iterdir()) == [target] and target.stat().st_size == 10**6


@posix
@pytest.mark.parametrize("mode", [None, 0o600, 0o755])
def test_permissions_are_those_of_the_file_before_or_of_any_other(mode: int | None, tmp_path: Path) -> None:
    target, other = tmp_path / "out", tmp_path / "other"
    other.write_bytes(b"")
    if mode is not None:
        target.write_bytes(b"")
        target.chmod(mode)
        other.chmod(mode)
    write_whole(target, b"new")
    assert target.stat().st_mode == other.stat().st_mode


@posix
@pytest.mark.parametrize("is_there", [True, False])
def test_links_stay(is_there: bool, tmp_path: Path) -> None:
    target = tmp_path / "inner" / "target"
    target.parent.mkdir()
    if is_there:
        target.write_bytes(b"old")
    (tmp_path / "first").symlink_to("second")
    (tmp_path / "second").symlink_to("inner/target")
    write_whole(tmp_path / "first", b"new")
    assert target.read_bytes() == b"new"
    assert (tmp_path / "first").is_symlink() and (tmp_path / "second").is_symlink()
    assert list(target.parent.iterdir()) == [target]


@posix
@pytest.mark.parametrize("name", ["pipe", "link"])
def test_pipes_are_written_to(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()), daemon=True)
    reader.start()
    write_whole(tmp_path / name, b"new")
    reader.join(SOON)
    assert read == [b"new"]
    assert (tmp_path / "pipe").is_fifo()


@posix
@pytest.mark.parametrize("name", ["missing/x.plan", "folder", "loop", "file/x.plan"])
def test_an_error_names_the_path_that_was_given(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("file").touch()
    Path("loop").symlink_to("loop")
    before = set(Path().rglob("*"))
    with pytest.raises(OSError) as raised:
        compiler.Plan(b"bytes").save(name)
    assert raised.value.filename == name
    assert set(Path().rglob("*")) == before and Path("loop").is_symlink()


def test_a_read_only_file_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "out"
    target.write_bytes(b"old")
    monkeypatch.setattr(os, "access", lambda *_: False)  # as for users other than root
    with pytest.raises(PermissionError, match="out"):
        write_whole(target, b"new")
    assert target.read_bytes() == b"old"


def test_a_plan_that_is_none_can_be_shown() -> None:
    assert repr(compiler.Plan(b"bytes")) == "Plan(invalid, 5 bytes)"
