"""The paths of NVIDIA's command-line tools."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

FOLDERS = ("/usr/local/cuda/bin", "/usr/local/cuda/compute-sanitizer")
NSIGHT = Path("/opt/nvidia/nsight-compute")


def found(tool: str) -> str | None:
    """The path of a tool; `None` if it is not installed."""
    versions = sorted(NSIGHT.glob("*"), reverse=True) if NSIGHT.is_dir() else []
    folders = [os.environ.get("PATH", ""), *FOLDERS, *map(str, versions)]
    return shutil.which(tool, path=os.pathsep.join(folders))
