"""The command with bad input: a clear error, exit code 1, no traceback, no half-written file."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper

from tests import forked

HEAD = '<ir_version: 9, opset_import: ["": 20, "private": 1]>\n'


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a sound model and its plan."""
    folder = tmp_path_factory.mktemp("sound")
    save(folder / "sound.onnx", "g (float[batch, 3] x) => (float[batch, 3] y) { y = Identity(x) }")
    assert forked.candlec(folder, "compile", "sound.onnx").returncode == 0
    return folder


@pytest.fixture
def folder(sound: Path, tmp_path: Path) -> Path:
    """A copy of the folder `sound`, whose files a test damages."""
    return shutil.copytree(sound, tmp_path, dirs_exist_ok=True)


def save(path: Path, text: str) -> None:
    onnx.save(onnx.parser.parse_model(HEAD + text), path)


def refuse(folder: Path, *arguments: str) -> str:
    """Checks that the command fails cleanly and changes no file. Returns its error message."""
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    done = forked.candlec(folder, *arguments, COLUMNS="200")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert "panicked" not in done.stderr
    assert "bug in the compiler" not in done.stderr
    assert "error" in done.stderr
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
    return done.stderr


def truncated(path: Path) -> None:
    path.write_bytes((path.parent / "sound.onnx").read_bytes()[:-20])


def corrupt(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 8)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def text(path: Path) -> None:
    path.write_text("<html>404: not found</html>")


def directory(path: Path) -> None:
    path.mkdir()


def missing(path: Path) -> None:
    assert not path.exists()


def huge(path: Path) -> None:
    """A sparse file of 3 GB, which needs no disk space."""
    with path.open("wb") as file:
        file.truncate(3 * 10**9)


def unknown_operator(path: Path) -> None:
    save(path, "g (float[2] x) => (float[2] y) { y = Melt(x) }")


def unknown_domain(path: Path) -> None:
    save(path, "g (float[2] x) => (float[2] y) { y = private.Melt(x) }")


def unread_attribute(path: Path) -> None:
    save(path, "g (float[2] x) => (float[2] y) { y = Identity<heat = 3>(x) }")


def cyclic(path: Path) -> None:
    nodes = [helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Identity", ["a"], ["b"])]
    write_graph(path, nodes, "b")


def undefined_input(path: Path) -> None:
    write_graph(path, [helper.make_node("Identity", ["nothing"], ["b"])], "b")


def defined_twice(path: Path) -> None:
    write_graph(path, [helper.make_node("Identity", ["x"], ["b"])] * 2, "b")


def no_such_output(path: Path) -> None:
    write_graph(path, [helper.make_node("Identity", ["x"], ["b"])], "c")


def no_such_opset(path: Path) -> None:
    write_graph(path, [helper.make_node("Identity", ["x"], ["b"])], "b", opset=0)


def future_opset(path: Path) -> None:
    write_graph(path, [helper.make_node("Identity", ["x"], ["b"])], "b", opset=999)


def complex_input(path: Path) -> None:
    write_graph(path, [helper.make_node("Identity", ["x"], ["b"])], "b", dtype=TensorProto.COMPLEX64)


def no_outputs(path: Path) -> None:
    save(path, "g (float[2] x) => () { y = Identity(x) }")


def output_of_another_type(path: Path) -> None:
    save(path, "g (float[2] x) => (double[2] y) { y = Identity(x) }")


def map_output(path: Path) -> None:
    save(path, "g (float[1, 2] x) => (float[2] y) { y = Identity(x) }")
    model = onnx.load(path)
    kind = helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    model.graph.output[0].type.CopyFrom(helper.make_sequence_type_proto(kind))
    path.write_bytes(model.SerializeToString())


def plan_for_a_model(path: Path) -> None:
    shutil.copy(path.parent / "sound.plan", path)


def external_data_outside(path: Path) -> None:
    (path.parent / "secret.bin").write_bytes(bytes(8))
    folder = path.parent / "model"
    folder.mkdir()
    write_external(path, "../secret.bin")


def external_data_absolute(path: Path) -> None:
    write_external(path, "/etc/hostname")


def external_data_missing(path: Path) -> None:
    write_external(path, "weights.bin")


def external_data_short(path: Path) -> None:
    (path.parent / "weights.bin").write_bytes(bytes(4))
    write_external(path, "weights.bin")


def external_data_link(path: Path) -> None:
    (path.parent / "weights.bin").symlink_to("/etc/hostname")
    write_external(path, "weights.bin")


def external_constant(path: Path) -> None:
    node = helper.make_node("Constant", [], ["b"], value=external_tensor("/etc/hostname"))
    write_graph(path, [node], "b")


def external_data_in_a_function(path: Path) -> None:
    """A function with a branch, whose weight is in a file outside the model's folder."""
    write_function(path, "/etc/hostname")


def external_list_of_tensors(path: Path) -> None:
    node = helper.make_node("Constant", [], ["b"], value=helper.make_tensor("v", TensorProto.FLOAT, [2], [1, 2]))
    node.attribute.add(name="more", type=onnx.AttributeProto.TENSORS).tensors.append(external_tensor("/etc/hostname"))
    write_graph(path, [node], "b")


def external_default_of_a_function(path: Path) -> None:
    write_function(path, "weights.bin")
    model = onnx.load(path, load_external_data=False)
    del model.functions[0].node[1].attribute[:]
    default = helper.make_attribute("surprise", external_tensor("/etc/hostname"))
    model.functions[0].attribute_proto.append(default)
    path.write_bytes(model.SerializeToString())


def external_sparse_tensor(path: Path) -> None:
    indices = helper.make_tensor("", TensorProto.INT64, [2], [0, 1])
    sparse = helper.make_sparse_tensor(external_tensor("/etc/hostname"), indices, [2])
    write_graph(path, [helper.make_node("Constant", [], ["b"], sparse_value=sparse)], "b")


def external_training_data(path: Path) -> None:
    write_graph(path, [helper.make_node("Identity", ["x"], ["b"])], "b")
    model = onnx.load(path)
    model.training_info.add().algorithm.initializer.append(external_tensor("/etc/hostname"))
    path.write_bytes(model.SerializeToString())


def short_weight(path: Path) -> None:
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2], raw_data=bytes(4))
    write_graph(path, [helper.make_node("Constant", [], ["b"], value=weight)], "b")


def negative_size(path: Path) -> None:
    write_graph(path, [helper.make_node("Neg", ["w"], ["b"])], "b")
    model = onnx.load(path)
    model.graph.initializer.append(TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[-2], float_data=[1, 2]))
    path.write_bytes(model.SerializeToString())


def name_that_is_no_text(path: Path) -> None:
    write_graph(path, [helper.make_node("Identity", ["x"], ["b"])], "b")
    path.write_bytes(path.read_bytes().replace(b"Identity", b"Id\xff\xfetity"))


def doubling_functions(path: Path) -> None:
    """Each function calls the one before it twice."""
    lines = ["g (float[2] x) => (float[2] y) { y = own.f40(x) }", '<domain: "own", opset_import: ["": 20]>']
    lines.append("f0 (x) => (y) { y = Neg(x) }")
    for at in range(40):
        lines.append('<domain: "own", opset_import: ["own": 1]>')
        lines.append(f"f{at + 1} (x) => (y) {{ t = own.f{at}(x) y = own.f{at}(t) }}")
    save(path, "\n".join(lines))


def recursive_function(path: Path) -> None:
    save(
        path,
        """g (float[2] x) => (float[2] y) { y = private.Melt(x) }
        <domain: "private", opset_import: ["private": 1]> Melt (x) => (y) { y = private.Melt(x) }""",
    )


def write_graph(
    path: Path, nodes: list[onnx.NodeProto], output: str, opset: int = 20, dtype: int = TensorProto.FLOAT
) -> None:
    values = [helper.make_tensor_value_info(name, dtype, [2]) for name in ("x", output)]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]), path)


def external_tensor(location: str) -> TensorProto:
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    weight.external_data.add(key="location", value=location)
    return weight


def write_function(path: Path, location: str) -> None:
    """A model whose function holds a condition, and a branch of that a weight in the file `location`."""
    text = """g (float[2] x) => (float[2] b) { b = private.Melt(x) }
        <domain: "private", opset_import: ["": 20]> Melt (x) => (y) {
            yes = Constant<value = bool {1}>()
            y = If (yes) <then_branch = t () => (float[2] tw) { tw = Identity(x) },
                          else_branch = e () => (float[2] ew) { ew = Identity(x) }>
        }"""
    model = onnx.parser.parse_model(HEAD + text)
    branch = model.functions[0].node[1].attribute[0].g
    branch.initializer.append(external_tensor(location))
    branch.node[0].input[0] = "w"
    path.write_bytes(model.SerializeToString())


def write_external(path: Path, location: str) -> None:
    weight = external_tensor(location)
    value = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    graph = helper.make_graph([helper.make_node("Identity", ["w"], ["y"])], "g", [], [value], [weight])
    path.write_bytes(helper.make_model(graph).SerializeToString())


MODELS: list[tuple[Callable[[Path], None], str]] = [
    (truncated, "CC0101"),
    (corrupt, "CC0101"),
    (empty, "CC0101"),
    (text, "CC0101"),
    (huge, "CC0101"),
    (directory, "CC0102"),
    (missing, "CC0102"),
    (defined_twice, "CC0106"),
    (short_weight, "CC0101"),
    (negative_size, "CC0101"),
    (name_that_is_no_text, "CC0101"),
    (external_constant, "CC0103"),
    (external_data_outside, "CC0103"),
    (external_data_absolute, "CC0103"),
    (external_data_missing, "CC0103"),
    (external_data_short, "CC0103"),
    (external_data_link, "CC0103"),
    (external_data_in_a_function, "CC0103"),
    (external_list_of_tensors, "CC0103"),
    (external_default_of_a_function, "CC0103"),
    (external_sparse_tensor, "CC0103"),
    (external_training_data, "CC0103"),
    (no_such_opset, "CC0104"),
    (future_opset, "CC0104"),
    (cyclic, "CC0105"),
    (undefined_input, "CC0106"),
    (no_such_output, "CC0106"),
    (recursive_function, "CC0107"),
    (doubling_functions, "CC0106"),
    (unknown_operator, "CC0201"),
    (unknown_domain, "CC0201"),
    (unread_attribute, "CC0203"),
    (complex_input, "CC0205"),
    (no_outputs, "CC0106"),
    (output_of_another_type, "CC0404"),
    (map_output, "CC0205"),
    (plan_for_a_model, "CC0101"),
]


@pytest.mark.parametrize(("make", "code"), MODELS, ids=lambda part: getattr(part, "__name__", part))
def test_a_bad_model_is_refused(folder: Path, make: Callable[[Path], None], code: str) -> None:
    make(folder / "bad.onnx")
    said = refuse(folder, "compile", "bad.onnx", "-o", "bad.plan")
    assert f"error[{code}]" in said
    assert f"see `candlec explain {code}`" in said


@pytest.mark.parametrize("verb", ["check", "inspect", "verify"])
def test_a_name_that_is_not_utf8_is_refused_everywhere(folder: Path, verb: str) -> None:
    name_that_is_no_text(folder / "bad.onnx")
    assert "error[CC0101]: this is not a valid ONNX model: b'Id" in refuse(folder, verb, "bad.onnx")


@pytest.mark.parametrize(
    ("name", "array", "expected"),
    [
        ("z", np.zeros((1, 3), np.float32), "'z'"),
        ("x", np.zeros((1, 3), np.float64), "float64"),
        ("x", np.zeros((1, 3), np.complex64), "complex64"),
        ("x", np.zeros(3, np.float32), "[3]"),
        ("x", np.zeros((1, 4), np.float32), "[1, 4]"),
    ],
    ids=["wrong name", "wrong dtype", "dtype that no plan has", "wrong rank", "wrong size"],
)
def test_a_bad_input_is_refused(folder: Path, name: str, array: np.ndarray, expected: str) -> None:
    np.savez(folder / "io.npz", **{name: array})
    said = refuse(folder, "run", "sound.plan", "--input", "io.npz", "--output", "out.npz")
    assert "input" in said
    assert expected in said


@pytest.mark.parametrize("make", [corrupt, empty, text, directory, missing], ids=lambda make: make.__name__)
def test_a_bad_input_file_is_refused(folder: Path, make: Callable[[Path], None]) -> None:
    make(folder / "io.npz")
    assert "io.npz" in refuse(folder, "run", "sound.plan", "--input", "io.npz", "--output", "out.npz")


@pytest.mark.parametrize("make", [corrupt, empty, text, directory, missing, huge], ids=lambda make: make.__name__)
def test_a_bad_plan_file_is_refused(folder: Path, make: Callable[[Path], None]) -> None:
    make(folder / "bad.plan")
    refuse(folder, "run", "bad.plan")


def test_a_plan_of_a_newer_version_is_refused(folder: Path) -> None:
    plan = (folder / "sound.plan").read_bytes()
    newer = plan.replace(b'"plan_version":"1"', b'"plan_version":"9"')
    assert newer != plan
    (folder / "newer.plan").write_bytes(newer)
    assert "version" in refuse(folder, "run", "newer.plan")


def test_a_plan_with_a_changed_constant_is_refused(folder: Path) -> None:
    save(folder / "weights.onnx", "g () => (float[3] y) { y = Constant<value_floats = [1.0, 2.0, 3.0]>() }")
    assert forked.candlec(folder, "compile", "weights.onnx").returncode == 0
    plan = bytearray((folder / "weights.plan").read_bytes())
    plan[-1] ^= 1
    (folder / "bad.plan").write_bytes(plan)
    assert "checksum" in refuse(folder, "run", "bad.plan")


def test_an_output_folder_that_is_not_there_is_named(folder: Path) -> None:
    for arguments in (("compile", "sound.onnx", "-o", "nowhere/a.plan"), ("run", "sound.plan", "-o", "nowhere/a.npz")):
        done = forked.candlec(folder, *arguments, COLUMNS="200")
        assert done.returncode == 2
        assert "the folder 'nowhere' does not exist" in done.stderr


def test_an_absent_device_is_named(folder: Path) -> None:
    assert "cuda" in refuse(folder, "run", "sound.plan", "--device", "cuda")
