"""The classes of a plan's types: arguments, comparison and immutability."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from compiler.plan import ops
from compiler.plan.fields import names_of, replaced, values_of

ROOT = Path(__file__).parent.parent
Affine = ops.Activation.Affine
FLOATS = ops.TensorType("float32", [1, "n"])


def test_fields_are_given_by_place_or_by_name() -> None:
    assert Affine(1.0, 2.0) == Affine(1.0, second=2.0) == Affine(second=2.0, first=1.0)
    assert values_of(Affine(second=2.0, first=1.0)) == (1.0, 2.0)
    assert names_of(Affine(1.0, 2.0)) == Affine.__match_args__ == ("first", "second")
    assert ops.Unsqueeze().axes is None
    assert values_of("Relu") == ()


@pytest.mark.parametrize(
    ("values", "named", "said"),
    [
        ((1.0,), {}, "Activation.Affine: 'second' missing"),
        ((1.0, 2.0, 3.0), {}, "Activation.Affine: 3 values for 2 fields"),
        ((1.0, 2.0), {"first": 1.0}, "Activation.Affine: 'first' given twice"),
        ((1.0, 2.0), {"third": 3.0}, "Activation.Affine: no field 'third'"),
    ],
)
def test_other_fields_are_refused(values: tuple[float, ...], named: dict[str, Any], said: str) -> None:
    with pytest.raises(TypeError) as raised:
        Affine(*values, **named)
    assert str(raised.value) == said


def test_equal_ones_have_one_class_and_one_hash() -> None:
    assert Affine(1.0, 2.0) != Affine(1.0, 3.0)
    assert Affine(1.0, 2.0) != ops.Activation.ScaledTanh(1.0, 2.0)
    assert len({Affine(1.0, 2.0), Affine(1.0, 2.0), ops.Activation.ScaledTanh(1.0, 2.0)}) == 2
    with pytest.raises(TypeError, match="unhashable"):
        hash(FLOATS)


def test_none_can_be_changed() -> None:
    with pytest.raises(AttributeError, match="'shape'"):
        FLOATS.shape = None  # type: ignore[misc]
    with pytest.raises(AttributeError, match="'shape' cannot be deleted"):
        del FLOATS.shape
    assert replaced(FLOATS, shape=None) == ops.TensorType("float32", None)
    assert FLOATS.shape == [1, "n"]
    with pytest.raises(TypeError, match="no field 'rank'"):
        replaced(FLOATS, rank=2)


def test_they_are_shown_and_copied() -> None:
    assert repr(Affine(1.0, 2.0)) == "Activation.Affine(first=1.0, second=2.0)"
    for made in (copy.deepcopy(FLOATS), pickle.loads(pickle.dumps(FLOATS))):
        assert made == FLOATS and made is not FLOATS


def test_a_type_checker_knows_the_fields(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("from compiler.plan import ops\nops.Unsqueeze(axis=[1])\nops.Activation.Affine(1.0)\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert 'Unexpected keyword argument "axis"' in done.stdout
    assert 'Missing positional argument "second"' in done.stdout
