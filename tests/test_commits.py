"""`benchmarks.commits`: alternating runs of two commits, ratios, separate processes, and the build of a commit."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.helper
import onnx.parser
import pytest

from benchmarks.commits import __main__ as commits
from benchmarks.commits import checkouts
from benchmarks.commits.compared import LEAST_ROUNDS, Compared, Round, mean, table, take_rounds
from benchmarks.commits.process import Failed, Worker
from benchmarks.commits.worker import sizes
from compiler.zoo.index import read_index

ROOT = Path(__file__).parent.parent
MODEL = '<ir_version: 9, opset_import: ["": 20]> m (float[N] x) => (float[N] y) { y = Exp (x) }'
CARGO = """#!/bin/sh
mkdir -p "$CARGO_TARGET_DIR/release"
echo "$PWD" >> "$CARGO_TARGET_DIR/release/lib_runtime.so"
"""
REFUSED = '<ir_version: 9, opset_import: ["": 20, "own": 1]> m (float[N] x) => (float[N] y) { y = own.Unknown (x) }'


def test_commits_take_turns_and_every_other_round_begins_with_the_new_one() -> None:
    log: list[str] = []

    def turn(name: str, times: list[float]) -> Callable[[], list[float]]:
        return lambda: log.append(name) or times  # type: ignore[func-returns-value]

    rounds = take_rounds(turn("old", [4, 2, 90]), turn("new", [1, 3]), 0)
    assert rounds == ((4, 2),) * LEAST_ROUNDS
    assert log == ["old", "new", "new", "old", "old", "new", "new", "old", "old", "new"]


def rounds(*ratios: float) -> tuple[Round, ...]:
    return tuple((10.0, 10 * ratio) for ratio in ratios)


@pytest.mark.parametrize(
    ("pairs", "ratio", "settled", "change"),
    [
        ([rounds(0.5, 0.6, 0.7)], 0.6, True, "faster"),
        ([rounds(1.2, 1.3, 1.4), rounds(1.25, 1.35, 1.4)], 1.325, True, "slower"),
        ([rounds(1.2, 1.3, 1.4), rounds(0.9, 0.9, 0.9)], 1.1, False, ""),
        ([rounds(1.004, 1.005, 1.006)], 1.005, True, ""),
        ([rounds(0.9, 0.95, 1.2)], 0.95, True, ""),
        ([rounds(0.7, 0.7, 0.7), rounds(1, 1, 1), rounds(1, 1, 1)], 1, False, ""),
    ],
)
def test_a_change_is_one_of_all_pairs(pairs: Any, ratio: float, settled: bool, change: str) -> None:
    found = Compared("m", tuple(pairs))
    assert found.ratio == pytest.approx(ratio)
    assert (found.is_settled, found.change) == (settled, change)
    assert found.data()["old"] == 10 and found.data()["pairs"] == pytest.approx(found.ratios)


def test_the_table_has_the_mean_the_worst_model_and_the_failures() -> None:
    found = [Compared("a", (rounds(0.5, 0.5, 0.5),)), Compared("b", (rounds(2, 2, 2), rounds(3, 3, 3)))]
    assert mean(found) == pytest.approx((0.5 * 2.5) ** 0.5)
    _, first, second, last, failure = table(found, {"c": "refused"})
    assert first.split() == ["a", "10.000", "5.000", "0.500", "0.500–0.500", "faster"]
    assert second.split() == ["b", "10.000", "25.000", "2.500", "2.000–3.000", "slower", "≠"]
    assert last == "geometric mean 1.118, worst 2.500 (b)"
    assert failure == "✗ c: refused"
    assert len(table([], {})) == 1


@pytest.fixture
def zoo(tmp_path: Path) -> Path:
    """A folder with a model and a refused one."""
    for name, text in (("exp", MODEL), ("refused", REFUSED)):
        onnx.save(onnx.parser.parse_model(text), tmp_path / f"{name}.onnx")
    np.savez(tmp_path / "case.npz", x=np.zeros(3, np.float32))
    index = [{"name": name, "file": f"{name}.onnx", "cases": ["case.npz"]} for name in ("exp", "refused")]
    (tmp_path / "INDEX.json").write_text(json.dumps(index))
    return tmp_path


def test_a_checkout_with_itself(zoo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [str(ROOT), str(ROOT), "--zoo", str(zoo), "--seconds", "0", "--pairs", "2"]
    assert commits.main([*arguments, "--json", "--only", "exp"]) == 0
    found = json.loads(capsys.readouterr().out)
    [model] = found["models"]
    assert model["model"] == found["worst"] == "exp" and len(model["pairs"]) == 2
    assert model["old"] > 0 and model["new"] > 0 and found["geometric_mean"] == pytest.approx(model["ratio"])
    assert found["failed"] == {} and found["machine"]["processor"]
    assert commits.main([*arguments, "--only", "refused"]) == 1
    assert f"✗ refused: {ROOT}: CompileError: " in capsys.readouterr().out
    with pytest.raises(SystemExit, match=f"{zoo} has no model named nothing"):
        commits.main([*arguments, "--only", "nothing"])


def test_every_size_of_an_input_is_fixed(tmp_path: Path) -> None:
    proto = onnx.parser.parse_model(MODEL)
    dims = [None, "batch", "?", "?", 3]
    proto.graph.input[0].CopyFrom(onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, dims))
    onnx.save(proto, tmp_path / "m.onnx")
    found = sizes(str(tmp_path / "m.onnx"), {"x": np.zeros((2, 4, 5, 6, 3))})
    assert found == {"x.0": 2, "batch": 4, "x.2": 5, "x.3": 6}


def test_a_worker_reports_the_end_of_its_process_and_another_compiler(zoo: Path, tmp_path: Path) -> None:
    entry = read_index(zoo)[0]
    with Worker(ROOT) as worker:
        with pytest.raises(Failed, match="ValueError: no model is loaded"):
            worker.turn()
        worker.load(entry, 1)
        assert all(each > 0 for each in worker.turn())
        worker.process.kill()
        with pytest.raises(Failed, match="ended with exit code -"):
            worker.turn()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "compiler").symlink_to(ROOT / "compiler")
    with Worker(elsewhere) as worker:
        worker.folder = tmp_path
        with pytest.raises(Failed, match="uses the compiler in"):
            worker.load(entry, 1)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A repository with a commit, and a stand-in for cargo that counts its builds."""
    root, programs = tmp_path / "repository", tmp_path / "programs"
    (root / "runtime").mkdir(parents=True)
    (root / "compiler").mkdir()
    (root / "pyproject.toml").write_text('[tool.maturin]\nmanifest-path = "runtime/Cargo.toml"\n')
    (root / "runtime/Cargo.toml").write_text("")
    (root / "compiler/__init__.py").write_text("")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "First"]):
        subprocess.run([*git, *command], cwd=root, check=True)
    programs.mkdir()
    cargo = programs / "cargo"
    cargo.write_text(CARGO)
    cargo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(checkouts, "ROOT", root)
    monkeypatch.setattr(checkouts, "BUILD", root / "build/commits")
    yield root


@pytest.mark.skipif(os.name != "posix", reason="the stand-in for cargo is a script")
def test_a_commit_is_built_once(repository: Path) -> None:
    folders = [checkouts.checkout("HEAD") for _ in range(2)]
    assert folders[0] == folders[1] and folders[0].parent == repository / "build/commits"
    assert (folders[0] / "compiler/__init__.py").exists()
    built = (folders[0] / checkouts.EXTENSION).read_text().split()
    assert built == [str(folders[0] / "runtime")]


def test_the_package_of_maturin_is_the_extension_that_a_commit_builds() -> None:
    project = checkouts.tomllib.loads((ROOT / "pyproject.toml").read_text())
    manifest = checkouts.tomllib.loads((ROOT / project["tool"]["maturin"]["manifest-path"]).read_text())
    assert manifest["lib"]["name"] == "_runtime" and "extension-module" in manifest["features"]


@pytest.mark.skipif(os.name != "posix", reason="the stand-in for cargo is a script")
def test_what_cannot_be_compared_is_an_error(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(checkouts.Unusable, match="nothing is neither a folder nor a commit"):
        checkouts.checkout("nothing")
    with pytest.raises(checkouts.Unusable, match=r"has no compiler/_runtime\.abi3\.so: run `make build` there"):
        checkouts.checkout(str(repository))
    (tmp_path / "programs/cargo").write_text("#!/bin/sh\nexit 3\n")
    with pytest.raises(checkouts.Unusable, match="cargo ends with exit code 3"):
        checkouts.checkout("HEAD")
    (tmp_path / "programs/cargo").write_text("no program")
    with pytest.raises(checkouts.Unusable, match=r"cargo (does not run|ends with exit code)"):
        checkouts.checkout("HEAD")


def test_wrong_arguments_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in (["--threads", "0"], ["--pairs", "0"], ["--seconds", "-1"]):
        with pytest.raises(SystemExit):
            commits.main([".", ".", *wrong])
        assert "--threads and --pairs are at least 1" in capsys.readouterr().err
