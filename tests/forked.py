"""A process that runs commands of `candlec`, each in a child of its own.

The children have the modules of the compiler already. A new process would import them for a second each time.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping
from pathlib import Path

__all__ = ["candlec"]

ROOT = Path(__file__).parent.parent
VERBS = ("check", "compile", "inspect", "run", "verify")
"""The verbs whose modules the process imports."""
MODEL = """<ir_version: 9, opset_import: ["": 20]>
g (float[n, 3] x) => (float[m, 3] y) <float[1, 3] w = {1, 2, 3}> { z = Concat<axis = 0>(x, w)  y = Add(z, w) }"""
"""The process compiles this model, because a first compilation imports more."""


def candlec(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs `candlec` in a folder, with more environment variables."""
    with tempfile.TemporaryDirectory() as place:
        files = [Path(place, name) for name in ("out", "err")]
        asked = {"folder": str(folder), "arguments": arguments, "files": list(map(str, files))}
        process = _server()
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps({**asked, "variables": {**os.environ, **variables}}) + "\n")
        process.stdin.flush()
        code = int(process.stdout.readline())
        out, errors = (file.read_text() for file in files)
    return subprocess.CompletedProcess(["candlec", *arguments], code, out, errors)


@functools.cache
def _server() -> subprocess.Popen[str]:
    """The process. It ends with the process of the tests, which closes its input."""
    command = [sys.executable, "-m", "tests.forked"]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def serve() -> None:
    """Runs a command for each line of the input, and prints its exit code; that of a signal is negative."""
    import onnx.parser

    import compiler

    for verb in VERBS:
        importlib.import_module(f"compiler.cli.{verb}")
    compiler.compile(onnx.parser.parse_model(MODEL))
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            run(**json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def run(folder: str, arguments: list[str], files: list[str], variables: Mapping[str, str]) -> None:
    """Runs a command in this process, and ends the process as Python does."""
    for number, file in enumerate(files, 1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    sys.argv = ["candlec", *arguments]
    from compiler.__main__ import main

    code: object = 1
    try:
        main()
        code = 0
    except SystemExit as error:
        code = error.code or 0
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1)  # Python would free the modules one by one


if __name__ == "__main__":
    serve()
