"""Formats of quantized weights, as the option `weights` names them."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["MULTIPLE", "WeightFormat", "is_file"]

MULTIPLE = 16
"""The size of a block is a multiple of this number of codes, or a block is a whole row."""
_FILES = (".gguf", ".safetensors")
_FORMAT = re.compile(r"int(?P<bits>[48])(:(?P<block>[0-9]{1,9}))?")
_BLOCK = {4: 32, 8: 0}
"""The bits → the default size of a block; 0 for a whole row."""


@dataclass(frozen=True)
class WeightFormat:
    """Codes of `bits` bits, with a scale for each block of `block` codes; 0 for a scale for each row."""

    bits: int
    block: int

    @staticmethod
    def parse(text: str) -> WeightFormat:
        """The format of `int8`, `int4`, `int8:64` or `int4:128`: the bits, and the codes of a block.

        Raises:
            ValueError: the text is something else, or the size of a block is not a multiple of 16.
        """
        found = _FORMAT.fullmatch(text)
        if found is None:
            formats = "use int8, int4, or int4:64 for blocks of 64"
            raise ValueError(f"{text!r} is not a format of weights: {formats}; or name a .gguf or .safetensors file")
        bits = int(found["bits"])
        block = _BLOCK[bits] if found["block"] is None else int(found["block"])
        if found["block"] is not None and (block == 0 or block % MULTIPLE):
            raise ValueError(f"{text!r}: the size of a block is a multiple of {MULTIPLE}")
        return WeightFormat(bits, block)

    def block_of(self, depth: int) -> int:
        """The codes of a block in rows of `depth` numbers; the last block of a row may be partial."""
        whole = -(-depth // MULTIPLE) * MULTIPLE
        return min(self.block, whole) if self.block else whole

    def __str__(self) -> str:
        return f"int{self.bits}" + (f":{self.block}" if self.block != _BLOCK[self.bits] else "")


def is_file(weights: str) -> bool:
    """Whether the option `weights` names a file of weights instead of a format."""
    return weights.lower().endswith(_FILES)
