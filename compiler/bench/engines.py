"""The engines to time: plans, and the runtimes that run their models."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compiler.accuracy.reference import Reference, ReferenceFailed, ReferenceMissing
from compiler.runtime.session import load

__all__ = ["ENGINES", "OTHERS", "PLAN", "Case", "Run", "installed_version"]

PLAN = "plan"


@dataclass(frozen=True)
class Case:
    """A plan's file and its device, the inputs, and the model's file if other engines run too."""

    name: str
    plan: Path
    inputs: dict[str, Any]
    model: Path | None = None
    device: str = "cpu"

    @property
    def known_model(self) -> Path:
        """The model's file.

        Raises:
            ReferenceFailed: it is unknown.
        """
        if self.model is None:
            raise ReferenceFailed(f"{self.name} is a plan without its model: name the model too")
        return self.model


Run = Callable[[], Any]


@dataclass(frozen=True)
class Engine:
    """A runtime: its name in sentences, its Python package, and how it loads a case for a number of threads.

    `prepare` writes the files that every process needs to load a case. It may start processes, but the processes in
    which engines are timed may not. Loading and running raise `ReferenceFailed` if an engine other than the plan's
    fails. The outputs of an engine with `is_checked` are compared with onnxruntime's before its times count. `candlec
    verify` checks those of plans.
    """

    title: str
    package: str
    load: Callable[[Case, int], Run]
    is_checked: bool = False
    prepare: Callable[[Case], None] = lambda _: None


def _load_plan(case: Case, threads: int) -> Run:
    session = load(case.plan, case.device, threads)
    return lambda: session.run(case.inputs)


def _load_onnxruntime(case: Case, threads: int) -> Run:
    return Reference(case.known_model, threads, as_written=True).prepared(case.inputs)


def _load_openvino(case: Case, threads: int) -> Run:
    """Load a case in full precision, which is not OpenVINO's default, and with fixed shapes, which are much faster."""
    import openvino

    properties = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
    try:
        core = openvino.Core()
        model = core.read_model(case.known_model)
        inputs = {name: case.inputs[name] for port in model.inputs for name in port.names if name in case.inputs}
        model.reshape({name: list(array.shape) for name, array in inputs.items()})
        compiled = core.compile_model(model, "CPU", properties)
    except RuntimeError as error:
        raise _failed("OpenVINO refuses the model", error) from error

    def run() -> Any:
        try:
            return compiled(inputs)
        except RuntimeError as error:
            raise _failed("OpenVINO fails on these inputs", error) from error

    return run


def _load_mnn(case: Case, threads: int) -> Run:
    from compiler.bench.mnn import load_mnn

    return load_mnn(case.known_model, case.inputs, threads)


def _prepare_mnn(case: Case) -> None:
    from compiler.bench.mnn import convert

    if case.model is not None:
        convert(case.model, case.inputs)


ENGINES = {
    PLAN: Engine("the plan", "compiler.runtime.session", _load_plan),
    "onnxruntime": Engine("onnxruntime", "onnxruntime", _load_onnxruntime),
    "openvino": Engine("OpenVINO", "openvino", _load_openvino, is_checked=True),
    "mnn": Engine("MNN", "compiler.bench.mnn", _load_mnn, is_checked=True, prepare=_prepare_mnn),
}
"""Name → engine, the plan's engine first."""

OTHERS = tuple(name for name in ENGINES if name != PLAN)


def installed_version(engine: str) -> str:
    """The version of an engine's package.

    Raises:
        ReferenceMissing: it is not installed.
    """
    try:
        return str(importlib.import_module(ENGINES[engine].package).__version__).partition("-")[0]
    except ImportError:
        message = f'this needs {engine}, which is not installed: run pip install "candle-compiler[bench]"'
        raise ReferenceMissing(message) from None


def _failed(what: str, error: Exception) -> ReferenceFailed:
    """The last line of an OpenVINO error, which gives the reason; the lines before it refer to OpenVINO's source."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return ReferenceFailed(f"{what}: {lines[-1] if lines else type(error).__name__}")
