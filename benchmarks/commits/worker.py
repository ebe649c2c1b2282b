"""The worker of `benchmarks.commits`: compiles a model with the compiler of one checkout, and times its plan.

Each line of the standard input is a request, and each line of the standard output its answer, both in JSON:

- `{"model": FILE, "case": FILE, "threads": N, "processors": [0]}` loads a model → `{"compiler": FOLDER}`
- `{"seconds": 0.01}` runs the plan at least once, and until so many seconds have passed → `{"milliseconds": [1.5, …]}`

`{"error": TEXT}` is the answer to a request that fails. The checkout may be older than this file, which therefore uses
only names of the compiler that exist since the first commits: `compile`, `Options.dims`, `load` and `Session.run`.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

RUNS = Path(__file__).parent.parent.parent / "compiler/bench/runs.py"
"""The code that times runs, which imports nothing: both checkouts use that of this one."""

Run = Callable[[], Any]


def main() -> None:
    """Answers the requests until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the compiler prints is no answer
    timed_runs = runpy.run_path(str(RUNS))["timed_runs"]
    run: Run | None = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "model" in request:
                run, answer = loaded(request)
            elif run is None:
                raise ValueError("no model is loaded")
            else:
                answer = {"milliseconds": timed_runs(run, request["seconds"])}
        except Exception as error:  # the answer holds any error
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


def loaded(request: dict[str, Any]) -> tuple[Run, dict[str, Any]]:
    """The function that runs a model's plan on a case, after a first run; and the answer."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, request["processors"])  # before the runtime starts threads
    import numpy as np

    import compiler

    with np.load(request["case"]) as arrays:
        inputs = {name: array.astype(object) if array.dtype.kind in "US" else array for name, array in arrays.items()}
    dims = sizes(request["model"], inputs)
    plan = compiler.compile(request["model"], compiler.Options(dims=dims))
    session = compiler.load(plan, threads=request["threads"])
    session.run(inputs)
    return lambda: session.run(inputs), {"compiler": str(Path(compiler.__file__).parent.parent)}


def sizes(model: str, inputs: dict[str, Any]) -> dict[str, int]:
    """The sizes that the inputs give to the model's symbolic dimensions.

    The compiler names a dimension after its input and axis if it has no name, or one without letters and digits.
    """
    import onnx

    proto = onnx.load(model, load_external_data=False)
    shapes = {each.name: each.type.tensor_type.shape.dim for each in proto.graph.input if each.name in inputs}
    return {
        dim.dim_param if any(map(str.isalnum, dim.dim_param)) else f"{name}.{axis}": inputs[name].shape[axis]
        for name, dims in shapes.items()
        for axis, dim in enumerate(dims)
        if not dim.HasField("dim_value") or dim.dim_value < 0
    }


if __name__ == "__main__":
    main()
