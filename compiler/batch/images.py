"""Sources of one row: an image in a .png or .jpg file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from compiler.batch.declared import Value
from compiler.batch.rows import Array, Chunk, Reading
from compiler.errors import Error

__all__ = ["Image", "Images"]

_MODES = {1: "L", 3: "RGB", 4: "RGBA"}
"""Number of channels → Pillow's mode of an image with them."""
_EXACT = {"L": ("1",), "RGB": ("1", "L")}
"""Mode → the other modes whose images become such ones without loss."""


class Images:
    """How images become values of the input `[C, H, W]`: the only input of the plan, of float32 or uint8."""

    def __init__(self, reading: Reading) -> None:
        try:
            from PIL import Image as Pillow
        except ModuleNotFoundError as error:
            message = 'images need Pillow, which is not installed: run pip install "candle-compiler[batch]"'
            raise Error(message) from error
        self._pillow: Any = Pillow
        if len(reading.inputs) != 1:
            names = ", ".join(value.name for value in reading.inputs)
            raise Error(f"an image is the value of one input, and the plan has {len(reading.inputs)}: {names}")
        [self.value] = reading.inputs
        if len(self.value.shape) != 3 or self.value.shape[0] not in _MODES:
            raise Error(f"an image has the shape [1, 3 or 4, height, width], and {_told(self.value)}")
        if self.value.dtype not in ("float32", "uint8"):
            raise Error(f"an image becomes float32 or uint8, and {_told(self.value)}")
        if reading.scale is not None and self.value.dtype != "float32":
            raise Error(f"a scale is for float32, and {_told(self.value)}")
        self._scale = reading.scale

    def read(self, path: Path) -> Array:
        """The image as `[1, C, H, W]`.

        Raises:
            ValueError: its size or its channels are not those of the input, or the file is damaged.
        """
        channels, *size = self.value.shape
        assert channels is not None
        try:
            with self._pillow.open(path, formats=("PNG", "JPEG")) as image:
                if any(wanted not in (None, has) for wanted, has in zip(size, image.size[::-1], strict=True)):
                    raise ValueError(f"the image has {_by(image.size[::-1])} pixels, the input {_by(size)}")
                mode = _MODES[channels]
                if image.mode != mode and image.mode not in _EXACT.get(mode, ()):
                    raise ValueError(f"the image has the mode {image.mode}, and the input takes {mode}")
                pixels = np.asarray(image.convert(mode))
        except (OSError, SyntaxError, self._pillow.DecompressionBombError) as error:
            raise ValueError(f"cannot read the image: {error}") from error
        array = np.ascontiguousarray(pixels.reshape(*pixels.shape[:2], channels).transpose(2, 0, 1))[None]
        if self.value.dtype == "uint8":
            return array
        values = array.astype(np.float32)
        return values if self._scale is None else values * np.float32(self._scale)


class Image:
    """A file with one image."""

    count = 1

    def __init__(self, path: Path, images: Images) -> None:
        self.path, self._images = path, images

    def read(self, first: int) -> Iterator[Chunk]:
        """The row, unless `first` is behind it."""
        if first == 0:
            try:
                array = self._images.read(self.path)
            except ValueError as error:
                yield Chunk(np.arange(0), {}, {0: str(error)})
            else:
                yield Chunk(np.arange(1), {self._images.value.name: array})


def _told(value: Value) -> str:
    return f"a row of the input {value.name!r} is {value}"


def _by(size: Any) -> str:
    return " × ".join("?" if each is None else str(each) for each in size)
