"""The first value of a recorded model (TorchScript) that differs from the module's.

TorchScript keeps no graph of PyTorch's operators. The search therefore records the module once more, with the value of
each call of a function of PyTorch as one more output. It runs the module and the plan of this model, and compares these
values in the order in which the module computes them. The compiler optimizes nothing in this plan.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode, resolve_name

from compiler.accuracy.compare import compare
from compiler.accuracy.module_runs import Call, array, leaves
from compiler.accuracy.verify import random_outputs
from compiler.errors import CompileError, InputError, RunError
from compiler.frontend.export_arguments import leaf_names
from compiler.frontend.export_reasons import line_of, titled
from compiler.frontend.module_state import evaluating
from compiler.frontend.scripted import record
from compiler.frontend.source_lines import is_own
from compiler.options import Options
from compiler.pipeline import compile
from compiler.runtime.session import load

if TYPE_CHECKING:
    from compiler.frontend.export_request import Exported

__all__ = ["place_in_recorded"]

_EQUAL = "no value differs in the plan without optimization: `candlec bisect {path}` finds the pass that causes it"


@dataclass(frozen=True)
class Tap:
    """A call of a function of PyTorch: the module and the line of Python that make it."""

    module: str
    line: str
    function: str

    def __str__(self) -> str:
        return ", ".join(part for part in (self.module, self.line) if part)


class _Log:
    """The calls of a run, and their values."""

    def __init__(self) -> None:
        self.taps: list[Tap] = []
        self.values: list[torch.Tensor] = []


class _Recorder(TorchFunctionMode):  # type: ignore[misc]
    """Adds each tensor that a function returns to a log."""

    def __init__(self, module: torch.nn.Module, log: _Log) -> None:
        super().__init__()
        self.names = {id(part): name for name, part in module.named_modules()}
        self.log = log

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        value = function(*args, **(kwargs or {}))
        for leaf in leaves(value):
            # While PyTorch records, sizes are tensors too: integers without a dim.
            if isinstance(leaf, torch.Tensor) and (leaf.dim() or leaf.is_floating_point()):
                self.log.taps.append(self._tap(function))
                self.log.values.append(leaf.clone())
        return value

    def _tap(self, function: Callable[..., Any]) -> Tap:
        """The innermost frame of the user's code, and the innermost module among the frames around it."""
        name, line = resolve_name(function) or getattr(function, "__name__", ""), ""
        frame: FrameType | None = sys._getframe(2)
        while frame is not None:
            code, owner = frame.f_code, frame.f_locals.get("self")
            if not line and is_own(code.co_filename):
                line = line_of(code.co_filename, frame.f_lineno, code.co_name, owner)
            if line and isinstance(owner, torch.nn.Module) and id(owner) in self.names:
                return Tap(titled(self.names[id(owner)], type(owner).__name__), line, name)
            frame = frame.f_back
        return Tap("", line, name)


class _Tapped(torch.nn.Module):  # type: ignore[misc]
    """A module that returns the values of the calls of functions that another module makes."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.module, self.log = module, _Log()

    def forward(self, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, ...]:
        """The values, in order."""
        self.log.taps, self.log.values = [], []
        with _Recorder(self.module, self.log):
            self.module(*args, **kwargs)
        return tuple(self.log.values)


def place_in_recorded(exported: Exported, call: Call) -> str:
    """A sentence that names the first module whose value differs, its class and line of Python, and the function."""
    request, tapped = exported.request, _Tapped(exported.request.module)
    names = leaf_names(request.module, request.args, request.kwargs)
    try:
        with evaluating(request.module):
            recorded = record(tapped, request.args, request.kwargs, names, exported.axes, request.opset)
        known = tapped.log.taps
        plan = compile(recorded.model, Options(optimize=False))
        wanted = Call(tapped, call.args, call.kwargs).run()
        taken = {value.name for value in recorded.model.graph.inputs}
        found = load(plan).run(call.inputs([name if name in taken else None for name in names]))
    except CompileError as error:
        return f"cannot locate it: without optimization, the compiler refuses the model: {error.diagnostics[0].message}"
    except (InputError, RunError) as error:
        return f"the model fails before a value differs: {error}"
    except Exception as error:  # PyTorch's exceptions have many classes
        return f"cannot locate it: PyTorch cannot record the module's values: {type(error).__name__}: {error}"
    random = random_outputs(plan)
    ways = zip(known, tapped.log.taps, strict=False)
    same = next((at for at, (one, other) in enumerate(ways) if one != other), min(len(known), len(wanted)))
    for at, (name, value) in enumerate(found.items()):
        if at < same and name not in random:
            worst = compare({name: array(wanted[at])}, {name: value}).outputs[0]
            if not worst.ok:
                size = worst.problem or f"{worst.max_abs:.2g}, allowed {worst.allowed:.2g}"
                return f"the first module that differs is {known[at]}, in {known[at].function} ({size})"
    if same < max(len(known), len(wanted)):
        last = f" after {known[same - 1]}" if same else ""
        return f"the module takes another way through its Python code with these arguments{last}"
    return _EQUAL.format(path=exported.path)
