"""The description of the machine, software and date of a measurement."""

from __future__ import annotations

import os
import subprocess
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compiler.bench.engines import PLAN, installed_version
from compiler.runtime import processor

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["described", "in_words"]


def described(engines: Iterable[str]) -> dict[str, Any]:
    """The processor, its instruction sets and load, the versions of the engines, the commit and the date."""
    return {
        "processor": processor.name(),
        "extensions": processor.extensions(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
        "isa": os.environ.get("CANDLE_PLAN_ISA") or None,
        "engines": {name: installed_version(name) for name in engines if name != PLAN},
        "commit": _commit(),
        "date": date.today().isoformat(),
    }


def in_words(machine: dict[str, Any]) -> str:
    """The description as text."""
    parts = [
        f"{machine['processor']} ({', '.join(machine['extensions'])}), {machine['cores']} cores",
        *(f"{name} {version}" for name, version in machine["engines"].items()),
        *([f"CANDLE_PLAN_ISA={machine['isa']}"] if machine["isa"] else []),
        *([f"commit {machine['commit']}"] if machine["commit"] else []),
        *([f"load {machine['load']}"] if machine["load"] is not None else []),
        machine["date"],
    ]
    return ", ".join(parts)


def _commit() -> str:
    """The commit of the source, with `+` after local changes; empty for an installed package."""
    command = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    try:
        done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()
