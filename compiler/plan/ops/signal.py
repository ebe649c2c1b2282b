"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compiler.plan.ops.types import DType


class Dft(Op):
    """The discrete Fourier transform along `axis` of `X [.., 1]` (real) or `[.., 2]` (complex): `Y[k] = Σₙ
    X[n]·exp(∓2πi·kn/N)`, divided by `N` with `inverse`. The signal is truncated, or padded with zeros, to the
    length `N` in input 1 (absent: its own length). Computed in float64.
    """

    inverse: bool
    """Whether this is the inverse transform."""

    one_sided: bool
    """Whether half of the spectrum represents all of it."""

    axis: int | None = None
    """The axis, not the last one; a negative axis counts from the end. `null` means that input 2, one integer, is
    the axis.
    """


class MelWeightMatrix(Op):
    """The matrix `[⌊dft_length/2⌋ + 1, bins]` that sums a spectrum into triangles. Their corners have equal
    distances on the mel scale, `mel(f) = 2595·log₁₀(1 + f/700)`. Inputs, of one element each: `bins`,
    `dft_length`, `sample_rate`, and the `lower` and `upper` edge in hertz.
    """

    dtype: DType
    """The element type of the result, a floating-point type."""


class Stft(Op):
    """The spectra of the frames of a signal `X [B, L, 1]` (real) or `[B, L, 2]` (complex). Frame `f` is `X[f·step
    ..][..length]`, multiplied by the window. The result is `Y [B, frames, length, 2]`, or, with `one_sided`,
    the first `⌊length/2⌋ + 1` elements of each spectrum. Computed in float64. Inputs: `X`, `step: []`, `window:
    [length]` (absent: ones), `length: []` (absent: the window's length, or `L`).
    """

    one_sided: bool
    """Whether half of a spectrum represents all of it; the signal must then be real."""
