"""The runtimes: each reads tokens after those that its caches hold, and returns the logits of the last one."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import numpy as np

from benchmarks.generation.shapes import Array, Shape

__all__ = ["RUNTIMES", "Runtime"]

ROOM = 640
"""The tokens for which the caches of fixed size have room."""


class Runtime(Protocol):
    """A decoder with its caches."""

    def read(self, tokens: Array) -> Array:
        """Read tokens `[n]`, and return the logits of the last one, `[vocabulary]`."""

    def truncate(self, length: int) -> None:
        """Keep the first tokens in the caches."""


class Ours:
    """A plan with a state."""

    def __init__(self, shape: Shape, folder: Path, threads: int) -> None:
        import compiler

        plan = compiler.compile(folder / f"{shape.name}.onnx", compiler.Options(state="auto"))
        self._session = compiler.load(plan, threads=threads)
        self._state, self._length = self._session.new_state(), 0

    def read(self, tokens: Array) -> Array:
        self._length += len(tokens)
        inputs = {"input_ids": tokens[None], "attention_mask": np.ones((1, self._length), np.int64)}
        return np.asarray(self._session.run(inputs, outputs=["logits"], state=self._state)["logits"]).reshape(-1)

    def truncate(self, length: int) -> None:
        self._length = length
        self._state.truncate(length)


class Onnxruntime:
    """A session whose caches are buffers of a fixed size, which GroupQueryAttention changes in place."""

    def __init__(self, shape: Shape, folder: Path, threads: int) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        path, providers = str(folder / f"{shape.name}.onnx"), ["CPUExecutionProvider"]
        self._session = onnxruntime.InferenceSession(path, options, providers=providers)
        self._binding, self._length = self._session.io_binding(), 0
        self._caches = {}
        for layer, kind in ((layer, kind) for layer in range(shape.layers) for kind in ("key", "value")):
            cache = onnxruntime.OrtValue.ortvalue_from_numpy(
                np.zeros((1, shape.kv_heads, ROOM, shape.head), np.float32)
            )
            self._caches[f"{layer}.{kind}"] = cache
            self._binding.bind_ortvalue_input(f"past_key_values.{layer}.{kind}", cache)
            self._binding.bind_ortvalue_output(f"present.{layer}.{kind}", cache)
        self._logits = np.empty((1, 1, shape.vocabulary), np.float32)
        self._binding.bind_output("logits", "cpu", 0, np.float32, self._logits.shape, self._logits.ctypes.data)

    def read(self, tokens: Array) -> Array:
        self._length += len(tokens)
        self._binding.bind_cpu_input("input_ids", tokens[None])
        self._binding.bind_cpu_input("attention_mask", np.ones((1, self._length), np.int64))
        self._session.run_with_iobinding(self._binding)
        return self._logits.reshape(-1)

    def truncate(self, length: int) -> None:
        self._length = length


class LlamaCpp:
    """llama.cpp, through the functions of its library."""

    def __init__(self, shape: Shape, folder: Path, threads: int) -> None:
        import llama_cpp

        self._api: Any = llama_cpp
        self._log = llama_cpp.llama_log_callback(lambda *_: None)
        llama_cpp.llama_log_set(self._log, None)
        llama_cpp.llama_backend_init()
        model = llama_cpp.llama_model_default_params()
        model.n_gpu_layers = 0
        self._model = llama_cpp.llama_model_load_from_file(str(folder / f"{shape.name}.gguf").encode(), model)
        options = llama_cpp.llama_context_default_params()
        options.n_ctx, options.n_batch, options.n_ubatch = ROOM, 512, 512
        options.n_threads = options.n_threads_batch = threads
        self._context = self._model and llama_cpp.llama_init_from_model(self._model, options)
        if not self._context:
            raise ValueError(f"llama.cpp cannot load {shape.name}.gguf")
        self._vocabulary = shape.vocabulary

    def read(self, tokens: Array) -> Array:
        given = (self._api.llama_token * len(tokens))(*tokens.tolist())
        if self._api.llama_decode(self._context, self._api.llama_batch_get_one(given, len(tokens))):
            raise ValueError("llama.cpp cannot read the tokens")
        logits = self._api.llama_get_logits_ith(self._context, -1)
        return np.ctypeslib.as_array(logits, (self._vocabulary,))

    def truncate(self, length: int) -> None:
        self._api.llama_memory_seq_rm(self._api.llama_get_memory(self._context), 0, length, -1)


RUNTIMES = {"this runtime": Ours, "onnxruntime": Onnxruntime, "llama.cpp": LlamaCpp}
"""The names in the table → the runtimes."""
