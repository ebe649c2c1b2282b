"""The instructions of the innermost loops of kernels for ARM, beside those that multiply. `make test-arm` runs it.

No machine with ARM measures the speed of these kernels, so this program counts. One instruction multiplies and adds 4
numbers in float32, 16 numbers in bfloat16 or 16 codes of 8 bits, and no loop has fewer instructions than these. The
others load operands and count rounds, or store sums to memory. The program fails if a loop has more of them than the
table allows.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

KERNELS = {
    "matrix product, float32": (r"gemm::strip::neon::neon", "fmla", 1.5),
    "matrix product, float32, without packing": (r"gemm::tile::neon", "fmla", 1.7),
    "convolution in blocks of channels": (r"blocked::tile::neon", "fmla", 1.7),
    "depthwise convolution": (r"depthwise::rows::neon", "fmla", 2.1),
    "product of 8-bit codes, dotprod": (r"int8::neon::dotprod", "sdot", 2.0),
    "product of 8-bit codes, i8mm": (r"int8::neon::i8mm", "sudot", 1.75),
    "product of bfloat16, bf16": (r"rounded::quads::tile::tile", "bfmmla", 1.6),
    "product of rows in 8 bits and codes of few bits, i8mm": (r"integer::kernels::arm::i8mm", "usdot", 1.6),
    "depthwise convolution of codes, i8mm": (r"int8::interleaved::i8mm", "usdot", 3.0),
}
"""For each kernel: the function, the instruction that multiplies, and the most instructions for one of them."""

FUNCTION = re.compile(r"^[0-9a-f]+ <(.*)>:$")
INSTRUCTION = re.compile(r"^ *([0-9a-f]+):\s+(\S+)\s*(.*)$")
TARGET = re.compile(r"(?:^|\s)([0-9a-f]+) <")


class Instruction(NamedTuple):
    """An instruction of a program: its address, its name and its operands."""

    address: int
    name: str
    operands: str


class Loop(NamedTuple):
    """An innermost loop: its instructions, and how many of them multiply, or store a register to memory."""

    instructions: int
    multiplications: int
    stores: int

    @property
    def ratio(self) -> float:
        """The instructions for one multiplication."""
        return self.instructions / self.multiplications


def functions(listing: str) -> Iterator[tuple[str, list[Instruction]]]:
    """Return the name of each function in objdump's listing, and its instructions."""
    name, body = "", list[Instruction]()
    for line in listing.splitlines():
        if found := FUNCTION.match(line):
            yield name, body
            name, body = found[1], []
        elif found := INSTRUCTION.match(line):
            body.append(Instruction(int(found[1], 16), found[2], found[3]))
    yield name, body


def loops(body: Sequence[Instruction], multiply: str) -> Iterator[Loop]:
    """Return the innermost loops that multiply: those between a jump backward and its target, without another one."""
    places = {instruction.address: place for place, instruction in enumerate(body)}
    spans = []
    for end, instruction in enumerate(body):
        target = TARGET.search(instruction.operands) if re.match(r"b$|b\.|cb|tb", instruction.name) else None
        start = places.get(int(target[1], 16)) if target else None
        if start is not None and start <= end:
            spans.append((start, end))
    for start, end in spans:
        if not any((start, end) != other and start <= other[0] and other[1] <= end for other in spans):
            inside = body[start : end + 1]
            stores = sum(each.name.startswith("st") for each in inside)
            if count := sum(each.name == multiply for each in inside):
                yield Loop(len(inside), count, stores)


def best(listing: Sequence[tuple[str, list[Instruction]]], function: str, multiply: str) -> Loop | None:
    """Return the loop of the largest tile: of those with the fewest instructions for a multiplication, the longest."""
    found = (loop for name, body in listing if re.search(function, name) for loop in loops(body, multiply))
    return min(found, key=lambda loop: (round(loop.ratio, 2), -loop.multiplications), default=None)


def main(program: str) -> int:
    """Print the loops of a program's kernels. Return 1 if one has too many instructions, else 0."""
    command = ["aarch64-linux-gnu-objdump", "--disassemble", "--demangle", "--no-show-raw-insn", program]
    listing = list(functions(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    failed = 0
    for kernel, (function, multiply, most) in KERNELS.items():
        loop = best(listing, function, multiply)
        if loop is None:
            text, is_good = "no loop found", False
        else:
            is_good = loop.ratio <= most
            text = f"{loop.multiplications} {multiply} of {loop.instructions} instructions, {loop.ratio:.2f} each"
            text += f", stores: {loop.stores}"
        print(f"{kernel}: {text}{'' if is_good else f' ✗ (at most {most})'}")
        failed |= not is_good
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
