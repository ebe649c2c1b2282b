"""The state of a plan: pairs of an output and the input that takes its value in the next run.

`Options.state` names the pairs, or asks for those whose names exporters write (`compiler.plan.state_names`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from compiler.errors import CompileError, Diagnostic, did_you_mean
from compiler.ir.symbols import shown
from compiler.plan import ops
from compiler.plan.decode import type_from
from compiler.plan.plan import Plan
from compiler.plan.state_names import joined
from compiler.plan.types import described
from compiler.plan.write import with_state

__all__ = ["Asked", "add_state", "pairs"]

Asked = Literal["auto"] | Mapping[str, str]
"""What `Options.state` asks for."""

_WORDS = re.compile(r"[A-Za-z_]\w*")
"""The symbols in a dimension, which may be an expression."""
_TERM = re.compile(r"(\d+)|(?:(\d+)\*)?[A-Za-z_]\w*", re.ASCII)
"""A term of an expression that grows with its symbol: `4`, `past` or `2*past`."""
_INVENTED = re.compile(r"_d\d+")
"""A symbol that the compiler made for a size about which it knows nothing."""


class Port(NamedTuple):
    """An input or output of a plan: its index among the values of the main block, its name and its type."""

    value: int
    name: str
    kind: ops.AnyType
    branches: Sequence[ops.AnyType] = ()
    """Its types in the branches of the `If` that makes it, as in a decoder that chooses whether to read a cache."""
    cache: int | None = None
    """The value after whose rows a step appends others to make it."""


_Branches = Iterable[tuple[Sequence[int | None], Sequence[ops.AnyType]]]
"""For each branch of each `If`: the indices of the outputs of the `If`, and their types in the branch."""


class _Misfit(Exception):
    """The reason why an output cannot be an input of the next run."""


def pairs(block: ops.Block, asked: Asked) -> list[ops.StatePair]:
    """The pairs of a plan with this main block.

    Raises:
        CompileError: an output or input does not exist, or does not fit the other (CC0406).
    """
    branches = [
        (step.outputs, [inner.values[value].type for value in inner.outputs])
        for step in block.steps
        if isinstance(step.op, ops.If)
        for inner in (step.op.then_branch, step.op.else_branch)
    ]
    caches = [(step.outputs, step.inputs) for step in block.steps if isinstance(step.op, ops.AppendRows)]
    values = {value: block.values[value] for value in (*block.inputs, *block.outputs)}
    ports = _ports({value: (info.name, info.type) for value, info in values.items()}, branches, caches)
    return _pairs([ports[value] for value in block.inputs], [ports[value] for value in block.outputs], asked)


def add_state(plan: Plan, asked: Asked) -> Plan:
    """The plan with these pairs as its state.

    Raises:
        CompileError: as `pairs`.
    """
    main: dict[str, Any] = plan.document["main"]
    branches = [
        (step["outputs"], [type_from(inner["values"][value]["type"]) for value in inner["outputs"]])
        for step in main["steps"]
        for inner in step["op"].get("If", {}).values()
    ]
    caches = [(step["outputs"], step["inputs"]) for step in main["steps"] if "AppendRows" in step["op"]]
    values = {value: main["values"][value] for value in (*main["inputs"], *main["outputs"])}
    named = {value: (info["name"], type_from(info["type"])) for value, info in values.items()}
    ports = _ports(named, branches, caches)
    found = _pairs([ports[value] for value in main["inputs"]], [ports[value] for value in main["outputs"]], asked)
    return Plan(with_state(plan.data, found))


def _ports(
    values: Mapping[int, tuple[str, ops.AnyType]],
    branches: _Branches,
    caches: Iterable[tuple[Sequence[int | None], Sequence[int | None]]],
) -> dict[int, Port]:
    """The inputs and outputs with these indices, names and types.

    `caches` are the outputs and inputs of the steps AppendRows.
    """
    extended = {made[0]: given[0] for made, given in caches}
    kinds: dict[int | None, list[ops.AnyType]] = {}
    for made, types in branches:
        for index, kind in zip(made, types, strict=True):
            kinds.setdefault(index, []).append(kind)
    return {value: Port(value, *named, kinds.get(value, ()), extended.get(value)) for value, named in values.items()}


def _pairs(inputs: Sequence[Port], outputs: Sequence[Port], asked: Asked) -> list[ops.StatePair]:
    wrong: list[str] = []
    names = [port.name for port in inputs], [port.name for port in outputs]
    found = list(joined(*names)) if asked == "auto" else list(_named(*names, asked, wrong))
    if asked == "auto" and not found:
        wrong.append(f"none of the outputs ({_listed(outputs)}) has a name that fits an input ({_listed(inputs)})")
    taken = {name for _, name in found}
    shared = _symbols(port for port in inputs if port.name not in taken)
    made = []
    for output, given in found:
        source, target = _port(outputs, output), _port(inputs, given)
        if asked == "auto" and _emptied(source, target) is not None:
            continue  # the run that makes these values returns them, and the program passes them to the other runs
        try:
            made.append(ops.StatePair(input=target.value, output=source.value, axis=_axis(source, target, shared)))
        except _Misfit as reason:
            wrong.append(f"the output {output!r} cannot be the input {given!r} of the next run: {reason}")
    for role, values in (("output", [pair[0] for pair in found]), ("input", [pair[1] for pair in found])):
        wrong += [f"the {role} {name!r} is in two pairs of the state" for name in _repeated(values)]
    if wrong:
        raise CompileError([Diagnostic("CC0406", message) for message in wrong])
    return sorted(made, key=lambda pair: pair.input)


def _named(
    inputs: Sequence[str], outputs: Sequence[str], asked: Mapping[str, str], wrong: list[str]
) -> Iterable[tuple[str, str]]:
    """The outputs and inputs that fit the patterns. `wrong` gets a sentence for each name that does not exist."""
    for source, target in asked.items():
        pattern = re.compile("(.*)".join(map(re.escape, source.split("*"))), re.DOTALL)
        found = [(name, match) for name in outputs if (match := pattern.fullmatch(name))]
        if not found:
            wrong.append(f"the state: there is no output {source!r}{_question(source, outputs)}")
        for output, match in found:
            texts = [*match.groups(), ""]
            given = "".join(part + text for part, text in zip(target.split("*"), texts, strict=True))
            if given in inputs:
                yield output, given
            else:
                wrong.append(f"the state: there is no input {given!r} for {output!r}{_question(given, inputs)}")


def _question(name: str, names: Iterable[str]) -> str:
    question = did_you_mean(name, names)
    return question and f": {question}"


def _axis(output: Port, given: Port, shared: set[str]) -> int | None:
    """The axis along which a value grows from run to run; `None` if there is no such axis, or it is not known.

    `shared` are the symbols of inputs that the state does not hold, such as that of the batch. They do not grow.

    Raises:
        _Misfit: the output cannot be the input of the next run.
    """
    emptied = _emptied(output, given)
    if emptied is not None:
        raise _Misfit(f"a branch of an If always makes it empty, along dimension {emptied}")
    kinds = output.branches or (output.kind,)
    found = [_axes(output._replace(kind=kind), given, shared) for kind in kinds]
    certain, likely = ({axis for axes in kind for axis in axes} for kind in zip(*found, strict=True))
    shape = _shape(given.kind)
    if output.cache == given.value and len(shape) > 2:
        return None if isinstance(shape[-2], int) else len(shape) - 2
    candidates = certain or likely
    return candidates.pop() if len(candidates) == 1 else None


def _axes(output: Port, given: Port, shared: set[str]) -> tuple[list[int], list[int]]:
    """The axes along which a value of the output's type certainly grows, and those along which it may grow.

    Raises:
        _Misfit: as `_axis`.
    """
    source, target = _tensor(output), _tensor(given)
    if source.dtype != target.dtype:
        raise _Misfit(f"it is {source.dtype}, and not {target.dtype}")
    if source.shape is None or target.shape is None:
        return [], []
    if len(source.shape) != len(target.shape):
        raise _Misfit(f"it is {described(output.kind)}, and not {described(given.kind)}")
    dims = list(zip(source.shape, target.shape, strict=True))
    for axis, (new, old) in enumerate(dims):
        if isinstance(new, int) and isinstance(old, int) and new != old:
            raise _Misfit(f"its dimension {axis} has size {new}, and not {old}; keep the symbol of a size that grows")
        if isinstance(new, str) and isinstance(old, int) and _least(new) > old:
            advice = f"that of {given.name!r} is always {old}; keep the symbol of a size that grows"
            raise _Misfit(f"its dimension {axis} has size {shown(new)}, but {advice}")
    named = [
        (axis, {*_WORDS.findall(new)}, {*_WORDS.findall(old)})
        for axis, (new, old) in enumerate(dims)
        if isinstance(new, str) and isinstance(old, str) and new != old and old not in shared
    ]
    certain = [axis for axis, new, old in named if new & old]  # as `past + 1` and `past`
    return certain, [axis for axis, new, _ in named if not any(map(_INVENTED.fullmatch, new))]


def _emptied(output: Port, given: Port) -> int | None:
    """The dimension along which a branch of an `If` makes an output empty, but the input that takes it need not be.

    Decoders that Optimum merges have such outputs for the caches of an encoder, in the branch that reads these caches.
    """
    shapes = [_shape(kind) for kind in (given.kind, *output.branches)]
    sizes = [zip(shape, shapes[0], strict=False) for shape in shapes[1:]]
    found = (axis for dims in sizes for axis, (new, old) in enumerate(dims) if new == 0 and old != 0)
    return next(found, None)


def _shape(kind: ops.AnyType) -> Sequence[int | str | None]:
    return (kind.value.shape or ()) if isinstance(kind, ops.Type.Tensor) else ()


def _least(expression: str) -> int:
    """A lower bound of a dimension whose symbols are at least 1: 5 for `past + 4`."""
    terms = [_TERM.fullmatch(term.strip()) for term in expression.split("+")]
    return sum(int(term[1] or term[2] or 1) for term in terms if term) if all(terms) else 0


def _tensor(port: Port) -> ops.TensorType:
    if not isinstance(port.kind, ops.Type.Tensor) or port.kind.value.dtype == "string":
        raise _Misfit(f"{port.name!r} is {described(port.kind)}, and not a tensor of numbers")
    return port.kind.value


def _symbols(ports: Iterable[Port]) -> set[str]:
    """The plain symbols among the dimensions of inputs."""
    tensors = [port.kind.value for port in ports if isinstance(port.kind, ops.Type.Tensor)]
    return {dim for tensor in tensors for dim in tensor.shape or () if isinstance(dim, str)}


def _port(ports: Sequence[Port], name: str) -> Port:
    return next(port for port in ports if port.name == name)


def _listed(ports: Sequence[Port]) -> str:
    return ", ".join(port.name for port in ports) or "none"


def _repeated(names: Sequence[str]) -> list[str]:
    return [name for name in dict.fromkeys(names) if names.count(name) > 1]
