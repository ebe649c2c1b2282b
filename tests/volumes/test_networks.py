"""Whole networks for volumes and videos: equal to onnxruntime, no slower than it, refused without the option."""

import time

import numpy as np
import pytest

import compiler
from compiler.accuracy.reference import Reference

torch = pytest.importorskip("torch", reason="needs PyTorch")

from tests.volumes.networks import NETWORKS, export  # noqa: E402

OPERATORS = {
    "unet_3d": {"Conv": 11, "ConvTranspose": 1, "MaxPool": 1, "AveragePool": 1, "Resize": 1},
    "r3d_18": {"Conv": 20},
    "swin3d_t": {"Conv": 1},
}


@pytest.fixture(scope="module", params=NETWORKS)
def network(request, tmp_path_factory, quick_exports):
    """The name, the file and an input of a network."""
    pytest.importorskip("torchvision")
    path = tmp_path_factory.mktemp("networks") / f"{request.param}.onnx"
    return request.param, path, export(request.param, path).numpy()


def least_seconds(functions, rounds=5):
    """The least processor time of each function. They run in turns, so that other programs disturb both."""
    seconds = [float("inf")] * len(functions)
    for _ in range(rounds):
        for index, function in enumerate(functions):
            start = time.process_time()
            function()
            seconds[index] = min(seconds[index], time.process_time() - start)
    return seconds


@pytest.mark.parametrize("optimize", [True, False])
def test_results_equal_those_of_onnxruntime(network, optimize):
    _, path, x = network
    plan = compiler.compile(path, compiler.Options(lower_3d=True, optimize=optimize))
    session = compiler.load(plan, threads=1)
    [name] = [info.name for info in session.inputs]
    [found], [expected] = session.run({name: x}).values(), Reference(path).run({name: x}).values()
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()


def test_the_report_names_every_operator(network):
    name, path, _ = network
    reports = []
    compiler.compile(path, compiler.Options(lower_3d=True, on_pass=reports.append))
    fired = [each for report in reports if report.name.startswith("lower_3d") for each in report.fired if each.note]
    counts = {rule: sum(each.rule == rule for each in fired) for rule in {each.rule for each in fired}}
    assert {rule: counts.get(rule, 0) for rule in OPERATORS[name]} == OPERATORS[name]
    assert all("multiply-adds" in each.note for each in fired)


def test_without_the_option_it_is_refused(network):
    _, path, _ = network
    with pytest.raises(compiler.CompileError) as error:
        compiler.compile(path)
    assert {each.code for each in error.value.diagnostics} == {"CC0301"}
    assert all("--lower-3d" in each.help for each in error.value.diagnostics)


def test_it_takes_no_more_time_than_twice_onnxruntimes(network):
    """On an idle machine, it takes less than onnxruntime; see docs/volumes.md."""
    _, path, x = network
    session = compiler.load(compiler.compile(path, compiler.Options(lower_3d=True)), threads=1)
    [name] = [info.name for info in session.inputs]
    reference = Reference(path, threads=1)
    ours, theirs = least_seconds([lambda: session.run({name: x}), lambda: reference.run({name: x})])
    assert ours <= 2 * theirs, f"{1e3 * ours:.1f} ms, onnxruntime {1e3 * theirs:.1f} ms"


def test_a_batch_of_any_size(tmp_path, quick_exports):
    path = tmp_path / "unet.onnx"
    x = export("unet_3d", path, dynamic_shapes=({0: torch.export.Dim("batch"), 2: torch.export.Dim("depth")},)).numpy()
    session = compiler.load(compiler.compile(path, compiler.Options(lower_3d=True)), threads=1)
    [name] = [info.name for info in session.inputs]
    deep = np.concatenate([x, x[:, :, ::-1]], axis=2)
    for given in (x, np.concatenate([deep, -deep])):
        [found], [expected] = session.run({name: given}).values(), Reference(path).run({name: given}).values()
        assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()
