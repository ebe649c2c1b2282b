"""Lines of files of results, for tests of the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from compiler.zoo.outcome import variants

__all__ = ["check", "ended", "output", "profile", "refused", "rounding", "times", "write"]

VARIANTS = [str(variant) for variant in variants("cpu")]
PLAN = {
    "plan_bytes": 4_725_000,
    "constants": 2,
    "constant_bytes": 4_000_000,
    "operations": 51_420_672,
    "steps": {"Conv": 3, "Gemm": 1},
    "host_steps": {"Shape": 1},
    "rewrites.fuse_epilogues": {"fuse Conv + Relu": 3},
    "rewrites.merge_slices": {"MergeSlices": 2},
}
LEVEL = {
    "block": 8,
    "packed_bytes": 4_200_000,
    "unpacked_bytes": 512,
    "peak_bytes": 295_232,
    "unknown_steps": 0,
    "added": {"Reorder": 1},
    "forms.Conv": {"direct, in blocks": 2, "Winograd F(2, 3)": 1},
}
PEAKS = {"operations": 1e11, "bytes": 1e10}


def line(model: str, what: str, ending: dict[str, Any], *, ok: bool = True) -> Any:
    """A line with an ending."""
    common = {"model": model, "what": what, "ok": ok, "result": "", "digest": "", "limits": {}}
    return {**common, "ending": {"kind": "done", "result": None, "parts": [], "seconds": 1.0, **ending}}


def output(name: str, share: float | None, verdict: str = "equal", error: float | None = None) -> dict[str, Any]:
    """The difference of an output."""
    difference = None if share is None else share * 1e-5
    numbers = {"difference": difference, "allowed": 1e-5, "share": share, "error": error, "reference_error": error}
    return {"name": name, "dtype": "float32", "shape": [8, 10], "verdict": verdict, "case": "io", **numbers}


def outcome(model: str, variant: str, verdict: str, share: float | None, **fields: Any) -> dict[str, Any]:
    """The data of an outcome."""
    kept = {"codes": [], "note": "", "remarks": [], "advice": {}, "outputs": [output("y", share, verdict)], **fields}
    return {"model": model, "variant": variant, "verdict": verdict, "share": share, "seconds": 0.25, **kept}


def check(
    model: str,
    verdict: str = "equal",
    share: float | None = 0.5,
    *,
    ok: bool = True,
    shapes: str = "pinned",
    tags: tuple[str, ...] = (),
    level: str = "avx2",
    plan: dict[str, Any] | None = None,
    **fields: Any,
) -> Any:
    """The line of a check. `plan` replaces some of its facts, and every outcome has the `fields`."""
    facts = {"plan": PLAN | (plan or {}), "levels": {level: LEVEL}}
    parts = [[shapes, outcome(model, variant, verdict, share, **fields)] for variant in VARIANTS]
    made = line(model, f"check, {shapes}, cpu", {"result": {shapes: facts}, "parts": parts}, ok=ok)
    return {**made, "tags": list(tags)}


def refused(model: str, **options: Any) -> Any:
    """The line of a refused model."""
    remark = "3-D convolution is not supported (kernel 3×3×3) (CC0301)"
    fields = {"codes": ["CC0301"], "remarks": [remark], "advice": {remark: "use 2-D operators"}, "outputs": []}
    made = check(model, "refused", None, **fields, **options)
    made["ending"]["result"] = {}
    return made


def ended(model: str, kind: str = "crashed", **options: Any) -> Any:
    """The line of a check that ended in its second variant."""
    made = check(model, ok=False, **options)
    message = {"kind": kind, "message": "it crashed with SIGSEGV (segmentation fault)", "phase": "run: io"}
    made["ending"] |= {**message, "result": None, "parts": made["ending"]["parts"][:1]}
    return made


def step(op: str, layer: str, seconds: float, alive_bytes: int, **fields: Any) -> dict[str, Any]:
    """A step of a profile of ten runs."""
    work = {"operations": int(seconds * 5e10), "bytes": int(seconds * 1e9), "alive_bytes": alive_bytes}
    known = {"op": op, "kernel": None, "depth": 0, "calls": 10, "seconds": seconds, **work}
    return {**known, "host": None, "origin": f"{op}(node_{op}), {layer}, net.py:7", "layer": layer, **fields}


def profile(model: str, shapes: str = "pinned", **fields: Any) -> Any:
    """The line of a profile with steps of two layers. One layer has a nested step."""
    steps = [
        step("Conv", "stem", 0.03, 100_000, kernel="direct, in blocks"),
        step("If", "head", 0.02, 295_232, operations=None, bytes=None),
        step("Gemm", "head", 0.015, 50_000, depth=1, host="nature"),
        step("Conv", "head", 0.05, 200_000),
    ]
    result = {"level": "avx2", "threads": 1, "runs": 10, "peaks": PEAKS, "steps": steps, **fields}
    return line(model, f"profile, {shapes}, cpu", {"result": result})


def times(model: str, *percent: float) -> list[Any]:
    """The lines of the processes that time a model."""
    found = ({"result": {"plan": each, "onnxruntime": 100.0}} for each in percent)
    return [line(model, f"time, avx2, {number}", ending) for number, ending in enumerate(found, 1)]


def rounding(model: str, plan: float, reference: float) -> Any:
    """The line of a measurement of rounding errors."""
    return line(model, "precision", {"result": {"plan": plan, "reference": reference}})


def write(path: Path, *lines: Any) -> Path:
    """Write a file of results."""
    path.write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    return path
