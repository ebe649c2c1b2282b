"""A convolution of the strided slices of one image becomes one of the image."""

import pytest

from compiler.passes.fold_slices import fold_slices

WEIGHTS = ", ".join(str(i % 11 - 5) for i in range(3 * 8 * 9))
HEAD = f"""agraph (float[N, 2, 8, 10] x) => (float y)
    <float[3, 8, 3, 3] w = {{{WEIGHTS}}}, int64[2] axes = {{2, 3}}, int64[2] steps = {{2, 2}},
    int64[2] uneven = {{2, 1}}, int64[2] ends = {{100, 100}}, int64[2] short = {{6, 10}}, int64[2] half = {{100, 5}},
    int64[2] p = {{0, 0}}, int64[2] q = {{1, 0}}, int64[2] r = {{0, 1}}, int64[2] s = {{1, 1}}>"""


def focus(places: str = "pqrs", ends: str = "ends", steps: str = "steps") -> str:
    slices = "  ".join(f"s{i} = Slice(x, {at}, {ends}, axes, {steps})" for i, at in enumerate(places))
    return f"{slices}  c = Concat<axis=1>({', '.join(f's{i}' for i in range(len(places)))})"


@pytest.mark.parametrize(
    ("nodes", "strides", "pads"),
    [
        (f"{focus()}  y = Conv(c, w)", [2, 2], [0, 0, 0, 0]),
        (f"{focus('pqrs')}  y = Conv<pads=[1, 0, 1, 2]>(c, w)", [2, 2], [2, 0, 2, 4]),
        (f"{focus('srqp')}  y = Conv<pads=[1, 1, 1, 1], strides=[2, 1]>(c, w)", [4, 2], [2, 2, 2, 2]),
        (f"{focus('pqpq')}  y = Conv(c, w)", [2, 2], [0, 0, 0, 0]),
    ],
)
def test_strided_slices(check_pass, parse, nodes, strides, pads):
    model = parse(f"{HEAD} {{ {nodes} }}")
    check_pass(fold_slices, model, same_results=(1e-5, 1e-5))
    (node,) = model.graph
    assert (node.op_type, node.inputs[0].name) == ("Conv", "x")
    assert list(node.attributes["kernel_shape"].as_ints()) == [6, 6]
    assert list(node.attributes["strides"].as_ints()) == strides
    assert list(node.attributes["pads"].as_ints()) == pads


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        (f"{focus(ends='short')}  y = Conv(c, w)", "a slice does not cover the whole axis"),
        (f"{focus(steps='uneven', ends='half')}  y = Conv(c, w)", "the slices have different steps"),
        (f"{focus()}  y = Conv<dilations=[2, 1]>(c, w)", "a dilated window does not fit slices with step 2"),
        (f'{focus()}  y = Conv<auto_pad="SAME_UPPER">(c, w)', "Conv has auto_pad"),
        (f"{focus()}  y = Conv<group=2>(c, v)", "the weights are not constants of one group"),
        (
            "s0 = Slice(x, p, ends, axes, steps)  s1 = Slice(x, q, ends, axes, steps)  t = Relu(s1)"
            "  c = Concat<axis=1>(s0, t, t, t)  y = Conv(c, w)",
            "an input of Concat is not a slice of the image",
        ),
    ],
)
def test_other_slices(check_pass, parse, nodes, reason):
    head = HEAD.replace("int64[2] axes", f"float[4, 4, 3, 3] v = {{{', '.join(['1'] * 144)}}}, int64[2] axes", 1)
    report = check_pass(fold_slices, parse(f"{head} {{ {nodes} }}"), same_results=None)
    assert len(report.missed) == 1 and report.missed[0].reason.startswith(reason)
