"""The quantized LSTM, with a batch of one: with more, onnxruntime's result depends on its number of threads."""

from typing import Any

import numpy as np
import onnx
import pytest

import compiler
from compiler import CompileError
from tests.contrib.cases import Array, Case, case, check, integers, normal

OP = "DynamicQuantizeLSTM"
X, HIDDEN = normal(6, 1, 5), 4
CLOSE = {"rtol": 1e-4, "atol": 1e-5}
ALL = (True, True, True)


def weights(count: int, kind: type) -> list[Array]:
    limits = np.iinfo(kind)
    return [integers(int(limits.min), int(limits.max) + 1, count, rows, 4 * HIDDEN, dtype=kind) for rows in (5, HIDDEN)]


def lstm(
    name: str,
    *,
    count: int = 1,
    kind: type = np.int8,
    zero: int = 0,
    is_list: bool = False,
    more: Any = (),
    length: int | None = None,
    **options: Any,
) -> Any:
    w, r = weights(count, kind)
    shape = (count, 4 * HIDDEN) if is_list else (count,)
    scales = [(0.003 + np.abs(normal(*shape, seed=seed)) / 500).astype(np.float32) for seed in (1, 2)]
    zeros = np.full(shape, zero, kind)
    bias, start, cell, peepholes = [*more, *[None] * (4 - len(more))]
    lengths = None if length is None else np.int32([length])
    operands = (X, w, r, bias, lengths, start, cell, peepholes, scales[0], zeros, scales[1], zeros)
    constants = (1, 2, 8, 9, 10, 11)
    fields = {"hidden_size": HIDDEN, "outputs": ALL, "constants": constants, "dims": {0: "S _ _"}, **CLOSE}
    return case(OP, *operands, name=name, **{**fields, **options})


def states(count: int) -> tuple[Array, ...]:
    return normal(count, 8 * HIDDEN), normal(count, 1, HIDDEN), normal(count, 1, HIDDEN, seed=1)


CASES = [
    lstm("plain"),
    lstm("uint8", kind=np.uint8, zero=128),
    lstm("columns", is_list=True),
    lstm("columns of uint8", kind=np.uint8, zero=120, is_list=True),
    lstm("bias", more=states(1)[:1]),
    lstm("states", more=states(1)),
    lstm("peepholes", more=(*states(1), normal(1, 3 * HIDDEN))),
    lstm("reverse", more=states(1), direction="reverse"),
    lstm("bidirectional", count=2, more=states(2), direction="bidirectional"),
    lstm("bidirectional columns", count=2, is_list=True, direction="bidirectional"),
    lstm("clip", more=states(1), clip=0.7),
    lstm("clip and peepholes", more=(*states(1), normal(1, 3 * HIDDEN)), clip=0.7),
    lstm("coupled gates", more=states(1), input_forget=1),
    *[
        lstm(f"{' '.join(names)}", more=states(1), activations=names, **parameters)
        for names, parameters in [
            (["HardSigmoid", "Relu", "Softsign"], {}),
            (["Affine", "ScaledTanh", "LeakyRelu"], {"activation_alpha": [0.3, 1.2], "activation_beta": [0.4, 0.7]}),
            (["hardsigmoid", "Elu", "tanh"], {"activation_alpha": [0.3, 0.6], "activation_beta": [0.4]}),
            (["Sigmoid", "Softplus", "ThresholdedRelu"], {"activation_alpha": [0.2]}),
        ]
    ],
    lstm(
        "functions of two directions",
        count=2,
        more=states(2),
        direction="bidirectional",
        activations=["HardSigmoid", "Tanh", "Relu", "Sigmoid", "Softsign", "Tanh"],
    ),
    *[lstm(f"{each} steps", more=states(1), length=each) for each in (1, 4, 6)],
    lstm("four steps of a symbolic batch", more=states(1), length=4, dims={0: "S B _", 4: "B"}),
    lstm("four steps reversed", more=states(1), length=4, direction="reverse", dims={0: "S B _", 4: "B"}),
    lstm(
        "four steps in two directions",
        count=2,
        more=states(2),
        length=4,
        direction="bidirectional",
        dims={0: "S B _", 4: "B", 5: "_ B _", 6: "_ B _"},
    ),
    lstm("the default activations", activations=["Sigmoid", "Tanh", "Tanh"], input_forget=0),
]


@pytest.mark.parametrize("given", CASES)
def test_equals_onnxruntime(given: Case) -> None:
    check(given)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"direction": "sideways"}, "no direction 'sideways'"),
        ({"activations": ["Relu", "Tanh"]}, "needs 3 activations for forward, found 2"),
        ({"activations": ["Relu", "Tanh", "Cosine"]}, "no activation 'Cosine'"),
        ({"input_forget": 2}, "input_forget is 0 or 1"),
        ({"clip": 0.0}, "clip is 0.0, which is not positive"),
    ],
)
def test_refusals(changed: dict[str, Any], reason: str) -> None:
    plain: Case = CASES[0].values[0]
    given = Case(OP, plain.inputs, {**plain.attributes, **changed}, plain.outputs, constants=plain.constants)
    with pytest.raises(CompileError, match=reason):
        compiler.compile(given.model())


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_rows_without_steps(direction: str) -> None:
    count = 2 if direction == "bidirectional" else 1
    given: Case = lstm("no steps", count=count, more=states(count), length=0, direction=direction).values[0]
    results = compiler.load(compiler.compile(given.model())).run(given.feeds).values()
    rows = len(X[0])
    assert [each.shape for each in results] == [(len(X), count, rows, HIDDEN), *[(count, rows, HIDDEN)] * 2]
    assert not any(each.any() for each in results)


def test_a_state_of_unknown_rank() -> None:
    """As onnxruntime's quantizer writes it: the model computes the initial states."""
    given: Case = lstm("states", more=states(1)).values[0]
    model = given.model()
    for name in ("x5", "x6"):
        shape = onnx.helper.make_tensor_value_info(f"{name}_shape", onnx.TensorProto.INT64, ["rank"])
        model.graph.input.append(shape)
        model.graph.node.insert(0, onnx.helper.make_node("Reshape", [name, f"{name}_shape"], [f"{name}_state"]))
        (node,) = (each for each in model.graph.node if each.op_type == OP)
        node.input[int(name[1:])] = f"{name}_state"
    feeds = {**given.feeds, **{f"{name}_shape": np.array(given.feeds[name].shape) for name in ("x5", "x6")}}
    found = compiler.load(compiler.compile(model)).run(feeds)
    for name, wanted in compiler.load(compiler.compile(given.model())).run(given.feeds).items():
        np.testing.assert_array_equal(found[name], wanted)


@pytest.mark.parametrize(("direction", "last"), [("forward", 1), ("reverse", 0)])
def test_a_row_that_ends_earlier(direction: str, last: int) -> None:
    """Its later rows are zero, and its last state is that of its own last step."""
    plain: Case = lstm("four steps", length=4, direction=direction).values[0]
    pair = np.repeat(X, 2, axis=1)
    found = []
    for lengths in ([4, 4], [4, 2]):
        inputs = [pair, *plain.inputs[1:4], np.int32(lengths), *plain.inputs[5:]]
        given = Case(OP, inputs, plain.attributes, ALL, constants=plain.constants)
        found.append([*compiler.load(compiler.compile(given.model())).run(given.feeds).values()])
    rows, state, _ = found[1]
    assert not rows[2:, :, 1].any() and not rows[4:].any() and rows[:2].all() and rows[:4, :, 0].all()
    np.testing.assert_array_equal(state[:, 1], rows[last, :, 1])
    if direction == "forward":
        np.testing.assert_array_equal(rows[:2], found[0][0][:2])


@pytest.mark.parametrize(("index", "name"), [(3, "B"), (5, "initial_h"), (6, "initial_c")])
def test_inputs_of_another_rank_are_refused(index: int, name: str) -> None:
    full: Case = next(
        each.values[0] for each in CASES if len(each.values[0].inputs) > 6 and each.values[0].inputs[6] is not None
    )
    inputs = [each[None] if at == index and each is not None else each for at, each in enumerate(full.inputs)]
    with pytest.raises(CompileError, match=f"input {name} has"):
        compiler.compile(Case(OP, inputs, full.attributes, full.outputs, constants=full.constants).model())
