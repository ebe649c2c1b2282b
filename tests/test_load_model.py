"""The loader of models: the kinds of files that it reads, and its errors for bad files."""

import re
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnx_ir
import pytest
from onnx import TensorProto, helper, numpy_helper

import compiler
from compiler import CompileError, Options
from compiler.frontend.load import load_model
from compiler.ir.symbols import shown, symbol_of


def model_of(nodes, inputs=(("x", [2, 3]),), outputs=(("y", None),), initializers=(), opset=20, ir_version=10, **more):
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs],
        [numpy_helper.from_array(array, name) for name, array in initializers],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version, **more)


IDENTITY = helper.make_node("Identity", ["x"], ["y"], name="node")


def codes(source, options=None):
    with pytest.raises(CompileError) as error:
        compiler.compile(source, options)
    return [item.code for item in error.value.diagnostics]


def test_path_bytes_and_proto_are_one(tmp_path):
    model = model_of([IDENTITY])
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString(deterministic=True))
    plans = [compiler.compile(source) for source in (path, str(path), path.read_bytes(), model)]
    assert len({plan.data for plan in plans}) == 1


def test_files_that_are_no_models(tmp_path):
    data = model_of([IDENTITY]).SerializeToString()
    files = {"empty": b"", "text": b"not a model", "truncated": data[: len(data) // 2], "zeros": bytes(100)}
    for name, content in files.items():
        path = tmp_path / name
        path.write_bytes(content)
        assert codes(path) == ["CC0101"], name
    assert codes(tmp_path) == ["CC0102"]
    assert codes(tmp_path / "missing.onnx") == ["CC0102"]


@pytest.mark.parametrize("opset", [0, 1000])
def test_opsets_that_are_not_known(opset):
    assert codes(model_of([IDENTITY], opset=opset)) == ["CC0104"]


def test_unknown_operators_are_all_reported():
    nodes = [
        helper.make_node("Nonsense", ["x"], ["a"], name="first"),
        helper.make_node("Thing", ["x"], ["b"], domain="private"),
        helper.make_node("Crop", ["x"], ["y"]),
    ]
    model = model_of(nodes)
    model.opset_import.append(helper.make_opsetid("private", 1))
    assert codes(model, compiler.Options(optimize=False)) == ["CC0201", "CC0201", "CC0208"]


def test_an_attribute_that_nobody_reads():
    node = helper.make_node("Identity", ["x"], ["y"], surprise=1)
    assert codes(model_of([node]), compiler.Options(optimize=False)) == ["CC0203"]


def test_a_value_that_nothing_defines():
    assert codes(model_of([helper.make_node("Identity", ["nowhere"], ["y"])])) == ["CC0106"]


def test_initializers_that_are_listed_as_inputs():
    w = np.float32([[1, 2, 3]])
    node = helper.make_node("Concat", ["x", "w"], ["y"], axis=0)
    model = model_of([node], inputs=(("x", [2, 3]), ("w", [1, 3])), initializers=[("w", w)], opset=8, ir_version=3)
    plan = compiler.compile(model)
    assert [info.name for info in plan.inputs] == ["x"]


@pytest.mark.parametrize("optimize", [True, False])
def test_inputs_with_a_default_value_become_constants_with_a_warning(optimize):
    w, reports = np.float32([[1, 2, 3]]), []
    node = helper.make_node("Concat", ["x", "w"], ["y"], axis=0)
    model = model_of([node], inputs=(("x", [2, 3]), ("w", ["rows", 3])), initializers=[("w", w)])
    plan = compiler.compile(model, compiler.Options(optimize=optimize, on_pass=reports.append))
    assert [info.name for info in plan.inputs] == ["x"]
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(compiler.load(plan).run({"x": x})["y"], np.concatenate([x, w]))
    (warning,) = [each for report in reports for each in report.warnings]
    assert (warning.code, warning.severity) == ("CC0405", "warning")
    assert "the default values of 'w' as constants" in warning.message


def graphs_within_graphs(depth):
    """The bytes of a model with nested Ifs. protobuf writes deeper nesting than it reads."""
    leaf = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [], [out("y")]).SerializeToString()
    data = leaf
    for _ in range(depth - 1):
        pairs = (("then_branch", data), ("else_branch", leaf))
        branches = [field(5, text(1, name) + field(6, branch) + number(20, 5)) for name, branch in pairs]
        node = text(1, "c") + text(2, "y") + text(4, "If") + b"".join(branches)
        data = field(1, node) + text(2, "g") + field(12, out("y").SerializeToString())
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2]), helper.make_tensor_value_info("c", 9, [])]
    data += b"".join(field(11, each.SerializeToString()) for each in inputs)
    return number(1, 10) + field(7, data) + field(8, number(2, 20))


def out(name):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [2])


def number(tag, value):
    return bytes([*varint(tag << 3), *varint(value)])


def field(tag, data):
    return bytes([*varint(tag << 3 | 2), *varint(len(data))]) + data


def text(tag, value):
    return field(tag, value.encode())


def varint(value):
    while value > 127:
        yield value & 127 | 128
        value >>= 7
    yield value


def test_graphs_that_are_nested_too_deep_are_named():
    compiler.compile(graphs_within_graphs(20))
    for depth, said in ((32, "If: blocks nest deeper than 20"), (34, "are nested too deeply for protobuf")):
        with pytest.raises(CompileError, match=said):
            compiler.compile(graphs_within_graphs(depth))


def test_a_nested_graph_may_use_a_name_again():
    branch = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["t"])],
        "b",
        [],
        [helper.make_tensor_value_info("t", TensorProto.FLOAT, None)],
    )
    other = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["t"])],
        "c",
        [],
        [helper.make_tensor_value_info("t", TensorProto.FLOAT, None)],
    )
    condition = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.array(True)))
    node = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=other)
    x = np.float32([[1, 2, 3], [4, 5, 6]])
    session = compiler.load(compiler.compile(model_of([condition, node])))
    np.testing.assert_array_equal(session.run({"x": x})["y"], x)


def external(tmp_path: Path, location: str) -> Path:
    w = numpy_helper.from_array(np.float32([[1, 2, 3]]), "w")
    onnx.external_data_helper.set_external_data(w, location, offset=0, length=12)
    w.ClearField("raw_data")
    w.data_location = TensorProto.EXTERNAL
    model = model_of([helper.make_node("Concat", ["x", "w"], ["y"], axis=0)])
    model.graph.initializer.append(w)
    folder = tmp_path / "model"
    folder.mkdir()
    path = folder / "m.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def test_external_data(tmp_path):
    path = external(tmp_path, "weights.bin")
    assert codes(path) == ["CC0103"]
    (path.parent / "weights.bin").write_bytes(np.float32([1, 2, 3]).tobytes())
    assert len(load_model(path).model.graph.initializers) == 1
    assert codes(path.read_bytes()) == ["CC0103"]
    (path.parent / "weights.bin").write_bytes(b"short")
    assert codes(path) == ["CC0103"]


@pytest.mark.parametrize("kind", ["parent", "absolute", "link"])
def test_external_data_stays_in_the_folder(tmp_path, kind):
    secret = tmp_path / "secret.bin"
    secret.write_bytes(np.float32([1, 2, 3]).tobytes())
    location = {"parent": "../secret.bin", "absolute": str(secret), "link": "link.bin"}[kind]
    path = external(tmp_path, location)
    if kind == "link":
        (path.parent / "link.bin").symlink_to(secret)
    assert codes(path) == ["CC0103"]


def test_external_data_of_a_function_lies_in_the_model_s_folder(tmp_path, monkeypatch):
    text = """<ir_version: 10, opset_import: ["": 20, "own": 1]> g (float[3] x) => (float[3] y) { y = own.F(x) }
        <domain: "own", opset_import: ["": 20]> F (x) => (y) {
            yes = Constant<value = bool {1}>()
            y = If (yes) <then_branch = t () => (float[3] a) { a = Identity(w) },
                          else_branch = e () => (float[3] b) { b = Identity(x) }>
        }"""
    model = onnx.parser.parse_model(text)
    weight = model.functions[0].node[1].attribute[0].g.initializer.add(name="w", data_type=1, dims=[3])
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="weights.bin")
    assert codes(model) == codes(model.SerializeToString()) == ["CC0103"]
    for name, value in (("model", 1), ("elsewhere", 2)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "weights.bin").write_bytes(np.full(3, value, np.float32).tobytes())
    (tmp_path / "model" / "m.onnx").write_bytes(model.SerializeToString())
    monkeypatch.chdir(tmp_path / "elsewhere")
    [y] = compiler.load(compiler.compile(tmp_path / "model" / "m.onnx")).run({"x": np.zeros(3, np.float32)}).values()
    np.testing.assert_array_equal(y, [1, 1, 1])


def test_complex_numbers_are_refused():
    model = model_of([IDENTITY])
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.elem_type = TensorProto.COMPLEX64
    assert codes(model) == ["CC0205"]


def test_symbols_with_odd_names():
    plan = compiler.compile(model_of([IDENTITY], inputs=(("x", ["batch-size", "?"]),)))
    session = compiler.load(plan)
    assert [info.shape[0] for info in (*plan.inputs, *plan.outputs, *session.inputs)] == ["batch-size"] * 3
    assert "[batch-size, " in compiler.plan.show(plan)
    pinned = compiler.compile(model_of([IDENTITY], inputs=(("x", ["batch-size", 3]),)), Options(dims={"batch-size": 2}))
    assert pinned.inputs[0].shape == (2, 3)
    with pytest.raises(CompileError, match="no input has a dimension 'batch_size'"):
        compiler.compile(model_of([IDENTITY], inputs=(("x", ["batch-size"]),)), Options(dims={"batch_size": 2}))


def test_different_names_are_different_symbols():
    names = ["past+seq", "past-seq", "past_seq", "é1", "è1", "1", "_1"]
    inputs = [(f"x{index}", [name]) for index, name in enumerate(names)]
    nodes = [helper.make_node("Neg", [f"x{index}"], [f"y{index}"]) for index in range(len(names))]
    model = model_of(nodes, inputs=inputs, outputs=[(f"y{index}", None) for index in range(len(names))])
    session = compiler.load(compiler.compile(model))
    assert [info.shape[0] for info in session.inputs] == names
    outputs = session.run({f"x{index}": np.ones(index + 1, np.float32) for index in range(len(names))})
    assert [len(y) for y in outputs.values()] == [1, 2, 3, 4, 5, 6, 7]


def test_one_name_is_one_symbol():
    model = model_of([helper.make_node("Add", ["x", "z"], ["y"])], inputs=(("x", ["a-b"]), ("z", ["a-b"])))
    session = compiler.load(compiler.compile(model))
    with pytest.raises(compiler.InputError, match="a-b = 2"):
        session.run({"x": np.ones(2, np.float32), "z": np.ones(3, np.float32)})


def test_names_of_dimensions_come_back():
    random = np.random.default_rng(0)
    names = {"".join(random.choice(list("__uu02dé-"), random.integers(1, 14))) for _ in range(20_000)}
    symbols = {name: symbol for name in names if (symbol := symbol_of(name)) is not None}
    assert len(symbols) > 10_000
    assert all(shown(symbol) == name and symbol.isidentifier() for name, symbol in symbols.items())
    assert symbol_of("?") is None
    assert shown("_ud800_ _uffffff_") == "_ud800_ _uffffff_"


def test_a_negative_size_is_an_unknown_one():
    plan = compiler.compile(model_of([IDENTITY], inputs=(("x", [-1, 2]),), outputs=(("y", [-1, 2]),)))
    x = np.ones((3, 2), np.float32)
    assert np.array_equal(compiler.load(plan).run({"x": x})["y"], x)
    assert not isinstance(plan.inputs[0].shape[0], int)


def sparse_of(values, indices, dims, name="s"):
    tensors = [numpy_helper.from_array(np.asarray(array), name) for array in (values, indices)]
    return helper.make_sparse_tensor(*tensors, dims)


def sparse_models(sparse):
    """The tensor as a constant, as one in a branch, and as an initializer."""
    constant = helper.make_node("Constant", [], ["y"], sparse_value=sparse)
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])
    branch = helper.make_graph([constant], "branch", [], [result])
    yes = helper.make_node("Constant", [], ["yes"], value=numpy_helper.from_array(np.array(True)))
    choice = helper.make_node("If", ["yes"], ["y"], then_branch=branch, else_branch=branch)
    initialized = model_of([helper.make_node("Identity", ["s"], ["y"])], inputs=())
    initialized.graph.sparse_initializer.append(sparse)
    return [model_of([constant], inputs=()), model_of([yes, choice], inputs=()), initialized]


@pytest.mark.parametrize("indices", [[1, 5], [[0, 1], [1, 2]]], ids=["places", "rows"])
def test_sparse_tensors(indices):
    for model in sparse_models(sparse_of(np.float32([5, 6]), np.int64(indices), [2, 3])):
        before = model.SerializeToString()
        [y] = compiler.load(compiler.compile(model)).run({}).values()
        np.testing.assert_array_equal(y, np.float32([[0, 5, 0], [0, 0, 6]]))
        assert model.SerializeToString() == before, "the caller's model stays as it was"


@pytest.mark.parametrize(
    ("values", "indices", "dims"),
    [
        (np.float32([5, 6]), np.int64([1, 6]), [2, 3]),
        (np.float32([5, 6]), np.int64([-1, 5]), [2, 3]),
        (np.float32([5, 6]), np.int64([[0, 3], [1, 0]]), [2, 3]),
        (np.float32([5, 6]), np.int64([[0], [1]]), [2, 3]),
        (np.float32([5, 6]), np.int64([1]), [2, 3]),
        (np.float32([5, 6]), np.float32([1, 2]), [2, 3]),
        (np.float32([5, 6]), np.int64([1, 2]), [2**20, 2**20]),
        (np.float32([5, 6]), np.int64([1, 2]), [-2, -3]),
    ],
)
def test_broken_sparse_tensors(values, indices, dims):
    for model in sparse_models(sparse_of(values, indices, dims)):
        assert set(codes(model)) == {"CC0101"}


SMALL = ("INT2", "UINT2", "INT4", "UINT4", "FLOAT4E2M1", "INT8")


@pytest.mark.parametrize("size", [2**40, 100, 2], ids=["huge", "short", "surplus"])
@pytest.mark.parametrize("kind", SMALL)
@pytest.mark.parametrize("storage", ["raw_data", "int32_data"])
def test_data_of_small_elements_fill_the_shape(storage, kind, size):
    weight = TensorProto(name="w", data_type=TensorProto.DataType.Value(kind), dims=[size])
    weight.MergeFrom(TensorProto(**{storage: bytes(3)}))
    as_weight = model_of([helper.make_node("Identity", ["w"], ["y"])], inputs=())
    as_weight.graph.initializer.append(weight)
    as_constant = model_of([helper.make_node("Constant", [], ["y"], value=weight)], inputs=())
    for source in (as_weight, as_constant, onnx_ir.from_proto(as_weight)):
        with pytest.raises(CompileError) as error:
            compiler.compile(source)
        [found] = error.value.diagnostics
        assert found.code == "CC0101"
        assert re.fullmatch(rf"the weight '.*': cannot reshape array of size \d+ into shape \({size},\)", found.message)


@pytest.mark.parametrize("size", [5, 6])
def test_the_last_byte_of_small_elements_may_be_partial(size):
    for storage in ("raw_data", "int32_data"):
        weight = TensorProto(name="w", data_type=TensorProto.INT4, dims=[size])
        weight.MergeFrom(TensorProto(**{storage: bytes([0x21, 0x43, 0x05])}))
        model = model_of([helper.make_node("Cast", ["w"], ["y"], to=TensorProto.FLOAT)], inputs=(), opset=21)
        model.graph.initializer.append(weight)
        [y] = compiler.load(compiler.compile(model)).run({}).values()
        assert y.tolist() == [1, 2, 3, 4, 5, 0][:size]


@pytest.mark.parametrize("kind", ["FLOAT", "INT64", "BOOL", "INT4"])
def test_a_weight_without_data_is_refused(kind):
    weight = TensorProto(name="w", data_type=TensorProto.DataType.Value(kind), dims=[2**40])
    model = model_of([helper.make_node("Identity", ["w"], ["y"])], inputs=())
    model.graph.initializer.append(weight)
    assert codes(model) == codes(onnx_ir.from_proto(model)) == ["CC0101"]


def test_small_elements_of_a_sparse_tensor_fill_its_shape():
    sparse = sparse_of(np.float32([5, 6]), np.int64([1, 5]), [2, 3])
    sparse.values.CopyFrom(TensorProto(name="s", data_type=TensorProto.INT4, dims=[2**40], raw_data=b"\x12"))
    for model in sparse_models(sparse):
        assert set(codes(model)) == {"CC0101"}


@pytest.mark.parametrize("source", [None, 3, onnx.GraphProto(), [IDENTITY]], ids=lambda source: type(source).__name__)
def test_wrong_kinds_of_sources_are_errors(source):
    with pytest.raises(TypeError, match=f"a model must be a path, bytes, .*, not {type(source).__name__}"):
        compiler.compile(source)


def test_bytes_of_any_kind():
    data = model_of([IDENTITY]).SerializeToString()
    assert len({compiler.compile(kind(data)).data for kind in (bytes, bytearray, memoryview)}) == 1


def test_an_error_names_a_file_that_is_no_model(tmp_path):
    plan, text = tmp_path / "net.plan", tmp_path / "text.onnx"
    compiler.compile(model_of([IDENTITY])).save(plan)
    text.write_text("not a model")
    for source, expected in (
        ("", "the path of the model is empty"),
        ("a\0b", r"'a\x00b': embedded null byte"),
        (plan, f"{plan} is a plan, not a model"),
        (text, f"{text} is not an ONNX model: it is truncated, or of another format"),
        (b"", "this is not an ONNX model: it is empty"),
        (onnx.ModelProto(ir_version=10), "this is not an ONNX model: it has no graph or no opset"),
    ):
        with pytest.raises(CompileError) as error:
            compiler.compile(source)
        assert [each.message for each in error.value.diagnostics] == [expected]
