"""Times of convolutions of many shapes in every possible form, beside the form that the plan chooses and cuDNN.

The bundle lists the forms of each shape, with their estimates. The runtime reads the forced form once in a process, so
every form has a separate process.
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
PARTS = (1, 4, 32, 2, 8)
"""The timed numbers of parts of a form that splits sums, in this order."""
RUNS = 3
FAR = 1e-3
"""The allowed difference from cuDNN's result, which may use Winograd's algorithm, as a part of the largest element."""

Run = Callable[[], Any]

TABLE = table(
    {
        "form": "form",
        "µs": "ours",
        "÷ estimate": lambda result: result["ours"] / result["estimate"],
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
    """The check of the chosen form, and the forms that can compute a shape, those without parts first."""
    found = list(dict.fromkeys(form for model in models(setting) for form in forms(model)))
    parts = ["", *map(str, PARTS)]
    return [CHOSEN, *sorted(found, key=lambda form: parts.index(form.partition(":")[2]))] if found else []


def models(setting: Setting) -> list[files.Model]:
    """The convolutions of the bundle, in the order of `SHAPES`."""
    there = files.names(setting.bundle, "convolutions")
    return [files.read(setting.bundle, "convolutions", shape.name) for shape in SHAPES if shape.name in there]


def forms(model: files.Model) -> list[str]:
    """The timed forms of a convolution. A form that splits sums has up to twice the parts that a plan would choose."""
    found = []
    for form in model["forms"]:
        kind, _, own = form.partition(":")
        found += [f"{kind}:{number}" for number in PARTS if number < 2 * int(own)] if own else [kind]
    return found


def results(name: str, setting: Setting, started: float) -> Iterator[Result]:
    """Microseconds on the device by shape, of a forced form, or of the chosen form and cuDNN."""
    os.environ[VARIABLE] = "" if name == CHOSEN else name
    torch = torch_on(setting.device)
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    for model in models(setting):
        if name != CHOSEN and name not in forms(model):
            continue
        try:
            for measured in times(torch, model, setting, name):
                for figure, value in measured.items():
                    found[figure][model["name"]] = value
                yield {**found, "note": f"{len(found['times'])} shapes"}
        except Exception as error:  # the other shapes are still timed
            if any(word in str(error) for word in LOST):
                raise
            found["wrong"][model["name"]] = one_line(error)
    if wrong := found["wrong"]:
        told = "; ".join(f"{shape}: {words}" for shape, words in wrong.items())
        yield {**found, "verdict": "different", "note": told[:1000]}


def times(torch: Any, model: files.Model, setting: Setting, name: str) -> Iterator[Result]:
    """Microseconds of one shape. For the chosen form, also its estimate, its kernels and both times of cuDNN.

    Raises:
        ValueError: a result differs from cuDNN's, or the kernels are not those of the form.
    """
    (shape,) = [shape for shape in SHAPES if shape.name == model["name"]]
    session = compiler.load(compiler.Plan(model["plan"]), device=setting.device, threads=1)
    torch.manual_seed(0)
    given = {name: torch.empty(each).cuda().normal_() for name, each in (("x", shape.input), ("w", shape.weights))}
    run = partial(session.run, given, device_outputs=True)
    found = of(traced(torch, run, RUNS), KERNEL)
    if not found:
        raise ValueError("PyTorch's profiler recorded no kernel")
    yield {"times": microseconds(found) / RUNS}
    check_launched(model["chosen"] if name == CHOSEN else name, kernels(found))
    theirs = cudnn(torch, shape, given, is_best=name == CHOSEN)
    allow_tf32(torch, False)
    check_near(torch, next(iter(run().values())), theirs())
    if name == CHOSEN:
        yield from beside(torch, theirs)
        yield {"chosen": model["chosen"], "estimates": model["forms"][model["chosen"]], "launched": kernels(found)}


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


def check_launched(form: str, launched: list[str]) -> None:
    """Compares the kernels of a convolution with those of a form, whose kernels have its name or are cuBLAS's.

    Raises:
        ValueError: they differ, because the extension was built from other sources than this checkout.
    """
    kinds = {kernel.split("_")[1] for kernel in launched if kernel.startswith("conv_")} - {"finish"}
    if kinds - {form.partition(":")[0]}:
        raise ValueError(f"the plan launched {', '.join(launched)} instead of {form}")


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
    """The checks, the times by shape, and the mean quotients of the chosen forms' times and others."""
    yield from bullets(part)
    found = by_shape(part.results)
    if not found:
        return
    yield ""
    yield from TABLE(Part(part.title, part.render, {each["name"]: each for each in found}))
    yield from (f"- {told}" for told in [*mean(found, "the chosen forms", "best_us", "the fastest form's time")])
    for kind in sorted({each["form"].partition(":")[0] for each in found if each["form"]}):
        of_kind = [each for each in found if each["form"] and each["form"].partition(":")[0] == kind]
        yield from (f"- {told}" for told in mean(of_kind, kind, "estimate", "its estimate"))
        yield from (f"- {told}" for told in mean(of_kind, kind, "cudnn_f32", "cuDNN's time"))


def mean(found: list[Result], who: str, figure: str, other: str) -> Iterator[str]:
    """A sentence with the geometric mean of the quotients of times and a figure, if there is one."""
    logs = [math.log(each["ours"] / each[figure]) for each in found if each.get("ours") and each.get(figure)]
    if logs:
        yield f"{who}: {math.exp(sum(logs) / len(logs)):.3f} of {other}, {len(logs)} shapes"


def by_shape(results: dict[str, Result]) -> list[Result]:
    """The times of each timed shape: of the chosen form, of the best form, and of cuDNN."""
    chosen = results.get(CHOSEN, {})
    wrong = {name for result in results.values() for name in result.get("wrong", {})}
    figures = {"form": "chosen", "estimate": "estimates", "cudnn_f32": "cudnn_f32", "cudnn_tf32": "cudnn_tf32"}
    found = []
    for shape in SHAPES:
        facts = {name: chosen.get(figure, {}).get(shape.name) for name, figure in (figures | {"ours": "times"}).items()}
        timed = timed_forms(results, shape.name) | ({facts["form"]: facts["ours"]} if facts["form"] else {})
        if not timed and facts["ours"] is None:
            continue
        best = min(timed, key=lambda form: timed[form]) if timed else None
        facts |= {"best": best, "best_us": timed[best] if best else None}
        verdict = "different" if shape.name in wrong else "equal"
        found.append({"name": shape.name, "verdict": verdict, "operations": shape.operations, **facts})
    return found


def timed_forms(results: dict[str, Result], shape: str) -> dict[str, float]:
    """Microseconds of a shape by forced form, without forms whose result was wrong."""
    return {
        name: result["times"][shape]
        for name, result in results.items()
        if name != CHOSEN and shape in result.get("times", {}) and shape not in result.get("wrong", {})
    }
