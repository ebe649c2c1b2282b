"""Downloads of models into the cache: interruptions, digests, archives, and two processes at once."""

from __future__ import annotations

import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

import compiler.zoo
from compiler.zoo.fetching import Fetched
from tests.zoo.data_sets import write_data_set
from tests.zoo.server import Site, serving

ROOT = Path(__file__).parents[2]
MODEL = onnx.parser.parse_model(
    '<ir_version: 9, opset_import: ["": 20]> neg (float[3] x) => (float[3] y) { y = Neg (x) }'
).SerializeToString()
BYTES = bytes(range(256)) * 400
X = np.array([1, -2, 3], np.float32)


@pytest.fixture
def site() -> Iterator[Site]:
    with serving() as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for the models, with a case. The cache is beside it."""
    monkeypatch.setenv("CANDLE_ZOO_CACHE", str(tmp_path / "cache"))
    made = tmp_path / "zoo"
    made.mkdir()
    np.savez(made / "x.npz", x=X)
    return made


def index(folder: Path, at: str, data: bytes, **more: Any) -> None:
    """Write an index with one model."""
    entry = {"name": "neg", "url": at, "sha256": hashlib.sha256(data).hexdigest(), "license": "MIT"}
    entry |= {"cases": ["x.npz"]} | more
    kept = {key: value for key, value in entry.items() if value is not None}
    (folder / "INDEX.json").write_text(json.dumps([kept]))


def fetch(folder: Path, **options: Any) -> Fetched:
    [made] = compiler.zoo.fetch(folder, **options)
    return made


def in_cache(folder: Path) -> list[str]:
    """The names of the files in the cache, without those of the locks."""
    return sorted(each.name for each in (folder.parent / "cache").iterdir() if each.suffix != ".lock")


def test_a_model_is_fetched_once_and_checked(site: Site, folder: Path) -> None:
    index(folder, f"{site.url}/m/neg.onnx?download=true", MODEL)
    site.files["/m/neg.onnx?download=true"] = MODEL
    [case] = compiler.zoo.cases(folder)
    command = f"it is not fetched: run `candlec zoo fetch --zoo {folder} --only neg`"
    assert case.check().message.splitlines()[0] == f"neg-pinned: it cannot be checked: {command}"
    made = fetch(folder)
    digest = hashlib.sha256(MODEL).hexdigest()
    path = folder.parent / "cache" / digest / "neg.onnx"
    assert made == Fetched("neg", "new", path, "MIT")
    assert path.read_bytes() == MODEL
    assert fetch(folder, offline=True).state == "known"
    assert len(site.asked) == 1
    assert in_cache(folder) == [digest]
    [case] = compiler.zoo.cases(folder)
    assert case.check().worst.verdict == "equal"


def test_a_cut_connection_continues(site: Site, folder: Path) -> None:
    site.files["/w.bin"], site.cut = BYTES, 40_000
    index(folder, f"{site.url}/w.bin", BYTES)
    assert fetch(folder).path.read_bytes() == BYTES
    assert [each for _, each in site.asked] == ["", "bytes=40000-", "bytes=80000-"]


def test_the_next_call_continues(site: Site, folder: Path) -> None:
    site.files["/w.bin"], site.cut = BYTES, 10_000
    index(folder, f"{site.url}/w.bin", BYTES)
    made = fetch(folder)
    host = site.url.removeprefix("http://")
    said = "the same command continues where it ended"
    assert made.problem == f"the connection to {host} ended after 50000 of 102400 bytes: {said}"
    assert made.state == "failed" and not made.path.exists()
    site.cut = None
    assert fetch(folder).path.read_bytes() == BYTES
    assert [each for _, each in site.asked][-1] == "bytes=50000-"


def test_a_server_without_ranges_sends_the_whole_file(site: Site, folder: Path) -> None:
    site.files["/w.bin"], site.cut, site.has_ranges = BYTES, 90_000, False
    index(folder, f"{site.url}/w.bin", BYTES)
    assert "ended after 90000 of 102400 bytes" in fetch(folder).problem
    site.cut = None
    assert fetch(folder).path.read_bytes() == BYTES


def test_a_server_with_wrong_ranges_is_not_believed(site: Site, folder: Path) -> None:
    site.files["/w.bin"], site.cut, site.is_odd = BYTES, 90_000, True
    index(folder, f"{site.url}/w.bin", BYTES)
    assert "sends other bytes than it was asked for: remove " in fetch(folder).problem


@pytest.mark.parametrize("size", [50_000, 102_400, 200_000])
def test_the_bytes_of_another_file_are_thrown_away(size: int, site: Site, folder: Path) -> None:
    site.files["/w.bin"] = BYTES
    index(folder, f"{site.url}/w.bin", BYTES)
    digest = hashlib.sha256(BYTES).hexdigest()
    (folder.parent / "cache" / f"{digest}.killed").mkdir(parents=True)
    (folder.parent / "cache" / f"{digest}.part").write_bytes(bytes(size))
    assert fetch(folder).path.read_bytes() == BYTES
    assert [each for _, each in site.asked] == [f"bytes={size}-", ""]
    assert in_cache(folder) == [digest]


def test_a_wrong_digest_leaves_nothing(site: Site, folder: Path) -> None:
    site.files["/neg.onnx"] = BYTES
    index(folder, f"{site.url}/neg.onnx", MODEL)
    found, wanted = (hashlib.sha256(each).hexdigest() for each in (BYTES, MODEL))
    said = f"the file at {site.url}/neg.onnx has the SHA-256 {found}, but INDEX.json has {wanted}"
    advice = "if you trust the new file, correct `sha256`; otherwise name another `url`"
    assert fetch(folder).problem == f"{said}: {advice}"
    assert in_cache(folder) == []


def test_what_cannot_be_fetched_says_what_to_do(site: Site, folder: Path) -> None:
    host = site.url.removeprefix("http://")
    index(folder, f"{site.url}/none.onnx", MODEL)
    answer = f"{host} answers 404 Not Found for {site.url}/none.onnx: correct the `url` in INDEX.json"
    assert fetch(folder).problem == answer
    assert fetch(folder, offline=True).problem.startswith(
        "it is not in the cache, and --offline forbids a download: leave out --offline, or copy "
    )
    index(folder, f"{site.url}/none.onnx", MODEL, license=None)
    assert fetch(folder).problem == (
        'INDEX.json names no license for it: add `"license": "…"`, for example "MIT" or "Apache-2.0"'
    )
    index(folder, "http://127.0.0.1:1/neg.onnx", MODEL)
    refused = "cannot reach 127.0.0.1:1 (Connection refused): check the network, and type the command again"
    assert fetch(folder).problem == refused
    index(folder, f"file://{folder}/none.onnx", MODEL)
    assert fetch(folder).problem.startswith(f"cannot read file://{folder}/none.onnx: ")
    assert in_cache(folder) == []


def test_a_file_needs_no_network(folder: Path) -> None:
    (folder.parent / "neg.onnx").write_bytes(MODEL)
    index(folder, (folder.parent / "neg.onnx").as_uri(), MODEL)
    assert fetch(folder, offline=True).path.read_bytes() == MODEL


def archive(files: dict[str, bytes], kind: str = "w:gz") -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=kind) as opened:  # type: ignore[call-overload]
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            opened.addfile(info, io.BytesIO(data))
    return made.getvalue()


@pytest.mark.parametrize(("suffix", "kind"), [(".tar.gz", "w:gz"), (".tgz", "w:gz"), (".tar", "w")])
def test_an_archive_of_the_onnx_model_zoo(suffix: str, kind: str, site: Site, folder: Path, tmp_path: Path) -> None:
    for number, expected in enumerate([-X, -X]):
        write_data_set(tmp_path / f"test_data_set_{number}", [X], [expected])
    files = {"neg/model.onnx": MODEL} | {
        f"neg/{path.parent.name}/{path.name}": path.read_bytes() for path in tmp_path.glob("test_data_set_*/*")
    }
    data = archive(files, kind)
    site.files[f"/neg{suffix}"] = data
    index(folder, f"{site.url}/neg{suffix}", data, file="neg/model.onnx", cases=None)
    assert compiler.zoo.cases(folder)[0].entry.cases == ()
    assert fetch(folder).state == "new"
    [case] = compiler.zoo.cases(folder)
    assert [each.name for each in case.entry.cases] == ["test_data_set_0", "test_data_set_1"]
    outcome = case.check()
    assert outcome.ok and [each["name"] for each in outcome.outcomes[0].outputs] == ["y", "y of the files"]
    index(folder, f"{site.url}/neg{suffix}", data, file="neg/other.onnx")
    assert fetch(folder).problem.endswith("neg/other.onnx is not in the download: correct `file` in INDEX.json")
    index(folder, f"{site.url}/neg{suffix}", data, file="neg/model.onnx", cases=["neg/test_data_set_1", "x.npz"])
    assert fetch(folder).state == "known"
    [case] = compiler.zoo.cases(folder)
    assert case.check().worst.verdict == "equal"


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({"../neg.onnx": MODEL}, "it is not a sound archive: '../neg.onnx' would be extracted to "),
        ({}, "m/neg.onnx is not in the download: correct `file` in INDEX.json"),
        ({"m/neg.onnx": MODEL}, "the download has no test_data_set_* next to the model: add `cases` to INDEX.json"),
    ],
)
def test_an_archive_that_does_not_fit(files: dict[str, bytes], problem: str, site: Site, folder: Path) -> None:
    data = archive(files)
    site.files["/neg.tgz"] = data
    index(folder, f"{site.url}/neg.tgz", data, file="m/neg.onnx", cases=None)
    assert problem in fetch(folder).problem
    assert not (folder.parent / "neg.onnx").exists()


def test_a_file_that_is_no_archive(site: Site, folder: Path) -> None:
    site.files["/neg.tgz"] = MODEL
    index(folder, f"{site.url}/neg.tgz", MODEL, file="m/neg.onnx", cases=None)
    assert f"cannot unpack {site.url}/neg.tgz: it is not a sound archive: " in fetch(folder).problem


def test_two_processes_fetch_a_model_once(site: Site, folder: Path) -> None:
    site.files["/w.bin"] = BYTES
    index(folder, f"{site.url}/w.bin", BYTES)
    site.gate.clear()
    code = f"print(flush=True); print(*[each.state for each in compiler.zoo.fetch({str(folder)!r})])"
    command = [sys.executable, "-c", f"import compiler.zoo; {code}"]
    both = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [each.stdout.readline() for each in both if each.stdout] == ["\n", "\n"], "both have started"
    threading.Timer(2, site.gate.set).start()
    states = {each.communicate(timeout=60)[0] for each in both}
    assert "new\n" in states <= {"new\n", "known\n"}, "on a busy machine, one may begin after the other has ended"
    assert len(site.asked) == 1
    assert fetch(folder).path.read_bytes() == BYTES


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (
            {"url": "ftp://host/m.onnx"},
            "has the url 'ftp://host/m.onnx', not an address that begins with https, http or",
        ),
        ({"url": 3}, "has the url 3, not an address"),
        ({"url": "https://host/"}, "has the url 'https://host/', which does not end with the name of a file"),
        ({"sha256": None}, "has a url without its sha256, 64 hexadecimal digits: `sha256sum FILE` prints them"),
        ({"sha256": "12"}, "has a url without its sha256"),
        ({"license": 3}, "has the license 3, not a string"),
        ({"licenses": "MIT"}, "has 'licenses': did you mean license?"),
        ({"file": "m.onnx"}, "has the file 'm.onnx', but its url is that of the model itself: leave out `file`"),
        ({"cases": []}, "has no cases"),
        ({"url": "https://host/m.tgz"}, "has no file"),
        ({"url": "https://host/m.tgz", "file": "../m.onnx"}, "has the file '../m.onnx', which is outside the archive"),
        ({"url": "https://host/m.tgz", "file": "/m.onnx"}, "has the file '/m.onnx', which is outside the archive"),
    ],
)
def test_an_invalid_entry(more: dict[str, Any], problem: str, folder: Path) -> None:
    index(folder, "https://host/m.onnx", MODEL, **more)
    with pytest.raises(ValueError, match="is not a valid index of models: the model neg ") as error:
        compiler.zoo.fetch(folder)
    assert problem in str(error.value)


def test_the_example_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs/zoo.md").read_text()
    [listed] = [each for each in re.findall(r"```json\n(.*?)```", page, re.DOTALL) if '"url"' in each]
    [program] = [each for each in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "zoo.fetch" in each]
    [entry] = json.loads(listed)
    write_data_set(tmp_path / "set", [X], [-X])
    files = {f"resnet50-v1-12/test_data_set_0/{each.name}": each.read_bytes() for each in (tmp_path / "set").iterdir()}
    data = archive({entry["file"]: MODEL, **files})
    (tmp_path / "zoo").mkdir()
    (tmp_path / "resnet50-v1-12.tar.gz").write_bytes(data)
    address = (tmp_path / "resnet50-v1-12.tar.gz").as_uri()
    index(tmp_path / "zoo", address, data, **{key: entry[key] for key in ("name", "license", "file")}, cases=None)
    monkeypatch.chdir(tmp_path)
    exec(program, {"__name__": "__main__"})
    assert capsys.readouterr().out == "resnet50 new \n"
