"""The peaks of this machine, measured once and stored in the user's cache."""

from __future__ import annotations

import json
import math
import os
from contextlib import suppress
from dataclasses import asdict, astuple
from pathlib import Path
from typing import TYPE_CHECKING

from compiler.atomic_files import write_whole
from compiler.runtime import processor
from compiler.runtime.steps import Peaks

if TYPE_CHECKING:
    from compiler.runtime.session import Session

__all__ = ["cache_file", "peaks_of"]


def peaks_of(session: Session) -> Peaks:
    """The peaks for a session's number of threads: from the cache, or measured and written there."""
    file, key = cache_file(), _key(session)
    kept = _read(file)
    if key in kept:
        return kept[key]
    peaks = session.peaks()
    if file is not None:
        with suppress(OSError):  # the next call measures again
            file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(file, json.dumps({name: asdict(each) for name, each in (kept | {key: peaks}).items()}).encode())
    return peaks


def cache_file() -> Path | None:
    """The cache file; `None` if the user has no cache folder. To measure the peaks again, remove the file."""
    try:
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:  # there is no home folder
        return None
    return Path(cache) / "candle-compiler" / "peaks.json"


def _key(session: Session) -> str:
    """A key of everything that the peaks depend on."""
    return " · ".join([processor.name(), os.environ.get("CANDLE_PLAN_ISA", ""), f"{session.threads} threads"])


def _read(file: Path | None) -> dict[str, Peaks]:
    """The valid peaks by key; empty if the file is missing or invalid."""
    try:
        entries = {} if file is None else json.loads(file.read_bytes())
        found = {key: Peaks(float(each["operations"]), float(each["bytes"])) for key, each in entries.items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return {}
    return {key: peaks for key, peaks in found.items() if all(0 < peak < math.inf for peak in astuple(peaks))}
