"""Uses of the public names, for type checkers. Nobody runs this file.

`assert_type` states the type of an expression. A comment that ignores an error marks a wrong use: a type checker that
accepts the use reports the comment. `make types` runs mypy over this file, and a test runs pyright.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir
from typing_extensions import assert_type

import compiler
import compiler.ort as onnxruntime
from compiler import CompileError, Diagnostic, Options, Plan, Session, TensorInfo
from compiler.accuracy.compare import Report
from compiler.accuracy.exported import ExportWarning
from compiler.backend import PreparedModel
from compiler.batch import Settings, Summary, largest_batch, run_batch
from compiler.options import Precision
from compiler.plan import StateInfo
from compiler.ray import Predictor, deployment
from compiler.ray import run_batch as run_on_ray
from compiler.runtime.state import State


def compiling(path: Path, data: bytes, proto: onnx.ModelProto, model: onnx_ir.Model) -> None:
    assert_type(compiler.compile(path), Plan)
    for source in (str(path), data, proto):
        compiler.compile(source, Options(dims={"batch": 4}, weights="int8", keep=["head"]))
    compiler.compile(model)
    options = Options(optimize=False, passes=["fuse_gelu"], state={"present.*": "past.*"}, precision="bf16")
    assert_type(options.precision, Precision)
    compiler.compile(path, 3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    compiler.compile()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    Options(precision="fp8")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Options(dim={"batch": 4})  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    compiler.compil(path)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]


def plans(path: Path) -> None:
    plan = compiler.compile(path)
    assert_type(plan.inputs, list[TensorInfo])
    assert_type(plan.state, list[StateInfo])
    assert_type(plan.inputs[0].shape, tuple[int | str | None, ...] | None)
    assert_type(Plan.load("m.plan"), Plan)
    assert_type(plan.custom_ops, list[str])
    plan.save("m.plan")


def sessions(plan: Plan, tensor: Any) -> None:
    session = compiler.load(plan, "cpu", 2, memory="low", weights={"w": np.zeros(3)})
    assert_type(session, Session)
    assert_type(session.run({"x": tensor}, outputs=["y"], as_="torch", timeout=1.5), dict[str, Any])
    assert_type(session.clone(threads=1), Session)
    assert_type(session.with_weights("tuned.safetensors"), Session)
    state = session.new_state(sizes={"batch": 2})
    assert_type(state, State)
    assert_type(state.copy(), State)
    session.run({"x": tensor}, state=state, cancel=session.new_cancel())
    compiler.load(plan, memory="least")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    session.run([tensor])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    session.run({"x": tensor}, as_="jax")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    session.run({"x": tensor}, output=["y"])  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    session(tensor, outputs=["y"], as_="dlpack", timeout=1.5, state=state, copy=True)
    session(tensor, output=["y"])  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    session(tensor, as_="jax")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    session(tensor, copy="yes")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    State(1, 2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


async def awaited(session: Session, tensor: Any) -> None:
    assert_type(await session.run_async({"x": tensor}, timeout=2), dict[str, Any])
    await session.run_async({"x": tensor}, timeout="2")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def exporting(module: Any, tensor: Any, function: Callable[..., Any]) -> None:
    path = compiler.export(module, (tensor,), "m.onnx", {"x": {0: "batch"}}, kwargs={"y": tensor}, outputs=["z"])
    assert_type(path, Path)
    compiler.export(module, [tensor], path, dynamic_shapes=({0: "n"},), exporter="torchscript", opset=17, locate=True)
    compiler.export(module, (tensor,), path, custom_translation_table={function: function}, check=False)
    compiler.export(module, (tensor,))  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    compiler.export(module, tensor, path, exporter="onnx")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    compiler.export(module, tensor, path, {"x": "n"})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
    try:
        compiler.export(module, (tensor,), path)
    except compiler.ExportError as error:
        assert error.reason is not None
        assert_type(error.reason.cure, str)
    assert issubclass(ExportWarning, UserWarning)


def verifying(path: Path) -> None:
    report = compiler.verify(path, dims={"batch": 2}, seed=3, tolerance=1e-4)
    assert_type(report, Report)
    assert_type(report.equal, bool)
    compiler.verify(path, dim={"batch": 2})  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def errors(path: Path) -> None:
    try:
        compiler.compile(path)
    except CompileError as error:
        assert_type(error.diagnostics[0], Diagnostic)
    except (compiler.PlanError, compiler.InputError, compiler.RunError, compiler.DeviceError) as error:
        assert_type(str(error), str)
    assert issubclass(compiler.RunError, compiler.Error)


def grown(*types: TensorInfo, scale: float = 1.0) -> tuple[str, tuple[int | str | None, ...]]:
    return "float32", (2, "n", None)


@compiler.custom_op("my.domain::Grow", grown)
def grow(x: np.ndarray, scale: float = 1.0) -> np.ndarray:
    return x * scale


def custom(x: np.ndarray) -> None:
    assert_type(grow(x, scale=2.0), np.ndarray)
    grow("x")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    compiler.custom_op("my.domain::Grow", grown, as_="jax")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def backend(proto: onnx.ModelProto, tensor: np.ndarray) -> None:
    assert_type(compiler.backend.is_compatible(proto), bool)
    prepared = compiler.backend.prepare(proto, "CPU")
    assert_type(prepared, PreparedModel)
    assert_type(prepared.run([tensor]), tuple[Any, ...])
    assert_type(compiler.backend.run_model(proto, [tensor]), tuple[Any, ...])
    compiler.backend.prepare("m.onnx")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def batches(plan: Plan) -> None:
    settings = Settings(columns={"x": "pixels"}, outputs=["y"], batch=16)
    assert_type(run_batch(plan, ["rows.npz"], "results", settings, threads=1), Summary)
    assert_type(largest_batch(plan, 2_000_000), int)
    Settings(rows=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    run_batch(plan)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def predictors(plan: Plan, tensor: np.ndarray) -> None:
    predictor = Predictor(plan, outputs=["y"], keep=["id"])
    assert_type(predictor({"x": tensor}), dict[str, np.ndarray[Any, Any]])
    Predictor(plan, output=["y"])  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    deployment(plan, max_batch_size=16, outputs=["y"], threads=1, num_replicas=2)
    deployment(plan, threads="2")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    settings = Settings(outputs=["y"])
    assert_type(run_on_ray(plan, ["rows.npz"], "results", settings, workers=2), Summary)
    run_on_ray(plan, ["rows.npz"], "results", worker=2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    assert_type(compiler.ray.Predictor(plan), Predictor)
    assert_type(compiler.batch.run_batch(plan, ["rows.npz"], "results"), Summary)
    compiler.dynamo.candle(plan)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def onnxruntimes(tensor: np.ndarray) -> None:
    session = onnxruntime.InferenceSession("m.plan", onnxruntime.SessionOptions(), ["CPUExecutionProvider"])
    assert_type(session.get_inputs(), list[onnxruntime.NodeArg])
    assert_type(session.run(None, {"x": tensor}), list[Any])
