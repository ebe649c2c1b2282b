"""Writes the files that are generated from the Rust source: the plan's schema and the Python classes of its types."""

from compiler.plan import generate

if __name__ == "__main__":
    generate.main()
