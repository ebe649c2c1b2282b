"""Checks of the device itself: threads, exhausted memory, reported faults, and the time to open it."""

from __future__ import annotations

import functools
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

import compiler
from gpu import files
from gpu.files import Model
from gpu.page import bullets
from gpu.process import Setting
from gpu.results import LeftOut, Result, Unequal

T = TypeVar("T")

SESSIONS = 100
TURNS = 20
"""Runs of each of two threads."""
BEYOND = {"emulator": 1 << 46}
"""The number of float32 elements that the emulator cannot allocate. Its memory is the host's, which may be
overcommitted, but not beyond the address space."""
TERABYTES = 1 << 40
"""The number of float32 elements that no GPU can allocate."""
EACH = 1 << 30
"""The number of float64 elements of each of the values that fill the memory."""


@dataclass(frozen=True)
class Place:
    """A device that stays open while this object exists, the bundle's small plans, and the `seconds` to open it."""

    device: str
    small: Mapping[str, Model]
    held: compiler.Session
    seconds: float

    @classmethod
    @functools.cache
    def opened(cls, setting: Setting) -> Place:
        """Opens a device with the first of the small plans.

        Raises:
            DeviceError: it cannot be used.
        """
        small = [files.read(setting.bundle, "small", name) for name in files.names(setting.bundle, "small")]
        start = time.perf_counter()
        held = compiler.load(compiler.Plan(small[0]["plan"]), device=setting.device, threads=1)
        return cls(setting.device, {model["name"]: model for model in small}, held, time.perf_counter() - start)

    def session(self, name: str) -> compiler.Session:
        """A new session of a small plan."""
        return compiler.load(compiler.Plan(self.small[name]["plan"]), device=self.device, threads=1)

    def case(self, name: str) -> dict[str, Any]:
        """Inputs of a small plan."""
        case: dict[str, Any] = self.small[name]["cases"][0]
        return case


lines = bullets


def names(setting: Setting) -> list[str]:
    """The names of the checks."""
    return list(CHECKS)


def results(name: str, setting: Setting, started: float) -> Iterator[Result]:
    """The observation of one check."""
    yield {"note": CHECKS[name](Place.opened(setting))}


def has_same_bits(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether the outputs of two runs are the same, bit for bit."""
    return one.keys() == other.keys() and all(_bits(one[name]) == _bits(other[name]) for name in one)


def _bits(value: Any) -> Any:
    """A key that is equal only for values with the same bits."""
    if isinstance(value, list):
        return [_bits(item) for item in value]
    if value is None or value.dtype == object:
        return None if value is None else value.tolist()
    return value.dtype, value.shape, value.tobytes()


def loading(place: Place) -> str:
    """The times of the first session of a process and of the next one."""
    start = time.perf_counter()
    place.session("softmax")
    return f"{place.seconds:.2f} s for the first session of a process, {time.perf_counter() - start:.3f} s for the next"


def another_thread(place: Place) -> str:
    """Checks that other threads than the creator's can run a session."""
    case = place.case("conv")
    session = in_thread(lambda: place.session("conv"))
    expect_same(session.run(case), in_thread(lambda: session.run(case)))
    return "it ran in two other threads, with the same bits"


def at_once(place: Place) -> str:
    """Checks that concurrent runs of two threads do not affect each other's results."""
    names = ("conv", "softmax")
    wanted = {name: place.session(name).run(place.case(name)) for name in names}
    start = threading.Barrier(len(names), timeout=20)

    def turns(name: str, session: compiler.Session) -> None:
        start.wait()
        for _ in range(TURNS):
            expect_same(wanted[name], session.run(place.case(name)))

    with ThreadPoolExecutor(len(names)) as threads:
        sessions = list(threads.map(place.session, names))
        list(threads.map(turns, names, sessions))
    return f"{TURNS} runs each, with the same bits as single runs"


def many_sessions(place: Place) -> str:
    """Checks that sessions release their memory."""
    case, before, start = place.case("softmax"), memory_used(), time.perf_counter()
    wanted = place.held.run(case)
    for _ in range(SESSIONS):
        expect_same(wanted, place.session("softmax").run(case))
    seconds, after = time.perf_counter() - start, memory_used()
    used = "" if before is None or after is None else f"; the GPU's memory in use went from {before} to {after} MiB"
    return f"{seconds:.1f} s, including a run of each{used}"


def too_large(place: Place) -> str:
    """Checks that a value of terabytes is an error, after which runs still succeed."""
    good, count = place.case("expand"), BEYOND.get(place.device, TERABYTES)
    return refused(place.session("expand"), good, {**good, "shape": np.array([count])}, "has no memory for")


def no_memory_left(place: Place) -> str:
    """Checks that exhausted memory is an error, after which the memory is free again."""
    if place.device == "emulator":
        raise LeftOut("the emulator's memory is the host's")
    good = place.case("fill")
    said = refused(place.session("fill"), good, {**good, "shape": np.array([EACH])}, "has no memory for")
    place.session("topk").run(place.case("topk"))  # its kernels have not been loaded before
    return said


def beyond_its_axis(place: Place) -> str:
    """Checks that the error of a kernel names the step."""
    good = place.case("gather")
    return refused(
        place.session("gather"), good, {**good, "places": np.array([0, 99])}, "index 99 is out of range", "Gather"
    )


def auto(place: Place) -> str:
    """Checks that `auto` uses the GPU."""
    if not place.device.startswith("cuda"):
        raise LeftOut("it uses only CUDA")
    plan = compiler.Plan(place.small["softmax"]["plan"])
    if not (taken := compiler.load(plan, device="auto").device).startswith("cuda"):
        raise Unequal(f"it used {taken}")
    return f"it used {taken}"


def same_bits(place: Place) -> str:
    """Checks that no sum depends on the order of the threads."""
    names = ("softmax", "topk", "conv")
    for name in names:
        session = place.session(name)
        expect_same(session.run(place.case(name)), session.run(place.case(name)))
    return ", ".join(names)


def state(place: Place) -> str:
    """Checks that a state equals outputs that are fed back, and that a copy of it grows alone."""
    session, case = place.session("cache"), place.case("cache")
    held, fork = session.new_state(), None
    for turn in range(TURNS):
        wanted = session.run(case)
        expect_same({"y": wanted["y"]}, session.run({"x": case["x"]}, state=held))
        case = {"x": case["x"] + 1, "past_x": wanted["present_x"]}
        if turn == TURNS // 2:
            fork, middle = held.copy(), case
    assert fork is not None
    session.run({"x": middle["x"]}, state=fork)
    expect_same({"past_x": session.run(middle)["present_x"]}, fork.numpy())
    expect_same({"past_x": case["past_x"]}, held.numpy())
    return f"{TURNS} runs, and a copy, with the same bits as outputs that were fed back"


CHECKS: dict[str, Callable[[Place], str]] = {
    "loading a plan": loading,
    "a session made in one thread, run in another": another_thread,
    "two sessions in two threads at once": at_once,
    f"{SESSIONS} sessions made and dropped": many_sessions,
    "a value of terabytes, and a good run after it": too_large,
    "values that fill the memory, and a good run after them": no_memory_left,
    "an index beyond its axis, and a good run after it": beyond_its_axis,
    "`auto` takes the GPU": auto,
    "two runs give the same bits": same_bits,
    "a state, and its copy": state,
}
"""Name → check, which returns its observation as a sentence, and raises an exception if it is wrong."""


def refused(session: compiler.Session, good: dict[str, Any], bad: dict[str, Any], *words: str) -> str:
    """The message of a failing run. A run before it and a run after it must have equal results.

    Raises:
        Unequal: the run does not fail, or its message lacks the words.
    """
    before = session.run(good)
    try:
        session.run(bad)
    except compiler.RunError as error:
        said = str(error)
    else:
        raise Unequal("the run did not fail")
    expect_same(before, session.run(good))
    if not all(word in said for word in words):
        raise Unequal(f"the message is: {said}")
    return f"“{' '.join(said.split())}”"


def expect_same(one: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    """Raises Unequal if two runs differ."""
    if not has_same_bits(one, other):
        raise Unequal("two runs differ")


def in_thread(work: Callable[[], T]) -> T:
    """The result of a function that runs in a new thread."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(work).result()


def memory_used() -> int | None:
    """The memory in use of the first GPU, in MiB; `None` if unknown."""
    if shutil.which("nvidia-smi") is None:
        return None
    query = ["nvidia-smi", "--id=0", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    told = subprocess.run(query, capture_output=True, text=True, timeout=30).stdout.strip()
    return int(told) if told.isdigit() else None
