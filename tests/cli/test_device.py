"""The commands with a device: where steps run, which steps lack a kernel, and which arguments are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

import compiler
from compiler import _runtime
from tests.cli.command import run

WHOLE = "(float[n, 2] x) => (float[n, 2] y) { a = Neg (x) y = Softmax (a) }"
RESULTS = {"Det": ("float[n]", 12), "NonZero": ("int64[3, m]", 144), "Unique": ("float[m]", 136)}
"""The first outputs of operators for a tensor `[n, 2, 2]`, and the bytes of all their outputs for three unit matrices.
The tests use the first operator without a kernel for GPUs."""
PLACEMENTS = {op: placement for _, op, placement in json.loads(_runtime.ops())}
LACKS = next(op for op in RESULTS if PLACEMENTS[op] == "no_kernel")
RESULT, BYTES = RESULTS[LACKS]
LACKING = f"(float[n, 2, 2] x) => ({RESULT} y, int64[3] s) {{ a = Neg (x) y = {LACKS} (a) s = Shape (a) }}"
EMULATOR = pytest.mark.skipif(
    not any(Path(compiler.__file__).parent.glob("_runtime_emulator.*")), reason="it is not built: `make emulator`"
)


@pytest.fixture
def called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a command in a folder with the model of a graph, `model.onnx`, and its plan: exit code, output, errors."""
    monkeypatch.chdir(tmp_path)

    def call(graph: str, *arguments: str) -> tuple[int, str, str]:
        model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 20]> m {graph}')
        onnx.save(model, "model.onnx")
        compiler.compile(model).save("model.plan")
        x = np.eye(2, dtype=np.float32)
        np.savez("x.npz", x=x if graph == WHOLE else x[None].repeat(3, 0))
        code = run(*arguments)
        captured = capsys.readouterr()
        return code, " ".join(captured.out.split()), " ".join(captured.err.split())

    return call


def test_check_says_where_every_step_would_run(called: Any) -> None:
    code, out, err = called(LACKING, "check", "model.onnx", "--device", "cuda")
    assert code == 0
    assert "Unary 1 cuda" in out
    assert "Shape 1 host: such ops belong there" in out
    assert f"{LACKS} 1 host: the device has no kernel" in out
    assert f"cuda has no kernel for 1 step, which falls back to the CPU: 1 {LACKS}" in out + err


@pytest.mark.parametrize("verb", [("check", "model.onnx"), ("ops", "Softmax")])
def test_a_number_of_a_gpu_changes_nothing_without_a_device(called: Any, verb: tuple[str, ...]) -> None:
    sentence = "the same holds for every GPU: the command does not look whether cuda:7 is present"
    code, numbered, _ = called(WHOLE, *verb, "--device", "cuda:7")
    assert code == 0
    assert sentence in numbered
    _, first, _ = called(WHOLE, *verb, "--device", "cuda")
    # The lines of a table are as long as its longest word.
    same = numbered.replace(sentence, "").replace("cuda:7", "cuda").replace("─", "")
    assert same.split() == first.replace("─", "").split()


def test_check_as_json(called: Any) -> None:
    code, out, _ = called(LACKING, "check", "model.onnx", "--device", "cuda", "--json")
    steps = json.loads(out)["steps"]
    assert code == 0
    assert {step["op"]: step["host"] for step in steps} == {"Unary": None, LACKS: "no_kernel", "Shape": "nature"}
    assert next(step for step in steps if step["op"] == LACKS)["origin"].startswith(f"{LACKS}(")


@pytest.mark.parametrize(("graph", "expected"), [(WHOLE, 0), (LACKING, 1)])
def test_check_strictly(called: Any, graph: str, expected: int) -> None:
    code, out, err = called(graph, "check", "model.onnx", "--device", "cuda", "--strict-device")
    assert code == expected
    assert (LACKS in out + err) == bool(expected)


def test_ops_of_a_device(called: Any) -> None:
    code, out, _ = called(WHOLE, "ops", "--device", "cuda", "Softmax", LACKS, "Shape", "Reshape", "--json")
    assert code == 0
    placements = {op["op"]: op["placement"] for op in json.loads(out)["ops"]}
    assert placements == {"Softmax": {"kernel": "softmax"}, LACKS: "no_kernel", "Shape": "host", "Reshape": "view"}


def test_ops_that_no_plan_has(called: Any) -> None:
    code, out, err = called(WHOLE, "ops", "--device", "cuda", "Softmax", "Softmaxx")
    assert code == 1
    assert "softmax.cu" in out
    assert "no plan has an op Softmaxx: did you mean Softmax" in err
    code, out, _ = called(WHOLE, "ops", "--device", "cuda", "Softmaxx", "--json")
    assert (code, json.loads(out)["missing"]) == (1, ["Softmaxx"])


@EMULATOR
def test_run_says_what_the_host_did(called: Any) -> None:
    arguments = ("run", "model.plan", "--input", "x.npz", "--device", "emulator")
    code, out, err = called(LACKING, *arguments, "--profile")
    assert code == 0
    assert f"emulator has no kernel for 1 step, which falls back to the CPU: 1 {LACKS}" in out + err
    # The operands are three 2 × 2 matrices and the result.
    operands = f"on {48 + BYTES} B of operands"
    assert f"{LACKS} from {LACKS}(y) runs on the host, because the device has no kernel, {operands}" in out
    code, out, err = called(LACKING, *arguments, "--strict-device")
    assert code == 1
    assert LACKS in out + err


@EMULATOR
def test_bench_and_zoo_run_on_a_device(called: Any) -> None:
    timed = ("bench", "model.plan", "--device", "emulator", "--input", "x.npz", "--threads", "1", "--seconds", "0.05")
    code, out, _ = called(WHOLE, *timed, "--json")
    assert code == 0
    assert (json.loads(out)["device"], json.loads(out)["ok"]) == ("emulator", True)
    models = str(Path(__file__).parents[2] / "models")
    code, out, _ = called(WHOLE, "zoo", "run", "--zoo", models, "--only", "digits", "--device", "emulator", "--json")
    assert code == 0
    assert {each["variant"] for each in json.loads(out)["outcomes"]} == {"optimized, emulator", "plain, emulator"}


@pytest.mark.parametrize("verb", [("check", "model.onnx"), ("ops",), ("bench", "model.plan"), ("zoo", "run")])
def test_a_device_is_named_where_no_other_can_take_its_place(called: Any, verb: tuple[str, ...]) -> None:
    code, _, err = called(WHOLE, *verb, "--device", "auto")
    assert code == 2
    assert "this command needs the name of a device, not 'auto'" in err


def test_verify_says_where_it_ran(called: Any) -> None:
    for device, said in [("auto", "on c"), ("cpu", "1 of 1")]:
        code, out, _ = called(WHOLE, "verify", "model.onnx", "--input", "x.npz", "--device", device)
        assert code == 0
        assert f" {said}" in out
        assert (" on c" in out) == (device == "auto")
