"""Plans on a local Ray cluster of several processes: datasets, runs over files, and requests of HTTP."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load, save

import compiler
from compiler import Error, cli
from compiler.batch import Settings, Summary
from compiler.batch import run_batch as run_here
from compiler.ray import Predictor, deployment
from compiler.ray import run_batch as run_on_ray
from tests.batch.plans import LINES, LOOKUP, lines_of, plan_of, ramp
from tests.running import children

ray = pytest.importorskip("ray", reason="needs Ray")
pytest.importorskip("ray.data", reason="needs Ray")
pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
pq = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")

pytestmark = pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """A cluster of this machine's processes, which believes that it has a GPU."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        for check in ("READY", "HEALTH"):  # on a busy machine, processes start slowly
            patch.setenv(f"RAY_SERVE_PROXY_{check}_CHECK_TIMEOUT_S", "60")
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
        ray.init("local", num_cpus=2, num_gpus=1, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
        ray.data.DataContext.get_current().enable_progress_bars = False
        yield
        ray.shutdown()


class Mortal(Predictor):
    """Its process ends in the middle of the batch that has row 40, the first time."""

    def __init__(self, marker: str, **options: Any) -> None:
        super().__init__(**options)
        self._marker = Path(marker)

    def __call__(self, batch: Any) -> dict[str, Any]:
        found = super().__call__(batch)
        if 40 in batch["id"] and not self._marker.exists():
            self._marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        threads, process = self.session.threads, os.getpid()
        return {**found, "threads": np.full(len(found["id"]), threads), "process": np.full(len(found["id"]), process)}


def test_a_dataset_has_the_results_of_a_session(cluster: None, tmp_path: Path) -> None:
    """A killed actor loses and doubles no row."""
    ray.cloudpickle.register_pickle_by_value(__import__(__name__, fromlist=["Mortal"]))
    plan = compiler.compile("models/digits.onnx")
    pictures = np.random.default_rng(0).random((120, 64), np.float32)
    parts = [pa.table({"id": rows, "picture": list(pictures[rows])}) for rows in np.split(np.arange(120), 12)]
    kwargs = {"marker": str(tmp_path / "killed"), "plan": plan, "outputs": ["logits"], "keep": ["id"]}
    pool = ray.data.ActorPoolStrategy(size=2)
    found = ray.data.from_arrow(parts).map_batches(Mortal, fn_constructor_kwargs=kwargs, compute=pool, batch_size=8)
    rows = sorted(found.take_all(), key=lambda row: row["id"])
    assert (tmp_path / "killed").exists()
    assert [row["id"] for row in rows] == [*range(120)]
    expected = compiler.load(plan).run({"picture": pictures.reshape(-1, 1, 8, 8)})["logits"]
    np.testing.assert_allclose([row["logits"] for row in rows], expected, rtol=1e-5, atol=1e-5)
    assert {row["threads"] for row in rows} == {1}
    assert len({row["process"] for row in rows}) > 1


def test_a_bad_row_of_a_dataset_is_named(cluster: None) -> None:
    rows = pa.table({"i": [0, 1, 2, 7, 1], "id": ["a", "b", "c", "d", "e"]})
    kwargs = {"plan": plan_of(LOOKUP), "keep": ["id"]}
    pool = ray.data.ActorPoolStrategy(size=1)
    found = ray.data.from_arrow(rows).map_batches(Predictor, fn_constructor_kwargs=kwargs, compute=pool)
    with pytest.raises(Exception, match=r"row 3 of a batch of 5 \(id = d\): step .*Gather"):
        found.take_all()


def workers() -> list[int]:
    """The processes of the workers of a run over files."""
    found = children(os.getpid())
    return [pid for pid in found if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"ray::Worker")]


def files(folder: Path) -> dict[str, bytes]:
    """The files of an output, by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_run_over_files_writes_what_a_local_run_writes(
    cluster: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also after two of its workers were killed, and after it was stopped and continued."""
    monkeypatch.chdir(tmp_path)
    count = 3000
    np.savez("rows.npz", i=np.where(np.arange(count) % 70 == 6, 9, np.arange(count) % 3))
    plan_of(LOOKUP).save("lookup.plan")
    data, chosen = ["rows.npz"], {"batch": 16, "part_rows": 500}
    local = run_here("lookup.plan", data, "local", Settings(**chosen))
    killed: list[int] = []
    batches = 0

    def stop() -> bool:
        nonlocal batches
        batches += 1
        if batches == 30:
            killed.extend(workers())
            for pid in killed:
                os.kill(pid, signal.SIGKILL)
        return batches == 60

    first = run_on_ray("lookup.plan", data, "ray", Settings(**chosen), workers=2, stop=stop)
    assert len(killed) == 2 and not first.finished
    command = ("batch", "lookup.plan", "--input", "rows.npz", "--output", "ray", "--batch", "16", "--part-rows", "500")
    with pytest.raises(SystemExit) as ended:
        cli.main([*command, "--engine", "ray", "--workers", "1", "--resume", "--json"])
    out = capsys.readouterr().out  # Ray may report the death of the workers later
    summary = json.loads(out[out.index("{\n") : out.index("\n}") + 2])
    assert not ended.value.code
    assert (summary["known"], summary["written"], summary["bad"]) == (960, local.written, local.bad) == (960, 2957, 43)
    shutil.rmtree("ray")
    whole = run_on_ray("lookup.plan", data, "ray", Settings(**chosen))
    assert (whole.written, whole.bad, whole.parts) == (local.written, local.bad, local.parts)
    assert files(tmp_path / "ray") == files(tmp_path / "local")


def attempt(run: Any, folder: Path, plan: compiler.Plan, data: list[Path], **options: Any) -> Summary | str:
    """The summary of a run, or the text of its error."""
    try:
        found: Summary = run(plan, data, folder, Settings(batch=4, part_rows=8), **options)
    except Error as error:
        return f"{type(error).__name__}: {error}"
    return found


def test_a_bad_partition_ends_both_runs_with_the_same_error(cluster: None, tmp_path: Path) -> None:
    data = [tmp_path / f"{name}.parquet" for name in ("first", "second", "third")]
    for path in data:
        table = pa.table({"x": pa.FixedSizeListArray.from_arrays(np.arange(40, dtype=np.float32), 2)})
        pq.write_table(table, path, write_page_checksum=True, compression="none", use_dictionary=False)
    damaged = bytearray(data[1].read_bytes())
    damaged[60] ^= 255
    data[1].write_bytes(damaged)
    here = attempt(run_here, tmp_path / "local", plan_of(LINES), data)
    there = attempt(run_on_ray, tmp_path / "ray", plan_of(LINES), data, workers=2)
    assert isinstance(here, str) and f"cannot read {data[1]}" in here
    assert there == here
    parts = lines_of(tmp_path / "ray/_manifest.jsonl")[1:]
    assert parts and parts == lines_of(tmp_path / "local/_manifest.jsonl")[1:]
    assert attempt(run_on_ray, tmp_path / "again", plan_of(LINES), data[:1], workers=1) != there


def test_a_worker_with_a_gpu_uses_it(cluster: None, tmp_path: Path) -> None:
    np.savez(tmp_path / "rows.npz", x=ramp(3))
    here, there = (
        attempt(run, tmp_path / run.__module__, plan_of(LINES), [tmp_path / "rows.npz"], device="cuda")
        for run in (run_here, run_on_ray)
    )
    if isinstance(here, str):
        assert here.startswith('DeviceError: device "cuda"') and there == here
    else:
        assert isinstance(there, Summary) and there.device.startswith("cuda")


def test_workers_that_the_cluster_cannot_have_are_refused(cluster: None, tmp_path: Path) -> None:
    for options, said in (
        ({"workers": 3}, "the Ray cluster has 2 CPUs and 1 GPUs, too few for 3 workers with 1 CPU each"),
        ({"device": "cuda", "workers": 2}, "too few for 2 workers with 1 CPU each and a GPU each"),
        ({"threads": 4}, "too few for 1 worker with 4 CPU each"),
        ({"device": "cuda:1"}, 'device "cuda:1": Ray chooses the GPUs of workers: write cpu, cuda or auto'),
    ):
        with pytest.raises(Error, match=said):
            run_on_ray(plan_of(LINES), [tmp_path], tmp_path / "out", **options)  # type: ignore[arg-type]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


@pytest.fixture(scope="module")
def port(cluster: None) -> Iterator[int]:
    """The port of Ray Serve."""
    from ray import serve

    found = free_port()
    serve.start(http_options={"host": "127.0.0.1", "port": found})
    yield found
    serve.shutdown()


def test_the_programs_of_the_page_run(
    port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "models").symlink_to(ROOT / "models")
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/serving.md").read_text()
    programs = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(programs) == 3
    exec(programs[0], {})
    (command,) = re.findall(r"^candlec batch .*$", page, re.MULTILINE)
    with pytest.raises(SystemExit) as ended:
        cli.main(shlex.split(command)[1:])
    assert not ended.value.code
    assert {each.name for each in (tmp_path / "logits").iterdir()} == {
        each.name for each in (tmp_path / "results").iterdir()
    }
    for program in programs[1:]:
        exec(program.replace("8000", str(port)), {})
    shown = capsys.readouterr().out.splitlines()
    assert "100 rows" in shown and "32 1000 (10,)" in shown and shown[-1] == "(2, 10)"


def test_requests_run_together(port: int) -> None:
    """The replica waits an hour for four requests, so they get answers only because they run together."""
    from ray import serve

    def post(body: bytes, kind: str = "application/json") -> tuple[int, bytes]:
        request = urllib.request.Request(f"http://127.0.0.1:{port}/lookup", body, {"Content-Type": kind})
        try:
            with urllib.request.urlopen(request) as response:
                return response.status, response.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    app = deployment(plan_of(LOOKUP), max_batch_size=4, batch_wait_timeout_s=3600)
    handle = serve.run(app, name="lookup", route_prefix="/lookup")
    assert post(b'{"j": [1]}') == (400, b'{"error": "there is no input \'j\': the inputs are i"}')
    assert post(b"i", "text/plain")[0] == 415
    binary = save({"i": np.array([2, 0])})
    with ThreadPoolExecutor(4) as pool:
        bodies = [b'{"i": [0]}', b'{"i": [1, 9]}', b'{"i": [2]}']
        waiting = [pool.submit(post, body) for body in bodies]
        waiting.append(pool.submit(post, binary, "application/octet-stream"))
        first, bad, third, packed = (each.result() for each in waiting)
    assert (first, third) == ((200, b'{"y": [10.0]}'), (200, b'{"y": [30.0]}'))
    assert bad[0] == 422 and json.loads(bad[1])["error"].startswith("row 1: step ")
    assert load(packed[1])["y"].tolist() == [30, 10]
    calls = [handle.predict.remote({"i": np.array([row])}) for row in (0, 1, 2, 1)]
    assert [call.result()["y"].tolist() for call in calls] == [[10], [20], [30], [20]]
