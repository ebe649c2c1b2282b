"""The options of a compilation."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from compiler.rewrite.report import PassReport
from compiler.rewrite.weight_format import WeightFormat, is_file
from compiler.validate import (
    LARGEST,
    validate_function,
    validate_instance,
    validate_mapping,
    validate_names,
    validate_sizes,
    validate_state,
    validate_texts,
    validate_whole_number,
)

__all__ = ["Options", "Precision"]

Precision = Literal["f32", "f16", "bf16", "int8"]
"""The types of the numbers that products may multiply."""


@dataclass(frozen=True)
class Options:
    """Options of a compilation."""

    optimize: bool = True
    """Whether to run the optional passes, which make the plan faster."""
    passes: Sequence[str] | None = None
    """The optional passes to run, instead of all of them. The passes that every plan needs always run."""
    skip_passes: Sequence[str] = ()
    """Optional passes to leave out."""
    dims: Mapping[str, int] = field(default_factory=dict)
    """Sizes for symbolic dimensions of the inputs: `{"batch": 1}`."""
    max_memory: int | None = None
    """The limit, in bytes, for all values of a run at one time, without the constants. If a step exceeds it, the run
    raises `RunError`. Use it for untrusted models. `docs/plan-format.md` lists the values that count."""
    state: Literal["auto"] | Mapping[str, str] | None = None
    """Pairs of an output and the input that takes its value in the next run, by name: `{"present.*": "past.*"}`. `*`
    stands for any text, the same in both names. "auto" recognizes the usual names of exporters. `Session.new_state`
    makes a state, which passes these values from run to run."""
    weights: str | os.PathLike[str] | None = None
    """A format that stores weights with fewer bits, and less precisely: "int8" with a scale for each row, "int4" with a
    scale for each block of 32, or "int8:64" and "int4:128" with blocks of another size. The page
    docs/quantized-weights.md lists the weights that change, and their errors. Or the path of a .gguf or .safetensors
    file, whose tensors replace the weights of the model: docs/weights.md."""
    precision: Precision = "f32"
    """The precision of matrix products with constant weights. "f32" multiplies the numbers of the model. "f16" rounds
    the weights to 16 bits. "bf16" rounds both operands to 16 bits. "int8" quantizes both to 8 bits, the left one in
    every run, and sums exactly; the others sum in float32. The page docs/precision-modes.md lists the products, their
    times and their errors."""
    calibration: Iterable[Mapping[str, Any]] | None = None
    """With precision "int8", inputs of typical runs: dicts of arrays by name. The compiler runs the model on them, to
    find the ranges of the activations, and also quantizes convolutions. Without these inputs, convolutions stay in
    float32."""
    keep: Sequence[str] = ()
    """The weights that `weights` or `precision` leaves as they are: names of weights, nodes or modules; `*` stands for
    any text."""
    lower_3d: bool = False
    """Whether to replace operators of three spatial dimensions with 2-D ones. Otherwise the compiler refuses them,
    because no kernel computes them directly. The page docs/volumes.md lists the operators and their prices."""
    strict: bool = False
    """Whether to refuse a model that breaks a rule of ONNX, even if onnxruntime runs it and its meaning is clear.
    Otherwise the compiler warns of each such place (CC0408): an attribute that is not defined for a LayerNormalization,
    or one name of several equal constants."""
    keep_weights: bool = False
    """Whether the plan keeps the weights of the model under their own names, so that `Session.with_weights` can replace
    them. Weights are the float initializers with more than one element. No pass uses their values: for example, the
    compiler does not fold batch normalizations. The plan may be slower."""
    keep_metadata: Sequence[str] = ()
    """The keys of the model's metadata that the plan keeps, such as the names of classes. By default it keeps none,
    because exporters write dates, paths and names of people there."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    """Texts that the plan keeps in addition to these, by key. `candlec inspect` shows them."""
    strip_origins: bool = False
    """Whether to omit module paths and source lines from the plan."""
    verify_passes: bool = False
    """Whether to verify the graph after every pass, to find compiler bugs."""
    on_pass: Callable[[PassReport], None] | None = None
    """A function that the compiler calls with the report of each pass, as soon as the pass has run."""
    on_model: Callable[[PassReport, Any], None] | None = None
    """The same, but the second argument is the model, an `onnx_ir.Model`. The function must not change the model."""

    def __post_init__(self) -> None:
        """Check the types of the fields.

        Raises:
            TypeError: a field has another type.
            ValueError: a number is negative, or too large for a size.
        """
        for name in ("optimize", "lower_3d", "strict", "keep_weights", "strip_origins", "verify_passes"):
            validate_instance(f"Options.{name}", getattr(self, name), bool, "True or False")
        for name in ("passes", "skip_passes", "keep", "keep_metadata"):
            if getattr(self, name) is not None:
                validate_names(f"Options.{name}", getattr(self, name))
        validate_texts("Options.metadata", self.metadata)
        object.__setattr__(self, "dims", validate_sizes("Options.dims", self.dims))
        if self.max_memory is not None:
            bytes_held = validate_whole_number("Options.max_memory", self.max_memory, 0, LARGEST - 1)
            object.__setattr__(self, "max_memory", bytes_held)
        validate_state("Options.state", self.state)
        self._check_weights()
        self._check_precision()
        self._check_calibration()
        for name in ("on_pass", "on_model"):
            if getattr(self, name) is not None:
                validate_function(f"Options.{name}", getattr(self, name))

    def _check_weights(self) -> None:
        if self.weights is None:
            return
        expected = 'a format such as "int8", or the path of a file'
        validate_instance("Options.weights", self.weights, (str, os.PathLike), expected)
        weights = os.fspath(self.weights)
        object.__setattr__(self, "weights", weights)
        try:
            if not is_file(weights):
                WeightFormat.parse(weights)
        except ValueError as error:
            raise ValueError(f"Options.weights: {error}") from None
        if self.keep_weights:
            raise ValueError("Options.weights changes weights: leave it out, or keep_weights")

    def _check_precision(self) -> None:
        if self.precision not in get_args(Precision):
            expected = " or ".join(repr(each) for each in get_args(Precision))
            raise ValueError(f"Options.precision: expected {expected}, found {self.precision!r}")
        if self.precision == "f32":
            return
        if self.weights is not None:
            raise ValueError("Options.precision changes weights: leave it out, or weights")
        if self.keep_weights:
            raise ValueError("Options.precision changes weights: leave it out, or keep_weights")

    def _check_calibration(self) -> None:
        if self.calibration is None:
            return
        if self.precision != "int8":
            raise ValueError('Options.calibration is for precision "int8": leave it out, or give both')
        expected = "dicts of arrays by name"
        is_list = isinstance(self.calibration, Iterable) and not isinstance(self.calibration, str | bytes | Mapping)
        if not is_list:
            raise TypeError(f"Options.calibration: expected {expected}, found {type(self.calibration).__name__}")
        cases = self.calibration if isinstance(self.calibration, tuple) else tuple(self.calibration)
        for number, case in enumerate(cases):
            validate_mapping(f"Options.calibration[{number}]", case, "a dict of arrays by name")
        if not cases:
            raise ValueError("Options.calibration: expected the inputs of at least one run, found none")
        object.__setattr__(self, "calibration", cases)
