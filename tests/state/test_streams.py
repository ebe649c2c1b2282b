"""Streaming models of the zoo, and GPT-2: runs with a state equal runs that feed outputs back by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compiler
from compiler import Options
from compiler.plan.state import Asked
from tests.state.models import assert_same, fed_back
from tests.trained.zoo import ABSENT, entries

ENTRIES = entries()

STREAMS: dict[str, tuple[Asked, dict[str, str]]] = {
    "gtcrn_stream_simple": ("auto", {f"{name}_cache_out": f"{name}_cache" for name in ("conv", "tra", "inter")}),
    "silero_vad_op18_ifless": ("auto", {"stateN": "state"}),
    "silero_vad_v6": ("auto", {"stateN": "state"}),
    "dtln_model_1": ({"tf_op_layer_stack_2": "input_3"}, {"tf_op_layer_stack_2": "input_3"}),
}
"""Models of the zoo with a state, with the argument `state` and the resulting pairs."""

UNNAMED = {"silero_vad_v6"}
"""The models whose batch has no name, so that no other input decides the size of the state."""


@pytest.mark.parametrize("name", STREAMS)
def test_streams_of_the_zoo(name: str) -> None:
    if name not in ENTRIES:
        pytest.skip(ABSENT)
    entry, (asked, pairs) = ENTRIES[name], STREAMS[name]
    session = compiler.load(compiler.compile(entry.path, Options(state=asked)), threads=2)
    assert {pair.output: pair.input for pair in session.state} == pairs
    for case in entry.cases:
        given = dict(entry.inputs(case))
        first = {target: np.zeros_like(given.pop(target)) for target in pairs.values()}
        generator = np.random.default_rng(0)
        steps = [{each: _drawn(value, generator) for each, value in given.items()} for _ in range(5)]
        state = session.new_state(sizes={"state.1": first["state"].shape[1]} if name in UNNAMED else None)
        for inputs, wanted in zip(steps, fed_back(session, pairs, first, steps), strict=True):
            found = session.run(inputs, state=state)
            assert_same(found, {name: wanted[name] for name in wanted if name not in pairs})
        assert_same(state.numpy(), {pairs[name]: wanted[name] for name in wanted if name in pairs})


def _drawn(value: Any, generator: np.random.Generator) -> Any:
    """Noise of the same shape as an input of floats; another input as it is."""
    if value.dtype != np.float32:
        return value
    return generator.standard_normal(value.shape, np.float32) * value.std()


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small GPT-2 that reads some tokens after a cache, with seeded weights."""
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    transformers = pytest.importorskip("transformers", reason="needs transformers")
    config = transformers.GPT2Config(n_layer=2, n_head=4, n_embd=64, vocab_size=211, n_positions=96)

    class Decode(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.gpt2 = transformers.GPT2LMHeadModel(config)

        def forward(self, input_ids: Any, past_0: Any, past_1: Any, past_2: Any, past_3: Any) -> Any:
            past = [past_0, past_1, past_2, past_3]
            cache = transformers.DynamicCache(zip(past[::2], past[1::2], strict=True))
            found = self.gpt2(input_ids=input_ids, past_key_values=cache, use_cache=True)
            layers = found.past_key_values.layers
            return found.logits, *(tensor for layer in layers for tensor in (layer.keys, layer.values))

    past = [torch.zeros(1, 4, 7, 16) for _ in range(4)]
    path = tmp_path_factory.mktemp("gpt2") / "gpt2.onnx"
    dynamic = {"input_ids": {1: "tokens"}, **{f"past_{at}": {2: "past"} for at in range(4)}}
    names = ["logits", *(f"present_{at}" for at in range(4))]
    given = (torch.zeros(1, 3, dtype=torch.int64), *past)
    return compiler.export(Decode(), given, path, dynamic, outputs=names, check=False)


@pytest.mark.parametrize("device", ["cpu", "emulator"])
def test_gpt2_writes_the_same_tokens(gpt2: Path, device: str) -> None:
    if device == "emulator":
        pytest.importorskip("compiler._runtime_emulator", reason="the emulator is not built: `make emulator`")
    plan = compiler.compile(gpt2, Options(state="auto"))
    assert [next(iter(step["op"])) for step in plan.document["main"]["steps"]].count("Attention") == 2
    session = compiler.load(plan, device, threads=2)
    pairs = {f"present_{at}": f"past_{at}" for at in range(4)}
    assert {pair.output: pair.input for pair in session.state} == pairs
    assert {pair.axis for pair in session.state} == {2}
    first = {name: np.zeros((1, 4, 0, 16), np.float32) for name in pairs.values()}
    state, tokens = session.new_state(), np.array([[3, 1, 4, 1, 5, 9, 2, 6]])
    held: dict[str, Any] = first
    for _ in range(12):
        wanted = session.run({"input_ids": tokens, **held})
        held = {target: wanted[source] for source, target in pairs.items()}
        found = session.run({"input_ids": tokens}, state=state)
        assert_same(found, {"logits": wanted["logits"]})
        tokens = found["logits"][:, -1:].argmax(-1)
    assert_same(state.numpy(), held)
    state.truncate(8)
    again = session.run({"input_ids": tokens}, state=state)
    short = {name: value[:, :, :8] for name, value in held.items()}
    assert_same(again, {"logits": session.run({"input_ids": tokens, **short})["logits"]})
