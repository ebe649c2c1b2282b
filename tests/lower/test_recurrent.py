import numpy as np
import pytest

import compiler
from tests.scratch.row import rows

CLOSE = {"rtol": 1e-5, "atol": 2e-6}
STEPS, BATCH, INPUTS, HIDDEN = 5, 3, 4, 6
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
OUTPUTS = {"LSTM": 3, "GRU": 2, "RNN": 2}
OPERATORS = list(GATES)


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape, scale=0.7).astype(np.float32)


def layer(operator, directions=1, *, lengths=None, bias=True, states=True, peepholes=False):
    rows = GATES[operator] * HIDDEN
    state = [normal(directions, BATCH, HIDDEN, seed=seed) if states else None for seed in (4, 5)]
    inputs = [
        normal(STEPS, BATCH, INPUTS),
        normal(directions, rows, INPUTS, seed=1),
        normal(directions, rows, HIDDEN, seed=2),
        normal(directions, 2 * rows, seed=3) if bias else None,
        None if lengths is None else np.int32(lengths),
        state[0],
    ]
    if operator == "LSTM":
        inputs += [state[1], normal(directions, 3 * HIDDEN, seed=6) if peepholes else None]
    while inputs[-1] is None:
        inputs.pop()
    return inputs


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def step_of(operator, x, w, r, b, h, c):
    """One step in double precision with the functions and forms that are the default."""
    gates = len(w) // h.shape[-1]
    wb, rb = np.split(b, 2)
    xs, hs = np.split(x @ w.T + wb, gates, -1), np.split(h @ r.T + rb, gates, -1)
    if operator == "RNN":
        return np.tanh(xs[0] + hs[0]), c
    if operator == "GRU":
        z, reset = sigmoid(xs[0] + hs[0]), sigmoid(xs[1] + hs[1])
        new = np.tanh(xs[2] + (reset * h) @ np.split(r, 3)[2].T + np.split(rb, 3)[2])
        return (1 - z) * new + z * h, c
    i, o, f = (sigmoid(xs[k] + hs[k]) for k in range(3))
    c = f * c + i * np.tanh(xs[3] + hs[3])
    return o * np.tanh(c), c


def oracle(operator, inputs):
    """Y and the last states of a forward layer with bias, by the formulas."""
    x, w, r, b = (np.asarray(value, np.float64) for value in inputs[:4])
    h = c = np.zeros((x.shape[1], r.shape[-1]))
    ys = []
    for x_t in x:
        h, c = step_of(operator, x_t, w[0], r[0], b[0], h, c)
        ys.append(h)
    y = np.stack(ys)[:, None] if ys else np.zeros((0, 1, *h.shape))
    return [y, h[None], c[None]][: OUTPUTS[operator]]


@pytest.mark.parametrize("opset", [7, 14, 22])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_directions(check_node, operator, direction, opset):
    inputs = layer(operator, 1 + (direction == "bidirectional"))
    attributes = {"hidden_size": HIDDEN, "direction": direction}
    check_node(operator, inputs, opset=opset, attributes=attributes, outputs=OUTPUTS[operator], **CLOSE)


@pytest.mark.parametrize("lengths", [[5, 2, 3], [0, 5, 1], [0, 0, 0]])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_sequences_of_their_own_length(check_node, operator, direction, lengths):
    inputs = layer(operator, 1 + (direction == "bidirectional"), lengths=lengths)
    attributes = {"hidden_size": HIDDEN, "direction": direction}
    check_node(operator, inputs, opset=14, attributes=attributes, outputs=OUTPUTS[operator], **CLOSE)


@pytest.mark.parametrize("outputs", [[True], [False, True], [True, False, True], [False, False, True]])
def test_outputs_may_be_absent(check_node, outputs):
    check_node("LSTM", layer("LSTM"), opset=14, attributes={"hidden_size": HIDDEN}, outputs=outputs, **CLOSE)


@pytest.mark.parametrize("operator", OPERATORS)
def test_bias_and_states_may_be_absent(check_node, operator):
    inputs = layer(operator, bias=False, states=False)
    check_node(operator, inputs, opset=14, attributes={"hidden_size": HIDDEN}, outputs=OUTPUTS[operator], **CLOSE)


@pytest.mark.parametrize("clip", [None, 0.3])
@pytest.mark.parametrize(
    ("operator", "attributes"),
    [
        ("LSTM", {}),
        ("LSTM", {"input_forget": 1}),
        ("GRU", {}),
        ("GRU", {"linear_before_reset": 1}),
        ("RNN", {}),
    ],
)
def test_forms_of_the_cells(check_node, operator, attributes, clip):
    attributes = {"hidden_size": HIDDEN, **attributes, **({"clip": clip} if clip else {})}
    inputs = layer(operator, peepholes=operator == "LSTM")
    check_node(operator, inputs, opset=14, attributes=attributes, outputs=OUTPUTS[operator], **CLOSE)


@pytest.mark.parametrize(
    ("name", "alpha", "beta"),
    [
        ("Affine", [0.5], [0.1]),
        ("Elu", [0.7], []),
        ("Elu", [], []),
        ("HardSigmoid", [0.3], [0.4]),
        ("HardSigmoid", [], []),
        ("LeakyRelu", [0.2], []),
        ("LeakyRelu", [], []),
        ("Relu", [], []),
        ("ScaledTanh", [0.8], [1.2]),
        ("Sigmoid", [], []),
        ("Softplus", [], []),
        ("Softsign", [], []),
        ("Tanh", [], []),
        ("ThresholdedRelu", [0.1], []),
    ],
)
@pytest.mark.parametrize("operator", OPERATORS)
def test_activations(check_node, operator, name, alpha, beta):
    names = {"LSTM": ["Sigmoid", name, "Tanh"], "GRU": ["Sigmoid", name], "RNN": [name]}[operator]
    attributes = {"hidden_size": HIDDEN, "activations": names}
    attributes |= {"activation_alpha": alpha} if alpha else {}
    attributes |= {"activation_beta": beta} if beta else {}
    check_node(operator, layer(operator), opset=14, attributes=attributes, outputs=OUTPUTS[operator], **CLOSE)


def test_activations_take_the_parameters_in_turn(check_node):
    attributes = {
        "hidden_size": HIDDEN,
        "direction": "bidirectional",
        "activations": ["HardSigmoid", "LeakyRelu", "sigmoid", "Elu"],
        "activation_alpha": [0.3, 0.05, 0.6],
        "activation_beta": [0.4],
    }
    check_node("GRU", layer("GRU", 2), opset=14, attributes=attributes, outputs=2, **CLOSE)


@pytest.mark.parametrize("operator", OPERATORS)
def test_batch_first(check_node, node_model, operator):
    inputs = layer(operator, 2, lengths=[5, 0, 3])
    attributes = {"hidden_size": HIDDEN, "direction": "bidirectional"}
    outputs = OUTPUTS[operator]
    plan = compiler.compile(node_model(operator, inputs, opset=14, attributes=attributes, outputs=outputs))
    feeds = {f"x{i}": value for i, value in enumerate(inputs) if value is not None}
    y, *states = compiler.load(plan, threads=1).run(feeds).values()
    expected = [y.transpose(2, 0, 1, 3), *(state.swapaxes(0, 1) for state in states)]
    turned = [value.swapaxes(0, 1) if i in (0, 5, 6) else value for i, value in enumerate(inputs)]
    attributes |= {"layout": 1}
    check_node(operator, turned, opset=14, attributes=attributes, outputs=outputs, expected=expected, **CLOSE)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 2e-6), ("float16", 2e-3)])
@pytest.mark.parametrize("operator", OPERATORS)
def test_dtypes(check_node, operator, dtype, tolerance):
    inputs = [value.astype(dtype) for value in layer(operator, states=False)]
    expected = [value.astype(dtype) for value in oracle(operator, inputs)]
    arguments = {"attributes": {"hidden_size": HIDDEN}, "outputs": OUTPUTS[operator], "expected": expected}
    check_node(operator, inputs, opset=14, rtol=tolerance, atol=tolerance, **arguments)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("operator", OPERATORS)
def test_nothing_of_something(check_node, operator, axis):
    inputs = layer(operator, states=False)
    inputs[0] = inputs[0].take([], axis)
    inputs[1] = inputs[1][..., : inputs[0].shape[2]]
    expected = [value.astype(np.float32) for value in oracle(operator, inputs)]
    arguments = {"attributes": {"hidden_size": HIDDEN}, "outputs": OUTPUTS[operator], "expected": expected}
    check_node(operator, inputs, opset=14, **arguments, **CLOSE)


def test_the_first_version_says_whether_it_gives_its_sequence(node_model):
    inputs = layer("GRU", states=False)
    model = node_model("GRU", inputs, opset=1, attributes={"hidden_size": HIDDEN, "output_sequence": 1}, outputs=2)
    feeds = {f"x{i}": value for i, value in enumerate(inputs)}
    found = compiler.load(compiler.compile(model), threads=1).run(feeds).values()
    for one, other in zip(found, oracle("GRU", inputs), strict=True):
        np.testing.assert_allclose(one, other, **CLOSE)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"direction": "sideways"}, "no direction 'sideways'"),
        ({"activations": ["Tanh"]}, "needs 3 activations"),
        ({"activations": ["Tanh", "Tanh", "Cosine"]}, "no activation 'Cosine'"),
        ({"clip": -1.0}, "limit of a clip"),
        ({"layout": 2}, "layout 0 or 1"),
        ({"hidden_size": HIDDEN + 1}, "it must be"),
        ({"direction": "bidirectional"}, "it must be"),
    ],
)
def test_refusals(node_model, attributes, message):
    model = node_model("LSTM", layer("LSTM"), opset=14, attributes={"hidden_size": HIDDEN, **attributes}, outputs=3)
    with pytest.raises(compiler.CompileError, match=message):
        compiler.compile(model)


@pytest.mark.parametrize("lengths", [[6, 1, 1], [-1, 1, 1]])
def test_lengths_out_of_range_are_refused(node_model, lengths):
    inputs = layer("GRU", lengths=lengths)
    plan = compiler.compile(node_model("GRU", inputs, opset=14, attributes={"hidden_size": HIDDEN}, outputs=2))
    with pytest.raises(compiler.RunError, match="is out of range for sequences of 5 steps"):
        compiler.load(plan, threads=1).run({f"x{i}": value for i, value in enumerate(inputs)})


LAYER = "T[k, 4, h] x, T[1, a, h] w, T[1, a, h] r"

SCRATCH = [
    *rows(
        "float float16 double",
        f"{LAYER}, int32[4] z",
        "y, c = LSTM<hidden_size = 700>(x, w, r, , z)",
        h=700,
        a=2800,
        k=9,
    ),
    *rows("float double", LAYER, "y, c = GRU<hidden_size = 700>(x, w, r)", h=700, a=2100, k=9),
    *rows("float", LAYER, "y, c = RNN<hidden_size = 1400>(x, w, r)", h=1400, a=1400, k=9),
]
