"""Flips bits of an ONNX file and compiles the result: it compiles, or the compiler refuses it with a diagnostic.

`python -m tests.fuzz_model MODEL FLIPS SEED`: each attempt changes up to three bits, or cuts the file off. Prints how
many were refused; any other exception ends it.
"""

from __future__ import annotations

import logging
import random
import sys
from collections import Counter
from pathlib import Path

import compiler


def spoiled(data: bytes, chance: random.Random) -> bytes:
    """The data with some bits changed, or without its end."""
    if chance.random() < 0.1:
        return data[: chance.randrange(len(data))]
    changed = bytearray(data)
    for _ in range(chance.choice([1, 1, 1, 3])):
        changed[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def main() -> None:
    """Changes and compiles the model many times. Prints the number of refusals."""
    logging.disable()  # onnx_ir warns of its repairs
    path, flips, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    data = Path(path).read_bytes()
    compiler.compile(data)
    chance = random.Random(seed)
    outcomes: Counter[str] = Counter()
    for attempt in range(flips):
        try:
            compiler.compile(spoiled(data, chance))
            outcomes["compiled"] += 1
        except compiler.CompileError as error:
            outcomes[error.diagnostics[0].code] += 1
        except BaseException:
            print(f"attempt {attempt} with seed {seed}", file=sys.stderr)
            raise
    print(f"{flips - outcomes['compiled']} of {flips} refused: {dict(outcomes.most_common())}")


if __name__ == "__main__":
    main()
