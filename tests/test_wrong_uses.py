"""Wrong uses of runs, states, batches and Ray's classes: the error names the argument and says what to do."""

from __future__ import annotations

import asyncio
import copy
import inspect
import pickle
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest

import compiler
from compiler import DeviceError, InputError
from compiler.batch import Settings, largest_batch, run_batch
from compiler.ray import Predictor, deployment
from compiler.ray import run_batch as run_on_ray
from compiler.runtime.arguments import RunOptions
from compiler.runtime.state import State

DECODER = """(float[n, 4] x, float[past, 4] past_x) => (float[n, total] y, float[total, 4] present_x) {
    present_x = Concat <axis = 0> (past_x, x)
    y = Gemm <transB = 1> (x, present_x)
}"""
X = np.ones((1, 2), np.float32)


def plan_of(graph: str, **options: Any) -> compiler.Plan:
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> m {graph}')
    return compiler.compile(model, compiler.Options(**options))


PLAN = plan_of("(float[n, 2] x) => (float[n, 2] y) { y = Neg (x) }")
SESSION = compiler.load(PLAN, threads=1)
PLAIN = compiler.load(plan_of(DECODER), threads=1)
DECODING = compiler.load(plan_of(DECODER, state={"present_*": "past_*"}), threads=1)


def run(**options: Any) -> Any:
    return SESSION.run({"x": X}, **options)


def with_state(session: compiler.Session) -> Any:
    return session.run({"x": np.ones((1, 4), np.float32)}, state=DECODING.new_state())


CANCEL = r"^cancel: expected an object that new_cancel\(\) of the session returned, found "
RUNS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "copy": (lambda: run(copy="yes"), TypeError, "^copy: expected True or False, found str$"),
    "copy and outputs": (
        lambda: run(copy="yes", outputs=["y"]),
        TypeError,
        "^copy: expected True or False, found str$",
    ),
    "a number": (lambda: run(device_outputs=1), TypeError, "^device_outputs: expected True or False, found int$"),
    "a call": (lambda: SESSION(X, copy=None), TypeError, "^copy: expected True or False, found NoneType$"),
    "a text": (lambda: run(cancel="yes"), TypeError, f"{CANCEL}str$"),
    "an event": (lambda: run(cancel=threading.Event()), TypeError, f"{CANCEL}Event$"),
    "a task": (lambda: asyncio.run(SESSION.run_async({"x": X}, cancel=1)), TypeError, f"{CANCEL}int$"),  # type: ignore[arg-type]
    "a task with a copy": (
        lambda: asyncio.run(SESSION.run_async({"x": X}, copy="no")),  # type: ignore[arg-type]
        TypeError,
        "^copy: expected True or False, found str$",
    ),
    "a plan without a state": (
        lambda: with_state(PLAIN),
        ValueError,
        r"^state: the plan has no state: leave the argument out, or compile the model with Options\(state=…\)$",
    ),
    "another plan": (lambda: with_state(SESSION), ValueError, "^state: the plan has no state"),
    "a text as state": (
        lambda: run(state="auto"),
        TypeError,
        "^state: expected a state that new_state made, found str$",
    ),
    "a new state": (lambda: State(), TypeError, r"^a program makes no State\(\): call new_state\(\) of the session"),
    "a pickled state": (lambda: pickle.dumps(DECODING.new_state()), TypeError, "^a state cannot be pickled: save it"),
    "a copied session": (lambda: copy.copy(SESSION), TypeError, r"clone\(\) makes another session$"),
}


def batch(**arguments: Any) -> Any:
    return run_batch(**{"plan": PLAN, "data": ["rows.npz"], "output": "results", **arguments})


def on_ray(**arguments: Any) -> Any:
    return run_on_ray(**{"plan": PLAN, "data": ["rows.npz"], "output": "results", **arguments})


BATCHES: dict[str, tuple[dict[str, Any], str]] = {
    "a dict": ({"settings": {"batch": 2}}, r"^settings: expected compiler\.batch\.Settings\(…\), found dict$"),
    "an empty dict": ({"settings": {}}, r"^settings: expected compiler\.batch\.Settings\(…\), found dict$"),
    "a text": ({"data": "rows.npz"}, r"^data: expected a list of files, .* found one path: write \['rows\.npz'\]$"),
    "a path": ({"data": Path("rows.npz")}, r"^data: expected a list .*: write \['rows\.npz'\]$"),
    "a number": ({"data": [3]}, "^data: expected a list of files, folders and patterns, each a path, found int$"),
    "a stream": (
        {"data": iter(["rows.npz"])},
        "^data: expected a list of files, folders and patterns, found .*iterator",
    ),
    "no folder": ({"output": None}, "^output: expected the path of a folder, found NoneType$"),
    "progress": ({"progress": 3}, r"^progress: expected an object with the method begin, .*Progress, found int$"),
    "stop": ({"stop": True}, "^stop: expected a function, found bool$"),
    "no threads": ({"threads": 0}, "^threads: expected a whole number from 1 to 1024, found 0$"),
    "a GPU by number": ({"device": 0}, "^device: expected the name of a device, found int$"),
    "memory": ({"max_memory": "1 GB"}, "^max_memory: expected a whole number from 0 to .*, found '1 GB'$"),
    "no plan": ({"plan": 3}, r"^plan: expected a compiler\.Plan or the path of a plan file, found int$"),
}

SETTINGS: dict[str, tuple[dict[str, Any], str]] = {
    "columns": ({"columns": ["picture"]}, r"^columns: expected a dict of columns by input, as .*, found list$"),
    "a column": ({"columns": {"x": 3}}, r"^columns\['x'\]: expected the name of a column, found int$"),
    "an output": ({"outputs": "logits"}, "^outputs: expected a list of names, found 'logits'$"),
    "a set": ({"outputs": {"y"}}, "^outputs: expected a list of names, found set$"),
    "format": ({"format": "csv"}, "^format: expected 'parquet' or 'npz', found 'csv'$"),
    "scale": ({"scale": "x"}, "^scale: expected a number, found str$"),
    "an infinite scale": ({"scale": float("inf")}, "^scale: expected a finite number, found inf$"),
    "no rows": ({"batch": 0}, "^batch: expected a whole number from 1, found 0$"),
    "no parts": ({"part_rows": None}, "^part_rows: expected a whole number from 1, found None$"),
    "cast": ({"cast": "no"}, "^cast: expected True or False, found str$"),
    "resume": ({"resume": 1}, "^resume: expected True or False, found int$"),
}

RAY: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no threads": (lambda: Predictor(PLAN, threads=0), ValueError, "^threads: expected .* found 0$"),
    "no device": (lambda: Predictor(PLAN, device=""), DeviceError, '^device "": unknown; devices are cpu, cuda'),
    "columns": (lambda: Predictor(PLAN, columns=["x"]), TypeError, "^columns: expected a dict of columns by input"),  # type: ignore[arg-type]
    "an output": (lambda: Predictor(PLAN, outputs="y"), TypeError, "^outputs: expected a list of names, found 'y'$"),
    "keep": (lambda: Predictor(PLAN, keep="id"), TypeError, "^keep: expected a list of names, found 'id'$"),
    "cast": (lambda: Predictor(PLAN, cast=1), TypeError, "^cast: expected True or False, found int$"),  # type: ignore[arg-type]
    "a list": (
        lambda: Predictor(PLAN)([1]),
        TypeError,
        r'^batch: expected a dict .* found list: .*batch_format="numpy"',
    ),  # type: ignore[arg-type]
    "serving without threads": (lambda: deployment(PLAN, threads=0), ValueError, "^threads: expected .* found 0$"),
    "serving nowhere": (lambda: deployment(PLAN, device=""), DeviceError, '^device "": unknown; devices are cpu'),
    "serving an output": (lambda: deployment(PLAN, outputs="y"), TypeError, "^outputs: expected a list of names"),
    "serving no plan": (lambda: deployment(3), TypeError, r"^plan: expected a compiler\.Plan or the path"),  # type: ignore[arg-type]
    "waiting": (
        lambda: deployment(PLAN, batch_wait_timeout_s="1"),  # type: ignore[arg-type]
        TypeError,
        "^batch_wait_timeout_s: expected a number of seconds, found str$",
    ),
    "workers": (lambda: on_ray(workers=0), ValueError, "^workers: expected a whole number from 1, found 0$"),
    "a sample": (
        lambda: largest_batch(PLAN, 1000, sample=[X]),  # type: ignore[arg-type]
        TypeError,
        "^sample: expected a dict of arrays by input, found list$",
    ),
}


def check(call: Callable[[], Any], kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said) as caught:
        call()
    assert caught.value.__suppress_context__ or caught.value.__context__ is None, "one error, not two"


@pytest.mark.parametrize("name", RUNS)
def test_runs(name: str) -> None:
    check(*RUNS[name])


@pytest.mark.parametrize("run_rows", [batch, on_ray])
@pytest.mark.parametrize("name", BATCHES)
def test_batches(name: str, run_rows: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    arguments, said = BATCHES[name]
    with pytest.raises((TypeError, ValueError), match=said):
        run_rows(**arguments)
    assert not list(tmp_path.iterdir()), "no folder of results"


@pytest.mark.parametrize("name", SETTINGS)
def test_settings(name: str) -> None:
    fields, said = SETTINGS[name]
    with pytest.raises((TypeError, ValueError), match=said):
        Settings(**fields)


def test_settings_take_numbers_of_numpy(tmp_path: Path) -> None:
    np.savez(tmp_path / "rows.npz", x=np.ones((3, 2), np.float32))
    settings = Settings(batch=np.int64(2), part_rows=np.int32(8), scale=np.float32(1))  # type: ignore[arg-type]
    found = run_batch(PLAN, [tmp_path / "rows.npz"], tmp_path / "results", settings, threads=1)
    assert (found.written, found.batch) == (3, 2)


@pytest.mark.parametrize("name", RAY)
def test_ray(name: str) -> None:
    pytest.importorskip("ray", reason="needs Ray")
    check(*RAY[name])


def test_copies_of_a_state_go_on_separately() -> None:
    state = DECODING.new_state({"past_x": np.zeros((2, 4), np.float32)})
    for made in (copy.copy(state), copy.deepcopy(state)):
        DECODING.run({"x": np.ones((1, 4), np.float32)}, state=made)
        assert (made.length, state.length) == (3, 2)


def test_a_call_takes_the_arguments_of_a_run() -> None:
    """`RunOptions` lists them for type checkers."""
    names = [name for name in inspect.signature(compiler.Session.run).parameters if name not in ("self", "inputs")]
    assert sorted(names) == sorted(RunOptions.__annotations__)
    with pytest.raises(TypeError, match="unexpected keyword argument 'output'"):
        SESSION(X, output="y")  # type: ignore[call-arg]


def tensors(torch: Any) -> dict[str, tuple[Any, str]]:
    """Tensors whose elements no runtime can read."""
    ones = torch.ones(1, 2)
    return {
        "meta": (ones.to("meta"), 'a tensor on PyTorch\'s device "meta", which has no elements: pass a tensor'),
        "nested": (torch.nested.nested_tensor([torch.ones(2)]), "a nested tensor .* to_padded_tensor"),
        "sparse": (ones.to_sparse(), r"the layout torch\.sparse_coo: pass tensor\.to_dense\(\)"),
        "quantized": (torch.quantize_per_tensor(ones, 0.1, 0, torch.qint8), r"pass tensor\.dequantize\(\)"),
        "conjugate": (ones.to(torch.complex64).conj(), r"yet to conjugate: pass tensor\.resolve_conj\(\)"),
        "gradient": (ones.clone().requires_grad_(), r"requires a gradient, .*: pass tensor\.detach\(\)"),
        "int4": (torch.empty(1, 2, dtype=torch.int4), r"a tensor of torch\.int4, .*: pass an array .* of ml_dtypes"),
    }


@pytest.mark.parametrize("name", ["meta", "nested", "sparse", "quantized", "conjugate", "gradient", "int4"])
@pytest.mark.filterwarnings("ignore")  # PyTorch's, of nested and quantized tensors
def test_tensors_of_pytorch_without_elements(name: str) -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    tensor, said = tensors(torch)[name]
    for run_it in (SESSION.run, partial(SESSION.run, outputs=["y"]), lambda inputs: SESSION(*inputs.values())):
        check(partial(run_it, {"x": tensor}), InputError, rf"^input 'x': expected float32 \[n, 2\], .*{said}")


@pytest.mark.filterwarnings("ignore::FutureWarning")  # PyTorch's, of torch.jit
def test_modules_of_pytorch_are_to_be_exported() -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    layer = torch.nn.Linear(2, 2)
    said = r"not Linear: export it with compiler\.export\(module, args, path\), and compile the file$"
    check(lambda: compiler.compile(layer), TypeError, said)
    said = r"export the module that it was made of with compiler\.export"
    check(lambda: compiler.compile(torch.jit.trace(layer, torch.ones(1, 2))), TypeError, said)


def test_packages_are_there_after_one_import() -> None:
    assert compiler.batch.run_batch is run_batch
    assert compiler.ray.Predictor is Predictor
    pytest.importorskip("torch", reason="needs PyTorch")
    assert compiler.dynamo.candle.__name__ == "candle"
