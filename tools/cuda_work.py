"""What tools/cuda_check.py starts in processes of its own: each prints a line of JSON for everything that it checks.

An error of which a GPU does not recover ends all that comes after it in the process; what comes next has another.
"""

from __future__ import annotations

import importlib
import json
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import click
from cuda_device import CHECKS, Place, has_same_bits
from cuda_files import FOLDER, Model, beside, read, unpacked
from cuda_results import LeftOut, NotRun, Result, one_line, result_of
from drawn import filled

import compiler
from compiler.compare import compare

RUNS, WARM = 50, 5
SECONDS = 1.0
"""What the runs that are timed may take together, and those before them; one of each is made all the same."""
EXTRAS = ("torchvision", "transformers")
"""Packages that some networks need, and that need not be where the check runs."""

Item = tuple[str, Callable[[], Result]]
"""A name, and what is done."""


@click.command()
@click.argument("section")
@click.option("--bundle", type=click.Path(path_type=Path), default=FOLDER)
@click.option("--device", default="cuda")
@click.option("--start", default=0, help="Leave out as many at first.")
@click.option("--only", help="Check what has this name, and nothing else.")
def main(section: str, bundle: Path, device: str, start: int, only: str | None) -> None:
    """Check one section of a bundle on a device; with the section `open`, only whether the device can be used."""
    os.environ.setdefault("CUDA_CACHE_PATH", str(beside(bundle) / "kernels"))
    compiler.__path__.insert(0, str(unpacked(bundle)))
    try:
        place = Place.opened(device, read(bundle, "small"))
    except compiler.DeviceError as error:
        tell({"number": start, "name": "", "verdict": "refused", "note": one_line(error)})
        sys.exit(2)
    for number, (name, work) in enumerate(items(section, bundle, place)):
        if number >= start and only in (None, name):
            tell({"number": number, "name": name, **result_of(work)})


def tell(result: Result) -> None:
    """Prints a line of JSON."""
    print(json.dumps(result), flush=True)


def items(section: str, bundle: Path, place: Place) -> list[Item]:
    """What there is to do in a section."""
    if section == "device":
        return [(name, partial(_noted, check, place)) for name, check in CHECKS.items()]
    work = {"zoo": timed, "operators": checked, "sanitized": checked, "architectures": beside_torch}
    return [(model["name"], partial(work[section], model, place.device)) for model in models(section, bundle)]


def names(section: str, bundle: Path) -> list[str]:
    """The names of what there is to do in a section."""
    return list(CHECKS) if section == "device" else [model["name"] for model in models(section, bundle)]


def models(section: str, bundle: Path) -> list[Model]:
    """The models of a section."""
    if section == "open":
        return []
    if section == "sanitized":
        return [model for file in ("zoo", "small") for model in read(bundle, file) if "sanitizer" in model]
    return read(bundle, section)


def _noted(check: Callable[[Place], str], place: Place) -> Result:
    return {"note": check(place)}


def checked(model: Model, device: str) -> Result:
    """How far the device's results are from the processor's, and what the host runs."""
    plan = compiler.Plan(model["plan"])
    here, there = compiler.load(plan, threads=1), compiler.load(plan, device=device, threads=1)
    return compared(model, here, there) | hosted(there)


def timed(model: Model, device: str) -> Result:
    """As `checked`, of a model that is run twice, and what loading it and a run take, on the processor too."""
    plan, case = compiler.Plan(model["plan"]), model["cases"][0]
    here = compiler.load(plan, threads=1)
    start = time.perf_counter()
    there = compiler.load(plan, device=device, threads=1)
    loading = time.perf_counter() - start
    result = compared(model, here, there) | hosted(there)
    if not has_same_bits(there.run(case), there.run(case)):
        result |= {"verdict": "different", "note": "two runs differ"}
    return result | {"loading": loading, "ms": [1e3 * median(partial(each.run, case)) for each in (there, here)]}


def compared(model: Model, here: compiler.Session, there: compiler.Session) -> Result:
    """How far the results of all cases are apart."""
    verdict, off = "equal", 0.0
    for number, case in enumerate(model["cases"]):
        found = there.run(case)
        report = compare(here.run(case), found, model["tolerance"])
        off = max(off, report.worst)
        if not report.equal:
            verdict = "near" if is_near(model, number, found) and verdict != "different" else "different"
    return {"verdict": verdict, "off": off, "cases": len(model["cases"])}


def is_near(model: Model, number: int, found: dict[str, Any]) -> bool:
    """Whether a result is as near to onnxruntime's as the processor's has to be: all of them are rounded."""
    expected = model.get("expected", [])
    return number < len(expected) and compare(expected[number], found, model["allowed"]).equal


def hosted(session: compiler.Session) -> Result:
    """The reasons for which the host runs steps, with their number, and the ops without a kernel."""
    steps = session.host_steps
    missing = sorted({step.op for step in steps if step.host == "no_kernel"})
    return {"hosted": Counter(step.host for step in steps), "missing": missing}


def beside_torch(model: Model, device: str) -> Result:
    """A network beside the same one in PyTorch, eager, in float32 on the same GPU; weights are noise."""
    if "left_out" in model:
        raise LeftOut(model["left_out"])
    eager = eager_run(network(model["module"]), device)
    plan, case = compiler.Plan(filled(model)), model["cases"][0]
    here, there = compiler.load(plan), compiler.load(plan, device=device, threads=1)
    result = compared(model, here, there)
    return result | {"ms": [1e3 * median(partial(there.run, case)), 1e3 * median(eager)]}


def network(name: str) -> Any:
    """The module of a network.

    Raises:
        LeftOut: it needs one of the extras, which is not here.
        NotRun: it cannot be imported.
    """
    try:
        importlib.import_module("torch")
        return importlib.import_module(name)
    except Exception as error:
        package = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
        if package in EXTRAS:
            raise LeftOut(f"needs {package}, which is not here") from None
        raise NotRun("PyTorch is not here" if package == "torch" else one_line(error)) from None


def eager_run(module: Any, device: str) -> Callable[[], Any]:
    """A run of a network in PyTorch on the device, whose output comes to the host.

    Raises:
        NotRun: PyTorch does not find the GPU.
    """
    import torch

    where = device if device.startswith("cuda") else "cpu"
    if where != "cpu" and not torch.cuda.is_available():
        raise NotRun("PyTorch finds no GPU")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    built, given = module.build().to(where), [each.to(where) for each in module.inputs().values()]

    def run() -> Any:
        with torch.inference_mode():
            output = built(*given)
        return (output if isinstance(output, torch.Tensor) else output[0]).cpu()

    return run


def median(run: Callable[[], Any]) -> float:
    """Seconds of a run, some having gone before; fewer where they are long."""
    lasting(run, WARM)
    return statistics.median(lasting(run, RUNS))


def lasting(run: Callable[[], Any], most: int) -> list[float]:
    """Seconds of each of some runs, at least one."""
    times: list[float] = []
    while not times or (len(times) < most and sum(times) < SECONDS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return times


if __name__ == "__main__":
    main()
