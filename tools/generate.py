"""Writes what is generated: from Rust the plan's schema and its Python classes, from tables of layers their page."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

from compiler.plan import generate

ROOT = Path(__file__).parent.parent


def main() -> None:
    """Write all that can be: the tables are made of PyTorch's layers."""
    generate.main()
    print("written: runtime/plan/plan.schema.json, compiler/plan/ops.py")
    if find_spec("torch") is None:
        print("left as it is: docs/layers.md, because PyTorch is not installed (`make test` installs it)")
        return
    sys.path.insert(0, str(ROOT))
    from tests.layers import page

    page.FILE.write_text(page.text(), encoding="utf-8")
    print("written: docs/layers.md")


if __name__ == "__main__":
    main()
