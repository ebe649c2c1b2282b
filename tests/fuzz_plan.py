"""Flips bits of a plan file, and reads and runs the result, in a separate process, because a crash ends it.

`python -m tests.fuzz_plan PLAN FLIPS SEED`: each flip changes one bit of the file. `--sign` corrects the
checksum, so that the test reaches the later checks. Prints the number of refused plans.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
from pathlib import Path

import compiler
from compiler import DeviceError
from compiler.accuracy.random_inputs import random_inputs

EXPECTED = (compiler.PlanError, compiler.RunError, compiler.InputError, DeviceError)


def attempt(data: bytes) -> bool:
    """Whether a plan loads and runs. False for an expected refusal; any other exception is raised."""
    try:
        session = compiler.load(compiler.Plan(data), threads=1)
        session.run(random_inputs(session.inputs, {}))
    except EXPECTED:
        return False
    return True


def sign(data: bytes) -> bytes | None:
    """The file with a valid checksum; `None` if its header is no longer JSON."""
    length = int.from_bytes(data[:8], "little")
    try:
        header = json.loads(data[8 : 8 + length])
        plan = header["__metadata__"]["plan"].encode()
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    header["__metadata__"]["sha256"] = hashlib.sha256(plan + data[8 + length :]).hexdigest()
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data[8 + length :]


def main() -> None:
    """Flips a bit and runs the plan many times. With `--sign`, corrects the checksum first."""
    path, flips, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    plan = Path(path).read_bytes()
    assert attempt(plan), "the plan does not run to begin with"
    chance = random.Random(seed)
    header = 8 + int.from_bytes(plan[:8], "little")
    refused = 0
    for _ in range(flips):
        data = bytearray(plan)
        at = chance.randrange(header) if "--sign" in sys.argv else chance.randrange(len(plan))
        data[at] ^= 1 << chance.randrange(8)
        changed = sign(bytes(data)) if "--sign" in sys.argv else bytes(data)
        refused += changed is None or not attempt(changed)
    print(f"{refused} of {flips} refused")


if __name__ == "__main__":
    main()
