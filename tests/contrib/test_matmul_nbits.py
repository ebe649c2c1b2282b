import dataclasses
from typing import Any

import numpy as np
import pytest

import compiler
from compiler import CompileError
from compiler.accuracy.reference import Reference
from tests.contrib.cases import HALF, Array, Case, case, check, integers, models, normal

OP = "MatMulNBits"


def weights(rows: int, width: int, block: int, bits: int, *, zeros: Any = None, dtype: Any = np.float32) -> list[Any]:
    """Codes, scales and zero points, which are packed bytes, or numbers, or absent."""
    count = -(-width // block)
    codes = integers(0, 256, rows, count, block * bits // 8, dtype=np.uint8)
    scales = (0.1 + 0.05 * np.abs(normal(rows, count))).astype(dtype)
    if zeros == "packed":
        return [codes, scales, integers(0, 256, rows, -(-count * bits // 8), dtype=np.uint8)]
    return [codes, scales, None if zeros is None else (8 + normal(rows, count)).astype(dtype)]


def given(name: str, rows: int, width: int, block: int, bits: int = 4, **options: Any) -> Any:
    kept = {key: options.pop(key) for key in ("zeros", "dtype") if key in options}
    found = weights(rows, width, block, bits, **kept)
    more = options.pop("more", ())
    constants = [i + 1 for i, array in enumerate((*found, *more)) if array is not None]
    fields = {"constants": constants, "dims": {0: "B S _"}, "N": rows, "K": width, "block_size": block, "bits": bits}
    x = normal(2, 3, width, dtype=kept.get("dtype", np.float32))
    return case(OP, x, *found, *more, name=name, **{**fields, **options})


GROUPS = integers(0, 4, 64, dtype=np.int32)

CASES = [
    given("plain", 8, 64, 16),
    given("run-time weights", 8, 64, 16, constants=()),
    given("packed zero points", 8, 64, 16, zeros="packed"),
    given("run-time zero points", 8, 64, 16, zeros="packed", constants=(1, 2)),
    given("run-time weights and zero points", 8, 64, 16, zeros="packed", constants=()),
    given("odd number of blocks", 8, 48, 16, zeros="packed"),
    given("zero points that are numbers", 8, 64, 16, zeros="float"),
    given("partial block", 8, 40, 16),
    given("partial block, packed zero points", 8, 40, 16, zeros="packed"),
    given("partial block, run-time weights", 8, 40, 16, zeros="packed", constants=()),
    given("one block", 8, 16, 128),
    given("8 bits", 8, 64, 16, bits=8),
    given("8 bits, zero points", 8, 40, 16, bits=8, zeros="packed"),
    given("2 bits", 8, 64, 16, bits=2),
    given("2 bits, zero points", 8, 96, 16, bits=2, zeros="packed"),
    given("2 bits, run-time weights", 8, 40, 16, bits=2, zeros="packed", constants=()),
    given("groups", 8, 64, 16, more=(GROUPS,)),
    given("groups, zero points that are numbers", 8, 64, 16, zeros="float", more=(GROUPS,)),
    given("bias", 8, 64, 16, more=(None, normal(8))),
    given("full precision", 8, 64, 32, accuracy_level=1, zeros="packed"),
    given("float16", 8, 64, 32, zeros="packed", dtype=np.float16, **HALF),
    given("float16, numbers", 8, 64, 32, zeros="float", dtype=np.float16, **HALF),
]


@pytest.mark.parametrize("found", CASES)
def test_equals_onnxruntime(found: Case) -> None:
    check(found)


@pytest.mark.parametrize("level", [2, 3])
def test_less_precise_levels_are_computed_precisely(level: int) -> None:
    """A level says how precise the left operand must be, at least."""
    precise: Case = given("", 8, 64, 32, accuracy_level=1).values[0]
    wanted = compiler.load(compiler.compile(precise.model())).run(precise.feeds)["y0"]
    check(dataclasses.replace(precise, attributes={**precise.attributes, "accuracy_level": level}, expected=[wanted]))


def operands(found: Case) -> list[Array]:
    """A `[rows, blocks, block]`, the codes minus zero points `[N, blocks, block]`, and the scales `[N, blocks]`."""
    a, codes, scales, zeros = [*found.inputs, None][:4]
    assert a is not None and codes is not None and scales is not None
    bits, block, blocks = found.attributes["bits"], found.attributes["block_size"], codes.shape[1]
    padded = np.zeros((a[..., 0].size, blocks * block), np.float32)
    padded[:, : a.shape[-1]] = a.reshape(len(padded), -1)

    def unpacked(packed: Array) -> Array:
        return (packed[..., None] >> np.arange(0, 8, bits, dtype=np.uint8) & (1 << bits) - 1).reshape(len(packed), -1)

    if zeros is not None and zeros.dtype == np.uint8:
        zeros = unpacked(zeros)[:, :blocks]
    points = np.full(scales.shape, 1 << (bits - 1)) if zeros is None else zeros
    differences = unpacked(codes).reshape(len(codes), blocks, block) - points[..., None].astype(np.float64)
    return [padded.reshape(-1, blocks, block), differences, scales.astype(np.float64)]


def rounded(a: Array) -> Array:
    """The nearest multiples of the scale of each block: its largest magnitude, divided by 127."""
    most = np.abs(a).max(axis=2, keepdims=True)
    steps = np.divide(np.float32(127), most, out=np.zeros_like(most), where=most > 0)
    return np.asarray(np.rint(a * steps).astype(np.float64) * (most / np.float32(127)))


def product_of(a: Array, weights: Array, scales: Array) -> Array:
    return np.asarray(np.einsum("mbk,nbk,nb->mn", a.astype(np.float64), weights, scales, optimize=True))


def error(found: Array, wanted: Array) -> float:
    return float(np.linalg.norm(found.reshape(wanted.shape) - wanted) / np.linalg.norm(wanted))


ROUNDED = [
    given(f"{bits} bits in blocks of {block}, {zeros} zeros", 40, width, block, bits, zeros=zeros, accuracy_level=4)
    for bits in (2, 4, 8)
    for width, block in ((256, 16), (200, 32), (192, 64), (512, 128), (300, 256))
    for zeros in (None, "packed")
    if bits > 2 or block in (32, 64, 128)
]


@pytest.mark.parametrize("found", ROUNDED)
def test_level_4_may_round_the_left_operand(found: Case) -> None:
    """The result is that of the definition, and onnxruntime's. Its error is at most twice onnxruntime's."""
    a, weights, scales = operands(found)
    exact, wanted = product_of(a, weights, scales), product_of(rounded(a), weights, scales)
    reference = next(iter(Reference(found.model(), optimize=False).run(found.feeds).values()))
    assert error(reference, wanted) < 1e-6
    for _, model in models(found):
        for optimize in (True, False):
            plan = compiler.compile(model, compiler.Options(optimize=optimize))
            (step,) = plan.document["main"]["steps"]
            assert step["op"]["MatMulNBits"]["rounds_a"]
            result = compiler.load(plan, threads=1).run(found.feeds)["y0"]
            assert min(error(result, wanted), error(result, exact)) < 1e-6
            assert error(result, exact) <= 2 * error(reference, exact)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("rows", [1, 5, 40])
def test_level_4_gives_the_same_bits_for_every_number_of_threads(rows: int, bits: int) -> None:
    found = weights(300, 1024, 32, bits, zeros="packed")
    more = {"N": 300, "K": 1024, "block_size": 32, "bits": bits, "accuracy_level": 4}
    product: Case = case(OP, normal(rows, 1024), *found, name="", constants=(1, 2, 3), **more).values[0]
    plan = compiler.compile(product.model())
    results = [compiler.load(plan, threads=threads).run(product.feeds)["y0"] for threads in (1, 2, 3)]
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


PRECISE: list[dict[str, Any]] = [
    {"constants": ()},
    {"constants": (1, 2)},
    {"more": (GROUPS,), "zeros": None},
    {"zeros": "float"},
    {"bits": 2},
]


@pytest.mark.parametrize("options", PRECISE)
def test_level_4_is_computed_precisely_elsewhere(options: dict[str, Any]) -> None:
    """Weights of a run, groups, and products that onnxruntime computes precisely too."""
    product: Case = given("", 8, 64, 16, accuracy_level=4, **{"zeros": "packed", **options}).values[0]
    precise = dataclasses.replace(product, attributes={**product.attributes, "accuracy_level": 1})
    wanted = Reference(precise.model(), optimize=False).run(product.feeds)
    check(dataclasses.replace(product, expected=list(wanted.values())))


def test_level_4_in_float16_rounds_the_result_once() -> None:
    product: Case = given("", 40, 256, 32, accuracy_level=4, zeros="packed", dtype=np.float16).values[0]
    a, weights, scales = operands(product)
    found = compiler.load(compiler.compile(product.model()), threads=1).run(product.feeds)["y0"]
    assert found.dtype == np.float16 and error(found, product_of(rounded(a), weights, scales)) < 5e-4


MANY = [(rows, width, block, bits) for rows in (1, 4, 9) for width, block in ((256, 32), (200, 64)) for bits in (4, 8)]


@pytest.mark.parametrize(("rows", "width", "block", "bits"), MANY)
def test_constant_weights_keep_their_bits(rows: int, width: int, block: int, bits: int) -> None:
    """The product, the bias and the activation are one step."""
    found = weights(70, width, block, bits, zeros="packed")
    more = {"N": 70, "K": width, "block_size": block, "bits": bits}
    x = normal(rows, width)
    atol = {4: 2e-4, 8: 4e-3}[bits]  # 1e-5 of the largest results, about 20 and 400
    product: Case = case(OP, x, *found, None, normal(70), name="", constants=(1, 2, 3, 5), atol=atol, **more).values[0]
    check(product)
    plan = compiler.compile(product.model())
    assert [[*step["op"]] for step in plan.document["main"]["steps"]] == [["MatMulNBits"]]
    assert len(plan.data) < 70 * width * bits / 8 * 2 + 10_000


def test_zero_points_that_are_numbers_are_numbers_of_the_plan() -> None:
    product: Case = given("", 8, 64, 16, zeros="float").values[0]
    for optimize in (True, False):
        plan = compiler.compile(product.model(), compiler.Options(optimize=optimize))
        assert [[*step["op"]] for step in plan.document["main"]["steps"]] == [["MatMulNBits"]]


def packed4(count: int) -> Array:
    return integers(0, 256, -(-count // 2), dtype=np.uint8)


def bnb(name: str, rows: int, width: int, block: int, kind: int, **options: Any) -> Any:
    count = rows * width
    scales = (0.5 + np.abs(normal(-(-count // block)))).astype(np.float32)
    inputs = (normal(3, width), packed4(count), scales)
    fields = {"constants": (1, 2), "dims": {0: "S _"}, "N": rows, "K": width, "block_size": block, "quant_type": kind}
    return case("MatMulBnb4", *inputs, name=name, **{**fields, **options})


CASES_OF_BNB4 = [
    bnb("FP4", 8, 32, 16, 0),
    bnb("NF4", 8, 32, 16, 1),
    bnb("NF4 of run-time weights", 8, 32, 16, 1, constants=()),
    bnb("partial block", 6, 20, 16, 1, training_mode=1),
    bnb("odd count", 5, 9, 16, 0),
    bnb("odd count of run-time weights", 5, 9, 16, 0, constants=()),
]
CASES += CASES_OF_BNB4


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"bits": 3}, "bits is 3"),
        ({"N": 0}, "N is 0"),
        ({"N": 9}, "9 rows of 64 codes"),
        ({"weight_prepacked": 1}, "prepacked"),
    ],
)
def test_refusals(attributes: dict[str, int], reason: str) -> None:
    found: Case = given("", 8, 64, 16).values[0]
    with pytest.raises(CompileError, match=reason):
        compiler.compile(dataclasses.replace(found, attributes={**found.attributes, **attributes}).model())


@pytest.mark.parametrize("dtype", [np.float32, np.bool_, np.int8, np.int32])
@pytest.mark.parametrize("constants", [(), (1, 2)], ids=["run-time", "constant"])
def test_weights_of_another_type_are_refused(dtype: Any, constants: tuple[int, ...]) -> None:
    blocks: Case = given("", 8, 64, 16, constants=constants).values[0]
    codes: Case = bnb("", 8, 32, 16, 1, constants=constants).values[0]
    for found, op in ((blocks, OP), (codes, "MatMulBnb4")):
        a, b, *scales = found.inputs
        changed = dataclasses.replace(found, inputs=[a, b.astype(dtype), *scales])
        with pytest.raises(CompileError, match=f"{op}'s input B has the element type|{op}'s input B is") as error:
            compiler.compile(changed.model())
        assert all(each.origin and op in str(each.origin) for each in error.value.diagnostics)


@pytest.mark.parametrize(("bits", "zeros"), [(2, None), (8, None), (4, "packed")])
def test_groups_that_onnxruntime_lacks_are_refused(bits: int, zeros: str | None) -> None:
    found: Case = given("", 8, 64, 16, bits=bits, zeros=zeros, more=(GROUPS,)).values[0]
    with pytest.raises(CompileError, match="g_idx"):
        compiler.compile(found.model())


def test_bnb4_without_transposition_is_refused() -> None:
    found: Case = bnb("", 8, 32, 16, 1, transB=0).values[0]
    with pytest.raises(CompileError, match="transB is 0"):
        compiler.compile(found.model())
