"""`candlec`, and `python -m compiler`."""

import os
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line. Ctrl-C may also interrupt its import."""
    # If the caller closed an output, Python has no file for it, and old versions of click cannot print.
    sys.stdout = sys.stdout or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    sys.stderr = sys.stderr or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    try:
        from compiler.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
