"""`candlec zoo fetch`, and the commands that need a model that is not fetched."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.command import run


@pytest.fixture
def remote(zoo: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose second model is a download. Returns the cache."""
    monkeypatch.delenv("CANDLE_ZOO_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(zoo / "home"))
    Path("there").mkdir()
    Path("echo.onnx").rename("there/echo.onnx")
    write_index(license="MIT")
    return zoo / "home" / "candle-compiler" / "zoo"


def write_index(**more: Any) -> None:
    path = Path("there/echo.onnx")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    entry = {"name": "far", "url": path.absolute().as_uri(), "sha256": digest, "cases": ["io.npz"], **more}
    Path("near.onnx").write_bytes(path.read_bytes())
    near = {"name": "near", "file": "near.onnx", "cases": ["io.npz"]}
    Path("INDEX.json").write_text(json.dumps([entry, near]))


def test_a_download_is_in_the_cache(remote: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("zoo", "fetch", "--zoo", ".") == 0
    said = capsys.readouterr()
    assert said.err.startswith("far: downloading")
    assert said.out.split()[4:7] == ["far", "downloaded", "MIT"]
    assert len([*remote.glob("*/echo.onnx")]) == 1
    assert said.out.endswith("1 of 1 downloads of . are in the cache\n")
    assert run("zoo", "fetch", "--zoo", ".", "--offline", "--json") == 0
    far, near = json.loads(capsys.readouterr().out)["models"]
    assert (far["state"], near["state"]) == ("known", "local")
    assert run("zoo", "run", "--zoo", ".") == 0
    assert "in all runs: 2 of 2 models equal onnxruntime's" in capsys.readouterr().out


def test_a_model_that_is_not_fetched_names_the_command(remote: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = "it is not fetched: run `candlec zoo fetch --zoo . --only far`"
    assert run("zoo", "run", "--zoo", ".") == 1
    assert said in capsys.readouterr().err
    assert run("zoo", "precision", "--zoo", ".") == 1
    assert said in capsys.readouterr().err
    assert run("bench", "--zoo", ".", "--only", "far") == 1
    assert said in capsys.readouterr().err
    assert not remote.exists()


def test_another_cache(remote: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("zoo", "run", "--zoo", ".", "--only", "far", "--cache", "other") == 1
    assert "run `candlec zoo fetch --zoo . --only far --cache other`" in capsys.readouterr().err
    assert run("zoo", "fetch", "--zoo", ".", "--only", "far", "--cache", "other") == 0
    assert run("zoo", "run", "--zoo", ".", "--only", "far", "--cache", "other") == 0
    assert not remote.exists()


def test_bench_times_a_model_of_another_cache(
    remote: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("bench", "--zoo", ".", "--only", "far", "--threads", "1", "--seconds", "0.01", "--json")
    assert run(*command, "--cache", "other") == 1
    failed = json.loads(capsys.readouterr().out)["failed"]
    assert failed["far"].startswith("it is not fetched: run `candlec zoo fetch --zoo . --only far --cache other`")
    assert run("zoo", "fetch", "--zoo", ".", "--cache", "other") == 0
    capsys.readouterr()
    assert run(*command, "--cache", "other") == 0
    [timing] = json.loads(capsys.readouterr().out)["timings"]
    assert timing["model"] == "far"
    monkeypatch.setenv("CANDLE_ZOO_CACHE", "other")
    assert run(*command) == 0
    assert not remote.exists()
    assert run("bench", "near.onnx", "--cache", "other") == 2
    assert "--cache needs --zoo" in capsys.readouterr().err


def test_a_download_without_a_license_fails(remote: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_index()
    assert run("zoo", "fetch", "--zoo", ".") == 1
    said = capsys.readouterr()
    assert "error: far: INDEX.json names no license for it: add " in said.err
    assert said.out.endswith("0 of 1 downloads of . are in the cache\n")


def test_a_folder_without_downloads(zoo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("zoo", "fetch", "--zoo", ".") == 0
    assert capsys.readouterr().out == "no model of . has a `url`: there is nothing to fetch\n"
    assert run("zoo", "fetch", "--zoo", ".", "--only", "none") == 1
    assert "the folder has no model none" in capsys.readouterr().err


def test_there_may_be_no_home(
    remote: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_home() -> Path:
        raise RuntimeError

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", no_home)
    assert run("zoo", "fetch", "--zoo", ".") == 1
    assert "there is no home folder for the cache: set CANDLE_ZOO_CACHE" in capsys.readouterr().err
    assert run("zoo", "fetch", "--zoo", ".", "--cache", "other") == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_cache_that_cannot_be_written(remote: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save("locked.npy", np.zeros(1))
    Path("home").mkdir(mode=0o500)
    assert run("zoo", "fetch", "--zoo", ".") == 1
    assert "Permission denied" in capsys.readouterr().err
