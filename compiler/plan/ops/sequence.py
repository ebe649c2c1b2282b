"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compiler.plan.ops.types import DType


class ConcatFromSequence(Op):
    """Joins the tensors of a sequence along `axis`. With `new_axis`, it stacks them along a new axis at this
    position.
    """

    axis: int
    """The axis of the result; a negative one counts from the end."""

    new_axis: bool
    """Whether the axis is new."""


class SequenceAt(Op):
    """Item `position` of a sequence; a negative one counts from the end. Inputs: the sequence, `position: []`."""


class SequenceConstruct(Op):
    """A sequence of the inputs, in order."""


class SequenceEmpty(Op):
    """A sequence without items."""

    dtype: DType
    """The element type of the items that it can hold."""


class SequenceErase(Op):
    """Removes item `position` from a sequence. Inputs: the sequence, `position: []` (absent: the last item), from
    `-n` to `n - 1` for `n` items.
    """


class SequenceInsert(Op):
    """Inserts a tensor into a sequence before item `position`. Inputs: the sequence, the tensor, `position: []`
    (absent: at the end), from `-n` to `n` for `n` items.
    """


class SequenceLength(Op):
    """The number of items of a sequence, as `int64 []`."""


class SplitToSequence(Op):
    """Splits `X` along `axis` into a sequence. Input 1, `split`, is a list of sizes, or one size for all parts, of
    which the last may be smaller. If it is absent, the parts have size 1.
    """

    axis: int
    """The axis; a negative one counts from the end."""

    keep_axis: bool
    """Whether parts keep the axis if `split` is absent."""
