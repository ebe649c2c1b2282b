"""The demonstration behind `make demo`: compile a trained model, run it, check it, and see a model refused.

The argument is the program `candlec`. Without it, the demonstration runs the one of the Python that runs this file.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parent.parent
PROGRAM = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(sys.executable).parent / "candlec"
SHOWN = PROGRAM.relative_to(ROOT) if PROGRAM.is_relative_to(ROOT) else PROGRAM
PLAN = "build/demo/digits.plan"
OUTPUT = "build/demo/digits.out.npz"
SHADES = " ░▒▓█"

console = Console(highlight=False)


def command(text: str, expected: int = 0) -> None:
    """Print a candlec command and run it. The demonstration ends if the exit code is not `expected`."""
    console.print(f"\n[bold cyan]$ {SHOWN} {text}[/]", soft_wrap=True)
    done = subprocess.run([SHOWN, *shlex.split(text)], cwd=ROOT, check=False)
    if done.returncode != expected:
        sys.exit(f"`{SHOWN} {text}` ended with exit code {done.returncode}, not {expected}")


def say(text: str) -> None:
    """Print a sentence between two commands."""
    console.print(f"\n[bold]{text}[/]", soft_wrap=True)


def rows(picture: np.ndarray) -> list[str]:
    """Gray levels `[8, 8]` from 0 to 1 as text, two characters per pixel."""
    levels = np.clip(np.rint(picture * (len(SHADES) - 1)), 0, len(SHADES) - 1).astype(int)
    return ["".join(SHADES[level] * 2 for level in line) for line in levels]


def show(count: int = 4) -> None:
    """Print the network's inputs, its cleaned pictures, and the digits that it recognized."""
    given = np.load(ROOT / "models/digits.npz")["picture"]
    made = np.load(ROOT / OUTPUT)
    labels = np.load(ROOT / "models/digits.labels.npz")["digit"]
    read = made["logits"].argmax(axis=1)
    for title, pictures in (("noisy inputs", given), ("cleaned by the plan", made["clean"])):
        console.print(f"\n  {title}", style="dim")
        for line in zip(*(rows(picture[0]) for picture in pictures[:count]), strict=True):
            console.print(Text("  " + "   ".join(line)))
    console.print("  " + "".join(f"{f'read as {digit}':<19}" for digit in read[:count]))
    console.print(f"\n  {np.sum(read == labels)} of {len(labels)} digits recognized")


def main() -> None:
    """The demonstration, in four commands."""
    (ROOT / PLAN).parent.mkdir(parents=True, exist_ok=True)
    say("1. Compile a network that PyTorch trained and exported (models/digits.py)")
    command(f"compile models/digits.onnx -o {PLAN}")
    say("2. Run the plan on noisy pictures that were not in the training data")
    command(f"run {PLAN} --input models/digits.npz --output {OUTPUT}")
    show()
    say("3. Check it against onnxruntime on the same pictures")
    command(f"verify models/digits.onnx {PLAN} --input models/digits.npz")
    say("4. The compiler refuses a model with 3-D convolutions, and names the layers (exit code 1)")
    command("check models/digits_3d.onnx", expected=1)
    say(f"Done. Your own model:  {SHOWN} compile model.onnx && {SHOWN} run model.plan")


if __name__ == "__main__":
    main()
