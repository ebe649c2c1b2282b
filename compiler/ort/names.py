"""What `compiler.ort` does with each name of onnxruntime.

Messages and docs/onnxruntime.md take their sentences from these tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["CONFIGURATION", "CUDA_OPTIONS", "HERE", "MISSING", "REFUSED", "WITHOUT_EFFECT", "Partial", "missing"]

HERE = {
    "InferenceSession": "compiles an ONNX model (a path or bytes), or loads a plan. It never falls back to other "
    "providers, whatever `enable_fallback` is. The compiler may refuse a model with a wrong type or "
    "shape that onnxruntime accepts.",
    "InferenceSession.run": "also takes PyTorch tensors, `ml_dtypes` arrays and tuples. It skips the steps that no "
    "requested output needs, as with onnxruntime's `only_execute_path_to_fetches`. It refuses inputs in which "
    "dimensions of the same name have different sizes, arrays with dimensions for a scalar input, and lists with "
    "values that the input's type cannot represent (1.5 for an integer). The exception of a failed step is a subclass "
    "of both `Fail` and `InvalidArgument`.",
    "InferenceSession.run_with_ort_values": "is the same, with `OrtValue`s.",
    "InferenceSession.run_with_iobinding": "is the same. A failed run raises `RuntimeError`, as in onnxruntime.",
    "InferenceSession.run_async": "starts a thread, which calls the callback.",
    "InferenceSession.io_binding": "is the same.",
    "InferenceSession.get_inputs, get_outputs": "are the same for a model, but a dimension whose name has no letters "
    "and no digits, such as `?`, is `None`. For a plan, a size that depends on other sizes is `None`.",
    "InferenceSession.get_overridable_initializers": "is empty: initializers are constants. Passing one is an error.",
    "InferenceSession.get_modelmeta": "is the same for a model. For a plan, it has only the custom metadata: the "
    "entries that `Options(keep_metadata=…)` selected.",
    "InferenceSession.get_providers, get_provider_options": "list CUDA if the session runs there, and the CPU.",
    "InferenceSession.get_session_options": "is the same.",
    "InferenceSession.set_providers": "accepts the providers that the session has.",
    "IOBinding": "has the methods for inputs and outputs on the CPU and on the session's GPU. Without a buffer, each "
    "run makes new output arrays. With a buffer on the CPU, the run copies the output into this buffer at the end.",
    "OrtValue": "also holds `ml_dtypes` arrays and strings. `from_dlpack` takes tensors on a GPU.",
    "NodeArg, ModelMetadata": "are the same.",
    "SessionOptions": "has the attributes of onnxruntime's class. `intra_op_num_threads` is the number of threads of a "
    "run. With `ORT_DISABLE_ALL`, the compiler runs only the passes that it needs. An unknown attribute or value is an "
    "error.",
    "SessionOptions.add_free_dimension_override_by_name": "sets a size at compile time. A name that no input has is "
    "an error.",
    "SessionOptions.add_session_config_entry": "takes only the keys below.",
    "SessionOptions.add_provider": "is the same, for both providers.",
    "RunOptions": "has the attributes of onnxruntime's class. `terminate` ends runs from any thread, between two "
    "steps.",
    "GraphOptimizationLevel, ExecutionMode, ExecutionOrder": "are the same.",
    "CPUExecutionProvider, CUDAExecutionProvider": "are the providers. The session uses the first provider of the "
    "list. Without a list, it runs on the CPU. If CUDA comes first and does not work, the session raises an error; "
    "onnxruntime itself falls back to the CPU. CUDA has only the options below, and the CPU has none.",
    "get_available_providers, get_all_providers, get_device": "consider CUDA available if its extension is built and "
    "NVIDIA's driver is installed.",
    "capi.onnxruntime_pybind11_state": "holds the exceptions: `Fail`, `InvalidArgument`, `NoSuchFile`, "
    "`InvalidProtobuf`, `InvalidGraph`, `NotImplemented` and others. They are also subclasses of `compiler.Error`.",
}
"""Names that do something, with the differences from onnxruntime."""

WITHOUT_EFFECT = {
    "SessionOptions.inter_op_num_threads, execution_mode": "Steps run one after the other.",
    "SessionOptions.log_severity_level, log_verbosity_level, logid": "The runtime writes no log.",
    "SessionOptions.profile_file_prefix": "The runtime writes no profile.",
    "SessionOptions.use_deterministic_compute": "Results never depend on the number of threads.",
    "SessionOptions.use_per_session_threads": "A session always has its own threads.",
    "RunOptions.log_severity_level, log_verbosity_level, logid": "The runtime writes no log.",
    "RunOptions.only_execute_path_to_fetches": "A run always skips the steps that no requested output needs.",
    "IOBinding.synchronize_inputs, synchronize_outputs": "A run waits for its inputs and its outputs.",
    "InferenceSession.disable_fallback": "There is no fallback.",
    "set_default_logger_severity, set_default_logger_verbosity": "The runtime writes no log.",
    "disable_telemetry_events": "There is no telemetry.",
    "preload_dlls": "A session opens the libraries of CUDA itself.",
}
"""Names that programs may use, and that change nothing. None of them can change a result."""

CONFIGURATION = {
    "session.disable_cpu_ep_fallback": "With `1`, a session refuses a plan if the GPU lacks a kernel for one of its "
    "steps.",
    "session.intra_op.allow_spinning": "It has no effect: the runtime decides how threads wait.",
    "session.inter_op.allow_spinning": "It has no effect: the runtime decides how threads wait.",
}
"""The keys of `SessionOptions.add_session_config_entry`."""

CUDA_OPTIONS = {
    "device_id": "It is the number of the GPU.",
    "cudnn_conv_algo_search": "It has no effect: the runtime chooses the form of a convolution in each run.",
    "do_copy_in_default_stream": "It has no effect: each session has its own stream.",
}
"""The options of `CUDAExecutionProvider`."""

REFUSED = {
    "SessionOptions.enable_cpu_mem_arena": "only True: the runtime keeps freed memory for later runs",
    "SessionOptions.enable_mem_pattern": "only True: the runtime plans its memory when it loads a plan",
    "SessionOptions.enable_mem_reuse": "only True: values always share memory when their lifetimes allow it",
    "SessionOptions.enable_profiling": "only False: use `candlec run PLAN --profile`, or `compiler.Session.profile`",
    "SessionOptions.execution_order": "only DEFAULT: steps run in the order of the plan",
    "SessionOptions.optimized_model_filepath": "only an empty path: `compiler.compile(model).save(path)` writes a "
    "plan, and `candlec compile --dump-passes FOLDER` writes ONNX files",
}
"""Attributes that accept only their default value, with the reason or an alternative."""

_COMPILED = "compile the model with `compiler.compile(model)`, and save the plan"
_OPERATORS = (
    "register a function for the operator with `compiler.custom_op`, or write it as a model-local function of "
    "supported operators"
)
_PROVIDERS = "pass providers to InferenceSession"
_PROFILE = "use `candlec run PLAN --profile`, or `compiler.Session.profile`"
_WEIGHTS = "store the weights in the model, or in files next to it"
_RUNS = "use InferenceSession.run, run_with_ort_values or run_with_iobinding"

MISSING = {
    "ModelCompiler": _COMPILED,
    "LoraAdapter": "merge the adapter into the weights before you compile the model",
    "AdapterFormat": "merge the adapter into the weights before you compile the model",
    "SparseTensor": "pass dense arrays",
    "register_execution_provider_library": _PROVIDERS,
    "get_ep_devices": _PROVIDERS,
    "set_seed": "set the attribute `seed` of the random operators in the model",
    "set_global_thread_pool_sizes": "set SessionOptions.intra_op_num_threads for each session",
    "create_and_register_allocator": "leave it out: the runtime has its own allocator",
    "enable_telemetry_events": "leave it out: there is no telemetry",
    "copy_tensors": "copy the arrays with NumPy or PyTorch",
    "__version__": 'the version of this package is `importlib.metadata.version("candle-compiler")`',
    "get_version_string": 'the version of this package is `importlib.metadata.version("candle-compiler")`',
    "quantization": "quantize the model with onnxruntime itself, then compile it",
    "transformers": "the compiler finds such patterns itself",
    "tools": "use onnxruntime's own tools, or `candlec`",
    "training": "plans support inference only",
    "InferenceSession.end_profiling": _PROFILE,
    "InferenceSession.get_profiling_start_time_ns": _PROFILE,
    "InferenceSession.enable_fallback": "a session never falls back: " + _PROVIDERS,
    "InferenceSession.run_with_ortvaluevector": _RUNS,
    "InferenceSession.create_ortvalue_from_shape_and_type": "use OrtValue.ortvalue_from_shape_and_type, or a PyTorch "
    "tensor with OrtValue.from_dlpack",
    "InferenceSession.get_provider_graph_assignment_info": "`compiler.Session.placed_steps` tells where steps run",
    "IOBinding.get_outputs_as_ortvaluevector": "use IOBinding.get_outputs",
    "OrtValue.as_sparse_tensor": "pass dense arrays",
    "OrtValue.ort_value_from_sparse_tensor": "pass dense arrays",
    "SessionOptions.add_free_dimension_override_by_denotation": "use add_free_dimension_override_by_name",
    "SessionOptions.add_initializer": _WEIGHTS,
    "SessionOptions.add_external_initializers": _WEIGHTS,
    "SessionOptions.add_external_initializers_from_files_in_memory": _WEIGHTS,
    "SessionOptions.register_custom_ops_library": _OPERATORS,
    "SessionOptions.add_provider_for_devices": _PROVIDERS,
    "SessionOptions.set_provider_selection_policy": _PROVIDERS,
    "SessionOptions.set_provider_selection_policy_delegate": _PROVIDERS,
    "SessionOptions.set_load_cancellation_flag": "compile the model once, and load the plan, which takes less time",
    "RunOptions.add_run_config_entry": "leave it out: a run has no configuration",
    "RunOptions.get_run_config_entry": "leave it out: a run has no configuration",
    "RunOptions.add_active_adapter": "merge the adapter into the weights before you compile the model",
}
"""Names that do not exist, with what to do instead. Names that the table lacks do not exist either."""


def missing(owner: str, name: str) -> str:
    """The message for a name of onnxruntime that does not exist here. `owner` is its class; empty for the module."""
    name = f"{owner}.{name}" if owner else name
    return f"compiler.ort has no {name}: {MISSING.get(name, 'docs/onnxruntime.md lists the names that it has')}"


class Partial:
    """The base of classes that lack some names of onnxruntime's classes."""

    if not TYPE_CHECKING:  # otherwise any misspelled name would have a type

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(missing(type(self).__name__, name))
