"""Fixtures and functions that the tests of several files use."""

from __future__ import annotations

import faulthandler
import gc
import os
import resource
import sys
from collections.abc import Generator, Iterator

import pytest

from compiler.runtime.devices import CUDA
from tests import exporter
from tests.order import in_order
from tests.standin import device

if os.environ.get("WITHOUT_TORCH"):  # `make test-fast`: as if PyTorch were not installed
    sys.modules["torch"] = None  # type: ignore[assignment]

LONGEST = 3600.0 * int(os.environ.get("FUZZ", "1"))
"""Seconds after which a test hangs, even on a slow and busy machine."""
ERRORS = pytest.StashKey[int]()
"""The file descriptor of the standard error, which pytest replaces during a test."""


def pytest_addoption(parser: pytest.Parser) -> None:
    help_text = "Run only the first case of each parametrized test in this folder. May be repeated."
    parser.addoption("--first-cases", action="append", default=[], metavar="FOLDER", help=help_text)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    folders = [(config.invocation_params.dir / each).resolve() for each in config.getoption("--first-cases")]
    seen, kept, left_out = set[str](), list[pytest.Item](), list[pytest.Item]()
    for item in items:
        function = item.nodeid.partition("[")[0]
        is_later = function in seen and any(item.path.is_relative_to(folder) for folder in folders)
        (left_out if is_later else kept).append(item)
        seen.add(function)
    items[:] = in_order([item.nodeid for item in kept], kept) if hasattr(config, "workerinput") else kept
    if left_out:
        config.hook.pytest_deselected(items=left_out)


def pytest_configure(config: pytest.Config) -> None:
    config.stash[ERRORS] = os.dup(2)
    # Exports and compilations make many objects. By default, Python would look for garbage after each 700 of them.
    gc.set_threshold(10_000)
    # Processes that crash on purpose end at once: writing their memory to a file would take time.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def pytest_collection_finish() -> None:
    """The search for garbage skips the many objects of the collection, which live until the process ends."""
    gc.freeze()


def pytest_sessionfinish() -> None:
    gc.unfreeze()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """End the process of a test that hangs, and print its threads' stacks. Another process runs the next tests."""
    faulthandler.dump_traceback_later(LONGEST, exit=True, file=item.config.stash[ERRORS])
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.fixture(scope="session")
def quick_exports() -> Iterator[None]:
    """Makes exports with PyTorch's dynamo exporter share what they need."""
    with exporter.shared_tables():
        yield


@pytest.fixture
def standin(monkeypatch: pytest.MonkeyPatch) -> Iterator[device.StandIn]:
    """The stand-in for a GPU, as `device="cuda"`. A misuse of the driver fails the test."""
    found = device.opened()
    monkeypatch.setitem(sys.modules, CUDA, found.module)
    found.configure(device.CONFIGURATION)
    found.report()
    yield found
    misused = found.report()
    assert not misused, misused


@pytest.fixture(params=["emulator", "cuda"])
def gpu(request: pytest.FixtureRequest) -> str:
    """The names of the GPUs without hardware: the emulator, and the stand-in as `cuda`."""
    name: str = request.param
    if name == "cuda":
        request.getfixturevalue("standin")
    else:
        pytest.importorskip("compiler._runtime_emulator", reason="the emulator is not built: `make emulator`")
    return name
