"""Options, providers and names of `compiler.ort` behave like onnxruntime's."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnxruntime.capi import onnxruntime_pybind11_state as reference

import compiler
import compiler.ort
from compiler.ort import names
from compiler.ort.capi import onnxruntime_pybind11_state as errors
from tests.ort.both import ADD, MODULES, add_inputs, assert_same, each_module, model, ramp
from tests.standin.device import StandIn

ROOT = Path(__file__).parent.parent.parent
CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"
FOREVER = """g (float[64, 64] x) => (float[64, 64] y) {
    count = Constant <value_int = 4611686018427387904> ()
    go = Constant <value = bool {1}> ()
    y = Loop (count, go, x) <body = each (int64 at, bool before, float[64, 64] v)
        => (bool after, float[64, 64] w) { after = Identity (before) q = MatMul (v, v) w = Tanh (q) }>
}"""


def properties(kind: Any) -> list[str]:
    made = kind()
    return [name for name in dir(made) if not name.startswith("_") and not callable(getattr(made, name))]


@pytest.mark.parametrize("kind", ["SessionOptions", "RunOptions"])
def test_options_have_the_attributes_and_defaults_of_onnxruntime(kind: str) -> None:
    for name in properties(getattr(onnxruntime, kind)):
        own = getattr(getattr(compiler.ort, kind)(), name)
        other = getattr(getattr(onnxruntime, kind)(), name)
        assert str(own) == str(other) or own.name == other.name, name


@pytest.mark.parametrize("kind", ["GraphOptimizationLevel", "ExecutionMode", "ExecutionOrder"])
def test_enumerations_have_the_members_of_onnxruntime(kind: str) -> None:
    own, other = (getattr(module, kind) for module in (compiler.ort, onnxruntime))
    assert {name: int(each) for name, each in own.__members__.items()} == {
        name: int(each) for name, each in other.__members__.items()
    }


SETTINGS = [
    *[("intra_op_num_threads", value) for value in (2, np.int64(2), 1.5, "2", None)],
    *[("inter_op_num_threads", 3), ("log_severity_level", 3), ("logid", "x"), ("logid", 3), ("zork", 1)],
    *[("use_deterministic_compute", True), ("enable_mem_pattern", True), ("enable_mem_pattern", 1)],
    *[("graph_optimization_level", 1), ("execution_mode", 1), ("optimized_model_filepath", "")],
]


@pytest.mark.parametrize(("name", "value"), SETTINGS, ids=str)
def test_attributes_are_set_alike(name: str, value: Any) -> None:
    def set_it(module: Any) -> Any:
        options = module.SessionOptions()
        setattr(options, name, value)
        return getattr(options, name)

    assert_same(set_it)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("enable_mem_pattern", False), ("enable_cpu_mem_arena", 0), ("enable_mem_reuse", np.False_)],
        *[("enable_profiling", True), ("optimized_model_filepath", "x.onnx")],
        ("execution_order", compiler.ort.ExecutionOrder.PRIORITY_BASED),
    ],
)
def test_what_might_change_memory_or_files_is_refused(name: str, value: Any) -> None:
    options = compiler.ort.SessionOptions()
    with pytest.raises(NotImplementedError, match=f"SessionOptions.{name} = .* is not supported: only "):
        setattr(options, name, value)
    assert getattr(options, name) == getattr(compiler.ort.SessionOptions(), name)


def test_negative_numbers_of_threads_are_refused() -> None:
    with pytest.raises(ValueError, match=r"SessionOptions\.intra_op_num_threads: expected a whole number from 0"):
        compiler.ort.SessionOptions().intra_op_num_threads = -1


def test_configuration_is_kept_or_refused() -> None:
    options = compiler.ort.SessionOptions()
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"
    with pytest.raises(RuntimeError, match="no configuration with the key 'k'"):
        options.get_session_config_entry("k")
    with pytest.raises(NotImplementedError, match=r"'session\.set_denormal_as_zero' is not supported: the keys are"):
        options.add_session_config_entry("session.set_denormal_as_zero", "1")
    with pytest.raises(TypeError, match="expected a text, found int"):
        options.add_session_config_entry("session.intra_op.allow_spinning", 1)  # type: ignore[arg-type]


@each_module
def test_sizes_of_dimensions_are_fixed(module: Any) -> None:
    options = module.SessionOptions()
    options.add_free_dimension_override_by_name("n", 2)
    session = module.InferenceSession(model(ADD), options)
    assert [arg.shape for arg in [*session.get_inputs(), *session.get_outputs()]] == [[2, 3]] * 4
    with pytest.raises(Exception, match="INVALID_ARGUMENT"):
        session.run(None, {"x": ramp(3, 3), "y": ramp(3, 3)})


def test_options_apply_when_a_model_is_compiled() -> None:
    options = compiler.ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = compiler.ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = compiler.ort.InferenceSession(model(ADD), options)
    assert session.get_session_options() is options
    plan = compiler.compile(model(ADD)).data
    with pytest.raises(NotImplementedError, match="ORT_DISABLE_ALL has no effect on a plan"):
        compiler.ort.InferenceSession(plan, options)
    sized = compiler.ort.SessionOptions()
    sized.add_free_dimension_override_by_name("n", 2)
    with pytest.raises(NotImplementedError, match="the sizes of a plan cannot be fixed"):
        compiler.ort.InferenceSession(plan, sized)
    sized.add_free_dimension_override_by_name("zork", 2)
    with pytest.raises(errors.Fail, match="CC0403"):
        compiler.ort.InferenceSession(model(ADD), sized)
    with pytest.raises(TypeError, match=r"sess_options: expected compiler\.ort\.SessionOptions, found int"):
        compiler.ort.InferenceSession(plan, 3)  # type: ignore[arg-type]


def test_other_arguments_are_refused() -> None:
    data = model(ADD)
    compiler.ort.InferenceSession(data, enable_fallback=0, read_config_from_model=0, disabled_optimizers=[])
    with pytest.raises(TypeError, match="InferenceSession has no argument 'zork'"):
        compiler.ort.InferenceSession(data, zork=1)
    for wrong in ({"disabled_optimizers": ["A"]}, {"read_config_from_model": 1}):
        with pytest.raises(NotImplementedError, match=next(iter(wrong))):
            compiler.ort.InferenceSession(data, **wrong)


@pytest.mark.parametrize("providers", [None, [], [CPU], [(CPU, {})], (CPU, CPU), [CPU, CUDA]], ids=str)
def test_the_cpu_is_a_provider(providers: Any) -> None:
    session = compiler.ort.InferenceSession(model(ADD), providers=providers)
    assert (session.get_providers(), session.get_provider_options()) == ([CPU], {CPU: {}})
    session.set_providers([CPU])
    session.disable_fallback()
    with pytest.raises(NotImplementedError, match="cannot change its device"):
        session.set_providers([CUDA])


@pytest.mark.parametrize(
    ("providers", "options", "error", "said"),
    [
        (["ZorkExecutionProvider"], None, RuntimeError, "Unknown Provider Type: ZorkExecutionProvider"),
        ([CPU, "TensorrtExecutionProvider"], None, RuntimeError, "Unknown Provider Type: TensorrtExecutionProvider"),
        (CPU, None, ValueError, "expected a list of names"),
        ([3], None, ValueError, "expected a name, or a tuple"),
        ([CPU], [{}, {}], ValueError, "expected 1, one for each provider, found 2"),
        ([(CPU, {})], [{}], ValueError, "expected a name, or a tuple"),
        ([CPU], [{"use_arena": "0"}], NotImplementedError, "has no option 'use_arena' here: leave it out"),
        ([(CUDA, {"gpu_mem_limit": 1})], None, NotImplementedError, "no option 'gpu_mem_limit' here: the options are"),
        ([(CUDA, {"device_id": "-1"})], None, ValueError, "device_id: expected the number of a GPU, found '-1'"),
    ],
)
def test_providers_are_refused(providers: Any, options: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        compiler.ort.InferenceSession(model(ADD), None, providers, options)


def test_there_is_no_fallback_to_the_cpu() -> None:
    with pytest.raises(RuntimeError, match=r'device "cuda:999": .* does not fall back to other providers'):
        compiler.ort.InferenceSession(model(ADD), providers=[(CUDA, {"device_id": 999}), CPU])


def test_a_gpu_is_available_with_its_extension_and_its_driver(
    standin: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    from compiler.runtime import devices

    monkeypatch.setattr(devices, "_DRIVER", "libnone.so.1")
    assert (compiler.ort.get_available_providers(), compiler.ort.get_device()) == ([CPU], "CPU")
    monkeypatch.setattr(devices, "_DRIVER", standin.driver._name)
    assert (compiler.ort.get_available_providers(), compiler.ort.get_device()) == ([CUDA, CPU], "GPU")
    monkeypatch.setattr(devices, "CUDA", "compiler._runtime_none")
    assert compiler.ort.get_available_providers() == [CPU]
    assert compiler.ort.get_all_providers() == [CUDA, CPU]


def test_options_hold_providers(standin: StandIn) -> None:
    options = compiler.ort.SessionOptions()
    assert not options.has_providers()
    options.add_provider(CUDA, {"cudnn_conv_algo_search": "HEURISTIC"})
    assert options.has_providers()
    assert compiler.ort.InferenceSession(model(ADD), options).get_providers() == [CUDA, CPU]
    assert compiler.ort.InferenceSession(model(ADD), options, providers=[CPU]).get_providers() == [CPU]
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    compiler.ort.InferenceSession(model(ADD), options)
    text = model("g (double[n] x) => (double[n] y) { y = Det (x) }".replace("[n] x", "[n, 2, 2] x"))
    with pytest.raises(RuntimeError, match="no kernel"):
        compiler.ort.InferenceSession(text, options)


@each_module
def test_a_run_that_is_to_end_ends(module: Any) -> None:
    session, options = module.InferenceSession(model(ADD)), module.RunOptions()
    assert len(session.run(None, add_inputs(), options)) == 2
    options.terminate = True
    with pytest.raises(Exception, match="terminate") as raised:
        session.run(None, add_inputs(), options)
    assert type(raised.value).__name__ == "Fail"
    options.terminate = False
    assert len(session.run(None, add_inputs(), options)) == 2


def test_another_thread_ends_a_run() -> None:
    session, options = compiler.ort.InferenceSession(model(FOREVER)), compiler.ort.RunOptions()
    ending = threading.Timer(0.2, lambda: setattr(options, "terminate", True))
    ending.start()
    with pytest.raises(errors.Fail, match=r"the run ended because RunOptions\.terminate is set"):
        session.run(None, {"x": np.ones((64, 64), np.float32)}, options)
    ending.join()


@pytest.mark.parametrize("run_options", [3, {}, compiler.ort.SessionOptions()])
def test_other_options_of_runs_are_refused(run_options: Any) -> None:
    with pytest.raises(TypeError, match=r"run_options: expected compiler\.ort\.RunOptions, found"):
        compiler.ort.InferenceSession(model(ADD)).run(None, add_inputs(), run_options)


def test_functions_without_effect() -> None:
    for module in MODULES:
        module.set_default_logger_severity(4)
        module.set_default_logger_verbosity(0)
        with pytest.raises((RuntimeError, ValueError)):
            module.set_default_logger_severity(9)
    compiler.ort.disable_telemetry_events()
    compiler.ort.preload_dlls(cuda=True, cudnn=True)


OWNERS = ["", "InferenceSession", "IOBinding", "OrtValue", "SessionOptions", "RunOptions"]


def owner_of(module: Any, owner: str) -> Any:
    """The module itself, or an object of one of its classes."""
    if not owner:
        return module
    session = module.InferenceSession(model(ADD))
    value = module.OrtValue.ortvalue_from_numpy(ramp(1))
    made = {"InferenceSession": session, "OrtValue": value, "IOBinding": session.io_binding()}
    return made[owner] if owner in made else getattr(module, owner)()


@pytest.mark.parametrize("owner", OWNERS)
def test_names_of_onnxruntime_exist_or_are_errors_that_name_them(owner: str) -> None:
    own, other = (owner_of(module, owner) for module in (compiler.ort, onnxruntime))
    for name in (name for name in dir(other) if not name.startswith("_")):
        if hasattr(own, name):
            assert f"{owner}.{name}" not in names.MISSING
            continue
        with pytest.raises(AttributeError, match=f"^compiler.ort has no {owner and owner + '.'}{name}: "):
            getattr(own, name)


def test_the_tables_name_what_exists_or_does_not() -> None:
    objects = {owner: owner_of(compiler.ort, owner) for owner in OWNERS}
    for table, exists in (
        (names.HERE, True),
        (names.WITHOUT_EFFECT, True),
        (names.REFUSED, True),
        (names.MISSING, False),
    ):
        for key in table:
            first, *others = key.split(", ")
            owner = first.rpartition(".")[0] if first.partition(".")[0] in OWNERS else ""
            for name in (first.removeprefix(f"{owner}."), *others):
                if not name.endswith("ExecutionProvider") and not name.startswith("capi."):
                    assert hasattr(objects[owner], name) == exists, key


def test_exceptions_have_the_names_and_numbers_of_onnxruntime() -> None:
    found = errors.__all__
    assert set(found) <= {name for name in dir(reference) if isinstance(getattr(reference, name), type)}
    for name in found:
        assert issubclass(getattr(errors, name), compiler.Error)
    assert compiler.ort.capi.onnxruntime_pybind11_state is errors
    assert str(errors.NoSuchFile("gone")) == "[compiler.ort] : 3 : NO_SUCHFILE : gone"


def test_a_plan_runs_without_what_compiles(tmp_path: Path) -> None:
    compiler.compile(model(ADD)).save(tmp_path / "add.plan")
    code = """
import sys
sys.modules |= dict.fromkeys(("onnx", "onnx_ir", "onnxruntime", "torch", "networkx"))  # as if they were not installed
import compiler.ort as onnxruntime, numpy
ones = numpy.ones((1, 3), numpy.float32)
print(onnxruntime.InferenceSession(sys.argv[1]).run(["w"], {"x": ones, "y": ones})[0].tolist())
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "add.plan")], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.stdout.strip(), done.stderr) == ("[[-2.0, -2.0, -2.0]]", "")
