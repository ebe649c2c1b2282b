"""The export of a recipe: the network with seeded weights, its ONNX file, and two sets of inputs."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from models.families.recipe import Argument, Recipe

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch

    from compiler.processes.child import Channel

STATISTICS = 8
"""The batch for the running statistics of batch normalizations. A few numbers would enlarge rounding errors."""
ALLOWED = 1e-3
"""The allowed difference of a recorded model, as a fraction of the output's largest element."""

__all__ = ["export", "export_task", "files"]


def files(recipe: Recipe, folder: Path) -> tuple[Path, Path, Path]:
    """The files of the model and of its two sets of inputs, for the present state of the recipe."""
    stem = f"{recipe.name}.{recipe.key}"
    return folder / f"{stem}.onnx", folder / f"{stem}.0.npz", folder / f"{stem}.1.npz"


def export_task(task: tuple[Recipe, Path], _: Channel) -> None:
    """Export a recipe to a folder in this process. Remove the files of its former states."""
    recipe, folder = task
    for path in folder.glob(f"{recipe.name}.????????.*"):
        path.unlink()
    export(recipe, folder)


def export(recipe: Recipe, folder: Path) -> None:
    """Write the files of a recipe. The model gets its name when it is complete.

    Raises:
        ExportError: PyTorch cannot export the network, or records a model that is wrong for one of the sets of inputs.
        ModuleNotFoundError: a package is not installed.
    """
    import torch

    import compiler
    from compiler.accuracy.exported import ExportWarning
    from models.weights import seeded

    model, *cases = files(recipe, folder)
    given = [values(recipe, sizes, seed) for seed, sizes in enumerate(recipe.sizes)]
    constants = {name: value for name, value in recipe.arguments.items() if name not in recipe.tensors}
    many = values(recipe, {**recipe.sizes[0], "batch": STATISTICS}, seed=2)
    network = seeded(recipe.network.result, {**many, **constants}, by_name=True)
    dynamic = {name: argument.dynamic for name, argument in recipe.tensors.items() if argument.dynamic}
    part = folder / f"{model.name}.part"
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ExportWarning)  # the ledger lists the networks
        compiler.export(
            network, (), part, dynamic or None, kwargs={**given[0], **constants}, opset=recipe.opset,
            exporter=recipe.exporter, check=False,
        )  # fmt: skip
    if recipe.exporter == "torchscript":
        for number, tensors in enumerate(given, 1):
            _check(network, {**tensors, **constants}, part, f"{recipe.name} with inputs {number}")
    for path, tensors in zip(cases, given, strict=True):
        np.savez(path, **{name: tensor.numpy() for name, tensor in tensors.items()})
    part.rename(model)


def _check(network: torch.nn.Module, given: Mapping[str, Any], model: Path, title: str) -> None:
    """Compare a recorded model with its network: what Python decided for the first inputs must hold for these too.

    Raises:
        ExportError: onnxruntime cannot run the model, or its results differ from those of the network.
    """
    from compiler.accuracy.compare import compare
    from compiler.accuracy.module_runs import Call
    from compiler.accuracy.onnxruntime_session import ReferenceFailed
    from compiler.accuracy.reference import Reference
    from compiler.frontend.export_request import ExportError

    expected = Call(network, (), dict(given)).run()
    try:
        reference = Reference(model)
        found = reference.run({name: given[name].numpy() for name in reference.inputs})
    except ReferenceFailed as error:
        raise ExportError(f"{title}: {error}") from error
    report = compare(dict(zip(found, expected, strict=True)), found, ALLOWED)
    if not report.ok:
        raise ExportError(
            f"{title}: the recorded model differs from the network, {report.worst:.2g} × as much as allowed"
        )


def values(recipe: Recipe, sizes: Mapping[str, int], seed: int) -> dict[str, torch.Tensor]:
    """The tensors of a set of inputs, the same every time."""
    return {
        name: _tensor(argument, argument.sizes(sizes), 100 * seed + index)
        for index, (name, argument) in enumerate(recipe.tensors.items())
    }


def _tensor(argument: Argument, shape: tuple[int, ...], seed: int) -> Any:
    import torch

    generator = torch.Generator().manual_seed(seed)
    if argument.kind == "floats":
        return torch.randn(shape, generator=generator)
    if argument.kind == "tokens":
        drawn = torch.randint(3, argument.below, shape, generator=generator)
        drawn[..., : len(argument.first)] = torch.tensor(argument.first, dtype=drawn.dtype)
        return drawn
    lengths = torch.randint(1, shape[-1] + 1, (*shape[:-1], 1), generator=generator)
    return (torch.arange(shape[-1]) < lengths).long()
