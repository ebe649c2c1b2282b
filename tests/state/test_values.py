"""The values of a state: the first ones, copies, files, and states that are cut."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

import compiler
from compiler import InputError, Options
from tests.state.models import STEPS, assert_same, cache_plan, expected, model_of, rows


@pytest.fixture(scope="module")
def session() -> compiler.Session:
    return compiler.load(cache_plan(), threads=2)


def test_the_first_values_may_be_given(session: compiler.Session) -> None:
    first = {"past_x": rows(5, 3)["x"], "state": np.ones((1, 4), np.float32)}
    state = session.new_state(first)
    first["past_x"] = first["past_x"].copy()
    state.numpy()["past_x"][...] = 3  # a copy
    assert_same(state.numpy(), first)
    for given, wanted in zip(STEPS, expected(session, STEPS, first), strict=True):
        assert_same(session.run(given, state=state), {"y": wanted["y"]})
    state.reset()
    assert_same(state.numpy(), first)
    assert session.new_state({"past_x": first["past_x"]}).length == 3


def test_the_first_values_of_one_size_are_given_together() -> None:
    text = """(float[n] x, float[past] past_k, float[past] past_v, float[1] state)
        => (float[m] present_k, float[m] present_v, float[1] state_out) {
        present_k = Concat <axis = 0> (past_k, x)
        present_v = Concat <axis = 0> (past_v, x)
        state_out = Neg (state)
    }"""
    session = compiler.load(compiler.compile(model_of(text), Options(state="auto")))
    five = np.ones(5, np.float32)
    with pytest.raises(ValueError, match=r"'past_k' has size 5 \(past\), but 'past_v' of the same size is missing"):
        session.new_state({"past_k": five})
    assert session.new_state({"past_k": five, "past_v": five}).length == 5
    assert session.new_state({"past_k": five[:0]}).length == 0
    assert session.new_state({"state": five[:1]}).length == 0


def test_the_caller_may_change_what_it_gave(session: compiler.Session) -> None:
    past = np.ones((1, 2, 700, 4), np.float32)
    state = session.new_state({"past_x": past})
    past[...] = 2
    assert (state.numpy()["past_x"] == 1).all()
    x = np.ones((1, 2, 1, 4), np.float32)
    session.run({"x": x}, state=state)
    x[...] = 5
    assert (state.numpy()["past_x"] == 1).all()


def test_an_output_that_is_an_input_is_copied() -> None:
    echo = model_of(
        "(float[n] x, float[m] state) => (float[m] y, float[n] state_out) { y = Neg (state) state_out = Identity (x) }"
    )
    session = compiler.load(compiler.compile(echo, Options(state="auto")))
    state = session.new_state({"state": np.zeros(2000, np.float32)})
    x = np.ones(2000, np.float32)
    assert (session.run({"x": x}, state=state)["y"] == 0).all()
    x[...] = 3
    assert (session.run({"x": x}, state=state)["y"] == -1).all()


def test_a_state_that_grows_can_be_cut() -> None:
    text = """(float[b, n] x, float[b, past] past_x, float[past2, 2] past_z, float[n2, 2] z)
        => (float[b, total] present_x, float[total2, 2] present_z, float[1] y) {
        present_x = Concat <axis = 1> (past_x, x)
        present_z = Concat <axis = 0> (past_z, z)
        y = Constant <value_floats = [1.0]> ()
    }"""
    session = compiler.load(compiler.compile(model_of(text), Options(state="auto")))
    assert [pair.axis for pair in session.state] == [1, 0]
    state = session.new_state()
    given = {"x": np.arange(8, dtype=np.float32).reshape(2, 4), "z": np.arange(8, dtype=np.float32).reshape(4, 2)}
    session.run(given, state=state)
    state.truncate(4)
    fork = state.copy()
    fork.truncate(3)
    assert_same(fork.numpy(), {"past_x": given["x"][:, :3], "past_z": given["z"][:3]})
    assert_same(state.numpy(), {"past_x": given["x"], "past_z": given["z"]})
    with pytest.raises(ValueError, match='"past_x" has length 3, so it cannot be cut to length 4'):
        fork.truncate(4)
    with pytest.raises(ValueError, match="length: expected a whole number from 0"):
        fork.truncate(-1)
    fork.truncate(0)
    assert (fork.length, fork.nbytes) == (0, 0)
    session.run(given, state=fork)
    assert_same(fork.numpy(), state.numpy())


def test_a_state_that_does_not_grow_cannot_be_cut(session: compiler.Session) -> None:
    state = session.new_state()
    session.run(STEPS[0], state=state)
    with pytest.raises(ValueError, match='"state" does not grow, so no earlier value of it is known'):
        state.truncate(2)
    assert state.length == 5


def test_states_are_saved_and_loaded(session: compiler.Session, tmp_path: Path) -> None:
    state = session.new_state()
    session.run(STEPS[0], state=state)
    state.save(tmp_path / "state.safetensors")
    other = compiler.load(cache_plan(optimize=False), threads=1).new_state()
    other.load(str(tmp_path / "state.safetensors"))
    assert_same(other.numpy(), state.numpy())
    loaded = session.new_state()
    loaded.load(tmp_path / "state.safetensors")
    assert_same(session.run(rows(1), state=loaded), session.run(rows(1), state=state))
    session.new_state().save(tmp_path / "empty.safetensors")
    loaded.load(tmp_path / "empty.safetensors")
    assert loaded.numpy() == {}
    with pytest.raises(FileNotFoundError):
        state.load(tmp_path / "missing")


def test_other_files_are_refused(session: compiler.Session, tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    path, state = tmp_path / "state.safetensors", session.new_state()
    session.run(STEPS[0], state=state)
    state.save(path)
    data = path.read_bytes()
    renamed = compiler.load(
        compiler.compile(
            model_of("(float[1] past) => (float[1] present) { present = Identity (past) }"), Options(state="auto")
        )
    )
    with pytest.raises(ValueError, match="cannot load the state: it belongs to another model"):
        renamed.new_state().load(path)
    for damaged in (b"", data[:40], data[:-1], data.replace(b"candle-state", b"candle-plate")):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"is cut short or is no saved state|the file is no saved state"):
            state.load(path)
    header = {"format": "candle-state", "state_version": "1", "model": cache_plan().document["source_sha256"]}
    for arrays, error, said in [
        ({"x": np.zeros(1, np.float32)}, ValueError, 'the state has no value "x"; it has past_x, state'),
        ({"state": np.zeros((1, 4), np.float64)}, ValueError, '"state" is F64, and not F32'),
        ({"state": np.zeros((4,), np.float32)}, InputError, r"found float32 \[4\] in the file"),
    ]:
        save_file(arrays, path, {**header})
        with pytest.raises(error, match=said):
            state.load(path)
    save_file({}, path, {**header, "state_version": "2"})
    with pytest.raises(ValueError, match="its version is newer"):
        state.load(path)
    assert state.length == 5  # as before


def test_a_state_says_that_it_cannot_be_pickled(session: compiler.Session) -> None:
    with pytest.raises(TypeError, match="a state cannot be pickled: save it to a file"):
        pickle.dumps(session.new_state())


def test_sizes_of_the_first_values() -> None:
    ports = "(float[n] x, float[2, ?, size] state) => (float[n] y, float[2, ?, size] state_out)"
    text = f"{ports} {{ y = Neg (x) state_out = Neg (state) }}"
    session = compiler.load(compiler.compile(model_of(text), Options(state="auto")))
    x = {"x": np.ones(1, np.float32)}
    with pytest.raises(InputError, match="expected an initial value, because the size of dimension 1 of"):
        session.run(x, state=session.new_state(sizes={"size": 3}))
    state = session.new_state(sizes={"size": 3, "state.1": 4})
    session.run(x, state=state)
    assert state.numpy()["state"].shape == (2, 4, 3)
    with pytest.raises(ValueError, match='no value of the state has a dimension "n" of unknown size'):
        session.new_state(sizes={"n": 3})
    with pytest.raises(ValueError, match='the state has no value "x"; it has state'):
        session.new_state(x)
    with pytest.raises(InputError, match=r"found float32 \[1, 4, 3\] as the initial value"):
        session.new_state({"state": np.zeros((1, 4, 3), np.float32)})
    with pytest.raises(TypeError, match="initial: expected a dict of arrays by name"):
        session.new_state([])  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "bool", "int8", "uint64", "float64", "float8_e4m3fn", "int4"])
def test_every_width_of_elements(dtype: str, tmp_path: Path) -> None:
    from onnx import helper

    from compiler.ir import dtypes

    element = helper.np_dtype_to_tensor_dtype(dtypes.numpy_dtype(dtype))
    given, output = (
        helper.make_tensor_value_info(name, element, [dim, 3]) for name, dim in (("past", "past"), ("present", "total"))
    )
    new = helper.make_tensor_value_info("x", element, ["n", 3])
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["present"]), helper.make_node("Identity", ["past"], ["y"])],
        "m",
        [new, given],
        [helper.make_tensor_value_info("y", element, ["past", 3]), output],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
    session = compiler.load(compiler.compile(model, Options(state="auto")))
    state = session.new_state()
    x = (np.arange(6).reshape(2, 3) % 2).astype(dtypes.numpy_dtype(dtype))
    assert session.run({"x": x}, state=state)["y"].shape == (0, 3)
    state.save(tmp_path / "state.safetensors")
    state.reset()
    state.load(tmp_path / "state.safetensors")
    assert_same(session.run({"x": x}, state=state), {"y": x})
