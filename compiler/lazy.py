"""Public names of a package, each imported at its first use."""

from __future__ import annotations

import importlib

# Importing `typing` would take longer than everything else, and Ctrl-C during the import would print a traceback.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

__all__ = ["lazy_names"]


def lazy_names(
    package: str, modules: Mapping[str, Iterable[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package, from its public names by module.

    The key "" lists names that are themselves modules of the package. Type checkers need the same names, as imports in
    a block `if TYPE_CHECKING`. A test compares the two.
    """
    places = {name: module for module, names in modules.items() for name in names}
    public = sorted(places)

    def get(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if not places[name]:
            return importlib.import_module(f"{package}.{name}")
        return getattr(importlib.import_module(f"{package}.{places[name]}"), name)

    return get, lambda: public, public
