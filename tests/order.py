"""The order of the tests of `make test-python`, which two processes run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")
FIRST = (
    ("dynamo", "exports", "generation", "layers", "test_families.py", "test_models.py", "volumes/test_networks.py"),
    ("accepted", "on_ray", "standin", "test_ci_page.py", "test_cuda_check.py", "test_fuzz.py", "test_rust_package.py"),
)
"""The long tests in this folder, in two parts. Each of two processes begins with one part.

The first part needs PyTorch.

A process that is done takes the last tests of the other one. Therefore the long tests do not run last. All tests of a
file with a long preparation run in one process.
"""


def in_order(names: Sequence[str], items: Sequence[Item]) -> list[Item]:
    """The items in their order of execution. `names` holds their names.

    Each process gets one half of the items. Each half begins with the tests of one part of `FIRST`.
    """
    groups: list[list[Item]] = [[], [], []]
    for name, item in zip(names, items, strict=True):
        begins = [name.removeprefix("tests/").startswith(files) for files in FIRST]
        groups[begins.index(True) if any(begins) else 2].append(item)
    one, other, rest = groups
    count = max(len(items) // 2 - len(one), 0)
    return [*one, *rest[:count], *other, *rest[count:]]
