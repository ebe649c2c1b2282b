"""The peak memory of a run's values is close to the minimum that its steps allow."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator

import onnx.parser
import pytest

import compiler
from compiler import Options
from compiler.accuracy.random_inputs import random_inputs
from compiler.runtime.prepared import PreparedStep, PreparedValue
from tests.trained.zoo import ABSENT, OTHERS

MARGIN = 1.10

Slot = tuple[str, str]
"""A value in a layout."""


Storage = list[Slot]
"""Values in the same memory, at the same time or one after another. It has the size of the largest live value."""


class Optimum:
    """The minimum memory of a block's values, from its steps in order and the abilities of their ops.

    A value is alive from the step that computes it to the last step that reads it. A view needs no memory. An output
    that reuses an input's storage needs none either.
    """

    def __init__(self, steps: list[PreparedStep], outputs: set[str]) -> None:
        self.steps = steps
        self.bytes: dict[Slot, int] = {}
        self.born: dict[Slot, int] = {}
        self.dies: dict[Slot, int] = {}
        for at, step in enumerate(steps):
            for value in values_of(step.inputs):
                self._note(value, 0, at)
            for value in values_of(step.outputs):
                self._note(value, at, at)
        for slot in self.dies:
            if slot[0].partition(":")[2] in outputs:
                self.dies[slot] = len(steps)
        self.storages = self._storages()

    def _note(self, value: PreparedValue, born: int, at: int) -> None:
        assert value.bytes is not None, f"{value.value}: {value.type}"
        slot = value.value, value.layout
        self.bytes[slot] = value.bytes
        self.born.setdefault(slot, born)
        self.dies[slot] = at

    def _storages(self) -> list[Storage]:
        storage_of = {slot: [slot] for slot in self.bytes}
        for at, step in enumerate(self.steps):
            for number, output in enumerate(step.outputs):
                if output is None:
                    continue
                slot = output.value, output.layout
                host = next(self._hosts(at, step, number, storage_of), None)
                if host is not None:
                    storage_of[host].append(slot)
                    storage_of[slot] = storage_of[host]
        return list({id(storage): storage for storage in storage_of.values()}.values())

    def _hosts(self, at: int, step: PreparedStep, number: int, storage_of: dict[Slot, Storage]) -> Iterator[Slot]:
        """The inputs in whose storage an output of a step may lie."""
        output = step.outputs[number]
        assert output is not None
        inputs = list(values_of(step.inputs))
        for i, value in enumerate(step.inputs):
            if value is None or value.constant:
                continue
            slot = value.value, value.layout
            ends = all(self.dies[member] <= at for member in storage_of[slot])
            is_read_once = sum(storage_of[other.value, other.layout] is storage_of[slot] for other in inputs) == 1
            is_taken = number == 0 and i in step.in_place and ends and is_read_once and value.bytes == output.bytes
            if is_taken or (i in step.shares and can_be_a_view(value, output)):
                yield slot

    def during(self, at: int) -> int:
        alive = {slot for slot in self.bytes if self.born[slot] <= at <= self.dies[slot]}
        return sum(max((self.bytes[slot] for slot in storage if slot in alive), default=0) for storage in self.storages)

    def peak(self) -> int:
        return max(map(self.during, range(len(self.steps))))


def can_be_a_view(source: PreparedValue, output: PreparedValue) -> bool:
    """Whether the output can be all of the source, or rows of its outermost dim that is not 1."""
    rows, found = (without_ones(dims_of(value)) for value in (source, output))
    return source.bytes == output.bytes or found[1:] == rows[1:] or found == without_ones(rows[1:])


def dims_of(value: PreparedValue) -> list[int]:
    dims: list[int] = json.loads(value.type[value.type.index("[") :])
    return dims


def without_ones(dims: list[int]) -> list[int]:
    """The dims from the first that is not 1."""
    return list(itertools.dropwhile(lambda dim: dim == 1, dims))


def values_of(values: list[PreparedValue | None]) -> Iterator[PreparedValue]:
    return (value for value in values if value is not None and not value.constant)


def measured_and_least(session: compiler.Session) -> tuple[int, int]:
    """The peak of a run, and the least possible, both of the plan's own block."""
    steps = [step for step in session.prepared().steps if step.depth == 0]
    least = Optimum(steps, {info.name for info in session.outputs}).peak()
    ran = session.profile(random_inputs(session.inputs, {}), 1)
    return max(step.alive_bytes for step in ran), least


GRAPHS = {
    "a chain": "(float[1000] x) => (float[1000] y) { a = Neg(x)  b = Sin(a)  c = Cos(b)  y = Exp(c) }",
    "branches": """(float[50, 50] x) => (float[50, 50] y) {
        a = MatMul(x, x)  b = MatMul(a, a)  c = MatMul(a, b)  d = MatMul(b, c)  y = Add(c, d) }""",
    "a long skip": """(float[1, 16, 20, 20] x) => (float[1, 16, 20, 20] y) {
        a = MaxPool<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(x)
        b = MaxPool<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(a)
        c = AveragePool<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(b)
        d = Add(c, x)
        y = MaxPool<kernel_shape = [1, 1]>(d) }""",
    "views": """(float[40, 60] x) => (float[60, 40] y, float[10, 60] z) <int64[2] s = {60, 40}, int64[1] from = {5},
        int64[1] to = {15}> { a = Exp(x)  b = Reshape(a, s)  y = Softmax(b)  z = Slice(a, from, to) }""",
    "what a view keeps": """(float[40, 60] x) => (float[40, 60] y) <int64[2] s = {40, 60}> {
        a = Softmax(x)  b = Reshape(a, s)  c = Softmax(b)  y = Add(c, b) }""",
    "a broadcast": """(float[40, 60] x, float[60] v) => (float[40, 60] y) { a = Softmax(x)  y = Mul(v, a) }""",
    "parts": """(float[40, 60] x) => (float[40, 60] y) {
        a, b = Split<axis = 1, num_outputs = 2>(x)  c = Softmax(a)  d = Softmax(b)  y = Concat<axis = 1>(c, d) }""",
}


@pytest.mark.parametrize("optimize", [False, True], ids=["as written", "optimized"])
@pytest.mark.parametrize("name", GRAPHS)
def test_values_take_what_they_must(name: str, optimize: bool) -> None:
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20]> agraph {GRAPHS[name]}')
    session = compiler.load(compiler.compile(model, Options(optimize=optimize)), threads=1)
    measured, least = measured_and_least(session)
    assert least <= measured <= MARGIN * least


LOOP = """
(float[1000] x, int64 count, bool go) => (float[1000] y) {
    y = Loop(count, go, x) <body = turn (int64 i, bool more, float[1000] v) => (bool on, float[1000] w)
        { on = Identity(more)  a = Sin(v)  b = Softmax(a)  w = Add(a, b) }>
}
"""


def test_a_loop_holds_what_a_turn_does() -> None:
    """The peak counts the loop's initial values, the values that an iteration gets, and two temporary values."""
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20]> agraph {LOOP}')
    session = compiler.load(compiler.compile(model, Options(optimize=False)), threads=1)
    given = random_inputs(session.inputs, {})
    given["count"][...], given["go"][...] = 5, True
    assert max(step.alive_bytes for step in session.profile(given, 1)) <= MARGIN * 4 * 4000


SIZES: dict[str, dict[str, int]] = {
    "basic_pitch_nmp": {"unk__749": 1},
    "blazeface_back_256": {},
    "deeplab_v3": {},
    "dtln_model_1": {},
    "gtcrn_stream_simple": {},
    "magika_standard_v3_3": {"unk__214": 1},
    "mobilenetv2_int8_maui": {"batch": 1},
    "oww_embedding": {"unk__316": 1},
    "super_resolution_pt": {"batch_size": 1},
    "yolox_nano": {},
}
"""Models, with the sizes of their symbolic dimensions. All sizes in their plans are then known."""


@pytest.mark.skipif(not (OTHERS / "INDEX.json").exists(), reason=ABSENT)
@pytest.mark.parametrize("name", SIZES)
def test_trained_models_take_what_they_must(name: str) -> None:
    session = compiler.load(compiler.compile(OTHERS / f"{name}.onnx", Options(dims=SIZES[name])), threads=1)
    measured, least = measured_and_least(session)
    assert least <= measured <= MARGIN * least, f"{measured / least:.2f} times the least"
