"""Reasons why a command on a GPU does not start: it prints a sentence, returns the exit code 2, and writes nothing."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.gpu_bundle import ROOT, called, command, environment, tool, write_bundle
from tests.running import SOON

REMEDY = "run `make cuda-bundle` on the build machine, and copy the bundle here"
EXTENSIONS = ("_runtime", "_runtime_cuda")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of small plans. Its extensions are dummy files, which no test loads."""
    folder = write_bundle(tmp_path_factory.mktemp("whole") / "bundle")
    for name in EXTENSIONS:
        (folder / f"{name}.abi3.so.xz").write_bytes(tool("gpu.files").lzma.compress(name.encode() * 1000))
    return folder


@pytest.fixture
def bundle(whole: Path, tmp_path: Path) -> Path:
    """A copy of the bundle, which a test damages."""
    return Path(shutil.copytree(whole, tmp_path / "bundle"))


def check_refused(bundle: Path, out: Path, sentence: str, *options: str, device: str = "emulator") -> None:
    """Checks that the command prints one sentence, returns the exit code 2, and writes no files."""
    done = called(bundle, out, *options, device=device)
    assert (done.returncode, done.stderr, done.stdout) == (2, f"{sentence}\n", "")
    assert not out.is_dir()


def test_a_bundle_that_is_not_there(tmp_path: Path) -> None:
    folder, out = tmp_path / "bundle", tmp_path / "out"
    check_refused(folder, out, f"{folder} does not exist: `make cuda-bundle` writes it")
    folder.mkdir()
    words = "is not a bundle: it has no about.json; name the folder that `make cuda-bundle` wrote"
    check_refused(folder, out, f"{folder} {words}")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{bad", "it is not JSON"),
        ("\udcff", "it is not JSON"),
        ("{}", "`commit` is missing"),
        ("[]", "`commit` is missing"),
        ('{"commit": "a", "command": "b", "made": "c"}', "`made` is missing"),
        (
            '{"commit": "a", "command": "b", "made": 0, "sections": {}, "tests": [], "kernels": {}}',
            "it names no small plan",
        ),
    ],
)
def test_facts_that_are_damaged(bundle: Path, tmp_path: Path, text: str, why: str) -> None:
    (bundle / "about.json").write_bytes(text.encode(errors="surrogateescape"))
    check_refused(bundle, tmp_path / "out", f"{bundle}/about.json is damaged: {why}; {REMEDY}")


@pytest.mark.parametrize("name", ["_runtime.abi3.so.xz", "_runtime_cuda.abi3.so.xz", "small/softmax.pickle.xz"])
def test_files_that_are_damaged(bundle: Path, tmp_path: Path, name: str) -> None:
    file, out = bundle / name, tmp_path / "out"
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])
    check_refused(bundle, out, f"{file} is damaged: {REMEDY}")
    file.write_bytes(b"")
    check_refused(bundle, out, f"{file} is damaged: {REMEDY}")
    file.unlink()
    check_refused(bundle, out, f"{file} is missing: {REMEDY}")


def test_a_file_that_is_damaged_within(bundle: Path, tmp_path: Path) -> None:
    files = tool("gpu.files")
    file = bundle / "_runtime_cuda.abi3.so.xz"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 255
    file.write_bytes(data)
    check_refused(bundle, tmp_path / "out", f"{file} is damaged: {REMEDY}")
    plan = bundle / "small/softmax.pickle.xz"
    data = bytearray(plan.read_bytes())
    data[len(data) // 2] ^= 255
    plan.write_bytes(data)
    with pytest.raises(files.Damaged, match=r"small/softmax\.pickle\.xz is damaged: run `make cuda-bundle`"):
        files.read(bundle, "small", "softmax")


def test_a_bundle_without_extensions_takes_those_of_the_checkout(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tool("gpu.bundle")
    for name in EXTENSIONS:
        (bundle / f"{name}.abi3.so.xz").unlink()
    monkeypatch.setattr(module, "is_built", lambda name: True)
    assert module.problem(bundle, "cuda") == ""
    monkeypatch.setattr(module, "is_built", lambda name: name == "_runtime")
    assert module.problem(bundle, "emulator") == ""
    assert module.problem(bundle, "cuda") == f"{bundle}/_runtime_cuda.abi3.so.xz is missing: {REMEDY}"


def test_a_bundle_beside_which_nothing_can_be_written(bundle: Path) -> None:
    beside = bundle.with_name("bundle-unpacked")
    beside.write_text("")
    found = tool("gpu.bundle").problem(bundle, "cuda")
    assert found == f"{beside}: File exists; copy the bundle to a writable folder"


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="git cannot tell the commit of this checkout")
def test_a_bundle_of_another_commit(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module, check = tool("gpu.bundle"), tool("cuda_check")
    facts: dict[str, Any] = tool("gpu.files").about(bundle)
    setting = tool("gpu.process").Setting(bundle, "emulator", 0, bundle)
    command = tool("gpu.commands").SMOKE
    assert module.difference(bundle) == ""
    assert len(check.heading(command, setting)) == 2
    for commit in (facts["commit"].removesuffix("-dirty"), f"{module.git('rev-parse', 'HEAD')}-dirty", "no commit"):
        tool("gpu.files").write_about(bundle, {**facts, "commit": commit})
        assert module.difference(bundle) == ""
    tool("gpu.files").write_about(bundle, {**facts, "commit": "0123456-dirty"})
    line = (
        f"The bundle's commit is 0123456-dirty, and this checkout's is {module.commit()}: use the same commit for both."
    )
    assert module.difference(bundle) == line
    assert check.heading(command, setting)[-1] == line
    monkeypatch.setenv("PATH", "")
    assert module.difference(bundle) == "", "git is not there"


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="git cannot tell the commit of this checkout")
def test_a_call_prints_the_other_commit_when_it_begins(tmp_path: Path) -> None:
    folder = write_bundle(tmp_path / "bundle")
    tool("gpu.files").write_about(folder, {**tool("gpu.files").about(folder), "commit": "0123456"})
    done = called(folder, tmp_path / "out", "smoke", "--seconds", "0", device="cpu")
    assert done.stderr.startswith("The bundle's commit is 0123456, and this checkout's is ")
    assert done.stderr.splitlines()[0] in (tmp_path / "out/cuda-smoke.md").read_text()


def test_results_that_cannot_be_written(bundle: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("as it was\n")
    check_refused(bundle, file, f"{file} is a file: name a folder for the results with --out")
    assert file.read_text() == "as it was\n"
    for folder, why in ((file / "out", "Not a directory"), (Path("/proc/x"), "No such file or directory")):
        words = "name another folder for the results with --out"
        check_refused(bundle, folder, f"{folder} cannot be written ({why}): {words}")


def test_a_device_without_a_name(bundle: Path, tmp_path: Path) -> None:
    sentence = "device 'auto': a check needs the name of a device, such as cuda or cuda:1"
    check_refused(bundle, tmp_path / "out", sentence, device="auto")


@pytest.mark.parametrize("seconds", ["nan", "inf", "-1", "x"])
def test_seconds_that_are_no_time(bundle: Path, tmp_path: Path, seconds: str) -> None:
    done = called(bundle, tmp_path / "out", "--seconds", seconds)
    assert done.returncode == 2
    assert "Error: Invalid value for '--seconds': " in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("missing", ["numpy", "ml_dtypes", "click"])
def test_packages_that_are_missing(bundle: Path, tmp_path: Path, missing: str) -> None:
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / f"{missing}.py").write_text(f'raise ModuleNotFoundError("No module named {missing!r}")\n')
    variables = environment(bundle.parent, PYTHONPATH=str(tmp_path / "hidden"))
    asked = command(bundle, "--out", str(tmp_path / "out"))
    done = subprocess.run(asked, env=variables, capture_output=True, text=True, timeout=SOON)
    words = "install NumPy, ml_dtypes and click: pip install numpy ml_dtypes click\n"
    assert (done.returncode, done.stderr, done.stdout) == (2, words, "")
    assert all(
        words.strip().partition(": ")[2] in (ROOT / page).read_text() for page in ("CONTRIBUTING.md", "docs/cuda.md")
    )


def test_help_lists_the_calls_and_their_exit_codes() -> None:
    asked = [sys.executable, f"{ROOT}/tools/cuda_check.py", "--help"]
    printed = subprocess.run(asked, capture_output=True, text=True, timeout=SOON).stdout
    for words in ("\n  smoke    ", "\n  compare  ", "\n  tune     ", "\n    python3 tools/cuda_check.py smoke\n"):
        assert words in printed
    for code in (0, 1, 2, 130):
        assert f"\n    {code:<4} " in printed
