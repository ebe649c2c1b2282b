"""Tasks that crash, hang, or take memory, for tests of processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from compiler.accuracy.reference import ReferenceFailed
from compiler.errors import InputError
from compiler.processes.child import Channel
from compiler.processes.fresh import in_fresh_process
from compiler.zoo import tasks
from compiler.zoo.outcome import Outcome, variants
from compiler.zoo.task_arguments import Check, Measure, Profile, Time
from tests.running import wait_for

HANGING = 600.0
"""Seconds after which a task ends if the test does not end it."""


def allocate(size: int) -> None:
    """Hold this many bytes of memory for `HANGING` seconds."""
    held = bytearray(size)
    held[:: os.sysconf("SC_PAGE_SIZE")] = b"x" * len(held[:: os.sysconf("SC_PAGE_SIZE")])
    time.sleep(HANGING)


def act(what: str, channel: Channel) -> Any:
    """Do the action that `what` names, in a phase of the same name."""
    channel.part(f"before {what}")
    channel.phase(what)
    word, _, number = what.partition(" ")
    match word:
        case "signal":
            os.kill(os.getpid(), int(number))
        case "exit":
            os._exit(int(number))
        case "sleep":
            time.sleep(float(number))
        case "allocate":
            allocate(int(number))
        case "lack":
            raise MemoryError
        case "fail":
            assert not what, "a bug"
        case "refuse":
            raise InputError("x", "float32", "int64")
        case "function":
            return lambda: None
        case "talk":
            sys.stderr.write("word " * 100_000 + "\nthe last words\n")
            sys.stderr.flush()
            os.kill(os.getpid(), signal.SIGABRT)
        case _:
            return act_in_its_place(what)
    return what


def act_in_its_place(what: str) -> Any:
    """Do an action that needs other processes, files or the environment."""
    word, _, number = what.partition(" ")
    match word:
        case "place":
            return [str(Path.cwd()), os.environ.get("WHERE")]
        case "apart":
            return in_fresh_process(act_apart, number)
        case "pid":
            Path(number).write_text(str(os.getpid()))
            time.sleep(HANGING)
        case "child":
            return subprocess.Popen(["sleep", "600"]).pid
        case "wait":
            wait_for(Path(number).exists)
        case "meet":
            began, [own, other] = time.monotonic(), number.split()
            Path(own).touch()
            wait_for(Path(other).exists)
            return [began, time.monotonic()]
    return what


def act_apart(what: str) -> Any:
    """Do the action that `what` names, and tell nobody about it."""
    return act(what, Channel(lambda _kind, _data: None))


def check_or_end(asked: Check, channel: Channel) -> Any:
    """Report that every output equals the reference. A model's name may ask for a crash or another end instead."""
    name = asked.entry.name
    if name.startswith("crash"):
        channel.phase("run: pinned, optimized, 1 thread, io")
        os.kill(os.getpid(), signal.SIGSEGV)
    if name.startswith("hang"):
        channel.phase("compile: pinned, optimized, after the pass sort_nodes")
        time.sleep(HANGING)
    if name.startswith("large"):
        allocate(10_000_000)
    if name.startswith("bug"):
        raise AssertionError("an axis")
    return check_at_once(asked, channel)


def check_the_first(asked: Check, channel: Channel) -> Any:
    """Check the model `first`; hang at others."""
    if asked.entry.name != "first":
        time.sleep(HANGING)
    return tasks.check(asked, channel)


def hang(asked: Check | Measure, channel: Channel) -> None:
    """Do nothing for `HANGING` seconds."""
    time.sleep(HANGING)


def check_at_once(asked: Check, channel: Channel) -> Any:
    """Report that every output equals the reference, with facts of the level `avx2`. Refuse a model `refused`."""
    is_refused = asked.entry.name == "refused"
    for shapes in asked.shapes:
        for variant in variants(asked.device):
            outcome = Outcome(asked.entry.name, str(variant), "equal", share=0.0)
            if is_refused:
                outcome = replace(outcome, verdict="refused", codes=("CC0301",))
            channel.part([shapes, outcome.unjudged])
    facts = {"plan": {"steps": {"Conv": 1}}, "levels": {"avx2": {"block": 8}}}
    return {} if is_refused else dict.fromkeys(asked.shapes, facts)


def time_as_told(asked: Time, channel: Channel) -> dict[str, float]:
    """Return the ratio of times that times.json has for this process of a model, and log the call.

    Instead of a ratio, the file may have a list of those of a run, the compilation and the load, or state how the
    process ends.
    """
    name, number = asked.entry.name, asked.number
    with Path("timed.log").open("a") as log:
        log.write(f"{name} {number}\n")
    told = json.loads(Path("times.json").read_text())[name][number - 1]
    channel.phase("run in turns with onnxruntime")
    match told:
        case "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "hang":
            time.sleep(HANGING)
        case "refuse":
            raise ReferenceFailed("onnxruntime fails on these inputs: odd")
        case "bug":
            raise AssertionError("an axis")
        case [run, compilation, load]:
            starts = {"compile": 3 * compilation, "load": 3 * load, "session": 3.0}
            return {"plan": 2 * run, "onnxruntime": 2.0, **starts}
    return {"plan": 2 * told, "onnxruntime": 2.0}


def profile_or_crash(asked: Profile, channel: Channel) -> dict[str, Any]:
    """Return a profile without steps, or crash for a model whose name begins with `crash`."""
    channel.phase("run step by step")
    if asked.entry.name.startswith("crash"):
        os.kill(os.getpid(), signal.SIGSEGV)
    return {"level": "avx2", "threads": 1, "runs": 10, "peaks": None, "steps": []}
