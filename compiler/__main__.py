"""`candlec`, and `python -m compiler`."""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line. Ctrl-C may also interrupt its import."""
    try:
        from compiler.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
