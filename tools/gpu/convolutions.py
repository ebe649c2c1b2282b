"""Times of convolutions of many shapes in every possible form, beside the form that the plan chooses and cuDNN.

The runtime reads the forced form once in a process, so every form has a separate process.
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import compiler
from gpu import files
from gpu.fit import TIMED, forms
from gpu.forms import DIRECT, PRODUCT, TILES, Constants, Form, form_of
from gpu.page import bullets, table
from gpu.process import LOST, Setting
from gpu.report import Part
from gpu.results import Result, one_line
from gpu.shapes import SHAPES, Shape
from gpu.torch_cuda import allow_tf32, torch_on
from gpu.trace import KERNEL, Event, microseconds, of, traced

VARIABLE = "CANDLE_PLAN_CONV"
CHOSEN = "the chosen form, and cuDNN"
"""The check that forces no form."""
FORMS = [PRODUCT, DIRECT, *(Form(tile, number) for number in TIMED for tile in TILES)]
FORM_NAMES = frozenset(form.name for form in FORMS)
RUNS = 3
FAR = 1e-3
"""The allowed difference from cuDNN's result, which may use Winograd's algorithm, as a part of the largest element."""

Run = Callable[[], Any]

TABLE = table(
    {
        "form": "form",
        "µs": "ours",
        "best form": "best",
        "its µs": "best_us",
        "÷ best": lambda result: result["ours"] / result["best_us"],
        "cuDNN f32, µs": "cudnn_f32",
        "cuDNN TF32, µs": "cudnn_tf32",
        "÷ cuDNN f32": lambda result: result["ours"] / result["cudnn_f32"],
        "TFLOP/s": lambda result: result["operations"] / result["ours"] / 1e6,
    }
)
"""The times by shape. `÷` is the quotient of the chosen form's time and another."""


def names(setting: Setting) -> list[str]:
    """The check of the chosen form, and the forms that are possible for a shape."""
    fitting = {form for shape in shapes(setting) for form in forms(shape)}
    return [CHOSEN, *(form.name for form in FORMS if form in fitting)] if fitting else []


def shapes(setting: Setting) -> list[Shape]:
    """The shapes of the bundle."""
    there = files.names(setting.bundle, "convolutions")
    return [shape for shape in SHAPES if shape.name in there]


def results(name: str, setting: Setting, started: float) -> Iterator[Result]:
    """Microseconds on the device by shape, of a forced form, or of the chosen form and cuDNN."""
    os.environ[VARIABLE] = "" if name == CHOSEN else name
    torch = torch_on(setting.device)
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    for shape in shapes(setting):
        forced = {form.name: form for form in forms(shape)}
        if name != CHOSEN and name not in forced:
            continue
        try:
            for measured in times(torch, shape, setting, None if name == CHOSEN else forced[name]):
                for figure, value in measured.items():
                    found[figure][shape.name] = value
                yield {**found, "note": f"{len(found['times'])} shapes"}
        except Exception as error:  # the other shapes are still timed
            if any(word in str(error) for word in LOST):
                raise
            found["wrong"][shape.name] = one_line(error)
    if wrong := found["wrong"]:
        told = "; ".join(f"{shape}: {words}" for shape, words in wrong.items())
        yield {**found, "verdict": "different", "note": told[:1000]}


def times(torch: Any, shape: Shape, setting: Setting, forced: Form | None) -> Iterator[Result]:
    """Microseconds of one shape; without a forced form, also the kernels `launched`, and both times of cuDNN.

    Raises:
        ValueError: a result differs from cuDNN's, or the kernels are not those of the form.
    """
    model = files.read(setting.bundle, "convolutions", shape.name)
    session = compiler.load(compiler.Plan(model["plan"]), device=setting.device, threads=1)
    torch.manual_seed(0)
    given = {name: torch.empty(each).cuda().normal_() for name, each in (("x", shape.input), ("w", shape.weights))}
    run = partial(session.run, given, device_outputs=True)
    found = of(traced(torch, run, RUNS), KERNEL)
    if not found:
        raise ValueError("PyTorch's profiler recorded no kernel")
    yield {"times": microseconds(found) / RUNS}
    check_launched(forced or form_of(shape, Constants()), kernels(found))
    theirs = cudnn(torch, shape, given, is_best=forced is None)
    allow_tf32(torch, False)
    check_near(torch, next(iter(run().values())), theirs())
    if forced is None:
        yield from beside(torch, theirs)
        yield {"launched": kernels(found)}


def beside(torch: Any, theirs: Run) -> Iterator[Result]:
    """Microseconds of cuDNN in `float32` and in TF32."""
    for mode in ("f32", "tf32"):
        allow_tf32(torch, mode == "tf32")
        yield {f"cudnn_{mode}": microseconds(of(traced(torch, theirs, RUNS), KERNEL)) / RUNS}
    allow_tf32(torch, False)


def check_near(torch: Any, ours: Any, expected: Any) -> None:
    """Compares a result with cuDNN's.

    Raises:
        ValueError: they differ by more than `FAR`.
    """
    apart = float((torch.from_dlpack(ours) - expected).abs().max() / expected.abs().max())
    if not apart <= FAR:
        raise ValueError(f"the result differs by {apart:.2g} from cuDNN's")


def check_launched(form: Form, launched: list[str]) -> None:
    """Compares the kernels of a convolution with those of a form.

    Raises:
        ValueError: they differ, because the extension was built from other sources than this checkout.
    """
    kinds = {kernel.split("_")[1] for kernel in launched if kernel.startswith("conv_")} - {"finish"}
    if kinds != ({form.kind} - {PRODUCT.kind}):
        raise ValueError(f"the plan launched {', '.join(launched)} instead of {form.name}")


def kernels(found: list[Event]) -> list[str]:
    """The kernels of a convolution, by name."""
    return list(dict.fromkeys(event.name[:40] for event in found))


def cudnn(torch: Any, shape: Shape, given: dict[str, Any], is_best: bool) -> Run:
    """The same convolution in PyTorch, with cuDNN's fastest algorithm if `is_best`."""
    torch.backends.cudnn.benchmark = is_best
    kind = f"conv_transpose{shape.axes}d" if shape.is_transposed else f"conv{shape.axes}d"
    function = getattr(torch.nn.functional, kind)
    options = {"stride": shape.stride, "padding": shape.padding, "groups": shape.groups, "dilation": shape.dilation}
    return partial(function, given["x"], given["w"], **options)


def lines(part: Part) -> Iterator[str]:
    """The checks, the times by shape, and the mean quotient of each chosen form's time and cuDNN's in `float32`."""
    yield from bullets(part)
    found = by_shape(part.results)
    if not found:
        return
    yield ""
    yield from TABLE(Part(part.title, part.render, {each["name"]: each for each in found}))
    ratios: dict[str, list[float]] = defaultdict(list)
    for each in found:
        if each.get("ours") and each.get("cudnn_f32"):
            ratios[each["form"].partition(":")[0]].append(math.log(each["ours"] / each["cudnn_f32"]))
    for form, logs in sorted(ratios.items()):
        yield f"- {form}: {math.exp(sum(logs) / len(logs)):.2f} of cuDNN's time, {len(logs)} shapes"


def by_shape(results: dict[str, Result]) -> list[Result]:
    """The times of each timed shape: of the chosen form, of the best form, and of cuDNN."""
    chosen = results.get(CHOSEN, {})
    wrong = {name for result in results.values() for name in result.get("wrong", {})}
    found = []
    for shape in SHAPES:
        if not (timed := timed_forms(results, shape)) and shape.name not in chosen.get("times", {}):
            continue
        best = min(timed, key=lambda form: timed[form]) if timed else None
        facts = {figure: chosen.get(figure, {}).get(shape.name) for figure in ("cudnn_f32", "cudnn_tf32")}
        form, ours = form_of(shape, Constants()).name, chosen.get("times", {}).get(shape.name)
        facts |= {"form": form, "ours": ours, "best": best, "best_us": timed[best] if best else None}
        verdict = "different" if shape.name in wrong else "equal"
        found.append({"name": shape.name, "verdict": verdict, "operations": shape.operations, **facts})
    return found


def timed_forms(results: dict[str, Result], shape: Shape) -> dict[str, float]:
    """Microseconds of a shape by form, without forms whose result was wrong."""
    return {
        name: result["times"][shape.name]
        for name, result in results.items()
        if name in FORM_NAMES and shape.name in result.get("times", {}) and shape.name not in result.get("wrong", {})
    }
