"""Plans of `torch.export.ExportedProgram` compute what the program's module computes, or the compiler refuses it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import compiler

torch = pytest.importorskip("torch", reason="needs PyTorch")

TOLERANCES = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 2e-2}
"""The relative and absolute difference that an output of each dtype may have. Other dtypes are equal."""

BATCH, LENGTH = torch.export.Dim("batch", max=64), torch.export.Dim("length", max=64)


@dataclass(frozen=True)
class Program:
    """A module, the arguments of its export, and arguments of other sizes."""

    forward: Callable[..., Any]
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    dims: Any = None
    others: Sequence[Sequence[Any]] = ()
    attributes: Callable[[], Mapping[str, Any]] = dict
    """The parameters, buffers and modules that `forward` finds in its first argument."""
    evaluated: bool = True


class Module(torch.nn.Module):  # type: ignore[misc]
    """A module with the function and the attributes of a program."""

    def __init__(self, program: Program) -> None:
        super().__init__()
        self._forward = program.forward
        for name, value in program.attributes().items():
            is_buffer = isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter)
            if is_buffer:
                self.register_buffer(name, value, persistent=not name.startswith("temporary"))
            else:
                setattr(self, name, value)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._forward(self, *args, **kwargs)


def numbers(*shape: int, dtype: Any = torch.float32, seed: int = 0) -> Any:
    generator = torch.Generator().manual_seed(seed)
    if dtype.is_floating_point:
        return torch.randn(shape, generator=generator).to(dtype)
    low, high = (0, 2) if dtype == torch.bool else (0 if dtype == torch.uint8 else -9, 9)
    return torch.randint(low, high, shape, generator=generator).to(dtype)


def weights() -> dict[str, Any]:
    torch.manual_seed(0)
    return {"linear": torch.nn.Linear(4, 3), "norm": torch.nn.BatchNorm1d(3)}


def of_dtype(dtype: Any) -> Program:
    def forward(_: Any, x: Any, y: Any) -> Any:
        if dtype == torch.bool:
            return x & y, x | ~y, x ^ y, x.any(), x.all(0), x.sum(), x.to(torch.float32)
        if dtype.is_floating_point:
            return x + 2 * y, x @ y.T, x.mean(-1), x.softmax(0), x > y, x.argmax(-1), x.to(torch.int32)
        most = y.abs() + 1
        return x + 2 * y, x // most, x % most, x.sum(), x > y, x.argmax(-1), x / most, x.to(torch.float64)

    return Program(forward, (numbers(3, 4, dtype=dtype), numbers(3, 4, dtype=dtype, seed=1)))


def changed_in_place(_: Any, x: Any) -> Any:
    y = x.clone()
    y.add_(1)
    y[:, 0] = 7
    y[1:] *= 2
    z = y.view(-1)
    z[2] = -5
    return y, z


def branched(_: Any, x: Any) -> Any:
    return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos() - 2, (x,))


def optional(_: Any, x: Any, y: Any = None, z: Any = None) -> Any:
    return x if y is None else x - y, None, (z or x) if z is None else x * z


def of_sizes(_: Any, x: Any) -> Any:
    return x.reshape(x.shape[0] * x.shape[1], -1), x.new_zeros(x.shape[0] + 1), x.sum() / x.shape[1], x.shape[0]


PROGRAMS: dict[str, Program] = {
    **{
        f"dtype {str(dtype).removeprefix('torch.')}": of_dtype(dtype)
        for dtype in (
            torch.float64,
            torch.float32,
            torch.float16,
            torch.bfloat16,
            torch.int64,
            torch.int32,
            torch.int16,
            torch.int8,
            torch.uint8,
            torch.bool,
        )
    },
    "mixed dtypes": Program(
        lambda _, x, y: (x + y, x * 2.5, y / 2, y * 2.5, x.double() @ y.double().T, (x > y).sum(-1)),
        (numbers(3, 4), numbers(3, 4, dtype=torch.int32)),
    ),
    "promotions of scalars": Program(
        lambda _, x, y: (x + y, x * y, torch.where(x > 0, x, y), x.clamp(max=1)),
        (numbers(3, dtype=torch.float16), torch.tensor(2.0, dtype=torch.float64)),
    ),
    "a batch": Program(
        lambda self, x: self.norm(self.linear(x)).relu(),
        (numbers(5, 4),),
        dims=({0: BATCH},),
        others=[(numbers(1, 4),), (numbers(9, 4),)],
        attributes=weights,
    ),
    "two dims": Program(
        of_sizes,
        (numbers(3, 5, 2),),
        dims=({0: BATCH, 1: LENGTH},),
        others=[(numbers(7, 2, 2),), (numbers(2, 9, 2),)],
    ),
    "dims of several inputs": Program(
        lambda _, x, y: (torch.cat([x, y]), x[: y.shape[0]], y.sum(0).expand(x.shape[0], -1)),
        (numbers(5, 2), numbers(3, 2)),
        dims=({0: 2 * BATCH + 1}, {0: LENGTH}),
        others=[(numbers(9, 2), numbers(4, 2))],
    ),
    "no elements": Program(
        lambda _, x: (x.sum(0), torch.cat([x, x.new_ones(1, 3)])),
        (numbers(4, 3),),
        dims=({0: torch.export.Dim.AUTO},),
        others=[(numbers(0, 3),), (numbers(2, 3),)],
    ),
    "buffers that are read": Program(
        lambda self, x: (x + self.table[1], self.temporary * x, self.table),
        (numbers(3),),
        attributes=lambda: {"table": numbers(2, 3, seed=2), "temporary": numbers(3, seed=3)},
    ),
    "lifted constants": Program(
        lambda _, x: (x * torch.tensor([1.0, 2.0, 3.0]), x + torch.tensor(4), torch.arange(3) + x, torch.tensor(5)),
        (numbers(3),),
    ),
    "a weight used twice": Program(
        lambda self, x: (self.linear(x), x @ self.linear.weight.T, self.linear.weight),
        (numbers(2, 4),),
        attributes=weights,
    ),
    "inputs as outputs": Program(lambda _, x, y: (y, x, x + y, x, y.T), (numbers(2, 3), numbers(2, 3, seed=1))),
    "one output twice": Program(lambda _, x: (lambda y: (y, y, y.view(-1)))(x.sin()), (numbers(2, 3),)),
    "keywords": Program(
        lambda _, x, *, scale, shift: x * scale - shift,
        (numbers(2, 3),),
        {"shift": numbers(3, seed=1), "scale": numbers(2, 1, seed=2)},
    ),
    "optional inputs": Program(optional, (numbers(3),), {"z": numbers(3, seed=1)}),
    "numbers as inputs": Program(lambda _, x, n, f, flag: x * n + f if flag else x, (numbers(3), 3, 0.5, True)),
    "nested inputs": Program(
        lambda _, pair, named: (pair[0] - named["b"][0], pair[1] * named["a"]),
        ((numbers(3), numbers(3, seed=1)), {"b": [numbers(3, seed=2)], "a": numbers(3, seed=3)}),
    ),
    "nested outputs": Program(lambda _, x: {"b": [x + 1, (x + 2, None)], "a": {"c": x + 3}, "x": x}, (numbers(3),)),
    "changes of temporary values": Program(changed_in_place, (numbers(3, 4),)),
    "a scalar": Program(lambda _, x: (x * 2, x.reshape(1)), (torch.tensor(3.5),)),
    "views": Program(
        lambda _, x: (x.T, x.expand(2, 3, 4), x[:, ::2], x.flip(1), x.unfold(1, 2, 1), x[1, 2], x.T.contiguous()),
        (numbers(3, 4),),
    ),
    "inputs that are not contiguous": Program(lambda _, x: (x.reshape(-1), x.sum(0)), (numbers(4, 3).T,)),
    "indices": Program(
        lambda _, x, at: (x[at], x.gather(1, at[:, None]), x.index_select(1, at), x[at > 0]),
        (numbers(3, 4), torch.tensor([2, 0, 1])),
    ),
    "a branch": Program(branched, (numbers(3, seed=5),), others=[(-numbers(3, seed=5),)]),
    "dropout": Program(
        lambda self, x: self.dropout(x), (numbers(9),), attributes=lambda: {"dropout": torch.nn.Dropout()}
    ),
}


def counted(self: Any, x: Any) -> Any:
    self.count.add_(1)
    return x * self.count


def shifted(self: Any, x: Any) -> Any:
    before = self.past.clone()
    self.past.copy_(torch.cat([self.past[1:], x[None]]))
    return before.sum(0) + x


def doubled(_: Any, x: Any, y: Any) -> Any:
    x.mul_(2)
    return x + y


REFUSED: dict[str, tuple[Program, str]] = {
    "a counter": (
        Program(counted, (numbers(3),), attributes=lambda: {"count": torch.zeros(1)}),
        "changes the buffer 'count', but a plan changes nothing",
    ),
    "a cache": (
        Program(shifted, (numbers(3),), attributes=lambda: {"past": torch.zeros(2, 3)}),
        "changes the buffer 'past'",
    ),
    "an input": (Program(doubled, (numbers(3), numbers(3))), "changes the input 'args_0'"),
    "a number": (Program(lambda _, x: (x + 1, 4), (numbers(3),)), "returns 4, and a plan returns tensors"),
    "statistics": (
        Program(lambda self, x: self.norm(x), (numbers(5, 3),), attributes=weights, evaluated=False),
        "changes the buffers 'norm.running_mean', 'norm.running_var' and 'norm.num_batches_tracked'",
    ),
}
"""Programs that change more than their outputs or return numbers, and what the error says."""


def exported(program: Program) -> Any:
    module = Module(program).train(not program.evaluated)
    dims = None if program.dims is None else {"args": program.dims}
    return torch.export.export(module, tuple(program.args), dict(program.kwargs), dynamic_shapes=dims)


def leaves(tree: Any, kinds: Any = torch.Tensor) -> list[Any]:
    """The values of some types, as tensors."""
    found = torch.utils._pytree.tree_leaves(tree)
    return [torch.as_tensor(each) for each in found if isinstance(each, kinds)]


def check(found: Any, expected: Any, what: str) -> None:
    assert (found.dtype, tuple(found.shape)) == (expected.dtype, tuple(expected.shape)), what
    tolerance = TOLERANCES.get(expected.dtype, 0)
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance, equal_nan=True, msg=what)


@pytest.mark.parametrize("name", PROGRAMS)
def test_plans_compute_what_programs_compute(name: str, quick_exports: None) -> None:
    program = PROGRAMS[name]
    made = exported(program)
    session, module = compiler.load(compiler.compile(made), threads=1), made.module()
    for args in (program.args, *program.others):
        given = leaves((args, program.kwargs))
        with torch.no_grad():
            expected = leaves(module(*args, **program.kwargs), (torch.Tensor, int))  # with sizes
        assert len(session.inputs) == len(given), session
        results = session.run({info.name: each for info, each in zip(session.inputs, given, strict=True)}, as_="torch")
        assert len(results) == len(expected), f"{[*results]}"
        for output, wanted in zip(results, expected, strict=True):
            check(results[output], wanted.detach(), f"{name}: {output}")


@pytest.mark.parametrize("name", REFUSED)
def test_other_effects_and_results_are_refused(name: str, quick_exports: None) -> None:
    program, said = REFUSED[name]
    with pytest.raises(compiler.ExportError, match=f"the ExportedProgram {said}"):
        compiler.compile(exported(program))


def test_the_program_stays_as_it_is(quick_exports: None) -> None:
    made = exported(PROGRAMS["a batch"])
    before = str(made), {name: value.clone() for name, value in made.state_dict.items()}
    compiler.compile(made)
    assert str(made) == before[0]
    assert all(np.array_equal(made.state_dict[name].detach(), value.detach()) for name, value in before[1].items())
