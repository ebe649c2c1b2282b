"""Writes the generated files: the plan's schema and Python classes from Rust, and pages of the documentation."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import families
import kernel_levels
import pages
import zoo_page

from compiler.plan import generate

ROOT = Path(__file__).parent.parent


def main() -> None:
    """Write the files once all of them are generated. The pages of layers need PyTorch."""
    try:
        made = {
            **generate.files(),
            families.FILE: families.text(),
            kernel_levels.FILE: kernel_levels.text(),
            ROOT / "docs/errors.md": pages.errors(),
            ROOT / "docs/onnxruntime.md": pages.onnxruntime(),
            ROOT / "docs/operators.md": pages.operators(),
            zoo_page.FILE: zoo_page.text(),
        }
    except generate.FormatterFailed as error:
        sys.exit(f"nothing is written: {error}")
    if has_torch := find_spec("torch") is not None:
        sys.path.insert(0, str(ROOT))
        from tests.layers import page

        made |= page.files()
    changed = generate.write(made)
    print(f"changed: {', '.join(str(path.relative_to(ROOT)) for path in changed) or 'no file'}")
    if not has_torch:
        print("left as they are: docs/layers*.md, because PyTorch is not installed (`make test` installs it)")


if __name__ == "__main__":
    main()
