"""The time and the error of models whose convolutions are quantized by a calibration set, beside onnxruntime's.

    python -m benchmarks.calibrated_models ../shared/zoo ultraface_rfb320 deeplab_v3

prints a table in Markdown for models of a folder with INDEX.json. The calibration set is the mirror image of a model's
first input, and the measured input is the first input itself. onnxruntime quantizes the same model with
`quantize_static` and the same set: codes of 8 bits without sign for activations, a scale for each output channel.
Every time is the median processor time of runs in turns, with one thread. The error is the largest `‖y − ŷ‖ / ‖y‖` of
an output, where this runtime computes y in float32.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.version_converter
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

import compiler
from benchmarks.quantized_models import Outputs, Run, by_onnxruntime, by_plan, distance, times
from compiler.zoo.index import read_index

OPSET = 13
"""The first opset with scales for each channel."""


class Calibration(CalibrationDataReader):
    """One input, as onnxruntime's quantizer reads it."""

    def __init__(self, case: Outputs) -> None:
        self.cases: Iterator[Outputs] = iter([case])

    def get_next(self) -> Any:
        """The next input; `None` after the last one."""
        return next(self.cases, None)


def main() -> None:
    """Print the table."""
    folder, names = Path(sys.argv[1]), sys.argv[2:]
    print("| model | runtime | milliseconds | time ÷ `float32` | error |\n| --- | --- | ---: | ---: | ---: |")
    for entry in (each for each in read_index(folder) if each.name in names):
        inputs = entry.inputs(entry.cases[0])
        runs = ways(entry.path, mirrored(inputs))
        wanted = runs["this, `float32`"](inputs)
        taken = dict(zip(runs, times(list(runs.values()), inputs), strict=True))
        for name, run in runs.items():
            own = taken[name.partition(",")[0] + ", `float32`"]
            error = max(distance(found, wanted[each]) for each, found in run(inputs).items())
            seconds = taken[name]
            print(f"| {entry.name} | {name} | {seconds * 1e3:.2f} | {seconds / own:.2f} | {error:.1e} |", flush=True)


def mirrored(inputs: Outputs) -> Outputs:
    """The mirror images of the images among the inputs, which may have the channels first or last."""
    return {
        name: np.ascontiguousarray(np.flip(array, -1 if array.shape[1] in (1, 3) else -2)) if array.ndim == 4 else array
        for name, array in inputs.items()
    }


def ways(path: Path, case: Outputs) -> dict[str, Run]:
    """The ways to run a model, by name."""
    made = {
        "this, `float32`": by_plan(path, compiler.Options()),
        "this, calibrated": by_plan(path, compiler.Options(precision="int8", calibration=[case])),
        "onnxruntime, `float32`": by_onnxruntime(path),
    }
    with tempfile.TemporaryDirectory() as place:
        try:
            made["onnxruntime, calibrated"] = by_onnxruntime(quantized(path, case, Path(place)))
        except Exception as error:  # its tools refuse some models with errors of several packages
            print(f"onnxruntime cannot quantize {path.name}: {error}", file=sys.stderr)
    return made


def quantized(path: Path, case: Outputs, place: Path) -> Path:
    """The model that onnxruntime quantizes, after a conversion to an opset with scales for each channel."""
    raised, folded, target = (place / f"{name}.onnx" for name in ("raised", "folded", "quantized"))
    model = onnx.load(path)
    version = next(each.version for each in model.opset_import if each.domain in ("", "ai.onnx"))
    if version < OPSET:
        model = onnx.version_converter.convert_version(model, OPSET)
    onnx.save(model, raised)
    quant_pre_process(raised, folded, skip_symbolic_shape=True)
    quantize_static(
        folded,
        target,
        Calibration(case),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
    )
    return target


if __name__ == "__main__":
    main()
