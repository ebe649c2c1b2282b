"""The options for states, and runs that hand on a state."""

from __future__ import annotations

import ast
import operator
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from compiler.cli.input_options import Given
from compiler.cli.output import table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from compiler import Plan, Session, TensorInfo
    from compiler.plan.plan import StateInfo
    from compiler.plan.state import Asked
    from compiler.runtime.state import State

__all__ = ["Runs", "show_state", "state_option", "with_state"]

_OPERATIONS: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}


def state_option(help_text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The option `--state`, as the parameter `asked`: "auto", patterns by name, or `None`."""
    return click.option("--state", "asked", multiple=True, metavar="auto|OUT=IN", callback=_asked, help=help_text)


def _asked(_context: click.Context, _parameter: click.Parameter, values: Sequence[str]) -> Asked | None:
    """`("present.*=past.*",)` → `{"present.*": "past.*"}`."""
    if "auto" in values and len(values) > 1:
        raise click.BadParameter("'auto' finds the pairs: give no others")
    if "auto" in values:
        return "auto"
    asked: dict[str, str] = {}
    for value in values:
        output, sign, given = value.partition("=")
        if not sign or output.count("*") != given.count("*"):
            raise click.BadParameter(f"{value!r} is neither auto nor OUTPUT=INPUT, with as many stars in both names")
        asked[output] = given
    return asked or None


def with_state(path: Path, asked: Asked | None) -> Plan | Path:
    """The plan of a file with the pairs that the caller asks for; the path itself if the caller asks for none."""
    if asked is None:
        return path
    from compiler import Plan
    from compiler.plan.state import add_state

    return add_state(Plan.load(path), asked)


def show_state(pairs: Sequence[StateInfo]) -> None:
    """Print the pairs of a plan's state."""
    rows = [(pair.output, pair.input, "" if pair.axis is None else str(pair.axis)) for pair in pairs]
    if rows:
        table(("state: output", "input of the next run", ">axis that grows"), rows)


class Runs:
    """Runs of a session one after the other, each with the state that the run before it left.

    Without files, each run has new random inputs. Their shapes follow the size of the state.
    """

    def __init__(self, session: Session, steps: int, given: Given) -> None:
        if not session.state:
            advice = "add --state auto, or name the pairs: --state 'present.*=past.*'"
            raise click.UsageError(f"--steps needs a plan with a state: {advice}")
        self.session, self.steps, self.seed, self.seconds = session, steps, given.seed, 0.0
        held = {pair.input for pair in session.state}
        self.declared = [info for info in session.inputs if info.name not in held]
        self.arrays: dict[str, Any] | None = None
        initial = {}
        if not given.is_random:
            self.arrays = given.arrays(session.inputs)
            initial = {name: self.arrays.pop(name) for name in sorted(held) if name in self.arrays}
        symbols = {dim for info in self.declared for dim in info.shape or () if isinstance(dim, str)}
        self.sizes = {name: size for name, size in given.sizes.items() if name in symbols}
        of_state = {name: size for name, size in given.sizes.items() if name not in symbols}
        try:
            self.state: State = session.new_state(initial, sizes={**_free_sizes(session, symbols), **of_state})
        except ValueError as error:
            raise click.UsageError(str(error)) from None

    def run(self, timeout: float | None) -> dict[str, Any]:
        """The outputs of the last run. Adds up the times of the runs."""
        outputs: dict[str, Any] = {}
        for step in range(self.steps):
            inputs = self._inputs(step)
            start = time.perf_counter()
            outputs = self.session.run(inputs, timeout=timeout, state=self.state)
            self.seconds += time.perf_counter() - start
        return outputs

    def facts(self) -> dict[str, Any]:
        """The number of runs and the size of the state, for JSON."""
        return {"steps": self.steps, "state": {"bytes": self.state.nbytes, "length": self.state.length}}

    def __str__(self) -> str:
        length = "" if self.state.length is None else f" and length {self.state.length}"
        each = f"{1e3 * self.seconds / self.steps:.2f} ms"
        return f"{self.steps} runs of {each}, then a state of {self.state.nbytes} bytes{length},"

    def _inputs(self, step: int) -> dict[str, Any]:
        """The inputs of a run."""
        if self.arrays is not None:
            return self.arrays
        declared = _sized(self.declared, {**self._length(), **self.sizes})
        if step == 0:
            return Given(seed=self.seed).arrays(declared)
        from compiler.accuracy.random_inputs import random_inputs

        return random_inputs(declared, {}, self.seed + step)

    def _length(self) -> dict[str, int]:
        """The size of the state, by the symbols of the dimensions that grow."""
        shapes = {info.name: info.shape or () for info in self.session.inputs}
        dims = [shapes[pair.input][pair.axis] for pair in self.session.state if pair.axis is not None]
        return {dim: self.state.length or 0 for dim in dims if isinstance(dim, str)}


def _free_sizes(session: Session, symbols: set[str]) -> dict[str, int]:
    """Size 1 for each dimension of the state that is unknown and that the inputs of a run do not decide."""
    shapes = {info.name: info.shape or () for info in session.inputs}
    sizes = {}
    for pair in session.state:
        for axis, dim in enumerate(shapes[pair.input]):
            if axis != pair.axis and not isinstance(dim, int) and dim not in symbols:
                sizes[f"{pair.input}.{axis}"] = 1
    return sizes


def _sized(declared: Sequence[TensorInfo], known: Mapping[str, int]) -> list[TensorInfo]:
    """Inputs with sizes instead of symbols and of expressions of symbols. A symbol that is not known gets a size."""
    from compiler.accuracy.random_inputs import BATCH, OTHER

    sizes = dict(known)
    for info in declared:
        for axis, dim in enumerate(info.shape or ()):
            if isinstance(dim, str) and dim.isidentifier():
                sizes.setdefault(dim, OTHER if axis else BATCH)
    return [
        info if info.shape is None else replace(info, shape=tuple(_evaluated(dim, sizes) for dim in info.shape))
        for info in declared
    ]


def _evaluated(dim: int | str | None, sizes: Mapping[str, int]) -> int | str | None:
    """The size of a dimension that is an expression of known symbols, such as `past + 1`; any other one itself."""
    if not isinstance(dim, str):
        return dim
    if dim in sizes:
        return sizes[dim]
    try:
        return max(0, _value(ast.parse(dim, mode="eval").body, sizes))
    except (SyntaxError, KeyError, ValueError):
        return dim


def _value(node: ast.expr, sizes: Mapping[str, int]) -> int:
    """The value of an expression.

    Raises:
        KeyError: it has another symbol, or another operation.
        ValueError: it has a constant that is no number.
    """
    if isinstance(node, ast.Name):
        return sizes[node.id]
    if isinstance(node, ast.Constant):
        return int(node.value)  # type: ignore[arg-type]
    if isinstance(node, ast.BinOp):
        return _OPERATIONS[type(node.op)](_value(node.left, sizes), _value(node.right, sizes))
    raise KeyError(type(node))
