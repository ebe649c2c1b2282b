"""Writes a plan file: safetensors with canonical JSON. Equal plans have equal bytes.

The functions return the file in parts. A caller that writes the parts to a disk needs no memory for the whole file.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np

from compiler.errors import CompileError, Diagnostic
from compiler.ir import dtypes
from compiler.ir.origin import Origin
from compiler.plan import ops
from compiler.plan.builder import Pool
from compiler.plan.encode import plain, text_of
from compiler.plan.header import read_header
from compiler.plan.types import tensor

__all__ = ["FORMAT", "VERSION", "Part", "parts_with_outputs", "with_state", "write"]

FORMAT = "candle-plan"
VERSION = 1
Part = bytes | memoryview
"""Consecutive bytes of a file."""

_ALIGNMENT = 64
_READ_AT_ONCE = 16 << 20
_LONGEST_HEADER = 100_000_000
"""The limit of headers in safetensors, in bytes."""


def write(
    block: ops.Block,
    pool: Pool,
    origins: Sequence[Origin] | None = None,
    *,
    passes: Sequence[str] = (),
    source_sha256: str = "",
    metadata: Mapping[str, str] | None = None,
    max_memory: int | None = None,
    state: Sequence[ops.StatePair] = (),
) -> list[Part]:
    """The parts of the file of a plan with this main block and these constants. They share the constants' memory.

    Raises:
        CompileError: the description is longer than the file format allows.
    """
    plan = ops.Plan(
        constants=[_constant(array) for array in pool.constants],
        main=block,
        max_memory=max_memory,
        metadata=dict(metadata or {}),
        origins=[_origin(origin) for origin in (pool.origins if origins is None else origins)],
        passes=list(passes),
        source_sha256=source_sha256,
        state=list(state),
        weights=[ops.NamedWeight(constant=index, name=name) for name, index in pool.weights.items()],
    )
    fields = plain(plan)
    for name in ("state", "weights"):  # a plan without them is a plan for older runtimes too
        if not fields[name]:
            del fields[name]
    return _file(text_of(fields), pool.constants)


def parts_with_outputs(file: BinaryIO, values: Sequence[int]) -> Iterator[Part]:
    """The parts of the file of a plan with these values of its main block as additional outputs, each once."""

    def add(plan: dict[str, Any]) -> None:
        outputs = plan["main"]["outputs"]
        outputs += [value for value in values if value not in outputs]

    return _changed(file, add)


def with_state(data: bytes, pairs: Sequence[ops.StatePair]) -> bytes:
    """The file of a plan with these pairs of its state instead of its own."""
    return b"".join(_changed(io.BytesIO(data), lambda plan: plan.update(state=plain(list(pairs)))))


def _changed(file: BinaryIO, change: Callable[[dict[str, Any]], None]) -> Iterator[Part]:
    """The parts of the file of a plan whose description `change` has changed. It reads the constants twice."""
    header, end = read_header(file), file.tell()
    metadata = header["__metadata__"]
    plan = json.loads(metadata["plan"])
    change(plan)
    text = text_of(plan)
    header["__metadata__"] = {**metadata, "plan": text, "sha256": _digest(text, _rest(file, end))}
    yield _header(header)
    yield from _rest(file, end)


def _rest(file: BinaryIO, begin: int) -> Iterator[bytes]:
    """The bytes of a file from a position on."""
    file.seek(begin)
    while part := file.read(_READ_AT_ONCE):
        yield part


def _constant(array: np.ndarray) -> ops.AnyConstant:
    """The description of a constant. It contains strings; numbers are in a tensor of the file."""
    if array.dtype == object:
        return ops.Constant.Strings(data=array.ravel().tolist(), shape=list(array.shape))
    return ops.Constant.Tensor(tensor(dtypes.name_of(array), array.shape).value)


def _origin(origin: Origin) -> ops.Origin:
    return ops.Origin(module=origin.module, nodes=list(origin.nodes), source=origin.source)


def _file(text: str, constants: Sequence[np.ndarray]) -> list[Part]:
    """The parts of the safetensors file of a plan's JSON and its constants."""
    stored = {index: dtypes.to_stored(array) for index, array in enumerate(constants) if array.dtype != object}
    header: dict[str, object] = {}
    chunks: list[Part] = []
    position = 0
    for index in sorted(stored, key=lambda index: _sort_key(stored[index])):
        array, bits = constants[index], stored[index]
        begin, position = position, position + bits.nbytes
        kind = dtypes.SAFETENSORS_TYPES.get(dtypes.name_of(array), "U8")
        header[str(index)] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [begin, position]}
        chunks.append(bits.reshape(-1).view(np.uint8).data)
    metadata = {"format": FORMAT, "plan": text, "plan_version": str(VERSION), "sha256": _digest(text, chunks)}
    return [_header({"__metadata__": metadata, **header}), *chunks]


def _sort_key(bits: np.ndarray) -> tuple[bool, int]:
    """The sort key of a constant. In this order, all constants are aligned although the format allows no gaps.

    Constants that fill their last 64 bytes come first, then the others, wide elements before narrow ones.
    """
    return bits.nbytes % _ALIGNMENT != 0, -bits.itemsize


def _header(header: Mapping[str, object]) -> bytes:
    """The header of a safetensors file, preceded by its length."""
    head = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    if len(head) > _LONGEST_HEADER:
        message = f"the plan's description has {len(head)} bytes, more than {_LONGEST_HEADER}"
        raise CompileError([Diagnostic("CC0504", message)])
    head += b" " * (-(len(head) + 8) % _ALIGNMENT)
    return len(head).to_bytes(8, "little") + head


def _digest(text: str, chunks: Iterable[Part]) -> str:
    """The checksum of a plan file, over the plan's JSON and the tensors' bytes."""
    digest = hashlib.sha256(text.encode())
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()
