"""The time and the error of models with `precision="int8"`, beside onnxruntime's dynamic quantization.

    python -m models bert_base gpt2_prefill
    python benchmarks/quantized_models.py build/models bert_base gpt2_prefill

prints a table in Markdown for models of a folder with INDEX.json. Every time is the median processor time of runs in
turns, with one thread, divided by the time of onnxruntime in float32. The error is the largest `‖y − ŷ‖ / ‖y‖` of an
output, where onnxruntime computes y in float32.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from onnxruntime.quantization import quantize_dynamic
from onnxruntime.quantization.shape_inference import quant_pre_process

import compiler
from compiler.zoo.index import read_index

TURNS = 12
Outputs = dict[str, np.ndarray[Any, Any]]
Run = Callable[[Mapping[str, Any]], Outputs]


def main() -> None:
    """Print the table."""
    folder, names = Path(sys.argv[1]), sys.argv[2:]
    print("| model | runtime | time ÷ onnxruntime | relative error |\n| --- | --- | ---: | ---: |")
    for entry in (each for each in read_index(folder) if each.name in names):
        inputs = entry.inputs(entry.cases[0])
        with tempfile.TemporaryDirectory() as place:
            runs = ways(entry.path, Path(place))
            wanted = runs["onnxruntime, float32"](inputs)
            taken = times(list(runs.values()), inputs)
        for (name, run), seconds in zip(runs.items(), taken, strict=True):
            error = max(distance(found, wanted[each]) for each, found in run(inputs).items())
            print(f"| {entry.name} | {name} | {seconds / taken[0]:.2f} | {error:.1e} |", flush=True)


def ways(path: Path, place: Path) -> dict[str, Run]:
    """The ways to run a model, by name; onnxruntime in float32 is the first."""
    made = {"onnxruntime, float32": by_onnxruntime(path)}
    folded = place / "folded.onnx"  # it folds transposed weights, which onnxruntime would not quantize
    quant_pre_process(path, folded, skip_symbolic_shape=True, save_as_external_data=True)
    for name, options in (
        ("onnxruntime, dynamic", {}),
        ("onnxruntime, dynamic, 7 bits for each channel", {"per_channel": True, "reduce_range": True}),
    ):
        target = place / f"{len(made)}.onnx"
        quantize_dynamic(folded, target, use_external_data_format=True, **options)
        made[name] = by_onnxruntime(target)
    for precision in ("f32", "bf16", "int8"):
        made[f"this, {precision}"] = by_plan(path, compiler.Options(precision=precision))
    return made


def by_onnxruntime(path: Path) -> Run:
    """Runs a model in onnxruntime."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    return lambda inputs: dict(zip(names, session.run(names, dict(inputs)), strict=True))


def by_plan(path: Path, options: compiler.Options) -> Run:
    """Runs a model in this runtime."""
    session = compiler.load(compiler.compile(path, options), threads=1)
    return lambda inputs: dict(session.run(inputs))


def times(runs: list[Run], inputs: Mapping[str, Any]) -> list[float]:
    """The median seconds of a run of each; the runs take turns."""
    taken: list[list[float]] = [[] for _ in runs]
    for _ in range(TURNS):
        for run, seconds in zip(runs, taken, strict=True):
            start = time.process_time()
            run(inputs)
            seconds.append(time.process_time() - start)
    return [statistics.median(seconds[2:]) for seconds in taken]


def distance(found: Any, wanted: Any) -> float:
    """`‖found − wanted‖ / ‖wanted‖`; 0 for outputs that are no floats."""
    if wanted.dtype.kind != "f":
        return 0.0
    wide = wanted.astype(np.float64)
    return float(np.linalg.norm(found.astype(np.float64) - wide) / max(np.linalg.norm(wide), 1e-30))


if __name__ == "__main__":
    main()
