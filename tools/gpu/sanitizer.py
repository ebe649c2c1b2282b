"""Runs small plans under compute-sanitizer. They cover the kernels whose threads share memory."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed

from gpu import files
from gpu.page import table
from gpu.process import Setting, command, printed
from gpu.results import MARKS, NotRun, Result, is_wrong, unavailable, verdict
from gpu.tools import found

TOOLS = ("memcheck", "racecheck", "synccheck")
PATIENCE = 90
"""The time limit of one run in seconds."""
RESERVE = 5
"""Seconds before the deadline at which a run ends."""
AT_ONCE = max(2, (os.cpu_count() or 2) // 2)

lines = table({"plans": "summary"})


def names(setting: Setting) -> list[str]:
    """The tools of compute-sanitizer."""
    return list(TOOLS)


def results(name: str, setting: Setting, started: float) -> Iterator[Result]:
    """Runs every group of plans under one tool, several in parallel."""
    program = found("compute-sanitizer")
    if program is None:
        raise unavailable(setting.device, "compute-sanitizer is not installed")
    if not (groups := files.names(setting.bundle, "sanitized")):
        raise NotRun("the bundle has no plans for it")
    told: dict[str, Result] = {}
    with ThreadPoolExecutor(AT_ONCE) as threads:
        runs = {threads.submit(sanitized, program, name, group, setting): group for group in groups}
        for run in as_completed(runs):
            told[runs[run]] = run.result()
            yield together(told, len(groups))


def together(told: dict[str, Result], planned: int) -> Result:
    """The result of a tool for the groups that have run."""
    wrong = {group: result for group, result in sorted(told.items()) if is_wrong(result)}
    result: Result = {"groups": told, "summary": f"{len(told) - len(wrong)} of {planned} groups of plans are clean"}
    if wrong:
        result["verdict"] = "not run" if all(each["verdict"] == "not run" for each in wrong.values()) else "different"
        result["note"] = "; ".join(f"{group}: {verdict(each)}" for group, each in wrong.items())[:1000]
    return result


def sanitized(program: str, tool: str, group: str, setting: Setting) -> Result:
    """The result of compute-sanitizer for a group of plans."""
    seconds = min(PATIENCE, setting.left - RESERVE)
    if seconds <= 0:
        return {"verdict": "not run", "note": "time was up"}
    work = [*command("chosen", setting), "--only", f"sanitized/{group}"]
    try:
        return verdict_of(printed([program, "--tool", tool, *work], seconds))
    except TimeoutError:
        return {"verdict": "not run", "note": f"it took more than {seconds:.0f} s"}


def verdict_of(told: str) -> Result:
    """The result from the output of a run under compute-sanitizer."""
    if "Device not supported" in told:
        return {"verdict": "not run", "note": "compute-sanitizer does not support the device"}
    summary = next((line.strip("= ") for line in told.splitlines() if "SUMMARY:" in line), None)
    if summary is None:
        return {"verdict": "not run", "note": " ".join(told.split())[-300:] or "it printed nothing"}
    is_clean = re.search(r"SUMMARY: 0 (errors|hazards)", summary) is not None
    printed_results = [json.loads(line) for line in told.splitlines() if line.startswith("{")]
    ran = printed_results[-1] if printed_results else None
    if ran is None or is_wrong(ran) or ran.get("partial"):
        words = "the plans did not run" if ran is None or not is_wrong(ran) else f"{MARKS['failed']} {said(ran)}"
        return {"verdict": "failed", "note": f"{summary}; {words}"}
    return {"verdict": "equal" if is_clean else "different", "note": summary}


def said(result: Result) -> str:
    """The text of a result without its mark."""
    return verdict(result).partition(" ")[2]
