"""The driver, the device's attributes, and the installed libraries and tools."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gpu.driver import ATTRIBUTES, Driver
from gpu.page import bullets, shown
from gpu.process import Setting
from gpu.results import Result
from gpu.tools import found

PACKAGES = ("torch", "triton", "numpy", "nvidia-cublas", "nvidia-cudnn-cu13", "nvidia-curand", "nvidia-cuda-cupti")
TOOLS = ("ncu", "compute-sanitizer", "nvidia-smi")

lines = bullets


def names(setting: Setting) -> list[str]:
    """The names of the checks."""
    return list(CHECKS)


def results(name: str, setting: Setting, started: float) -> Iterator[Result]:
    """The figures of one check, and a sentence with all of them."""
    figures = CHECKS[name](setting)
    yield {"figures": figures, "note": ", ".join(f"{what} {shown(value) or '–'}" for what, value in figures.items())}


def host(setting: Setting) -> dict[str, Any]:
    """The CPU and the version of Python."""
    cores = os.cpu_count()
    return {
        "processor": processor(),
        "cores": cores,
        "Python": platform.python_version(),
        "system": platform.platform(),
    }


def processor() -> str:
    """The name of the CPU."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())


def packages(setting: Setting) -> dict[str, Any]:
    """The versions of installed packages."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "–"
    return versions


def tools(setting: Setting) -> dict[str, Any]:
    """The paths of NVIDIA's tools."""
    return {tool: found(tool) or "–" for tool in TOOLS}


def attributes(setting: Setting) -> dict[str, Any]:
    """The device's name, driver, memory and attributes."""
    driver = Driver(setting.device)
    figures: dict[str, Any] = {"name": driver.name(), "driver for CUDA": driver.version(), "bytes": driver.memory()}
    figures |= {what: driver.attribute(number) for what, number in ATTRIBUTES.items()}
    driver.close()
    return figures


CHECKS: dict[str, Callable[[Setting], dict[str, Any]]] = {
    "host": host,
    "packages": packages,
    "tools": tools,
    "device": attributes,
}
