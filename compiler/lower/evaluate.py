"""Runs nodes at compile time, in the runtime, so that constants have the values that a run would compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir

from compiler import _runtime
from compiler.errors import CompileError, DeviceError, Diagnostic, RunError
from compiler.lower.lower import lower_nodes
from compiler.plan.write import write

__all__ = ["evaluate"]


def evaluate(nodes: Sequence[ir.Node], results: Sequence[ir.Value], opsets: Mapping[str, int]) -> list[np.ndarray]:
    """The values of `results` after running the nodes, whose inputs are constants or results of earlier nodes.

    Raises:
        CompileError: a node cannot be lowered, or its run fails.
        DeviceError: the processor lacks the instruction set that the environment variable `CANDLE_PLAN_ISA` names.
    """
    block, pool = lower_nodes(nodes, results, opsets)
    try:
        outputs = _runtime.Session(b"".join(write(block, pool)), "cpu", 1).run({})
        assert outputs is not None  # as always for a block without inputs
    except _runtime.PlanError as error:
        raise CompileError([Diagnostic("CC0401", message) for message in error.args[0]]) from None
    except _runtime.RunError as error:
        raise CompileError([Diagnostic("CC0401", RunError(*error.args).message)]) from None
    except _runtime.DeviceError as error:
        raise DeviceError(error.args[0], error.kind) from None
    return list(outputs.values())
