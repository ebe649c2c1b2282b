"""T5 and Whisper with seeded weights, exported as an encoder and decoders with caches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx

import compiler
from tests.generation.models import cache_of, flat, names, renamed, torch, transformers

KINDS = ("decoder.", "encoder.")
PAST, PRESENT = names("past_key_values", KINDS), names("present", KINDS)
"""The caches of the decoder's own tokens, then those of the encoder's output, which do not change."""
_TEXT = {"vocab_size": 211, "d_model": 64, "decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": None}


def t5() -> Any:
    torch.manual_seed(0)
    sizes = {"d_kv": 16, "d_ff": 96, "num_layers": 2, "num_heads": 4, "tie_word_embeddings": False}
    config = transformers.T5Config(**_TEXT, **sizes, attn_implementation="eager")
    model = transformers.T5ForConditionalGeneration(config).eval()
    for weights in model.parameters():
        if weights.ndim == 2:
            torch.nn.init.normal_(weights, std=0.2)
    return model


def whisper() -> Any:
    torch.manual_seed(0)
    layers = {"encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4}
    sizes = {
        "encoder_ffn_dim": 96,
        "decoder_ffn_dim": 96,
        "num_mel_bins": 20,
        "max_source_positions": 30,
        "init_std": 0.2,
    }
    tokens = {"bos_token_id": 0, "suppress_tokens": None, "begin_suppress_tokens": None, "max_target_positions": 64}
    config = transformers.WhisperConfig(**_TEXT, **layers, **sizes, **tokens)
    return transformers.WhisperForConditionalGeneration(config).eval()


class Encode(torch.nn.Module):
    """The encoder's output of tokens, or of a spectrogram."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.encoder = model.get_encoder()

    def forward(self, inputs: Any) -> Any:
        return self.encoder(inputs).last_hidden_state


class First(torch.nn.Module):
    """The decoder for the first tokens: it makes all caches."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Any, encoder_hidden_states: Any) -> Any:
        return self.run(input_ids, encoder_hidden_states, [], [])

    def run(self, input_ids: Any, hidden: Any, own: list[Any], cross: list[Any]) -> Any:
        past = transformers.EncoderDecoderCache(cache_of(own), cache_of(cross))
        found = self.model(encoder_outputs=(hidden,), decoder_input_ids=input_ids, past_key_values=past, use_cache=True)
        caches = found.past_key_values
        return found.logits, *flat(caches.self_attention_cache), *flat(caches.cross_attention_cache)


class Next(First):
    """The decoder for the tokens after the first ones: it reads all caches, and extends its own."""

    def forward(
        self, input_ids: Any, own_0: Any, own_1: Any, own_2: Any, own_3: Any, c_0: Any, c_1: Any, c_2: Any, c_3: Any
    ) -> Any:
        hidden = torch.zeros(c_0.shape[0], c_0.shape[2], self.model.config.d_model)  # only its size matters
        return self.run(input_ids, hidden, [own_0, own_1, own_2, own_3], [c_0, c_1, c_2, c_3])[:5]


def exported(model: Any, inputs: Any, folder: Path, time: dict[int, str]) -> list[Path]:
    """The files of the encoder, of `First` and of `Next`, with the names that Optimum writes.

    `time` names the dimension of the inputs that may vary.
    """
    encoder, first, later = (folder / f"{name}.onnx" for name in ("encoder", "decoder", "decoder_with_past"))
    compiler.export(
        Encode(model), (inputs,), encoder, {"inputs": time} if time else None, outputs=["hidden"], check=False
    )
    tokens = torch.ones(1, 3, dtype=torch.int64)
    with torch.no_grad():
        hidden = Encode(model)(inputs)
        _, *caches = First(model)(torch.ones(1, 7, dtype=torch.int64), hidden)
    source = {1: "source"} if time else {}
    dynamic = {"input_ids": {1: "tokens"}, "encoder_hidden_states": source}
    compiler.export(First(model), (tokens, hidden), first, dynamic, outputs=["logits", *PRESENT], check=False)
    own, cross = [f"own_{at}" for at in range(4)], [f"c_{at}" for at in range(4)]
    dynamic = {"input_ids": {1: "tokens"}, **{name: {2: "past"} for name in own}}
    dynamic |= {name: {2: "source"} if time else {} for name in cross}
    compiler.export(Next(model), (tokens, *caches), later, dynamic, outputs=["logits", *PRESENT[:4]], check=False)
    return [encoder, first, renamed(later, dict(zip(own + cross, PAST, strict=True)))]


def merged(first: Path, later: Path, path: Path) -> Path:
    """One decoder that chooses between both by `use_cache_branch`, as Optimum writes it.

    With caches, its outputs for the caches of the encoder are empty.
    """
    models = [onnx.load(first), onnx.load(later)]
    inputs = {value.name: value for model in models for value in model.graph.input}
    outputs = list(models[0].graph.output)
    for model in models:
        del model.graph.input[:]
    branch = models[1].graph
    for name in PRESENT[4:]:
        empty = onnx.helper.make_tensor(f"{name}.empty", onnx.TensorProto.FLOAT, [0, 4, 1, 16], [])
        branch.node.append(onnx.helper.make_node("Constant", [], [f"{name}_"], value=empty))
        branch.output.append(onnx.helper.make_tensor_value_info(f"{name}_", onnx.TensorProto.FLOAT, [0, 4, 1, 16]))
    flag = onnx.helper.make_tensor_value_info("use_cache_branch", onnx.TensorProto.BOOL, [1])
    chosen = onnx.helper.make_node(
        "If",
        ["use_cache_branch"],
        [value.name for value in outputs],
        "merged",
        then_branch=branch,
        else_branch=models[0].graph,
    )
    graph = onnx.helper.make_graph([chosen], "merged", [*inputs.values(), flag], outputs)
    made = onnx.helper.make_model(graph, opset_imports=models[0].opset_import, functions=list(models[0].functions))
    onnx.save(made, path)
    return path
