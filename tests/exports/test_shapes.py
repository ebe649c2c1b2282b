"""The dims that may vary, as `torch.export.export` takes them, and the sizes that the check tries."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

import compiler  # noqa: E402
from compiler.accuracy.exported import ExportWarning  # noqa: E402
from compiler.accuracy.exported_arguments import open_dims, resized  # noqa: E402
from compiler.accuracy.module_runs import Call  # noqa: E402
from compiler.frontend.export import write_model  # noqa: E402
from compiler.frontend.export_request import Request  # noqa: E402
from tests.layers.layer import f32  # noqa: E402

pytestmark = pytest.mark.usefixtures("quick_exports")
nn, Dim = torch.nn, torch.export.Dim


class Joined(nn.Module):
    """`x [n, 3]`, `more` a list of `[2n, 3]` and `[3]` → `[3n, 3]`."""

    def forward(self, x: Any, more: list[Any], scale: float = 2.0) -> Any:
        return torch.cat([x, more[0]]) * more[1] * scale


GIVEN = (f32(4, 3), [f32(8, 3), f32(3)])


def collected() -> Any:
    shapes = torch.export.ShapesCollection()
    shapes[GIVEN[0]] = {0: Dim.DYNAMIC}
    shapes[GIVEN[1][0]] = {0: Dim.DYNAMIC}
    return shapes


N = Dim("n", min=2, max=512)
SHAPES = {
    "named": {"x": {0: N}, "more": [{0: 2 * N}, None]},
    "a tuple": ((N, 3), [(2 * N, 3), None]),
    "automatic": {"x": {0: Dim.AUTO}, "more": [{0: Dim.AUTO}, None]},
    "names": {"x": {0: "n"}, "more": [{0: "m"}, None]},
    "a collection": collected(),
}


@pytest.mark.parametrize("kind", SHAPES)
def test_dynamic_shapes_are_those_of_torch_export(kind: str, tmp_path: Path) -> None:
    """The second run of the check has other sizes. `2n` follows from `n`."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", ExportWarning)
        path = compiler.export(Joined(), GIVEN, tmp_path / "m.onnx", dynamic_shapes=SHAPES[kind])
    session = compiler.load(compiler.compile(path))
    other = f32(5, 3), f32(10, 3), f32(3)
    wanted = Joined()(other[0], [other[1], other[2]])
    assert torch.allclose(session(*other, as_="torch"), wanted)


@pytest.mark.parametrize("kind", ["named", "names"])
def test_both_exporters_name_the_dims(kind: str, tmp_path: Path) -> None:
    names = []
    for exporter in ("dynamo", "torchscript"):
        request = Request(Joined(), GIVEN, dynamic_shapes=SHAPES[kind], exporter=exporter)  # type: ignore[arg-type]
        exported = write_model(request, tmp_path / f"{exporter}.onnx")
        names.append([each.shape for each in compiler.compile(exported.path).inputs])
    assert names[0][0] == names[1][0] == ("n", 3)
    assert names[0][2] == names[1][2] == (3,)


def test_computed_dims_follow_the_others() -> None:
    call = Call(Joined(), GIVEN, {})
    axes = {0: {0: "a"}, 1: {0: "b"}, 2: {0: "c"}}
    declared = [
        compiler.TensorInfo("x", "float32", ("n", 3)),
        compiler.TensorInfo("y", "float32", ("2*n", 3)),
        compiler.TensorInfo("z", "float32", (3,)),
    ]
    found = open_dims(call, axes, ["x", "y", "z"], declared)
    assert (found.axes, found.sizes, found.fixed) == ({0: {0: "n"}, 1: {0: "2*n"}}, {"n": 4}, ("c",))
    args = resized(call, found.axes, {"n": 7}).args
    assert (args[0].shape, args[1][0].shape, args[1][1].shape) == ((7, 3), (14, 3), (3,))


@pytest.mark.parametrize("name", ["a-b", "n+", "f(n)", "n", "3"])
def test_a_name_that_is_no_expression_is_a_dim_of_its_own(name: str) -> None:
    call = Call(nn.ReLU(), (f32(4, 3),), {})
    declared = [compiler.TensorInfo("x", "float32", (name, "n"))]
    assert open_dims(call, {0: {0: "p", 1: "q"}}, ["x"], declared).sizes == {name: 4, "n": 3}


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        (
            {"dynamic": {"x": {0: "n"}}, "dynamic_shapes": {"x": {0: "n"}}},
            ValueError,
            "dynamic and dynamic_shapes both name dims: give one of the two",
        ),
        (
            {"dynamic_shapes": "n"},
            TypeError,
            "dynamic_shapes: expected a dict or tuple, as torch.export.export takes it, found str",
        ),
        (
            {"dynamic_shapes": {"y": None}},
            ValueError,
            "dynamic_shapes: the module has no argument 'y'; its arguments are x, more",
        ),
    ],
)
def test_wrong_shapes_are_refused(options: dict[str, Any], error: type[Exception], said: str, tmp_path: Path) -> None:
    with pytest.raises(error, match=re.escape(said)):
        compiler.export(Joined(), GIVEN, tmp_path / "m.onnx", **options)
    assert not list(tmp_path.iterdir())


class Fixed(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.reshape(2, 6) + torch.ones(6)


def test_a_dim_that_the_module_fixes_is_named(tmp_path: Path) -> None:
    with pytest.warns(ExportWarning, match="the exported model fixes the size of 'n'"):
        compiler.export(Fixed(), (f32(4, 3),), tmp_path / "m.onnx", dynamic_shapes={"x": {0: Dim("n")}})
