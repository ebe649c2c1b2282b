"""Writes what is generated: from Rust the plan's schema and its Python classes, and pages of the documentation."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pages

from compiler.plan import generate

ROOT = Path(__file__).parent.parent


def main() -> None:
    """Write all that can be: the page of layers is made of PyTorch's."""
    generate.main()
    (ROOT / "docs/errors.md").write_text(pages.errors(), encoding="utf-8")
    (ROOT / "docs/operators.md").write_text(pages.operators(), encoding="utf-8")
    print("written: runtime/plan/plan.schema.json, compiler/plan/ops.py, docs/errors.md, docs/operators.md")
    if find_spec("torch") is None:
        print("left as it is: docs/layers.md, because PyTorch is not installed (`make test` installs it)")
        return
    sys.path.insert(0, str(ROOT))
    from tests.layers import page

    page.FILE.write_text(page.text(), encoding="utf-8")
    print("written: docs/layers.md")


if __name__ == "__main__":
    main()
