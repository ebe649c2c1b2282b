import onnx_ir as ir
import pytest

from compiler.ir.graph import elements_of
from compiler.passes.infer_shapes import infer_shapes


def shapes(model: ir.Model) -> dict[str, str]:
    graphs = [model.graph, *model.graph.subgraphs()]
    values = [value for graph in graphs for node in graph for value in node.outputs]
    return {value.name: f"{value.dtype.name if value.dtype else None} {value.shape}" for value in values}


def test_symbols_and_expressions(check_pass, parse):
    model = parse(
        """
        agraph (float[batch, 3, T] x) => (float[a, b] y) <int64[2] target = {0, -1}> {
            z = Concat<axis=2>(x, x)
            y = Reshape(z, target)
        }
        """
    )
    check_pass(infer_shapes, model)
    assert shapes(model) == {"z": "FLOAT [batch,3,2*T]", "y": "FLOAT [batch,6*T]"}


def test_values_of_shapes_are_followed(check_pass, parse):
    model = parse(
        """
        agraph (float[batch, 4, 5] x) => (float[a, b] y)
            <int64 zero = {0}, int64[1] head = {0}, int64[1] rest = {20}> {
            s = Shape(x)
            n = Gather(s, zero)
            m = Unsqueeze(n, head)
            target = Concat<axis=0>(m, rest)
            y = Reshape(x, target)
        }
        """
    )
    check_pass(infer_shapes, model)
    assert shapes(model)["y"] == "FLOAT [batch,20]"


def test_quotients_of_sizes_are_followed(check_pass, parse):
    model = parse(
        """
        agraph (float[T, 4] x) => (float[a, b] y, float[c, d] z)
            <int64 zero = {0}, int64 two = {2}, int64[1] head = {0}, int64 five = {5}> {
            s = Shape(x)
            n = Gather(s, zero)
            h = Div(n, two)
            k = Unsqueeze(h, head)
            y = Expand(x, k)
            less = Sub(n, five)
            q = Div(less, two)
            r = Unsqueeze(q, head)
            one = Abs(r)
            z = ConstantOfShape(one)
        }
        """
    )
    check_pass(infer_shapes, model, same_results=None)
    values = {value.name: elements_of(value) for node in model.graph for value in node.outputs}
    assert values["k"] == ["floor(T/2)"]
    assert values["r"] is None  # less than five has a negative difference, which rounds up


def test_expressions_that_come_to_a_number_are_one(check_pass, parse):
    model = parse(
        """
        agraph (float[N, T, 32] x) => (float[a, b, c, d] y, float[e] z)
            <int64[1] two = {2}, int64[2] rest = {-1, 8}, int64[1] more = {3}> {
            s = Shape<end=2>(x)
            target = Concat<axis=0>(s, rest)
            y = Reshape(x, target)
            n = Shape<end=1>(x)
            wider = Add(n, more)
            three = Sub(wider, n)
            z = ConstantOfShape(three)
        }
        """
    )
    check_pass(infer_shapes, model)
    values = {value.name: value for node in model.graph for value in node.outputs}
    assert values["y"].shape.dims[2:] == (4, 8)
    assert elements_of(values["three"]) == [3] and values["z"].shape.dims == (3,)


def test_exact_quotients_of_sums_are_simplified(check_pass, parse):
    model = parse(
        """
        agraph (float[P, 4] past, float[N, 4] x) => (float[a, b, c] y, float[d, e] z)
            <int64[1] two = {2}, int64[1] rest = {-1}> {
            all = Concat<axis=0>(past, x)
            s = Shape<end=1>(all)
            target = Concat<axis=0>(s, rest, two)
            y = Reshape(all, target)
            last = Concat<axis=0>(rest, s)
            flat = Reshape(all, rest)
            z = Reshape(flat, last)
        }
        """
    )
    check_pass(infer_shapes, model)
    assert {name: shapes(model)[name] for name in "yz"} == {"y": "FLOAT [N + P,2,2]", "z": "FLOAT [4,N + P]"}


@pytest.mark.parametrize(
    ("to", "size"),
    [("INT64", "N"), ("INT32", "N"), ("FLOAT", "N"), ("UINT8", None), ("UINT64", None), ("BOOL", None)],
)
@pytest.mark.parametrize("cast", ["Cast<to={}>(s)", "CastLike(s, like)"])
def test_sizes_are_followed_through_casts_that_keep_them(check_pass, parse, to, size, cast):
    """A size of 300 becomes 44 in uint8, and 1 in bool. A negative difference has no uint64."""
    text = cast.format(ir.DataType[to].value)
    model = parse(
        f"""
        agraph (float[N] x, float[1] one, {to.lower()}[1] like) => (float[m] y) {{
            s = Shape(x)
            less = {text}
            number = Cast<to=7>(less)
            y = Expand(one, number)
        }}
        """
    )
    check_pass(infer_shapes, model, same_results=None)
    number = next(value for node in model.graph for value in node.outputs if value.name == "number")
    assert elements_of(number) == (None if size is None else [size])


@pytest.mark.parametrize(
    ("node", "shape"),
    [
        ("Slice(x, zero, five, zero)", "[Min(5, N),3]"),
        ("Slice(x, one, five, zero)", "[_d0,3]"),
        ("Slice(x, zero, one, one)", "[N,1]"),
        ("Add(x, y)", "[_d0,3]"),
        ("Where(c, x, y)", "[_d0,3]"),
        ("Mul(x, z)", "[N,3]"),
        ("Add(x, w)", "[7,3]"),
        ("Expand(x, size)", "[_d0,3]"),
        ("Add(z5, x)", "[N,3]"),
    ],
)
def test_nothing_is_taken_for_granted(check_pass, parse, node, shape):
    model = parse(
        f"""
        agraph (float[N, 3] x, float[M, 1] y, float[1, 3] z, float[7, 3] w, bool[N, 1] c) => (float[a, b] r)
            <int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] five = {{5}}> {{
            size = Shape(y)
            z5 = Slice(x, zero, five, zero)
            r = {node}
        }}
        """
    )
    check_pass(infer_shapes, model, same_results=None)
    assert shapes(model)["r"] == f"FLOAT {shape}"


def test_sizes_that_stand_for_others(check_pass, parse):
    model = parse(
        """
        agraph (float[N, 1, T] x) => (float[a, b, c] y)
            <int64[1] minus = {-1}, int64[3] ones = {1, 1, 1}, int64[1] four = {4}> {
            s = Shape(x)
            n = Shape<start=0, end=1>(x)
            wanted = Concat<axis=0>(n, four, minus)
            same = Equal(wanted, minus)
            target = Where(same, ones, wanted)
            y = Expand(x, target)
        }
        """
    )
    check_pass(infer_shapes, model)
    values = {value.name: value for node in model.graph for value in node.outputs}
    assert elements_of(values["target"]) == ["N", 4, 1]
    assert shapes(model)["y"] == "FLOAT [N,4,T]"


def test_long_expressions_get_names(check_pass, parse):
    convolutions = " ".join(f"x{i + 1} = Conv<pads=[{i}, 0], strides=[2]>(x{i}, w)" for i in range(1, 40))
    model = parse(
        f"""
        agraph (float[N, 1, T] x1, float[1, 1, 3] w) => (float[a, b, c] y, float[a, b, c] z) {{
            {convolutions}
            y = Abs(x40)
            z = Neg(x40)
        }}
        """
    )
    check_pass(infer_shapes, model, same_results=None)
    found = shapes(model)
    assert max(map(len, found.values())) < 150
    assert found["x40"] == found["y"] == found["z"]


def test_sizes_rounded_up_can_be_read_again(check_pass, parse):
    model = parse(
        """
        agraph (float[N, 1, T, 8] x, float[1, 1, 3, 3] w) => (float[a, b, c, d] y, float[a, b, c, d] z) {
            y = MaxPool<kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1>(x)
            z = Conv<auto_pad = "SAME_UPPER", strides = [2, 2]>(x, w)
        }
        """
    )
    check_pass(infer_shapes, model)
    y, z = (value.shape.dims[2] for value in model.graph.outputs)
    assert [each.evaluate({"T": size}) for each in (y, z) for size in (3, 4, 8)] == [2, 2, 4] * 2


def test_declared_shapes_are_not_trusted(check_pass):
    report = check_pass(
        infer_shapes,
        "agraph (float[2, 3] x) => (float[3, 2] y) <float[7, 7] a> { a = Exp(x)  y = Transpose<perm=[1, 0]>(a) }",
        same_results=None,
    )
    assert [warning.message for warning in report.warnings] == [
        "the file declares 'a' as [7, 7], but the operators give [2, 3]"
    ]


def test_a_loop_whose_state_grows(check_pass, parse):
    model = parse(
        """
        agraph (float[1, 2] x, int64 n, bool go) => (float[a, b] y) {
            y = Loop(n, go, x) <body = body (int64 i, bool c, float[1, 2] s) => (bool d, float[k, l] t) {
                d = Identity(c)
                t = Concat<axis=0>(s, x)
            }>
        }
        """
    )
    check_pass(infer_shapes, model, same_results=None)
    body = model.graph[0].attributes["body"].as_graph()
    first, second = body.inputs[2].shape
    assert not isinstance(first, int) and second == 2
    assert model.graph[0].outputs[0].shape[1] == 2


def test_an_unknown_operator_does_not_stop_it(check_pass, parse):
    model = parse(
        "agraph (float[2] x) => (float[2] y) { a = other.Thing(x)  b = Exp(x)  y = Add(a, b) }", domains="other"
    )
    check_pass(infer_shapes, model, same_results=None)
    assert shapes(model)["b"] == "FLOAT [2]"


def test_bodies_get_the_items_of_sequences(check_pass, parse):
    model = parse(
        """
        agraph (float[2, 3] x, double[4] d) => (seq(float) y) {
            s = SequenceConstruct(x, x)
            y = SequenceMap<body = inner (item, other) => (result) {
                given = Identity(other)
                result = Neg(item)
            }>(s, d)
        }
        """
    )
    check_pass(infer_shapes, model, same_results=None)
    assert shapes(model)["result"] == "FLOAT None"
    assert shapes(model)["given"] == "DOUBLE [4]"


def test_rms_normalization_gives_the_type_of_its_scale(check_pass, parse):
    model = parse(
        """
        agraph (float16[n, 3] x, float[3] s) => (float[n, 3] y) {
            z = RMSNormalization(x, s)
            y = Neg(z)
        }
        """,
        opset=23,
    )
    check_pass(infer_shapes, model, same_results=None)  # onnxruntime refuses the model
    assert shapes(model) == {"z": "FLOAT [n,3]", "y": "FLOAT [n,3]"}


def test_squeeze_without_axes_drops_sizes_that_may_be_one(check_pass, parse):
    model = parse(
        "agraph (float[n, 1, 3] x, float[2, 1] z) => (float[a] y) { v = Squeeze(x) w = Squeeze(z) y = Exp(w) }"
    )
    check_pass(infer_shapes, model)
    assert shapes(model) == {"v": "FLOAT None", "w": "FLOAT [2]", "y": "FLOAT [2]"}


def test_an_expansion_of_an_unknown_shape_has_an_unknown_shape(check_pass, parse):
    """The library takes the stated shape, but the expanded tensor may be larger."""
    model = parse(
        """
        agraph (float[n, 1, 3] x) => (float[a, b] y) <int64[2] ones = {1, 1}, int64[3] four = {4, 1, 1}> {
            v = Squeeze(x)
            y = Expand(v, ones)
            w = Expand(v, four)
        }
        """
    )
    check_pass(infer_shapes, model)
    assert shapes(model) == {"v": "FLOAT None", "y": "FLOAT None", "w": "FLOAT None"}
