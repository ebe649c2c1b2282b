"""The commands on a GPU with the output of NVIDIA's tools, with PyTorch's traces, and with PyTorch itself."""

from __future__ import annotations

import contextlib
import json
import time
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compiler
from compiler.bench.expectation import expected_steps
from tests.gpu_bundle import tool

EQUAL, FAR = '{"verdict": "equal"}\n', '{"verdict": "different", "off": 2.0}\n'
RACES = "========= RACECHECK SUMMARY: {} hazards displayed ({} errors, 0 warnings)\n"


@pytest.mark.parametrize(
    ("output", "verdict", "note"),
    [
        (EQUAL + "========= ERROR SUMMARY: 0 errors\n", "equal", "ERROR SUMMARY: 0 errors"),
        (EQUAL + "========= ERROR SUMMARY: 10 errors\n", "different", "ERROR SUMMARY: 10 errors"),
        (EQUAL + RACES.format(0, 0), "equal", "RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)"),
        (EQUAL + RACES.format(3, 3), "different", "RACECHECK SUMMARY: 3 hazards displayed (3 errors, 0 warnings)"),
        (FAR + "= ERROR SUMMARY: 0 errors\n", "failed", "ERROR SUMMARY: 0 errors; ✗ off by 2 of the tolerance"),
        ("= ERROR SUMMARY: 0 errors\n", "failed", "ERROR SUMMARY: 0 errors; the plans did not run"),
        (
            '{"verdict": "equal", "partial": true}\n= ERROR SUMMARY: 0 errors\n',
            "failed",
            "ERROR SUMMARY: 0 errors; the plans did not run",
        ),
        ("========= Error: Device not supported\n", "not run", "compute-sanitizer does not support the device"),
        ("Unable to\nfind it\n", "not run", "Unable to find it"),
        ("", "not run", "it printed nothing"),
    ],
)
def test_the_output_of_the_sanitizer(output: str, verdict: str, note: str) -> None:
    assert tool("gpu.sanitizer").verdict_of(output) == {"verdict": verdict, "note": note}


def test_groups_that_are_not_clean_are_named() -> None:
    together = tool("gpu.sanitizer").together
    clean = {"verdict": "equal", "note": "ERROR SUMMARY: 0 errors"}
    assert together({"a": clean}, 2) == {"groups": {"a": clean}, "summary": "1 of 2 groups of plans are clean"}
    raced = {"verdict": "different", "note": "RACECHECK SUMMARY: 1 hazards"}
    late = {"verdict": "not run", "note": "time was up"}
    assert together({"a": clean, "b": late}, 2)["verdict"] == "not run"
    found = together({"a": raced, "b": late}, 2)
    assert (found["verdict"], found["note"]) == (
        "different",
        "a: ✗ RACECHECK SUMMARY: 1 hazards; b: ✗ not run: time was up",
    )


def test_metrics_of_nsight_compute() -> None:
    output = "\n".join(
        [
            "==PROF== Connected to process 7",
            '{"verdict": "equal"}',
            '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value","Rule Name"',
            '"0","conv_large_f32","Duration","us","11.5",""',
            '"0","conv_large_f32","Achieved Occupancy","%","42.1",""',
            '"0","conv_large_f32","","","","SOLBottleneck"',
        ]
    )
    assert tool("gpu.counters").metrics_of(output) == {"Duration": "11.5 us", "Achieved Occupancy": "42.1 %"}
    assert tool("gpu.counters").metrics_of("==ERROR== ERR_NVGPUCTRPERM\n") == {}


def test_the_hottest_kernels(tmp_path: Path) -> None:
    def plan(name: str, **times: float) -> dict[str, Any]:
        kernels = [{"kernel": kernel, "us": us, "is_ours": kernel != "gemm"} for kernel, us in times.items()]
        return {"name": name, "kernels": kernels}

    setting = tool("gpu.process").Setting(tmp_path, "cuda", 0, tmp_path)
    assert tool("gpu.counters").hottest(setting) == []
    results = [plan("a", conv=5, gemm=9, program=1), plan("b", conv=7, program=0.5), {"name": "c"}]
    (tmp_path / "cuda-tune.json").write_text(json.dumps({"sections": [{"results": results}, {"results": []}]}))
    assert tool("gpu.counters").hottest(setting) == [("conv", "b"), ("program", "a")]


def trace(*found: tuple[str, str, float, float, int]) -> dict[str, Any]:
    """A trace in Chrome's format."""
    events = [
        {"ph": "X", "cat": category, "name": name, "ts": start, "dur": duration, "args": {"bytes": count}}
        for category, name, start, duration, count in found
    ]
    return {"traceEvents": [*events, {"ph": "i", "name": "mark", "ts": 1}]}


def test_the_split_of_a_trace() -> None:
    span = "run of the plan"
    found = tool("gpu.trace").events(
        trace(
            ("user_annotation", span, 0, 100, 0),
            ("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 5, 10, 4096),
            ("cuda_driver", "cuLaunchKernel", 20, 5, 0),
            ("kernel", "conv_large_f32", 30, 40, 0),
            ("cuda_driver", "cuLaunchKernel", 30, 6, 0),
            ("gpu_memset", "Memset (Device)", 70, 1, 8),
            ("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 80, 9, 64),
            ("cuda_sync", "Stream Sync", 90, 5, 0),
            ("user_annotation", span, 200, 100, 0),
            ("cuda_driver", "cuLaunchKernel", 210, 8, 0),
            ("kernel", "conv_large_f32", 230, 40, 0),
            ("cuda_sync", "Stream Wait Event", 240, 0, 0),
            ("cuda_sync", "Event Sync", 250, 5, 0),
            ("cuda_sync", "Stream Sync", 280, 5, 0),
            ("cuda_sync", "Context Sync", 310, 5, 0),
        )
    )
    split = tool("gpu.split").of_trace(found, 2)
    assert split == tool("gpu.split").Split(
        "CUPTI",
        submit_ms=pytest.approx((36 + 18) / 2 / 1e3),
        upload_ms=pytest.approx(0.005),
        device_ms=pytest.approx(81 / 2 / 1e3),
        download_ms=pytest.approx(0.0045),
        launches=1.0,
        waits=1.5,
        bytes_up=2048.0,
        bytes_down=32.0,
    )
    assert tool("gpu.split").of_trace(found[:1], 2) is None
    without = tool("gpu.split").of_trace([event for event in found if event.category != "cuda_sync"], 2)
    assert without.waits is None, "a count that is not known is no 0"


def test_waits_are_asked_of_the_profiler() -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch")

    assert tool("gpu.trace").with_waits(torch) is not None
    assert tool("gpu.trace").with_waits(object()) is None


def test_runs_take_turns_and_their_time_is_bounded() -> None:
    order: list[str] = []
    runs = {name: lambda name=name: (order.append(name), time.sleep(0.03)) for name in "ab"}
    times = tool("gpu.timing").in_turns(runs, 0.2)
    assert order == ["a", "b"] * (len(order) // 2)
    assert 2 * 4 <= len(order) <= 2 * 5, "once untimed, and three or four turns, which take 60 ms or more"
    assert all(each["low"] <= each["median"] <= each["high"] and each["runs"] >= 3 for each in times.values())
    assert times["a"]["median"] >= 30


def test_peers_in_every_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch's runs on the processor, with stand-ins for a GPU's streams and graphs."""
    torch = pytest.importorskip("torch", reason="needs PyTorch")

    class Graph:
        replays = 0

        def replay(self) -> None:
            Graph.replays += 1

    class Stream:
        def wait_stream(self, other: object) -> None: ...

    def nothing(*_: object) -> None: ...

    for place in (torch.Tensor, torch.nn.Module):
        monkeypatch.setattr(place, "cuda", lambda self: self)
    stand_ins = {"CUDAGraph": Graph, "Stream": Stream, "current_stream": Stream, "synchronize": nothing}
    contexts = dict.fromkeys(("graph", "stream"), contextlib.nullcontext)
    for name, value in (stand_ins | contexts).items():
        monkeypatch.setattr(torch.cuda, name, value)
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU())
    case = {"x": np.ones((2, 3, 8, 8), np.float32)}
    runs, untimed = tool("gpu.peers").peers(torch, network, case)
    assert untimed == {}
    ways = [(way, mode) for mode in ("f32", "tf32", "half") for way in ("eager", "graph")]
    assert list(runs) == [f"{way}, {mode}, {place}" for way, mode in ways for place in ("resident", "host")]
    with torch.no_grad():
        expected = network(torch.ones(2, 3, 8, 8)).numpy()
    for mode, dtype, tolerance in (("f32", np.float32, 1e-6), ("half", np.float16, 1e-2)):
        (found,) = runs[f"eager, {mode}, host"]()
        assert found.numpy().dtype == dtype
        np.testing.assert_allclose(found.numpy(), expected, atol=tolerance)
    assert Graph.replays == 3
    runs["graph, tf32, resident"]()
    assert Graph.replays == 4
    _, untimed = tool("gpu.peers").peers(torch, torch.nn.Linear(5, 5), case, ["eager"], ["f32"])
    assert list(untimed) == ["eager, f32"] and "shapes cannot be multiplied" in untimed["eager, f32"]


def test_large_outputs_are_sampled() -> None:
    agreement = tool("gpu.agreement")
    found = agreement.sampled({"x": np.arange(10**6).reshape(1000, 1000), "y": np.arange(3), "z": [np.arange(2)]})
    assert list(found) == ["shape of x", "x", "y", "z"]
    assert found["shape of x"].tolist() == [1000, 1000]
    assert (found["x"][:2].tolist(), found["x"].size) == ([0, 123], 8131)


def test_plans_for_the_sanitizer_launch_every_kernel_whose_threads_share_memory() -> None:
    shared = {name for name, is_shared in tool("gpu.gather").kernels().items() if is_shared}
    launched: set[str] = set()
    for plan in (plan for group in tool("gpu.cooperative").groups() for plan in group["group"]):
        steps = expected_steps(compiler.Plan(plan["plan"]), plan["cases"][0])
        launched.update(name for step in steps for name in step.kernels)
    assert shared - launched == set()


class Stand:
    """A session that takes arrays of a device."""

    def run(self, given: dict[str, Any], device_outputs: bool = False) -> str:
        return "resident" if device_outputs else "host"


class Old:
    """A session that takes arrays of arrays on the host."""

    def run(self, given: dict[str, Any]) -> str:
        return "host"


def test_our_runs_from_the_host_and_resident() -> None:
    case = {"x": np.zeros(3, np.float32)}
    of_device = types.SimpleNamespace(cuda=lambda: None)
    cuda = types.SimpleNamespace(synchronize=lambda: None)
    torch = types.SimpleNamespace(from_numpy=lambda value: of_device, cuda=cuda)
    ours = tool("gpu.resident").ours
    runs, without = ours(torch, Stand(), case)
    assert {name: run() for name, run in runs.items()} == {"ours, host": "host", "ours, resident": "resident"}
    assert without == {}
    runs, without = ours(torch, Old(), case)
    assert list(runs) == ["ours, host"] and "arrays on the host" in without["ours, resident"]


def test_both_sides_are_timed_both_ways_beside_compiling(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    compiled = tool("gpu.compiled")
    theirs = {f"compiled, f32, {place}": lambda: None for place in ("resident", "host")}
    for function, value in {
        "torch_on": lambda device: None,
        "refuse_large": lambda model, setting: None,
        "network": lambda model: None,
        "peers": lambda *given, **more: (theirs, {}),
        "ours": lambda *given: ({f"ours, {place}": lambda: None for place in ("host", "resident")}, {}),
        "in_turns": lambda runs, seconds: {name: {"median": 1.0} for name in runs},
    }.items():
        monkeypatch.setattr(compiled, function, value)
    monkeypatch.setattr(compiled.files, "read", lambda *given: {"inputs": []})
    monkeypatch.setattr(compiled.drawn, "filled", lambda model: b"")
    for name in ("Plan", "load"):
        monkeypatch.setattr(compiler, name, lambda *given, **more: None)
    setting = tool("gpu.process").Setting(tmp_path, "cuda", 0, tmp_path)
    *_, last = compiled.results("resnet50-b32, f32", setting, 0)
    assert list(last["times"]) == ["ours, host", "ours, resident", *theirs]
