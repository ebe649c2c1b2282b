"""The backend of `torch.compile`.

Dynamo passes each graph of a program to `candle`. AOTAutograd makes a graph of ATen operators of it that changes no
tensor: it returns new values of changed inputs, and copies them afterwards. A `Runner` runs this graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.symbolic_convert import InstructionTranslator

from compiler.dynamo.choices import Choices
from compiler.dynamo.decompositions import decompositions
from compiler.dynamo.refusal import RefusedGraph, warn
from compiler.dynamo.runner import Runner

__all__ = ["candle"]

_TRAINING = (
    "its outputs need gradients, and plans support inference only: call the module under torch.no_grad() or "
    "torch.inference_mode()"
)


def candle(
    graph: torch.fx.GraphModule,
    inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> Callable[..., Any]:
    """A function that computes the graph of dynamo with a plan.

    The function takes the graph's inputs and returns a tuple of its outputs. `options` are those of `Choices`. `name`
    is PyTorch's name of the compilation. If the backend refuses the graph, the function runs it with PyTorch, or raises
    the reason (`Choices.fallback`).

    Raises:
        TypeError, ValueError: an option is unknown or wrong, or there is a `mode`.
    """
    choices = Choices.read(options, _is_full_graph())
    if mode is not None:
        raise ValueError(f'the backend "candle" has no modes, found mode={mode!r}: leave it out')
    runners: list[Runner] = []

    def infer(functional: torch.fx.GraphModule, _: Sequence[Any]) -> Runner:
        runners.append(Runner(functional, _constants() if choices.freeze else (), choices))
        return runners[-1]

    def train(_: torch.fx.GraphModule, __: Sequence[Any]) -> Callable[..., Any]:
        raise RefusedGraph(_TRAINING)

    compiling = aot_autograd(fw_compiler=train, inference_compiler=infer, decompositions=decompositions())
    try:
        compiled: Callable[..., Any] = compiling(graph, list(inputs))
    except RefusedGraph as error:
        return _refused(graph, error, choices)
    for runner in runners:  # AOTAutograd has left its tracing modes here
        runner.translate()
    return compiled


def _refused(graph: torch.fx.GraphModule, error: RefusedGraph, choices: Choices) -> Callable[..., Any]:
    if choices.fallback:
        warn(error)
        forward: Callable[..., Any] = graph.forward
        return forward

    def fail(*_: Any) -> Any:
        raise error

    return fail


def _is_full_graph() -> bool:
    """Whether dynamo compiles for `torch.compile(…, fullgraph=True)`. PyTorch has no public function for this."""
    try:
        return bool(InstructionTranslator.current_tx().one_graph)
    except AttributeError:  # dynamo does not compile in this thread, or this version of PyTorch has other names
        return False


def _constants() -> tuple[int, ...]:
    """The positions of parameters and buffers among the inputs of the graph, without those that the graph changes."""
    context = torch._guards.TracingContext.try_get()
    metadata = None if context is None else context.fw_metadata
    if metadata is None:
        return ()
    return tuple(sorted({*metadata.static_input_indices} - {*metadata.mutated_inp_runtime_indices}))
