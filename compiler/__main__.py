"""`python -m compiler` is `candlec`."""

from compiler.cli import main

if __name__ == "__main__":
    main()
