"""The peak memory of `candlec bisect` and `verify` for a model with large weights in another file.

    python -m tests.large_model 9 8192 bisect

makes a model of 9 products with weights of 8192 × 8192, 2.42 GB in all. The file of weights is nearly all holes, so it
takes no space on the disk. The program prints the peak of the command in bytes, above that for a model of a few bytes:
4.9 GB for `bisect`, and 4.7 GB for `verify`. Plans need space for the weights in the folder that TMPDIR names.
"""

from __future__ import annotations

import json
import struct
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from compiler import pipeline
from compiler.cli import main
from tests import broken_passes
from tests.process_memory import memory

FLOAT = 4
BROKEN = "merge_reshapes"
COMMANDS = {"verify": ["verify", "--layerwise"], "bisect": ["bisect", "-o"]}


def write_model(folder: Path, layers: int, side: int) -> Path:
    """A model of products with weights of `side` × `side`, each with a sum after it. All weights are different."""
    size = side * side * FLOAT
    with (folder / "weights.bin").open("wb") as file:
        for number in range(layers):
            file.seek(number * size)
            file.write(struct.pack("<f", number * 1e-6))
        file.truncate(layers * size)
    nodes, weights, last = [], [], "x"
    for number in range(layers):
        weight = TensorProto(name=f"w{number}", data_type=TensorProto.FLOAT, dims=[side, side])
        weight.data_location = TensorProto.EXTERNAL
        for key, value in {"location": "weights.bin", "offset": number * size, "length": size}.items():
            weight.external_data.add(key=key, value=str(value))
        weights += [weight, numpy_helper.from_array(np.full(side, number, np.float32), f"b{number}")]
        nodes.append(helper.make_node("MatMul", [last, f"w{number}"], [f"p{number}"], name=f"product{number}"))
        nodes.append(helper.make_node("Add", [f"p{number}", f"b{number}"], [f"s{number}"], name=f"shift{number}"))
        last = f"s{number}"
    nodes.append(helper.make_node("Softmax", [last], ["y"]))
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, side]) for name in "xy")
    graph = helper.make_graph(nodes, "large", [x], [y], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), folder / "m.onnx")
    return folder / "m.onnx"


def peak(command: str, layers: int, side: int) -> int:
    """The peak memory of this process after it ran a command on such a model, in bytes."""
    with tempfile.TemporaryDirectory() as folder:
        verb, *options = COMMANDS[command]
        to = [f"{folder}/part"] if "-o" in options else []
        with suppress(SystemExit):
            main([verb, str(write_model(Path(folder), layers, side)), *options, *to, "--threads", "2", "--json"])
    return memory("VmHWM")


def measure(layers: int, side: int, command: str) -> None:
    """Print the weights and the peak of a command above that for a small model, in bytes, as JSON."""
    broken_passes.let_pass_change_constants(pytest.MonkeyPatch(), BROKEN)
    before = peak(command, 2, 8)
    found = {"weights": layers * side * side * FLOAT, "peak": peak(command, layers, side) - before}
    print(json.dumps({"command": command, **found}))


if __name__ == "__main__":
    if "--large" in sys.argv:  # the number of bytes from which the compiler counts a model as large
        pipeline.LARGE = int(sys.argv.pop(sys.argv.index("--large") + 1))
        sys.argv.remove("--large")
    measure(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
