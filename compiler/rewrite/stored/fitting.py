"""Finds the tensor of a file for each weight of a model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from compiler.errors import CompileError, Diagnostic
from compiler.ir.origin import common_prefix
from compiler.rewrite.kept_weights import KeptWeights
from compiler.rewrite.stored.architectures import ARCHITECTURES, DERIVED, Architecture
from compiler.rewrite.stored.file import WeightFile
from compiler.rewrite.stored.fit import Fit
from compiler.rewrite.stored.parameters import Parameter, has_ending

__all__ = ["fits_of"]

_LISTED = 20
"""The most weights or tensors that an error lists for one reason."""
_TABLE, _HEAD = "token_embd.weight", "output.weight"


def fits_of(parameters: list[Parameter], file: WeightFile, keep: KeptWeights) -> list[Fit]:
    """The tensors for the weights of a model, except those that `keep` names.

    Raises:
        CompileError: a weight has no tensor, a tensor has no weight or another shape than its weight, or the compiler
            does not know the architecture that a GGUF file states.
    """
    return _Search(parameters, file).run(keep)


class _Search:
    def __init__(self, parameters: list[Parameter], file: WeightFile) -> None:
        self.parameters, self.file = parameters, file
        self.name = str(file.metadata.get("general.architecture", ""))
        self.architecture = ARCHITECTURES.get(self.name)
        names = [name for each in parameters for name in each.names if has_ending(name)]
        self.around = len(common_prefix([name.split(".")[:-1] for name in names]))
        self.readers: dict[str, dict[str, None]] = {}
        self.missing: list[str] = []
        self.wrong: list[str] = []

    def run(self, keep: KeptWeights) -> list[Fit]:
        """The fits of all weights."""
        found = []
        for each in self.parameters:
            fit = self.fit(each)
            if fit is not None:
                self.readers.setdefault(fit.tensor, {})[fit.name] = None
            if each.is_named(keep):
                continue
            if fit is not None:
                self.check(fit)
                found.append(fit)
            elif each.is_weight:
                self.missing.append(str(each))
        if problems := [*self.problems()]:
            raise CompileError(problems)
        return found

    def fit(self, parameter: Parameter) -> Fit | None:
        """The tensor with a name of the weight, or else with llama.cpp's name for it."""
        for name in parameter.names:
            for each in self.shorter(name):
                if each in self.file.tensors:
                    is_own = name == parameter.name  # the exporter did not transpose it
                    return Fit(parameter, each, each, not is_own and self.is_transposed(parameter, each))
        if self.architecture is not None:
            for name in parameter.names:
                for tensor in self.architecture.tensors_of(name):
                    if tensor in self.file.tensors:
                        return self.converted(parameter, name, tensor, self.architecture)
        return None

    def is_transposed(self, parameter: Parameter, tensor: str) -> bool:
        """Whether a weight is the transposed tensor of a layer of PyTorch."""
        known, stored = parameter.is_transposed, self.file.tensors[tensor].shape
        if known is None and len({*parameter.shape}) == 1:
            self.wrong.append(f"{tensor!r}: the nodes that read {parameter} do not tell whether it is transposed")
        return stored != parameter.shape if known is None else known

    def shorter(self, name: str) -> list[str]:
        """The name, and the name without the modules that are around all weights."""
        parts = name.split(".")
        return [".".join(parts[count:]) for count in range(min(self.around, len(parts) - 1) + 1)]

    def converted(self, parameter: Parameter, name: str, tensor: str, architecture: Architecture) -> Fit:
        """The fit of a tensor that llama.cpp converted."""
        order, shape = None, self.file.tensors[tensor].shape
        try:
            order = architecture.order(tensor, math.prod(shape[:1]), self.heads())
        except ValueError as error:
            self.wrong.append(f"{tensor!r}: {error}")
        shift = architecture.shift(tensor) if parameter.gets_one else 0.0  # else the exporter added the 1
        return Fit(parameter, name, tensor, self.is_transposed(parameter, tensor), order, shift)

    def heads(self) -> tuple[int, int]:
        """The numbers of heads of queries and of keys that a GGUF file states; 0 for one that is not stated."""
        queries = self.file.metadata.get(f"{self.name}.attention.head_count", 0)
        keys = self.file.metadata.get(f"{self.name}.attention.head_count_kv", queries)
        return (queries, keys) if isinstance(queries, int) and isinstance(keys, int) else (0, 0)

    def check(self, fit: Fit) -> None:
        """Records a tensor that is not of floats, or of another shape than its weight."""
        stored, needed = self.file.tensors[fit.tensor], fit.parameter.shape
        found = stored.shape[::-1] if fit.transposed else stored.shape
        if not stored.is_float:
            self.wrong.append(f"{fit.tensor!r} is of {stored.kind}, but the weight {fit.parameter} is of floats")
        elif found != needed:
            shape = list(needed[::-1] if fit.transposed else needed)
            self.wrong.append(f"{fit.tensor!r} has the shape {list(stored.shape)}, but {fit.parameter} needs {shape}")

    def problems(self) -> Iterator[Diagnostic]:
        """The reasons against the file."""
        unread = [name for name in self.file.tensors if name not in self.readers and not self.is_needless(name)]
        if self.architecture is None and (self.missing or unread) and self.name:
            known = ", ".join(ARCHITECTURES)
            text = f"the compiler does not know how llama.cpp converts the architecture {self.name!r} of {self.file}"
            yield Diagnostic("CC0409", text, help=f"it knows {known}; of other files, only equal names count")
        several = [
            f"{tensor!r} fits {', '.join(map(repr, names))}"
            for tensor, names in self.readers.items()
            if len(names) > 1 and tensor != _TABLE
        ]
        keep = "`--keep NAME` or Options(keep=…) leaves a weight as the model has it"
        yield from _listed(self.missing, f"no tensor of {self.file} fits the weight", keep)
        yield from _listed(unread, f"no weight of the model fits the tensor of {self.file},", "")
        yield from _listed([*self.wrong, *several], f"the tensor of {self.file},", "")

    def is_needless(self, tensor: str) -> bool:
        """Whether a model needs no such tensor: llama.cpp computes it, or it is a copy of the table of embeddings."""
        tensors = self.file.tensors
        if tensor in DERIVED:
            return True
        is_copy = tensor == _HEAD and _TABLE in self.readers and tensors[_TABLE].shape == tensors[_HEAD].shape
        return is_copy and bool((self.file.array(_TABLE) == self.file.array(_HEAD)).all())


def _listed(items: Iterable[str], text: str, help: str) -> Iterator[Diagnostic]:
    """A diagnostic for each of the first items, and one with the number of the others."""
    every = [*items]
    for item in every[:_LISTED]:
        yield Diagnostic("CC0409", f"{text} {item}", help=help)
        help = ""
    if len(every) > _LISTED:
        yield Diagnostic("CC0409", f"{text} …: {len(every) - _LISTED} more are not listed")
