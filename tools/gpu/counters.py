"""Hardware counters of the hottest kernels, from Nsight Compute."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator

from gpu.page import table
from gpu.process import Setting, command, printed
from gpu.results import NotRun, Result, unavailable
from gpu.tools import found

HOTTEST = 5
PATIENCE = 50
FIGURES = (
    "Duration",
    "Compute (SM) Throughput",
    "Memory Throughput",
    "DRAM Throughput",
    "L1/TEX Hit Rate",
    "L2 Hit Rate",
    "Achieved Occupancy",
    "Registers Per Thread",
    "Executed Ipc Active",
)
"""The metrics on the page; the JSON file has all of them."""

lines = table({"figures": "figures"})


def names(setting: Setting) -> list[str]:
    """The kernels by their rank."""
    return [f"kernel {rank} by time" for rank in range(1, HOTTEST + 1)]


def results(name: str, setting: Setting, started: float) -> Iterator[Result]:
    """Profiles one launch of a kernel in the plan that spends the most time in it."""
    if setting.device == "emulator" or (tool := found("ncu")) is None:
        raise unavailable(setting.device, "ncu is not installed")
    rank = int(name.split()[1])
    if len(hot := hottest(setting)) < rank:
        raise NotRun("the kernels' times are not known")
    kernel, plan = hot[rank - 1]
    yield {"kernel": kernel, "plan": plan}
    options = ["--set", "full", "--clock-control", "none", "--csv", "--page", "details"]
    chosen = ["--kernel-name", f"regex:^{re.escape(kernel)}$", "--launch-skip", "2", "--launch-count", "1"]
    try:
        told = printed(
            [tool, *options, *chosen, *command("chosen", setting), "--only", plan], min(PATIENCE, setting.left)
        )
    except TimeoutError:
        raise NotRun(f"{kernel} of {plan} took more than {PATIENCE} s under ncu") from None
    metrics = metrics_of(told)
    if not metrics:
        words = next((line for line in told.splitlines() if line.startswith("==ERROR==")), told.strip()[-200:])
        raise NotRun(f"ncu printed no figures of {kernel} in {plan}: {words}")
    yield {
        "metrics": metrics,
        "figures": [f"{kernel} in {plan}", *(f"{k} {metrics[k]}" for k in FIGURES if k in metrics)],
    }


def hottest(setting: Setting) -> list[tuple[str, str]]:
    """The kernels with the most time, each with the plan in which it has the most, from the results of `kernels`."""
    file = setting.out / "cuda-tune.json"
    sections = json.loads(file.read_text())["sections"] if file.exists() else []
    plans = [plan for section in sections for plan in section["results"] if "kernels" in plan]
    taken = [
        (each["us"], each["kernel"], plan["name"]) for plan in plans for each in plan["kernels"] if each["is_ours"]
    ]
    ranked: dict[str, str] = {}
    for _, kernel, plan in sorted(taken, reverse=True):
        ranked.setdefault(kernel, plan)
    return list(ranked.items())


def metrics_of(told: str) -> dict[str, str]:
    """The metrics with their units, from the output of ncu: other lines, then CSV."""
    lines = told.splitlines()
    start = next((number for number, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    rows = csv.DictReader(io.StringIO("\n".join(lines[start:])))
    return {
        row["Metric Name"]: f"{row['Metric Value']} {row['Metric Unit'] or ''}".strip()
        for row in rows
        if row.get("Metric Name") and row.get("Metric Value")
    }
